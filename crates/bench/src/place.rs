//! The place of a workload: a directory on a file system at a depth, and a network.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// A file system that workloads are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum FileSystem {
    /// A tmpfs mounted for the purpose.
    #[default]
    Tmpfs,
    /// An ext4 on a block device in memory: a virtio disk would complete on the host's time.
    Ext4,
    /// The file system that the work directory itself is on: in a guest the initial root file system.
    Rootfs,
}

impl FileSystem {
    /// The suffix, without its colon.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Tmpfs => "tmpfs",
            FileSystem::Ext4 => "ext4",
            FileSystem::Rootfs => "rootfs",
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A network that workloads send over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// 127.0.0.1 in the caller's network namespace.
    #[default]
    Loopback,
    /// A veth pair between two network namespaces made for the purpose.
    Veth,
}

impl Network {
    /// The suffix, without its colon.
    pub fn name(self) -> &'static str {
        match self {
            Network::Loopback => "loopback",
            Network::Veth => "veth",
        }
    }
}

/// The place of one workload. Dropping it removes the directories that were created for it, with their content.
#[derive(Debug)]
pub(crate) struct Place {
    /// An empty directory, as deep as the selection says: a file made in it has `depth` components below the mount
    /// point. A set-up may fill it.
    pub(crate) dir: PathBuf,
    /// The network to send over.
    pub(crate) net: Network,
    /// The mount point or the work directory, which stays when everything below it is removed.
    base: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.dir != self.base {
            // Only the first component was created here; the others are inside it.
            if let Some(first) = first_below(&self.base, &self.dir) {
                let _ = fs::remove_dir_all(first);
            }
        } else if let Ok(entries) = fs::read_dir(&self.base) {
            entries.flatten().for_each(|entry| remove(&entry.path()));
        }
    }
}

impl Place {
    /// `dir` was created below `base`, from the first component on.
    pub(crate) fn new(dir: PathBuf, net: Network, base: PathBuf) -> Self {
        Self { dir, net, base }
    }
}

/// The directory right below `base` on the way to `dir`.
pub(crate) fn first_below(base: &Path, dir: &Path) -> Option<PathBuf> {
    let first = dir.strip_prefix(base).ok()?.components().next()?;
    Some(base.join(first))
}

/// Removes a file or a whole directory; one that stays makes the next workload's set-up fail by its name.
fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_directory_that_was_made() {
        assert_eq!(first_below(Path::new("/work"), Path::new("/work/c/d")), Some("/work/c".into()));
        assert_eq!(first_below(Path::new("/work"), Path::new("/work")), None);
    }
}
