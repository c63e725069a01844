//! A process without `security setenforce` cannot end enforcement: by programs, pins, maps, or the daemon.

use std::collections::BTreeMap;

use super::guest;
#[cfg(feature = "long")]
use super::program;
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::Step,
};
#[cfg(feature = "long")]
use crate::program::{steps::Guest, word};

/// Acts that need `security setenforce`, by a process with every permission on files: each is a step that is denied.
const DENIED: [(&str, &str); 34] = [
    ("ftrace", "W sh -c 'echo 0 > /proc/sys/kernel/ftrace_enabled'"),
    ("ftrace, cut off", "W truncate -s 0 /proc/sys/kernel/ftrace_enabled"),
    ("ftrace, its mode", "W chmod 666 /proc/sys/kernel/ftrace_enabled"),
    ("ftrace, mounted before", "W sh -c 'echo 0 > /before/sys/kernel/ftrace_enabled'"),
    ("ftrace, mounted by itself", "W sh -c 'mount -t proc none /own && echo 0 > /own/sys/kernel/ftrace_enabled'"),
    (
        "ftrace, of other processes",
        "W unshare -p -f -m sh -c 'mount -t proc none /proc && echo 0 > /proc/sys/kernel/ftrace_enabled'",
    ),
    (
        "ftrace, by another name",
        "W sh -c 'mount --bind /proc/sys/kernel/ftrace_enabled /srv/name && echo 0 > /srv/name'",
    ),
    ("ftrace, covered", "W mount --bind /srv/name /proc/sys/kernel/ftrace_enabled"),
    ("memory of programs", "W sh -c 'echo 1 > /proc/sys/net/core/bpf_jit_limit'"),
    ("all processes", "W sh -c 'echo i > /proc/sysrq-trigger'"),
    ("image", "W sh -c 'echo 1:0 > /sys/power/resume'"),
    ("probe of the kernel", "W sh -c 'echo p:x do_exit > /sys/kernel/tracing/kprobe_events'"),
    ("probe of a program", "W sh -c 'echo p:x /bin/tollgate:1 > /sys/kernel/tracing/uprobe_events'"),
    ("probes", "W sh -c 'echo 0 > /sys/kernel/debug/kprobes/enabled'"),
    ("lockdown", "W sh -c 'echo confidentiality > /sys/kernel/security/lockdown'"),
    ("daemon's memory", "W sh -c 'echo 1000 > /proc/'$(daemon)'/oom_score_adj'"),
    ("daemon, frozen", "W sh -c 'echo 1 > /sys/fs/cgroup/slice/service/cgroup.freeze'"),
    ("daemon, killed from above", "W sh -c 'echo 1 > /sys/fs/cgroup/slice/cgroup.kill'"),
    ("contexts", "W sh -c 'echo 1 a:b:c:s0 >> /run/tollgate/contexts'"),
    ("socket", "W rm /run/tollgate/socket"),
    ("lock", "W /lock /run/tollgate/lock"),
    ("folder", "W mv /run/tollgate /run/elsewhere"),
    ("another file", "W sh -c '> /run/tollgate/generation-2.policy'"),
    ("what the daemon has made since", "W sh -c 'echo >> /run/tollgate/permissive'"),
    ("policy", "W sh -c 'echo >> /etc/tollgate/policy'"),
    ("pins", "W umount -l /sys/fs/bpf"),
    ("pins, from above", "W umount -l /sys"),
    ("pins, read-only", "W mount -o remount,ro /sys/fs/bpf"),
    ("pins, moved", "W mount --move /sys /mnt"),
    ("pins, covered", "W mount -t tmpfs none /sys/fs/bpf"),
    ("pins, covered above", "W mount -t tmpfs none /sys/fs"),
    ("folder, from above", "W umount -l /run"),
    ("folder, covered above", "W mount -t tmpfs none /run"),
    ("another root", "W pivot_root /srv /srv/old"),
];

