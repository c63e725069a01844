//! Detached signatures: lines `signature ed25519 PUBLIC-KEY SIGNATURE`, in FILE.sig.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{
    content::Content,
    error::SigningError,
    file, hex,
    key::{PublicKey, SecretKey},
};

/// The signatures of one file, at most one per key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signatures(Vec<(String, [u8; 64])>);

impl Signatures {
    /// Where the signatures of a file are, unless somebody says otherwise.
    #[must_use]
    pub fn of(path: &Path) -> PathBuf {
        file::beside(path, ".sig")
    }

    /// Reads a file of signatures.
    pub fn read(path: &Path) -> Result<Self, SigningError> {
        let text = file::text(path, "; `tollgate key sign FILE --key KEY` signs a file", |_| Ok(()))?;
        Self::parse(&text).map_err(|(line, message)| SigningError::Wrong { path: path.to_owned(), line, message })
    }

    /// Likewise, or none if the file does not exist.
    pub fn read_if_any(path: &Path) -> Result<Self, SigningError> {
        match Self::read(path) {
            Err(SigningError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            other => other,
        }
    }

    /// Reads the text of such a file; an error has the line, and what is wrong.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut signatures = Self::default();
        for (line, words) in file::lines(text) {
            let signature = match words[..] {
                ["signature", "ed25519", key, digits] => {
                    hex::bytes::<32>(key).and_then(|_| Some((key.to_owned(), hex::bytes(digits)?)))
                }
                _ => None,
            };
            let wrong =
                "no signature: it is `signature ed25519`, a public key and a signature as digits; sign the file again";
            signatures.put(signature.ok_or_else(|| (line, wrong.to_owned()))?);
        }
        Ok(signatures)
    }

    /// Whether nobody has signed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Signs. An earlier signature of the same key is replaced.
    pub fn add(&mut self, key: &SecretKey, content: &Content) {
        self.put((key.public().digits(), key.sign(content)));
    }

    /// In the order of the keys, so that equal signatures have one text.
    fn put(&mut self, signature: (String, [u8; 64])) {
        match self.0.binary_search_by(|(key, _)| key.cmp(&signature.0)) {
            Ok(place) => self.0[place] = signature,
            Err(place) => self.0.insert(place, signature),
        }
    }

    /// All who have signed this content; `None`: a signature is of none of these keys, or of another content.
    #[must_use]
    pub fn signers<'a>(&self, content: &Content, keys: &'a [PublicKey]) -> Option<Vec<&'a PublicKey>> {
        // A key is looked up before anything is computed, so that signatures of strangers cost nothing.
        let signers =
            self.0.iter().map(|(of, signature)| Some((keys.iter().find(|key| key.digits() == *of)?, signature)));
        let signers: Vec<_> = signers.collect::<Option<_>>()?;
        let verified = signers.into_iter().map(|(key, signature)| key.has_signed(content, signature).then_some(key));
        verified.collect()
    }

    /// The first of these keys that has signed this content.
    #[must_use]
    pub fn verify<'a>(&self, content: &Content, keys: &'a [PublicKey]) -> Option<&'a PublicKey> {
        let has_signed = |key: &&PublicKey| {
            let own = self.0.iter().find(|(of, _)| *of == key.digits());
            own.is_some_and(|(_, signature)| key.has_signed(content, signature))
        };
        keys.iter().find(has_signed)
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        let line =
            |(key, signature): &(String, [u8; 64])| format!("signature ed25519 {key} {}\n", hex::digits(signature));
        self.0.iter().map(line).collect()
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), SigningError> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let written = NamedTempFile::new_in(folder).and_then(|mut fresh| {
            fresh.write_all(self.text().as_bytes())?;
            fresh.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
            fresh.as_file().sync_all()?;
            fresh.persist(&target)?;
            Ok(())
        });
        let remedy = "; name a file in a folder that exists and can be written".to_owned();
        written.map_err(|cause| SigningError::Io { what: "write", path: path.to_owned(), cause, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> [SecretKey; 2] {
        [1, 2].map(|seed| SecretKey::of_seed("k", [seed; 32]).unwrap())
    }

    #[test]
    fn accepts_a_content_that_one_of_the_keys_has_signed_and_no_other() {
        let ([one, two], content) = (keys(), Content::of(b"content"));
        let mut signatures = Signatures::default();
        signatures.add(&one, &content);
        let signatures = Signatures::parse(&signatures.text()).unwrap();
        assert_eq!(signatures.verify(&content, &[two.public(), one.public()]), Some(&one.public()));
        assert_eq!(signatures.verify(&content, &[two.public()]), None);
        assert_eq!(signatures.verify(&Content::of(b"Content"), &[one.public()]), None);
        let claimed = signatures.text().replace(&one.public().digits(), &two.public().digits());
        assert_eq!(Signatures::parse(&claimed).unwrap().verify(&content, &[two.public()]), None);
    }

    #[test]
    fn names_all_signers_or_none_where_one_signature_is_wrong_or_a_stranger_s() {
        let ([one, two], content) = (keys(), Content::of(b"content"));
        let (mut signatures, mut other) = (Signatures::default(), Signatures::default());
        for key in [&two, &one] {
            signatures.add(key, &content);
        }
        other.add(&one, &content);
        other.add(&two, &content);
        assert_eq!(signatures.text(), other.text(), "in one order");
        let known = [one.public(), two.public()];
        assert_eq!(signatures.signers(&content, &known).unwrap().len(), 2);
        assert_eq!(signatures.signers(&content, &known[..1]), None);
        signatures.add(&two, &Content::of(b"another"));
        assert_eq!(signatures.signers(&content, &known), None);
        assert_eq!(Signatures::default().signers(&content, &known), Some(Vec::new()));
    }

    #[test]
    fn refuses_changed_bits_of_a_signature() {
        let ([key, _], content) = (keys(), Content::of(b"content"));
        let mut signatures = Signatures::default();
        signatures.add(&key, &content);
        // A verification takes long without optimisation.
        for bit in (0..64 * 8).step_by(5) {
            let mut changed = signatures.clone();
            changed.0[0].1[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(changed.verify(&content, &[key.public()]), None, "bit {bit}");
        }
    }

    #[test]
    fn keeps_the_signatures_of_others_and_one_per_key() {
        let ([one, two], folder) = (keys(), tempfile::tempdir().unwrap());
        let path = Signatures::of(&folder.path().join("policy"));
        assert!(Signatures::read_if_any(&path).unwrap().is_empty());
        for content in ["old", "new"].map(|text| Content::of(text.as_bytes())) {
            let mut signatures = Signatures::read_if_any(&path).unwrap();
            signatures.add(&one, &content);
            signatures.add(&two, &content);
            signatures.write(&path).unwrap();
        }
        let signatures = Signatures::read(&path).unwrap();
        assert_eq!(signatures.0.len(), 2);
        assert_eq!(signatures.verify(&Content::of(b"new"), &[two.public()]), Some(&two.public()));
        let (line, error) = Signatures::parse("# made by hand\nsignature ed25519 00 00\n").unwrap_err();
        assert!(line == 2 && error.contains("sign the file again"), "{error}");
    }
}
