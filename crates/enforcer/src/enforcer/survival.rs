//! The objects that enforcement depends on: its pins, the daemon's directory and its configuration. A confined process
//! needs `security setenforce` ([`TG_SID_SURVIVAL`]) to change one of them, or to unmount or cover the directory that
//! holds it.

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

/// The configuration, with the policy that the machine starts with.
const CONFIGURATION: &str = "/etc/tollgate";

impl Enforcer {
    /// Marks all of these objects and holds them open. While a daemon runs, or the service manager keeps its
    /// descriptors, the programs stay even if the file system that they are pinned in is unmounted.
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

    /// Marks the pins. These change when other hooks have programs.
    pub(super) fn protect_pins(&self) -> Result<(), EnforcerError> {
        survival::guard_link(&self.options.pins)?;
        self.state.set_pins(survival::label(&self.options.pins, &self.maps.inodes)?);
        self.state.forget();
        Ok(())
    }

    /// Marks the directory, the configuration, and what is in them. What is made there later is marked by the kernel.
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
        let (file, mut maps) = (file.as_fd(), self.kernel_maps());
        let sid = self.label(file)? | TG_SID_SURVIVAL;
        let mut label = maps.inode(file).map_err(labelling)?.unwrap_or_default();
        if self.filesystem(file)?.is_some_and(is_kept) {
            // An object that is not in memory has its identity all the same.
            let key = object(file)?.identity().into();
            let share = maps.share(Holder::Machine);
            let dirty = maps.entry(key).map_err(labelling)?.map_or(0, |kept| kept.dirty);
            maps.set_entry(key, tg_label_value { sid, dirty, share, ..Default::default() }, When::Always)
                .map_err(labelling)?;
            label.flags |= TG_INODE_DURABLE;
        }
        maps.set_inode(file, tg_inode { sid, ..label }, When::Always).map(drop).map_err(labelling)
    }
}

/// Opens an object, in order to hold it and to label it; `None`: it does not exist.
fn open(path: &Path) -> Result<Option<File>, EnforcerError> {
    match OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(EnforcerError::Io { what: "open", path: path.to_owned(), cause }),
    }
}
