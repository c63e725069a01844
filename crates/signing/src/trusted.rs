//! The public keys whose signatures a machine accepts.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{content::Content, error::SigningError, file, key::PublicKey, signatures::Signatures};

/// The keys of a file, one public key per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    path: PathBuf,
    keys: Vec<PublicKey>,
}

impl Trusted {
    /// The keys that a machine trusts.
    pub const FILE: &str = "/etc/tollgate/trusted";

    /// Reads a file of public keys, such as KEY.pub.
    pub fn read(path: &Path) -> Result<Self, SigningError> {
        let remedy = "; name a file of public keys, such as KEY.pub, which `tollgate key new` makes";
        Self::parse(path, &file::text(path, remedy, |_| Ok(()))?)
    }

    /// The keys that a machine trusts, from a file that only root may change; `None`: there is no such file, so no
    /// signature is demanded.
    pub fn of_machine(path: &Path) -> Result<Option<Self>, SigningError> {
        let text = file::text(path, "", |metadata| {
            let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
            if is_writable(owner, mode) {
                return Err(SigningError::Writable { path: path.to_owned(), owner, mode });
            }
            Ok(())
        });
        match text {
            Err(SigningError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            other => Self::parse(path, &other?).map(Some),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self, SigningError> {
        let wrong = |line, message| SigningError::Wrong { path: path.to_owned(), line, message };
        let mut keys = Vec::new();
        for (line, words) in file::lines(text) {
            keys.push(PublicKey::of_words(&words).map_err(|message| wrong(line, message))?);
        }
        if keys.is_empty() {
            let message = "it has no key, so nothing could be accepted: add the line of a KEY.pub, or remove the file";
            return Err(wrong(1, message.to_owned()));
        }
        Ok(Self { path: path.to_owned(), keys })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first of them that has signed this content.
    #[must_use]
    pub fn verify(&self, content: &Content, signatures: &Signatures) -> Option<&PublicKey> {
        signatures.verify(content, &self.keys)
    }
}

fn is_writable(owner: u32, mode: u32) -> bool {
    owner != 0 || mode & 0o022 != 0
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::key::SecretKey;

    #[test]
    fn demands_nothing_without_a_file_and_a_key_with_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted");
        assert_eq!(Trusted::of_machine(&path).unwrap(), None);
        let key = SecretKey::random("k").unwrap();
        fs::write(&path, format!("# of the release\n{}\n", key.public().line())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let (content, mut signatures) = (Content::of(b"x"), Signatures::default());
        signatures.add(&key, &content);
        assert_eq!(Trusted::read(&path).unwrap().verify(&content, &signatures), Some(&key.public()));
        for (text, part) in [
            ("# none\n", "so nothing could be accepted"),
            ("public ed25519 k 00\n", "copy the line from KEY.pub"),
            ("secret ed25519 k 00\n", "name its public key"),
            ("ssh-ed25519 AAAA\n", "public ed25519 NAME"),
            // The neutral point, which would accept anything.
            ("public ed25519 k 0100000000000000000000000000000000000000000000000000000000000000\n", "no key"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Trusted::read(&path).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn refuses_keys_that_others_than_root_may_change() {
        assert!(!is_writable(0, 0o644) && !is_writable(0, 0o600));
        for (owner, mode) in [(1000, 0o644), (0, 0o664), (0, 0o646)] {
            assert!(is_writable(owner, mode), "{owner} {mode:o}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted");
        fs::write(&path, SecretKey::random("k").unwrap().public().line()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let error = Trusted::of_machine(&path).unwrap_err().to_string();
        assert!(error.contains("mode 666") && error.contains("`chmod 644 "), "{error}");
    }
}
