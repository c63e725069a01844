//! A built policy: one file with everything that answers need. It is written as a whole or not at all.
//!
//! The file consists of `TGPOLICY`, the version of the format, the number of sections, a table of (section, offset,
//! length), and the sections. All numbers are little endian; those at the beginning have 4 bytes, those in the table 8.
//! [`Section`] lists the sections.
//!
//! Format 1, which did not record what a policy was built from, is still read, so that a new version of the daemon can
//! read the policy of an older one. So are files whose decision tables have an earlier version.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, Permissions},
    io::{self, Read, Write},
    ops::Range,
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::Builder;

use crate::{
    decide::Tables,
    dump::{self, DumpError},
    lines::{Lines, LinesError},
    model::{Bits, Level, Policy},
    origin::Origin,
    sepol::Compiled,
    server::{SecurityServer, ServerError},
    tables::{self, Laid, TableLimit},
};

/// The first bytes of a built policy.
pub const MAGIC: &[u8; 8] = b"TGPOLICY";
/// The version of the format that this program writes and reads.
pub const VERSION: u32 = 2;
/// The format before, which lacks [`Section::Origin`].
const WITHOUT_ORIGIN: u32 = 1;

/// The parts of a built policy, in the order in which they are in the file.
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
    /// The statements that it was compiled from, with file and line ([`crate::lines`]).
    Lines = 5,
    /// The text of its `file_contexts`.
    FileContexts = 6,
    /// What the policy was built from ([`crate::origin`]), as JSON.
    Origin = 7,
}

impl Section {
    /// The name by which manifests of a fleet know it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Model => "model",
            Self::Tables => "tables",
            Self::Levels => "levels",
            Self::Lines => "lines",
            Self::FileContexts => "file_contexts",
            Self::Origin => "origin",
        }
    }
}

/// All sections, in the order in which they are in the file.
pub const SECTIONS: [Section; 7] = [
    Section::Image,
    Section::Model,
    Section::Tables,
    Section::Levels,
    Section::Lines,
    Section::FileContexts,
    Section::Origin,
];
const ENTRY: usize = 4 + 8 + 8;
const HEADER_LENGTH: usize = 8 + 4 + 4;
const TABLE_END: usize = HEADER_LENGTH + SECTIONS.len() * ENTRY;
/// The maximum size of a section, in bytes. A child that runs libsepol never sends more, and a sparse file can claim
/// any length.
const MAX_SECTION_SIZE: usize = 256 << 20;

/// Why a built policy could not be read, made or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuiltError {
    /// A file could not be read or written.
    #[error("cannot {what} {}: {cause}", .path.display())]
    #[expect(missing_docs, reason = "the names say it")]
    Io {
        /// What was attempted.
        what: &'static str,
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// The file does not begin like a built policy.
    #[error("{}: not a built policy: make one with `tollgate policy build {} -o OUT`", .0.display(), .0.display())]
    NotBuilt(PathBuf),
    /// The file was built by another version of this program.
    #[error(
        "a built policy of format {found}, but this program reads format {VERSION}: build it again with `tollgate policy build`"
    )]
    Version {
        /// The version of the format that the file has.
        found: u32,
    },
    /// The file is incomplete, or its parts do not fit each other.
    #[error("damaged or cut short ({0}): build it again with `tollgate policy build`")]
    Damaged(String),
    /// The policy does not fit into decision tables.
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
    /// The policy as libsepol understood it.
    pub policy: Policy,
    /// The binary policy that SELinux would load.
    pub image: Vec<u8>,
    /// The policy as the file stores it ([`crate::dump`]).
    pub model: Vec<u8>,
    /// The decision tables.
    pub tables: Vec<u8>,
    /// The policy's own levels, by identifier.
    pub levels: Vec<Level>,
    /// The statements it was compiled from, with file and line.
    pub lines: Lines,
    /// The text of its `file_contexts`.
    pub file_contexts: String,
    /// What the policy was built from; `None`: the file does not say.
    pub origin: Option<Origin>,
}

impl Built {
    /// Makes tables of what libsepol has compiled.
    pub fn from_compiled(compiled: Compiled) -> Result<Self, BuiltError> {
        let Compiled { image, model, lines, file_contexts, .. } = compiled;
        let policy = dump::read(&model)?;
        let laid = tables::build(&policy)?;
        Ok(Self { policy, image, model, tables: laid.tables, levels: laid.levels, lines, file_contexts, origin: None })
    }

