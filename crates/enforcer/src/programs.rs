//! The BPF programs and their maps: loaded once, pinned, and adopted by every later daemon.
//!
//! On the BPF file system, below [`Pins::ROOT`], there are `maps/NAME`, `links/HOOK`, and `inquiries/NAME`, the
//! programs and iterators that the daemon runs. `programs/HOOK` are programs that were loaded for a start to come
//! (`preloaded`). While there are links, enforcement goes on, whether or not a daemon runs. `datapath` has what network
//! devices run (`datapath`). `build/HASH` says which build of the programs all these belong to.

mod cgroup;
mod compiled;
mod links;
mod load;
mod place;
mod run;

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::OnceLock,
};

use libbpf_rs::{
    MapCore, MapFlags, MapHandle, MapType, OpenObject, ProgramType,
    btf::{
        Btf,
        types::{Func, FuncProto},
    },
    libbpf_sys,
};
use tollgate_abi::{enforcer::TG_IN_FORCE, paths};
use tollgate_policy::libbpf;

pub use cgroup::HOOK as PEERS;
pub(crate) use compiled::{are_for, capacity};
pub use links::{attach, attached, detach, is_attached, pinned, unpin};
pub(crate) use links::{left_by_another_build, link, of_this_build};
pub use load::{Loading, load};
pub use place::{Place, Way};
pub(crate) use run::run;

/// The map of recorded checks, and its size.
const RECORD: &str = "checks";
const RECORD_BYTES: u32 = 1 << 24;

/// The iterator over the threads of one process, which is named when it is run.
pub(crate) const THREADS: &str = "threads";

/// `bpf/guard.bpf.c`.
pub(crate) static GUARD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guard.bpf.o"));

/// Distinguishes this build of the programs from others, whose maps of the same names may have another content: FNV-1a.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let hash = compiled::bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{hash:016x}")
    })
}

/// Why the programs are not in the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramsError {
    /// The kernel's types are not known.
    #[error("this kernel does not publish its types ({cause}): boot one with CONFIG_DEBUG_INFO_BTF")]
    NoTypes {
        /// Why they could not be read.
        cause: libbpf_rs::Error,
    },
    /// The kernel refused an operation.
    #[error("cannot {what}: {cause}{}", .said.lines().map(|line| format!("\n  {line}")).collect::<String>())]
    Refused {
        /// The operation, as an infinitive: "open the map labels".
        what: String,
        /// What the kernel returned.
        cause: libbpf_rs::Error,
        /// The messages of libbpf and the verifier.
        said: String,
    },
    /// The pins are not as they should be.
    #[error("{}: {cause}", .path.display())]
    Pins {
        /// Path of the pin.
        path: PathBuf,
        /// What is wrong with it.
        cause: io::Error,
    },
    /// The pins belong to another build of the programs.
    #[error(
        "enforcement was started by another version of this program, which this one cannot take over: end it with \
         `tollgate stop --force`, then start it again"
    )]
    AnotherVersion,
}

pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> ProgramsError {
    move |cause| ProgramsError::Refused { what: what.into(), cause, said: String::new() }
}

/// What libbpf returned: a descriptor or 0, or an error number below 0.
fn checked(returned: i32) -> libbpf_rs::Result<i32> {
    if returned < 0 { Err(libbpf_rs::Error::from_raw_os_error(-returned)) } else { Ok(returned) }
}

/// Does what libbpf may say something about; where that fails, the error has what it said.
pub(crate) fn listen<T>(what: &str, work: impl FnOnce() -> Result<T, libbpf_rs::Error>) -> Result<T, ProgramsError> {
    let (result, said) = libbpf::listen(work);
    result.map_err(|cause| ProgramsError::Refused { what: what.to_owned(), cause, said })
}

/// The directory of pins.
#[derive(Debug, Clone)]
pub struct Pins(PathBuf);

impl Default for Pins {
    fn default() -> Self {
        Self(Self::ROOT.into())
    }
}

impl Pins {
    /// The default directory.
    pub const ROOT: &str = paths::PINS;

