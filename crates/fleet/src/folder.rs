//! A folder as a store: a share, a copy of one, or a stick.
//!
//! | file | content |
//! |---|---|
//! | `current/GROUP` | the manifest of a group |
//! | `register` | which nodes belong to the fleet |
//! | `pieces/HASH` | compressed parts, and manifests |
//! | `roots/VERSION` | root files |
//! | `states/NODE`, `requests/NODE` | what nodes say |
//! | `lock` | is locked while `current` or `register` is replaced |

use std::{
    fs::{self, OpenOptions},
    future, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    durable::{self, Opened},
    hash::Hash,
    name::Name,
    store::{Head, Kind, Revision, Store, StoreError, Version},
};

/// How often nodes look.
const INTERVAL: Duration = Duration::from_secs(10);
/// The maximum number of nodes that may say something.
const MAX_NODES: usize = 100_000;

/// A store in a folder. Whoever only reads needs no right to write.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The store in this folder, which is made when a root file or a manifest is written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn read(&self, below: &str, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path.join(below);
        match self.within(below).and_then(|(_folder, path)| durable::read(&path, limit)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => self.is_there().map(|()| None),
            Err(cause) if cause.kind() == io::ErrorKind::FileTooLarge => {
                Err(StoreError::Long { what: path.display().to_string(), limit })
            }
            Ok(None) => self.is_there().map(|()| None),
            other => other.map_err(|cause| failed("read", &path, &cause)),
        }
    }

    /// A share that is not mounted must not look like an empty store.
    fn is_there(&self) -> Result<(), StoreError> {
        fs::read_dir(&self.path).map(drop).map_err(|cause| failed("read", &self.path, &cause))
    }

    fn write(&self, below: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.is_there()?;
        let path = self.path.join(below);
        let folder = path.parent().unwrap_or(&self.path);
        let written = fs::create_dir_all(folder)
            .and_then(|()| self.within(below))
            .and_then(|(_folder, path)| durable::write(&path, 0o644, bytes));
        written.map_err(|cause| failed("write", &path, &cause))
    }

    /// The path of something, for as long as its folder is open. Whoever else writes here may put links to files of this
    /// machine into the place of folders.
    fn within(&self, below: &str) -> io::Result<(Option<Opened>, PathBuf)> {
        let Some((drawer, name)) = below.split_once('/') else { return Ok((None, self.path.join(below))) };
        let folder = Opened::new(&self.path.join(drawer))?;
        let path = folder.path().join(name);
        Ok((Some(folder), path))
    }
}

fn failed(what: &str, path: &Path, cause: &io::Error) -> StoreError {
    let remedy = "name the folder of the store, and look whether it is mounted and whose it is";
    StoreError::Failed { what: format!("{what} {}", path.display()), cause: format!("{cause}; {remedy}") }
}

fn head(head: &Head) -> String {
    match head {
        Head::Current(group) => format!("current/{group}"),
        Head::Register => "register".to_owned(),
    }
}

fn drawer(kind: Kind) -> &'static str {
    match kind {
        Kind::State => "states",
        Kind::Request => "requests",
    }
}

impl Store for Folder {
    async fn head(&self, of: &Head) -> Result<Option<Version>, StoreError> {
        let bytes = self.read(&head(of), of.limit())?;
        let version = |bytes: Vec<u8>| Version { revision: Revision(Hash::of(&bytes).0.to_vec()), bytes };
        Ok(bytes.map(version))
    }

    async fn swap(&self, of: &Head, bytes: &[u8], expected: Option<&Revision>) -> Result<(), StoreError> {
        let path = self.path.join("lock");
        let lock = fs::create_dir_all(&self.path)
            .and_then(|()| OpenOptions::new().create(true).write(true).custom_flags(libc::O_NOFOLLOW).open(&path));
        let lock = lock.map_err(|cause| failed("write", &path, &cause))?;
        lock.lock().map_err(|cause| failed("lock", &path, &cause))?;
        let present = self.head(of).await?.map(|version| version.revision);
        if present.as_ref() != expected {
            return Err(StoreError::Replaced { what: head(of) });
        }
        self.write(&head(of), bytes)
    }

    async fn piece(&self, hash: &Hash, limit: u64) -> Result<Vec<u8>, StoreError> {
        let what = format!("pieces/{hash}");
        self.read(&what, limit)?.ok_or(StoreError::Missing { what })
    }

    async fn put_piece(&self, hash: &Hash, bytes: &[u8]) -> Result<(), StoreError> {
        let what = format!("pieces/{hash}");
        // Half of one, or another one, is written anew.
        match self.read(&what, bytes.len() as u64) {
            Ok(Some(present)) if present == bytes => Ok(()),
            _ => self.write(&what, bytes),
        }
    }

    async fn root(&self, version: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(&format!("roots/{version}"), MAX_ROOT)
    }

