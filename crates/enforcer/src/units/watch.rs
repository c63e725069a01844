//! Notices that unit files change.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    sys::inotify::{AddWatchFlags, InitFlags, Inotify},
};

/// The directories that are watched.
#[derive(Debug)]
pub(super) struct Watch(Inotify);

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?))
    }

    /// Watches directories, and the directory of a file. In place of one that does not exist, the nearest existing one
    /// above is watched. One that is watched already stays so.
    pub(super) fn look_at(&mut self, directories: &[PathBuf], file: &Path) -> io::Result<()> {
        let wanted = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_ONLYDIR;
        for directory in directories.iter().map(PathBuf::as_path).chain(file.parent()) {
            for place in directory.ancestors() {
                match self.0.add_watch(place, wanted) {
                    Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                    other => {
                        other?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether something has changed since the last call. Lost events count as a change.
    pub(super) fn take(&self) -> bool {
        let mut changed = false;
        while let Ok(events) = self.0.read_events() {
            changed |= !events.is_empty();
        }
        changed
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
