//! The identity of a file, as keys of maps and file handles have it.

use tollgate_abi::enforcer::tg_label_key;

/// What identifies a file in the kernel as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Device number of the file system: major << 20 | minor.
    pub device: u32,
    /// Inode number.
    pub inode: u64,
    /// On btrfs the number of the subvolume, because each subvolume numbers its inodes itself; else 0.
    pub subvolume: u64,
    /// Generation of the inode number, which differs between the files that have had this number.
    pub generation: u32,
}

impl From<Identity> for tg_label_key {
    fn from(Identity { device, inode, subvolume, generation }: Identity) -> Self {
        Self { inode, subvolume, device, generation }
    }
}

impl From<tg_label_key> for Identity {
    fn from(tg_label_key { inode, subvolume, device, generation }: tg_label_key) -> Self {
        Self { device, inode, subvolume, generation }
    }
}
