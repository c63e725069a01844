//! A built policy: one file with everything that answers need, whole or not at all.
//!
//! `TGPOLICY`, the format's version, the number of sections, a table of (section, offset, length), the sections. All
//! numbers are little endian, of 4 bytes those at the beginning, of 8 those of the table. Sections: see [`Section`].

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{
    dump::{self, DumpError},
    lines::{Lines, LinesError},
    model::{Bits, Level, Policy},
    sepol::Compiled,
    server::{SecurityServer, ServerError},
    tables::{self, TableLimit},
};

/// What a built policy begins with.
pub const MAGIC: &[u8; 8] = b"TGPOLICY";
const VERSION: u32 = 1;

/// The parts of a built policy, in the order in which they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Section {
    /// The binary policy that SELinux would load.
    Image = 1,
    /// The policy as data ([`crate::dump`]).
    Model = 2,
    /// The decision tables (`tables.h`).
    Tables = 3,
    /// The policy's own levels, by identifier.
    Levels = 4,
    /// The statements that it was compiled from, with their places ([`crate::lines`]).
    Lines = 5,
    /// The text of its `file_contexts`.
    FileContexts = 6,
}

const SECTIONS: [Section; 6] =
    [Section::Image, Section::Model, Section::Tables, Section::Levels, Section::Lines, Section::FileContexts];
const ENTRY: usize = 4 + 8 + 8;
const HEAD: usize = 8 + 4 + 4;

/// Why a built policy could not be read, made or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuiltError {
    /// A file could not be read or written.
    #[error("cannot {what} {}: {cause}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// It does not begin as a built policy does.
    #[error("{}: not a built policy: make one with `tollgate policy build {} -o OUT`", .0.display(), .0.display())]
    NotBuilt(PathBuf),
    /// It was built by another version of the program.
    #[error(
        "a built policy of format {found}, this program knows {VERSION}: build it again with `tollgate policy build`"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// It is not whole, or its parts do not fit each other.
    #[error("damaged or cut short ({0}): build it again with `tollgate policy build`")]
    Damaged(String),
    /// The policy does not fit the decision tables.
    #[error(transparent)]
    Limit(#[from] TableLimit),
}

impl From<DumpError> for BuiltError {
    fn from(cause: DumpError) -> Self {
        Self::Damaged(cause.to_string())
    }
}

impl From<LinesError> for BuiltError {
    fn from(cause: LinesError) -> Self {
        Self::Damaged(cause.to_string())
    }
}

impl From<ServerError> for BuiltError {
    fn from(cause: ServerError) -> Self {
        Self::Damaged(cause.to_string())
    }
}

/// A built policy.
#[derive(Debug)]
pub struct Built {
    /// The policy.
    pub policy: Policy,
    /// The binary policy that SELinux would load.
    pub image: Vec<u8>,
    /// The policy as the file has it ([`crate::dump`]).
    pub model: Vec<u8>,
    /// The decision tables.
    pub tables: Vec<u8>,
    /// The policy's own levels, by identifier.
    pub levels: Vec<Level>,
    /// The statements it was compiled from.
    pub lines: Lines,
    /// The text of its `file_contexts`.
    pub file_contexts: String,
}

impl Built {
    /// Lays out what libsepol made.
    pub fn from_compiled(compiled: Compiled) -> Result<Self, BuiltError> {
        let Compiled { image, model, lines, file_contexts, .. } = compiled;
        let policy = dump::read(&model)?;
        let laid = tables::build(&policy)?;
        Ok(Self { policy, image, model, tables: laid.tables, levels: laid.levels, lines, file_contexts })
    }

    /// Reads a built policy.
    pub fn open(path: &Path) -> Result<Self, BuiltError> {
        let bytes = fs::read(path).map_err(|cause| BuiltError::Io { what: "read", path: path.to_owned(), cause })?;
        if !bytes.starts_with(MAGIC) {
            return Err(BuiltError::NotBuilt(path.to_owned()));
        }
        Self::from_bytes(&bytes)
    }

