//! Labels the files of one file system from top to bottom: each directory before what is in it.
//!
//! Every step goes from the descriptor of a directory to a name in it, so that nobody can lead the walk elsewhere. A
//! tree is a mount of its own ([`mounts::open`](crate::labels::mounts::open)), so that it ends where the file system
//! ends.

use std::{
    ffi::{CStr, CString, OsStr},
    fmt, io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    vec,
};

use nix::{
    dir::Dir,
    fcntl::{OFlag, openat},
    sys::stat::Mode,
};
use tollgate_abi::enforcer::SECINITSID_UNLABELED;
use tollgate_audit::untrusted::for_people;

use crate::labels::{
    Contexts, Label, Origin, Sid, Sink,
    checkpoint::{Checkpoint, Doubts},
    file_contexts::FileContexts,
    genfs::Genfs,
    object::{Changed, Object},
    subvolumes,
};

/// How many ancestors stay open. The walk finds those above by `..`.
const MAX_OPEN: usize = 64;
/// How many failures are reported one by one.
const MAX_MESSAGES: usize = 20;

/// What contains the root of a tree.
#[derive(Debug, Clone, Copy)]
pub struct Above {
    /// The label of the directory.
    pub sid: Sid,
    /// The checkpoint of the file system.
    pub checkpoint: Option<Checkpoint>,
}

/// How files of a file system are labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// By their attributes, else by `file_contexts`, else like their directory. A root without either gets `default`.
    Stored {
        /// The default label of the root.
        default: Sid,
        /// Whether the file system survives a restart of the machine, so that labels are written down.
        kept: bool,
    },
    /// By their paths.
    ByPath {
        /// The node at which labels of names in the root are looked up.
        node: u32,
        /// The label of the root, and of symbolic links unless `links` is set.
        sid: Sid,
        /// Whether symbolic links are labelled by path as well (policy capability `genfs_seclabel_symlinks`).
        links: bool,
        /// Whether it is proc, where the directories of processes get their labels from the processes.
        processes: bool,
    },
}

/// A file system, or a part of one.
#[derive(Debug)]
pub struct Tree {
    /// Its root, open.
    pub root: OwnedFd,
    /// Path of the root, if it has one under which `file_contexts` may be looked up.
    pub path: Option<PathBuf>,
    /// Device number of the file system: major << 20 | minor.
    pub device: u32,
    /// How its files are labelled.
    pub rule: Rule,
}

/// What walks did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of files that were labelled.
    pub files: u64,
    /// How many of those are directories.
    pub directories: u64,
    /// How many of those have another label than their directory has, by the file system's rule.
    pub own: u64,
    /// Number of labels that came from attributes.
    pub attributes: u64,
    /// Number of attributes with a context that the policy does not have.
    pub invalid: u64,
    /// Number of files that are unlabelled because their labels may have been lost in a crash.
    pub lost: u64,
    /// Number of files that had no label in memory, if only those are labelled.
    pub unseen: u64,
    /// Number of files that could not be labelled.
    pub failures: u64,
    /// The first of these failures, with the reasons.
    pub messages: Vec<String>,
    /// Subvolumes of btrfs that were walked, by device and number.
    pub subvolumes: Vec<(u32, u64)>,
}

impl Report {
    /// Counts and records a failure. Others have chosen the path, and the cause may quote them.
    pub fn fail(&mut self, path: impl fmt::Display, cause: impl fmt::Display) {
        self.failures += 1;
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push(for_people(format!("{path}: {cause}")));
        }
    }
}

/// Walks trees.
pub struct Walker<'a> {
    /// Turns contexts into SIDs.
    pub contexts: &'a mut dyn Contexts,
    /// The first labels of files.
    pub file_contexts: Option<&'a FileContexts>,
    /// The labels by path.
    pub genfs: &'a Genfs,
    /// Takes the labels.
    pub sink: &'a mut dyn Sink,
    /// What was done so far.
    pub report: Report,
    /// Which files are unlabelled because they may have lost their labels.
    pub doubts: Doubts,
}

impl fmt::Debug for Walker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walker").field("report", &self.report).finish_non_exhaustive()
    }
}

/// A directory whose entries have their labels.
struct Level {
    /// `None`: the ancestor is too far up to stay open.
    directory: Option<OwnedFd>,
    inode: (u64, u64),
    /// Directories in it that are still to be entered.
    below: vec::IntoIter<Below>,
    /// How much of the path is this directory's.
    path: usize,
}

