//! What the daemon does to the kernel: starts enforcement, adopts it, puts other generations in force, ends it.
//!
//! The kernel's half (pins) and the folder [`Folder`] outlive the daemon; together they are all that a new daemon needs.

mod attached;
mod labelling;

use std::{
    cell::OnceCell,
    collections::HashSet,
    fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use tempfile::NamedTempFile;
use tollgate_abi::{
    enforcer::{SECINITSID_KERNEL, TG_FIRST_SID, TG_SID_MACHINE, TG_SIDS, tg_sid_key},
    tables::tg_context,
};
use tollgate_policy::{
    built::{Built, BuiltError},
    context::{self, ContextError},
    decide::Tables,
    model::Context,
};

use crate::{
    contexts::{self, Contexts, Full, Sid},
    generation::{Generation, GenerationError},
    guard,
    hooks::BadLine,
    labels::{durable::Written, file_contexts::FileContexts, filesystems, walk::Report},
    programs::{self, Pins, ProgramsError},
    state::State,
};

/// Why enforcement could not be started, adopted or changed. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnforcerError {
    /// The programs are not in the kernel as they should be.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The table of hooks that this program carries is not one.
    #[error(transparent)]
    Hooks(#[from] BadLine),
    /// The policy cannot be put in force.
    #[error(transparent)]
    Generation(#[from] GenerationError),
    /// A context is none of the policy's.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// No SID is left.
    #[error(transparent)]
    Full(#[from] Full),
    /// The policy in the folder is not as it was written.
    #[error(transparent)]
    Policy(#[from] BuiltError),
    /// A map could not be read or written.
    #[error("cannot {what}: {cause}")]
    Map {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        cause: libbpf_rs::Error,
    },
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
    /// A file could not be labelled.
    #[error("cannot label: {cause}")]
    Labels {
        /// Why it failed.
        cause: io::Error,
    },
    /// The policy has neither an unconfined domain nor an initial SID for the kernel.
    #[error(
        "the policy says neither what unconfined_t nor what the kernel's context is: name the context of the machine's processes with --machine CONTEXT"
    )]
    NoMachine,
    /// The policy was in force for a moment, and the one before is again.
    #[error("the policy was not kept: {reason}; the one before is in force")]
    RolledBack {
        /// What did not hold.
        reason: String,
    },
    /// Enforcement is on.
    #[error(
        "enforcement is on already: `tollgate reload POLICY` puts another policy in force, `tollgate stop` ends it"
    )]
    Started,
    /// Enforcement is off.
    #[error("nothing is enforced: start it with `tollgate enforce POLICY`")]
    NotStarted,
}

fn map_error(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> EnforcerError {
    move |cause| EnforcerError::Map { what, cause }
}

/// Where the daemon keeps what is not in the kernel: the policy in force, and what SIDs stand for.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Default for Folder {
    fn default() -> Self {
        Self("/run/tollgate".into())
    }
}

impl Folder {
    /// The policy of a generation.
    #[must_use]
    pub fn policy(&self, generation: u32) -> PathBuf {
        self.0.join(format!("generation-{generation}.policy"))
    }

    /// What SIDs stand for: lines `SID CONTEXT`, for everyone to read.
    #[must_use]
    pub fn contexts(&self) -> PathBuf {
        self.0.join("contexts")
    }

    /// Itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn make(&self) -> Result<(), EnforcerError> {
        let error = |cause| EnforcerError::Io { what: "make", path: self.0.clone(), cause };
        fs::create_dir_all(&self.0).map_err(error)
    }

    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), EnforcerError> {
        let error = |cause| EnforcerError::Io { what: "write", path: path.to_owned(), cause };
        let mut fresh = NamedTempFile::new_in(&self.0).map_err(error)?;
        io::Write::write_all(&mut fresh, content).map_err(error)?;
        fs::set_permissions(fresh.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(error)?;
        fresh.persist(path).map_err(|failure| error(failure.error))?;
        Ok(())
    }
}

