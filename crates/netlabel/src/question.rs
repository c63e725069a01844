//! What machines with sealed labels ask one another: which context has this identifier?
//!
//! A question and its answer have the same length, so nobody can use a machine to send more than he has sent himself. In
//! network byte order:
//!
//! ```text
//!    0  "TGC"  version (1)  kind (1: question, 2: answer)  key number (1)  length of the context (2)
//!    8  nonce (16)
//!   24  generation (8)
//!   32  time window (8)
//!   40  identifier (4)  asking node (2)  asked node (2)
//!   48  context (1,024), filled with zeros; none in a question, and in the answer of a node that does not know it
//! 1072  HMAC-SHA-256 of all bytes before (32)
//! ```
//!
//! The MAC's key is the HMAC-SHA-256 of [`PURPOSE`] by the key that seals labels, so no MAC of a label is one of a message.
//! An answer repeats everything of its question, with its random nonce. So it is an answer to this question only, from a
//! machine that has the key. What it says is true if the context has this identifier ([`Key::identifier`]). It is not
//! secret: whoever sees the message can read the context.

use sha2::{Digest, Sha256};

use crate::sealed::Key;

/// What the key of messages is derived by.
pub const PURPOSE: &[u8] = b"tollgate: which context";
/// Bytes of a message. With its headers and a sealed label it fits each link of IPv6.
pub const LENGTH: usize = HEAD + MAX_CONTEXT + MAC;
/// The maximum length of a context, in bytes: longer ones are not told.
pub const MAX_CONTEXT: usize = 1024;

const MAGIC: [u8; 4] = *b"TGC\x01";
const QUESTION: u8 = 1;
const ANSWER: u8 = 2;
const HEAD: usize = 48;
const MAC: usize = 32;
/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// What is asked, of whom, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Random, so that an answer is known to be new.
    pub nonce: [u8; 16],
    /// Whose identifiers are meant, as in a sealed label ([`crate::sealed::Claim`]).
    pub generation: u64,
    /// When it was asked, in time windows since 1970.
    pub window: u64,
    /// The number of the context.
    pub identifier: u32,
    /// The node that asks.
    pub from: u16,
    /// The node that is asked.
    pub to: u16,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A question.
    Question(Question),
    /// Its answer: the context; `None`: no context that the asked node knows has this identifier.
    Answer(Question, Option<String>),
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Another length, or another beginning.
    #[error("it is no message of {LENGTH} bytes")]
    Form,
    /// It was made with a key that is not valid here.
    #[error("no key has the number {number}")]
    Key {
        /// The key's number.
        number: u8,
    },
    /// It is forged or changed.
    #[error("the message is not sealed by the key")]
    Mac,
    /// Whoever has the key has not written it as it must be.
    #[error("the context is not graphic ASCII, or not filled with zeros")]
    Context,
}

impl Message {
    /// Its bytes, sealed by a key. A context that is too long is not told.
    #[must_use]
    pub fn seal(&self, key: &Key) -> [u8; LENGTH] {
        let (kind, question, context) = match self {
            Self::Question(question) => (QUESTION, question, None),
            Self::Answer(question, context) => (ANSWER, question, context.as_deref()),
        };
        let context = context.filter(|context| context.len() <= MAX_CONTEXT).unwrap_or_default().as_bytes();
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(MAGIC);
        bytes.extend([kind, key.number]);
        bytes.extend((context.len() as u16).to_be_bytes());
        bytes.extend(question.nonce);
        bytes.extend(question.generation.to_be_bytes());
        bytes.extend(question.window.to_be_bytes());
        bytes.extend(question.identifier.to_be_bytes());
        bytes.extend(question.from.to_be_bytes());
        bytes.extend(question.to.to_be_bytes());
        bytes.extend(context);
        bytes.resize(HEAD + MAX_CONTEXT, 0);
        bytes.extend(mac(key, &bytes));
        std::array::from_fn(|at| bytes[at])
    }

    /// Reads bytes, which may be anyone's. Returns the message and the key that sealed it.
    ///
    /// # Errors
    ///
    /// The first reason why it is none. Nothing but the number of the key is read before the MAC is right.
    pub fn open<'k>(bytes: &[u8], keys: &'k [Key]) -> Result<(Self, &'k Key), MessageError> {
        let bytes: &[u8; LENGTH] = bytes.try_into().map_err(|_| MessageError::Form)?;
        let (kind, number) = (bytes[4], bytes[5]);
        if bytes[..4] != MAGIC || ![QUESTION, ANSWER].contains(&kind) {
            return Err(MessageError::Form);
        }
        let key = keys.iter().find(|key| key.number == number).ok_or(MessageError::Key { number })?;
        let (covered, sealed) = bytes.split_at(HEAD + MAX_CONTEXT);
        // In the same time for all, so that nobody can find a MAC byte by byte.
        if mac(key, covered).iter().zip(sealed).fold(0, |differ, (own, came)| differ | (own ^ came)) != 0 {
            return Err(MessageError::Mac);
        }
        let context = context(bytes)?;
        let question = Question::read(bytes);
        match (kind, context) {
            (QUESTION, None) => Ok((Self::Question(question), key)),
            (QUESTION, Some(_)) => Err(MessageError::Context),
            (_, context) => Ok((Self::Answer(question, context.map(str::to_owned)), key)),
        }
    }
}

impl Question {
    fn read(bytes: &[u8; LENGTH]) -> Self {
        Self {
            nonce: array(bytes, 8),
            generation: u64::from_be_bytes(array(bytes, 24)),
            window: u64::from_be_bytes(array(bytes, 32)),
            identifier: u32::from_be_bytes(array(bytes, 40)),
            from: u16::from_be_bytes(array(bytes, 44)),
            to: u16::from_be_bytes(array(bytes, 46)),
        }
    }
}

fn array<const COUNT: usize>(bytes: &[u8; LENGTH], at: usize) -> [u8; COUNT] {
    std::array::from_fn(|place| bytes[at + place])
}

fn context(bytes: &[u8; LENGTH]) -> Result<Option<&str>, MessageError> {
    let (room, length) = (&bytes[HEAD..HEAD + MAX_CONTEXT], usize::from(u16::from_be_bytes(array(bytes, 6))));
    let (text, rest) = room.split_at_checked(length).ok_or(MessageError::Context)?;
    if !text.iter().all(u8::is_ascii_graphic) || rest.iter().any(|byte| *byte != 0) {
        return Err(MessageError::Context);
    }
    let text = str::from_utf8(text).map_err(|_| MessageError::Context)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The MAC of a message.
fn mac(key: &Key, covered: &[u8]) -> [u8; MAC] {
    hmac(&hmac(&key.secret, PURPOSE), covered)
}

/// HMAC-SHA-256 (RFC 2104) with a key that is no longer than a block.
fn hmac(key: &[u8], text: &[u8]) -> [u8; MAC] {
    let pad = |with: u8| -> [u8; BLOCK] { std::array::from_fn(|at| key.get(at).copied().unwrap_or(0) ^ with) };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests;