struct Below {
    name: CString,
    inode: (u64, u64),
    found: Found,
}

/// A directory's label and node.
#[derive(Clone, Copy)]
struct Found {
    sid: Sid,
    node: u32,
}

/// A walk of one tree.
struct Walk<'w, 'a> {
    walker: &'w mut Walker<'a>,
    device: u32,
    rule: Rule,
    /// Whether `file_contexts` are used.
    first: bool,
    /// What contains the root; `None`: it is the root of a file system.
    above: Option<Above>,
    /// `None`: no label is doubtful.
    checkpoint: Option<Checkpoint>,
    path: Trail,
    levels: Vec<Level>,
}

/// The path of the file that is being labelled.
struct Trail(Vec<u8>);

impl Trail {
    fn path(&self) -> &Path {
        let path = if self.0.is_empty() { b"/" } else { self.0.as_slice() };
        Path::new(OsStr::from_bytes(path))
    }

    fn push(&mut self, name: &CStr) {
        self.0.push(b'/');
        self.0.extend(name.to_bytes());
    }
}

impl Walker<'_> {
    /// Labels the files of a tree. The root shows whether that was done before: its attribute is written after those of
    /// all other files. If it has a label of this policy, `file_contexts` are not used again, because new files have
    /// got their labels by the policy's rules since.
    pub fn walk(&mut self, tree: &Tree) {
        self.walk_below(tree, None);
    }

    /// Likewise for a tree that is inside another one.
    pub fn walk_below(&mut self, tree: &Tree, above: Option<Above>) {
        let path = tree.path.as_deref().unwrap_or(Path::new("")).as_os_str().as_bytes();
        let path = Trail(path.strip_suffix(b"/").unwrap_or(path).to_vec());
        let mut walk = Walk {
            first: tree.path.is_some() && self.file_contexts.is_some(),
            walker: self,
            device: tree.device,
            rule: tree.rule,
            above,
            checkpoint: None,
            path,
            levels: Vec::new(),
        };
        if let Err(cause) = walk.tree(tree.root.as_fd()) {
            walk.walker.report.fail(walk.path.path().display(), cause);
        }
    }

    /// Labels what a process holds if it has no label: by its attribute if it has one, else with `default`.
    pub fn hold(&mut self, object: &Object<'_>, attribute: Option<String>, default: Sid) -> io::Result<()> {
        let sid = match attribute {
            Some(context) => match self.contexts.sid(&context)? {
                Some(sid) => sid,
                None => self.contexts.deferred(&context)?,
            },
            None => default,
        };
        self.sink.hold(object, sid)
    }
}

impl Walk<'_, '_> {
    fn tree(&mut self, root: BorrowedFd<'_>) -> io::Result<()> {
        let object = Object::new(root, self.device)?;
        self.first &= !self.is_labelled(&object);
        let (failures, (found, origin)) = (self.walker.report.failures, self.root(&object)?);
        self.checkpoint = self.checkpoint_of(&object);
        let above = self.above.map(|above| above.sid);
        let label = |origin| Label { sid: found.sid, directory: above, node: found.node, origin };
        // Its label is in force from now on. It is written down after all others.
        let in_force = Found { sid: self.walker.sink.label(&object, label(Origin::FileSystem))?, ..found };
        if object.is(libc::S_IFDIR) {
            let directory = open_directory(root, c".")?;
            self.enter(directory, in_force)?;
        }
        while let Some(level) = self.levels.last_mut() {
            match level.below.next() {
                Some(below) => self.descend(&below),
                None => self.ascend(),
            }
        }
        let complete = self.walker.report.failures == failures;
        self.take(&object, label(if complete { origin } else { Origin::FileSystem })).map(drop)
    }

    /// The checkpoint that decides which labels are doubtful: the root's own, else that of what contains it.
    fn checkpoint_of(&self, root: &Object<'_>) -> Option<Checkpoint> {
        let kept = matches!(self.rule, Rule::Stored { kept: true, .. }) && !self.first;
        let above = || self.above.and_then(|above| above.checkpoint);
        match self.walker.doubts {
            Doubts::Since(moment) => Some(Checkpoint::new(moment, None)),
            Doubts::SinceCheckpoint if kept => Checkpoint::of(root).or_else(above),
            Doubts::SinceCheckpoint | Doubts::Nothing => None,
        }
    }

