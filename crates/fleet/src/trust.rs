//! What a node checks before it believes a manifest, in this order:
//!
//! 1. its length and its form, so that nothing else is read of hostile bytes;
//! 2. the fleet and the group;
//! 3. the version of the root file;
//! 4. the signatures;
//! 5. that the root file is valid still;
//! 6. the number: not below the highest that was seen under this root file;
//! 7. the time at which it expires.
//!
//! The highest number is kept per version of the root file, so a stolen key's number of 2^63 is forgotten with the key. A
//! manifest of an earlier root file is refused, so nothing old comes back with the numbers.

use crate::{
    document::{DocumentError, Signed},
    hash::Hash,
    manifest::Manifest,
    name::Name,
    root::Root,
    time::Time,
};

/// The newest manifest that a node has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Highest {
    /// The version of the root file at that time.
    pub root: u64,
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub manifest: Hash,
    /// When it was made.
    pub made: Time,
    /// When it expires.
    pub expires: Time,
}

/// A manifest that has passed all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    manifest: Manifest,
    hash: Hash,
}

/// Why a manifest is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// It is none, or its signatures are wrong.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is another fleet's.
    #[error("a manifest of the fleet {0}: look who has written it into this store")]
    Fleet(Name),
    /// It is for other nodes.
    #[error("a manifest for the group {0}: look who has written it in the place of another group's")]
    Group(Name),
    /// The root file that it needs is not in the store.
    #[error("a manifest of root file {wanted}, and the store has none after {present}: look who withholds it")]
    RootWithheld {
        /// The version that it needs.
        wanted: u64,
        /// The newest version that there is.
        present: u64,
    },
    /// It is from the time of an earlier root file.
    #[error("a manifest of root file {found}, which {present} has replaced: publish again with the present keys")]
    RootReplaced {
        /// The version that it was made under.
        found: u64,
        /// The version in force.
        present: u64,
    },
    /// The root file has expired.
    #[error("the root file has expired on {0}, so nothing new is accepted: make its next version")]
    RootExpired(Time),
    /// It is older than one that was seen.
    #[error("manifest {found} where {highest} was seen: look who has put an older one back into the store")]
    Rollback {
        /// Its number.
        found: u64,
        /// The highest number that was seen.
        highest: u64,
    },
    /// There are two of its number.
    #[error("another manifest with number {0} was seen: look who else signs, and publish one with a higher number")]
    Twin(u64),
    /// It has expired.
    #[error("the manifest has expired on {0}: publish again, or look who withholds a newer one")]
    Expired(Time),
}

/// Checks who has signed a manifest, whose bytes may be anyone's, and for whom. It may be old: a node needs [`check`].
pub fn authentic(bytes: &[u8], root: &Root, group: &Name) -> Result<Checked, TrustError> {
    let document = Signed::<Manifest>::parse(bytes)?;
    let said = document.unverified();
    if said.fleet != root.fleet {
        return Err(TrustError::Fleet(said.fleet.clone()));
    }
    if said.group != *group {
        return Err(TrustError::Group(said.group.clone()));
    }
    if said.root > root.version {
        return Err(TrustError::RootWithheld { wanted: said.root, present: root.version });
    }
    if said.root < root.version {
        return Err(TrustError::RootReplaced { found: said.root, present: root.version });
    }
    let manifest = root.publish.verified(&document)?.clone();
    Ok(Checked { manifest, hash: document.hash() })
}

/// Checks a manifest, whose bytes may be anyone's.
pub fn check(
    bytes: &[u8],
    root: &Root,
    group: &Name,
    highest: Option<&Highest>,
    now: Time,
) -> Result<Checked, TrustError> {
    let checked = authentic(bytes, root, group)?;
    let Manifest { number, expires, .. } = checked.manifest;
    let highest = highest.filter(|highest| highest.root == root.version);
    // A clock that has fallen behind does not make old things new.
    let now = highest.map_or(now, |highest| now.max(highest.made));
    if root.expires < now {
        return Err(TrustError::RootExpired(root.expires));
    }
    if let Some(highest) = highest {
        if number < highest.number {
            return Err(TrustError::Rollback { found: number, highest: highest.number });
        }
        if number == highest.number && checked.hash != highest.manifest {
            return Err(TrustError::Twin(number));
        }
    }
    if expires < now {
        return Err(TrustError::Expired(expires));
    }
    Ok(checked)
}

impl Checked {
    /// A manifest that had passed all checks before it was kept.
    pub(crate) fn kept(document: &Signed<Manifest>) -> Self {
        Self { manifest: document.unverified().clone(), hash: document.hash() }
    }

