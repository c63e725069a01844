//! Keeps labels where they outlive the kernel: writes those that hooks and walks have noted to attributes of the files.
//!
//! A hook cannot write an attribute. It notes the label in the map `labels` and marks it dirty; who writes it finds the
//! file by its number and generation, so that no path is trusted and no other file gets the label.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
};
use tollgate_abi::enforcer::tg_label_value;

use crate::labels::{
    Contexts, Label, Sid, Sink,
    genfs::Genfs,
    handle::Opener,
    machine::open_in,
    maps::{Maps, When},
    mounts::{self, Mount},
    object::{Identity, Object},
    processes,
    walk::{Report, Rule, Tree, Walker},
};

/// What writing attributes came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Attributes that were written.
    pub written: u64,
    /// Files that were gone.
    pub gone: u64,
    /// Labels that the file system cannot keep: they last until it is unmounted.
    pub unsupported: u64,
    /// What could not be written now, and stays to be written.
    pub failures: u64,
    /// The first of them, with their reasons.
    pub told: Vec<String>,
}

impl Written {
    fn fail(&mut self, what: impl std::fmt::Display, cause: impl std::fmt::Display) {
        let mut report = Report { told: std::mem::take(&mut self.told), failures: self.failures, ..Report::default() };
        report.fail(what, cause);
        (self.failures, self.told) = (report.failures, report.told);
    }
}

/// What turns SIDs into contexts; `None`: the SID has none. It is asked once the labels are known, among them those that
/// hooks have given SIDs meanwhile.
pub type Texts<'t> = dyn FnMut(Sid) -> Option<String> + 't;

/// Writes the labels that are to be written. `mountinfo` tells where file systems are; for those that it does not have,
/// other mount namespaces are looked at.
pub fn write(maps: &mut dyn Maps, texts: &mut Texts<'_>, mountinfo: &[u8]) -> io::Result<Written> {
    let mut by_device: BTreeMap<u32, Vec<Dirty>> = BTreeMap::new();
    for (key, value) in maps.entries(&mut |_, value| value.dirty != 0)? {
        by_device.entry(key.device).or_default().push((key.into(), value.sid));
    }
    let mut all = mounts::read(mountinfo);
    mounts::widest_first(&mut all);
    let mut writer = Writer { maps, texts, written: Written::default() };
    for (device, labels) in by_device {
        let of_device: Vec<&Mount> = all.iter().filter(|mount| mount.device == device).collect();
        writer.device(device, &of_device, &labels);
    }
    Ok(writer.written)
}

/// A label that is to be written.
type Dirty = (Identity, Sid);

struct Writer<'w> {
    maps: &'w mut dyn Maps,
    texts: &'w mut Texts<'w>,
    written: Written,
}

