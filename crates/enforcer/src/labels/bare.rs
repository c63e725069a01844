//! How the programs know an inode without extended attributes, before the daemon has looked at it (`bpf/label_unwalked.h`): by
//! what its file system itself goes by when it is asked for one.

use std::{io, path::Path};

use tollgate_abi::enforcer::tg_bare;

use crate::labels::types::{self, Types};

/// The file system that is known, and others that the same code may serve.
const EXT4: &str = "ext4";
const EXT2: &str = "ext2";
const EXT3: &str = "ext3";

/// How they are known that the running kernel has by now, by name, but those that are `told` already. Of others nobody knows
/// which of their inodes have attributes: those are denied until they are walked.
pub fn layouts(told: impl Fn(&str) -> bool) -> Vec<(&'static str, tg_bare)> {
    if told(EXT4) || !types::has(EXT4) {
        return Vec::new();
    }
    let Ok((layout, names)) = Types::with(EXT4).and_then(|types| Ok((ext4(&types)?, served(&types)))) else {
        return Vec::new();
    };
    names.into_iter().map(|name| (name, layout)).collect()
}

/// `ext4_xattr_get`: attributes are in the inode's own room, which a flag of its state tells, or in a block.
fn ext4(types: &Types) -> io::Result<tg_bare> {
    /// Flags of the state are the upper half of the word (`EXT4_INODE_BIT_FNS`).
    const STATE: i64 = 32;
    let bit = u32::try_from(STATE + types.value("EXT4_STATE_XATTR")?).map_err(io::Error::other)?;
    let state = 1u64.checked_shl(bit).ok_or_else(|| io::Error::other("EXT4_STATE_XATTR is no bit of a word"))?;
    let offset = |member| types.offset("ext4_inode_info", member);
    Ok(tg_bare {
        mask: [state, u64::MAX],
        at: [offset("i_flags")?, offset("i_file_acl")?],
        inode: offset("vfs_inode")?,
        reserved: 0,
    })
}

/// The types of file systems that ext4 serves: ext2 only where no other code does.
fn served(types: &Types) -> Vec<&'static str> {
    let other = types.has_struct("ext2_inode_info") || Path::new("/sys/module/ext2").exists();
    let ext2 = (types::has(EXT2) && !other).then_some(EXT2);
    [EXT4, EXT3].into_iter().chain(ext2).collect()
}
