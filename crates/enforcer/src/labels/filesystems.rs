//! What a policy says of file systems: `fs_use` and `genfscon`, as the maps `filesystems` and `genfs`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tollgate_abi::enforcer::{
    SECINITSID_UNLABELED, TG_FS_GENFS, TG_FS_TASK, TG_FS_TRANS, TG_FS_XATTR, tg_filesystem, tg_fs_name,
};
use tollgate_policy::model::{Context, FsUse, GenFs, Policy};

use crate::labels::{
    genfs::{self, Tree},
    vital,
};

/// Where SELinux labels by path (`SE_SBGENFS` in `selinux_set_mnt_opts`). Files of every other file system in a `genfscon`
/// have the label of its root.
const BY_PATH: [&str; 11] =
    ["binder", "bpf", "cgroup", "cgroup2", "debugfs", "functionfs", "proc", "pstore", "securityfs", "sysfs", "tracefs"];
/// Of those, the one that needs a policy capability.
const FUNCTIONFS: &str = "functionfs";
/// With it, paths are patterns; libsepol ends them in a star, so that they mean what they meant.
const WILDCARDS: &str = "genfs_seclabel_wildcard";

/// The maps' contents, and what does not fit in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filesystems {
    /// Of the map `filesystems`, by name. The root and all files of a file system that is not there are unlabelled.
    pub filesystems: Vec<(tg_fs_name, tg_filesystem)>,
    /// Of the map `genfs`.
    pub genfs: Vec<genfs::Entry>,
    /// Statements of the policy that the maps cannot hold, each with its reason. They label nothing.
    pub unsupported: Vec<String>,
}

/// The maps of `policy`. `sid` gives a context its SID.
pub fn of<E>(policy: &Policy, sid: &mut dyn FnMut(&Context) -> Result<u32, E>) -> Result<Filesystems, E> {
    let mut result = Filesystems::default();
    let mut known = BTreeSet::new();
    for statement in &policy.fs_uses {
        if let Some(name) = result.name(&statement.name).filter(|_| known.insert(statement.name.as_str())) {
            result.fs_use(name, statement, sid)?;
        }
    }
    // Those with files that enforcement lives by have a tree, whatever the policy says of them.
    let vital = vital::files();
    let mut by_name: BTreeMap<&str, Vec<&GenFs>> =
        vital.iter().filter(|(_, paths)| !paths.is_empty()).map(|(name, _)| (*name, Vec::new())).collect();
    for statement in &policy.genfs {
        by_name.entry(&statement.name).or_default().push(statement);
    }
    // As security_fs_use does: genfscon is asked where there is no fs_use.
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

/// The first number to begin with that gives no two directories one number.
fn distinct(trees: Vec<(&str, &Tree)>) -> u32 {
    let differ = |salt: &u32| {
        let entries = trees.iter().flat_map(|(text, tree)| tree.entries(root(*salt, text), 0));
        // Each node has one key for the empty name.
        let nodes: Vec<u32> = entries.filter(|(_, value)| value.length == 0).map(|(key, _)| key.node).collect();
        nodes.iter().collect::<HashSet<_>>().len() == nodes.len()
    };
    (0x811c_9dc5..).find(differ).unwrap_or_default()
}

/// The key of a file system in the map `filesystems`; `None`: its name is too long for one.
#[must_use]
pub fn name(text: &str) -> Option<tg_fs_name> {
    let mut name = tg_fs_name::default();
    for (to, from) in name.text.iter_mut().zip(text.bytes()) {
        *to = from.cast_signed();
    }
    (text.len() < name.text.len()).then_some(name)
}

/// A value of that map.
#[must_use]
pub fn value(bytes: &[u8]) -> Option<tg_filesystem> {
    let (words, _) = bytes.as_chunks::<4>();
    let [behaviour, sid, node, reserved] = <[[u8; 4]; 4]>::try_from(words).ok()?.map(u32::from_ne_bytes);
    Some(tg_filesystem { behaviour, sid, node, reserved })
}

impl Filesystems {
    /// The key of a file system that a statement is for.
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
                self.unsupported.push(format!("fs_use of {}: behaviour {other} is not known", statement.name));
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
            // Below the root they label nothing there, under SELinux neither.
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
        // SELinux leaves a file system unlabelled whose root no statement names.
        Ok((tree, root.unwrap_or(SECINITSID_UNLABELED)))
    }

    /// Marks the files of a file system that enforcement lives by.
    fn protect<'p>(&mut self, text: &str, tree: &mut Tree, paths: impl Iterator<Item = &'p String>) {
        for path in paths.filter(|path| tree.protect(path).is_err()) {
            self.unsupported.push(format!("{text} {path}, which enforcement lives by: a name in it is too long"));
        }
    }

    /// What paths begin with that a statement is for; `None`, and a reason, when the maps cannot say it.
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

/// Whether labels of files may be set, as tg_settable of the programs (selinux_is_sblabel_mnt).
#[must_use]
pub fn is_settable(policy: &Policy, name: &str, behaviour: u32) -> bool {
    let has = |capability: &str| policy.capabilities.iter().any(|known| known == capability);
    match name {
        _ if behaviour != TG_FS_GENFS => true,
        "debugfs" | "pstore" | "rootfs" | "sysfs" | "tracefs" => true,
        "cgroup" | "cgroup2" => has("cgroup_seclabel"),
        FUNCTIONFS => has("functionfs_seclabel"),
        _ => false,
    }
}

/// Whether a policy may label the files of such a file system by their paths in it.
pub(crate) fn may_be_by_path(filesystem: &str) -> bool {
    BY_PATH.contains(&filesystem)
}

#[cfg(test)]
mod tests;
