//! The sources of a policy: the files and directories that the user names. Their kind is recognized by their content.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use bzip2::read::MultiBzDecoder;

use crate::{
    built::{self, Built, BuiltError},
    origin::{self, Origin},
    sepol::{self, CilFile, Compiled, Options, SepolError},
};

/// `SELINUX_MAGIC`, `SEPOL_MODULE_PACKAGE_MAGIC` and `SEPOL_MODULE_MAGIC` of libsepol's headers.
const POLICY: u32 = 0xf97c_ff8c;
const PACKAGE: u32 = 0xf97c_ff8f;
const MODULE: u32 = 0xf97c_ff8d;
const BZIP2: &[u8] = b"BZh";
/// The maximum size of a source, in bytes. A tenth of this holds Debian's whole policy as CIL.
const MAX_SOURCE_SIZE: u64 = 256 << 20;

/// The sources of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sources {
    /// CIL files, which are compiled together.
    Cil {
        /// The files, including module packages, as the CIL that libsepol turned them into.
        files: Vec<CilFile>,
        /// Whether there were module packages. Then declarations may be repeated, as in semodule.
        modules: bool,
    },
    /// A binary policy, such as `/sys/fs/selinux/policy`.
    Image {
        /// The file that it was read from.
        name: String,
        /// Content of the file.
        image: Vec<u8>,
    },
    /// A built policy, which need not be compiled.
    Built(Vec<u8>),
}

/// Why the sources cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// No sources were named.
    #[error("no sources: name CIL files, folders of them, module packages or a binary policy")]
    None,
    /// A file or directory could not be read.
    #[error("cannot read {}: {cause}", .path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// A directory without sources.
    #[error("{} has no *.cil files: name the files themselves if they have other names", .0.display())]
    Empty(PathBuf),
    /// A file that is too large to be a source.
    #[error("{} holds more than {} MiB, more than any policy: name the policy itself", .0.display(), MAX_SOURCE_SIZE >> 20)]
    TooLarge(PathBuf),
    /// A file in an unknown format.
    #[error(
        "{} is neither CIL nor a binary policy, a module package (.pp, .pp.bz2) or a policy that `tollgate policy \
         build` made", .0.display()
    )]
    Unknown(PathBuf),
    /// A complete policy together with other sources.
    #[error("{} is a whole policy and cannot be joined with other sources: name it alone, or name the CIL it was \
             compiled from", .0.display())]
    Whole(PathBuf),
    /// A file could not be unpacked.
    #[error("cannot unpack {}: {cause}", .path.display())]
    Bzip2 {
        /// The packed file.
        path: PathBuf,
        /// What the decoder returned.
        cause: io::Error,
    },
    /// libsepol refused one of the files.
    #[error("{}: {cause}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What libsepol said.
        cause: SepolError,
    },
    /// libsepol refused them together.
    #[error(transparent)]
    Sepol(#[from] SepolError),
    /// They do not fit into tables, or a built policy is damaged.
    #[error(transparent)]
    Built(#[from] BuiltError),
}

enum Source {
    Cil(CilFile),
    Module(CilFile),
    Image(Vec<u8>),
    Built(Vec<u8>),
}

/// Reads files and directories. In a directory, these are all `*.cil` files, sorted by name.
pub fn read(paths: &[PathBuf]) -> Result<Sources, SourceError> {
    let files = files(paths)?;
    let (mut cil, mut modules, mut whole) = (Vec::new(), false, None);
    for (path, source) in files.iter().zip(read_all(&files)?) {
        match source {
            Source::Cil(file) => cil.push(file),
            Source::Module(file) => {
                modules = true;
                cil.push(file);
            }
            Source::Image(image) => {
                whole = Some((path, Sources::Image { name: path.display().to_string(), image }));
            }
            Source::Built(bytes) => whole = Some((path, Sources::Built(bytes))),
        }
    }
    match whole {
        Some((path, _)) if files.len() > 1 => Err(SourceError::Whole(path.clone())),
        Some((_, sources)) => Ok(sources),
        None if cil.is_empty() => Err(SourceError::None),
        None => Ok(Sources::Cil { files: cil, modules }),
    }
}

impl Sources {
    /// Lets libsepol compile or read them; `None`: it is a built policy already.
    pub fn compile(&self, options: &Options) -> Result<Option<Compiled>, SourceError> {
        match self {
            Self::Cil { files, modules } => {
                let options = Options { multiple_decls: options.multiple_decls || *modules, ..*options };
                Ok(Some(sepol::compile(files, &options)?))
            }
            Self::Image { image, .. } => Ok(Some(sepol::read(image)?)),
            Self::Built(_) => Ok(None),
        }
    }

    /// Compiles the sources and makes tables of them.
    pub fn build(&self, options: &Options) -> Result<Built, SourceError> {
        match (self, self.compile(options)?) {
            (Self::Built(bytes), _) => Ok(Built::from_bytes(bytes)?),
            (_, compiled) => self.lay_out(compiled.unwrap_or_default()),
        }
    }

    /// Makes tables of what the sources were compiled into.
    pub fn lay_out(&self, compiled: Compiled) -> Result<Built, SourceError> {
        let sources = match self {
            Self::Cil { files, .. } => files.iter().map(|file| origin::Source::new(&file.name, &file.text)).collect(),
            Self::Image { name, image } => vec![origin::Source::new(name, image)],
            Self::Built(_) => Vec::new(),
        };
        let origin = (!sources.is_empty()).then(|| Origin::now(sources));
        Ok(Built { origin, ..Built::from_compiled(compiled)? })
    }
}

/// The files that `paths` name.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SourceError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|cause| SourceError::Io { path: path.clone(), cause })?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        found.retain(|file| file.extension().is_some_and(|extension| extension == "cil"));
        found.sort();
        if found.is_empty() {
            return Err(SourceError::Empty(path.clone()));
        }
        files.extend(found);
    }
    Ok(files)
}

