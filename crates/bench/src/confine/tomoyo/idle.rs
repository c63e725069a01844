//! A program that does nothing.

/// Bytes of a 64-bit ELF header and of one program header.
const HEADERS: usize = 64 + 56;

/// `xor edi, edi; mov eax, 60; syscall`: exit with status 0.
const CODE: [u8; 9] = [0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];

/// The address the file is loaded at: any that is above vm.mmap_min_addr and aligned to a page.
const BASE: u64 = 0x40_0000;

/// A static x86-64 program that ends with status 0.
pub(super) fn program() -> Vec<u8> {
    let size = (HEADERS + CODE.len()) as u64;
    let mut file = Vec::with_capacity(HEADERS + CODE.len());
    // e_ident: 64 bits, little endian, version 1.
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // e_type executable, e_machine x86-64, e_version; e_entry, e_phoff, e_shoff.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    file.extend([BASE + HEADERS as u64, 64, 0].map(u64::to_le_bytes).as_flattened());
    // e_flags; the sizes of this header and of the next, one of that, no sections.
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    // p_type load, p_flags readable and executable; p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align.
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    file.extend([0, BASE, BASE, size, size, 4096].map(u64::to_le_bytes).as_flattened());
    file.extend(CODE);
    file
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    use super::*;

    #[test]
    fn ends_with_status_zero() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("idle");
        fs::write(&path, program()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(Command::new(path).status().unwrap().code(), Some(0));
    }
}
