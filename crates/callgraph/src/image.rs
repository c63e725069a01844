//! A kernel image in memory: the content of its addresses.

mod payload;

use std::ops::Range;

use object::{Object, ObjectSection, SectionFlags, elf, read::elf::ElfFile64};

use crate::Error;

/// An unpacked kernel.
#[derive(Debug)]
pub struct Image {
    bytes: Vec<u8>,
    sections: Vec<Section>,
}

/// A section that is in memory when the kernel runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The name, such as `.text`.
    pub name: String,
    /// The address to which it is linked.
    pub address: u64,
    /// The size in memory, in bytes.
    pub size: u64,
    /// Whether it holds instructions.
    pub executable: bool,
    /// Its bytes in the file; empty if it is zero at first.
    file: Range<usize>,
}

impl Section {
    /// Whether the section contains the address.
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.size
    }
}

impl Image {
    /// Reads a bzImage or an ELF file, compressed or not.
    pub fn parse(file: Vec<u8>) -> Result<Self, Error> {
        let bytes = payload::unpack(file)?;
        let elf = parsed(&bytes)?;
        let header = elf.elf_header();
        if header.e_machine.get(elf.endian()) != elf::EM_X86_64 {
            return Err(Error::NotAKernel { reason: "its ELF file is not one of x86-64".into() });
        }
        let mut sections = Vec::new();
        for section in elf.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if !sh_flags.contains(elf::SHF_ALLOC) || section.size() == 0 {
                continue;
            }
            if section.address().checked_add(section.size()).is_none() {
                let reason = "a section of its ELF file lies past the last address".into();
                return Err(Error::Damaged { reason });
            }
            let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
            // Since 6.18 .data is marked as instructions too; and .altinstr_aux and similar sections hold instructions
            // outside of functions.
            let executable = sh_flags.contains(elf::SHF_EXECINSTR) && name.ends_with("text");
            sections.push(Section {
                name,
                address: section.address(),
                size: section.size(),
                executable,
                file: within(section.file_range(), bytes.len())?,
            });
        }
        if !sections.iter().any(|section| section.executable) {
            return Err(Error::NotAKernel { reason: "its ELF file has no section of instructions".into() });
        }
        Ok(Self { bytes, sections })
    }

    /// The sections, in the file's order.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The section of this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The bytes of a section; fewer than its size if the rest is zero.
    #[must_use]
    pub fn bytes_of(&self, section: &Section) -> &[u8] {
        &self.bytes[section.file.clone()]
    }

    /// The section that contains an address.
    #[must_use]
    pub fn section_at(&self, address: u64) -> Option<&Section> {
        self.sections.iter().find(|section| section.holds(address))
    }

    /// The bytes from an address to the end of its section.
    #[must_use]
    pub fn bytes_at(&self, address: u64) -> Option<&[u8]> {
        let section = self.section_at(address)?;
        self.bytes_of(section).get(usize::try_from(address - section.address).ok()?..)
    }

    /// The eight bytes at an address, as a number.
    #[must_use]
    pub fn word_at(&self, address: u64) -> Option<u64> {
        self.bytes_at(address)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The file as ELF.
    pub(crate) fn elf(&self) -> Result<ElfFile64<'_>, Error> {
        parsed(&self.bytes)
    }
}

fn parsed(bytes: &[u8]) -> Result<ElfFile64<'_>, Error> {
    ElfFile64::parse(bytes).map_err(|cause| {
        if bytes.starts_with(&elf::ELFMAG) {
            Error::Damaged { reason: format!("its ELF file cannot be read ({cause})") }
        } else {
            Error::NotAKernel { reason: "there is no ELF file in it".into() }
        }
    })
}

/// A section's bytes; an error if the file is cut short.
fn within(range: Option<(u64, u64)>, length: usize) -> Result<Range<usize>, Error> {
    let Some((offset, size)) = range else { return Ok(0..0) };
    let end = offset.checked_add(size).and_then(|end| usize::try_from(end).ok()).filter(|end| *end <= length);
    match end {
        Some(end) => Ok(offset as usize..end),
        None => Err(Error::Damaged { reason: "a section of its ELF file lies past the file's end".into() }),
    }
}