    async fn put_root(&self, version: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let what = format!("roots/{version}");
        fs::create_dir_all(&self.path).map_err(|cause| failed("write", &self.path, &cause))?;
        match self.read(&what, MAX_ROOT)? {
            None => self.write(&what, bytes),
            Some(present) if present == bytes => Ok(()),
            Some(_) => Err(StoreError::Exists { what }),
        }
    }

    async fn put(&self, kind: Kind, node: &Name, bytes: &[u8]) -> Result<(), StoreError> {
        self.write(&format!("{}/{node}", drawer(kind)), bytes)
    }

    async fn all(&self, kind: Kind) -> Result<Vec<(Name, Vec<u8>)>, StoreError> {
        let path = self.path.join(drawer(kind));
        let folder = match Opened::new(&path) {
            Ok(folder) => folder,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return self.is_there().map(|()| Vec::new()),
            Err(cause) => return Err(failed("read", &path, &cause)),
        };
        let entries = fs::read_dir(folder.path()).map_err(|cause| failed("read", &path, &cause))?;
        let mut all = Vec::new();
        for entry in entries.take(MAX_NODES) {
            let entry = entry.map_err(|cause| failed("read", &path, &cause))?;
            // A file that is being written has a name that is none of a node.
            let Some(node) = entry.file_name().to_str().and_then(|name| name.parse::<Name>().ok()) else { continue };
            // What nobody can read is as if it were not there: it would otherwise keep away what others say.
            if let Ok(Some(bytes)) = durable::read(&entry.path(), kind.limit()) {
                all.push((node, bytes));
            }
        }
        all.sort();
        Ok(all)
    }

    async fn changed(&self, _: &Head, _: Option<&Revision>) {
        future::pending().await
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }
}

/// The maximum length of a root file, in bytes.
const MAX_ROOT: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt, symlink},
        process::Command,
    };

    use super::*;
    use crate::suite;

    fn folder() -> (tempfile::TempDir, Folder) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::new(scratch.path());
        (scratch, folder)
    }

    #[test]
    fn does_what_every_store_does() {
        suite::now(suite::run(|| {
            let (scratch, folder) = folder();
            (folder, scratch)
        }));
    }

    #[test]
    fn reports_a_folder_that_is_not_there_instead_of_an_empty_store() {
        let (scratch, _) = folder();
        let folder = Folder::new(scratch.path().join("mnt"));
        let error = suite::now(folder.head(&Head::Register)).unwrap_err().to_string();
        assert!(error.contains("mounted"), "{error}");
        assert!(suite::now(folder.all(Kind::State)).is_err());
    }

    #[test]
    fn follows_no_link_out_of_the_store() {
        let (scratch, folder) = folder();
        let (outside, node) = (tempfile::tempdir().unwrap(), "shadow".parse::<Name>().unwrap());
        fs::write(outside.path().join("shadow"), "secret").unwrap();
        for name in ["states", "current", "pieces", "roots"] {
            symlink(outside.path(), scratch.path().join(name)).unwrap();
        }
        fs::create_dir(scratch.path().join("requests")).unwrap();
        symlink(outside.path().join("shadow"), scratch.path().join("requests/shadow")).unwrap();
        assert!(suite::now(folder.all(Kind::State)).is_err());
        assert_eq!(suite::now(folder.all(Kind::Request)).unwrap(), []);
        assert!(suite::now(folder.head(&Head::Current(node.clone()))).is_err());
        assert!(suite::now(folder.put(Kind::State, &node, b"x")).is_err());
        assert!(suite::now(folder.put_piece(&Hash::of(b"x"), b"x")).is_err());
        // What replaces a link in a folder of the store does not touch what it led to.
        suite::now(folder.put(Kind::Request, &node, b"x")).unwrap();
        assert_eq!(suite::now(folder.all(Kind::Request)).unwrap(), [(node, b"x".to_vec())]);
        assert_eq!(fs::read(outside.path().join("shadow")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn makes_no_folder_for_a_state_where_the_share_is_not_mounted() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, node) = (scratch.path().join("share"), "a".parse().unwrap());
        let error = suite::now(Folder::new(&path).put(Kind::State, &node, b"state")).unwrap_err();
        assert!(error.to_string().contains("whether it is mounted"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn passes_by_what_is_no_file_and_what_is_too_long() {
        let (scratch, folder) = folder();
        let states = scratch.path().join("states");
        let node: Name = "a".parse().unwrap();
        suite::now(folder.put(Kind::State, &node, b"state")).unwrap();
        assert!(Command::new("mkfifo").arg(states.join("pipe")).status().unwrap().success());
        fs::create_dir(states.join("folder")).unwrap();
        fs::write(states.join("long"), vec![0; Kind::State.limit() as usize + 1]).unwrap();
        fs::write(states.join(".half"), b"x").unwrap();
        assert_eq!(suite::now(folder.all(Kind::State)).unwrap(), [(node, b"state".to_vec())]);
        let mode = fs::metadata(states.join("a")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o644, "others may read it");
        assert!(Command::new("mkfifo").arg(scratch.path().join("register")).status().unwrap().success());
        assert!(suite::now(folder.head(&Head::Register)).is_err());
    }
}
