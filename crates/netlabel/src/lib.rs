//! Labels in the options of IP packets: read and written, without I/O.
//!
//! | format | module | says |
//! |---|---|---|
//! | CIPSO, FIPS-188 tags 1, 2, 5; Linux's tag 128 | [`cipso`] | a level; a SID |
//! | FIPS-188 tag 7 | [`dsm`] | DSM's context and node |
//! | CALIPSO, RFC 5570 | [`calipso`] | a level |
//! | Tollgate's own | [`sealed`] | a context, sealed by a MAC |
//!
//! [`question`] is what machines with sealed labels ask one another.
//!
//! [`ipv4`] and [`ipv6`] find the option with the label in a header, [`Label`] reads whatever it is. Readers take any
//! bytes, and never panic. They take what the kernel takes; each module says where they are stricter, and why. What they
//! return can be written again, and what is written never exceeds the room that the header has.
//!
//! A level is in the numbers of its domain ([`Doi`]). Mapping them to the policy's is not done here.
//!
//! `bpf/netlabel.h` reads the same for BPF programs; a test holds the two against one another.
//!
//! ```
//! use tollgate_netlabel::{Doi, Label, Level, cipso::{Cipso, Tag}};
//!
//! let label = Cipso { doi: Doi::new(1)?, tag: Tag::Bitmap(Level::new(3, [0, 1])) };
//! let options = label.write_words()?;
//! assert_eq!(options, [0x86, 12, 0, 0, 0, 1, 1, 6, 0, 3, 0xc0, 0]);
//! assert_eq!(Label::in_ipv4(&options)?, Some(Label::Cipso(label)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod calipso;
mod categories;
pub mod cipso;
pub mod dsm;
mod envelope;
mod error;
pub mod ipv4;
pub mod ipv6;
mod label;
mod level;
pub mod question;
pub mod sealed;

pub use self::{
    categories::Categories,
    error::{ReadError, WriteError},
    label::Label,
    level::{Doi, Level},
};
