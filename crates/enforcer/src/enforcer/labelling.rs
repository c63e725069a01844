//! Labels of files, as the daemon reads and changes them.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::fd::BorrowedFd,
    path::Path,
    sync::Arc,
};

use libbpf_rs::{MapCore, MapFlags};
use tollgate_abi::{
    bytes_of,
    enforcer::{
        SECINITSID_UNLABELED, TG_FAILED_LABELS_LOST, TG_FAILED_NOT_LABELLED, TG_SID_SURVIVAL, TG_SUPERBLOCK_WALKED,
        tg_label_value,
    },
};
use tollgate_policy::{context, model::Context};

use super::{
    Enforcer, EnforcerError, map_error,
    maps::retain,
    object::{Kind, PROC, filesystem_of, is_kept, labelling, may_write, mountinfo, object},
};
use crate::{
    contexts::{self, Sid},
    labels::{
        self, bare,
        checkpoint::{AfterCrash, Doubts},
        file_contexts::FileContexts,
        filesystems,
        identity::Identity,
        machine::{Machine, Rules},
        map_sink::MapSink,
        maps::{KernelMaps, Maps},
        mounts,
        object::Moment,
        relabel::{self, Lasts, Write},
        subvolumes,
        unseen::Unseen,
        walk::Report,
    },
    network,
    shares::Holder,
};

/// File systems on which nobody has tried whether labels survive a crash: no kernel in the tests has them.
const UNTRIED: &str = "f2fs";
const UNTRIED_REASON: &str = "labels of files of f2fs may be lost in a crash: all are unlabelled, and denied to confined domains; use ext4, \
                              xfs or btrfs";
/// The policy capability by which symbolic links are labelled by path, too.
const LINKS: &str = "genfs_seclabel_symlinks";

/// What to label.
pub(super) enum Part {
    All,
    Mount(u32),
    Subvolume(Identity),
    /// Files that have no label in memory, because hooks did not run between these two moments.
    Unseen(Moment, Moment),
}

impl Part {
    fn device(&self) -> Option<u32> {
        match self {
            Self::All | Self::Unseen(..) => None,
            Self::Mount(device) => Some(*device),
            Self::Subvolume(root) => Some(root.device),
        }
    }
}

impl Enforcer {
    pub(super) fn label_filesystems(&mut self) -> Result<(), EnforcerError> {
        let policy = Arc::clone(&self.generation.policy);
        let mut sid = |context: &Context| self.intern(&context::text(&policy, context));
        let found = filesystems::of(&policy, &mut sid)?;
        for (name, value) in &found.filesystems {
            let put = self.maps.filesystems.update(bytes_of(name), bytes_of(value), MapFlags::ANY);
            put.map_err(map_error("put the labels of file systems in a map"))?;
        }
        for (key, value) in &found.genfs {
            let put = self.maps.genfs.update(bytes_of(key), bytes_of(value), MapFlags::ANY);
            put.map_err(map_error("put the labels of paths in a map"))?;
        }
        let (names, paths) = (found.filesystems.iter(), found.genfs.iter());
        retain(&self.maps.filesystems, &names.map(|(name, _)| bytes_of(name)).collect());
        retain(&self.maps.genfs, &paths.map(|(key, _)| bytes_of(key)).collect());
        Ok(())
    }

    /// Labels ports, hosts and interfaces in the generation, before it is put in force.
    pub(super) fn label_network(&mut self) -> Result<(), EnforcerError> {
        let policy = Arc::clone(&self.generation.policy);
        let network = network::of(&policy, &mut |context| self.intern(&context::text(&policy, context)))?;
        self.generation.put_network(&network);
        Ok(())
    }

    /// Labels all existing files, and what processes hold. What could not be labelled is reported, and denied to
    /// confined domains.
    pub(super) fn label_machine(&mut self) -> Result<Report, EnforcerError> {
        self.label_files(Part::All)
    }

