//! Names of system calls by their numbers, and of hooks by the framework's functions that call them.

/// Functions whose name without `security_` is not that of their hook: the function, the hook. They are as in the call graphs
/// of 5.10 to 7.2 (`tollgate hooks graph KERNEL --list`); if a function calls two hooks, its own is named.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("add_mnt_opt", "sb_add_mnt_opt"),
    ("bdev_alloc", "bdev_alloc_security"),
    ("bdev_free", "bdev_free_security"),
    ("bpf_map_alloc", "bpf_map_alloc_security"),
    ("bpf_prog_alloc", "bpf_prog_alloc_security"),
    ("bprm_check", "bprm_check_security"),
    ("create_user_ns", "userns_create"),
    ("file_alloc", "file_alloc_security"),
    ("file_free", "file_free_security"),
    ("free_mnt_opts", "sb_free_mnt_opts"),
    ("inode_alloc", "inode_alloc_security"),
    ("inode_free", "inode_free_security"),
    ("msg_msg_alloc", "msg_msg_alloc_security"),
    ("msg_msg_free", "msg_msg_free_security"),
    ("msg_queue_alloc", "msg_queue_alloc_security"),
    ("msg_queue_free", "msg_queue_free_security"),
    ("old_inode_init_security", "inode_init_security"),
    ("prepare_creds", "cred_prepare"),
    ("sb_alloc", "sb_alloc_security"),
    ("sb_free", "sb_free_security"),
    ("sem_alloc", "sem_alloc_security"),
    ("sem_free", "sem_free_security"),
    ("settime64", "settime"),
    ("shm_alloc", "shm_alloc_security"),
    ("shm_free", "shm_free_security"),
    ("sk_alloc", "sk_alloc_security"),
    ("sk_classify_flow", "sk_getsecid"),
    ("sk_clone", "sk_clone_security"),
    ("sk_free", "sk_free_security"),
    ("skb_classify_flow", "xfrm_decode_session"),
    ("sock_rcv_skb", "socket_sock_rcv_skb"),
    ("transfer_creds", "cred_transfer"),
    ("vm_enough_memory_mm", "vm_enough_memory"),
    ("xfrm_policy_alloc", "xfrm_policy_alloc_security"),
    ("xfrm_policy_clone", "xfrm_policy_clone_security"),
    ("xfrm_policy_delete", "xfrm_policy_delete_security"),
    ("xfrm_policy_free", "xfrm_policy_free_security"),
    ("xfrm_state_delete", "xfrm_state_delete_security"),
    ("xfrm_state_free", "xfrm_state_free_security"),
];

/// Hooks to which no BPF program can be attached, and which are therefore not in [`tollgate_abi::HOOKS`]
/// (`bpf_lsm_disabled_hooks`, kernel/bpf/bpf_lsm.c).
const NOT_FOR_BPF: &[&str] = &[
    "audit_rule_match",
    "getprocattr",
    "getselfattr",
    "inode_copy_up_xattr",
    "inode_getsecurity",
    "inode_listsecurity",
    "inode_need_killpriv",
    "ismaclabel",
    "key_getsecurity",
    "setprocattr",
    "vm_enough_memory",
];

/// The hook that a function of the framework calls, by its name in `abi/lsm_hooks.h`; `None` for functions of that prefix
/// outside the framework, such as SELinux's `security_compute_av`.
///
/// `function` is the name without `security_`.
pub fn hook_of(function: &str) -> Option<&'static str> {
    if let Ok(index) = OTHER_NAMES.binary_search_by_key(&function, |(own, _)| own) {
        return Some(OTHER_NAMES[index].1);
    }
    known(function)
}

/// A hook's name for as long as the program runs.
pub(super) fn known(hook: &str) -> Option<&'static str> {
    let others = || NOT_FOR_BPF.iter().copied().find(|name| *name == hook);
    tollgate_abi::hook(hook).map(|hook| hook.name).or_else(others)
}

/// The name of a system call of x86-64; `call_N` if it is newer than the table.
pub(super) fn syscall(number: u32) -> String {
    let lines = include_str!("syscalls.txt").lines().filter_map(|line| line.split_once(' '));
    let mut named = lines.filter_map(|(own, name)| Some((own.parse::<u32>().ok()?, name)));
    named.find(|(own, _)| *own == number).map_or_else(|| format!("call_{number}"), |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hooks_by_the_functions_that_ask_them() {
        assert_eq!(hook_of("file_open"), Some("file_open"));
        assert_eq!(hook_of("prepare_creds"), Some("cred_prepare"));
        assert_eq!(hook_of("vm_enough_memory_mm"), Some("vm_enough_memory"));
        assert_eq!(hook_of("compute_av"), None);
    }

    #[test]
    fn keeps_the_exceptions_sorted_and_each_to_a_hook() {
        assert!(OTHER_NAMES.is_sorted_by_key(|(function, _)| function));
        // Removed before 6.1, and never available to BPF.
        let gone = ["sb_add_mnt_opt"];
        for (function, hook) in OTHER_NAMES {
            assert!(known(hook).is_some() || gone.contains(hook), "{function}: {hook}");
        }
    }

    #[test]
    fn names_system_calls() {
        assert_eq!(syscall(0), "read");
        assert_eq!(syscall(257), "openat");
        assert_eq!(syscall(469), "file_setattr");
        assert_eq!(syscall(9999), "call_9999");
    }
}
