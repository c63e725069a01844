//! Where btrfs keeps the subvolume of an inode. The programs need it to distinguish inodes (`bpf/subvolume.h`).

use std::io;

use tollgate_abi::enforcer::tg_btrfs;

use crate::labels::{
    identity::Identity,
    object::Object,
    types::{self, Types},
};

/// Name of the file system.
pub const FILESYSTEM: &str = "btrfs";
/// `BTRFS_FIRST_FREE_OBJECTID`: the number of each subvolume's root.
const ROOT: u64 = 256;

/// The number of the subvolume of which a directory is the root.
pub fn of_root(directory: &Object<'_>) -> Option<u64> {
    let subvolume = (directory.inode() == ROOT).then(|| directory.identity().subvolume);
    subvolume.filter(|number| *number != 0)
}

/// The identity of the root of a subvolume.
#[must_use]
pub fn root(device: u32, subvolume: u64, generation: u32) -> Identity {
    Identity { device, inode: ROOT, subvolume, generation }
}

/// Whether the running kernel has btrfs by now.
pub fn is_there() -> bool {
    types::has(FILESYSTEM)
}

/// The offsets in the running kernel, if it has btrfs by now.
pub fn layout() -> io::Result<tg_btrfs> {
    let types = Types::with(FILESYSTEM)?;
    Ok(tg_btrfs {
        inode: types.offset("btrfs_inode", "vfs_inode")?,
        root: types.offset("btrfs_inode", "root")?,
        // Of a struct btrfs_key, which begins with it.
        number: types.offset("btrfs_root", "root_key")?,
        known: 1,
    })
}
