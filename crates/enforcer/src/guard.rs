//! The guard in the kernel: what privileged programs may call (docs/adr/0023). It needs no policy.
//!
//! Programs and maps are pinned in a directory of their own, so the guard goes on whether or not a process reads its
//! events. Whoever finds them there takes them over ([`Guard::adopt`]).

mod canary;
mod load;
mod log;
mod named;
mod running;
mod status;
mod switch;
mod table;

use std::{
    fs, io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::PathBuf,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use libbpf_rs::{MapCore, MapFlags, Object};
use nix::sys::stat::{major, minor};
use tollgate_abi::{
    bytes_of,
    guard::{tg_guard_event, tg_guard_own, tg_guard_state},
};
use tollgate_guard::{Database, Digest};
use tracing::warn;
use zerocopy::FromBytes;

pub use self::{
    canary::{Canary, Finding},
    log::{KEPT, LOG, Log, Own, Prepared, Register, read},
    switch::Loaded,
};
use crate::{
    events::Ring,
    guarded::{self, Domains},
    mapping::Mapping,
    programs::{self, Pins, ProgramsError, refused},
    survival::program_id,
};

/// The machine's own database.
pub const FILE: &str = "/etc/tollgate/guard";
/// The database of the generation with which a fleet's node starts; the daemon's `fleet` keeps it there.
const FLEET: &str = "/var/lib/tollgate/accepted/generations/current/guard";
/// The iterator that makes processes guarded that run already.
const ADOPT: &str = "guard_adopt";

/// The reader of calls that no rule allows.
pub type Events = Ring<tg_guard_event>;

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
    /// A database cannot be used.
    #[error("the guard's database {path} cannot be used: {cause}", path = path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
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
    pins: Pins,
    state: Mapping<tg_guard_state>,
}

impl Guard {
    /// Starts it with a database. If this fails, nothing is left in the kernel.
    pub fn start(database: &Database) -> Result<Self, GuardError> {
        let pins = Pins::of_guard();
        if pins.build().exists() {
            warn!(
                "the guard has pins and no program: its start was killed, or somebody has detached all programs; it starts \
                 anew, and finds the processes again that it guarded"
            );
        }
        programs::unpin(&pins)?;
        Self::start_below(pins.clone(), database).inspect_err(|_| {
            // The first error is the one to report.
            let _ = guarded::disconnect(&Pins::default());
            let _ = programs::unpin(&pins);
        })
    }

    fn start_below(pins: Pins, database: &Database) -> Result<Self, GuardError> {
        pins.make()?;
        let object = load::all(&pins)?;
        let guard = Self::open(pins)?;
        guard.prepare()?;
        // Before anything is asked: an empty table allows nothing.
        guard.put_in_force(database)?;
        guarded::connect(&Pins::default(), &guard.pins)?;
        programs::attach(&guard.pins, &object)?;
        guard.register(&object)?;
        guard.adopt_running(database)?;
        Ok(guard)
    }

    /// Takes it over; `None`: it is not running.
    pub fn adopt() -> Result<Option<Self>, GuardError> {
        let pins = Pins::of_guard();
        if !programs::pinned(&pins) {
            return Ok(None);
        }
        programs::of_this_build(&pins).map_err(|_| GuardError::AnotherVersion)?;
        Ok(Some(Self::open(pins)?))
    }

    fn open(pins: Pins) -> Result<Self, GuardError> {
        let path = pins.map("bss");
        let state = Mapping::new(programs::map(&pins, "bss")?).map_err(|cause| ProgramsError::Pins { path, cause })?;
        Ok(Self { pins, state })
    }

    /// Ends it: nothing is checked any more. Returns whether it was running.
    pub fn stop() -> Result<bool, GuardError> {
        let pins = Pins::of_guard();
        let running = programs::pinned(&pins);
        // This comes first: a canary that misses links from now on does not attach their programs again.
        let path = pins.build();
        match fs::remove_dir(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(ProgramsError::Pins { path, cause })?,
            _ => {}
        }
        let disconnected = guarded::disconnect(&Pins::default());
        programs::unpin(&pins)?;
        disconnected?;
        Ok(running)
    }

