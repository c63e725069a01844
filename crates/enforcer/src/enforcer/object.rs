//! What is known of the object that a descriptor leads to: its label and class, and the file system that it is in.

use std::{
    fs, io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use libbpf_rs::{MapCore, MapFlags};
use nix::sys::statfs::{FUSE_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, fstatfs};
use tollgate_abi::{
    bytes_of,
    enforcer::{SECINITSID_UNLABELED, TG_FS_GENFS, TG_FS_XATTR, TG_SUPERBLOCK_SETTABLE, tg_filesystem},
};

use super::{Enforcer, EnforcerError, map_error};
use crate::{
    contexts::Sid,
    labels::{
        alone::{self, REQUEST_TIMEOUT},
        filesystems,
        machine::is_served,
        maps::Maps,
        mounts::{self, Mount},
        object::Object,
    },
    shares::Holder,
};

pub(super) const PROC: &str = "/proc";
const ANON_INODE_FS_MAGIC: FsType = FsType(0x0904_1934);
const SOCKFS_MAGIC: FsType = FsType(0x534f_434b);

const SERVED: &str =
    "a program serves this file system, and need not answer: its files have the label that the policy gives it";
const BY_POLICY: &str = "the policy alone labels the files of this file system (genfscon, or no rule), and a label that is set \
                         would be lost: change the policy, and put it in force with `tollgate reload`";

/// What hooks take an object for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its label.
    pub sid: Sid,
    /// Its SECCLASS; 0: that of its mode.
    pub class: u32,
}

/// What the policy says of the labels in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The file system's own.
    pub sid: Sid,
    /// Why those of its files cannot be set (`SBLABEL_MNT`); `None`: they can.
    pub fixed: Option<&'static str>,
}

impl Enforcer {
    /// The label of a file that is in force.
    pub fn label(&self, file: BorrowedFd<'_>) -> Result<Sid, EnforcerError> {
        Ok(self.known(file)?.sid)
    }

    /// The label and the class of an object that are in force.
    pub fn known(&self, file: BorrowedFd<'_>) -> Result<Known, EnforcerError> {
        let kind = filesystem_of(file)?;
        if matches!(kind, Kind::Overlay { .. } | Kind::Nameless(_)) {
            // No descriptor leads to what an overlay's file shows, or to the label of a socket that was accepted. A program
            // tells it, before the file system is asked.
            let object = Object::anywhere(file).map_err(labelling)?;
            let (sid, class) = self.state.reported_label(|| drop(object.attribute()));
            let known = Known { sid, class };
            return match kind {
                Kind::Nameless(_) if known.sid == 0 => Err(labelling(unsupported(
                    "the policy is not asked about it: it is the kernel's own, and has no label",
                ))),
                _ => Ok(known),
            };
        }
        match self.kernel_maps().inode(file).map_err(labelling)?.filter(|label| label.sid != 0) {
            Some(label) => Ok(Known { sid: label.sid, class: label.class }),
            // As tg_unseen_sid: what was in memory before the programs were has the label that all have.
            None => {
                let one_label = |found: &tg_filesystem| found.behaviour == TG_FS_GENFS && found.node == 0;
                let sid = self.filesystem(file)?.filter(one_label).map_or(SECINITSID_UNLABELED, |found| found.sid);
                Ok(Known { sid, class: 0 })
            }
        }
    }

    /// What the policy says of the file system that an object is in.
    pub fn place(&self, file: BorrowedFd<'_>) -> Result<Place, EnforcerError> {
        let kind = filesystem_of(file)?;
        let name = match (mount(file)?, kind) {
            (Some(mount), _) => mount.filesystem,
            (None, Kind::Nameless(name)) => name.to_owned(),
            (None, _) => return self.place_elsewhere(file),
        };
        let found = self.filesystem_named(&name)?;
        let policy = &self.generation.policy;
        let settable = found.is_some_and(|found| filesystems::is_settable(policy, &name, found.behaviour));
        let fixed = if kind == Kind::Served { Some(SERVED) } else { (!settable).then_some(BY_POLICY) };
        Ok(Place { sid: found.map_or(SECINITSID_UNLABELED, |found| found.sid), fixed })
    }

