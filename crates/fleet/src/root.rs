//! The root file: which keys a fleet trusts, and how many of them must sign.
//!
//! A node gets its first root file from its administrator, and each later one from the store: version by version, each
//! signed by enough root keys of the version before it and by enough of its own.

use std::num::NonZeroU64;

use tollgate_signing::PublicKey;

use crate::{
    document::{DocumentError, Lines, Signed, Text, Wrong, parsed},
    name::Name,
    time::Time,
};

/// The maximum number of keys of a role.
const MAX_KEYS: usize = 32;

/// Keys that do one job, and how many of them must sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// How many must sign, from 1.
    pub threshold: usize,
    /// The keys, in the order of their digits.
    pub keys: Vec<PublicKey>,
}

impl Role {
    /// These keys, in order. `None`: there are none or too many, one of them twice, or fewer than must sign.
    #[must_use]
    pub fn new(threshold: usize, mut keys: Vec<PublicKey>) -> Option<Self> {
        keys.sort_by_key(PublicKey::digits);
        let twice = keys.windows(2).any(|pair| pair[0].digits() == pair[1].digits());
        let fits = !twice && keys.len() <= MAX_KEYS && (1..=keys.len()).contains(&threshold);
        fits.then_some(Self { threshold, keys })
    }

    /// What a document says, if enough of these keys have signed it, and nobody else.
    pub fn verified<'a, T: Text>(&self, document: &'a Signed<T>) -> Result<&'a T, DocumentError> {
        document.verified(&self.keys, self.threshold)
    }

    /// Whether enough of these keys have signed it, whoever else has.
    fn has_enough<T: Text>(&self, document: &Signed<T>) -> Result<(), DocumentError> {
        let (found, wanted) = (document.count(&self.keys), self.threshold);
        if found < wanted { Err(DocumentError::Unsigned { kind: T::KIND, found, wanted }) } else { Ok(()) }
    }

    fn write(&self, name: &str) -> String {
        let keys = self.keys.iter().map(|key| format!("{}\n", key.line()));
        format!("{name} {}\n{}", self.threshold, keys.collect::<String>())
    }

    fn read(lines: &mut Lines<'_>, name: &str) -> Result<Self, Wrong> {
        let threshold = lines.parsed(name)?;
        let mut keys = Vec::new();
        while let Some(rest) = lines.optional("public") {
            keys.push(PublicKey::parse(&format!("public {rest}")).map_err(Wrong)?);
        }
        let wrong = || {
            Wrong(format!(
                "the keys above are none, too many or twice there, or fewer than the {threshold} that must sign"
            ))
        };
        Self::new(threshold, keys).ok_or_else(wrong)
    }
}

/// A root file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The fleet.
    pub fleet: Name,
    /// Its version, from 1.
    pub version: u64,
    /// When it was made.
    pub made: Time,
    /// Until when anything new is accepted by it.
    pub expires: Time,
    /// Who signs root files.
    pub root: Role,
    /// Who signs manifests.
    pub publish: Role,
    /// Who says which nodes belong to the fleet.
    pub approve: Role,
}

impl Text for Root {
    const KIND: &'static str = "root";
    const LIMIT: u64 = 1 << 16;

    fn write(&self) -> String {
        let Self { fleet, version, made, expires, root, publish, approve } = self;
        let head = format!("fleet {fleet}\nversion {version}\nmade {made}\nexpires {expires}\n");
        [head, root.write("root"), publish.write("publish"), approve.write("approve")].concat()
    }

    fn read(lines: &mut Lines<'_>) -> Result<Self, Wrong> {
        Ok(Self {
            fleet: lines.parsed("fleet")?,
            version: parsed::<NonZeroU64>(lines.value("version")?)?.get(),
            made: lines.parsed("made")?,
            expires: lines.parsed("expires")?,
            root: Role::read(lines, "root")?,
            publish: Role::read(lines, "publish")?,
            approve: Role::read(lines, "approve")?,
        })
    }
}

/// Why a root file is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// It is none, or its signatures are wrong.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is another fleet's.
    #[error("a root file of the fleet {found}, and this is {fleet}: look who has written it into the store")]
    Fleet {
        /// The fleet that it should be of.
        fleet: Name,
        /// The fleet that it is of.
        found: Name,
    },
    /// It is not the version after the one that is trusted.
    #[error(
        "version {found} of the root file where version {wanted} should be: look who has written it into the store"
    )]
    Version {
        /// The version that should come.
        wanted: u64,
        /// The version that it is.
        found: u64,
    },
}

impl Root {
    /// Reads the first root file that is trusted, because an administrator has brought it. It must be signed by its own
    /// keys, so that nobody trusts keys that nobody has.
    pub fn first(bytes: &[u8]) -> Result<Self, RootError> {
        let file = Signed::<Self>::parse(bytes)?;
        // Keys of the version before have signed as well, and are not known here.
        file.unverified().root.has_enough(&file)?;
        Ok(file.unverified().clone())
    }

