//! Files of the kernel's own file systems that enforcement lives by ([`TG_SID_SURVIVAL`]), in every mount of each of them.
//!
//! Here is what undoes programs, keeps new ones from being loaded, writes to the kernel's memory or ends the daemon, and what
//! no service of a distribution writes. Not here, and as under SELinux the policy's business:
//!
//! - what starts a program as the kernel's helper (`core_pattern`, `modprobe`, `uevent_helper`, a control group's `release_agent`);
//! - what only tightens, which systemd-sysctl writes where a machine is hardened (`modules_disabled`, `kexec_load_disabled`,
//!   `unprivileged_bpf_disabled`, `perf_event_paranoid`, `bpf_jit_harden`);
//! - `/sys/power/state`, by which a session suspends the machine;
//! - devices (`/dev/mem`, `/dev/port`, `/dev/snapshot`, disks).
//!
//! [`TG_SID_SURVIVAL`]: tollgate_abi::enforcer::TG_SID_SURVIVAL

use std::fs;

/// File systems and what paths there begin with, as in `genfscon`.
const FILES: [(&str, &[&str]); 5] = [
    (
        "proc",
        &[
            // Programs hang on ftrace's direct calls (kernel/bpf/trampoline.c): without ftrace none is called.
            "/sys/kernel/ftrace_enabled",
            // Programs that the next policy needs could not be loaded.
            "/sys/net/core/bpf_jit_enable",
            "/sys/net/core/bpf_jit_limit",
            // Ends all processes at once, and asks nobody.
            "/sysrq-trigger",
        ],
    ),
    (
        "sysfs",
        &[
            // Patches put other functions in the place of those that ask.
            "/kernel/livepatch",
            // A debugger writes to the kernel's memory, and an image that is resumed is all of it.
            "/module/kgdb",
            "/power/resume",
        ],
    ),
    // Probes of any program, the daemon's too: one that lies inside an instruction breaks it.
    ("tracefs", &["/dynamic_events", "/kprobe_events", "/uprobe_events"]),
    // Functions that return what somebody says; an ACPI method writes to any memory.
    ("debugfs", &["/acpi/custom_method", "/error_injection", "/fail", "/kprobes", "/provoke-crash"]),
    // "confidentiality" keeps programs from being loaded that read the kernel's memory.
    ("securityfs", &["/lockdown"]),
];

/// Of control groups, whose files are there.
const GROUPS: &str = "cgroup2";
/// What a group's files begin with by which its processes, and those of the groups in it, are ended, stopped or starved.
const REINS: [&str; 6] = ["cgroup.freeze", "cgroup.kill", "cpu.", "cpuset.", "memory.", "pids."];

/// All of them: file systems and what paths there begin with. Who may write to a group's `cgroup.procs` and to that of all can
/// still take the daemon to another group: no hook tells who is moved.
#[must_use]
pub fn files() -> Vec<(&'static str, Vec<String>)> {
    let mut files: Vec<_> =
        FILES.iter().map(|(name, paths)| (*name, paths.iter().map(|path| (*path).to_owned()).collect())).collect();
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    files.push((GROUPS, of_group(&group)));
    files
}

/// What is to be kept of the group of this process, as `/proc/self/cgroup` tells it, and of those that it is in. Where all are
/// in one nobody can stop it.
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
