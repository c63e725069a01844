//! The folder that keeps kernels, packages and what is built from them between runs.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

use nix::sys::statvfs::statvfs;

use crate::{Error, error::Context, process::Limits};

/// No program that helps to fill the cache may take longer: the slowest fetches a kernel over a slow line.
const PATIENCE: Duration = Duration::from_secs(900);

/// The user's cache folder of this program.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    interrupted: &'static AtomicBool,
}

/// Of a cache whose work nobody interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Cache {
    /// `$XDG_CACHE_HOME/tollgate`, or `~/.cache/tollgate`.
    pub fn of_user() -> Result<Self, Error> {
        let base = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
            .ok_or_else(|| std::io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))
            .context("find the cache folder")?;
        Self::at(base.join("tollgate"))
    }

    /// A cache in a folder of its own; made if it does not exist.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        fs::create_dir_all(&root).context(format!("make the cache folder {}", root.display()))?;
        Ok(Self { root, interrupted: &NEVER })
    }

    /// The same cache, whose filling stops when the flag is set.
    #[must_use]
    pub fn interruptible(mut self, flag: &'static AtomicBool) -> Self {
        self.interrupted = flag;
        self
    }

    /// The limits of a program that helps to fill the cache.
    #[must_use]
    pub fn limits(&self) -> Limits<'static> {
        Limits { timeout: PATIENCE, interrupted: self.interrupted }
    }

    /// Refuses work for which the disk has no room.
    pub(crate) fn needs_room(&self, mebibytes: u64) -> Result<(), Error> {
        let what = || format!("look at the disk of {}", self.root.display());
        let disk = statvfs(&self.root).context(what())?;
        let free = disk.blocks_available() * disk.fragment_size() / (1 << 20);
        if free >= mebibytes {
            return Ok(());
        }
        let short = format!("{free} MiB are free, {mebibytes} MiB are needed");
        Err(std::io::Error::new(std::io::ErrorKind::StorageFull, short))
            .context(format!("fill the cache {}", self.root.display()))
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in the cache, whether or not it exists.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Holds off other processes that would do the same `work` on this cache, until the guard is dropped.
    pub fn lock(&self, work: &str) -> Result<CacheLock, Error> {
        let path = self.path(&format!("{work}.lock"));
        let file = File::create(&path).context(format!("open {}", path.display()))?;
        file.lock().context(format!("lock {}", path.display()))?;
        Ok(CacheLock { _file: file })
    }

    /// Gives `relative`, made by `build` in a fresh folder when it is missing: whole or not at all.
    ///
    /// `build` fills the folder it is given; only when it succeeds does the folder take its name. It must not ask for
    /// another folder: one is made at a time.
    pub fn folder<E: From<Error>>(
        &self,
        relative: &str,
        build: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let place = self.path(relative);
        if place.is_dir() {
            return Ok(place);
        }
        let _lock = self.lock("making")?;
        if place.is_dir() {
            return Ok(place);
        }
        let parent = place.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).context(format!("make {}", parent.display()))?;
        let fresh = tempfile::Builder::new()
            .prefix(".making-")
            .tempdir_in(parent)
            .context(format!("make a folder in {}", parent.display()))?;
        build(fresh.path())?;
        fs::rename(fresh.keep(), &place).context(format!("make {}", place.display()))?;
        Ok(place)
    }
}

/// The cache is this process's to fill.
#[derive(Debug)]
pub struct CacheLock {
    _file: File,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_nothing_of_a_folder_whose_making_failed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let failed = cache.folder("kernels/x", |fresh| -> Result<(), Error> {
            fs::write(fresh.join("half"), "half").unwrap();
            Err(Error::Interrupted)
        });
        assert!(failed.is_err());
        assert!(!cache.path("kernels/x").exists());
        assert_eq!(fs::read_dir(cache.path("kernels")).unwrap().count(), 0);
    }

    #[test]
    fn makes_a_folder_once() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let mut made = 0;
        for _ in 0..2 {
            cache
                .folder("a/b", |fresh| -> Result<(), Error> {
                    made += 1;
                    fs::write(fresh.join("whole"), "whole").unwrap();
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(made, 1);
        assert_eq!(fs::read_to_string(cache.path("a/b/whole")).unwrap(), "whole");
    }
}