/// How enforcement is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where pins are.
    pub pins: Pins,
    /// Where the rest is.
    pub folder: Folder,
    /// What is denied is granted, and audited.
    pub permissive: bool,
    /// The context of tasks without a label; `None`: see [`contexts::machine`].
    pub machine: Option<String>,
    /// Domains that are asked nothing; none named: the machine's and the kernel's. Tasks without a label never are asked.
    pub unconfined: Vec<String>,
    /// Audited denials a second; what is above is counted.
    pub audit_limit: u32,
    /// The hooks to attach to, for measurements of their cost; none named: all that the policy needs.
    pub hooks: Vec<String>,
}

/// The maps that the daemon uses, opened.
#[derive(Debug)]
pub struct Maps {
    /// What maps of generations are made after.
    pub template: MapHandle,
    /// The generations in force and before.
    pub generations: MapHandle,
    /// SIDs by context and generation.
    pub sids: MapHandle,
    /// Labels of tasks.
    pub tasks: MapHandle,
    /// Labels of inodes.
    pub inodes: MapHandle,
    /// File systems that have been seen.
    pub superblocks: MapHandle,
    /// Durable labels.
    pub labels: MapHandle,
    /// File systems by name.
    pub filesystems: MapHandle,
    /// Paths of `genfscon`.
    pub genfs: MapHandle,
    /// Events.
    pub events: MapHandle,
}

impl Maps {
    fn open(pins: &Pins) -> Result<Self, ProgramsError> {
        let map = |name| programs::map(pins, name);
        Ok(Self {
            template: map("generation_template")?,
            generations: map("generations")?,
            sids: map("sids")?,
            tasks: map("tasks")?,
            inodes: map("inodes")?,
            superblocks: map("superblocks")?,
            labels: map("labels")?,
            filesystems: map("filesystems")?,
            genfs: map("genfs")?,
            events: map("events")?,
        })
    }
}

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
    labelled: Report,
    written: Written,
    /// The mountinfo that was labelled last.
    mounted: Vec<u8>,
}

impl Enforcer {
    /// Starts enforcement of a built policy. When it fails nothing is left in the kernel.
    pub fn start(options: Options, built: Built) -> Result<Self, EnforcerError> {
        if programs::pinned(&options.pins) {
            return Err(EnforcerError::Started);
        }
        let pins = options.pins.clone();
        Self::start_anew(options, built).inspect_err(|_| {
            // What is half there would be taken for enforcement; the first error is the one to tell.
            let _ = programs::unpin(&pins);
        })
    }

    fn start_anew(options: Options, built: Built) -> Result<Self, EnforcerError> {
        options.folder.make()?;
        let machine = options.machine.clone().or_else(|| contexts::machine(&built.policy));
        let contexts = Contexts::initial(&built.policy, &machine.ok_or(EnforcerError::NoMachine)?);
        let unconfined = unconfined(&options, &built, &contexts);
        let tables = Tables::new(&built.tables).map_err(GenerationError::from)?;
        let needed = attached::needed(&options, &built.policy, &tables, &unconfined)?;
        let object = programs::load(&options.pins, &needed)?;
        let (maps, state) = open(&options.pins)?;
        state.initialise(options.audit_limit, TG_FIRST_SID);
        options.folder.replace(&options.folder.policy(1), &built.to_bytes())?;
        let generation = Generation::prepare(1, built, &unconfined, &maps.template)?;
        let mut enforcer = Self::of(options, maps, state, generation, contexts);
        enforcer.generation.adopt(&enforcer.contexts);
        enforcer.put_sids()?;
        enforcer.label_filesystems()?;
        enforcer.generation.put_in_force(&enforcer.maps.generations, None)?;
        enforcer.state.forget();
        programs::attach(&enforcer.options.pins, &object)?;
        enforcer.detach_all_but(&needed)?;
        enforcer.labelled = enforcer.label_machine()?;
        enforcer.save_contexts()?;
        enforcer.state.set_pins(guard::label(&enforcer.options.pins, &enforcer.maps.inodes)?);
        enforcer.state.set_enforcing(!enforcer.options.permissive);
        enforcer.written = enforcer.write_labels()?;
        Ok(enforcer)
    }