/// Mounts that propagate: acts in another namespace or on another mount.
const SHARED: [(&str, &str); 3] = [
    ("pins of a peer", "W /peer umount -l /sys"),
    ("pins of a peer, covered", "W /peer mount -t tmpfs none /sys"),
    ("pins, bound elsewhere", "mkdir /srv/bound && mount --rbind /sys /srv/bound && W umount -l /srv/bound"),
];

/// Acts that it may do as before.
const ALLOWED: [(&str, &str); 9] = [
    ("looks", "W cat /proc/sys/kernel/ftrace_enabled /run/tollgate/contexts >/dev/null && W ls /run/tollgate"),
    ("asks the daemon", "W tollgate mode && W tollgate label get /srv"),
    (
        "other settings",
        "W sh -c 'echo 1 > /proc/sys/kernel/panic_on_oops && echo nop > /sys/kernel/tracing/current_tracer'",
    ),
    ("other mounts", "W sh -c 'mount -t tmpfs none /mnt && umount -l /mnt'"),
    ("own mounts", "W unshare -m sh -c 'umount -l /sys && mount -t tmpfs none /sys && umount -l /run'"),
    ("own mounts, moved", "W unshare -m sh -c 'mount -t tmpfs none /mnt && mount --move /mnt /sys'"),
    ("slave mounts", "W unshare -m --propagation slave sh -c 'umount -l /sys && mount -t tmpfs none /sys'"),
    ("peers of other mounts", "W /peer sh -c 'mount -t tmpfs none /mnt && umount -l /mnt'"),
    ("own links", "W sh -c 'ln -s a /srv/link && rm /srv/link'"),
];

const PREPARED: &str = "mkdir -p /srv && mount -t tmpfs none /srv && echo SECRET > /srv/secret && touch /srv/name && mkdir -p /srv/old /own /before /mnt \
    /etc/tollgate && cp /policy /etc/tollgate/policy && mount -t proc none /before && mount -t debugfs none /sys/kernel/debug && \
    mount -t tracefs none /sys/kernel/tracing && \
    mkdir -p /sys/fs/cgroup/slice/service && echo $$ > /sys/fs/cgroup/slice/service/cgroup.procs && \
    tollgate enforce /policy && echo $$ > /sys/fs/cgroup/cgroup.procs && tollgate mode permissive --domain other && tollgate mode enforcing --domain other";

/// A daemon as systemd starts it, with the kept descriptor of the pins' directory.
const NEXT: &str =
    "LISTEN_FDS=1 LISTEN_FDNAMES=pins sh -c 'export LISTEN_PID=$$; exec tollgate enforce --foreground /policy' &
    exec 3<&-; while ! tollgate mode; do sleep 0.2; done 2>/dev/null";

fn attack(kernel: &'static str) -> BTreeMap<String, Step> {
    let scratch = Scratch::new();
    let mut guest = guest(&scratch, kernel, &["lock", "maps", "peer", "sigio"]).step("prepared", PREPARED);
    for (name, line) in DENIED.iter().chain(&ALLOWED) {
        guest = guest.step(name, line);
    }
    guest = guest
        .step("explained", "W truncate -s 0 /proc/sys/kernel/ftrace_enabled; sleep 2; tollgate explain")
        .step("maps", "W /maps; W /maps permit cat /srv/secret")
        .step("programs", "W /maps load")
        .step("links", "W /maps links; /maps links")
        .step("signal", "W /sigio $(daemon)")
        .step("alive", "sleep 1; tollgate mode && { sleep 100 & O /sigio $! && wait $!; }")
        .step("shared", "mount --make-rshared /");
    for (name, line) in SHARED {
        guest = guest.step(name, line);
    }
    guest
        .step("status", "tollgate status --json")
        .step("secret", "W cat /srv/secret")
        .step("unmounted by who may", "exec 3< /sys/fs/bpf/tollgate; umount -l /sys; sleep 6; W cat /srv/secret 3<&-")
        .step("its daemon killed", "kill -9 $(daemon); while tollgate mode; do sleep 0.2; done >/dev/null 2>&1")
        .step(
            "kept meanwhile",
            "mount -t sysfs none /sys; mount -t securityfs none /sys/kernel/security; ls /sys/fs/bpf",
        )
        .step("the next", NEXT)
        .step("denied by it", "sleep 6; W cat /srv/secret")
        .step("ended", "tollgate stop; W cat /srv/secret")
        .run()
}

