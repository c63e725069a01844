//! Signed documents: lines of text, then the lines of their signatures.
//!
//! The first line is `tollgate fleet KIND 1`, so that a signature of one kind is none of another. Each thing is written in
//! one way: what is read is refused if it would be written otherwise.

use std::{fmt, slice, str::FromStr};

use tollgate_signing::{Content, PublicKey, SecretKey, Signatures};

use crate::hash::Hash;

/// What a document is about.
pub trait Text: Sized {
    /// Its word in the first line.
    const KIND: &'static str;
    /// The maximum length, in bytes, of its document.
    const LIMIT: u64;

    /// Its lines behind the first.
    fn write(&self) -> String;

    /// Reads these lines.
    fn read(lines: &mut Lines<'_>) -> Result<Self, Wrong>;
}

/// Why bytes are no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// They are too many.
    #[error("the {kind} is longer than {limit} bytes, which none is: look who has written it")]
    Long {
        /// The kind that was expected.
        kind: &'static str,
        /// The maximum length, in bytes.
        limit: u64,
    },
    /// They begin otherwise.
    #[error("no {kind} of a fleet: its first line is `tollgate fleet {kind} 1`; look who has written it")]
    Kind {
        /// The kind that was expected.
        kind: &'static str,
    },
    /// A line is wrong.
    #[error("line {line} of the {kind}: {message}")]
    Line {
        /// The kind that was expected.
        kind: &'static str,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// It says something in another way than it is written.
    #[error("the {kind} is not written as Tollgate writes it: look who has changed it")]
    Form {
        /// The kind that was expected.
        kind: &'static str,
    },
    /// A signature is not of a key that may sign it, or not of this content.
    #[error("the {kind} has a signature that is wrong, or of a key that may not sign it: look who has changed it")]
    Signature {
        /// The kind that was expected.
        kind: &'static str,
    },
    /// Too few have signed.
    #[error("the {kind} is signed by {found} of the keys that may, and {wanted} must: sign it with more keys")]
    Unsigned {
        /// The kind that was expected.
        kind: &'static str,
        /// How many have signed.
        found: usize,
        /// How many must.
        wanted: usize,
    },
}

/// What is wrong in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(pub String);

/// The lines of a document that are still to be read.
pub struct Lines<'a> {
    rest: std::iter::Peekable<std::str::Lines<'a>>,
    /// How many have been read.
    read: usize,
}

impl<'a> Lines<'a> {
    /// What follows this word in the next line.
    pub fn value(&mut self, word: &str) -> Result<&'a str, Wrong> {
        if let Some(value) = self.optional(word) {
            return Ok(value);
        }
        self.read += 1;
        Err(Wrong(format!("it should begin with `{word} `")))
    }

    /// Likewise, if the next line begins so.
    pub fn optional(&mut self, word: &str) -> Option<&'a str> {
        let value = self.rest.peek()?.strip_prefix(word)?.strip_prefix(' ')?;
        self.rest.next();
        self.read += 1;
        Some(value)
    }

    /// What follows this word in the next line, as something else than text.
    pub fn parsed<T>(&mut self, word: &str) -> Result<T, Wrong>
    where
        T: FromStr<Err: fmt::Display>,
    {
        parsed(self.value(word)?)
    }
}

/// A text as something else.
pub fn parsed<T>(text: &str) -> Result<T, Wrong>
where
    T: FromStr<Err: fmt::Display>,
{
    text.parse().map_err(|cause: T::Err| Wrong(cause.to_string()))
}

/// Something with its signatures, which nobody has verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed<T> {
    content: T,
    body: String,
    signatures: Signatures,
}

impl<T: Text> Signed<T> {
    /// This content, not signed yet.
    pub fn new(content: T) -> Self {
        let body = format!("{}\n{}", first::<T>(), content.write());
        Self { content, body, signatures: Signatures::default() }
    }

