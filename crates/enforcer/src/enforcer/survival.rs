//! What enforcement lives by: its pins, the daemon's folder and its configuration. Whoever changes one of them, and is
//! confined, needs `security setenforce` ([`TG_SID_SURVIVAL`]), and so does who unmounts or covers what holds it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use tollgate_abi::enforcer::{TG_INODE_DURABLE, TG_SID_SURVIVAL, tg_inode, tg_label_value};

use super::{
    Enforcer, EnforcerError,
    object::{is_kept, labelling, object},
};
use crate::{
    inquiries::Inquiries,
    labels::maps::{Maps, When},
    shares::Holder,
    survival,
};

/// The configuration, the policy that a machine starts with in it.
const CONFIGURATION: &str = "/etc/tollgate";

impl Enforcer {
    /// Marks all of it, and holds it: while a daemon runs, or the service manager keeps its descriptors, programs live also
    /// where nothing is mounted any more that they are pinned in.
    pub(super) fn protect(&mut self) -> Result<(), EnforcerError> {
        self.protect_pins()?;
        self.protect_folders()?;
        let places = [self.options.pins.root(), self.options.folder.path(), Path::new(CONFIGURATION)];
        let inquiries = Inquiries::open(&self.options.pins)?;
        let mut held = Vec::new();
        for (number, path) in (0..).zip(places) {
            let Some(place) = open(path)? else { continue };
            inquiries.keep(number, place.as_fd()).map_err(|cause| labelling(io::Error::other(cause)))?;
            held.push(place);
        }
        self.held = held;
        Ok(())
    }

    /// Marks the pins, of which there are others when other hooks have programs.
    pub(super) fn protect_pins(&self) -> Result<(), EnforcerError> {
        self.state.set_pins(survival::label(&self.options.pins, &self.maps.inodes)?);
        self.state.forget();
        Ok(())
    }

    /// Marks the folder, the configuration, and what is in them; what is made there later is marked by the kernel.
    pub(super) fn protect_folders(&mut self) -> Result<(), EnforcerError> {
        let mut paths = vec![self.options.folder.path().to_owned(), PathBuf::from(CONFIGURATION)];
        while let Some(path) = paths.pop() {
            let Some(file) = open(&path)? else { continue };
            self.protect_file(&file)?;
            if file.metadata().map_err(labelling)?.is_dir() {
                for entry in fs::read_dir(&path).map_err(labelling)? {
                    paths.push(entry.map_err(labelling)?.path());
                }
            }
        }
        self.state.forget();
        Ok(())
    }

    fn protect_file(&self, file: &File) -> Result<(), EnforcerError> {
        let (file, mut maps) = (file.as_fd(), self.kernel_maps()?);
        let sid = self.label(file)? | TG_SID_SURVIVAL;
        let mut label = maps.inode(file).map_err(labelling)?.unwrap_or_default();
        if self.filesystem(file)?.is_some_and(is_kept) {
            // Not in memory, it is still known.
            let key = object(file)?.identity().into();
            let share = maps.share(Holder::Machine);
            let dirty = maps.entry(key).map_err(labelling)?.map_or(0, |kept| kept.dirty);
            maps.set_entry(key, tg_label_value { sid, dirty, share }, When::Always).map_err(labelling)?;
            label.flags |= TG_INODE_DURABLE;
        }
        maps.set_inode(file, tg_inode { sid, ..label }, When::Always).map(drop).map_err(labelling)
    }
}

/// A file, to hold it and to label it; `None`: there is none.
fn open(path: &Path) -> Result<Option<File>, EnforcerError> {
    match OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(EnforcerError::Io { what: "open", path: path.to_owned(), cause }),
    }
}