    /// Whether the root has a label of this policy.
    fn is_labelled(&mut self, root: &Object<'_>) -> bool {
        let attribute = root.attribute().ok().flatten();
        attribute.is_some_and(|context| matches!(self.walker.contexts.sid(&context), Ok(Some(_))))
    }

    fn root(&mut self, object: &Object<'_>) -> io::Result<(Found, Origin)> {
        match self.rule {
            Rule::ByPath { node, sid, .. } => Ok((Found { sid, node }, Origin::FileSystem)),
            Rule::Stored { default, .. } => {
                let (sid, origin) = self.stored(object, default, None)?;
                Ok((Found { sid, node: 0 }, origin))
            }
        }
    }

    /// Labels what is in a directory, and notes which directories it contains.
    fn enter(&mut self, directory: OwnedFd, found: Found) -> io::Result<()> {
        let mut listing = Dir::from_fd(directory.try_clone()?)?;
        let object = Object::new(directory.as_fd(), self.device)?;
        if let Some(subvolume) = subvolumes::of_root(&object) {
            self.walker.report.subvolumes.push((self.device, subvolume));
        }
        // The root of a subvolume has no checkpoint of its own.
        let changed = object.content_changed(self.levels.is_empty() && self.above.is_none());
        let (inode, path) = (inode(&object), self.path.0.len());
        let mut below = Vec::new();
        for entry in listing.iter() {
            let name = entry?.file_name().to_owned();
            if matches!(name.to_bytes(), b"." | b"..") || self.is_process(&name) {
                continue;
            }
            self.path.push(&name);
            match self.entry(&directory, &name, found, changed) {
                Ok(Some((inode, found))) => below.push(Below { name, inode, found }),
                Ok(None) => {}
                // It is gone, and needs nothing more.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => self.walker.report.fail(self.path.path().display(), cause),
            }
            self.path.0.truncate(path);
        }
        if let Some(above) = self.levels.len().checked_sub(MAX_OPEN).and_then(|index| self.levels.get_mut(index)) {
            above.directory = None;
        }
        self.levels.push(Level { directory: Some(directory), inode, below: below.into_iter(), path });
        Ok(())
    }

    /// Whether a name in the root of proc is that of a process.
    fn is_process(&self, name: &CString) -> bool {
        matches!(self.rule, Rule::ByPath { processes: true, .. })
            && self.levels.is_empty()
            && name.to_bytes().first().is_some_and(u8::is_ascii_digit)
    }