    /// Labels the files of a file system that was mounted later.
    pub fn label_mount(&mut self, device: u32) -> Result<Report, EnforcerError> {
        let mut maps = self.kernel_maps();
        let known = maps.superblock(device).map_err(labelling)?;
        if known.is_some_and(|known| known.flags & TG_SUPERBLOCK_WALKED != 0) {
            return Ok(Report::default());
        }
        // Labels of another file system that had this number before, or of this one when it was mounted elsewhere; not those
        // of files that were made since it was mounted.
        let mounted = known.map(|known| known.number).filter(|number| *number != 0);
        self.leave_device(device, mounted)?;
        let before = |value: &tg_label_value| Some(value.mounted) != mounted;
        for (key, _) in maps.entries(&mut |key, value| key.device == device && before(value)).map_err(labelling)? {
            maps.remove_entry(key).map_err(labelling)?;
        }
        self.tell_bare();
        let report = self.label_files(Part::Mount(device))?;
        self.protect_folders()?;
        Ok(report)
    }

    /// Labels the files of a subvolume that appeared in a file system later: its number, and the generation of its
    /// root.
    pub fn label_subvolume(&mut self, device: u32, subvolume: u64, generation: u32) -> Result<Report, EnforcerError> {
        self.label_files(Part::Subvolume(subvolumes::root(device, subvolume, generation)))
    }

    pub(super) fn label_files(&mut self, part: Part) -> Result<Report, EnforcerError> {
        let mut maps = self.kernel_maps();
        let rules = self.rules()?;
        let file_contexts = self.take_file_contexts()?;
        let refused = self.refused_filesystems();
        let machine = Machine {
            proc: Path::new(PROC),
            rules: &rules,
            file_contexts: Some(&file_contexts),
            refused: &refused,
            doubts: self.doubts(&part),
        };
        let kernel = self.kernel_maps();
        let label_of = |file: BorrowedFd<'_>| Ok(kernel.inode(file)?.map_or(SECINITSID_UNLABELED, |label| label.sid));
        let mut contexts =
            Remembered { enforcer: self, known: HashMap::new(), deferred: HashMap::new(), without_place: 0 };
        let noted = contexts.noted().map_err(labelling)?;
        let recall = contexts.enforcer.durable.recall(|context| noted.get(context).copied());
        let mut sink = MapSink::new(&mut maps, recall).with(contexts.enforcer.options.progress.clone());
        let mut report = match &part {
            Part::All => machine.label(&mut contexts, &mut sink),
            Part::Mount(device) => machine.label_mount(*device, &mut contexts, &mut sink),
            Part::Subvolume(root) => machine.label_subvolume(*root, &label_of, &mut contexts, &mut sink),
            Part::Unseen(from, to) => {
                let mut unseen = Unseen::new(&mut sink, *from..=*to);
                let report = machine.label(&mut contexts, &mut unseen);
                Report { unseen: unseen.labelled, ..report }
            }
        };
        if let Err(cause) = sink.finish(None) {
            report.fail("files with several names", cause);
        }
        if contexts.without_place > 0 {
            report.fail(of_device(part.device()), NoPlace(contexts.without_place));
        }
        self.file_contexts = file_contexts.into();
        let recall = sink.recall;
        self.durable.recalled(recall);
        self.durable.look();
        self.checkpoints.changed(part.device());
        self.state.count_failures(TG_FAILED_LABELS_LOST, report.lost);
        self.state.count_failures(TG_FAILED_NOT_LABELLED, report.failures);
        self.state.forget();
        Ok(report)
    }

    /// Which files of a part may have lost their labels.
    fn doubts(&self, part: &Part) -> Doubts {
        match part {
            Part::Mount(device) => self.after_unmount(*device).into(),
            Part::All | Part::Subvolume(_) => self.options.after_crash.into(),
            Part::Unseen(from, _) if self.options.after_crash == AfterCrash::Unlabel => Doubts::Since(*from),
            Part::Unseen(..) => Doubts::Nothing,
        }
    }

    /// Does what events requested that no daemon has read: writes noted labels, and labels what was mounted. Returns
    /// the failures.
    pub fn catch_up(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        if let Err(cause) = self.tend_labels() {
            failures.push(cause.to_string());
        }
        failures.extend(self.unreported_labels());
        failures.extend(self.subordinates.look(&self.state.shares()));
        let Some(mountinfo) = self.mounted.changed() else { return failures };
        for mount in mounts::read(&mountinfo) {
            if self.filesystem_named(&mount.filesystem).is_ok_and(|found| found.is_some_and(is_kept)) {
                match self.label_mount(mount.device) {
                    Ok(report) => failures.extend(report.messages),
                    Err(cause) => failures.push(cause.to_string()),
                }
            }
        }
        failures
    }