    /// Reads a built policy.
    pub fn open(path: &Path) -> Result<Self, BuiltError> {
        Self::from_contents(contents(path, &SECTIONS)?)
    }

    /// Reads a built policy from bytes, which are not trusted.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BuiltError> {
        let places = places(bytes, bytes.len())?;
        Self::from_contents(places.map(|place| bytes.get(place).unwrap_or_default().to_vec()))
    }

    fn from_contents(
        [image, model, tables, levels, lines, file_contexts, origin]: Contents,
    ) -> Result<Self, BuiltError> {
        let file_contexts = String::from_utf8(file_contexts);
        let policy = dump::read(&model)?;
        let laid = match Tables::are_older(&tables) {
            true => tables::build(&policy)?,
            false => Laid { tables, levels: read_levels(&levels)? },
        };
        let built = Self {
            policy,
            image,
            model,
            tables: laid.tables,
            levels: laid.levels,
            lines: Lines::from_bytes(&lines)?,
            file_contexts: file_contexts.map_err(|cause| BuiltError::Damaged(format!("file contexts: {cause}")))?,
            origin: read_origin(&origin)?,
        };
        built.server()?;
        Ok(built)
    }

    /// The content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (levels, lines) = (write_levels(&self.levels), self.lines.to_bytes());
        let origin = Origin::to_bytes(self.origin.as_ref());
        let contents: [&[u8]; SECTIONS.len()] =
            [&self.image, &self.model, &self.tables, &levels, &lines, self.file_contexts.as_bytes(), &origin];
        join(&contents)
    }

    /// Writes the file. An existing file, even behind a link, is replaced as a whole, or left as it was. Anything else,
    /// such as /dev/null, is written to.
    pub fn write(&self, path: &Path) -> Result<(), BuiltError> {
        let error = |cause| BuiltError::Io { what: "write", path: path.to_owned(), cause };
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
            return fs::write(&target, self.to_bytes()).map_err(error);
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let readable = Permissions::from_mode(0o644);
        let mut fresh = Builder::new().permissions(readable).tempfile_in(folder).map_err(error)?;
        fresh.write_all(&self.to_bytes()).map_err(error)?;
        fresh.as_file().sync_all().map_err(error)?;
        fresh.persist(&target).map_err(|failure| error(failure.error))?;
        Ok(())
    }

    /// A server that answers questions from this policy.
    pub fn server(&self) -> Result<SecurityServer<'_>, BuiltError> {
        Ok(SecurityServer::new(&self.policy, &self.tables, &self.levels)?)
    }
}

/// The sections of a built policy, in their order; format 1 has no [`Section::Origin`]. Their contents are not looked at.
pub fn split(bytes: &[u8]) -> Result<Vec<(Section, &[u8])>, BuiltError> {
    let places = places(bytes, bytes.len())?;
    let has_origin = !bytes[MAGIC.len()..].starts_with(&WITHOUT_ORIGIN.to_le_bytes());
    let sections = SECTIONS.into_iter().zip(places).filter(|(section, _)| has_origin || *section != Section::Origin);
    Ok(sections.map(|(section, place)| (section, bytes.get(place).unwrap_or_default())).collect())
}

/// The file with these contents of sections, which are all, or all but the last for format 1: what [`split`] has split.
#[must_use]
pub fn join(contents: &[&[u8]]) -> Vec<u8> {
    let version = if contents.len() == SECTIONS.len() { VERSION } else { WITHOUT_ORIGIN };
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend((contents.len() as u32).to_le_bytes());
    let mut offset = HEADER_LENGTH + contents.len() * ENTRY;
    for (section, content) in SECTIONS.iter().zip(contents) {
        bytes.extend((*section as u32).to_le_bytes());
        bytes.extend((offset as u64).to_le_bytes());
        bytes.extend((content.len() as u64).to_le_bytes());
        offset += content.len();
    }
    contents.iter().for_each(|content| bytes.extend(*content));
    bytes
}

/// The parts of a built policy that answer questions. `policy query` reads only these; for Debian's policy they are a
/// third of the file.
#[derive(Debug)]
pub struct Answering {
    policy: Policy,
    tables: Vec<u8>,
    levels: Vec<Level>,
}

impl Answering {
    /// Reads these parts from a built policy. Its rules, statements and image are not read.
    pub fn open(path: &Path) -> Result<Self, BuiltError> {
        let [_, model, tables, levels, ..] = contents(path, &[Section::Model, Section::Tables, Section::Levels])?;
        if Tables::are_older(&tables) {
            return Built::open(path).map(Self::from);
        }
        Ok(Self { policy: dump::read_names(&model)?, tables, levels: read_levels(&levels)? })
    }

