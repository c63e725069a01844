//! A file by number: what map keys and file handles hold.

use tollgate_abi::enforcer::tg_label_key;

/// What the kernel knows a file by, as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The file system: major << 20 | minor.
    pub device: u32,
    /// The inode's number.
    pub inode: u64,
    /// btrfs: the subvolume, each of which numbers its inodes itself; elsewhere 0.
    pub subvolume: u64,
    /// Which of the files that have had this number.
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