    /// The directory of the guard's pins.
    #[must_use]
    pub fn of_guard() -> Self {
        Self(paths::GUARD_PINS.into())
    }

    /// The directory of a descriptor of this process, which stays open.
    #[must_use]
    pub fn of(directory: BorrowedFd<'_>) -> Self {
        // This is the directory itself, not the link to it.
        Self(format!("/proc/self/fd/{}/.", directory.as_raw_fd()).into())
    }

    /// Another directory, for tests.
    #[cfg(test)]
    pub(crate) fn below(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// Path of the directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Path of the pin of a map.
    #[must_use]
    pub fn map(&self, name: &str) -> PathBuf {
        self.0.join("maps").join(name)
    }

    /// Path of the pin of the link of a hook's program.
    #[must_use]
    pub fn link(&self, hook: &str) -> PathBuf {
        self.0.join("links").join(hook)
    }

    /// Path of the pin of a hook's program that is loaded before enforcement starts.
    #[must_use]
    pub fn program(&self, hook: &str) -> PathBuf {
        self.0.join("programs").join(hook)
    }

    /// Path of the pin of a program that the daemon runs.
    #[must_use]
    pub fn inquiry(&self, name: &str) -> PathBuf {
        self.0.join("inquiries").join(name)
    }

    /// Path of the directory of what network devices run.
    pub(crate) fn datapath(&self) -> PathBuf {
        self.0.join("datapath")
    }

    /// Path of the directory that says which build of the programs is pinned.
    pub(crate) fn build(&self) -> PathBuf {
        self.0.join("build").join(build())
    }

    pub(crate) fn make(&self) -> Result<(), ProgramsError> {
        let [maps, links, inquiries] = ["maps", "links", "inquiries"].map(|name| self.0.join(name));
        // The build comes first: pins without a link are recognized by it as left over, whatever build they belong to.
        for path in [self.build(), maps, links, inquiries] {
            fs::create_dir_all(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
        }
        Ok(())
    }
}

/// Opens a pinned map.
pub fn map(pins: &Pins, name: &str) -> Result<MapHandle, ProgramsError> {
    MapHandle::from_pinned_path(pins.map(name)).map_err(refused(format!("open the map {name}")))
}

/// The map of the generation in force.
pub(crate) fn in_force(generations: &MapHandle) -> Result<MapHandle, ProgramsError> {
    generation(generations, TG_IN_FORCE)
}

/// The map of one of the generations (`enum tg_which`).
pub(crate) fn generation(generations: &MapHandle, which: u32) -> Result<MapHandle, ProgramsError> {
    let found = generations.lookup(&which.to_ne_bytes(), MapFlags::ANY);
    let found = found.map_err(refused("find a generation"))?.unwrap_or_default();
    let id = u32::from_ne_bytes(found.try_into().unwrap_or_default());
    MapHandle::from_map_id(id).map_err(refused("open a generation"))
}

/// What the running kernel's types say of its hooks.
#[derive(Debug)]
struct Kernel {
    /// The hooks for which there are programs.
    hooks: Vec<String>,
    /// Whether `inode_setattr` has an idmapping.
    setattr_mapped: bool,
    /// Whether `perf_event_open` has the event's attributes.
    perf_attributes: bool,
}

/// Read only once: a kernel has a hundred thousand types, and they do not change.
fn kernel() -> Result<&'static Kernel, ProgramsError> {
    static FOUND: OnceLock<Kernel> = OnceLock::new();
    match FOUND.get() {
        Some(found) => Ok(found),
        None => look_up_kernel().map(|found| FOUND.get_or_init(|| found)),
    }
}

/// The hooks of the running kernel for which there are programs.
pub fn hooks() -> Result<Vec<String>, ProgramsError> {
    Ok(kernel()?.hooks.clone())
}

fn look_up_kernel() -> Result<Kernel, ProgramsError> {
    let btf = Btf::from_vmlinux().map_err(|cause| ProgramsError::NoTypes { cause })?;
    // The types are searched once, not once per hook.
    let functions: HashSet<&OsStr> = btf.type_by_kind::<Func<'_>>().filter_map(|function| function.name()).collect();
    let object = compiled::any().enforcer()?;
    let found = object.progs().filter_map(|program| {
        let hook = program.name().to_string_lossy().into_owned();
        // A program for a hook that some kernels lack is attached to the function that calls the hook; one for a hook that
        // cannot answer to the function that can.
        let function = match program.prog_type() {
            ProgramType::Tracing => format!("security_{hook}"),
            ProgramType::CgroupSockopt => cgroup::FUNCTION.to_owned(),
            _ => format!("bpf_lsm_{hook}"),
        };
        functions.contains(OsStr::new(&function)).then_some(hook)
    });
    let hooks = found.collect();
    let arguments = |hook: &str| {
        let hook = btf.type_by_name::<Func<'_>>(&format!("bpf_lsm_{hook}")).and_then(|hook| hook.next_type());
        hook.and_then(|hook| FuncProto::try_from(hook).ok()).map_or(0, |hook| hook.iter().count())
    };
    let (setattr_mapped, perf_attributes) = (arguments("inode_setattr") > 2, arguments("perf_event_open") > 1);
    Ok(Kernel { hooks, setattr_mapped, perf_attributes })
}

/// All hooks for which there are programs.
pub fn all() -> Result<Vec<String>, ProgramsError> {
    let object = compiled::any().enforcer()?;
    let programs = object.progs().filter(|program| !is_inquiry(program.section()));
    Ok(programs.map(|program| program.name().to_string_lossy().into_owned()).collect())
}

/// The pins of enforcement in one directory.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    pub(crate) directory: &'static str,
    /// The names of those that are always there while something is enforced.
    pub(crate) all: Vec<String>,
    /// The names of those that may be there.
    pub(crate) some: Vec<String>,
}

