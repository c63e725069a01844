//! What a policy says about file systems: `fs_use` and `genfscon`, as the maps `filesystems` and `genfs`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tollgate_abi::enforcer::{
    SECINITSID_UNLABELED, TG_FS_GENFS, TG_FS_TASK, TG_FS_TRANS, TG_FS_XATTR, tg_filesystem, tg_fs_name,
};
use tollgate_policy::model::{Context, FsUse, GenFs, Policy};

use crate::labels::{
    genfs::{self, Tree},
    vital,
};

/// File systems on which SELinux labels by path (`SE_SBGENFS` in `selinux_set_mnt_opts`). On every other file system in
/// a `genfscon`, files get the label of its root.
const BY_PATH: [&str; 11] =
    ["binder", "bpf", "cgroup", "cgroup2", "debugfs", "functionfs", "proc", "pstore", "securityfs", "sysfs", "tracefs"];
/// Of those, the one that needs a policy capability.
const FUNCTIONFS: &str = "functionfs";
/// With this policy capability, paths are patterns. libsepol adds a star to their ends, so that they keep their
/// meaning.
const WILDCARDS: &str = "genfs_seclabel_wildcard";

/// The contents of the maps, and what does not fit in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filesystems {
    /// Entries of the map `filesystems`. On a file system without an entry, the root and all files are unlabelled.
    pub filesystems: Vec<(tg_fs_name, tg_filesystem)>,
    /// Entries of the map `genfs`.
    pub genfs: Vec<genfs::Entry>,
    /// Statements of the policy that the maps cannot hold, each with the reason. They label nothing.
    pub unsupported: Vec<String>,
}

/// The maps for `policy`. `sid` returns the SID of a context.
pub fn of<E>(policy: &Policy, sid: &mut dyn FnMut(&Context) -> Result<u32, E>) -> Result<Filesystems, E> {
    let mut result = Filesystems::default();
    let mut known = BTreeSet::new();
    for statement in &policy.fs_uses {
        if let Some(name) = result.name(&statement.name).filter(|_| known.insert(statement.name.as_str())) {
            result.fs_use(name, statement, sid)?;
        }
    }
    // A file system with files on which enforcement depends has a tree, whatever the policy says about it.
    let vital = vital::files();
    let mut by_name: BTreeMap<&str, Vec<&GenFs>> =
        vital.iter().filter(|(_, paths)| !paths.is_empty()).map(|(name, _)| (*name, Vec::new())).collect();
    for statement in &policy.genfs {
        by_name.entry(&statement.name).or_default().push(statement);
    }
    // As in security_fs_use: genfscon counts only where there is no fs_use.
    by_name.retain(|name, _| !known.contains(name));
    let mut trees = Vec::new();
    for (text, statements) in by_name {
        if let Some(name) = result.name(text) {
            let (mut tree, sid) = result.genfscon(policy, text, &statements, sid)?;
            let paths = vital.iter().filter(|(name, _)| *name == text).flat_map(|(_, paths)| paths);
            result.protect(text, &mut tree, paths);
            trees.push((name, text, tree, sid));
        }
    }
    let salt = distinct(trees.iter().map(|(_, text, tree, _)| (*text, tree)).collect());
    for (name, text, tree, sid) in trees {
        let node = if tree.is_empty() { 0 } else { root(salt, text) };
        result.genfs.extend(tree.entries(node, sid));
        result.filesystems.push((name, tg_filesystem { behaviour: TG_FS_GENFS, sid, node, ..Default::default() }));
    }
    Ok(result)
}

/// The number of a file system's root.
fn root(salt: u32, filesystem: &str) -> u32 {
    genfs::below_of(salt, filesystem.as_bytes())
}

/// The first starting number that gives no two directories the same number.
fn distinct(trees: Vec<(&str, &Tree)>) -> u32 {
    let differ = |salt: &u32| {
        let entries = trees.iter().flat_map(|(text, tree)| tree.entries(root(*salt, text), 0));
        // Each node has one key for the empty name.
        let nodes: Vec<u32> = entries.filter(|(_, value)| value.length == 0).map(|(key, _)| key.node).collect();
        nodes.iter().collect::<HashSet<_>>().len() == nodes.len()
    };
    (0x811c_9dc5..).find(differ).unwrap_or_default()
}