    /// Sets what programs must know from the beginning.
    fn prepare(&self) -> Result<(), GuardError> {
        let root = self.pins.root();
        let failed = |cause| ProgramsError::Pins { path: root.to_owned(), cause };
        let device = fs::metadata(root).map_err(failed)?.dev();
        // The kernel's own form of device numbers.
        let device = (major(device) << 20 | minor(device)) as u32;
        let secret = random().map_err(failed)?;
        let state = self.state.get();
        // SAFETY: both members lie in the mapping, and no program is attached yet.
        unsafe {
            (&raw mut (*state).pins).write_volatile(device);
            (&raw mut (*state).secret).write_volatile(secret);
        }
        Ok(())
    }

    /// Registers maps and programs as the guard's own.
    fn register(&self, object: &Object) -> Result<(), ProgramsError> {
        for map in object.maps() {
            self.register_map(&map)?;
        }
        for program in object.progs().filter(|program| program.autoload()) {
            self.put_own(1, program_id(program.as_fd())?)?;
        }
        Ok(())
    }

    fn register_map(&self, map: &impl MapCore) -> Result<(), ProgramsError> {
        let id = map.info().map_err(refused("find the identifier of a map"))?.info.id;
        self.put_own(0, id)
    }

    fn put_own(&self, is_program: u32, id: u32) -> Result<(), ProgramsError> {
        let key = tg_guard_own { is_program, id };
        let own = programs::map(&self.pins, "guard_own")?;
        own.update(bytes_of(&key), &[0; 4], MapFlags::ANY).map_err(refused("say what is the guard's own"))
    }

    /// Makes processes guarded that run already, and that would be if they were executed now.
    fn adopt_running(&self, database: &Database) -> Result<(), GuardError> {
        let found = programs::map(&self.pins, "guard_running")?;
        // Numbers of an earlier round may be those of other processes by now.
        for number in found.keys() {
            found.delete(&number).map_err(refused("forget which processes ran"))?;
        }
        let (mut known, domains) = (0, Domains::open(Pins::default())?);
        // What they fork meanwhile is found in the next round.
        loop {
            let running = running::find(database, domains.as_ref());
            if running.len() <= known {
                return Ok(());
            }
            known = running.len();
            for (process, task) in &running {
                let put = found.update(&process.to_ne_bytes(), bytes_of(task), MapFlags::ANY);
                put.map_err(refused("say which processes run already"))?;
            }
            let path = self.pins.inquiry(ADOPT);
            fs::read(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
        }
    }

    /// The digest of the database in force; `None`: it is just being put in force.
    #[must_use]
    pub fn database(&self) -> Option<Digest> {
        // SAFETY: the member lies in the mapping, and any numbers may be in it.
        Digest::of_words(unsafe { (&raw const (*self.state.get()).database).read_volatile() })
    }

    /// The programs that are attached, without the prefix that all have.
    #[must_use]
    pub fn attached(&self) -> Vec<String> {
        programs::attached(&self.pins).unwrap_or_default()
    }

    /// How many processes are guarded.
    #[must_use]
    pub fn processes(&self) -> u32 {
        // SAFETY: the member lies in the mapping, aligned.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.state.get()).processes) }.load(Ordering::Relaxed)
    }

    /// Sets the thread whose chmod u+s is always denied; 0: none.
    fn set_canary(&self, thread: u32) {
        // SAFETY: the member lies in the mapping, aligned.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.state.get()).canary) }.store(thread, Ordering::SeqCst);
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
        let whole = |sample: &[u8]| tg_guard_event::read_from_bytes(sample).ok();
        let events = Ring::new(programs::map(&self.pins, "guard_events")?, whole);
        Ok(events.map_err(refused("read the guard's events"))?)
    }
}

fn random() -> io::Result<[u64; 2]> {
    let mut bytes = [0_u8; 16];
    // SAFETY: the kernel writes at most as many bytes as there are.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok([0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]))))
}
