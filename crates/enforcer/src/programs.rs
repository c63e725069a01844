//! The BPF programs and their maps: loaded once, pinned, adopted by every later daemon.
//!
//! On the BPF file system, below [`Pins::ROOT`]: `maps/NAME`, `links/HOOK`, and `inquiries/NAME`, the programs and
//! iterators that the daemon runs. While there are links enforcement goes on, whether or not a daemon runs. `build/HASH` says of which build
//! of the programs all these are.

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
    IterOpts, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, ProgramType,
    btf::{
        Btf,
        types::{Func, FuncProto},
    },
};
use tollgate_abi::{
    bytes_of,
    enforcer::{TG_IN_FORCE, tg_kernel},
    paths,
};
use tollgate_policy::libbpf;

use crate::shares::Size;

/// The iterator of the threads of one process; who runs it says of which.
pub(crate) const THREADS: &str = "threads";

/// `bpf/enforcer.bpf.c`.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/enforcer.bpf.o"));

/// Tells this build of the programs from others, which may give maps of the same names other contents: FNV-1a.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let hash = OBJECT
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{hash:016x}")
    })
}

/// Why the programs are not in the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramsError {
    /// The kernel's types are not known.
    #[error("this kernel tells no types of its own ({cause}): one with CONFIG_DEBUG_INFO_BTF is needed")]
    NoTypes {
        /// Why they could not be read.
        cause: libbpf_rs::Error,
    },
    /// The kernel refused.
    #[error("cannot {what}: {cause}{}", .said.lines().map(|line| format!("\n  {line}")).collect::<String>())]
    Refused {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: libbpf_rs::Error,
        /// What libbpf and the verifier said.
        said: String,
    },
    /// The pins are not as they should be.
    #[error("{}: {cause}", .path.display())]
    Pins {
        /// The path.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// The pins are of another build of the programs.
    #[error(
        "enforcement was started by another version of this program, which this one cannot take over: end it with \
         `tollgate stop --force`, then start it again"
    )]
    AnotherVersion,
}

pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> ProgramsError {
    move |cause| ProgramsError::Refused { what: what.into(), cause, said: String::new() }
}

