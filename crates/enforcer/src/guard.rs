//! The guard in the kernel: what privileged programs may call (docs/adr/0023). It needs no policy.
//!
//! Programs and maps are pinned in a directory of their own, so the guard goes on whether or not a process reads its
//! events. Whoever finds them there takes them over ([`Guard::adopt`]).

mod events;
mod table;

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, libbpf_sys};
use sha2::{Digest as _, Sha256};
use tollgate_abi::guard::tg_guard_state;
use tollgate_guard::{Class, Database, Digest, Mode};

pub use self::events::Events;
use crate::{
    mapping::Mapping,
    programs::{ProgramsError, listen, map_name, refused},
};

/// `bpf/guard.bpf.c`.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guard.bpf.o"));

/// Where it is pinned.
const PINS: &str = "/sys/fs/bpf/tollgate-guard";

/// Why the guard cannot be started, found or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The kernel refused an operation, or the pins are not as they should be.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// It was started by another build of this program.
    #[error(
        "the guard was started by another version of this program: end it with `tollgate guard stop`, then start it again"
    )]
    AnotherVersion,
}

/// How often the programs did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Counts {
    pub asked: u64,
    pub denied: u64,
    pub warned: u64,
    pub learnt: u64,
    /// Events for which there was no room, or that came too fast.
    pub lost: u64,
    /// Processes for which there was no memory.
    pub storage: u64,
}

/// The guard, running in the kernel.
#[derive(Debug)]
pub struct Guard {
    pins: PathBuf,
    state: Mapping<tg_guard_state>,
}

impl Guard {
    /// Starts it with a database. If this fails, nothing is left in the kernel.
    pub fn start(database: &Database) -> Result<Self, GuardError> {
        let pins = PathBuf::from(PINS);
        // What a start left behind that was killed.
        remove(&pins)?;
        Self::start_below(pins.clone(), database).inspect_err(|_| {
            // The first error is the one to report.
            let _ = remove(&pins);
        })
    }

    fn start_below(pins: PathBuf, database: &Database) -> Result<Self, GuardError> {
        for path in [build(&pins), pins.join("maps"), pins.join("links")] {
            fs::create_dir_all(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
        }
        let mut object = listen("load the guard's programs", || {
            ObjectBuilder::default().name("guard")?.open_memory(OBJECT)?.load()
        })?;
        pin_maps(&pins, &mut object)?;
        let guard = Self::open(pins)?;
        // Before anything is asked: an empty table allows nothing.
        guard.put_in_force(database)?;
        for program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let link = program.attach().map_err(refused(format!("attach {name}")))?;
            pin(&link, &guard.pins.join("links").join(&name)).map_err(refused(format!("pin {name}")))?;
        }
        Ok(guard)
    }

    /// Takes it over; `None`: it is not running.
    pub fn adopt() -> Result<Option<Self>, GuardError> {
        let pins = PathBuf::from(PINS);
        if links(&pins).is_empty() {
            return Ok(None);
        }
        if !build(&pins).exists() {
            return Err(GuardError::AnotherVersion);
        }
        Ok(Some(Self::open(pins)?))
    }

    fn open(pins: PathBuf) -> Result<Self, GuardError> {
        let map = map(&pins, "bss")?;
        let path = pins.join("maps/bss");
        let state = Mapping::new(&map).map_err(|cause| ProgramsError::Pins { path, cause })?;
        Ok(Self { pins, state })
    }

    /// Ends it: nothing is checked any more. Returns whether it was running.
    pub fn stop() -> Result<bool, GuardError> {
        let pins = Path::new(PINS);
        let running = !links(pins).is_empty();
        remove(pins)?;
        Ok(running)
    }

