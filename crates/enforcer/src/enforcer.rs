//! What the daemon does to the kernel: it starts enforcement, adopts it, puts other generations in force, and ends it.
//!
//! The kernel's half (the pins) and the directory [`Folder`] outlive the daemon. Together they are all that a new
//! daemon needs.

mod adopted;
mod attached;
mod checkpoints;
mod containers;
mod durable;
mod error;
mod flows;
mod folder;
mod heard;
mod identifiers;
mod labelling;
mod maps;
mod mounted;
mod networks;
mod object;
mod options;
mod permissive;
mod published;
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
mod why;

use std::{
    cell::OnceCell,
    fs::{self, File},
    os::fd::AsFd,
    sync::Arc,
};

use libbpf_rs::{MapCore, Object};
use nix::unistd::getpid;
use tollgate_abi::enforcer::TG_FIRST_SID;
use tollgate_policy::{built::Built, context::ContextError, decide::Tables};
use tracing::warn;

use crate::{
    containers::categories::Pair,
    contexts::Contexts,
    datapath::{Networks, running::Datapath},
    generation::{Generation, GenerationError},
    guarded,
    labels::{durable::Written, file_contexts::FileContexts, replaced::Replaced, walk::Report, walked::Walked},
    missing,
    needs::Setting,
    preloaded::Preloaded,
    programs::{self, Pins},
    state::State,
    subordinates::Subordinates,
    units::Units,
};
use checkpoints::Checkpoints;
use durable::Durable;
pub use error::EnforcerError;
use error::map_error;
pub use flows::Flow;
pub use folder::Folder;
pub(crate) use labelling::of_device;
pub use maps::Maps;
pub(crate) use maps::{began, task_of};
use mounted::Mounted;
pub use object::Known;
pub use options::{NoteFolder, Options};
pub use reload::{Put, Reloaded};
use revocation::Pending;
use services::Memory;
use shadow::Shadow;
use tollgate_client::{pidfd, shares::Room, units::Unit};
pub use unseen::Seen;

/// Running enforcement.
#[derive(Debug)]
pub struct Enforcer {
    options: Options,
    maps: Maps,
    state: State,
    generation: Generation,
    contexts: Contexts,
    networks: Arc<Networks>,
    /// Labels in packets; `None`: no network has any.
    datapath: Option<Datapath>,
    /// The `file_contexts` of the policy in force, compiled at first use.
    file_contexts: OnceCell<FileContexts>,
    /// What the policy in force needs and this kernel cannot enforce.
    missing: Vec<String>,
    /// Whether this daemon's options name another context for the machine, other unconfined domains or other labelled
    /// networks than are in force.
    options_differ: bool,
    labelled: Report,
    written: Written,
    durable: Durable,
    mounted: Mounted,
    walked: Walked,
    /// Up to when labels are known to be written to the files.
    checkpoints: Checkpoints,
    /// The ranges of subordinate uids and their users.
    subordinates: Subordinates,
    /// What processes hold that the policy in force denies.
    pending: Pending,
    /// The candidate, if there is one.
    shadow: Option<Shadow>,
    /// The program that checks open files, once it was needed.
    revalidation: Vec<Object>,
    /// Whether a label was written through overlayfs, so that its program is attached.
    writes_through_overlay: bool,
    /// The objects that enforcement depends on, held open.
    held: Vec<File>,
    /// Contexts of units as the unit files name them, as they are in force, and the messages about them.
    units: Units,
    known_units: Vec<Unit>,
    units_reported: Vec<String>,
    /// The categories that were given to a container last.
    last_pair: Option<Pair>,
    /// What was seen confined.
    memory: Memory,
    /// Sees that programs are replaced; `None`: that cannot be seen.
    replaced: Option<Replaced>,
}

impl Enforcer {
    /// Starts enforcement of a built policy. If this fails, nothing is left in the kernel.
    pub fn start(options: Options, built: Built) -> Result<Self, EnforcerError> {
        if programs::pinned(&options.pins) {
            return Err(EnforcerError::Started);
        }
        let preloaded = options.preloaded(built.tables.len())?;
        if preloaded.is_empty() {
            // Removes what a start left behind that was killed before it attached its first program.
            options.unpin()?;
        }
        let before = options.clone();
        Self::start_anew(options, built, &preloaded).inspect_err(|_| {
            // A part that stays would look like enforcement. The first error is the one to report.
            let _ = before.unpin();
        })
    }

