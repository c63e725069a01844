//! Enforcement that is switched off while the daemon runs: this is reported within a second, and processes that escaped
//! meanwhile are found.

use super::{guest, recovery::disk};
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    report_time,
};

/// Shell functions: milliseconds since boot; hooks off, until the daemon has reported it, and on, until it has reported that;
/// how many processes of a name run in a context.
const NAMES: &str = r#"
LOG=/var/log/tollgate/daemon.log
ms() { read up _ < /proc/uptime; echo $((${up%.*}${up#*.} * 10)); }
told() { n=0; until [ "$(grep -c "$1" $LOG)" -ge "$2" ]; do usleep 20000; n=$((n+1)); [ $n -lt 5000 ] || return 1; done; }
off() { began=$(ms); echo 0 > /proc/sys/kernel/ftrace_enabled; told "HOOKS DO NOT RUN" $1; echo "told after $(($(ms) - began)) ms"; }
on() { echo 1 > /proc/sys/kernel/ftrace_enabled; told "hooks run again" $1; settled $1; }
settled() { n=0; until [ "$(tollgate status --json | tr , '\n' | grep -c '"to"')" -ge $1 ]; do sleep 1; n=$((n+1)); [ $n -lt 300 ] || return 1; done; }
processes() { ls /proc | grep -c '^[0-9]'; }
in_context() { tollgate ps | grep " $2$" | grep -c "$(at $1)"; }
"#;

/// The time until the report, in milliseconds.
fn told_after(text: &str) -> u64 {
    let words = text.lines().find_map(|line| line.strip_prefix("told after ")?.strip_suffix(" ms")).expect(text);
    words.parse().unwrap()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn tells_that_hooks_do_not_run_and_confines_all_who_slipped_out() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let guest = guest(&scratch, kernel, &["slip"]).names(NAMES);
        let steps = guest
            .step("start", "tollgate enforce /policy && mkdir -p /srv && echo SECRET > /srv/secret && tollgate label set $(of secret) /srv/secret; sleep 1; tollgate status")
            // The attacker waits until hooks are off, creates a thousand children in all ways, and these wait until hooks are
            // on.
            .step("attacker", "W /slip 1000 /tmp/go /tmp/told & sleep 2")
            .step("off", "off 1")
            .step("status", "tollgate status")
            .step("json", "tollgate status --json")
            .step("metrics", "tollgate status --metrics")
            .step("slip", "n=$(processes); touch /tmp/go; for i in $(seq 120); do [ $(processes) -ge $((n + 1000)) ] && break; sleep 1; done; processes")
            .step("bystander", "setsid sleep 1234 & sleep 1234 & sleep 1")
            .step("on", "on 1")
            .step("after", "tollgate status")
            .step("found", "grep 'while hooks did not run' $LOG | cut -c1-200")
            .step("bystanders", "in_context worker sleep; true")
            .step("reads", "touch /tmp/told; for i in $(seq 120); do [ $(cat /tmp/told.* 2>/dev/null | wc -c) -ge 1000 ] && break; sleep 1; done; cat /tmp/told.denied | wc -c; cat /tmp/told.read 2>/dev/null | wc -c")
            .step("once", "tollgate status; W cat /srv/secret")
            .run();
        steps["start"].is(0, &["hooks run: what must be denied is denied"]);
        let told = told_after(&steps["off"].text);
        report_time(&format!("{kernel}: from ftrace off to the alarm"), &format!("{told} ms"), "1000 ms");
        steps["status"].is(1, &["HOOKS DO NOT RUN", "kernel.ftrace_enabled is 0", "sysctl kernel.ftrace_enabled=1"]);
        assert_eq!(steps["json"].is(1, &[]).json()["alarm"]["kind"], "off");
        steps["metrics"].is(1, &["tollgate_hooks_run 0"]);
        let after = steps["after"].is(0, &["hooks did not run for", "confined again"]);
        assert!(after.text.contains("1000 processes of slip"), "{}", after.text);
        // A process that was not confined before is not confined now.
        assert_eq!(steps["bystanders"].text, "0\n");
        // Each child has tried to read, and none has succeeded.
        assert_eq!(steps["reads"].text, "1000\n0\n");
        steps["once"].is(1, &["hooks run: what must be denied is denied"]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn labels_what_came_into_memory_while_hooks_did_not_run_and_nothing_that_was_made_then() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let image = disk(&scratch, "ext4", 64);
        let get = "cd /srv/dir; tollgate label get seen secret made held new moved";
        let steps = guest(&scratch, kernel, &["settled"])
            .names(NAMES)
            .volume(&image)
            .step("start", "mount /dev/vda /srv && mkdir /srv/dir /srv/tools && tollgate enforce /policy")
            .step(
                "files",
                "tollgate label set $(of tool) /srv/tools; cd /srv/dir; echo > ../tools/held; echo > ../tools/moved; \
                 echo > seen; echo > secret; tollgate label set $(of secret) secret; W sh -c 'echo > made'; /settled /srv; sync; \
                 sleep 1000 < ../tools/held &",
            )
            .step("off", "off 1")
            // Every file that is not held open is looked up again, and gets no label.
            .step(
                "meanwhile",
                "echo 3 > /proc/sys/vm/drop_caches; cd /srv/dir; cat seen secret made > /dev/null; echo > new; \
                 mv ../tools/held ../tools/moved .; tollgate label get seen",
            )
            .step("on", "on 1")
            .step("labels", get)
            .step("reads", "O cat /srv/dir/seen && O cat /srv/dir/secret")
            .step("lost", "tollgate label lost")
            .step("told", "grep 'came into memory' $LOG")
            .step("forgotten", &format!("cd /; kill $(pidof sleep); sleep 3; umount /srv && mount /dev/vda /srv && sleep 4 && {get}"))
            .run();
        for name in ["start", "files", "off", "on"] {
            steps[name].is(0, &[]);
        }
        steps["meanwhile"].is(0, &[":unlabeled_t:"]);
        for name in ["labels", "forgotten"] {
            for (file, label) in [("seen", "open"), ("secret", "secret"), ("made", "made"), ("held", "tool")] {
                steps[name].is(0, &[&format!(":{label}:s0 {file}\n")]);
            }
            steps[name].is(0, &[":unlabeled_t:s15:c0.c1023 new\n"]);
        }
        steps["reads"].is(1, &["Permission denied"]);
        // What was moved is known if it came back to the place in memory where it was before: it has its own label.
        let lost = steps["lost"].is(1, &["/srv/dir/new\n"]);
        assert!(!lost.text.contains("/srv/dir/held"), "{}", lost.text);
        let moved = lost.text.contains("/srv/dir/moved");
        let label = if moved { "unlabeled_t:s15:c0.c1023" } else { "tool:s0" };
        for name in ["labels", "forgotten"] {
            steps[name].is(0, &[&format!(":{label} moved\n")]);
        }
        steps["told"].is(0, &[&format!("they have labels by now; {} w", if moved { "2" } else { "1" })]);
    }
}
