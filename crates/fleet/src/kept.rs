//! What a node keeps on its disk: the root file that it trusts, and the newest manifest that has passed all checks.
//!
//! | file | content |
//! |---|---|
//! | `root` | the root file, as its keys have signed it |
//! | `newest` | the manifest, as its keys have signed it |
//!
//! Each file is replaced as a whole, and only by what has been checked. The folder is the node's own: only root may write
//! there.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    document::{DocumentError, Signed, Text},
    durable,
    manifest::Manifest,
    name::Name,
    root::{Root, RootError},
    shelf::Shelf,
    store::{Store, StoreError},
    time::Time,
    trust::{self, Checked, Highest, TrustError},
};

/// How many versions of the root file a node takes at once, so that no store keeps it busy for ever.
const MAX_VERSIONS: u64 = 1000;

/// What a node keeps.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    root: Root,
    newest: Option<Checked>,
}

/// Why a node cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// It belongs to no fleet yet.
    #[error("{0} has no root file: bring the fleet's to this node, and name it to `tollgate fleet enrol`")]
    New(PathBuf),
    /// It trusts another root file.
    #[error("{0} has another root file already: name another folder, or remove it if this node shall change its fleet")]
    Other(PathBuf),
    /// What it has kept is not what it wrote.
    #[error("{path} is not what was kept there: {cause}; look who has changed it, and enrol this node anew")]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: DocumentError,
    },
    /// A root file is not trusted.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its folder cannot be read or written.
    #[error("cannot {what} {path}: {cause}; the folder must be this user's own", path = path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What was returned.
        cause: io::Error,
    },
}

impl Kept {
    /// Begins to trust a root file that an administrator has brought. What it trusts already may be brought again.
    pub fn begin(folder: &Path, root: &[u8]) -> Result<Self, KeptError> {
        let brought = Root::first(root)?;
        match Self::open(folder) {
            Ok(kept) if kept.root == brought => return Ok(kept),
            Ok(_) => return Err(KeptError::Other(folder.to_owned())),
            Err(KeptError::New(_)) => {}
            Err(other) => return Err(other),
        }
        let kept = Self { folder: folder.to_owned(), root: brought, newest: None };
        kept.write("root", root)?;
        Ok(kept)
    }

    /// Reads what is kept in this folder.
    pub fn open(folder: &Path) -> Result<Self, KeptError> {
        let root = read::<Root>(&folder.join("root"))?.ok_or_else(|| KeptError::New(folder.to_owned()))?;
        let newest = read::<Manifest>(&folder.join("newest"))?;
        // Both were verified before they were written.
        Ok(Self {
            folder: folder.to_owned(),
            root: root.unverified().clone(),
            newest: newest.as_ref().map(Checked::kept),
        })
    }

    /// Removes what whoever wrote here has left when it was killed, if it is that old.
    pub fn sweep(&self, age: Duration) -> Result<(), KeptError> {
        let swept = durable::sweep(&self.folder, age).and_then(|_| Shelf::of(&self.folder).sweep(age));
        let failed = |cause| KeptError::Io {
            what: "remove what a killed process has left in",
            path: self.folder.clone(),
            cause,
        };
        swept.map(drop).map_err(failed)
    }

    /// The root file that it trusts.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The newest manifest that has passed all checks.
    #[must_use]
    pub fn newest(&self) -> Option<&Checked> {
        self.newest.as_ref()
    }

    /// The bytes of the newest manifest, as its keys have signed it.
    pub fn newest_bytes(&self) -> Result<Vec<u8>, KeptError> {
        let newest = read::<Manifest>(&self.folder.join("newest"))?;
        newest.map(|newest| newest.bytes()).ok_or_else(|| KeptError::New(self.folder.clone()))
    }

    /// Takes the later versions of the root file that the store has, one after the other.
    pub async fn renew(&mut self, store: &impl Store) -> Result<(), KeptError> {
        for _ in 0..MAX_VERSIONS {
            let Some(bytes) = store.root(self.root.version.saturating_add(1)).await? else { break };
            self.follow(&bytes)?;
        }
        Ok(())
    }