    fn start_anew(options: Options, built: Built, preloaded: &Preloaded) -> Result<Self, EnforcerError> {
        options.progress.begin("asking which hooks the policy needs");
        options.folder.make()?;
        let _ = fs::remove_file(options.folder.permissive());
        let networks = Networks::read(&options.network)?;
        let machine = options.machine(&built.policy)?;
        let contexts = Contexts::initial(&built.policy, &machine);
        let unconfined = options.unconfined(&built.policy, &contexts);
        let tables = Tables::new(&built.tables).map_err(GenerationError::from)?;
        let missing = missing::here(&built.policy, &tables, &unconfined, networks.are_labelled())?;
        if !options.accept_missing {
            missing::refuse(&missing, &[])?;
        }
        let descriptors = options.descriptors.unwrap_or_default();
        let setting = Setting { descriptors, labelled: networks.are_labelled(), overlay: false };
        let needed = attached::needed(&options, setting, &built.policy, &tables, &unconfined)?;
        options.progress.begin("loading programs, which the kernel verifies");
        if options.count {
            programs::make_record(&options.pins)?;
        }
        let objects = preloaded.complete(&options.pins, &needed, &options.loading(built.tables.len()))?;
        options.progress.begin("putting the policy in force");
        // Before anybody can enter a domain.
        guarded::connect(&options.pins, &Pins::of_guard())?;
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
        let mut enforcer = Self::of(options, maps, state, generation, contexts, networks)?;
        enforcer.missing = missing;
        enforcer.generation.adopt(&enforcer.contexts);
        enforcer.save_contexts()?;
        enforcer.put_sids()?;
        enforcer.label_filesystems()?;
        enforcer.label_network()?;
        enforcer.label_packets()?;
        enforcer.meet_noted()?;
        enforcer.tell_bare();
        enforcer.generation.put_in_force(&enforcer.maps.generations, None, |place| place.put())?;
        enforcer.state.forget();
        enforcer.set_clock();
        enforcer.look_at_units();
        enforcer.options.progress.begin("attaching programs");
        preloaded.attach(&enforcer.options.pins, &needed)?;
        objects.iter().try_for_each(|object| programs::attach(&enforcer.options.pins, object))?;
        enforcer.detach_all_but(&needed)?;
        enforcer.label_devices(&Arc::clone(&enforcer.networks))?;
        enforcer.complete()?;
        Ok(enforcer)
    }

    /// The second half of a start, with programs attached. The start is over once labelling is marked as complete. If
    /// the daemon is killed before that, enforcement stays on, and unlabelled objects are denied to confined domains.
    fn complete(&mut self) -> Result<(), EnforcerError> {
        self.protect()?;
        self.state.set_enforcing(!self.options.permissive);
        self.options.progress.begin("labelling files");
        self.labelled = self.label_machine()?;
        // Once more, because their file systems were labelled like others.
        self.protect()?;
        self.state.set_labelling_complete();
        self.publish()?;
        self.options.progress.begin("writing labels to files");
        self.written = self.write_labels()?;
        let unreported = self.unreported_labels();
        self.labelled.messages.extend(unreported);
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
        networks: Networks,
    ) -> Result<Self, EnforcerError> {
        let (labelled, written) = (Report::default(), Written::default());
        let durable = Durable::open(options.notes.as_ref())?;
        let mut subordinates = Subordinates::default();
        subordinates.look(&state.shares()).iter().for_each(|message| warn!("{message}"));
        let units = Units::new(options.units.clone());
        let memory = Memory::new(options.notes.as_ref());
        let replaced = Replaced::new().inspect_err(|cause| {
            warn!(%cause, "programs that are replaced lose their labels until `tollgate label restore`: {cause}");
        });
        Ok(Self {
            options,
            maps,
            state,
            generation,
            contexts,
            networks: Arc::new(networks),
            datapath: None,
            file_contexts: OnceCell::new(),
            missing: Vec::new(),
            options_differ: false,
            labelled,
            written,
            durable,
            mounted: Mounted::default(),
            walked: Walked::default(),
            checkpoints: Checkpoints::default(),
            subordinates,
            pending: Pending::default(),
            shadow: None,
            revalidation: Vec::new(),
            writes_through_overlay: false,
            held: Vec::new(),
            units,
            known_units: Vec::new(),
            units_reported: Vec::new(),
            last_pair: None,
            memory,
            replaced: replaced.ok(),
        })
    }

    /// Ends enforcement: detaches the programs, and removes maps and files.
    pub fn stop(&self) -> Result<(), EnforcerError> {
        self.forget_checkpoints()?;
        self.state.set_enforcing(false);
        self.options.unpin()?;
        let _ = fs::remove_file(self.options.folder.policy(self.generation.number));
        let _ = fs::remove_file(self.options.folder.contexts());
        let _ = fs::remove_file(self.options.folder.permissive());
        Ok(())
    }

    /// The hooks whose programs are attached.
    pub fn hooks(&self) -> Result<Vec<String>, EnforcerError> {
        Ok(programs::attached(&self.options.pins)?)
    }

    /// What was labelled when enforcement started, and which labels were written to files. Empty if enforcement was
    /// adopted.
    #[must_use]
    pub fn labelled(&self) -> (&Report, &Written) {
        (&self.labelled, &self.written)
    }

    /// What the policy in force needs and this kernel cannot enforce, by name.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Whether this policy is in force, with the machine's context, the unconfined domains and the labelled networks that
    /// this daemon's options name.
    #[must_use]
    pub fn is(&self, built: &Built) -> bool {
        if self.options_differ {
            return false;
        }
        let file = self.options.folder.policy(self.generation.number);
        fs::read(file).is_ok_and(|bytes| bytes == built.to_bytes())
    }

    /// The names of the permissions that one context has on another in the generation in force.
    pub fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, ContextError> {
        self.generation.access(source, target, class)
    }

    /// The objects that enforcement depends on, held open. The pins' directory comes first.
    #[must_use]
    pub fn held(&self) -> &[File] {
        &self.held
    }

    /// The options of the start.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The programs' global variables.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The maps, opened.
    #[must_use]
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// The contexts of SIDs.
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
    // Only this process writes labels to attributes.
    state.set_daemon(std::process::id(), began);
    Ok((maps, state))
}

impl Drop for Enforcer {
    /// Enforcement goes on, but this process is no longer its daemon.
    fn drop(&mut self) {
        self.conclude();
        self.state.set_daemon(0, 0);
    }
}
