//! Multiplies workloads by the file systems, depths and networks of a study.

use std::sync::Arc;

use tollgate_bench::{
    Error,
    command_line::CommandLine,
    place::{FileSystem, Network},
    selection::{self, Selection},
    workload::Scope,
};

/// The variants in which a workload is measured unless its own suffix chooses; empty means only the default.
#[derive(Debug, Default)]
pub(super) struct Variants {
    pub(super) filesystems: Vec<FileSystem>,
    pub(super) depths: Vec<u8>,
    pub(super) networks: Vec<Network>,
}

/// The selections for one entry of `workloads`.
pub(super) fn expand(entry: &str, variants: &Variants, commands: &[Arc<CommandLine>]) -> Result<Vec<Selection>, Error> {
    let named = Named::of(entry);
    Ok(selection::expand(entry, commands)?.into_iter().flat_map(|s| multiply(s, named, variants)).collect())
}

/// The dimensions that an entry's own suffixes determine.
#[derive(Debug, Clone, Copy)]
struct Named {
    filesystem: bool,
    depth: bool,
    network: bool,
}

impl Named {
    fn of(entry: &str) -> Self {
        let suffixes = || entry.split(':').skip(1);
        let is_filesystem = |s: &str| filesystem(s).is_some();
        let is_network = |s: &str| network(s).is_some();
        Self {
            filesystem: suffixes().any(is_filesystem),
            network: suffixes().any(is_network),
            depth: suffixes().any(|s| !is_filesystem(s) && !is_network(s)),
        }
    }
}

fn multiply(selection: Selection, named: Named, variants: &Variants) -> Vec<Selection> {
    let scope = selection.workload.scope;
    let on_files = matches!(scope, Scope::File | Scope::Path) && !named.filesystem;
    let on_paths = scope == Scope::Path && !named.depth;
    let on_networks = scope == Scope::Network && !named.network;
    let mut all = Vec::new();
    for fs in choices(&variants.filesystems, selection.fs, on_files) {
        for depth in choices(&variants.depths, selection.depth, on_paths) {
            for net in choices(&variants.networks, selection.net, on_networks) {
                all.push(Selection { fs, depth, net, ..selection.clone() });
            }
        }
    }
    all
}

/// The study's choices if they apply to the workload, else the selection's own.
fn choices<T: Copy>(asked: &[T], own: T, applies: bool) -> Vec<T> {
    if applies && !asked.is_empty() { asked.to_vec() } else { vec![own] }
}

/// The file system of a name.
pub(super) fn filesystem(name: &str) -> Option<FileSystem> {
    [FileSystem::Tmpfs, FileSystem::Ext4, FileSystem::Rootfs].into_iter().find(|fs| fs.name() == name)
}

/// The network of a name.
pub(super) fn network(name: &str) -> Option<Network> {
    [Network::Loopback, Network::Veth].into_iter().find(|net| net.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(entry: &str, variants: &Variants) -> Vec<String> {
        expand(entry, variants, &[]).unwrap().iter().map(ToString::to_string).collect()
    }

    fn everything() -> Variants {
        Variants {
            filesystems: vec![FileSystem::Tmpfs, FileSystem::Ext4],
            depths: vec![1, 2],
            networks: vec![Network::Loopback, Network::Veth],
        }
    }

    #[test]
    fn multiplies_a_workload_by_what_applies_to_it() {
        assert_eq!(names("stat", &everything()), ["stat:d1", "stat:d2", "stat:ext4:d1", "stat:ext4:d2"]);
        assert_eq!(names("fstat", &everything()), ["fstat", "fstat:ext4"]);
        assert_eq!(names("udp", &everything()), ["udp", "udp:veth"]);
        assert_eq!(names("null", &everything()), ["null"]);
    }

    #[test]
    fn leaves_alone_what_a_suffix_settles() {
        assert_eq!(names("stat:rootfs:d4", &everything()), ["stat:rootfs:d4"]);
        assert_eq!(names("stat:ext4", &everything()), ["stat:ext4:d1", "stat:ext4:d2"]);
        assert_eq!(names("stat:d3", &everything()), ["stat", "stat:ext4"]);
        assert_eq!(names("udp:loopback", &everything()), ["udp"]);
    }

    #[test]
    fn takes_the_default_where_nothing_is_asked() {
        assert_eq!(names("stat", &Variants::default()), ["stat"]);
    }
}