/// Reads files on all processors. Debian's policy has 314, and each is unpacked and turned into CIL by processes of its
/// own.
fn read_all(files: &[PathBuf]) -> Result<Vec<Source>, SourceError> {
    let next = AtomicUsize::new(0);
    let sources = Mutex::new(Vec::new());
    let work = || {
        while let Some((at, file)) = files.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            let source = read_one(file);
            if source.is_err() {
                next.store(files.len(), Ordering::Relaxed);
            }
            sources.lock().unwrap_or_else(PoisonError::into_inner).push((at, source));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut sources = sources.into_inner().unwrap_or_else(PoisonError::into_inner);
    sources.sort_by_key(|(at, _)| *at);
    sources.into_iter().map(|(_, source)| source).collect()
}

fn read_one(path: &Path) -> Result<Source, SourceError> {
    let mut bytes = read_file(path)?;
    if bytes.starts_with(BZIP2) {
        bytes = unpack(&bytes, path)?;
    }
    let name = path.display().to_string();
    let magic = bytes.first_chunk().map(|magic| u32::from_le_bytes(*magic));
    match magic {
        Some(POLICY) => Ok(Source::Image(bytes)),
        Some(PACKAGE | MODULE) => {
            let text =
                sepol::module_to_cil(&bytes).map_err(|cause| SourceError::File { path: path.to_owned(), cause })?;
            Ok(Source::Module(CilFile { name, text }))
        }
        _ if bytes.starts_with(built::MAGIC) => Ok(Source::Built(bytes)),
        _ if bytes.contains(&0) => Err(SourceError::Unknown(path.to_owned())),
        _ => Ok(Source::Cil(CilFile { name, text: bytes })),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, SourceError> {
    let error = |cause| SourceError::Io { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    // Files of /sys/fs/selinux have no known size before they are read.
    File::open(path).map_err(error)?.take(MAX_SOURCE_SIZE + 1).read_to_end(&mut bytes).map_err(error)?;
    if bytes.len() as u64 > MAX_SOURCE_SIZE { Err(SourceError::TooLarge(path.to_owned())) } else { Ok(bytes) }
}

/// Unpacks what bzip2 packed.
fn unpack(packed: &[u8], path: &Path) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let read = MultiBzDecoder::new(packed).take(MAX_SOURCE_SIZE + 1).read_to_end(&mut bytes);
    read.map_err(|cause| SourceError::Bzip2 { path: path.to_owned(), cause })?;
    if bytes.len() as u64 > MAX_SOURCE_SIZE { Err(SourceError::TooLarge(path.to_owned())) } else { Ok(bytes) }
}
