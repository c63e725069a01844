//! Files that are unlabelled because their labels are not known any more.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use serde::Serialize;
use tollgate_abi::enforcer::SECINITSID_UNLABELED;

use crate::{
    generation::Generation,
    labels::{
        Sid,
        handle::Opener,
        identity::Identity,
        maps,
        mounts::{self, Mount},
        object::Object,
        roots::readable,
    },
    programs::{self, Pins},
};

/// A file without a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Path of the file; `None`: no mount here shows it.
    pub path: Option<PathBuf>,
    /// Inode number.
    pub inode: u64,
    /// Device number of the file system: major << 20 | minor.
    pub device: u32,
    /// The context in its attribute, if it has one.
    pub attribute: Option<String>,
}

/// All such files, without those in a directory that is one itself: they are unlabelled like that.
pub fn list(pins: &Pins) -> io::Result<Vec<Lost>> {
    let mut identities = maps::of_labels(pins, &unlabelled(pins)?)?;
    identities.sort_unstable();
    let mut all = mounts::read(&fs::read("/proc/self/mountinfo")?);
    mounts::widest_first(&mut all);
    let mut lost = Vec::new();
    for of_device in identities.chunk_by(|one, other| one.device == other.device) {
        let root = root(&all, of_device[0].device);
        let opener = root.as_ref().and_then(|(root, mount)| {
            let inode = Object::new(root.as_fd(), mount.device).ok()?.inode();
            Some((Opener::new(root.as_fd(), inode)?, &mount.point))
        });
        lost.extend(of_device.iter().filter_map(|identity| describe(*identity, opener.as_ref())));
    }
    Ok(lost)
}

/// The SIDs that are unlabelled in the policy in force, including those of contexts that it does not have.
fn unlabelled(pins: &Pins) -> io::Result<HashSet<Sid>> {
    let generations = programs::map(pins, "generations").map_err(io::Error::other)?;
    let map = programs::in_force(&generations).map_err(io::Error::other)?;
    let mut sids = Generation::unlabelled_in(&map).map_err(io::Error::other)?;
    sids.insert(SECINITSID_UNLABELED);
    Ok(sids)
}

fn root(all: &[Mount], device: u32) -> Option<(OwnedFd, &Mount)> {
    let of_device = all.iter().filter(|mount| mount.device == device);
    of_device.filter_map(|mount| Some((readable(&mounts::open(mount).ok()?).ok()?, mount))).next()
}

/// Where a file is; `None`: it was deleted.
fn describe(identity: Identity, opener: Option<&(Opener<'_>, &PathBuf)>) -> Option<Lost> {
    let unknown = Lost { path: None, inode: identity.inode, device: identity.device, attribute: None };
    let Some((opener, point)) = opener else { return Some(unknown) };
    let file = match opener.open(identity) {
        Ok(file) => file,
        Err(cause) if cause.raw_os_error() == Some(libc::ESTALE) => return None,
        Err(_) => return Some(unknown),
    };
    let attribute = Object::new(file.as_fd(), identity.device).and_then(|object| object.attribute()).ok().flatten();
    // The path as seen from the root of the mount. A file that nobody has looked up by a name has none here.
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok();
    let path = path.filter(|path| path != Path::new("/")).map(|path| below(point, &path));
    Some(Lost { path, attribute, ..unknown })
}

fn below(point: &Path, path: &Path) -> PathBuf {
    let path = path.as_os_str().as_bytes();
    point.join(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_paths_as_they_are_here() {
        assert_eq!(below(Path::new("/srv"), Path::new("/a/b")), Path::new("/srv/a/b"));
        assert_eq!(below(Path::new("/"), Path::new("/a")), Path::new("/a"));
    }
}
