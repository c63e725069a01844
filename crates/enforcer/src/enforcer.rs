//! What the daemon does to the kernel: starts enforcement, adopts it, puts other generations in force, ends it.
//!
//! The kernel's half (pins) and the folder [`Folder`] outlive the daemon; together they are all that a new daemon needs.

mod adopted;
mod attached;
mod checkpoints;
mod durable;
mod error;
mod folder;
mod labelling;
mod maps;
mod object;
mod options;
mod permissive;
mod reload;
mod replaced;
mod revocation;
mod services;
mod shadow;
mod sids;
mod slipped;
mod survival;
mod units;
mod unseen;

use std::{
    cell::OnceCell,
    fs::{self, File},
    os::fd::AsFd,
};

use libbpf_rs::{MapCore, Object};
use nix::unistd::getpid;
use tollgate_abi::enforcer::TG_FIRST_SID;
use tollgate_policy::{built::Built, context::ContextError, decide::Tables};

use crate::{
    contexts::Contexts,
    generation::{Generation, GenerationError},
    labels::{durable::Written, file_contexts::FileContexts, replaced::Replaced, walk::Report},
    missing,
    programs::{self, Pins},
    state::State,
    subordinates::Subordinates,
    units::Units,
};
use checkpoints::Checkpoints;
use durable::Durable;
pub use error::EnforcerError;
use error::map_error;
pub use folder::Folder;
pub(crate) use labelling::of_device;
pub use maps::Maps;
pub(crate) use maps::{began, task_of};
pub use object::Known;
pub use options::{NoteFolder, Options};
pub use reload::Reloaded;
use revocation::Pending;
use services::Memory;
use shadow::Shadow;
use tollgate_client::{pidfd, shares::Room, units::Unit};
pub use unseen::Seen;

/// Enforcement that is on.
#[derive(Debug)]
pub struct Enforcer {
    options: Options,
    maps: Maps,
    state: State,
    generation: Generation,
    contexts: Contexts,
    /// Those of the policy in force, once somebody has asked.
    file_contexts: OnceCell<FileContexts>,
    /// What the policy in force needs and this kernel cannot enforce.
    missing: Vec<String>,
    /// Whether this daemon was told another machine's context or other unconfined domains than are in force.
    told_otherwise: bool,
    labelled: Report,
    written: Written,
    durable: Durable,
    /// The mountinfo that was labelled last.
    mounted: Vec<u8>,
    /// Up to when labels are known to be written.
    checkpoints: Checkpoints,
    /// Whose uids are whose.
    subordinates: Subordinates,
    /// What processes hold that the policy in force denies.
    pending: Pending,
    /// The policy that is asked, too.
    shadow: Option<Shadow>,
    /// The program that asks about open files, once it was needed.
    revalidation: Option<Object>,
    /// What enforcement lives by, held.
    held: Vec<File>,
    /// Contexts of units as they are written down, as they are in force, and what was told of them.
    units: Units,
    known_units: Vec<Unit>,
    units_told: Vec<String>,
    /// What was seen confined.
    memory: Memory,
    /// Sees programs that are replaced; `None`: that cannot be seen.
    replaced: Option<Replaced>,
}

impl Enforcer {
    /// Starts enforcement of a built policy. When it fails nothing is left in the kernel.
    pub fn start(options: Options, built: Built) -> Result<Self, EnforcerError> {
        if programs::pinned(&options.pins) {
            return Err(EnforcerError::Started);
        }
        // What a start has left that was killed before it attached its first program.
        programs::unpin(&options.pins)?;
        let pins = options.pins.clone();
        Self::start_anew(options, built).inspect_err(|_| {
            // What is half there would be taken for enforcement; the first error is the one to tell.
            let _ = programs::unpin(&pins);
        })
    }

    fn start_anew(options: Options, built: Built) -> Result<Self, EnforcerError> {
        options.folder.make()?;
        let _ = fs::remove_file(options.folder.permissive());
        let machine = options.machine(&built.policy)?;
        let contexts = Contexts::initial(&built.policy, &machine);
        let unconfined = options.unconfined(&built.policy, &contexts);
        let tables = Tables::new(&built.tables).map_err(GenerationError::from)?;
        let missing = missing::here(&built.policy, &tables, &unconfined)?;
        if !options.accept_missing {
            missing::refuse(&missing, &[])?;
        }
        let descriptors = options.descriptors.unwrap_or_default();
        let needed = attached::needed(&options, descriptors, &built.policy, &tables, &unconfined)?;
        options.progress.begin("loading programs, which the kernel verifies one by one");
        let object = crate::survival::load(&options.pins, &needed, &options.sizes)?;
        options.progress.begin("putting the policy in force");
        let (maps, state) = open(&options.pins)?;
        state.initialise(options.audit_limit.unwrap_or(options::AUDIT_LIMIT), TG_FIRST_SID);
        state.set_descriptors(descriptors);
        for room in Room::ALL {
            let map = programs::map(&options.pins, room.name())?;
            state.shares().set_places(room, map.max_entries());
        }
        options.folder.replace(&options.folder.policy(1), &built.to_bytes())?;
        let mut generation = Generation::prepare(1, built, &unconfined, &maps.template)?;
        generation.context(&machine)?;
        let mut enforcer = Self::of(options, maps, state, generation, contexts)?;
        enforcer.missing = missing;
        enforcer.generation.adopt(&enforcer.contexts);
        enforcer.save_contexts()?;
        enforcer.put_sids()?;
        enforcer.label_filesystems()?;
        enforcer.label_network()?;
        enforcer.generation.put_in_force(&enforcer.maps.generations, None)?;
        enforcer.state.forget();
        enforcer.look_at_units();
        enforcer.options.progress.begin("attaching programs");
        programs::attach(&enforcer.options.pins, &object)?;
        enforcer.detach_all_but(&needed)?;
        enforcer.complete()?;
        Ok(enforcer)
    }