    /// Labels a name in a directory. Returns what is to be entered.
    fn entry(
        &mut self,
        directory: &OwnedFd,
        name: &CString,
        parent: Found,
        changed: Changed,
    ) -> io::Result<Option<((u64, u64), Found)>> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(directory, name.as_c_str(), flags, Mode::empty())?;
        let object = Object::new(file.as_fd(), self.device)?;
        let (found, origin) = match self.rule {
            Rule::Stored { .. } => {
                let (sid, origin) = self.stored(&object, parent.sid, Some(changed))?;
                (Found { sid, node: 0 }, origin)
            }
            Rule::ByPath { sid, links: false, .. } if object.is(libc::S_IFLNK) => {
                (Found { sid, node: 0 }, Origin::FileSystem)
            }
            Rule::ByPath { .. } => {
                let found = self.walker.genfs.find(parent.node, name.to_bytes());
                let found = found.map_or(Found { node: 0, ..parent }, |f| Found { sid: f.sid, node: f.node });
                (found, Origin::FileSystem)
            }
        };
        let label = Label { sid: found.sid, directory: Some(parent.sid), node: found.node, origin };
        let found = Found { sid: self.take(&object, label)?, ..found };
        Ok(object.is(libc::S_IFDIR).then(|| (inode(&object), found)))
    }

    /// The label of a file that keeps one, or could. `directory`: when something in that last changed.
    fn stored(&mut self, object: &Object<'_>, inherited: Sid, directory: Option<Changed>) -> io::Result<(Sid, Origin)> {
        // Where attributes are not supported, no file has one.
        if let Some(context) = object.attribute().unwrap_or(None) {
            self.walker.report.attributes += 1;
            if let Some(sid) = self.walker.contexts.sid(&context)? {
                return Ok((sid, Origin::Attribute));
            }
            self.walker.report.invalid += 1;
            // As in SELinux: a file labelled under another policy is not labelled like its directory. It gets the
            // label in its attribute once a policy has that again.
            if !self.first {
                return Ok((self.walker.contexts.deferred(&context)?, Origin::Attribute));
            }
        }
        if self.is_doubtful(object, directory) {
            return Ok((SECINITSID_UNLABELED, Origin::Lost));
        }
        let Some(file_contexts) = self.walker.file_contexts.filter(|_| self.first) else {
            return Ok((inherited, Origin::Inherited));
        };
        let found = file_contexts.lookup(self.path.path(), object.mode()).map_err(io::Error::other)?;
        let Some(context) = found else { return Ok((inherited, Origin::Inherited)) };
        let unknown = || io::Error::other(format!("file_contexts name {context}, which the policy does not have"));
        Ok((self.walker.contexts.sid(&context)?.ok_or_else(unknown)?, Origin::FileContexts))
    }

    /// Whether a file without an attribute may have had a label of its own.
    fn is_doubtful(&self, object: &Object<'_>, directory: Option<Changed>) -> bool {
        let (Some(checkpoint), Some(directory)) = (self.checkpoint, directory) else { return false };
        let root = self.levels.is_empty() && self.above.is_none();
        checkpoint.doubts(object.changed(), directory, root)
    }

    /// The label that a file has from now on. What is in it inherits that.
    fn take(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid> {
        let kept = !matches!(self.rule, Rule::Stored { kept: false, .. });
        let label = Label { origin: if kept { label.origin } else { Origin::FileSystem }, ..label };
        let sid = self.walker.sink.label(object, label)?;
        let report = &mut self.walker.report;
        report.files += 1;
        report.directories += u64::from(object.is(libc::S_IFDIR));
        report.own += u64::from(label.is_own(object));
        // A note may have the label.
        report.lost += u64::from(label.origin == Origin::Lost && sid == SECINITSID_UNLABELED);
        Ok(sid)
    }

    fn descend(&mut self, below: &Below) {
        let Some(level) = self.levels.last() else { return };
        self.path.push(&below.name);
        let entered = match &level.directory {
            Some(directory) => open_directory(directory.as_fd(), &below.name)
                .and_then(|directory| same(directory, below.inode))
                .and_then(|directory| self.enter(directory, below.found)),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        if let Err(cause) = entered {
            if !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::CrossesDevices) {
                self.walker.report.fail(self.path.path().display(), cause);
            }
            let above = self.levels.last().map_or(0, |level| level.path);
            self.path.0.truncate(above);
        }
    }

    /// Goes back to the directory above, which may have to be opened again.
    fn ascend(&mut self) {
        let Some(done) = self.levels.pop() else { return };
        let Some(above) = self.levels.last_mut() else { return };
        self.path.0.truncate(above.path);
        if above.directory.is_some() {
            return;
        }
        let directory = done.directory.as_ref().ok_or(io::ErrorKind::NotFound.into());
        let directory = directory.and_then(|directory| open_directory(directory.as_fd(), c".."));
        match directory.and_then(|directory| same(directory, above.inode)) {
            Ok(directory) => above.directory = Some(directory),
            Err(cause) => {
                let missed = above.below.by_ref().count();
                let reason = format!("{cause}; {missed} directories in it were not walked");
                self.walker.report.fail(self.path.path().display(), reason);
            }
        }
    }
}

fn inode(object: &Object<'_>) -> (u64, u64) {
    (object.inode(), object.stat_device())
}

/// The directory, unless another one has replaced it meanwhile.
fn same(directory: OwnedFd, expected: (u64, u64)) -> io::Result<OwnedFd> {
    let found = inode(&Object::new(directory.as_fd(), 0)?);
    if found == expected {
        return Ok(directory);
    }
    // It was mounted by the very act of opening, as the kernel does for tracefs in debugfs. The watch on mounts then
    // starts a walk of it.
    if found.1 != expected.1 {
        return Err(io::ErrorKind::CrossesDevices.into());
    }
    Err(io::Error::other("it was moved during the walk"))
}

fn open_directory(at: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    // Only the owner of a file may use O_NOATIME.
    match openat(at, name, flags | OFlag::O_NOATIME, Mode::empty()) {
        Err(nix::Error::EPERM) => Ok(openat(at, name, flags, Mode::empty())?),
        opened => Ok(opened?),
    }
}

#[cfg(test)]
mod tests;
