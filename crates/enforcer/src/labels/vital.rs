//! Files of the kernel's own file systems on which enforcement depends ([`TG_SID_SURVIVAL`]), in every mount of each of
//! them.
//!
//! These files detach programs, prevent the loading of new ones, write to the kernel's memory or end the daemon, and no
//! service of a distribution writes to them. The following are not included. They are left to the policy, as under
//! SELinux:
//!
//! - files that name a program for the kernel to start (`core_pattern`, `modprobe`, `uevent_helper`, a control group's
//!   `release_agent`);
//! - files that only restrict, which systemd-sysctl writes on a hardened machine (`modules_disabled`,
//!   `kexec_load_disabled`, `unprivileged_bpf_disabled`, `perf_event_paranoid`, `bpf_jit_harden`);
//! - `/sys/power/state`, by which a session suspends the machine;
//! - devices (`/dev/mem`, `/dev/port`, `/dev/snapshot`, disks).
//!
//! [`TG_SID_SURVIVAL`]: tollgate_abi::enforcer::TG_SID_SURVIVAL

use std::fs;

/// File systems, and prefixes of paths on them, as in `genfscon`.
const FILES: [(&str, &[&str]); 5] = [
    (
        "proc",
        &[
            // Programs are called through ftrace's direct calls (kernel/bpf/trampoline.c). Without ftrace none is
            // called.
            "/sys/kernel/ftrace_enabled",
            // The programs that the next policy needs could not be loaded.
            "/sys/net/core/bpf_jit_enable",
            "/sys/net/core/bpf_jit_limit",
            // It ends all processes at once, without a check.
            "/sysrq-trigger",
        ],
    ),
    (
        "sysfs",
        &[
            // Patches replace functions, including those that check.
            "/kernel/livepatch",
            // A debugger writes to the kernel's memory, and an image that is resumed replaces all of it.
            "/module/kgdb",
            "/power/resume",
        ],
    ),
    // Probes in any program, including the daemon. A probe inside an instruction breaks the program.
    ("tracefs", &["/dynamic_events", "/kprobe_events", "/uprobe_events"]),
    // Functions that return what a user chooses. An ACPI method can write to any memory.
    ("debugfs", &["/acpi/custom_method", "/error_injection", "/fail", "/kprobes", "/provoke-crash"]),
    // "confidentiality" prevents the loading of programs that read the kernel's memory.
    ("securityfs", &["/lockdown"]),
];

/// The file system of control groups.
const GROUPS: &str = "cgroup2";
/// Prefixes of the files in a group by which its processes, and those of the groups below, are ended, stopped or
/// starved.
const REINS: [&str; 6] = ["cgroup.freeze", "cgroup.kill", "cpu.", "cpuset.", "memory.", "pids."];

/// All of them: file systems, and prefixes of paths on them. A process that may write to the `cgroup.procs` of a group
/// and of the common group above can still move the daemon to that group, because no hook shows which process is moved.
#[must_use]
pub fn files() -> Vec<(&'static str, Vec<String>)> {
    let mut files: Vec<_> =
        FILES.iter().map(|(name, paths)| (*name, paths.iter().map(|path| (*path).to_owned()).collect())).collect();
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    files.push((GROUPS, of_group(&group)));
    files
}

/// What must be protected for the group of this process, as `/proc/self/cgroup` names it, and the groups above. Nobody
/// can stop the root group.
fn of_group(text: &str) -> Vec<String> {
    let Some(group) = text.lines().find_map(|line| line.strip_prefix("0::")).filter(|group| *group != "/") else {
        return Vec::new();
    };
    let above = group.match_indices('/').skip(1).map(|(end, _)| &group[..end]);
    let reins = above.flat_map(|above| REINS.map(|name| format!("{above}/{name}")));
    reins.chain([group.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_group_of_the_daemon_and_the_reins_of_those_that_it_is_in() {
        let found = of_group("1:name=systemd:/\n0::/system.slice/tollgate.service\n");
        assert!(found.contains(&"/system.slice/tollgate.service".to_owned()));
        assert!(found.contains(&"/system.slice/cgroup.freeze".to_owned()) && found.len() == 1 + REINS.len());
        assert_eq!(of_group("0::/\n"), Vec::<String>::new());
        assert_eq!(of_group(""), Vec::<String>::new());
    }
}
