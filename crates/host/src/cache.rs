//! The directory that keeps kernels, packages and what is built from them between runs.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
    time::Duration,
};

use nix::sys::statvfs::statvfs;

use crate::{Context, Error, process::Limits};

/// How long a program that helps to fill the cache may run. The slowest fetches a kernel over a slow line.
const HELPER_TIMEOUT: Duration = Duration::from_secs(900);

/// This program's cache directory of the user.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    interrupted: &'static AtomicBool,
}

/// The flag for work that nobody interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Cache {
    /// The cache in `$XDG_CACHE_HOME/tollgate`, or `~/.cache/tollgate`.
    pub fn of_user() -> Result<Self, Error> {
        let base = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
            .ok_or_else(|| std::io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))
            .context("find the cache folder")?;
        Self::at(base.join("tollgate"))
    }

    /// A cache in another directory, which is created if it does not exist.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        fs::create_dir_all(&root).context(format!("make the cache folder {}", root.display()))?;
        Ok(Self { root, interrupted: &NEVER })
    }

    /// The same cache. Work to fill it stops when the flag is set.
    #[must_use]
    pub fn interruptible(mut self, flag: &'static AtomicBool) -> Self {
        self.interrupted = flag;
        self
    }

    /// The limits of a program that helps to fill the cache.
    #[must_use]
    pub fn limits(&self) -> Limits<'static> {
        Limits { timeout: HELPER_TIMEOUT, interrupted: self.interrupted }
    }

    /// Refuses work for which the disk does not have enough free space.
    pub fn needs_room(&self, mebibytes: u64) -> Result<(), Error> {
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

    /// Path of the cache directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in the cache, whether or not it exists.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Prevents other processes from doing the same `work` on this cache until the guard is dropped.
    pub fn lock(&self, work: &str) -> Result<CacheLock, Error> {
        let path = self.path(&format!("{work}.lock"));
        let file = File::create(&path).context(format!("open {}", path.display()))?;
        file.lock().context(format!("lock {}", path.display()))?;
        Ok(CacheLock { file })
    }

    /// Returns the path of `relative`. If it is missing, `build` makes it in a new directory: completely, or not at
    /// all.
    ///
    /// `build` fills the directory that it is given. Only if it succeeds does the directory get its name. It must not
    /// request another directory, because only one is made at a time.
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
        let fresh = fresh_beside(&place)?;
        build(fresh.path())?;
        fs::rename(fresh.keep(), &place).context(format!("make {}", place.display()))?;
        Ok(place)
    }

    /// Returns the path of `relative`, which `build` makes again as in [`Cache::folder`]. The old one is removed only
    /// when the new one is complete.
    pub fn replace<E: From<Error>>(
        &self,
        relative: &str,
        build: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let place = self.path(relative);
        let _lock = self.lock("making")?;
        let fresh = fresh_beside(&place)?;
        build(fresh.path())?;
        // The old one is moved onto this empty directory, and is removed together with it at the end.
        let old = fresh_beside(&place)?;
        if place.exists() {
            fs::rename(&place, old.path()).context(format!("move {} away", place.display()))?;
        }
        let made = fs::rename(fresh.path(), &place);
        if made.is_err() {
            let _ = fs::rename(old.path(), &place);
        }
        made.context(format!("make {}", place.display()))?;
        Ok(place)
    }
}

/// A temporary directory on the same disk as `place`.
fn fresh_beside(place: &Path) -> Result<tempfile::TempDir, Error> {
    let parent = place.parent().unwrap_or(place);
    fs::create_dir_all(parent).context(format!("make {}", parent.display()))?;
    let folder = tempfile::Builder::new().prefix(".making-").tempdir_in(parent);
    folder.context(format!("make a folder in {}", parent.display()))
}

/// While it exists, only this process fills the cache.
#[derive(Debug)]
pub struct CacheLock {
    file: File,
}

impl CacheLock {
    /// Lets a program, and everything that it starts, hold the lock as well. It is free when the last of them has
    /// ended.
    pub fn keep_in(&self, command: &mut Command) {
        let file = self.file.as_raw_fd();
        // SAFETY: fcntl is async-signal-safe. The lock outlives the command, which its maker starts while it is held; a
        // descriptor that is not open any more would fail the start, no more.
        unsafe {
            command.pre_exec(move || match libc::fcntl(file, libc::F_SETFD, 0) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
    }
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

    #[test]
    fn keeps_the_old_folder_until_the_new_one_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let fill = |content: &'static str| {
            move |fresh: &Path| fs::write(fresh.join(content), content).context("write what is new")
        };
        cache.replace("a/b", fill("old")).unwrap();
        let failed = cache.replace("a/b", |fresh| {
            fill("half")(fresh)?;
            Err(Error::Interrupted)
        });
        assert!(failed.is_err() && cache.path("a/b/old").exists());
        cache.replace("a/b", fill("new")).unwrap();
        assert!(cache.path("a/b/new").exists() && !cache.path("a/b/old").exists());
        assert_eq!(fs::read_dir(cache.path("a")).unwrap().count(), 1);
    }

    #[test]
    fn is_locked_while_a_program_runs_that_was_given_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let lock = cache.lock("work").unwrap();
        let mut command = Command::new("sleep");
        lock.keep_in(command.arg("60"));
        let mut child = command.spawn().unwrap();
        drop(lock);
        let is_free = || File::open(cache.path("work.lock")).unwrap().try_lock().is_ok();
        let held = !is_free();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(held && is_free());
    }
}
