//! Notices that unit files change.
//!
//! Directories like `/etc` and `/run` are watched for single names only: much happens there that has nothing to do with
//! units.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use nix::{
    errno::Errno,
    sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor},
};

use super::systemd::Watched;

/// The directories that are watched.
#[derive(Debug)]
pub(super) struct Watch {
    inotify: Inotify,
    directories: HashMap<WatchDescriptor, Interest>,
}

/// What is of interest in a directory.
#[derive(Debug, Default)]
struct Interest {
    all: bool,
    names: BTreeSet<OsString>,
}

impl Interest {
    fn in_event(&self, event: &InotifyEvent) -> bool {
        // An event without a name is about the directory itself.
        self.all || event.name.as_ref().is_none_or(|name| self.names.contains(name))
    }
}

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        Ok(Self { inotify, directories: HashMap::new() })
    }

    /// Watches these directories and files, and nothing else. In place of a directory that does not exist, the nearest
    /// existing one above is watched.
    pub(super) fn look_at(&mut self, watched: &Watched) -> io::Result<()> {
        let before = std::mem::take(&mut self.directories);
        for directory in &watched.directories {
            self.reach(directory, None)?;
        }
        for file in &watched.files {
            if let (Some(directory), Some(name)) = (file.parent(), file.file_name()) {
                self.reach(directory, Some(name))?;
            }
        }
        for old in before.into_keys().filter(|old| !self.directories.contains_key(old)) {
            // The watch of a directory that is gone is gone already.
            let _ = self.inotify.rm_watch(old);
        }
        Ok(())
    }

    /// Watches one name in a directory; `None`: everything.
    fn reach(&mut self, directory: &Path, name: Option<&OsStr>) -> io::Result<()> {
        let comes = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        let changes = comes
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_MOVE_SELF;
        // Two paths may lead to one directory. nix has no name for IN_MASK_ADD.
        let always = AddWatchFlags::IN_ONLYDIR | AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD);
        let (mut name, mut wanted) = (name, changes);
        for place in directory.ancestors() {
            match self.inotify.add_watch(place, wanted | always) {
                Err(Errno::ENOENT | Errno::ENOTDIR) => (name, wanted) = (place.file_name(), comes),
                other => {
                    let interest = self.directories.entry(other?).or_default();
                    interest.all |= name.is_none();
                    interest.names.extend(name.map(OsStr::to_owned));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether something has changed since the last call. Lost events count as a change.
    pub(super) fn take(&self) -> bool {
        let mut changed = false;
        while let Ok(events) = self.inotify.read_events() {
            changed |= events.iter().any(|event| {
                event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW)
                    || self.directories.get(&event.wd).is_some_and(|interest| interest.in_event(event))
            });
        }
        changed
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sees_what_becomes_of_units_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("units")).unwrap();
        fs::create_dir(at("etc")).unwrap();
        fs::write(at("etc/linked"), "").unwrap();
        let watched = Watched {
            directories: [at("units"), at("run/later")].into(),
            files: [at("etc/linked"), at("etc/none")].into(),
        };
        let mut watch = Watch::new().unwrap();
        watch.look_at(&watched).unwrap();
        fs::write(at("etc/other"), "1").unwrap();
        fs::write(at("other"), "1").unwrap();
        assert!(!watch.take());
        for act in [
            &(|| fs::write(at("units/web.service"), "1")) as &dyn Fn() -> io::Result<()>,
            &|| fs::write(at("etc/linked"), "1"),
            &|| fs::write(at("etc/none"), "1"),
            &|| fs::remove_file(at("etc/linked")),
            &|| fs::create_dir(at("run")),
        ] {
            act().unwrap();
            assert!(watch.take() && !watch.take());
        }
        watch.look_at(&watched).unwrap();
        fs::write(at("run/other"), "1").unwrap();
        assert!(!watch.take());
        fs::create_dir(at("run/later")).unwrap();
        assert!(watch.take());
        watch.look_at(&Watched::default()).unwrap();
        fs::write(at("units/web.service"), "1").unwrap();
        assert!(!watch.take(), "nobody is interested any more");
    }
}