    /// A server that answers questions from this policy.
    pub fn server(&self) -> Result<SecurityServer<'_>, BuiltError> {
        Ok(SecurityServer::new(&self.policy, &self.tables, &self.levels)?)
    }
}

impl From<Built> for Answering {
    fn from(Built { policy, tables, levels, .. }: Built) -> Self {
        Self { policy, tables, levels }
    }
}

/// What a policy decides and labels, and what it was built from. This is enough to compare two policies.
#[derive(Debug)]
pub struct Identity {
    image: Vec<u8>,
    file_contexts: Vec<u8>,
    /// What the policy was built from; `None`: the file does not say.
    pub origin: Option<Origin>,
}

impl Identity {
    /// Reads these parts from a built policy.
    pub fn open(path: &Path) -> Result<Self, BuiltError> {
        let wanted = [Section::Image, Section::FileContexts, Section::Origin];
        let [image, _, _, _, _, file_contexts, origin] = contents(path, &wanted)?;
        Ok(Self { image, file_contexts, origin: read_origin(&origin)? })
    }

    /// Whether both policies decide and label in the same way, whatever they were built from.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.image, &self.file_contexts) == (&other.image, &other.file_contexts)
    }
}

/// The contents of the sections, in their order.
type Contents = [Vec<u8>; SECTIONS.len()];

/// The contents of the sections that are wanted; the others stay empty.
fn contents(path: &Path, wanted: &[Section]) -> Result<Contents, BuiltError> {
    let error = |cause| BuiltError::Io { what: "read", path: path.to_owned(), cause };
    let mut file = File::open(path).map_err(error)?;
    let mut head = Vec::new();
    Read::by_ref(&mut file).take(TABLE_END as u64).read_to_end(&mut head).map_err(error)?;
    if !head.starts_with(MAGIC) {
        return Err(BuiltError::NotBuilt(path.to_owned()));
    }
    let length = file.metadata().map_err(error)?.len();
    let places = places(&head, usize::try_from(length).unwrap_or(usize::MAX))?;
    let mut contents = Contents::default();
    for (content, (section, place)) in contents.iter_mut().zip(SECTIONS.iter().zip(places)) {
        if wanted.contains(section) {
            content.resize(place.len(), 0);
            file.read_exact_at(content, place.start as u64).map_err(error)?;
        }
    }
    Ok(contents)
}

/// Where the sections are in a file of `length` bytes, according to its first `TABLE_END` bytes.
fn places(head: &[u8], length: usize) -> Result<[Range<usize>; SECTIONS.len()], BuiltError> {
    let short = || BuiltError::Damaged("it ends too early".to_owned());
    let table = || BuiltError::Damaged("its table of sections".to_owned());
    let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| usize::try_from(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?)).ok();
    if !head.starts_with(MAGIC) {
        return Err(BuiltError::Damaged("its beginning".to_owned()));
    }
    let sections = match number(8).ok_or_else(short)? {
        VERSION => &SECTIONS[..],
        WITHOUT_ORIGIN => &SECTIONS[..SECTIONS.len() - 1],
        found => return Err(BuiltError::Version { found }),
    };
    if number(12).ok_or_else(short)? as usize != sections.len() {
        return Err(table());
    }
    let mut next = HEADER_LENGTH + sections.len() * ENTRY;
    let mut places = [const { 0..0 }; SECTIONS.len()];
    for ((index, section), place) in sections.iter().enumerate().zip(&mut places) {
        let at = HEADER_LENGTH + index * ENTRY;
        let (offset, size) = (long(at + 4).ok_or_else(short)?, long(at + 12).ok_or_else(short)?);
        if number(at) != Some(*section as u32) || offset != next || size > MAX_SECTION_SIZE {
            return Err(table());
        }
        next = offset.checked_add(size).filter(|end| *end <= length).ok_or_else(short)?;
        *place = offset..next;
    }
    if next == length { Ok(places) } else { Err(BuiltError::Damaged("something follows its end".to_owned())) }
}

fn read_origin(bytes: &[u8]) -> Result<Option<Origin>, BuiltError> {
    Origin::from_bytes(bytes).map_err(|cause| BuiltError::Damaged(format!("what it was built from: {cause}")))
}

/// Writes each level: its sensitivity, the number of words of its categories, and the words.
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