/// Does what libbpf may say something about; where that fails, the error has what it said.
fn listen<T>(what: &str, work: impl FnOnce() -> Result<T, libbpf_rs::Error>) -> Result<T, ProgramsError> {
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
    /// Where they are unless somebody says otherwise.
    pub const ROOT: &str = paths::PINS;

    /// The directory of a descriptor of this process, which stays open.
    #[must_use]
    pub fn of(directory: BorrowedFd<'_>) -> Self {
        // The directory itself, not the link to it.
        Self(format!("/proc/self/fd/{}/.", directory.as_raw_fd()).into())
    }

    /// A directory in place of it, for tests.
    #[cfg(test)]
    pub(crate) fn below(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// The pin of a map.
    #[must_use]
    pub fn map(&self, name: &str) -> PathBuf {
        self.0.join("maps").join(name)
    }

    /// The pin of the link of a hook's program.
    #[must_use]
    pub fn link(&self, hook: &str) -> PathBuf {
        self.0.join("links").join(hook)
    }

    /// The pin of a program that the daemon runs.
    #[must_use]
    pub fn inquiry(&self, name: &str) -> PathBuf {
        self.0.join("inquiries").join(name)
    }

    /// The directory that says which build of the programs is pinned.
    fn build(&self) -> PathBuf {
        self.0.join("build").join(build())
    }

    fn make(&self) -> Result<(), ProgramsError> {
        let [maps, links, inquiries] = ["maps", "links", "inquiries"].map(|name| self.0.join(name));
        // The build first: what has no link is known by it to be left over, whosever it is.
        for path in [self.build(), maps, links, inquiries] {
            fs::create_dir_all(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
        }
        Ok(())
    }
}

/// A pinned map, opened.
pub fn map(pins: &Pins, name: &str) -> Result<MapHandle, ProgramsError> {
    MapHandle::from_pinned_path(pins.map(name)).map_err(refused(format!("open the map {name}")))
}

/// The map of the generation in force.
pub(crate) fn in_force(generations: &MapHandle) -> Result<MapHandle, ProgramsError> {
    generation(generations, TG_IN_FORCE)
}

/// The map of the generation in force, or of another one (`enum tg_which`).
pub(crate) fn generation(generations: &MapHandle, which: u32) -> Result<MapHandle, ProgramsError> {
    let found = generations.lookup(&which.to_ne_bytes(), MapFlags::ANY);
    let found = found.map_err(refused("find a generation"))?.unwrap_or_default();
    let id = u32::from_ne_bytes(found.try_into().unwrap_or_default());
    MapHandle::from_map_id(id).map_err(refused("open a generation"))
}

/// The hooks that the running kernel has, of those there are programs for. Looked up once: its types do not change.
pub fn hooks() -> Result<Vec<String>, ProgramsError> {
    static FOUND: OnceLock<Vec<String>> = OnceLock::new();
    match FOUND.get() {
        Some(found) => Ok(found.clone()),
        None => look_up_hooks().inspect(|found| drop(FOUND.set(found.clone()))),
    }
}

fn look_up_hooks() -> Result<Vec<String>, ProgramsError> {
    let btf = Btf::from_vmlinux().map_err(|cause| ProgramsError::NoTypes { cause })?;
    // A kernel has a hundred thousand types: looked through once, not once for each hook.
    let functions: HashSet<&OsStr> = btf.type_by_kind::<Func<'_>>().filter_map(|function| function.name()).collect();
    let object = open()?;
    let found = object.progs().filter_map(|program| {
        let hook = program.name().to_string_lossy().into_owned();
        // What not every kernel has a hook for is attached to what would call it.
        let caller = if program.prog_type() == ProgramType::Tracing { "security" } else { "bpf_lsm" };
        functions.contains(OsStr::new(&format!("{caller}_{hook}"))).then_some(hook)
    });
    Ok(found.collect())
}

/// All hooks that there are programs for.
pub fn all() -> Result<Vec<String>, ProgramsError> {
    let object = open()?;
    let programs = object.progs().filter(|program| !is_inquiry(program.section()));
    Ok(programs.map(|program| program.name().to_string_lossy().into_owned()).collect())
}

/// The names of the pins that enforcement has below each directory: its build, all maps, all inquiries, any of the hooks.
pub(crate) fn pins_of_all() -> Result<[(&'static str, Vec<String>); 4], ProgramsError> {
    let object = open()?;
    let maps = object.maps().map(|map| map_name(&map.name().to_string_lossy())).collect();
    let inquiries = object.progs().filter(|program| is_inquiry(program.section()));
    let inquiries = inquiries.map(|program| program.name().to_string_lossy().into_owned()).collect();
    Ok([("build", vec![build().to_owned()]), ("maps", maps), ("inquiries", inquiries), ("links", all()?)])
}

fn open() -> Result<OpenObject, ProgramsError> {
    listen("read the programs", || ObjectBuilder::default().name("tollgate")?.open_memory(OBJECT))
}

/// Tells the programs what differs between kernels but cannot be relocated: which arguments hooks have (`struct tg_kernel`).
fn adapt(object: &mut OpenObject, btf: &Btf<'_>) -> Result<(), ProgramsError> {
    let arguments = |hook: &str| {
        let hook = btf.type_by_name::<Func<'_>>(&format!("bpf_lsm_{hook}")).and_then(|hook| hook.next_type());
        hook.and_then(|hook| FuncProto::try_from(hook).ok()).map_or(0, |hook| hook.iter().count())
    };
    let kernel = tg_kernel {
        setattr_mapped: (arguments("inode_setattr") > 2).into(),
        perf_attributes: (arguments("perf_event_open") > 1).into(),
        kprobes: event_source("kprobe"),
        uprobes: event_source("uprobe"),
    };
    for mut map in object.maps_mut().filter(|map| map.name() == ".rodata.kernel") {
        map.set_initial_value(bytes_of(&kernel)).map_err(refused("adapt the programs"))?;
    }
    Ok(())
}

/// The number of a source of performance events; of one that this kernel lacks no number at all.
fn event_source(name: &str) -> u32 {
    let number = fs::read_to_string(format!("/sys/bus/event_source/devices/{name}/type")).ok();
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(u32::MAX)
}

/// Loads the programs of `hooks`, and those that the daemon runs, over the pinned maps where there are some; pins what was
/// not. `sizes` are those of new maps.
pub fn load(pins: &Pins, hooks: &[String], sizes: &[Size]) -> Result<Object, ProgramsError> {
    pins.make()?;
    let btf = Btf::from_vmlinux().map_err(|cause| ProgramsError::NoTypes { cause })?;
    let mut object = open()?;
    adapt(&mut object, &btf)?;
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let wanted = if is_inquiry(program.section()) { !pins.inquiry(&name).exists() } else { hooks.contains(&name) };
        program.set_autoload(wanted);
    }
    for mut map in object.maps_mut() {
        let name = map_name(&map.name().to_string_lossy());
        let pin = pins.map(&name);
        if let Some(size) = sizes.iter().rfind(|size| size.room.name() == name) {
            map.set_max_entries(size.places).map_err(refused(format!("make room for {}", size.places)))?;
        }
        if pin.exists() {
            map.reuse_pinned_map(&pin).map_err(refused(format!("use the pinned map {}", pin.display())))?;
        }
    }
    let mut object = listen("load the programs", || object.load())?;
    for mut map in object.maps_mut() {
        let pin = pins.map(&map_name(&map.name().to_string_lossy()));
        if !pin.exists() {
            map.pin(&pin).map_err(refused(format!("pin a map as {}", pin.display())))?;
        }
    }
    for mut program in object.progs_mut().filter(|program| program.autoload() && is_inquiry(program.section())) {
        let pin = pins.inquiry(&program.name().to_string_lossy());
        let pinned = match program.prog_type() {
            ProgramType::Syscall => program.pin(&pin),
            // Who runs it says of which process.
            _ if program.name() == THREADS => program.pin(&pin),
            // An iterator: who reads its pin runs it.
            _ => program.attach_iter_with_opts(IterOpts::None).and_then(|mut link| link.pin(&pin)),
        };
        pinned.map_err(refused(format!("pin a program as {}", pin.display())))?;
    }
    Ok(object)
}

/// Whether the daemon runs the programs of a section: those that answer it, and iterators. All others run at hooks.
fn is_inquiry(section: &OsStr) -> bool {
    section.as_bytes() == b"syscall" || section.as_bytes().starts_with(b"iter/")
}

/// The name of a map's pin: libbpf calls global variables `OBJECT.bss`.
fn map_name(name: &str) -> String {
    name.rsplit_once('.').map_or(name, |(_, section)| section).to_owned()
}

/// Attaches the loaded programs and pins their links.
pub fn attach(pins: &Pins, object: &Object) -> Result<usize, ProgramsError> {
    let mut attached = 0;
    for program in object.progs_mut().filter(|program| program.autoload() && !is_inquiry(program.section())) {
        let hook = program.name().to_string_lossy().into_owned();
        let attached_to = match program.prog_type() {
            ProgramType::Tracing => program.attach_trace(),
            _ => program.attach_lsm(),
        };
        let mut link = attached_to.map_err(refused(format!("attach to the hook {hook}")))?;
        link.pin(pins.link(&hook)).map_err(refused(format!("pin the program of the hook {hook}")))?;
        attached += 1;
    }
    Ok(attached)
}

/// Whether an earlier daemon has started enforcement: maps alone are what is left of a start that was killed.
#[must_use]
pub fn pinned(pins: &Pins) -> bool {
    attached(pins).is_ok_and(|hooks| !hooks.is_empty())
}

/// Refuses enforcement that another build of the programs has started.
pub(crate) fn of_this_build(pins: &Pins) -> Result<(), ProgramsError> {
    if pinned(pins) && !pins.build().exists() { Err(ProgramsError::AnotherVersion) } else { Ok(()) }
}

/// Whether the pins are what another build has left of a start that was killed.
pub(crate) fn left_by_another_build(pins: &Pins) -> bool {
    !pinned(pins) && pins.0.join("build").exists() && !pins.build().exists()
}

/// The hooks whose programs are attached, sorted.
pub fn attached(pins: &Pins) -> Result<Vec<String>, ProgramsError> {
    let path = pins.0.join("links");
    let error = |cause| ProgramsError::Pins { path: path.clone(), cause };
    let links = fs::read_dir(&path).map_err(error)?;
    let names = links.map(|link| link.map(|link| link.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_, _>>().map_err(error)?;
    names.sort_unstable();
    Ok(names)
}

/// A link, to be closed once its pin is gone. Where a pin was all that held it, the kernel detaches the program later
/// (bpf_link_put, since 6.5), and cannot attach it again until then (bpf_trampoline_link_prog); where the last descriptor is
/// closed, at once.
fn hold(pins: &Pins, hook: &str) -> Option<Link> {
    Link::open(pins.link(hook)).ok()
}

/// Detaches a hook's program: from then on it does not run.
pub fn detach(pins: &Pins, hook: &str) -> Result<(), ProgramsError> {
    let (path, link) = (pins.link(hook), hold(pins, hook));
    fs::remove_file(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
    drop(link);
    Ok(())
}

/// Removes all pins, and with them programs and maps that nobody has open. No program runs any more then: the kernel waits
/// for those that run, a grace period for each hook, one after another (ftrace_shutdown).
pub fn unpin(pins: &Pins) -> Result<(), ProgramsError> {
    let links: Vec<Link> = attached(pins).unwrap_or_default().iter().filter_map(|hook| hold(pins, hook)).collect();
    for path in [pins.0.join("links"), pins.0.clone()] {
        match fs::remove_dir_all(&path) {
            // That of a descriptor has no name to remove.
            Err(cause) if !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                return Err(ProgramsError::Pins { path, cause });
            }
            _ => {}
        }
    }
    drop(links);
    Ok(())
}