    /// Gives a file another label, in the machine's share.
    pub fn set_label(&mut self, file: BorrowedFd<'_>, sid: Sid) -> Result<Lasts, EnforcerError> {
        self.set_label_for(Holder::Machine, file, sid)
    }

    /// Gives a file another label, in the share of `holder`.
    pub fn set_label_for(&mut self, holder: Holder, file: BorrowedFd<'_>, sid: Sid) -> Result<Lasts, EnforcerError> {
        let (object, filesystem) = (object(file)?, filesystem_of(file)?);
        may_write(&filesystem, holder).map_err(labelling)?;
        // An object on which enforcement depends stays one.
        let sid = sid | self.label(file)? & TG_SID_SURVIVAL;
        self.learn();
        let overlay = matches!(filesystem, Kind::Overlay { .. });
        if overlay {
            self.attach_for_overlay()?;
        }
        let mut maps = self.kernel_maps();
        let mut kept = false;
        let mut write = |what: Write<'_>| match what {
            Write::Children(children) => {
                kept = true;
                self.settle_labels(object.device, children)
            }
            Write::Own => self.write_label(file, object.device, sid, overlay, kept),
        };
        let lasts = match filesystem {
            Kind::Overlay { .. } => write(Write::Own).map(|()| Lasts::Durably),
            Kind::Nameless(_) => relabel::set_open(&mut maps, file, sid, 0).map(|()| Lasts::UntilUnmount),
            _ => relabel::set(&mut maps, &object, sid, &mut write, holder),
        };
        self.durable.look();
        self.state.forget();
        lasts.map_err(labelling)
    }

    /// The label that the policy's `file_contexts` give to a file by its path; `None`: they give none.
    pub fn default_label(&mut self, path: &Path, mode: u32) -> Result<Option<String>, EnforcerError> {
        let file_contexts = self.take_file_contexts()?;
        let found = file_contexts.lookup(path, mode).map_err(|cause| labelling(io::Error::other(cause)));
        self.file_contexts = file_contexts.into();
        found
    }

    /// Gives a file the label that `file_contexts` give to its path, if they give one.
    pub fn label_by_path(&mut self, file: BorrowedFd<'_>, path: &Path, mode: u32) -> Result<(), EnforcerError> {
        let Some(context) = self.default_label(path, mode)? else { return Ok(()) };
        let sid = self.intern(&context)?;
        if contexts::bare(self.label(file)?) != sid {
            self.set_label(file, sid)?;
        }
        Ok(())
    }

    fn take_file_contexts(&mut self) -> Result<FileContexts, EnforcerError> {
        match self.file_contexts.take() {
            Some(known) => Ok(known),
            None => {
                FileContexts::new(&self.generation.file_contexts).map_err(|cause| labelling(io::Error::other(cause)))
            }
        }
    }

    fn rules(&mut self) -> Result<Rules, EnforcerError> {
        let policy = Arc::clone(&self.generation.policy);
        let found = filesystems::of(&policy, &mut |context| self.intern(&context::text(&policy, context)))?;
        Ok(Rules::new(&found, policy.capabilities.iter().any(|name| name == LINKS)))
    }

    /// Tells the programs how to recognize an inode without attributes. Other file systems are denied until they are walked.
    pub(super) fn tell_bare(&self) {
        for (name, layout) in bare::layouts(|name| self.knows_bare(name)) {
            let Some(name) = filesystems::name(name) else { continue };
            let _ = self.maps.bare.update(bytes_of(&name), bytes_of(&layout), MapFlags::ANY);
        }
    }

    fn knows_bare(&self, filesystem: &str) -> bool {
        let name = filesystems::name(filesystem);
        name.is_some_and(|name| matches!(self.maps.bare.lookup(bytes_of(&name), MapFlags::ANY), Ok(Some(_))))
    }

    /// File systems whose labels cannot be kept on this kernel, each with the reason. For btrfs, the programs get the
    /// offsets that they need once it is loaded.
    fn refused_filesystems(&self) -> BTreeMap<&'static str, String> {
        let mut refused = BTreeMap::from([(UNTRIED, UNTRIED_REASON.to_owned())]);
        if !self.state.knows_subvolumes() && subvolumes::is_there() {
            match subvolumes::layout() {
                Ok(layout) => self.state.set_subvolumes(layout),
                Err(cause) => {
                    let reason = format!(
                        "{cause}: files of different subvolumes cannot be told apart, so that all are unlabelled, and \
                         denied to confined domains; a kernel with CONFIG_DEBUG_INFO_BTF_MODULES is needed"
                    );
                    refused.insert(subvolumes::FILESYSTEM, reason);
                }
            }
        }
        refused
    }

    pub(super) fn kernel_maps(&self) -> KernelMaps {
        KernelMaps {
            inodes: Arc::clone(&self.maps.inodes),
            labels: Arc::clone(&self.maps.labels),
            unwritten: Arc::clone(&self.maps.unwritten),
            active: Arc::clone(&self.maps.active),
            superblocks: Arc::clone(&self.maps.superblocks),
            walked: self.walked.clone(),
            uuids: Arc::clone(&self.maps.uuids),
            shares: self.state.shares(),
            state: self.state.clone(),
        }
    }
}