    /// Reads a built policy from bytes, which are not trusted.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BuiltError> {
        let sections = Sections::read(bytes)?;
        let built = Self {
            policy: dump::read(sections.get(Section::Model))?,
            image: sections.get(Section::Image).to_vec(),
            model: sections.get(Section::Model).to_vec(),
            tables: sections.get(Section::Tables).to_vec(),
            levels: read_levels(sections.get(Section::Levels))?,
            lines: Lines::from_bytes(sections.get(Section::Lines))?,
            file_contexts: String::from_utf8(sections.get(Section::FileContexts).to_vec())
                .map_err(|cause| BuiltError::Damaged(format!("file contexts: {cause}")))?,
        };
        built.server()?;
        Ok(built)
    }

    /// The file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (levels, lines) = (write_levels(&self.levels), self.lines.to_bytes());
        let contents: [&[u8]; 6] =
            [&self.image, &self.model, &self.tables, &levels, &lines, self.file_contexts.as_bytes()];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((SECTIONS.len() as u32).to_le_bytes());
        let mut offset = HEAD + SECTIONS.len() * ENTRY;
        for (section, content) in SECTIONS.iter().zip(contents) {
            bytes.extend((*section as u32).to_le_bytes());
            bytes.extend((offset as u64).to_le_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            offset += content.len();
        }
        contents.iter().for_each(|content| bytes.extend(*content));
        bytes
    }

    /// Writes the file; one that was there is replaced whole, or left as it was.
    pub fn write(&self, path: &Path) -> Result<(), BuiltError> {
        let error = |cause| BuiltError::Io { what: "write", path: path.to_owned(), cause };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let fresh = NamedTempFile::new_in(folder).map_err(error)?;
        fs::write(fresh.path(), self.to_bytes()).map_err(error)?;
        fresh.as_file().sync_all().map_err(error)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        fresh.as_file().set_permissions(mode).map_err(error)?;
        fresh.persist(path).map_err(|failure| error(failure.error))?;
        Ok(())
    }

    /// What answers questions.
    pub fn server(&self) -> Result<SecurityServer<'_>, BuiltError> {
        Ok(SecurityServer::new(&self.policy, &self.tables, &self.levels)?)
    }
}

/// The file's sections, found and within it.
struct Sections<'a> {
    found: Vec<(u32, &'a [u8])>,
}

impl<'a> Sections<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, BuiltError> {
        let short = || BuiltError::Damaged("it ends too early".to_owned());
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok();
        if !bytes.starts_with(MAGIC) {
            return Err(BuiltError::Damaged("it begins otherwise".to_owned()));
        }
        let found = number(8).ok_or_else(short)?;
        if found != VERSION {
            return Err(BuiltError::Version { found });
        }
        if number(12) != Some(SECTIONS.len() as u32) {
            return Err(BuiltError::Damaged("its table of sections".to_owned()));
        }
        let mut sections = Self { found: Vec::new() };
        let mut next = HEAD + SECTIONS.len() * ENTRY;
        for (index, section) in SECTIONS.iter().enumerate() {
            let at = HEAD + index * ENTRY;
            let (offset, length) = (long(at + 4).ok_or_else(short)?, long(at + 12).ok_or_else(short)?);
            if number(at) != Some(*section as u32) || offset != next {
                return Err(BuiltError::Damaged("its table of sections".to_owned()));
            }
            next = offset.checked_add(length).ok_or_else(short)?;
            sections.found.push((*section as u32, bytes.get(offset..next).ok_or_else(short)?));
        }
        if next != bytes.len() {
            return Err(BuiltError::Damaged("something follows its end".to_owned()));
        }
        Ok(sections)
    }

    fn get(&self, section: Section) -> &'a [u8] {
        self.found.iter().find(|(number, _)| *number == section as u32).map_or(&[], |(_, content)| content)
    }
}

/// A level: its sensitivity, the number of words of its categories, the words.
fn write_levels(levels: &[Level]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for level in levels {
        bytes.extend(level.sensitivity.to_le_bytes());
        bytes.extend((level.categories.0.len() as u32).to_le_bytes());
        level.categories.0.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    }
    bytes
}

fn read_levels(mut bytes: &[u8]) -> Result<Vec<Level>, BuiltError> {
    let short = || BuiltError::Damaged("its levels".to_owned());
    let mut levels = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
        let [a, b, c, d, e, f, g, h] = *head;
        let words = u32::from_le_bytes([e, f, g, h]) as usize;
        let content = words.checked_mul(8).and_then(|length| rest.split_at_checked(length)).ok_or_else(short)?;
        let (words, _) = content.0.as_chunks::<8>();
        let categories = Bits(words.iter().map(|word| u64::from_le_bytes(*word)).collect());
        levels.push(Level { sensitivity: u32::from_le_bytes([a, b, c, d]), categories });
        bytes = content.1;
    }
    Ok(levels)
}