    fn of(options: Options, maps: Maps, state: State, generation: Generation, contexts: Contexts) -> Self {
        let (file_contexts, labelled, written) = (OnceCell::new(), Report::default(), Written::default());
        Self { options, maps, state, generation, contexts, file_contexts, labelled, written, mounted: Vec::new() }
    }

    /// Takes over what an earlier daemon has started. Nothing is loaded, and nothing changes in the kernel.
    pub fn adopt(options: Options) -> Result<Self, EnforcerError> {
        if !programs::pinned(&options.pins) {
            return Err(EnforcerError::NotStarted);
        }
        let (maps, state) = open(&options.pins)?;
        let current = maps.generations.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let current = current.map_err(map_error("find the generation in force"))?.unwrap_or_default();
        let id = u32::from_ne_bytes(current.try_into().unwrap_or_default());
        let map = MapHandle::from_map_id(id).map_err(map_error("open the generation in force"))?;
        let number = Generation::number(&map)?;
        let built = Built::open(&options.folder.policy(number))?;
        let generation = Generation::adopted(map, built)?;
        let contexts = Contexts::from_lines(&fs::read_to_string(options.folder.contexts()).unwrap_or_default());
        let mut enforcer = Self::of(options, maps, state, generation, contexts);
        enforcer.learn();
        enforcer.save_contexts()?;
        Ok(enforcer)
    }

    /// Puts another policy in force. `verify` is asked once it is; when it says no, the one before is put back.
    pub fn reload(
        &mut self,
        built: Built,
        verify: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Reloaded, EnforcerError> {
        self.learn();
        let number = self.generation.number + 1;
        let unconfined = unconfined(&self.options, &built, &self.contexts);
        let file = self.options.folder.policy(number);
        self.options.folder.replace(&file, &built.to_bytes())?;
        let prepared = Generation::prepare(number, built, &unconfined, &self.maps.template);
        let mut next = prepared.inspect_err(|_| drop(fs::remove_file(&file)))?;
        let invalid = next.adopt(&self.contexts);
        next.translate(&self.generation)?;
        let needed = attached::needed(&self.options, &next.policy, next.tables(), &unconfined)?;
        // More than either policy needs does no harm while one takes the place of the other.
        let before = self.hooks()?;
        self.attach(&needed)?;
        self.state.set_no_lookups(false);
        self.put_in_force(next)
            .and_then(|previous| match verify(self) {
                Ok(()) => self.settle(&previous, &needed).map(|()| Reloaded { number, invalid }),
                Err(reason) => {
                    self.put_in_force(previous).map(drop)?;
                    self.detach_all_but(&before)?;
                    Err(EnforcerError::RolledBack { reason })
                }
            })
            .inspect_err(|_| drop(fs::remove_file(&file)))
    }

    /// Switches to another generation; the one before. Contexts that the kernel gave SIDs meanwhile get their places.
    fn put_in_force(&mut self, next: Generation) -> Result<Generation, EnforcerError> {
        let previous = std::mem::replace(&mut self.generation, next);
        self.file_contexts.take();
        let switched = self.put_sids().and_then(|()| {
            let switched = self.generation.put_in_force(&self.maps.generations, Some(&previous));
            switched.map_err(EnforcerError::from)
        });
        if let Err(error) = switched {
            self.generation = previous;
            return Err(error);
        }
        self.state.forget();
        let last = self.state.last_sid().load(Ordering::SeqCst);
        for sid in (TG_FIRST_SID..=last).filter(|sid| !self.contexts.has(*sid)).collect::<Vec<_>>() {
            if let Some(context) = previous.get(sid) {
                let text = previous.text(&context);
                if let Ok(context) = self.generation.context(&text) {
                    self.generation.set(sid, context);
                    self.put_sid(sid, context)?;
                }
                self.contexts.insert(sid, text);
            }
        }
        Ok(previous)
    }

    /// What a new generation brings beside its decisions; what the one before left goes.
    fn settle(&mut self, previous: &Generation, needed: &[String]) -> Result<(), EnforcerError> {
        self.detach_all_but(needed)?;
        self.label_filesystems()?;
        let old: Vec<Vec<u8>> =
            self.maps.sids.keys().filter(|key| key.ends_with(&previous.number.to_ne_bytes())).collect();
        for key in old {
            // One that is gone already is gone.
            let _ = self.maps.sids.delete(&key);
        }
        let _ = fs::remove_file(self.options.folder.policy(previous.number));
        self.save_contexts()
    }

    /// Ends enforcement: programs are detached, maps and files removed.
    pub fn stop(self) -> Result<(), EnforcerError> {
        self.state.set_enforcing(false);
        programs::unpin(&self.options.pins)?;
        let _ = fs::remove_file(self.options.folder.policy(self.generation.number));
        let _ = fs::remove_file(self.options.folder.contexts());
        Ok(())
    }

    /// Sets whether what a domain is denied is granted, and audited, until the next generation.
    pub fn set_permissive(&mut self, domain: &str, permissive: bool) -> Result<(), EnforcerError> {
        self.generation.set_permissive(domain, permissive)?;
        self.state.forget();
        Ok(())
    }

    /// The hooks whose programs are attached.
    pub fn hooks(&self) -> Result<Vec<String>, EnforcerError> {
        Ok(programs::attached(&self.options.pins)?)
    }

    /// What a SID stands for, in every map that says so.
    fn put_sids(&mut self) -> Result<(), EnforcerError> {
        for (sid, _) in self.contexts.iter() {
            if let Some(context) = self.generation.get(sid) {
                self.put_sid(sid, context)?;
            }
        }
        Ok(())
    }

    /// Of several SIDs that stand for one context, such as initial ones, programs give the first to new objects: those
    /// have the label of the directory then, not another of the same text.
    fn put_sid(&self, sid: Sid, context: tg_context) -> Result<(), EnforcerError> {
        let key = tg_sid_key { context, generation: self.generation.number };
        match self.maps.sids.update(bytes_of(&key), &sid.to_ne_bytes(), MapFlags::NO_EXIST) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(map_error("give a context a SID")(cause)),
            _ => Ok(()),
        }
    }

