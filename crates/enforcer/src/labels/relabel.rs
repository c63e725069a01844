//! Reads and changes labels, for `tollgate label get`, `set` and `restore`.
//!
//! Whether a client may do so is not decided here.

use std::{ffi::CString, io, os::fd::AsFd};

use nix::{
    dir::Dir,
    fcntl::{OFlag, openat},
    sys::stat::Mode,
};
use tollgate_abi::enforcer::{TG_INODE_DURABLE, TG_SID_MACHINE, tg_inode, tg_label_value};

use crate::labels::{
    Sid,
    durable::is_unsupported,
    identity::Identity,
    maps::{Maps, When},
    mounts::mount_of,
    object::Object,
};
use crate::shares::{Holder, Place};

/// How long a label lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// The file's attribute keeps it.
    Durably,
    /// Until the file system is unmounted, because it has no such attributes or is read-only.
    UntilUnmount,
}

/// What must be written.
#[derive(Debug, Clone, Copy)]
pub enum Write<'c> {
    /// The labels of these files in the directory. They come before the directory's own label, which would become
    /// theirs if a crash came in between.
    Children(&'c [Identity]),
    /// The label of the file itself.
    Own,
}

/// Gives a file a label, which `write` then writes to its attribute. Objects in a directory keep their labels. The
/// caches of decisions must be cleared afterwards. Places for labels are taken in the share of `holder`.
pub fn set(
    maps: &mut dyn Maps,
    object: &Object<'_>,
    sid: Sid,
    write: &mut dyn FnMut(Write<'_>) -> io::Result<()>,
    holder: Holder,
) -> io::Result<Lasts> {
    let share = maps.share(holder);
    if object.is(libc::S_IFDIR) {
        let kept = keep_children(maps, object, sid, share)?;
        if !kept.is_empty() {
            write(Write::Children(&kept))?;
        }
    }
    let key = object.identity().into();
    let before = maps.entry(key)?;
    // The entry comes first, because the map may be full. If this fails, nothing has changed.
    maps.set_entry(key, tg_label_value { sid, dirty: 0, share }, When::Always)?;
    let lasts = match write(Write::Own) {
        Ok(()) => Lasts::Durably,
        Err(cause) if is_unsupported(&cause) || cause.raw_os_error() == Some(libc::EROFS) => Lasts::UntilUnmount,
        Err(cause) => {
            match before {
                Some(value) => drop(maps.set_entry(key, value, When::Always)?),
                None => maps.remove_entry(key)?,
            }
            return Err(cause);
        }
    };
    let now = maps.inode(object.file)?;
    let now = now.unwrap_or(tg_inode { task_sid: TG_SID_MACHINE, ..tg_inode::default() });
    let label = tg_inode { sid, flags: now.flags | TG_INODE_DURABLE, ..now };
    maps.set_inode(object.file, label, When::Always)?;
    if object.is(libc::S_IFDIR) {
        // Files made meanwhile had the directory's old label. After a crash they are doubtful, because they are new.
        keep_children(maps, object, sid, share)?;
    }
    Ok(lasts)
}

/// Writes down the labels of objects in a directory, where they would change with the directory's label to `sid`.
/// Returns these objects.
fn keep_children(maps: &mut dyn Maps, directory: &Object<'_>, sid: Sid, share: Place) -> io::Result<Vec<Identity>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let listing = openat(directory.file, c".", flags, Mode::empty())?;
    let mount = mount_of(listing.as_fd())?;
    let mut kept = Vec::new();
    for entry in Dir::from_fd(listing.try_clone()?)?.iter() {
        let name: CString = entry?.file_name().to_owned();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = match openat(&listing, name.as_c_str(), flags, Mode::empty()) {
            Err(nix::Error::ENOENT) => continue,
            file => file?,
        };
        let child = Object::anywhere(file.as_fd())?;
        // What is mounted there is not in the directory. A subvolume is.
        if child.stat_device() != directory.stat_device() && mount_of(file.as_fd())? != mount {
            continue;
        }
        let child = Object::new(file.as_fd(), directory.device)?;
        if let Some(label) = maps.inode(child.file)?.filter(|label| label.sid != 0 && label.sid != sid) {
            let value = tg_label_value { sid: label.sid, dirty: 1, share };
            let identity = child.identity();
            if maps.set_entry(identity.into(), value, When::Absent)? {
                kept.push(identity);
            }
            maps.set_inode(child.file, tg_inode { flags: label.flags | TG_INODE_DURABLE, ..label }, When::Present)?;
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::labels::maps::tests::MemoryMaps;

    #[test]
    fn writes_the_labels_of_what_is_in_a_directory_before_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "").unwrap();
        fs::write(&other, "").unwrap();
        let files = [folder.path(), &one, &other].map(|path| File::open(path).unwrap());
        let mut maps = MemoryMaps::default();
        // One has the label that the directory is to have.
        for (file, sid) in files.iter().zip([40, 40, 41]) {
            maps.set_inode(file.as_fd(), tg_inode { sid, ..tg_inode::default() }, When::Always).unwrap();
        }
        let object = Object::anywhere(files[0].as_fd()).unwrap();
        let mut written = Vec::new();
        let mut write = |what: Write<'_>| {
            written.push(match what {
                Write::Children(children) => children.iter().map(|child| child.inode).collect(),
                Write::Own => vec![],
            });
            Ok(())
        };
        set(&mut maps, &object, 41, &mut write, Holder::Machine).unwrap();
        assert_eq!(written, [vec![Object::anywhere(files[1].as_fd()).unwrap().inode()], vec![]]);
        let (label, kept) = (maps.inode(files[0].as_fd()).unwrap().unwrap(), maps.unwritten.len());
        assert_eq!((label.sid, kept), (41, 1));
        // What cannot be written leaves the directory as it was.
        let mut refuse = |_: Write<'_>| Err(io::Error::from_raw_os_error(libc::EIO));
        fs::write(folder.path().join("new"), "").unwrap();
        let new = File::open(folder.path().join("new")).unwrap();
        maps.set_inode(new.as_fd(), tg_inode { sid: 41, ..tg_inode::default() }, When::Always).unwrap();
        set(&mut maps, &object, 42, &mut refuse, Holder::Machine).unwrap_err();
        assert_eq!(maps.inode(files[0].as_fd()).unwrap().unwrap().sid, 41);
    }
}
