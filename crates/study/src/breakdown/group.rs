//! What a piece of a hook's work is for.

use serde::{Deserialize, Serialize};

/// What an object manager does at a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// The way from the kernel to the module and back: the framework, the trampoline of a BPF program.
    Entry,
    /// The subject's label is found.
    Subject,
    /// The object's label is found or kept.
    Object,
    /// Decisions are found in caches, and kept there.
    Cache,
    /// A decision is computed from the policy's tables.
    Tables,
    /// Everything else: the hook's own program, events.
    Rest,
}

impl Group {
    /// All, in the order of tables.
    pub const ALL: [Self; 6] = [Self::Entry, Self::Subject, Self::Object, Self::Cache, Self::Tables, Self::Rest];
}

/// Files of the enforcer's programs (crates/enforcer/bpf, crates/abi) by what their lines are for. Others are the rest.
const FILES: [(Group, &[&str]); 4] = [
    (
        Group::Subject,
        &[
            "subject.h",
            "credential.h",
            "credential_put.h",
            "plain_task.h",
            "unit.h",
            "container.h",
            "process.h",
            "holder.h",
            "share.h",
        ],
    ),
    (
        Group::Object,
        &[
            "object.h",
            "storage.h",
            "plain_inode.h",
            "plain_socket.h",
            "label_inode.h",
            "label_unwalked.h",
            "label_new.h",
            "label_overlay.h",
            "label_address.h",
            "filesystem.h",
            "genfs.h",
            "overlay.h",
            "subvolume.h",
            "trusted.h",
            "active.h",
            "socket_class.h",
            "socket_label.h",
            "network.h",
            "heard.h",
            "descriptor.h",
            "bpf_object.h",
        ],
    ),
    (Group::Cache, &["cache.h", "ask.h", "admitted.h", "use.h", "itself.h", "task_access.h", "socket_access.h"]),
    (
        Group::Tables,
        &[
            "answer.h",
            "decide.h",
            "shadow.h",
            "bounds.h",
            "transition.h",
            "generation.h",
            "contexts.h",
            "level_number.h",
        ],
    ),
];

/// Functions by the beginnings of their names: SELinux's (security/selinux), and those with which the framework frees labels in
/// BPF storage.
const FUNCTIONS: [(&str, Group); 11] = [
    ("avc_", Group::Cache),
    ("slow_avc_audit", Group::Rest),
    ("security_compute_", Group::Tables),
    ("security_transition_", Group::Tables),
    ("context_struct_compute_av", Group::Tables),
    ("inode_security", Group::Object),
    ("__inode_security_revalidate", Group::Object),
    ("inode_doinit", Group::Object),
    ("cred_sid", Group::Subject),
    ("bpf_inode_storage_free", Group::Object),
    ("bpf_sk_storage_free", Group::Object),
];

/// The group of a source file's lines.
pub(super) fn of_file(file: &str) -> Group {
    FILES.iter().find(|(_, files)| files.contains(&file)).map_or(Group::Rest, |(group, _)| *group)
}

/// The group of a function of a module that is no BPF program.
pub(super) fn of_function(function: &str) -> Option<Group> {
    FUNCTIONS.iter().find(|(beginning, _)| function.starts_with(beginning)).map(|(_, group)| *group)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_only_headers_that_there_are() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folders = [crates.join("enforcer/bpf"), crates.join("abi")];
        for file in FILES.iter().flat_map(|(_, files)| *files) {
            assert!(folders.iter().any(|folder| folder.join(file).exists()), "{file}");
        }
    }

    #[test]
    fn takes_what_no_header_names_for_the_rest() {
        assert_eq!(
            ["subject.h", "object.h", "inode.h", ""].map(of_file),
            [Group::Subject, Group::Object, Group::Rest, Group::Rest]
        );
        assert_eq!((of_function("avc_has_perm"), of_function("selinux_inode_permission")), (Some(Group::Cache), None));
    }
}
