//! Whom and what hooks check permissions for: the possible sources and targets of a permission.

use tollgate_abi::enforcer::{SECINITSID_KERNEL, SECINITSID_SECURITY};

/// Permissions that are checked only for a process on itself.
const ON_ITSELF: [(&str, &[&str]); 5] = [
    (
        "process",
        &[
            "fork",
            "execmem",
            "execstack",
            "execheap",
            "setexec",
            "setfscreate",
            "setcurrent",
            "setkeycreate",
            "setsockcreate",
            "setcap",
        ],
    ),
    ("bpf", &["map_create", "prog_load"]),
    ("io_uring", &["sqpoll", "allowed"]),
    ("perf_event", &["open", "cpu", "kernel", "tracepoint"]),
    ("tun_socket", &["create"]),
];
/// Classes all of whose permissions are checked only for a process on itself.
const SELF_CLASSES: [&str; 6] =
    ["capability", "capability2", "cap_userns", "cap2_userns", "memprotect", "user_namespace"];
/// Classes whose objects are processes, or descriptors that processes opened.
const OF_PROCESSES: [&str; 3] = ["process", "process2", "fd"];
/// Permissions on the system as a whole.
const OF_KERNEL: [&str; 5] = ["syslog_read", "syslog_mod", "syslog_console", "module_request", "ipc_info"];
/// What a socket is checked for, and not the process that uses it.
const OF_SOCKETS: [&str; 5] = ["sendto", "connectto", "name_bind", "node_bind", "name_connect"];

/// The possible targets of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Targets {
    /// The process itself, with its own context.
    Itself,
    /// Processes.
    Domains,
    /// What has this initial SID.
    Initial(u32),
    /// Anything, because a file may have any label.
    All,
}

/// The possible sources of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sources {
    /// Processes.
    Processes,
    /// Sockets, which may have any label.
    Sockets,
}

pub(super) fn targets(class: &str, permission: &str) -> Targets {
    let on_itself = |(of, names): &(&str, &[&str])| *of == class && names.contains(&permission);
    if SELF_CLASSES.contains(&class) || ON_ITSELF.iter().any(on_itself) {
        Targets::Itself
    } else if OF_PROCESSES.contains(&class) {
        Targets::Domains
    } else if class == "security" {
        Targets::Initial(SECINITSID_SECURITY)
    } else if class == "system" && OF_KERNEL.contains(&permission) {
        Targets::Initial(SECINITSID_KERNEL)
    } else {
        Targets::All
    }
}

pub(super) fn sources(class: &str, permission: &str) -> Sources {
    if class.ends_with("socket") && OF_SOCKETS.contains(&permission) { Sources::Sockets } else { Sources::Processes }
}

/// Whether the role may change with this permission, for which a rule on roles is needed.
pub(super) fn changes_role((class, permission): (&str, &str)) -> bool {
    class == "process" && ["transition", "dyntransition"].contains(&permission)
}
