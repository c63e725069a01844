//! Labels everything that exists when enforcement starts: what is mounted in any mount namespace, and what processes
//! hold.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use nix::{
    fcntl::{OFlag, openat},
    sys::{
        stat::Mode,
        statfs::{HUGETLBFS_MAGIC, TMPFS_MAGIC, fstatfs},
    },
};
use tollgate_abi::enforcer::{
    SECINITSID_FILE, SECINITSID_UNLABELED, TG_FS_GENFS, TG_FS_XATTR, TG_SID_MACHINE, tg_filesystem,
};

use crate::labels::{
    Contexts, Sid, Sink, alone,
    checkpoint::{Checkpoint, Doubts},
    file_contexts::FileContexts,
    filesystems::Filesystems,
    genfs::Genfs,
    handle::Opener,
    identity::Identity,
    mounts::{self, Covered, Mount},
    object::Object,
    processes, roots,
    walk::{Above, Report, Rule, Tree, Walker},
};

/// On overlayfs, files are files of other file systems, and have the labels that they have there (`bpf/overlay.h`).
pub(crate) const OVERLAY: &str = "overlay";
/// File systems that programs serve, which need not answer. What a policy says about such a file system holds for all
/// of its files. Nothing is read from it or written to it.
const SERVED: [&str; 2] = ["fuse", "fuseblk"];

/// Whether a program serves this type of file system.
pub(crate) fn is_served(filesystem: &str) -> bool {
    SERVED.contains(&filesystem)
}

/// What a policy says about file systems, by name.
#[derive(Debug)]
pub struct Rules {
    filesystems: HashMap<String, tg_filesystem>,
    genfs: Genfs,
    links: bool,
}

impl Rules {
    /// The rules in these maps. `links` is the policy capability `genfs_seclabel_symlinks`.
    pub fn new(found: &Filesystems, links: bool) -> Self {
        let name = |text: &[std::ffi::c_char]| -> String {
            text.iter().map(|c| char::from(c.cast_unsigned())).take_while(|c| *c != '\0').collect()
        };
        let filesystems = found.filesystems.iter().map(|(key, value)| (name(&key.text), *value)).collect();
        Self { filesystems, genfs: Genfs::new(&found.genfs), links }
    }

    /// The default label of a file system's files. In SELinux, file systems that no policy names are unlabelled.
    pub fn default(&self, filesystem: &str) -> Sid {
        match self.filesystems.get(filesystem) {
            Some(found) if found.behaviour == TG_FS_XATTR => SECINITSID_FILE,
            Some(found) => found.sid,
            None => SECINITSID_UNLABELED,
        }
    }

    /// How the files of a file system are walked; `None`: all of them have one label, which the kernel knows, or the
    /// labels of files of other file systems.
    pub fn rule(&self, filesystem: &str) -> Option<Rule> {
        let found = self.filesystems.get(filesystem).filter(|_| filesystem != OVERLAY && !is_served(filesystem))?;
        match found.behaviour {
            TG_FS_GENFS if found.node == 0 => None,
            TG_FS_GENFS => Some(Rule::ByPath {
                node: found.node,
                sid: found.sid,
                links: self.links,
                processes: filesystem == "proc",
            }),
            behaviour => Some(Rule::Stored { default: self.default(filesystem), kept: behaviour == TG_FS_XATTR }),
        }
    }
}

/// What is known about files that no walk has found.
#[derive(Debug, Clone, Copy)]
struct Presumed {
    /// Their label if they have no attribute.
    sid: Sid,
    /// Whether they may have an attribute.
    attributes: bool,
}

/// What is labelled, and how.
pub struct Machine<'a> {
    /// Where proc is mounted.
    pub proc: &'a Path,
    /// What the policy says about file systems.
    pub rules: &'a Rules,
    /// The first labels of files.
    pub file_contexts: Option<&'a FileContexts>,
    /// Types of file systems whose files cannot be labelled, each with the reason.
    pub refused: &'a BTreeMap<&'static str, String>,
    /// Which files are unlabelled because they may have lost their labels.
    pub doubts: Doubts,
}