    /// The second half of a start, with programs attached. It is over once labelling is said to be complete: who is killed
    /// before leaves enforcement on, and what is unlabelled denied to confined domains.
    fn complete(&mut self) -> Result<(), EnforcerError> {
        self.protect()?;
        self.state.set_enforcing(!self.options.permissive);
        self.options.progress.begin("labelling files");
        self.labelled = self.label_machine()?;
        // Again, for their file system was labelled like others.
        self.protect()?;
        self.state.set_labelling_complete();
        self.options.progress.begin("writing labels to files");
        self.written = self.write_labels()?;
        let untold = self.untold_labels();
        self.labelled.told.extend(untold);
        self.guard_notes();
        self.compare_policy();
        self.watch_programs();
        Ok(())
    }

    fn of(
        options: Options,
        maps: Maps,
        state: State,
        generation: Generation,
        contexts: Contexts,
    ) -> Result<Self, EnforcerError> {
        let (labelled, written) = (Report::default(), Written::default());
        let durable = Durable::open(options.notes.as_ref())?;
        let mut subordinates = Subordinates::default();
        subordinates.look(&state.shares()).iter().for_each(|told| eprintln!("tollgate: {told}"));
        let units = Units::new(options.units.clone());
        let memory = Memory::new(options.notes.as_ref());
        let replaced = Replaced::new().inspect_err(|cause| {
            eprintln!("tollgate: programs that are replaced lose their labels until `tollgate label restore`: {cause}");
        });
        Ok(Self {
            options,
            maps,
            state,
            generation,
            contexts,
            file_contexts: OnceCell::new(),
            missing: Vec::new(),
            told_otherwise: false,
            labelled,
            written,
            durable,
            mounted: Vec::new(),
            checkpoints: Checkpoints::default(),
            subordinates,
            pending: Pending::default(),
            shadow: None,
            revalidation: None,
            held: Vec::new(),
            units,
            known_units: Vec::new(),
            units_told: Vec::new(),
            memory,
            replaced: replaced.ok(),
        })
    }

    /// Ends enforcement: programs are detached, maps and files removed.
    pub fn stop(&self) -> Result<(), EnforcerError> {
        self.forget_checkpoints()?;
        self.state.set_enforcing(false);
        programs::unpin(&self.options.pins)?;
        let _ = fs::remove_file(self.options.folder.policy(self.generation.number));
        let _ = fs::remove_file(self.options.folder.contexts());
        let _ = fs::remove_file(self.options.folder.permissive());
        Ok(())
    }

    /// The hooks whose programs are attached.
    pub fn hooks(&self) -> Result<Vec<String>, EnforcerError> {
        Ok(programs::attached(&self.options.pins)?)
    }

    /// What was labelled when enforcement started, and what of that was written to files; empty when it was adopted.
    #[must_use]
    pub fn labelled(&self) -> (&Report, &Written) {
        (&self.labelled, &self.written)
    }

    /// What the policy in force needs and this kernel cannot enforce, by name.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Whether this policy is in force, as this daemon was told to enforce it.
    #[must_use]
    pub fn is(&self, built: &Built) -> bool {
        if self.told_otherwise {
            return false;
        }
        let file = self.options.folder.policy(self.generation.number);
        fs::read(file).is_ok_and(|bytes| bytes == built.to_bytes())
    }

    /// The names of what a context may do to another, as the generation in force says.
    pub fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, ContextError> {
        self.generation.access(source, target, class)
    }

    /// What enforcement lives by, held: the pins' directory first.
    #[must_use]
    pub fn held(&self) -> &[File] {
        &self.held
    }

    /// How it was started.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The globals.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The maps.
    #[must_use]
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// What SIDs stand for.
    #[must_use]
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The generation in force.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        &self.generation
    }
}

fn open(pins: &Pins) -> Result<(Maps, State), EnforcerError> {
    let state = State::new(programs::map(pins, "bss")?.as_fd());
    let state = state.map_err(|cause| EnforcerError::Io { what: "map", path: pins.map("bss"), cause })?;
    let maps = Maps::open(pins)?;
    let own = pidfd::open(getpid().as_raw()).map_err(libbpf_rs::Error::from);
    let began = own.and_then(|own| began(pins, own.as_fd())).map_err(map_error("mark the daemon's process"))?;
    // Labels are written to attributes by this process only.
    state.set_daemon(std::process::id(), began);
    Ok((maps, state))
}

impl Drop for Enforcer {
    /// Enforcement goes on; this process is no longer its daemon.
    fn drop(&mut self) {
        self.conclude();
        self.state.set_daemon(0, 0);
    }
}
