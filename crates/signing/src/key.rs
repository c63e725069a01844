//! Keys: lines `secret ed25519 NAME DIGITS` and `public ed25519 NAME DIGITS`.

use std::{
    fmt,
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::{content::Content, error::SigningError, file, hex};

/// A key that signs.
pub struct SecretKey {
    name: String,
    key: SigningKey,
}

/// Without the secret.
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("public", &self.public()).finish_non_exhaustive()
    }
}

impl SecretKey {
    /// A new random key.
    pub fn random(name: &str) -> Result<Self, SigningError> {
        const SOURCE: &str = "/dev/urandom";
        let mut seed = [0; 32];
        let read = File::open(SOURCE).and_then(|mut source| source.read_exact(&mut seed));
        let error = |cause| SigningError::Io { what: "read", path: SOURCE.into(), cause, remedy: String::new() };
        read.map_err(error)?;
        Self::of_seed(name, seed)
    }

    /// The key with a secret seed (RFC 8032's private key).
    pub fn of_seed(name: &str, seed: [u8; 32]) -> Result<Self, SigningError> {
        check(name)?;
        Ok(Self { name: name.to_owned(), key: SigningKey::from_bytes(&seed) })
    }

    /// Reads the file of a key, which must be readable by its owner only.
    pub fn read(path: &Path) -> Result<Self, SigningError> {
        let remedy = format!("; `tollgate key new {}` makes a key", path.display());
        let (mut owner, mut mode) = (0, 0);
        let text = file::text(path, &remedy, |metadata| {
            (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
            Ok(())
        })?;
        let wrong = |line, message: &str| SigningError::Wrong { path: path.to_owned(), line, message: message.into() };
        let mut found = None;
        for (line, words) in file::lines(&text) {
            let seed = match words[..] {
                ["secret", "ed25519", name, digits] => hex::bytes(digits).map(|seed| (name, seed)),
                ["public", ..] => {
                    return Err(wrong(line, "this key is public, and only verifies: name the secret key"));
                }
                _ => None,
            };
            let (name, seed) = seed.ok_or_else(|| wrong(line, "no secret key; `tollgate key new FILE` makes one"))?;
            if found.replace(Self::of_seed(name, seed)?).is_some() {
                return Err(wrong(line, "a second key: a file of a secret key has one"));
            }
        }
        let key = found.ok_or_else(|| wrong(1, "no secret key; `tollgate key new FILE` makes one"))?;
        // What is no secret may be read by anybody.
        if mode & 0o077 != 0 {
            return Err(SigningError::Exposed { path: path.to_owned(), owner, mode });
        }
        Ok(key)
    }

    /// Writes the key into a new file that only its owner can read, and the public key beside it. Returns the path of
    /// the public key.
    pub fn make(&self, path: &Path) -> Result<PathBuf, SigningError> {
        let beside = file::beside(path, ".pub");
        if beside.exists() {
            return Err(SigningError::Exists(beside));
        }
        self.make_alone(path)?;
        file::make(&beside, 0o644, &format!("{}\n", self.public().line())).inspect_err(|_| {
            // Half of a pair is of no use.
            let _ = fs::remove_file(path);
        })?;
        Ok(beside)
    }

    /// Writes the key alone into a new file that only its owner can read.
    pub fn make_alone(&self, path: &Path) -> Result<(), SigningError> {
        file::make(path, 0o600, &format!("secret ed25519 {} {}\n", self.name, hex::digits(self.key.as_bytes())))
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey { name: self.name.clone(), key: self.key.verifying_key() }
    }

    pub(crate) fn sign(&self, content: &Content) -> [u8; 64] {
        self.key.sign(&content.message()).to_bytes()
    }
}

/// A key that verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    name: String,
    key: VerifyingKey,
}

impl PublicKey {
    /// The words of a line; `Err` has what is wrong.
    pub(crate) fn of_words(words: &[&str]) -> Result<Self, String> {
        let ["public", "ed25519", name, digits] = *words else {
            return Err(match words {
                ["secret", ..] => "a secret key: name its public key instead, the file beside it".into(),
                _ => "no public key: it is `public ed25519 NAME` and 64 hexadecimal digits, as in KEY.pub".into(),
            });
        };
        check(name).map_err(|cause| cause.to_string())?;
        let key = hex::bytes(digits).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        let key =
            key.filter(|key| !key.is_weak()).ok_or("these digits are no key; copy the line from KEY.pub again")?;
        Ok(Self { name: name.to_owned(), key })
    }

    /// The key of such a line; `Err` has what is wrong.
    pub fn parse(line: &str) -> Result<Self, String> {
        Self::of_words(&line.split_ascii_whitespace().collect::<Vec<_>>())
    }

    /// Its line in files.
    #[must_use]
    pub fn line(&self) -> String {
        format!("public ed25519 {} {}", self.name, self.digits())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its bytes as hexadecimal digits, by which it is known.
    #[must_use]
    pub fn digits(&self) -> String {
        hex::digits(self.key.as_bytes())
    }

    pub(crate) fn has_signed(&self, content: &Content, signature: &[u8; 64]) -> bool {
        self.key.verify_strict(&content.message(), &Signature::from_bytes(signature)).is_ok()
    }
}

fn check(name: &str) -> Result<(), SigningError> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(is_known) {
        return Ok(());
    }
    Err(SigningError::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn is_ed25519_of_rfc_8032() {
        // Section 7.1, test 1.
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let key = SecretKey::of_seed("test", hex::bytes(seed).unwrap()).unwrap();
        assert_eq!(key.public().digits(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(hex::digits(&key.key.sign(b"").to_bytes()), signature);
    }

    #[test]
    fn makes_a_pair_of_files_and_overwrites_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = SecretKey::random("a@b").unwrap();
        let public = key.make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(SecretKey::read(&path).unwrap().public(), key.public());
        assert_eq!(fs::read_to_string(&public).unwrap().trim_end(), key.public().line());
        assert!(matches!(key.make(&path), Err(SigningError::Exists(_))));
        fs::remove_file(&public).unwrap();
        assert!(matches!(key.make(&path), Err(SigningError::Exists(_))), "the secret is there");
        assert!(!public.exists(), "and nothing new was made");
        assert!(!format!("{key:?}").contains(&hex::digits(key.key.as_bytes())), "the secret is not shown");
    }

    #[test]
    fn refuses_a_secret_that_others_can_read_and_what_is_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = SecretKey::random("k").unwrap();
        key.make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = SecretKey::read(&path).unwrap_err().to_string();
        assert!(error.contains("mode 640") && error.contains("`chmod 600 "), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let twice = fs::read_to_string(&path).unwrap().repeat(2);
        for (text, part) in [
            (key.public().line(), "only verifies"),
            (String::new(), "tollgate key new"),
            ("secret ed25519 k 00".into(), "tollgate key new"),
            (twice, "a second key"),
        ] {
            fs::write(&path, text).unwrap();
            let error = SecretKey::read(&path).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let error = SecretKey::read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("tollgate key new"), "{error}");
        for name in ["", "a b", "\u{e9}", &"x".repeat(65)] {
            assert!(SecretKey::random(name).is_err(), "{name}");
        }
    }
}
