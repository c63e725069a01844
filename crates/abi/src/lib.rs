//! The contract between Tollgate's BPF programs and user space.
//!
//! The C headers are the source; this crate is generated from them. `lsm_hooks.h` is the table of LSM hooks, [`tables`]
//! is `tables.h`, [`enforcer`] is `enforcer.h`, [`guard`] is `guard.h`, [`status`] is `status.h`. `decide.h` and `guard_decide.h`,
//! the evaluators, are compiled by the crates that use them.
//! [`CLASSES`] is `classes.txt`, from which `classes.h` is generated as well.

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

use zerocopy::{Immutable, IntoBytes};

pub mod enforcer;
pub mod guard;
pub mod paths;
pub mod status;
pub mod tables;

/// The bytes of a map's key or value. This compiles only if the type has no padding.
pub fn bytes_of<T: IntoBytes + Immutable>(value: &T) -> &[u8] {
    value.as_bytes()
}

/// An object class. The object managers number classes by their place in [`CLASSES`], from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Name of the class in policies.
    pub name: &'static str,
    /// Names of the permissions. The bit of each is its place, from 0.
    pub permissions: &'static [&'static str],
}

/// The classes of the kernels 5.10 to 7.2.
pub const CLASSES: &[Class] = include!(concat!(env!("OUT_DIR"), "/classes.rs"));

/// The class with a number (`SECCLASS_*` in C).
pub fn class(number: u32) -> Option<&'static Class> {
    CLASSES.get((number as usize).checked_sub(1)?)
}

/// The object managers by their numbers (`enum tg_manager`), with names for people.
pub const MANAGERS: &[(u32, &str)] = &[
    (enforcer::TG_MANAGER_FILE, "files"),
    (enforcer::TG_MANAGER_DIRECTORY, "directories"),
    (enforcer::TG_MANAGER_FILESYSTEM, "file systems"),
    (enforcer::TG_MANAGER_PROCESS, "processes"),
    (enforcer::TG_MANAGER_CAPABILITY, "capabilities"),
    (enforcer::TG_MANAGER_DESCRIPTOR, "descriptors"),
    (enforcer::TG_MANAGER_IPC, "System V IPC"),
    (enforcer::TG_MANAGER_KEY, "keys"),
    (enforcer::TG_MANAGER_BPF, "bpf"),
    (enforcer::TG_MANAGER_PERF, "performance events"),
    (enforcer::TG_MANAGER_OTHER, "other"),
    (enforcer::TG_MANAGER_SOCKET, "sockets"),
    (enforcer::TG_MANAGER_NETWORK, "network"),
];

/// An LSM hook that BPF programs can be attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    /// Name of the hook: the member of `union security_list_options`, and `bpf_lsm_NAME` in the kernel's BTF.
    pub name: &'static str,
    /// What an empty program returns: the hook's default, or 0 where the default differs between kernels.
    pub default: i32,
}

/// The hooks of Linux 5.10 to 7.3 that BPF programs can be attached to, sorted by name.
pub const HOOKS: &[Hook] = include!(concat!(env!("OUT_DIR"), "/hooks.rs"));

/// The hook with this name; `None` if no supported kernel has it.
pub fn hook(name: &str) -> Option<&'static Hook> {
    HOOKS.binary_search_by_key(&name, |hook| hook.name).ok().map(|index| &HOOKS[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_hook_by_its_name() {
        assert!(HOOKS.len() > 250, "{} hooks", HOOKS.len());
        for entry in HOOKS {
            assert_eq!(hook(entry.name), Some(entry));
        }
        assert_eq!(hook("file_opening"), None);
    }

    #[test]
    fn numbers_alike_what_all_classes_of_sockets_have() {
        let common = CLASSES.iter().find(|class| class.name == "socket").unwrap().permissions;
        for class in CLASSES.iter().filter(|class| class.name.ends_with("socket")) {
            assert_eq!(class.permissions.get(..common.len()), Some(common), "{}", class.name);
        }
    }

    /// The values in include/linux/lsm_hook_defs.h of Linux 6.1, and EOPNOTSUPP 95, ENOSYS 38, ENOPARAM 519.
    #[test]
    fn keeps_defaults_that_are_not_zero() {
        let default = |name| hook(name).map(|hook| hook.default);
        assert_eq!(default("task_prctl"), Some(-38));
        assert_eq!(default("fs_context_parse_param"), Some(-519));
        assert_eq!(default("inode_getsecctx"), Some(-95));
        assert_eq!(default("secid_to_secctx"), Some(-95));
        assert_eq!(default("xfrm_state_pol_flow_match"), Some(1));
        assert_eq!(default("file_open"), Some(0));
    }

    #[test]
    fn leaves_out_hooks_that_kernels_refuse_to_attach_to() {
        for name in ["getprocattr", "setprocattr", "inode_getsecurity", "vm_enough_memory", "ismaclabel"] {
            assert_eq!(hook(name), None);
        }
    }
}