    /// Takes the next version of the root file, whose bytes may be anyone's.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<(), KeptError> {
        let next = self.root.next(bytes)?;
        self.write("root", bytes)?;
        self.root = next;
        Ok(())
    }

    /// Checks a manifest, whose bytes may be anyone's. Nothing is kept yet.
    pub fn check(&self, bytes: &[u8], group: &Name, now: Time) -> Result<Checked, TrustError> {
        let highest: Option<Highest> = self.newest.as_ref().map(Checked::as_highest);
        trust::check(bytes, &self.root, group, highest.as_ref(), now)
    }

    /// Keeps a manifest that has passed the checks, once its contents are there: from now on nothing older is accepted.
    pub fn accept(&mut self, bytes: &[u8], checked: Checked) -> Result<(), KeptError> {
        self.write("newest", bytes)?;
        self.newest = Some(checked);
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), KeptError> {
        let path = self.folder.join(name);
        durable::write(&path, 0o600, bytes).map_err(|cause| KeptError::Io { what: "write", path, cause })
    }
}

fn read<T: Text>(path: &Path) -> Result<Option<Signed<T>>, KeptError> {
    let error = |cause| KeptError::Io { what: "read", path: path.to_owned(), cause };
    let Some(bytes) = durable::read(path, T::LIMIT).map_err(error)? else { return Ok(None) };
    Signed::parse(&bytes).map(Some).map_err(|cause| KeptError::Changed { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        folder::Folder,
        root::tests::{root, second, signed as signed_root},
        suite::now,
        trust::tests::{NOW, manifest, name, signed},
    };

    const BOTH: &[u8] = &[11, 12];

    fn begun() -> (tempfile::TempDir, Kept) {
        let scratch = tempfile::tempdir().unwrap();
        let kept = Kept::begin(&scratch.path().join("kept"), &signed_root(root(), &[1, 2])).unwrap();
        (scratch, kept)
    }

    fn check(kept: &Kept, number: u64) -> Result<Checked, TrustError> {
        kept.check(&signed(manifest(number), BOTH), &name("web"), Time::of_seconds(NOW + 10))
    }

    #[test]
    fn refuses_a_rollback_after_a_restart_and_remembers_nothing_that_was_only_checked() {
        let (scratch, mut kept) = begun();
        let seven = check(&kept, 7).unwrap();
        assert!(check(&kept, 6).is_ok(), "7 was checked, and not accepted");
        kept.accept(&signed(manifest(7), BOTH), seven.clone()).unwrap();
        let again = Kept::open(&scratch.path().join("kept")).unwrap();
        assert_eq!((again.newest(), again.root()), (Some(&seven), &root()));
        assert_eq!(check(&again, 6), Err(TrustError::Rollback { found: 6, highest: 7 }));
        assert!(check(&again, 8).is_ok());
    }

    #[test]
    fn follows_root_files_version_by_version_and_stops_at_a_forged_one() {
        let (scratch, mut kept) = begun();
        let store = Folder::new(scratch.path().join("store"));
        let put = |version, bytes: &[u8]| now(store.put_root(version, bytes)).unwrap();
        put(1, &signed_root(root(), &[1, 2]));
        now(kept.renew(&store)).unwrap();
        put(2, &signed_root(second(), &[1, 2, 3]));
        put(3, &signed_root(Root { version: 3, ..root() }, &[1, 2]));
        let error = now(kept.renew(&store)).unwrap_err().to_string();
        assert!(error.contains("signed by 1 of the keys that may"), "key 1 is not of version 2: {error}");
        assert_eq!(Kept::open(&scratch.path().join("kept")).unwrap().root(), &second());
    }

    #[test]
    fn refuses_another_root_file_and_what_was_changed_on_the_disk() {
        let (scratch, kept) = begun();
        let folder = scratch.path().join("kept");
        assert!(Kept::begin(&folder, &signed_root(root(), &[1, 2])).is_ok(), "the same again");
        let other = Root { fleet: name("other"), ..root() };
        assert!(matches!(Kept::begin(&folder, &signed_root(other, &[1, 2])), Err(KeptError::Other(_))));
        assert!(matches!(Kept::open(scratch.path()), Err(KeptError::New(_))));
        fs::write(folder.join("newest"), "junk").unwrap();
        assert!(matches!(Kept::open(&folder), Err(KeptError::Changed { .. })));
        drop(kept);
    }
}
