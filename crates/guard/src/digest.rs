//! The content of a program: its SHA-256.

use std::{
    fmt,
    io::{self, Read},
    str::FromStr,
};

use sha2::{Digest as _, Sha256};
use tollgate_abi::guard::{TG_GUARD_DIGEST, TG_GUARD_WORDS};

const LENGTH: usize = TG_GUARD_DIGEST as usize;
const PREFIX: &str = "sha256:";

/// The SHA-256 of a program's content. Its text is `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; LENGTH]);

impl Digest {
    /// The digest of bytes.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// The digest of everything that can be read.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(Self(hash.finalize().into())),
                Ok(length) => hash.update(&buffer[..length]),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
    }

    /// As programs of the kernel have it.
    #[must_use]
    pub fn words(&self) -> [u32; TG_GUARD_WORDS as usize] {
        let mut words = [0; TG_GUARD_WORDS as usize];
        for (word, bytes) in words.iter_mut().zip(self.0.chunks_exact(4)) {
            *word = u32::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        words
    }

    /// The digest that the kernel has; `None`: it does not know the content.
    #[must_use]
    pub fn of_words(words: [u32; TG_GUARD_WORDS as usize]) -> Option<Self> {
        let mut digest = Self([0; LENGTH]);
        for (bytes, word) in digest.0.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        (words != [0; TG_GUARD_WORDS as usize]).then_some(digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || format!("`{text}` is no digest: it is {PREFIX} and {} hexadecimal digits", 2 * LENGTH);
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 2 * LENGTH).ok_or_else(shape)?;
        let mut digest = Self([0; LENGTH]);
        for (byte, pair) in digest.0.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let value = |digit: &u8| char::from(*digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
            let (Some(high), Some(low)) = (value(&pair[0]), value(&pair[1])) else { return Err(shape()) };
            *byte = (high << 4 | low) as u8;
        }
        if Self::of_words(digest.words()).is_none() {
            return Err(format!("`{text}` is no program's digest: run `tollgate guard add PATH` to enter a program"));
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_sha_256_of_the_content() {
        let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), known, "FIPS 180-4's example");
        assert_eq!(Digest::read(&b"abc"[..]).unwrap(), Digest::of(b"abc"));
        assert_eq!(known.parse(), Ok(Digest::of(b"abc")));
        assert_eq!(Digest::of_words(Digest::of(b"abc").words()), Some(Digest::of(b"abc")));
        assert_eq!(Digest::of_words([0; 8]), None);
    }

    #[test]
    fn refuses_what_is_no_digest() {
        let good = Digest::of(b"abc").to_string();
        let [upper, zeros] = [good.to_uppercase().replace("SHA", "sha"), format!("sha256:{}", "0".repeat(64))];
        for text in [&good[..70], &good[7..], &good.replace("ba", "b+"), &good.replace("ba", "bg"), &upper, &zeros] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
