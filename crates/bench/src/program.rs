//! The smallest program: a static ELF file that exits.

use std::{
    ffi::CString,
    fs,
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{Error, error::Context};

/// Sizes of `Elf64_Ehdr` and `Elf64_Phdr`.
const FILE_HEADER: u16 = 64;
const PROGRAM_HEADER: u16 = 56;
/// The address at which the file is mapped: the traditional start of x86-64 programs that are not position-independent.
const BASE: u64 = 0x40_0000;
/// `e_type`, `e_machine`, `p_type` and `p_flags` (elf(5)).
const ET_EXEC: u16 = 2;
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PF_R_X: u32 = 5;
/// `xor edi, edi; mov eax, SYS_exit; syscall`.
const EXIT_0: [u8; 9] = [0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05];

/// The file's bytes: headers, one segment that holds the file itself, three instructions.
pub(crate) fn exit_0() -> Vec<u8> {
    let code = u64::from(FILE_HEADER + PROGRAM_HEADER);
    let size = code + EXIT_0.len() as u64;
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]; // 64 bits, little endian, version 1
    let half = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
    let wide = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
    half(&mut bytes, ET_EXEC);
    half(&mut bytes, EM_X86_64);
    word(&mut bytes, 1); // version
    wide(&mut bytes, BASE + code); // entry
    wide(&mut bytes, FILE_HEADER.into()); // offset of the program headers
    wide(&mut bytes, 0); // no section headers
    word(&mut bytes, 0); // flags
    half(&mut bytes, FILE_HEADER);
    half(&mut bytes, PROGRAM_HEADER);
    half(&mut bytes, 1); // one program header
    for _ in 0..3 {
        half(&mut bytes, 0); // size, number and names of the section headers
    }
    word(&mut bytes, PT_LOAD);
    word(&mut bytes, PF_R_X);
    wide(&mut bytes, 0); // offset
    wide(&mut bytes, BASE); // virtual address
    wide(&mut bytes, BASE); // physical address
    wide(&mut bytes, size); // in the file
    wide(&mut bytes, size); // in memory
    wide(&mut bytes, 0x1000); // alignment
    bytes.extend(EXIT_0);
    bytes
}

/// The program as a file; removed on drop.
pub(crate) struct Program {
    path: PathBuf,
    c_path: CString,
}

impl Program {
    /// Writes the program into a directory.
    pub(crate) fn write_into(directory: &Path) -> Result<Program, Error> {
        let path = directory.join("exit");
        let c_path = CString::new(path.as_os_str().as_bytes()).context(format!("name {}", path.display()))?;
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, &exit_0()));
        written.context(format!("write the program {}", path.display()))?;
        Ok(Program { path, c_path })
    }

    /// Its path, for execve.
    pub(crate) fn path(&self) -> &CString {
        &self.c_path
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The place's directory is removed soon; an error cannot be reported in a drop.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
        (0..size).rev().fold(0, |value, i| value << 8 | u64::from(bytes[at + i]))
    }

    #[test]
    fn writes_headers_whose_offsets_fit_the_file() {
        let bytes = exit_0();
        assert_eq!(number(&bytes, 54, 2), u64::from(PROGRAM_HEADER), "e_phentsize");
        assert_eq!(number(&bytes, 56, 2), 1, "e_phnum");
        let header = number(&bytes, 32, 8) as usize;
        assert_eq!(number(&bytes, header, 4), u64::from(PT_LOAD));
        assert_eq!(number(&bytes, header + 32, 8), bytes.len() as u64, "p_filesz");
        let entry = (number(&bytes, 24, 8) - number(&bytes, header + 16, 8)) as usize;
        assert_eq!(&bytes[entry..], EXIT_0);
    }

    #[test]
    fn ends_with_status_zero() {
        let directory = tempfile::tempdir().unwrap();
        let program = Program::write_into(directory.path()).unwrap();
        assert_eq!(Command::new(&program.path).status().unwrap().code(), Some(0));
    }

    #[test]
    fn removes_the_file_when_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let program = Program::write_into(directory.path()).unwrap();
        assert!(program.path.exists());
        drop(program);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn reports_the_path_that_it_could_not_write() {
        let Err(error) = Program::write_into(Path::new("/nonexistent")) else { panic!("written") };
        assert!(error.to_string().contains("/nonexistent/exit"), "{error}");
    }
}