    fn label_filesystems(&mut self) -> Result<(), EnforcerError> {
        let policy = Arc::clone(&self.generation.policy);
        let mut sid = |context: &Context| self.intern(&context::text(&policy, context));
        let found = filesystems::of(&policy, &mut sid)?;
        for (name, value) in &found.filesystems {
            let put = self.maps.filesystems.update(bytes_of(name), bytes_of(value), MapFlags::ANY);
            put.map_err(map_error("say what file systems are labelled"))?;
        }
        for (key, value) in &found.genfs {
            let put = self.maps.genfs.update(bytes_of(key), bytes_of(value), MapFlags::ANY);
            put.map_err(map_error("say what paths are labelled"))?;
        }
        let (names, paths) = (found.filesystems.iter(), found.genfs.iter());
        retain(&self.maps.filesystems, &names.map(|(name, _)| bytes_of(name)).collect());
        retain(&self.maps.genfs, &paths.map(|(key, _)| bytes_of(key)).collect());
        Ok(())
    }

    /// The SID of a context, which the policy in force must permit; a new one is given a SID.
    pub fn intern(&mut self, text: &str) -> Result<Sid, EnforcerError> {
        self.learn();
        if let Some(sid) = self.contexts.sid(text) {
            return Ok(sid);
        }
        let context = self.generation.context(text)?;
        let canonical = self.generation.text(&context);
        if let Some(sid) = self.contexts.sid(&canonical) {
            return Ok(sid);
        }
        let sid = self.take_sid()?;
        self.generation.set(sid, context);
        // The kernel may have given the context a SID meanwhile; both stand for it then.
        self.put_sid(sid, context)?;
        self.contexts.insert(sid, canonical);
        self.save_contexts()?;
        Ok(sid)
    }

