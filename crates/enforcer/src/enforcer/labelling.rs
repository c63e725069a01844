//! Labels of files, as the daemon asks for them and changes them.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::statfs::{FUSE_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, fstatfs};
use tollgate_abi::{
    bytes_of,
    enforcer::{
        SECINITSID_UNLABELED, TG_FAILED_LABELS_LOST, TG_FAILED_NOT_LABELLED, TG_FS_GENFS, TG_FS_XATTR, TG_SID_SURVIVAL,
        TG_SUPERBLOCK_WALKED, tg_filesystem, tg_label_value,
    },
};
use tollgate_policy::{context, model::Context};

use super::{Enforcer, EnforcerError, map_error, maps::retain};
use crate::{
    contexts::{self, Sid},
    labels::{
        self,
        alone::{self, LITTLE_PATIENCE},
        bare,
        checkpoint::{AfterCrash, Doubts},
        file_contexts::FileContexts,
        filesystems,
        identity::Identity,
        machine::{Machine, Rules, is_served},
        map_sink::MapSink,
        maps::{KernelMaps, Maps},
        mounts::{self, Mount},
        object::{Moment, Object},
        relabel::{self, Lasts, Write},
        subvolumes,
        unseen::Unseen,
        walk::Report,
    },
    network,
    shares::Holder,
};

const PROC: &str = "/proc";
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
        // Those of another file system, which had this number before, or of this one, which was elsewhere since; not those of
        // what was made since it was mounted.
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

    /// The label of a file that is in force.
    pub fn label(&self, file: BorrowedFd<'_>) -> Result<Sid, EnforcerError> {
        if is_overlay(file)? {
            // That of the file it shows, which no descriptor leads to. A program tells it, before the file system is asked.
            let object = Object::anywhere(file).map_err(labelling)?;
            return Ok(self.state.told_label(|| drop(object.attribute())));
        }
        match self.kernel_maps()?.inode(file).map_err(labelling)?.filter(|label| label.sid != 0) {
            Some(label) => Ok(label.sid),
            // As tg_unseen_sid: what was in memory before the programs were has the label that all have.
            None => {
                let one_label = |found: &tg_filesystem| found.behaviour == TG_FS_GENFS && found.node == 0;
                Ok(self.filesystem(file)?.filter(one_label).map_or(SECINITSID_UNLABELED, |found| found.sid))
            }
        }
    }

    /// The label of the file system that a file is in.
    pub fn filesystem_label(&self, file: BorrowedFd<'_>) -> Result<Sid, EnforcerError> {
        Ok(self.filesystem(file)?.map_or(SECINITSID_UNLABELED, |found| found.sid))
    }

    /// What the policy says of the file system that a file is in, if that is mounted here.
    pub(super) fn filesystem(&self, file: BorrowedFd<'_>) -> Result<Option<tg_filesystem>, EnforcerError> {
        let Some(mount) = mount(file)? else { return Ok(None) };
        self.filesystem_named(&mount.filesystem)
    }

    fn filesystem_named(&self, name: &str) -> Result<Option<tg_filesystem>, EnforcerError> {
        let Some(name) = filesystems::name(name) else { return Ok(None) };
        let found = self.maps.filesystems.lookup(bytes_of(&name), MapFlags::ANY);
        let found = found.map_err(map_error("find what the policy says of a file system"))?;
        Ok(found.as_deref().and_then(filesystems::value))
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
        let lasts = if overlay {
            write(Write::Own).map(|()| Lasts::Durably)
        } else {
            relabel::set(&mut maps, &object, sid, &mut write, holder)
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

    /// Tells the programs how they know an inode that has no attributes. What they are not told is denied until it is walked,
    /// as it was before.
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
            uuids: again(&self.maps.uuids)?,
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

/// The mount that a file is in; `None`: one of another mount namespace.
fn mount(file: BorrowedFd<'_>) -> Result<Option<Mount>, EnforcerError> {
    let number = mounts::mount_of(file).map_err(labelling)?;
    let all = mounts::read(&fs::read(mountinfo()).map_err(|cause| reading(&mountinfo(), cause))?);
    Ok(all.into_iter().find(|found| u64::from(found.id) == number))
}

/// A file, and the device of its file system as the kernel numbers it, which `stat` does not always tell.
pub(super) fn object(file: BorrowedFd<'_>) -> Result<Object<'_>, EnforcerError> {
    let object = match mount(file)? {
        Some(mount) => Object::new(file, mount.device),
        None => Object::anywhere(file),
    };
    object.map_err(labelling)
}

/// Whether labels are written down there.
pub(super) fn is_kept(filesystem: tg_filesystem) -> bool {
    filesystem.behaviour == TG_FS_XATTR
}

/// What matters of a file system whose files a caller has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A program serves it.
    Served,
    /// `here`: in our mount namespace.
    Overlay {
        here: bool,
    },
    Other,
}

/// What a file is in. One in another mount namespace is asked, which may be served by anybody.
fn filesystem_of(file: BorrowedFd<'_>) -> Result<Kind, EnforcerError> {
    if let Some(mount) = mount(file)? {
        return Ok(match mount.filesystem.as_str() {
            name if is_served(name) => Kind::Served,
            "overlay" => Kind::Overlay { here: true },
            _ => Kind::Other,
        });
    }
    let found = alone::ask(file, LITTLE_PATIENCE, |file| Ok(fstatfs(file)?.filesystem_type())).map_err(labelling)?;
    Ok(match found {
        FUSE_SUPER_MAGIC => Kind::Served,
        OVERLAYFS_SUPER_MAGIC => Kind::Overlay { here: false },
        _ => Kind::Other,
    })
}

fn is_overlay(file: BorrowedFd<'_>) -> Result<bool, EnforcerError> {
    Ok(matches!(filesystem_of(file)?, Kind::Overlay { .. }))
}

/// Whether a label may be written there for somebody. Who serves a file system need not answer; a user may have mounted overlayfs
/// in a namespace of his over what he serves.
fn may_write(filesystem: &Kind, holder: Holder) -> io::Result<()> {
    let reason = match (filesystem, holder) {
        (Kind::Served, _) => {
            "a program serves this file system, and need not answer: its files have the label that the policy gives it"
        }
        (Kind::Overlay { here: false }, Holder::User(_)) => {
            "only root may label files of overlayfs in another mount namespace: what is below may not answer"
        }
        _ => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
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

pub(super) fn mountinfo() -> PathBuf {
    Path::new(PROC).join("self/mountinfo")
}

pub(super) fn labelling(cause: io::Error) -> EnforcerError {
    EnforcerError::Labels { cause }
}

fn reading(path: &Path, cause: io::Error) -> EnforcerError {
    EnforcerError::Io { what: "read", path: path.to_owned(), cause }
}
