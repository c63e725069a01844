//! Keeps labels where they survive a restart: writes those that hooks and walks have noted to attributes of the files.
//!
//! A hook cannot write an attribute. It notes the label in the maps `labels` and `unwritten`. The file is then found by
//! its number and generation, so that no path is trusted and no other file gets the label.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
};

use crate::labels::{
    Contexts, Label, Sid, Sink,
    checkpoint::Doubts,
    genfs::Genfs,
    handle::Opener,
    identity::Identity,
    mounts::{self, Mount},
    object::Object,
    roots::{elsewhere, readable},
    walk::{Report, Rule, Tree, Walker},
};

/// The result of writing attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of attributes that were written.
    pub written: u64,
    /// Number of files that were gone.
    pub gone: u64,
    /// Number of labels that the file system cannot keep. They last until it is unmounted.
    pub unsupported: u64,
    /// Number of labels that could not be written now, and are still to be.
    pub failures: u64,
}

/// A label that must be written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirty {
    /// Identity of the file.
    pub file: Identity,
    /// SID of the label.
    pub sid: Sid,
    /// The context of the label.
    pub context: String,
}

/// The result of writing a label.
#[derive(Debug)]
pub enum Outcome {
    /// The attribute has it.
    Written,
    /// The file system has no such attributes. The label lasts until it is unmounted.
    Unsupported,
    /// There is no such file. The kernel knows whether it is gone.
    Stale,
    /// It is the root's label, which says that all others are written, and they are not.
    Later,
    /// It could not be written.
    Failed(io::Error),
}

/// Writes labels of one file system. `mountinfo` says where that is mounted; if it is not there, other mount namespaces
/// are searched. The root's label is written after the others, and only if `all` is set, which says that there are no
/// others.
pub fn write(device: u32, labels: Vec<Dirty>, mountinfo: &[u8], all: bool) -> Vec<(Dirty, Outcome)> {
    let mut mounts: Vec<Mount> = mounts::read(mountinfo);
    mounts.retain(|mount| mount.device == device);
    mounts::widest_first(&mut mounts);
    let root = mounts.iter().find_map(|mount| readable(&mounts::open(mount).ok()?).ok());
    let root = root.or_else(|| elsewhere(device)).ok_or_else(|| io::Error::other("no mount namespace shows it"));
    let mut writer = Writer { device, all, done: Vec::with_capacity(labels.len()) };
    match root.and_then(|root| Ok((Object::new(root.as_fd(), device)?.identity(), root))) {
        Ok((own, root)) => writer.files(&root, own, labels),
        Err(cause) => {
            for label in labels {
                writer.done.push((label, Outcome::Failed(again(&cause))));
            }
        }
    }
    writer.done
}

/// The same error, for another file.
fn again(cause: &io::Error) -> io::Error {
    cause.raw_os_error().map_or_else(|| io::Error::other(cause.to_string()), io::Error::from_raw_os_error)
}

struct Writer {
    device: u32,
    all: bool,
    done: Vec<(Dirty, Outcome)>,
}

impl Writer {
    fn files(&mut self, root: &OwnedFd, own: Identity, labels: Vec<Dirty>) {
        let (of_root, others): (Vec<Dirty>, Vec<Dirty>) = labels.into_iter().partition(|label| label.file == own);
        match Opener::new(root.as_fd(), own.inode) {
            Some(opener) => others.into_iter().for_each(|label| self.by_handle(&opener, label)),
            None => self.by_walk(root, others),
        }
        let written = |outcome: &Outcome| !matches!(outcome, Outcome::Failed(_));
        let complete = self.all && self.done.iter().all(|(_, outcome)| written(outcome));
        for label in of_root {
            let outcome = if complete { self.file(root, &label) } else { Outcome::Later };
            self.done.push((label, outcome));
        }
    }

    fn by_handle(&mut self, opener: &Opener<'_>, label: Dirty) {
        let outcome = match opener.open(label.file) {
            Ok(file) => self.file(&file, &label),
            Err(cause) if cause.raw_os_error() == Some(libc::ESTALE) => Outcome::Stale,
            Err(cause) => Outcome::Failed(cause),
        };
        self.done.push((label, outcome));
    }

    /// Searches for the files by their numbers, where no handle can be made.
    fn by_walk(&mut self, root: &OwnedFd, labels: Vec<Dirty>) {
        if labels.is_empty() {
            return;
        }
        let mut finder =
            Finder { wanted: labels.into_iter().map(|label| (label.file, label)).collect(), found: Vec::new() };
        let complete = find(root, self.device, &mut finder);
        for (file, label) in finder.found {
            let outcome = self.file(&file, &label);
            self.done.push((label, outcome));
        }
        for label in finder.wanted.into_values() {
            let outcome = match &complete {
                Ok(()) => Outcome::Stale,
                Err(cause) => Outcome::Failed(again(cause)),
            };
            self.done.push((label, outcome));
        }
    }

    fn file(&self, file: &OwnedFd, label: &Dirty) -> Outcome {
        match Object::new(file.as_fd(), self.device).and_then(|object| object.set_attribute(&label.context)) {
            Ok(()) => Outcome::Written,
            Err(cause) if is_unsupported(&cause) => Outcome::Unsupported,
            Err(cause) => Outcome::Failed(cause),
        }
    }
}

/// Walks a file system to find files. Returns an error if a part of it was not seen.
fn find(root: &OwnedFd, device: u32, finder: &mut Finder) -> io::Result<()> {
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
        sink: finder,
        report: Report::default(),
        doubts: Doubts::Nothing,
    };
    walker.walk(&tree);
    match walker.report.messages.into_iter().next() {
        None => Ok(()),
        Some(failure) => Err(io::Error::other(failure)),
    }
}

/// Whether an error means that the file system has no such attributes.
pub(crate) fn is_unsupported(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EOPNOTSUPP))
}

/// Writes everything on the file system of a directory to disk.
pub fn sync(directory: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    Ok(nix::unistd::syncfs(openat(directory, c".", flags, Mode::empty())?)?)
}

/// For a walk that labels nothing.
struct NoContexts;

impl Contexts for NoContexts {
    fn sid(&mut self, _: &str) -> io::Result<Option<Sid>> {
        Ok(None)
    }
}

/// Finds files by their identity.
struct Finder {
    wanted: HashMap<Identity, Dirty>,
    found: Vec<(OwnedFd, Dirty)>,
}

impl Sink for Finder {
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid> {
        let identity = object.identity();
        if let Some(wanted) = self.wanted.remove(&identity) {
            self.found.push((object.file.try_clone_to_owned()?, wanted));
        }
        Ok(label.sid)
    }

    fn hold(&mut self, _: &Object<'_>, _: Sid) -> io::Result<()> {
        Ok(())
    }

    fn complete(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }
}