/// The key of a file system in the map `filesystems`; `None`: its name is too long.
#[must_use]
pub fn name(text: &str) -> Option<tg_fs_name> {
    let mut name = tg_fs_name::default();
    for (to, from) in name.text.iter_mut().zip(text.bytes()) {
        *to = from.cast_signed();
    }
    (text.len() < name.text.len()).then_some(name)
}

/// Reads a value of that map.
#[must_use]
pub fn value(bytes: &[u8]) -> Option<tg_filesystem> {
    let (words, _) = bytes.as_chunks::<4>();
    let [behaviour, sid, node, reserved] = <[[u8; 4]; 4]>::try_from(words).ok()?.map(u32::from_ne_bytes);
    Some(tg_filesystem { behaviour, sid, node, reserved })
}

impl Filesystems {
    /// The key of the file system in a statement.
    fn name(&mut self, text: &str) -> Option<tg_fs_name> {
        let name = name(text);
        if name.is_none() {
            self.unsupported.push(format!("file system {text}: its name is longer than those of kernels"));
        }
        name
    }

    fn fs_use<E>(
        &mut self,
        name: tg_fs_name,
        statement: &FsUse,
        sid: &mut dyn FnMut(&Context) -> Result<u32, E>,
    ) -> Result<(), E> {
        let behaviour = match statement.behaviour {
            1 => TG_FS_XATTR,
            2 => TG_FS_TRANS,
            3 => TG_FS_TASK,
            other => {
                self.unsupported.push(format!("fs_use of {}: behaviour {other} is not supported", statement.name));
                return Ok(());
            }
        };
        let sid = sid(&statement.context)?;
        self.filesystems.push((name, tg_filesystem { behaviour, sid, ..Default::default() }));
        Ok(())
    }

    /// The labels by path of a file system, and the label of its root.
    fn genfscon<E>(
        &mut self,
        policy: &Policy,
        text: &str,
        statements: &[&GenFs],
        sid: &mut dyn FnMut(&Context) -> Result<u32, E>,
    ) -> Result<(Tree, u32), E> {
        let mut tree = Tree::default();
        let mut root = None;
        let by_path = is_by_path(policy, text);
        for statement in statements {
            // Under SELinux, too, these have no effect below the root.
            if !by_path && !matches!(statement.path.as_str(), "/" | "/*") {
                continue;
            }
            let Some(path) = self.path(policy, statement) else { continue };
            if path == "/" {
                root = Some(sid(&statement.context)?);
            }
            if by_path && tree.insert(path, sid(&statement.context)?).is_err() {
                self.refuse(statement, "a name in it is too long for a key of a map");
            }
        }
        // In SELinux, a file system is unlabelled if no statement names its root.
        Ok((tree, root.unwrap_or(SECINITSID_UNLABELED)))
    }

    /// Marks files of a file system on which enforcement depends.
    fn protect<'p>(&mut self, text: &str, tree: &mut Tree, paths: impl Iterator<Item = &'p String>) {
        for path in paths.filter(|path| tree.protect(path).is_err()) {
            self.unsupported.push(format!("{text} {path}, on which enforcement depends: a name in it is too long"));
        }
    }

    /// The prefix of the paths that a statement labels; `None`: the maps cannot express it, and the reason is recorded.
    fn path<'p>(&mut self, policy: &Policy, statement: &'p GenFs) -> Option<&'p str> {
        if statement.class != 0 {
            self.refuse(statement, "it is for one kind of file only");
            return None;
        }
        if !policy.capabilities.iter().any(|name| name == WILDCARDS) {
            return Some(&statement.path);
        }
        let prefix = statement.path.strip_suffix('*').filter(|prefix| !prefix.contains(['*', '?']));
        if prefix.is_none() {
            self.refuse(statement, "it is a pattern that is not a prefix");
        }
        prefix
    }

    fn refuse(&mut self, statement: &GenFs, reason: &str) {
        self.unsupported.push(format!("genfscon {} {}: {reason}", statement.name, statement.path));
    }
}

fn is_by_path(policy: &Policy, name: &str) -> bool {
    BY_PATH.contains(&name)
        && (name != FUNCTIONFS || policy.capabilities.iter().any(|capability| capability == "functionfs_seclabel"))
}

/// Whether a policy may label files on this type of file system by their paths.
pub(crate) fn may_be_by_path(filesystem: &str) -> bool {
    BY_PATH.contains(&filesystem)
}

#[cfg(test)]
mod tests;
