//! Signatures of files (docs/signing.md): guard databases, policies, or anything else.
//!
//! A [`SecretKey`] signs, a [`PublicKey`] verifies; both are ed25519 (RFC 8032). Signatures are detached
//! ([`Signatures`]): FILE.sig has one line per signer. [`Trusted`] are the public keys whose signatures a machine
//! accepts. Everything is text, one key or signature per line, and numbers are hexadecimal digits.
//!
//! What is signed is the text `tollgate signature 1`, a newline, and the SHA-256 of the file. So no signature is valid for
//! anything else that is signed with the same key.
//!
//! ```
//! use tollgate_signing::{Content, SecretKey, Signatures};
//!
//! let key = SecretKey::of_seed("release", [7; 32])?;
//! let content = Content::of(b"a policy");
//! let mut signatures = Signatures::default();
//! signatures.add(&key, &content);
//! let trusted = [key.public()];
//! assert_eq!(signatures.verify(&content, &trusted), Some(&trusted[0]));
//! assert_eq!(signatures.verify(&Content::of(b"another"), &trusted), None);
//! # Ok::<(), tollgate_signing::SigningError>(())
//! ```

#![forbid(unsafe_code)]
// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod content;
mod error;
mod file;
mod hex;
mod key;
mod signatures;
mod trusted;

pub use self::{
    content::Content,
    error::SigningError,
    key::{PublicKey, SecretKey},
    signatures::Signatures,
    trusted::Trusted,
};