    /// Reads the version after this one: signed by enough root keys of both, and by nobody else.
    pub fn next(&self, bytes: &[u8]) -> Result<Self, RootError> {
        let file = Signed::<Self>::parse(bytes)?;
        let next = file.unverified();
        if next.fleet != self.fleet {
            return Err(RootError::Fleet { fleet: self.fleet.clone(), found: next.fleet.clone() });
        }
        let wanted = self.version.saturating_add(1);
        if next.version != wanted {
            return Err(RootError::Version { wanted, found: next.version });
        }
        file.signers(&[&self.root.keys[..], &next.root.keys].concat())?;
        self.root.has_enough(&file)?;
        next.root.has_enough(&file)?;
        Ok(next.clone())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tollgate_signing::SecretKey;

    use super::*;

    /// The key of this number.
    pub(crate) fn key(seed: u8) -> SecretKey {
        SecretKey::of_seed(&format!("key-{seed}"), [seed; 32]).unwrap()
    }

    pub(crate) fn role(threshold: usize, seeds: &[u8]) -> Role {
        Role::new(threshold, seeds.iter().map(|seed| key(*seed).public()).collect()).unwrap()
    }

    /// Root keys 1 and 2 of which 2 must sign, publishing keys 11 and 12 of which 2 must, and 21 approves.
    pub(crate) fn root() -> Root {
        Root {
            fleet: "example".parse().unwrap(),
            version: 1,
            made: Time::of_seconds(1_000_000),
            expires: Time::of_seconds(9_000_000),
            root: role(2, &[1, 2]),
            publish: role(2, &[11, 12]),
            approve: role(1, &[21]),
        }
    }

    /// The root file, signed by these keys.
    pub(crate) fn signed(root: Root, seeds: &[u8]) -> Vec<u8> {
        let mut file = Signed::new(root);
        seeds.iter().for_each(|seed| file.sign(&key(*seed)));
        file.bytes()
    }

    /// The version after it, in which root key 3 is in the place of 1, and publishing key 13 in that of 11.
    pub(crate) fn second() -> Root {
        Root { version: 2, root: role(2, &[2, 3]), publish: role(2, &[12, 13]), ..root() }
    }

    #[test]
    fn trusts_the_next_version_signed_by_enough_of_the_old_and_of_the_new_keys() {
        let first = Root::first(&signed(root(), &[1, 2])).unwrap();
        assert_eq!(first, root());
        let bytes = signed(second(), &[1, 2, 3]);
        assert_eq!(first.next(&bytes), Ok(second()));
        assert_eq!(Root::first(&bytes), Ok(second()), "brought to a new node");
        assert_eq!(
            Root::first(&signed(root(), &[1])).unwrap_err().to_string(),
            first.next(&signed(second(), &[2, 3])).unwrap_err().to_string()
        );
    }

    #[test]
    fn refuses_a_next_version_that_either_half_has_not_signed() {
        let refuses = |root: Root, seeds: &[u8], part: &str| {
            let error = self::root().next(&signed(root, seeds)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refuses(second(), &[1, 2], "signed by 1 of the keys that may, and 2 must");
        refuses(second(), &[2, 3], "signed by 1 of the keys that may, and 2 must");
        refuses(second(), &[], "signed by 0 of the keys");
        refuses(second(), &[1, 2, 3, 4], "a signature that is wrong, or of a key that may not");
        refuses(Root { fleet: "other".parse().unwrap(), ..second() }, &[1, 2, 3], "of the fleet other");
    }

    #[test]
    fn refuses_a_version_that_skips_repeats_or_goes_back() {
        for version in [1, 3, u64::MAX] {
            let error = root().next(&signed(Root { version, ..second() }, &[1, 2, 3])).unwrap_err();
            assert_eq!(error, RootError::Version { wanted: 2, found: version });
        }
    }

    #[test]
    fn refuses_each_changed_byte_of_the_next_version() {
        let bytes = signed(second(), &[1, 2, 3]);
        assert!(root().next(&bytes).is_ok());
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert!(root().next(&changed).is_err(), "byte {place}");
        }
    }

    #[test]
    fn refuses_roles_that_nobody_or_too_few_could_fill() {
        let keys = |seeds: &[u8]| seeds.iter().map(|seed| key(*seed).public()).collect::<Vec<_>>();
        assert!(Role::new(2, keys(&[5, 4])).is_some());
        for (threshold, seeds) in [(0, &[1][..]), (2, &[1]), (1, &[]), (2, &[1, 1])] {
            assert_eq!(Role::new(threshold, keys(seeds)), None, "{threshold} of {seeds:?}");
        }
        let text = String::from_utf8(signed(root(), &[1, 2])).unwrap();
        for (from, to) in [("root 2", "root 3"), ("approve 1", "approve 0"), ("version 1", "version 0")] {
            assert!(Signed::<Root>::parse(text.replace(from, to).as_bytes()).is_err(), "{to}");
        }
    }
}