/// Turns contexts into SIDs, and remembers those that it has looked up. Files may bring new contexts only as long as
/// clients may: whoever mounts an image must not use up the SIDs.
struct Remembered<'e> {
    enforcer: &'e mut Enforcer,
    known: HashMap<String, Option<Sid>>,
    /// SIDs of contexts that the policy does not have.
    deferred: HashMap<String, Sid>,
    without_place: u64,
}

/// How many contexts of files got no SID.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} contexts of files are new, but half of all contexts or levels are in use: these files are unlabelled until the machine \
     starts again without them"
)]
struct NoPlace(u64);

impl Remembered<'_> {
    fn place(&mut self, context: &str) -> Result<Sid, EnforcerError> {
        self.enforcer.learn();
        if self.enforcer.contexts.sid(context).is_some() || !self.enforcer.is_half_full() {
            return self.enforcer.intern(context);
        }
        // A context that the policy does not have is not counted as new, because it is invalid.
        self.enforcer.generation.read(context)?;
        self.without_place += 1;
        // The file is not labelled like its directory: it has a label of its own, which cannot be remembered.
        Ok(SECINITSID_UNLABELED)
    }
}

impl Remembered<'_> {
    /// The SIDs of the contexts in the notes.
    fn noted(&mut self) -> io::Result<HashMap<String, Sid>> {
        let texts = self.enforcer.durable.contexts();
        let sid = |text: String| {
            let sid = match labels::Contexts::sid(self, &text)? {
                Some(sid) => sid,
                None => labels::Contexts::deferred(self, &text)?,
            };
            Ok((text, sid))
        };
        texts.into_iter().map(sid).collect()
    }
}

impl labels::Contexts for Remembered<'_> {
    fn sid(&mut self, context: &str) -> io::Result<Option<Sid>> {
        if let Some(known) = self.known.get(context) {
            return Ok(*known);
        }
        let sid = match self.place(context) {
            Ok(sid) => sid.into(),
            Err(EnforcerError::Context(_)) => None,
            Err(cause) => return Err(io::Error::other(cause)),
        };
        self.known.insert(context.to_owned(), sid);
        Ok(sid)
    }

    fn deferred(&mut self, context: &str) -> io::Result<Sid> {
        if let Some(known) = self.deferred.get(context) {
            return Ok(*known);
        }
        let known = self.enforcer.contexts.sid(context).is_some();
        let sid = if !contexts::may_be_one(context) {
            SECINITSID_UNLABELED
        } else if !known && self.enforcer.is_half_full() {
            self.without_place += 1;
            SECINITSID_UNLABELED
        } else {
            self.enforcer.defer(context).map_err(io::Error::other)?
        };
        self.deferred.insert(context.to_owned(), sid);
        Ok(sid)
    }
}

/// Where the file system of a device is mounted, in words; `None`: all file systems.
pub(crate) fn of_device(device: Option<u32>) -> String {
    let Some(device) = device else { return "all file systems".to_owned() };
    let mounts = mounts::read(&fs::read(mountinfo()).unwrap_or_default());
    let mount = mounts.into_iter().find(|mount| mount.device == device);
    mount.map_or_else(
        || format!("device {}:{}", device >> 20, device & 0xfffff),
        |mount| mount.point.display().to_string(),
    )
}