#[test]
fn denies_to_end_enforcement_by_any_other_way_than_to_say_so() {
    for kernel in kernels(KERNELS) {
        let steps = attack(kernel);
        steps["prepared"].is(0, &[]);
        for (name, _) in DENIED.iter().chain(&SHARED) {
            assert!(steps[*name].text.contains("denied"), "{kernel}, {name}: {:?}", steps[*name]);
        }
        for (name, _) in ALLOWED {
            steps[name].is(0, &[]);
        }
        let lived_by =
            ["security_t:security { setenforce } ftrace_enabled (inode", "for file:write", "enforcement depends on"];
        steps["explained"].is(1, &lived_by);
        steps["maps"].is(1, &["maps: 0 had, 0 of them for writing", "can't open '/srv/secret'"]);
        let programs = &steps["programs"].text;
        assert_eq!(programs.matches(": ok").count(), 2, "{kernel}: {programs}");
        assert_eq!(programs.matches(": Permission denied").count(), 10, "{kernel}: {programs}");
        // The machine itself can detach that of the root cgroup, which answers SO_PEERSEC and enforces nothing.
        steps["links"].is(0, &["links: many, 0 detached, 0 updated\nlinks: many, 1 detached, 0 updated"]);
        steps["alive"].is(137, &["enforcing"]);
        let status = steps["status"].is(0, &[]).json();
        assert_eq!((&status["mode"], &status["failures"]), (&"enforcing".into(), &serde_json::json!({})), "{status}");
        steps["secret"].is(1, &["can't open '/srv/secret'"]);
        steps["unmounted by who may"].is(1, &["can't open '/srv/secret'"]);
        steps["the next"].is(0, &["enforcing"]);
        steps["denied by it"].is(1, &["can't open '/srv/secret'"]);
        steps["ended"].is(2, &["no daemon answers"]);
    }
}

/// Debian's own policy lets acpid write to the setting, and mount unmount sysfs.
#[test]
#[cfg(feature = "long")]
fn denies_it_to_domains_that_debians_policy_gives_the_setting_or_the_mount() {
    const PLACES: &str = "for place in /usr/sbin /usr/bin /etc; do mkdir -p $place; mount -t tmpfs -o mode=755 none $place; done; \
        cp /end /usr/sbin/acpid && cp /end /usr/bin/mount && echo root > /etc/shadow && \
        tollgate enforce --machine system_u:system_r:init_t:s0 /policy";
    const NAMES: &str = "A() { tollgate run --context system_u:system_r:acpid_t:s0 -- /usr/sbin/acpid \"$@\"; }\n\
        M() { tollgate run --context system_u:system_r:mount_t:s0 -- /usr/bin/mount \"$@\"; }\n";
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let built = scratch.path("debian");
        scratch.run(&["policy", "debian", "default", "-o", word(&built)]).with(0);
        let steps = Guest::under(&scratch, kernel, &built)
            .names(NAMES)
            .with(&program(&scratch, "end"), "/end")
            .step("prepared", PLACES)
            .step("secret", "A secret")
            .step("mounts", "M mounts")
            .step("setting", "A ftrace")
            .step("secret then", "sleep 6; A secret")
            .step("mode", "tollgate mode")
            .step("told", "sleep 1; tollgate explain -n 9")
            .run();
        steps["prepared"].is(0, &[]);
        for name in ["secret", "mounts", "setting", "secret then"] {
            steps[name].is(libc::EACCES, &[]);
        }
        steps["mode"].is(0, &["enforcing"]);
        // Their policy allows both: only ending enforcement is denied.
        let told = &steps["told"].is(1, &["acpid_t shadow_t:file"]).text;
        for domain in ["acpid_t", "mount_t"] {
            assert!(told.contains(&format!("{domain} security_t:security {{ setenforce }}")), "{told}");
        }
    }
}
