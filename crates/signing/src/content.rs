//! What is signed.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

use crate::error::SigningError;

const HEAD: &[u8] = b"tollgate signature 1\n";

/// The content of a file, as it is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content([u8; 32]);

impl Content {
    /// The content with these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The content of a file.
    pub fn read(path: &Path) -> Result<Self, SigningError> {
        let error = |cause| SigningError::Io { what: "read", path: path.to_owned(), cause, remedy: String::new() };
        let (mut file, mut hash, mut buffer) = (File::open(path).map_err(error)?, Sha256::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(Self(hash.finalize().into())),
                Ok(length) => hash.update(&buffer[..length]),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(error(cause)),
            }
        }
    }

    /// The message to which ed25519 is applied.
    pub(crate) fn message(&self) -> Vec<u8> {
        [HEAD, &self.0].concat()
    }
}
