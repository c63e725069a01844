//! The types of the running kernel and of a file system's module, as far as the programs cannot look them up themselves: they
//! are loaded before the module may be.
//!
//! The kernel tells a module's types apart from its own, and once it is loaded. They go on where the kernel's end, in numbers
//! and in names, so that both together are read as one.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use libbpf_rs::btf::{
    Btf,
    types::{Enum, MemberAttr, Struct},
};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// `BTF_MAGIC`.
const MAGIC: u16 = 0xeb9f;

/// Whether the running kernel has a file system by now.
pub fn has(filesystem: &str) -> bool {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known.lines().any(|line| line.split_whitespace().last() == Some(filesystem))
}

/// Types of the running kernel and of a module.
#[derive(Debug)]
pub struct Types(Btf<'static>);

impl Types {
    /// With those of a file system that the kernel has by now.
    pub fn with(filesystem: &str) -> io::Result<Self> {
        let folder = Path::new("/sys/kernel/btf");
        let kernel = fs::read(folder.join("vmlinux"))?;
        let types = match fs::read(folder.join(filesystem)) {
            Ok(module) => together(&kernel, &module)
                .ok_or_else(|| io::Error::other(format!("the types of {filesystem} cannot be read")))?,
            // It is built in.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => kernel,
            Err(cause) => return Err(cause),
        };
        // libbpf reads types from files only.
        let file: OwnedFd = memfd_create("tollgate-types", MFdFlags::MFD_CLOEXEC)?;
        let mut file = File::from(file);
        file.write_all(&types)?;
        Btf::from_path(format!("/proc/self/fd/{}", file.as_raw_fd())).map(Self).map_err(io::Error::other)
    }

    /// Where a structure has a member, in bytes.
    pub fn offset(&self, name: &str, member: &str) -> io::Result<u32> {
        let offset = || {
            let found = self.0.type_by_name::<Struct<'_>>(name)?;
            let member = found.iter().find(|found| found.name.is_some_and(|name| name == member))?;
            match member.attr {
                MemberAttr::Normal { offset } => Some(offset / 8),
                MemberAttr::BitField { .. } => None,
            }
        };
        offset().ok_or_else(|| io::Error::other(format!("this kernel tells of no {member} in struct {name}")))
    }

    /// The value of a name of an enumeration.
    pub fn value(&self, name: &str) -> io::Result<i64> {
        let mut all = self.0.type_by_kind::<Enum<'_>>();
        let value = all
            .find_map(|found| found.iter().find(|member| member.name.is_some_and(|known| known == name))?.value.into());
        value.ok_or_else(|| io::Error::other(format!("this kernel tells of no {name}")))
    }

    /// Whether there is such a structure.
    pub fn has_struct(&self, name: &str) -> bool {
        self.0.type_by_name::<Struct<'_>>(name).is_some()
    }
}

/// The parts of what a kernel or a module tells of its types: the header up to its length, types, names.
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

/// The types of a kernel and of one of its modules.
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