impl Writer<'_> {
    fn device(&mut self, device: u32, mounts: &[&Mount], labels: &[Dirty]) {
        let root = mounts.iter().find_map(|mount| readable(&mounts::open(mount).ok()?).ok());
        let Some(root) = root else { return self.not_here(device, labels) };
        if let Err(cause) = self.files(&root, device, labels) {
            self.written.fail(mounts[0].point.display(), cause);
        }
    }

    /// What was unmounted before its labels were written has lost them; another mount namespace may have it still.
    fn not_here(&mut self, device: u32, labels: &[Dirty]) {
        let done = match self.maps.is_mounted(device) {
            Ok(false) => return labels.iter().for_each(|(identity, _)| self.forget(*identity)),
            Ok(true) => elsewhere(device)
                .ok_or_else(|| io::Error::other("no mount namespace shows it"))
                .and_then(|root| self.files(&root, device, labels)),
            Err(cause) => Err(cause),
        };
        if let Err(cause) = done {
            self.written.fail(format_args!("device {device}"), cause);
        }
    }

    /// Writes the labels of one file system: the root's last, which says that the others are there.
    fn files(&mut self, root: &OwnedFd, device: u32, labels: &[Dirty]) -> io::Result<()> {
        let object = Object::new(root.as_fd(), device)?;
        let (of_root, others): (Vec<Dirty>, Vec<Dirty>) =
            labels.iter().partition(|(identity, _)| identity.inode == object.inode());
        let failures = self.written.failures;
        match Opener::new(root.as_fd(), object.inode()) {
            Some(opener) => others.iter().for_each(|label| self.by_handle(&opener, label)),
            None => self.by_walk(root, device, &others)?,
        }
        if self.written.failures == failures {
            of_root.iter().for_each(|label| self.file(&object, label));
        }
        Ok(())
    }

    fn by_handle(&mut self, opener: &Opener<'_>, label: &Dirty) {
        let (identity, _) = *label;
        let file = opener.open(identity);
        match file.and_then(|file| Object::new(file.as_fd(), identity.device).map(|object| self.file(&object, label))) {
            Ok(()) => {}
            Err(cause) if cause.raw_os_error() == Some(libc::ESTALE) => self.forget(identity),
            Err(cause) => self.written.fail(format_args!("inode {}", identity.inode), cause),
        }
    }

    /// Looks for the files by their numbers, where no handle can be made.
    fn by_walk(&mut self, root: &OwnedFd, device: u32, labels: &[Dirty]) -> io::Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        let mut finder = Finder { wanted: labels.iter().copied().collect(), found: Vec::new() };
        let tree = Tree {
            root: root.try_clone()?,
            path: None,
            device,
            rule: Rule::ByPath { node: 0, sid: 0, links: true, processes: false },
        };
        let genfs = Genfs::default();
        let mut walker = Walker {
            contexts: &mut NoContexts,
            file_contexts: None,
            genfs: &genfs,
            sink: &mut finder,
            report: Report::default(),
        };
        walker.walk(&tree);
        let complete = walker.report.failures == 0;
        for (file, label) in finder.found {
            self.file(&Object::new(file.as_fd(), device)?, &label);
        }
        for identity in finder.wanted.into_keys() {
            match complete {
                true => self.forget(identity),
                false => self.written.fail(format_args!("inode {}", identity.inode), "not found"),
            }
        }
        Ok(())
    }

    fn file(&mut self, object: &Object<'_>, label: &Dirty) {
        let (identity, sid) = *label;
        let Some(context) = (self.texts)(sid) else {
            self.written.fail(format_args!("inode {}", identity.inode), format_args!("SID {sid} has no context"));
            return;
        };
        let cleaned = match object.set_attribute(&context) {
            Err(cause) if is_unsupported(&cause) => return self.cannot_keep(label),
            Err(cause) => Err(cause),
            Ok(()) => self.clean(label),
        };
        match cleaned {
            Ok(()) => self.written.written += 1,
            Err(cause) => self.written.fail(format_args!("inode {}", identity.inode), cause),
        }
    }

    /// Only hooks mark labels dirty beside us, and they mark what is in force: it has just been written.
    fn clean(&mut self, label: &Dirty) -> io::Result<()> {
        let (identity, sid) = *label;
        self.maps.set_entry(identity.into(), tg_label_value { sid, ..Default::default() }, When::Present).map(drop)
    }

    fn cannot_keep(&mut self, label: &Dirty) {
        match self.clean(label) {
            Ok(()) => self.written.unsupported += 1,
            Err(cause) => self.written.fail(format_args!("inode {}", label.0.inode), cause),
        }
    }

    fn forget(&mut self, identity: Identity) {
        match self.maps.remove_entry(identity.into()) {
            Ok(()) => self.written.gone += 1,
            Err(cause) => self.written.fail(format_args!("inode {}", identity.inode), cause),
        }
    }
}

/// Whether a file system keeps no such attributes.
pub(crate) fn is_unsupported(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EOPNOTSUPP))
}

/// The root of a file system that only another mount namespace has.
fn elsewhere(device: u32) -> Option<OwnedFd> {
    let proc = Path::new("/proc");
    processes::namespaces(proc).ok()?.into_iter().find_map(|process| {
        let namespace = processes::namespace(proc, process).ok()?;
        let mut all = mounts::read(&fs::read(proc.join(format!("{process}/mountinfo"))).ok()?);
        all.retain(|mount| mount.device == device);
        mounts::widest_first(&mut all);
        all.iter().find_map(|mount| readable(&open_in(&namespace, mount).ok()?).ok())
    })
}

/// Handles need a root that is open for reading.
fn readable(root: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(openat(root, c".", flags, Mode::empty())?)
}

/// What a walk needs that labels nothing.
struct NoContexts;

impl Contexts for NoContexts {
    fn sid(&mut self, _: &str) -> io::Result<Option<Sid>> {
        Ok(None)
    }
}

/// Finds files by what the kernel knows them by.
struct Finder {
    wanted: HashMap<Identity, Sid>,
    found: Vec<(OwnedFd, Dirty)>,
}

impl Sink for Finder {
    fn label(&mut self, object: &Object<'_>, _: Label) -> io::Result<()> {
        let identity = object.identity();
        if let Some(sid) = self.wanted.remove(&identity) {
            self.found.push((object.file.try_clone_to_owned()?, (identity, sid)));
        }
        Ok(())
    }

    fn hold(&mut self, _: &Object<'_>, _: Sid) -> io::Result<()> {
        Ok(())
    }

    fn complete(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }
}