    /// Puts a database in force, whole or not at all.
    pub fn put_in_force(&self, database: &Database) -> Result<(), GuardError> {
        let table = table::make(&map(&self.pins, "guard_template")?, database);
        let table = table.map_err(refused("make the table of the guard's database"))?;
        let (tables, descriptor) = (map(&self.pins, "guard_tables")?, table.as_fd().as_raw_fd().to_ne_bytes());
        let put = tables.update(&0_u32.to_ne_bytes(), &descriptor, MapFlags::ANY);
        put.map_err(refused("put the guard's database in force"))?;
        let state = self.state.get();
        let daemons = database.default_mode(Class::Daemon) != Mode::Off;
        // SAFETY: both members lie in the mapping. The programs read the first one at once, and never the second one.
        unsafe {
            AtomicU32::from_ptr(&raw mut (*state).daemons).store(daemons.into(), Ordering::SeqCst);
            (&raw mut (*state).database).write_volatile(database.digest().words());
        }
        Ok(())
    }

    /// The digest of the database in force; `None`: it is just being put in force.
    #[must_use]
    pub fn database(&self) -> Option<Digest> {
        // SAFETY: the member lies in the mapping, and any numbers may be in it.
        Digest::of_words(unsafe { (&raw const (*self.state.get()).database).read_volatile() })
    }

    /// The hooks' programs that are attached.
    #[must_use]
    pub fn attached(&self) -> Vec<String> {
        links(&self.pins)
    }

    /// How often the programs did something.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.state.get();
        // SAFETY: the members lie in the mapping, aligned; the programs change them by atomic additions.
        let read = |member: *mut u64| unsafe { AtomicU64::from_ptr(member) }.load(Ordering::Relaxed);
        // SAFETY: only addresses are computed.
        let [asked, denied, warned, learnt, lost, storage] = unsafe {
            [
                &raw mut (*state).asked,
                &raw mut (*state).denied,
                &raw mut (*state).warned,
                &raw mut (*state).learnt,
                &raw mut (*state).lost,
                &raw mut (*state).storage,
            ]
        }
        .map(read);
        Counts { asked, denied, warned, learnt, lost, storage }
    }

    /// The reader of its events. Only one process reads them at a time.
    pub fn events(&self) -> Result<Events, GuardError> {
        let events = Events::new(map(&self.pins, "guard_events")?);
        Ok(events.map_err(refused("read the guard's events"))?)
    }
}

/// The directory that says which build of the programs is pinned.
fn build(pins: &Path) -> PathBuf {
    let hash: String = Sha256::digest(OBJECT)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    pins.join("build").join(hash)
}

fn map(pins: &Path, name: &str) -> Result<MapHandle, ProgramsError> {
    MapHandle::from_pinned_path(pins.join("maps").join(name)).map_err(refused(format!("open the map {name}")))
}

fn pin_maps(pins: &Path, object: &mut Object) -> Result<(), ProgramsError> {
    for mut map in object.maps_mut() {
        let name = map_name(&map.name().to_string_lossy());
        if !name.starts_with("rodata") {
            map.pin(pins.join("maps").join(&name)).map_err(refused(format!("pin the map {name}")))?;
        }
    }
    Ok(())
}

fn pin(link: &Link, path: &Path) -> libbpf_rs::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)?;
    // SAFETY: the descriptor is open, and the path ends with a zero byte.
    let pinned = unsafe { libbpf_sys::bpf_obj_pin(link.as_fd().as_raw_fd(), path.as_ptr()) };
    if pinned < 0 { Err(libbpf_rs::Error::from_raw_os_error(-pinned)) } else { Ok(()) }
}

/// The programs that are attached, sorted.
fn links(pins: &Path) -> Vec<String> {
    let entries = fs::read_dir(pins.join("links")).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// Removes all pins. No program runs any more afterwards: if a descriptor is the last one that holds a link, the kernel
/// detaches the program at once.
fn remove(pins: &Path) -> Result<(), ProgramsError> {
    let held: Vec<Link> =
        links(pins).iter().filter_map(|name| Link::open(pins.join("links").join(name)).ok()).collect();
    match fs::remove_dir_all(pins) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            return Err(ProgramsError::Pins { path: pins.to_owned(), cause });
        }
        _ => {}
    }
    drop(held);
    Ok(())
}