impl Machine<'_> {
    /// Labels everything. Failures are in the report, and everything else is labelled all the same.
    pub fn label(&self, contexts: &mut dyn Contexts, sink: &mut dyn Sink) -> Report {
        let mut walker = self.walker(contexts, sink);
        let mut covered = Covered::default();
        let mut defaults = Defaults::default();
        self.namespace(None, &mut walker, &mut covered, &mut defaults);
        match processes::namespaces(self.proc) {
            Ok(others) => {
                others.iter().for_each(|process| {
                    self.namespace(Some(*process), &mut walker, &mut covered, &mut defaults);
                });
            }
            Err(cause) => walker.report.fail("other mount namespaces", cause),
        }
        complete_subvolumes(&mut walker);
        self.held(&mut walker, &defaults);
        walker.report
    }

    /// Labels one file system that was mounted later, in the daemon's mount namespace or in another one. If it cannot
    /// be seen yet because its mount has only begun, it stays without labels.
    pub fn label_mount(&self, device: u32, contexts: &mut dyn Contexts, sink: &mut dyn Sink) -> Report {
        let mut walker = self.walker(contexts, sink);
        let others = processes::namespaces(self.proc).unwrap_or_default().into_iter().map(Some);
        for process in std::iter::once(None).chain(others) {
            match self.shown(process) {
                Ok((mut all, namespace)) => {
                    all.retain(|mount| mount.device == device);
                    if !all.is_empty() {
                        self.trees(&all, namespace.as_ref(), &mut walker, &mut Covered::default(), None);
                        if !all.iter().any(|mount| self.refused.contains_key(mount.filesystem.as_str())) {
                            complete(&mut walker, device);
                            complete_subvolumes(&mut walker);
                        }
                        break;
                    }
                }
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => walker.report.fail("a mount namespace", cause),
            }
        }
        walker.report
    }

    /// Labels a subvolume that appeared in a file system after that was labelled, by the subvolume's root. Objects
    /// without a label of their own get that of the directory that contains the subvolume, which `label_of` returns.
    pub fn label_subvolume(
        &self,
        subvolume: Identity,
        label_of: &dyn Fn(BorrowedFd<'_>) -> io::Result<Sid>,
        contexts: &mut dyn Contexts,
        sink: &mut dyn Sink,
    ) -> Report {
        let mut walker = self.walker(contexts, sink);
        let device = subvolume.device;
        let walked = roots::root(device).and_then(|root| {
            let object = Object::new(root.as_fd(), device)?;
            let opener = Opener::new(root.as_fd(), object.inode()).ok_or(io::ErrorKind::Unsupported)?;
            let top = opener.open(subvolume)?;
            let directory = openat(&top, c"..", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
            let above = label_of(directory.as_fd())?;
            let rule = Rule::Stored { default: above, kept: true };
            let above = Above { sid: above, checkpoint: Checkpoint::of(&object) };
            walker.walk_below(&Tree { root: top, path: None, device, rule }, Some(above));
            Ok(())
        });
        match walked {
            Ok(()) => complete_subvolumes(&mut walker),
            // It was deleted.
            Err(cause) if cause.raw_os_error() == Some(libc::ESTALE) => {}
            Err(cause) => walker.report.fail(format_args!("subvolume {}", subvolume.subvolume), cause),
        }
        walker.report
    }

    fn walker<'w>(&'w self, contexts: &'w mut dyn Contexts, sink: &'w mut dyn Sink) -> Walker<'w> {
        let (file_contexts, genfs) = (self.file_contexts, &self.rules.genfs);
        Walker { contexts, file_contexts, genfs, sink, report: Report::default(), doubts: self.doubts }
    }

    fn mounts(&self, process: Option<u32>) -> io::Result<Vec<Mount>> {
        let process = process.map_or("self".to_owned(), |process| process.to_string());
        let mut all = mounts::read(&fs::read(self.proc.join(process).join("mountinfo"))?);
        mounts::widest_first(&mut all);
        Ok(all)
    }

    /// What is mounted in a namespace, and the namespace itself if it is not the daemon's.
    fn shown(&self, process: Option<u32>) -> io::Result<(Vec<Mount>, Option<OwnedFd>)> {
        let all = self.mounts(process)?;
        Ok((all, process.map(|process| processes::namespace(self.proc, process)).transpose()?))
    }

    /// Walks what is mounted in a namespace: the daemon's, or that of a process.
    fn namespace(&self, process: Option<u32>, walker: &mut Walker<'_>, covered: &mut Covered, defaults: &mut Defaults) {
        match self.shown(process) {
            Ok((all, namespace)) => {
                let default = |mount: &Mount| self.default(&mount.filesystem);
                defaults.devices.extend(all.iter().map(|mount| (mount.device, default(mount))));
                defaults.mounts.extend(all.iter().map(|mount| (u64::from(mount.id), default(mount))));
                // Nobody is confined yet, so files may be looked up before the walk reaches them, and be labelled like
                // their directory.
                self.trees(&all, namespace.as_ref(), walker, covered, Some(complete));
            }
            // The namespace may be gone together with its last process.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => walker.report.fail("a mount namespace", cause),
        }
    }

    /// Walks what mounts show and no other mount did. `before` is called before each file system.
    fn trees(
        &self,
        all: &[Mount],
        namespace: Option<&OwnedFd>,
        walker: &mut Walker<'_>,
        covered: &mut Covered,
        before: Option<fn(&mut Walker<'_>, u32)>,
    ) {
        for mount in all {
            let Some(rule) = self.rules.rule(&mount.filesystem).filter(|_| !covered.has(mount)) else { continue };
            if let Some(reason) = self.refused.get(mount.filesystem.as_str()) {
                walker.report.fail(mount.point.display(), reason);
                covered.insert(mount);
                continue;
            }
            let there = mount.clone();
            // On the way there may be file systems that users' programs serve.
            let root = alone::open(namespace, move |namespace| match namespace {
                None => mounts::open(&there),
                Some(namespace) => roots::open_in(namespace, &there),
            });
            match root {
                Ok(root) => {
                    // Paths in another namespace are not those that file_contexts mean.
                    let path = namespace.is_none().then(|| mount.point.clone());
                    if let Some(before) = before {
                        before(walker, mount.device);
                    }
                    walker.walk(&Tree { root, path, device: mount.device, rule });
                    covered.insert(mount);
                }
                // Something is mounted over it. Another mount may show it.
                Err(cause) if cause.raw_os_error() == Some(libc::ESTALE) => {}
                Err(cause) => walker.report.fail(mount.point.display(), cause),
            }
        }
    }

    fn default(&self, filesystem: &str) -> Presumed {
        let attributes = matches!(self.rules.rule(filesystem), Some(Rule::Stored { kept: true, .. }));
        Presumed { sid: self.rules.default(filesystem), attributes }
    }

    /// Labels what processes hold and no walk has found.
    fn held(&self, walker: &mut Walker<'_>, defaults: &Defaults) {
        let all = processes::all(self.proc).unwrap_or_else(|cause| {
            walker.report.fail("processes", cause);
            Vec::new()
        });
        for link in all.iter().flat_map(|process| processes::links(self.proc, *process)) {
            // The kernel's sockets have their labels themselves.
            if processes::is_socket(&link) {
                continue;
            }
            // A file that is gone by now, or was never there (the exe of a kernel thread), needs no label.
            let Ok(file) = processes::held(&link) else { continue };
            let labelled = Object::anywhere(file.as_fd()).and_then(|object| match defaults.of(&object) {
                Some(Presumed { sid, attributes: true }) => {
                    walker.hold(&object, object.attribute().ok().flatten(), sid)
                }
                Some(Presumed { sid, attributes: false }) => walker.hold(&object, None, sid),
                None if processes::is_of_kernel(&link) => walker.hold(&object, None, TG_SID_MACHINE),
                None => self.unmounted(walker, &object),
            });
            if let Err(cause) = labelled {
                walker.report.fail(link.display(), cause);
            }
        }
    }

    /// Labels objects on file systems that are not mounted. Memory files are on the kernel's own tmpfs, and get its
    /// label. Nobody knows who serves any others; an object that cannot be asked about is unlabelled.
    fn unmounted(&self, walker: &mut Walker<'_>, object: &Object<'_>) -> io::Result<()> {
        let device = object.device;
        let asked = alone::ask(object.file, alone::LABELLING_TIMEOUT, move |file| {
            let filesystem = fstatfs(file)?.filesystem_type();
            Ok((filesystem, Object::new(file, device)?.attribute().ok().flatten()))
        });
        match asked {
            Ok((TMPFS_MAGIC, attribute)) => walker.hold(object, attribute, self.rules.default("tmpfs")),
            Ok((HUGETLBFS_MAGIC, attribute)) => walker.hold(object, attribute, self.rules.default("hugetlbfs")),
            Ok((_, attribute)) => walker.hold(object, attribute, TG_SID_MACHINE),
            Err(cause) => walker.hold(object, None, SECINITSID_UNLABELED).and(Err(cause)),
        }
    }
}

/// Labels of files without one, by where they are.
#[derive(Default)]
struct Defaults {
    devices: HashMap<u32, Presumed>,
    /// By the number of the mount, because `stat` returns another device for files on btrfs.
    mounts: HashMap<u64, Presumed>,
}

impl Defaults {
    fn of(&self, object: &Object<'_>) -> Option<Presumed> {
        let by_mount = || mounts::mount_of(object.file).ok().and_then(|mount| self.mounts.get(&mount));
        self.devices.get(&object.device).or_else(by_mount).copied()
    }
}

fn complete(walker: &mut Walker<'_>, device: u32) {
    if let Err(cause) = walker.sink.complete(device) {
        walker.report.fail(format_args!("device {device}"), cause);
    }
}

/// Only when everything in it has its label. Before, objects in it would get their directories' labels.
fn complete_subvolumes(walker: &mut Walker<'_>) {
    for (device, subvolume) in std::mem::take(&mut walker.report.subvolumes) {
        if let Err(cause) = walker.sink.complete_subvolume(device, subvolume) {
            walker.report.fail(format_args!("subvolume {subvolume}"), cause);
        }
    }
}