    /// What it says.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its hash, by which others name it.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// It as the newest that was seen.
    #[must_use]
    pub fn as_highest(&self) -> Highest {
        let Manifest { root, number, made, expires, .. } = self.manifest;
        Highest { root, number, manifest: self.hash, made, expires }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use tollgate_policy::built::SECTIONS;

    use super::*;
    use crate::{
        manifest::{Entry, Progress},
        part::Part,
        root::tests::{key, root, second, signed as signed_root},
        stage::{Mode, Stage},
    };

    pub(crate) const NOW: u64 = 2_000_000;

    pub(crate) fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// A manifest of the fleet of [`root`], with contents that do not exist.
    pub(crate) fn manifest(number: u64) -> Manifest {
        let entry = |part: Part| Entry {
            part,
            hash: Hash::of(part.to_string().as_bytes()),
            length: 10,
            piece: Hash::of(b"piece"),
            piece_length: 5,
        };
        let made = Time::of_seconds(NOW);
        Manifest {
            fleet: name("example"),
            group: name("web"),
            root: 1,
            number,
            before: None,
            base: None,
            made,
            expires: made.after(Duration::from_secs(86_400)),
            parts: SECTIONS.map(|section| entry(Part::Policy(section))).to_vec(),
            stages: vec![
                "group canary shadow hold 3600 denials 5 missing 0".parse().unwrap(),
                "share 10 permissive hold 3600 denials 5 missing 2".parse().unwrap(),
                Stage::everybody(Mode::Enforcing),
            ],
            progress: Progress::Open(1),
        }
    }

    pub(crate) fn signed(manifest: Manifest, seeds: &[u8]) -> Vec<u8> {
        let mut document = Signed::new(manifest);
        seeds.iter().for_each(|seed| document.sign(&key(*seed)));
        document.bytes()
    }

    const BOTH: &[u8] = &[11, 12];

    fn check(bytes: &[u8], root: &Root, highest: Option<&Highest>) -> Result<Checked, TrustError> {
        super::check(bytes, root, &name("web"), highest, Time::of_seconds(NOW + 10))
    }

    fn highest(number: u64) -> Highest {
        check(&signed(manifest(number), BOTH), &root(), None).unwrap().as_highest()
    }

    #[test]
    fn believes_a_newer_manifest_and_the_same_again() {
        let bytes = signed(manifest(7), BOTH);
        let checked = check(&bytes, &root(), None).unwrap();
        assert_eq!((checked.manifest(), checked.hash()), (&manifest(7), Hash::of(&signed(manifest(7), &[]))));
        for before in [6, 7] {
            assert_eq!(check(&bytes, &root(), Some(&highest(before))).as_ref(), Ok(&checked));
        }
    }

    #[test]
    fn refuses_a_forged_manifest() {
        for (seeds, part) in [
            (&[][..], "signed by 0 of the keys that may, and 2 must"),
            (&[11], "signed by 1 of the keys that may, and 2 must"),
            (&[11, 13], "of a key that may not sign it"),
            (&[1, 2], "of a key that may not sign it"),
            (&[11, 12, 1], "of a key that may not sign it"),
        ] {
            let error = check(&signed(manifest(7), seeds), &root(), None).unwrap_err().to_string();
            assert!(error.contains(part), "{seeds:?}: {error}");
        }
    }

    #[test]
    fn refuses_each_changed_byte_and_each_cut_of_a_manifest() {
        let bytes = signed(manifest(7), BOTH);
        let mut accepted = 0;
        for place in 0..bytes.len() {
            for flip in [1, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[place] ^= flip;
                accepted += usize::from(check(&changed, &root(), None).is_ok());
            }
            accepted += usize::from(check(&bytes[..place], &root(), None).is_ok());
        }
        assert_eq!(accepted, 0, "of {} bytes", bytes.len());
    }

    #[test]
    fn refuses_a_signature_of_another_kind_of_document() {
        // Whoever may publish signs a root file; its signatures are put below a manifest.
        let of_root = String::from_utf8(signed_root(root(), BOTH)).unwrap();
        let signatures = &of_root[of_root.find("\nsignature").unwrap() + 1..];
        let bytes = [signed(manifest(7), &[]), signatures.as_bytes().to_vec()].concat();
        assert!(matches!(check(&bytes, &root(), None), Err(TrustError::Document(DocumentError::Signature { .. }))));
        assert!(matches!(
            check(of_root.as_bytes(), &root(), None),
            Err(TrustError::Document(DocumentError::Kind { .. }))
        ));
    }

    #[test]
    fn refuses_a_rollback_and_a_twin() {
        let seen = highest(7);
        let error = check(&signed(manifest(6), BOTH), &root(), Some(&seen)).unwrap_err();
        assert_eq!(error, TrustError::Rollback { found: 6, highest: 7 });
        let twin = Manifest { progress: Progress::Emergency, ..manifest(7) };
        assert_eq!(check(&signed(twin, BOTH), &root(), Some(&seen)), Err(TrustError::Twin(7)));
    }

    #[test]
    fn recovers_from_a_fast_forward_when_the_stolen_key_is_replaced() {
        let stolen = highest(u64::MAX);
        assert!(check(&signed(manifest(8), BOTH), &root(), Some(&stolen)).is_err(), "locked out");
        let second = root().next(&signed_root(second(), &[1, 2, 3])).unwrap();
        let after = signed(Manifest { root: 2, ..manifest(8) }, &[12, 13]);
        assert!(check(&after, &second, Some(&stolen)).is_ok(), "numbers begin anew");
        // What the remaining key had signed before does not come back with them.
        let before = signed(manifest(5), &[12, 13]);
        let replaced = TrustError::RootReplaced { found: 1, present: 2 };
        assert_eq!(check(&before, &second, Some(&stolen)), Err(replaced));
        let by_stolen = signed(Manifest { root: 2, ..manifest(9) }, BOTH);
        assert!(matches!(check(&by_stolen, &second, None), Err(TrustError::Document(DocumentError::Signature { .. }))));
    }

    #[test]
    fn refuses_what_has_expired_whatever_its_own_clock_says() {
        let late = |seconds| {
            let bytes = signed(manifest(7), BOTH);
            super::check(&bytes, &root(), &name("web"), None, Time::of_seconds(NOW + seconds))
        };
        assert!(late(86_400).is_ok());
        assert!(matches!(late(86_401), Err(TrustError::Expired(_))));
        assert!(matches!(late(7_000_001), Err(TrustError::RootExpired(_))));
        // It has seen a manifest that was made later than this one expires, and then its clock was put back.
        let seen = Highest { number: 6, made: Time::of_seconds(NOW + 90_000), ..highest(6) };
        assert!(matches!(check(&signed(manifest(7), BOTH), &root(), Some(&seen)), Err(TrustError::Expired(_))));
    }

    #[test]
    fn refuses_another_fleet_s_and_another_group_s_manifest() {
        // Signed by keys that both fleets trust.
        let other = Manifest { fleet: name("other"), ..manifest(7) };
        assert_eq!(check(&signed(other, BOTH), &root(), None), Err(TrustError::Fleet(name("other"))));
        let other = Manifest { group: name("database"), ..manifest(7) };
        assert_eq!(check(&signed(other, BOTH), &root(), None), Err(TrustError::Group(name("database"))));
    }

    #[test]
    fn reports_a_root_file_that_is_withheld() {
        let newer = signed(Manifest { root: 2, ..manifest(7) }, &[12, 13]);
        assert_eq!(check(&newer, &root(), None), Err(TrustError::RootWithheld { wanted: 2, present: 1 }));
    }

    #[test]
    fn refuses_hostile_lengths_before_anything_is_allocated() {
        let text = String::from_utf8(signed(manifest(7), BOTH)).unwrap();
        for length in ["268435457", "18446744073709551615", "18446744073709551616", "-1", "010"] {
            let changed = text.replacen(" 10 ", &format!(" {length} "), 1);
            assert!(check(changed.as_bytes(), &root(), None).is_err(), "{length}");
            // As well if the publisher's keys have signed it.
            let body = &changed[..changed.find("\nsignature").unwrap() + 1];
            assert!(Signed::<Manifest>::parse(body.as_bytes()).is_err(), "{length}");
        }
        let stages = "stage share 1 shadow hold 0 denials 0 missing 0\n".repeat(2000);
        let long = text.replace("rollout", &format!("{stages}rollout"));
        assert!(matches!(check(long.as_bytes(), &root(), None), Err(TrustError::Document(DocumentError::Long { .. }))));
    }

    #[test]
    fn refuses_a_manifest_that_mixes_leaves_out_or_repeats_parts() {
        let refuses = |change: &dyn Fn(&mut Manifest), part: &str| {
            let mut manifest = manifest(7);
            change(&mut manifest);
            let error = check(&signed(manifest, BOTH), &root(), None).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refuses(&|manifest| _ = manifest.parts.remove(2), "it lacks a section");
        refuses(&|manifest| manifest.parts.swap(1, 2), "not in their order");
        refuses(&|manifest| manifest.parts.push(manifest.parts[6]), "twice there");
        refuses(&|manifest| manifest.stages.truncate(2), "its last stage");
        refuses(&|manifest| manifest.stages.insert(0, Stage::everybody(Mode::Shadow)), "its last stage");
        refuses(&|manifest| manifest.progress = Progress::Open(4), "a stage that does not exist");
        refuses(&|manifest| manifest.progress = Progress::Paused(0), "a stage that does not exist");
        refuses(&|manifest| manifest.number = 0, "begin with 1");
        refuses(&|manifest| manifest.expires = manifest.made, "expires before");
    }
}
