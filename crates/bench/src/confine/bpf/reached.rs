//! The hooks that workloads reach.

/// The hooks that the workloads reach: traced as `bpf_lsm_*` on Debian's 6.1 to 7.2 over the whole catalogue, without
/// those that only set-ups reach, such as mounting. A kernel has most of them.
pub const REACHED_HOOKS: &[&str] = &[
    // Path walks and files.
    "d_instantiate",
    "file_alloc_security",
    "file_fcntl",
    "file_free_security",
    "file_lock",
    "file_mprotect",
    "file_open",
    "file_permission",
    "file_post_open",
    "file_receive",
    "file_release",
    "file_truncate",
    "inode_alloc_security",
    "inode_create",
    "inode_follow_link",
    "inode_free_security",
    "inode_free_security_rcu",
    "inode_getattr",
    "inode_getxattr",
    "inode_init_security",
    "inode_link",
    "inode_mkdir",
    "inode_permission",
    "inode_post_setattr",
    "inode_post_setxattr",
    "inode_readlink",
    "inode_rename",
    "inode_rmdir",
    "inode_setattr",
    "inode_setxattr",
    "inode_symlink",
    "inode_unlink",
    "inode_xattr_skipcap",
    "mmap_addr",
    "mmap_file",
    "path_chmod",
    "path_chown",
    "path_link",
    "path_mkdir",
    "path_mknod",
    "path_rename",
    "path_rmdir",
    "path_symlink",
    "path_truncate",
    "path_unlink",
    // Processes.
    "bprm_check_security",
    "bprm_committed_creds",
    "bprm_committing_creds",
    "bprm_creds_for_exec",
    "bprm_creds_from_file",
    "capable",
    "cred_getsecid",
    "cred_prepare",
    "current_getlsmprop_subj",
    "current_getsecid_subj",
    "ptrace_access_check",
    "task_alloc",
    "task_free",
    "task_kill",
    "task_prctl",
    "task_to_inode",
    // Sockets.
    "inet_conn_established",
    "inet_conn_request",
    "inet_csk_clone",
    "req_classify_flow",
    "sk_alloc_security",
    "sk_clone_security",
    "sk_free_security",
    "sk_getsecid",
    "sock_graft",
    "socket_accept",
    "socket_bind",
    "socket_connect",
    "socket_create",
    "socket_getpeersec_dgram",
    "socket_getsockname",
    "socket_listen",
    "socket_post_create",
    "socket_recvmsg",
    "socket_sendmsg",
    "socket_setsockopt",
    "socket_sock_rcv_skb",
    "socket_socketpair",
    "unix_may_send",
    // System V IPC.
    "ipc_permission",
    "msg_msg_alloc_security",
    "msg_msg_free_security",
    "msg_queue_alloc_security",
    "msg_queue_free_security",
    "msg_queue_msgctl",
    "msg_queue_msgrcv",
    "msg_queue_msgsnd",
    "sem_alloc_security",
    "sem_free_security",
    "sem_semctl",
    "sem_semop",
    "shm_alloc_security",
    "shm_free_security",
    "shm_shmat",
    "shm_shmctl",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn knows_every_reached_hook_once() {
        let mut seen = BTreeSet::new();
        for name in REACHED_HOOKS {
            assert!(tollgate_abi::hook(name).is_some(), "{name}");
            assert!(seen.insert(name), "{name} twice");
        }
    }
}
