//! What a policy is made from: the files and folders that the user names, told apart by what is in them.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tollgate_vm::process;

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
/// The most bytes of a source: a tenth of this holds Debian's whole policy as CIL.
const MAX_SOURCE_SIZE: u64 = 256 << 20;

/// Sources of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sources {
    /// CIL, to be compiled together.
    Cil {
        /// The files; module packages are among them as the CIL that libsepol turned them into.
        files: Vec<CilFile>,
        /// Whether there were module packages: they are compiled as semodule does, which lets them repeat each other.
        modules: bool,
    },
    /// A binary policy, such as `/sys/fs/selinux/policy`.
    Image {
        /// The file that it was read from.
        name: String,
        /// What is in it.
        image: Vec<u8>,
    },
    /// A built policy, which needs no compiling.
    Built(Vec<u8>),
}

/// Why the sources cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// None were named.
    #[error("no sources: name CIL files, folders of them, module packages or a binary policy")]
    None,
    /// A file or folder could not be read.
    #[error("cannot read {}: {cause}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system reported.
        cause: io::Error,
    },
    /// A folder without sources.
    #[error("{} holds no *.cil files: name the files themselves if they are called otherwise", .0.display())]
    Empty(PathBuf),
    /// A file that cannot be a source for its size.
    #[error("{} holds more than {} MiB, more than any policy: name the policy itself", .0.display(), MAX_SOURCE_SIZE >> 20)]
    TooLarge(PathBuf),
    /// Neither text nor a format that is known.
    #[error(
        "{} is neither CIL nor a binary policy, a module package (.pp, .pp.bz2) or a policy that `tollgate policy \
         build` made", .0.display()
    )]
    Unknown(PathBuf),
    /// A whole policy beside other sources.
    #[error("{} is a whole policy and cannot be joined with other sources: name it alone, or name the CIL it was \
             compiled from", .0.display())]
    Whole(PathBuf),
    /// It could not be unpacked.
    #[error("cannot unpack {} by bzip2 -dc: {detail}", .path.display())]
    Bzip2 {
        /// The packed file.
        path: PathBuf,
        /// What bzip2 reported.
        detail: String,
    },
    /// libsepol did not take one of them.
    #[error("{}: {cause}", .path.display())]
    File {
        /// The file that was not accepted.
        path: PathBuf,
        /// What libsepol reported.
        cause: SepolError,
    },
    /// libsepol did not take them together.
    #[error(transparent)]
    Sepol(#[from] SepolError),
    /// They cannot be laid out, or a built policy is damaged.
    #[error(transparent)]
    Built(#[from] BuiltError),
}

enum Source {
    Cil(CilFile),
    Module(CilFile),
    Image(Vec<u8>),
    Built(Vec<u8>),
}

/// Reads files and folders; of a folder all `*.cil`, sorted by name.
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
    /// Lets libsepol compile or read them; `None` of a built policy, which has been.
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

    /// Compiles them and lays them out.
    pub fn build(&self, options: &Options) -> Result<Built, SourceError> {
        match (self, self.compile(options)?) {
            (Self::Built(bytes), _) => Ok(Built::from_bytes(bytes)?),
            (_, compiled) => self.lay_out(compiled.unwrap_or_default()),
        }
    }

    /// Lays out what they were compiled to.
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

/// Reads files on all processors: Debian's policy has 314, each unpacked and turned into CIL by processes of its own.
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
        bytes = unpack(path)?;
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
    // Files of /sys/fs/selinux tell no size before they are read.
    File::open(path).map_err(error)?.take(MAX_SOURCE_SIZE + 1).read_to_end(&mut bytes).map_err(error)?;
    if bytes.len() as u64 > MAX_SOURCE_SIZE { Err(SourceError::TooLarge(path.to_owned())) } else { Ok(bytes) }
}

/// What bzip2 unpacks.
fn unpack(path: &Path) -> Result<Vec<u8>, SourceError> {
    let failed = |detail: String| SourceError::Bzip2 { path: path.to_owned(), detail };
    let input = File::open(path).map_err(|cause| SourceError::Io { path: path.to_owned(), cause })?;
    let mut command = Command::new("bzip2");
    command.arg("-dc").stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program =
        process::dies_with_us(&mut command).spawn().map_err(|cause| failed(format!("{cause}; is bzip2 installed?")))?;
    let mut bytes = Vec::new();
    let read = program.stdout.take().map(|out| out.take(MAX_SOURCE_SIZE + 1).read_to_end(&mut bytes)).transpose();
    // Its end of the pipe is closed now: should it have more to say it dies of that.
    let output = program.wait_with_output().map_err(|cause| failed(cause.to_string()))?;
    read.map_err(|cause| failed(cause.to_string()))?;
    if bytes.len() as u64 > MAX_SOURCE_SIZE {
        return Err(SourceError::TooLarge(path.to_owned()));
    }
    if !output.status.success() {
        return Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(bytes)
}