    /// Reads a document, whose bytes may be anyone's.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let kind = T::KIND;
        if bytes.len() as u64 > T::LIMIT {
            return Err(DocumentError::Long { kind, limit: T::LIMIT });
        }
        let text = str::from_utf8(bytes).map_err(|_| DocumentError::Form { kind })?;
        let end = text.find("\nsignature ").map_or(text.len(), |at| at + 1);
        let (body, rest) = text.split_at(end);
        let signatures = Signatures::parse(rest).map_err(|(at, message)| DocumentError::Line {
            kind,
            line: body.lines().count() + at,
            message,
        })?;
        let mut lines = Lines { rest: body.lines().peekable(), read: 0 };
        if lines.rest.next() != Some(&first::<T>()) {
            return Err(DocumentError::Kind { kind });
        }
        let content = T::read(&mut lines).and_then(|content| match lines.rest.next() {
            None => Ok(content),
            Some(_) => {
                lines.read += 1;
                Err(Wrong("it is one too many, or in the wrong place".to_owned()))
            }
        });
        let line = lines.read + 1;
        let content = content.map_err(|Wrong(message)| DocumentError::Line { kind, line, message })?;
        let read = Self { signatures, ..Self::new(content) };
        if read.bytes() == bytes { Ok(read) } else { Err(DocumentError::Form { kind }) }
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        [self.body.as_bytes(), self.signatures.text().as_bytes()].concat()
    }

    /// The bytes that are signed.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// The SHA-256 of what is signed, which stays the same whoever signs.
    pub fn hash(&self) -> Hash {
        Hash::of(self.body())
    }

    /// Adds a signature.
    pub fn sign(&mut self, key: &SecretKey) {
        self.signatures.add(key, &Content::of(self.body()));
    }

    /// What it says, whoever may have said it.
    pub fn unverified(&self) -> &T {
        &self.content
    }

    /// The keys that have signed it, if all its signatures are right and of these keys.
    pub fn signers<'a>(&self, keys: &'a [PublicKey]) -> Result<Vec<&'a PublicKey>, DocumentError> {
        let signers = self.signatures.signers(&Content::of(self.body()), keys);
        signers.ok_or(DocumentError::Signature { kind: T::KIND })
    }

    /// How many of these keys have signed it, whoever else has.
    pub fn count(&self, keys: &[PublicKey]) -> usize {
        let content = Content::of(self.body());
        keys.iter().filter(|key| self.signatures.verify(&content, slice::from_ref(*key)).is_some()).count()
    }

    /// What it says, if so many of these keys have signed it, and nobody else.
    pub fn verified(&self, keys: &[PublicKey], wanted: usize) -> Result<&T, DocumentError> {
        let found = self.signers(keys)?.len();
        if found < wanted.max(1) {
            return Err(DocumentError::Unsigned { kind: T::KIND, found, wanted });
        }
        Ok(&self.content)
    }
}

fn first<T: Text>() -> String {
    format!("tollgate fleet {} 1", T::KIND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Note(u32);

    impl Text for Note {
        const KIND: &'static str = "note";
        const LIMIT: u64 = 1000;

        fn write(&self) -> String {
            format!("number {}\n", self.0)
        }

        fn read(lines: &mut Lines<'_>) -> Result<Self, Wrong> {
            lines.parsed("number").map(Self)
        }
    }

    fn key(seed: u8) -> SecretKey {
        SecretKey::of_seed("k", [seed; 32]).unwrap()
    }

    #[test]
    fn reads_what_it_has_written_and_nothing_that_is_written_otherwise() {
        let mut note = Signed::new(Note(7));
        note.sign(&key(1));
        assert_eq!(Signed::parse(&note.bytes()).as_ref(), Ok(&note));
        assert_eq!(Signed::<Note>::parse(note.body()).unwrap().hash(), note.hash());
        let text = String::from_utf8(note.bytes()).unwrap();
        for (other, part) in [
            (text.replace("number 7", "number 07"), "is not written as"),
            (text.replace("number 7", "number +7"), "is not written as"),
            (text.replace("number 7", "number  7"), "line 2 of the note: invalid digit"),
            (text.replace("number 7", "number 7\r"), "is not written as"),
            (text.replace("number 7", "number 7\nnumber 8"), "line 3 of the note: it is one too many"),
            (text.replace("number 7", "number 7\n"), "line 3 of the note: it is one too many"),
            (text.replace("number", "count"), "line 2 of the note: it should begin with `number `"),
            (text.replace("note 1", "note 2"), "`tollgate fleet note 1`"),
            (text.replace("note 1", "manifest 1"), "`tollgate fleet note 1`"),
            (text.replace("signature ed25519 ", "signature rsa "), "line 3 of the note: no signature"),
            (format!("{text}\n"), "is not written as"),
            (format!("{text}# more\n"), "is not written as"),
            (text.trim_end().to_owned(), "is not written as"),
            ("x".repeat(1001), "longer than 1000 bytes"),
            (String::new(), "its first line"),
        ] {
            let error = Signed::<Note>::parse(other.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{other}: {error}");
        }
    }

    #[test]
    fn is_verified_by_enough_keys_and_refused_with_a_stranger_s_signature() {
        let mut note = Signed::new(Note(7));
        let keys = [1, 2, 3].map(|seed| key(seed).public());
        assert!(matches!(note.verified(&keys, 0), Err(DocumentError::Unsigned { .. })), "nobody has signed");
        note.sign(&key(1));
        note.sign(&key(1));
        assert_eq!(note.verified(&keys, 2), Err(DocumentError::Unsigned { kind: "note", found: 1, wanted: 2 }));
        note.sign(&key(3));
        assert_eq!(note.verified(&keys, 2), Ok(&Note(7)));
        assert_eq!(note.verified(&keys[..2], 1), Err(DocumentError::Signature { kind: "note" }));
    }
}