    /// Likewise in another mount namespace: as the programs have seen it.
    fn place_elsewhere(&self, file: BorrowedFd<'_>) -> Result<Place, EnforcerError> {
        let seen = self.kernel_maps().superblock(object(file)?.device).map_err(labelling)?;
        let Some(seen) = seen.filter(|seen| seen.address != 0) else {
            return Ok(Place { sid: SECINITSID_UNLABELED, fixed: None });
        };
        Ok(Place { sid: seen.sid, fixed: (seen.flags & TG_SUPERBLOCK_SETTABLE == 0).then_some(BY_POLICY) })
    }

    /// What the policy says of the file system that a file is in, if that is mounted here.
    pub(super) fn filesystem(&self, file: BorrowedFd<'_>) -> Result<Option<tg_filesystem>, EnforcerError> {
        let Some(mount) = mount(file)? else { return Ok(None) };
        self.filesystem_named(&mount.filesystem)
    }

    pub(super) fn filesystem_named(&self, name: &str) -> Result<Option<tg_filesystem>, EnforcerError> {
        let Some(name) = filesystems::name(name) else { return Ok(None) };
        let found = self.maps.filesystems.lookup(bytes_of(&name), MapFlags::ANY);
        let found = found.map_err(map_error("find what the policy says of a file system"))?;
        Ok(found.as_deref().and_then(filesystems::value))
    }
}

/// The mount that a file is in; `None`: one of another mount namespace.
fn mount(file: BorrowedFd<'_>) -> Result<Option<Mount>, EnforcerError> {
    let number = mounts::mount_of(file).map_err(labelling)?;
    let all = mounts::read(&fs::read(mountinfo()).map_err(|cause| reading(&mountinfo(), cause))?);
    Ok(all.into_iter().find(|found| u64::from(found.id) == number))
}

/// A file, and the device of its file system as the kernel numbers it, which `stat` does not always tell.
pub(super) fn object(file: BorrowedFd<'_>) -> Result<Object<'_>, EnforcerError> {
    let object = match mount(file)? {
        Some(mount) => Object::new(file, mount.device),
        None => Object::anywhere(file),
    };
    object.map_err(labelling)
}

/// Whether labels are written down there.
pub(super) fn is_kept(filesystem: tg_filesystem) -> bool {
    filesystem.behaviour == TG_FS_XATTR
}

/// What matters of a file system whose files a caller has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A program serves it.
    Served,
    /// `here`: in our mount namespace.
    Overlay {
        here: bool,
    },
    /// Of the kernel's own, mounted nowhere: sockets, anonymous inodes. By name.
    Nameless(&'static str),
    Other,
}

/// What a file is in. One in another mount namespace is asked, which may be served by anybody.
pub(super) fn filesystem_of(file: BorrowedFd<'_>) -> Result<Kind, EnforcerError> {
    if let Some(mount) = mount(file)? {
        return Ok(match mount.filesystem.as_str() {
            name if is_served(name) => Kind::Served,
            "overlay" => Kind::Overlay { here: true },
            _ => Kind::Other,
        });
    }
    let found = alone::ask(file, REQUEST_TIMEOUT, |file| Ok(fstatfs(file)?.filesystem_type())).map_err(labelling)?;
    Ok(match found {
        FUSE_SUPER_MAGIC => Kind::Served,
        OVERLAYFS_SUPER_MAGIC => Kind::Overlay { here: false },
        SOCKFS_MAGIC => Kind::Nameless("sockfs"),
        ANON_INODE_FS_MAGIC => Kind::Nameless("anon_inodefs"),
        _ => Kind::Other,
    })
}

/// Whether a label may be written there for somebody. Who serves a file system need not answer; a user may have mounted overlayfs
/// in a namespace of his over what he serves.
pub(super) fn may_write(filesystem: &Kind, holder: Holder) -> io::Result<()> {
    let reason = match (filesystem, holder) {
        (Kind::Served, _) => SERVED,
        (Kind::Overlay { here: false }, Holder::User(_)) => {
            "only root may label files of overlayfs in another mount namespace: what is below may not answer"
        }
        _ => return Ok(()),
    };
    Err(unsupported(reason))
}

fn unsupported(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

pub(super) fn mountinfo() -> PathBuf {
    Path::new(PROC).join("self/mountinfo")
}

pub(super) fn labelling(cause: io::Error) -> EnforcerError {
    EnforcerError::Labels { cause }
}

fn reading(path: &Path, cause: io::Error) -> EnforcerError {
    EnforcerError::Io { what: "read", path: path.to_owned(), cause }
}