    fn take_sid(&self) -> Result<Sid, Full> {
        let last = self.state.last_sid();
        let taken = last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
            Some(contexts::next(last)).filter(|next| *next < TG_SIDS)
        });
        taken.map(contexts::next).map_err(|_| Full)
    }

    /// Learns the contexts that the kernel has given SIDs.
    pub fn learn(&mut self) {
        let last = self.state.last_sid().load(Ordering::SeqCst);
        for sid in TG_FIRST_SID..=last {
            if !self.contexts.has(sid)
                && let Some(context) = self.generation.get(sid)
            {
                let text = self.generation.text(&context);
                self.contexts.insert(sid, text);
            }
        }
    }

    fn save_contexts(&self) -> Result<(), EnforcerError> {
        self.options.folder.replace(&self.options.folder.contexts(), self.contexts.lines().as_bytes())
    }

    /// What was labelled when enforcement started, and what of that was written to files; empty when it was adopted.
    #[must_use]
    pub fn labelled(&self) -> (&Report, &Written) {
        (&self.labelled, &self.written)
    }

    /// Whether this policy is in force.
    #[must_use]
    pub fn is(&self, built: &Built) -> bool {
        let file = self.options.folder.policy(self.generation.number);
        fs::read(file).is_ok_and(|bytes| bytes == built.to_bytes())
    }

    /// The names of what a context may do to another, as the generation in force says.
    pub fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, ContextError> {
        self.generation.access(source, target, class)
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

/// What came of another policy.
#[derive(Debug)]
pub struct Reloaded {
    /// The number of its generation.
    pub number: u32,
    /// Contexts in use that it does not permit: what has them is unlabelled from now on.
    pub invalid: Vec<(Sid, String)>,
}

fn open(pins: &Pins) -> Result<(Maps, State), EnforcerError> {
    let state = State::new(programs::map(pins, "bss")?.as_fd());
    let state = state.map_err(|cause| EnforcerError::Io { what: "map", path: pins.map("bss"), cause })?;
    // Labels are written to attributes by this process only.
    state.set_daemon(std::process::id());
    Ok((Maps::open(pins)?, state))
}

impl Drop for Enforcer {
    /// Enforcement goes on; this process is no longer its daemon.
    fn drop(&mut self) {
        self.state.set_daemon(0);
    }
}

/// Domains that are asked nothing when enforcement of a policy starts so.
#[must_use]
pub fn unconfined_domains(options: &Options, built: &Built) -> Vec<String> {
    let machine = options.machine.clone().or_else(|| contexts::machine(&built.policy));
    unconfined(options, built, &Contexts::initial(&built.policy, &machine.unwrap_or_default()))
}

/// Domains that are asked nothing: those named, or the machine's and the kernel's.
fn unconfined(options: &Options, built: &Built, contexts: &Contexts) -> Vec<String> {
    if !options.unconfined.is_empty() {
        return options.unconfined.clone();
    }
    let type_ = |sid| contexts.text(sid).split(':').nth(2).map(str::to_owned);
    let mut names: Vec<String> = [TG_SID_MACHINE, SECINITSID_KERNEL].into_iter().filter_map(type_).collect();
    names.retain(|name| built.policy.types.iter().any(|type_| type_.name == *name));
    names
}

/// Removes what an earlier policy said.
fn retain(map: &MapHandle, wanted: &HashSet<&[u8]>) {
    let old: Vec<Vec<u8>> = map.keys().filter(|key| !wanted.contains(key.as_slice())).collect();
    for key in old {
        // One that is gone already is gone.
        let _ = map.delete(&key);
    }
}

/// A value of a map as bytes.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    let pointer: *const T = value;
    // SAFETY: a plain value has no padding, so each byte of it is initialised.
    unsafe { std::slice::from_raw_parts(pointer.cast(), size_of::<T>()) }
}

/// Structures of integers without gaps, as maps hold them.
///
/// # Safety
///
/// The type must have no padding, and any bytes must be one of its values.
pub(crate) unsafe trait Plain {}

macro_rules! plain {
    ($($name:ident)*) => { $(
        // SAFETY: enforcer.h has it without gaps, of integers only.
        unsafe impl Plain for tollgate_abi::enforcer::$name {}
    )* };
}
plain!(tg_guarded tg_sid_key tg_fs_name tg_filesystem tg_genfs_key tg_genfs_value tg_task tg_inode tg_label_key tg_label_value tg_superblock);
