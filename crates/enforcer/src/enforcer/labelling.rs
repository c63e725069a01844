//! Labels of files, as the daemon asks for them and changes them.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::fd::BorrowedFd,
    path::Path,
    sync::Arc,
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use tollgate_abi::{
    bytes_of,
    enforcer::{
        SECINITSID_UNLABELED, TG_FAILED_LABELS_LOST, TG_FAILED_NOT_LABELLED, TG_SID_SURVIVAL, TG_SUPERBLOCK_WALKED,
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
        self,
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

/// What is recovered there after a crash nobody has tried: no kernel of the tests has it.
const UNTRIED: &str = "f2fs";
const UNTRIED_REASON: &str = "labels of files of f2fs may be lost in a crash: all are unlabelled, and denied to confined domains; use ext4, \
                              xfs or btrfs";
/// The policy capability that labels symbolic links by path, too.
const LINKS: &str = "genfs_seclabel_symlinks";

/// What is to be labelled.
pub(super) enum Part {
    All,
    Mount(u32),
    Subvolume(Identity),
    /// What has no label in memory, for hooks did not run from one moment to another.
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

    /// Labels ports, hosts and interfaces in the generation, before it is put in force.
    pub(super) fn label_network(&mut self) -> Result<(), EnforcerError> {
        let policy = Arc::clone(&self.generation.policy);
        let network = network::of(&policy, &mut |context| self.intern(&context::text(&policy, context)))?;
        self.generation.put_network(&network);
        Ok(())
    }

    /// Labels all files that are there, and what processes hold. What could not be labelled is told, and denied to confined
    /// domains.
    pub(super) fn label_machine(&mut self) -> Result<Report, EnforcerError> {
        self.label_files(Part::All)
    }

    /// Labels the files of a file system that was mounted since.
    pub fn label_mount(&mut self, device: u32) -> Result<Report, EnforcerError> {
        let mut maps = self.kernel_maps()?;
        let known = maps.superblock(device).map_err(labelling)?;
        if known.is_some_and(|known| known.flags & TG_SUPERBLOCK_WALKED != 0) {
            return Ok(Report::default());
        }
        // Those of another file system, which had this number before, or of this one, which was elsewhere since.
        self.leave_device(device)?;
        for (key, _) in maps.entries(&mut |key, _| key.device == device).map_err(labelling)? {
            maps.remove_entry(key).map_err(labelling)?;
        }
        let report = self.label_files(Part::Mount(device))?;
        self.protect_folders()?;
        Ok(report)
    }

    /// Labels the files of a subvolume that has come into a file system since: its number, and the generation of its root.
    pub fn label_subvolume(&mut self, device: u32, subvolume: u64, generation: u32) -> Result<Report, EnforcerError> {
        self.label_files(Part::Subvolume(subvolumes::root(device, subvolume, generation)))
    }

    pub(super) fn label_files(&mut self, part: Part) -> Result<Report, EnforcerError> {
        let mut maps = self.kernel_maps()?;
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
        let kernel = self.kernel_maps()?;
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

    /// Does what events asked for that no daemon has heard: writes noted labels, and labels what was mounted. Tells what
    /// failed.
    pub fn catch_up(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        if let Err(cause) = self.tend_labels() {
            failures.push(cause.to_string());
        }
        failures.extend(self.untold_labels());
        failures.extend(self.subordinates.look(&self.state.shares()));
        // Where nothing was mounted or unmounted there is nothing new.
        let told = fs::read(mountinfo()).unwrap_or_default();
        if told == self.mounted {
            return failures;
        }
        for mount in mounts::read(&told) {
            if self.filesystem_named(&mount.filesystem).is_ok_and(|found| found.is_some_and(is_kept)) {
                match self.label_mount(mount.device) {
                    Ok(report) => failures.extend(report.told),
                    Err(cause) => failures.push(cause.to_string()),
                }
            }
        }
        self.mounted = told;
        failures
    }

    /// Gives a file another label, for the machine.
    pub fn set_label(&mut self, file: BorrowedFd<'_>, sid: Sid) -> Result<Lasts, EnforcerError> {
        self.set_label_for(Holder::Machine, file, sid)
    }

    /// Gives a file another label, for somebody whose share the label is in.
    pub fn set_label_for(&mut self, holder: Holder, file: BorrowedFd<'_>, sid: Sid) -> Result<Lasts, EnforcerError> {
        let (object, filesystem) = (object(file)?, filesystem_of(file)?);
        may_write(&filesystem, holder).map_err(labelling)?;
        // What enforcement lives by stays so.
        let sid = sid | self.label(file)? & TG_SID_SURVIVAL;
        self.learn();
        let mut maps = self.kernel_maps()?;
        let overlay = matches!(filesystem, Kind::Overlay { .. });
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

    /// The label that the policy's `file_contexts` give a file by its path; `None`: none.
    pub fn default_label(&mut self, path: &Path, mode: u32) -> Result<Option<String>, EnforcerError> {
        let file_contexts = self.take_file_contexts()?;
        let found = file_contexts.lookup(path, mode).map_err(|cause| labelling(io::Error::other(cause)));
        self.file_contexts = file_contexts.into();
        found
    }

    /// Gives a file the label that `file_contexts` give its path, if there is one.
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

    /// File systems whose labels cannot be kept here, each with the reason. The programs are told what they need for btrfs
    /// once it is there.
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

    pub(super) fn kernel_maps(&self) -> Result<KernelMaps, EnforcerError> {
        let again = |map| MapHandle::try_from(map).map_err(map_error("open a map of labels"));
        let (inodes, labels, superblocks) = (&self.maps.inodes, &self.maps.labels, &self.maps.superblocks);
        Ok(KernelMaps {
            inodes: again(inodes)?,
            labels: again(labels)?,
            unwritten: again(&self.maps.unwritten)?,
            active: again(&self.maps.active)?,
            superblocks: again(superblocks)?,
            shares: self.state.shares(),
        })
    }
}

/// The contexts of an enforcer; one that was asked for is not asked for again. Files may name new ones as long as callers
/// may: whoever mounts an image must not use up what all need.
struct Remembered<'e> {
    enforcer: &'e mut Enforcer,
    known: HashMap<String, Option<Sid>>,
    /// Those that the policy does not have.
    deferred: HashMap<String, Sid>,
    without_place: u64,
}

/// So many contexts of files have found no place.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} contexts of files are new, and half of all contexts or levels are in use: these files are unlabelled until the machine \
     starts again without them"
)]
struct NoPlace(u64);

impl Remembered<'_> {
    fn place(&mut self, context: &str) -> Result<Sid, EnforcerError> {
        self.enforcer.learn();
        if self.enforcer.contexts.sid(context).is_some() || !self.enforcer.is_half_full() {
            return self.enforcer.intern(context);
        }
        // What the policy does not have is not new, but wrong.
        self.enforcer.generation.read(context)?;
        self.without_place += 1;
        // Not like its directory: it has a label, which cannot be kept in mind.
        Ok(SECINITSID_UNLABELED)
    }
}

impl Remembered<'_> {
    /// The SIDs of the contexts that labels are noted with.
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

/// Where the file system of a device is mounted, for people; `None`: all.
pub(crate) fn of_device(device: Option<u32>) -> String {
    let Some(device) = device else { return "all file systems".to_owned() };
    let mounts = mounts::read(&fs::read(mountinfo()).unwrap_or_default());
    let mount = mounts.into_iter().find(|mount| mount.device == device);
    mount.map_or_else(
        || format!("device {}:{}", device >> 20, device & 0xfffff),
        |mount| mount.point.display().to_string(),
    )
}
