//! Where btrfs keeps the subvolume of an inode. The programs need it to distinguish inodes (`bpf/subvolume.h`).
//!
//! btrfs is usually a module. The kernel publishes a module's types apart from its own, once the module is loaded.
//! Their numbers and names continue after the kernel's, so both are joined and read as one.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use libbpf_rs::btf::{
    Btf,
    types::{MemberAttr, Struct},
};
use nix::sys::memfd::{MFdFlags, memfd_create};
use tollgate_abi::enforcer::tg_btrfs;

use crate::labels::{identity::Identity, object::Object};

/// Name of the file system.
pub const FILESYSTEM: &str = "btrfs";
/// `BTF_MAGIC`.
const MAGIC: u16 = 0xeb9f;

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
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known.lines().any(|line| line.split_whitespace().last() == Some(FILESYSTEM))
}

/// The offsets in the running kernel, if it has btrfs by now.
pub fn layout() -> io::Result<tg_btrfs> {
    let folder = Path::new("/sys/kernel/btf");
    let kernel = fs::read(folder.join("vmlinux"))?;
    let types = match fs::read(folder.join(FILESYSTEM)) {
        Ok(module) => {
            together(&kernel, &module).ok_or_else(|| io::Error::other("the types of btrfs cannot be read"))?
        }
        // btrfs is built into the kernel.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => kernel,
        Err(cause) => return Err(cause),
    };
    // libbpf reads types only from files.
    let file: OwnedFd = memfd_create("tollgate-types", MFdFlags::MFD_CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(&types)?;
    let btf = Btf::from_path(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(io::Error::other)?;
    let offset = |name: &str, member: &str| {
        let unknown = || io::Error::other(format!("this kernel tells of no {member} in struct {name}"));
        offset(&btf, name, member).ok_or_else(unknown)
    };
    Ok(tg_btrfs {
        inode: offset("btrfs_inode", "vfs_inode")?,
        root: offset("btrfs_inode", "root")?,
        // Of a struct btrfs_key, which begins with it.
        number: offset("btrfs_root", "root_key")?,
        known: 1,
    })
}

fn offset(btf: &Btf<'_>, name: &str, member: &str) -> Option<u32> {
    let found = btf.type_by_name::<Struct<'_>>(name)?;
    let member = found.iter().find(|found| found.name.is_some_and(|name| name == member))?;
    match member.attr {
        MemberAttr::Normal { offset } => Some(offset / 8),
        MemberAttr::BitField { .. } => None,
    }
}

/// The parts of published types: the header up to its length, types, names.
struct Parts<'b> {
    header: &'b [u8],
    types: &'b [u8],
    names: &'b [u8],
}

impl<'b> Parts<'b> {
    fn of(bytes: &'b [u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let magic = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        // struct btf_header: magic, version, flags; length; where types and names begin behind it, and how long they are.
        let (length, types, names) = (word(4)?, (word(8)?, word(12)?), (word(16)?, word(20)?));
        let header = bytes.get(..length).filter(|header| magic == MAGIC && header.len() >= 24)?;
        let rest = bytes.get(length..)?;
        let part = |(at, length): (usize, usize)| rest.get(at..at.checked_add(length)?);
        Some(Self { header, types: part(types)?, names: part(names)? })
    }
}

/// Joins the types of a kernel and of one of its modules.
fn together(kernel: &[u8], module: &[u8]) -> Option<Vec<u8>> {
    let (kernel, module) = (Parts::of(kernel)?, Parts::of(module)?);
    let types = u32::try_from(kernel.types.len() + module.types.len()).ok()?;
    let names = u32::try_from(kernel.names.len() + module.names.len()).ok()?;
    let mut all = kernel.header.get(..8)?.to_vec();
    all.extend([0, types, types, names].iter().flat_map(|word| word.to_ne_bytes()));
    all.extend(kernel.header.get(24..)?);
    all.extend([kernel.types, module.types, kernel.names, module.names].concat());
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn btf(types: &[u8], names: &[u8]) -> Vec<u8> {
        let mut all = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
        let (types_length, names_length) = (types.len() as u32, names.len() as u32);
        all.extend([24, 0, types_length, types_length, names_length].iter().flat_map(|word: &u32| word.to_ne_bytes()));
        [all, types.to_vec(), names.to_vec()].concat()
    }

    #[test]
    fn appends_the_types_of_a_module_to_the_kernels() {
        let all = together(&btf(b"aaaa", b"\0n\0"), &btf(b"bbbbbbbb", b"m\0")).unwrap();
        assert_eq!(all, btf(b"aaaabbbbbbbb", b"\0n\0m\0"));
    }

    #[test]
    fn refuses_types_that_are_cut_off() {
        let whole = btf(b"aaaa", b"\0n\0");
        for length in 0..whole.len() {
            assert_eq!(together(&whole[..length], &whole), None, "{length}");
            assert_eq!(together(&whole, &whole[..length]), None, "{length}");
        }
    }
}