/// All pins of enforcement, by their directories.
pub(crate) fn pins_of_all() -> Result<[Pinned; 6], ProgramsError> {
    let (object, datapath) = (compiled::any().enforcer()?, compiled::any().datapath()?);
    let name = |program: libbpf_rs::OpenProgram<'_>| program.name().to_string_lossy().into_owned();
    let maps = |object: &OpenObject| object.maps().map(|map| map_name(&map.name().to_string_lossy())).collect();
    let inquiries = object.progs().filter(|program| is_inquiry(program.section())).map(name).collect();
    let devices = datapath.progs().map(name).chain(["links", "qdiscs"].map(str::to_owned)).collect();
    let hooks = all()?;
    Ok([
        Pinned { directory: "build", all: vec![build().to_owned()], ..Pinned::default() },
        Pinned { directory: "maps", all: maps(&object), some: maps(&datapath) },
        Pinned { directory: "inquiries", all: inquiries, ..Pinned::default() },
        Pinned { directory: "links", some: hooks.clone(), ..Pinned::default() },
        // There are none while something is enforced.
        Pinned { directory: "programs", some: hooks, ..Pinned::default() },
        Pinned { directory: "datapath", some: devices, ..Pinned::default() },
    ])
}

/// What network devices run, with the pinned maps of the programs of hooks.
pub fn open_datapath(pins: &Pins) -> Result<OpenObject, ProgramsError> {
    compiled::beside(pins, 0)?.datapath()
}

/// Makes the map in which checks are recorded, with room for half a million. Otherwise it has room for none.
pub(crate) fn make_record(pins: &Pins) -> Result<(), ProgramsError> {
    pins.make()?;
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    let mut map = MapHandle::create(MapType::RingBuf, Some(RECORD), 0, 0, RECORD_BYTES, &options)
        .map_err(refused("make room for records of checks"))?;
    map.pin(pins.map(RECORD)).map_err(refused("pin the map of recorded checks"))
}

/// Whether the daemon runs the programs of a section: those that answer questions, and iterators. All others run at
/// hooks.
pub(crate) fn is_inquiry(section: &OsStr) -> bool {
    section.as_bytes() == b"syscall" || section.as_bytes().starts_with(b"iter/")
}

/// The name of a map's pin. libbpf calls the global variables `OBJECT.bss`.
pub(crate) fn map_name(name: &str) -> String {
    name.rsplit_once('.').map_or(name, |(_, section)| section).to_owned()
}
