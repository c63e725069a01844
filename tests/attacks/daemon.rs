//! The daemon and its folder: what a confined process writes there, holds, or takes away from others.

use std::{fs::File, process::Command};

use super::guest;
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    word,
};

/// Shell functions: end the daemon at once; start the next one.
const NAMES: &str = r#"
LOG=/var/log/tollgate/daemon.log
end() { kill -9 $(daemon); sleep 1; }
next() { tollgate enforce /policy; }
"#;

#[test]
fn believes_no_file_in_its_folder_and_keeps_a_place_for_root() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let guest = guest(&scratch, kernel, &["hold", "slip"]).names(NAMES);
        let steps = guest
            .step("start", "mkdir -p /srv && echo SECRET > /srv/secret && next && tollgate label set $(of secret) /srv/secret")
            .step("denied", "W cat /srv/secret")
            // As a process with write access could: the secret's context and that of open files are exchanged.
            .step("contexts", "end; cd /run/tollgate; sed -i 's/:secret:/:X:/; s/:open:/:secret:/; s/:X:/:open:/' contexts; next 2>&1; cd /")
            .step("label", "tollgate label get /srv/secret")
            .step("reloaded", "tollgate reload /policy; W cat /srv/secret")
            .step("policy", "end; echo x >> /run/tollgate/generation-2.policy; next; tollgate status")
            .step("lock", "W /hold lock /run/tollgate/lock & sleep 2; end; sleep 1; next; tollgate status")
            .step("unconfined lock", "end; /hold lock /run/tollgate/lock & sleep 2; next; echo exit $?; kill $!; sleep 1; next; tollgate status")
            .step("places", "W /hold connect /run/tollgate/socket 160 & sleep 3; tollgate status; c=$?; kill $!; (exit $c)")
            .step("stopped", "kill -STOP $(daemon); tollgate status; c=$?; kill -CONT $(daemon); (exit $c)")
            .step("after", "sleep 2; tollgate status")
            .run();
        steps["start"].is(0, &[]);
        steps["denied"].is(1, &["Permission denied"]);
        steps["label"].is(0, &[":secret:"]);
        steps["contexts"].is(0, &["contexts: not used: SID ", ":secret:"]);
        steps["reloaded"].is(1, &["Permission denied"]);
        steps["policy"].is(0, &["enforcing", "generation-2.policy: not used"]);
        steps["lock"].is(0, &["/run/tollgate/lock: Permission denied", "enforcing"]);
        steps["unconfined lock"].is(
            0,
            &["/run/tollgate/lock is locked by process", "(hold), which is no daemon: end it with `kill`", "exit 2"],
        );
        steps["places"].is(0, &["enforcing"]);
        steps["stopped"].is(1, &["does not answer", "kill -CONT"]);
        steps["after"].is(0, &["hooks run: what must be denied is denied"]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_a_signal_to_a_process_that_has_become_the_daemon() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        // What is remembered of a task must not hold for the daemon.
        let signals =
            "until [ -e /number ]; do sleep 0.2; done; for i in 1 2 3; do kill -WINCH $(cat /number) || exit 1; done";
        let becomes = format!(
            "W sh -c '{signals}' & w=$!; sleep 2; end; \
             sh -c 'kill -STOP $$; exec tollgate enforce /policy --foreground' & p=$!; sleep 1; echo $p > /number; \
             wait $w; told=$?; kill -CONT $p; for i in $(seq 120); do tollgate status >/dev/null 2>&1 && break; sleep 1; done; \
             [ $told = 0 ] && [ $p = $(daemon) ]"
        );
        let steps = guest(&scratch, kernel, &[])
            .names(NAMES)
            .step("start", "next")
            .step("becomes", &becomes)
            .step("signal", "W kill -WINCH $(daemon)")
            .step("by root", "kill -WINCH $(daemon); tollgate status")
            .run();
        steps["becomes"].is(0, &[]);
        steps["signal"].is(1, &["Permission denied"]);
        steps["by root"].is(0, &["hooks run: what must be denied is denied"]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn answers_a_user_whatever_another_keeps_of_its_connections() {
    /// The attacker has subordinate uids; all users are in one domain, also the one who is served.
    const USERS: &str = r#"
B() { W /user 1001 "$@"; }
serves() { failed=0; for i in $(seq $1); do B tollgate mode || failed=$((failed + 1)); tollgate mode || failed=$((failed + 1)); done; echo "$failed failed"; }
attack() { for uid in 1000 100001 100002 100003 100004 165535; do W /user $uid /hold "$@" & attackers="$attackers $!"; done; }
"#;
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let steps = guest(&scratch, kernel, &["hold", "user"])
            .names(NAMES)
            .names(USERS)
            .step(
                "start",
                "echo alice:x:1000:1000::/:/bin/sh >> /etc/passwd; echo alice:100000:65536 >> /etc/subuid; next",
            )
            .step("kept", "attack connect /run/tollgate/socket 200; sleep 5; serves 5; kill $attackers")
            .step("storm", "attack storm /run/tollgate/socket 20; sleep 3; serves 5; wait")
            .step("after", "sleep 2; ls /proc/$(daemon)/fd | wc -l; tollgate status")
            .run();
        steps["start"].is(0, &[]);
        let answered = "enforcing\n".repeat(10) + "0 failed\n";
        steps["kept"].is(0, &[&answered]);
        steps["storm"].is(0, &["\n0 failed\n"]);
        assert_eq!(steps["storm"].text.lines().filter(|line| line.ends_with(" connections")).count(), 6);
        steps["after"].is(0, &["enforcing"]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn starts_after_a_start_that_was_killed_with_half_of_its_programs_attached() {
    /// Starts enforcement, and kills it when this many programs are attached; prints their number.
    const HALF: &str = r#"
links() { ls /sys/fs/bpf/tollgate/links 2>/dev/null | wc -l; }
half() { tollgate enforce /policy > /enforce.log 2>&1 & until [ "$(links)" -ge 20 ]; do usleep 1000; done
  kill -$1 $(pidof tollgate); sleep 2; echo "$(links) attached"; }
"#;
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let steps = guest(&scratch, kernel, &[])
            .names(NAMES)
            .names(HALF)
            .step("killed", "echo SECRET > /srv/secret; half KILL; tollgate status; cat /srv/secret")
            .step("confined", "W cat /srv/secret")
            .step(
                "next",
                "next && links; tollgate status; tollgate label set $(of secret) /srv/secret; cat /srv/secret",
            )
            .step("denied", "W cat /srv/secret")
            .step("stopped", "tollgate stop --force; links; ls /sys/fs/bpf; cat /srv/secret")
            // It ends in order after it has attached all of them.
            .step(
                "ended",
                "half TERM; cat /srv/secret; for i in $(seq 60); do next && break; sleep 1; done; tollgate status",
            )
            .step("denied again", "tollgate label set $(of secret) /srv/secret; W cat /srv/secret")
            .run();
        let attached = |name: &str| -> u32 {
            let found = steps[name].text.lines().find_map(|line| line.strip_suffix(" attached")?.parse().ok());
            found.unwrap_or_else(|| panic!("{}", steps[name].text))
        };
        let all: u32 = steps["next"].text.lines().find_map(|line| line.parse().ok()).unwrap();
        assert!((20..all).contains(&attached("killed")), "{} of {all}", attached("killed"));
        // The machine is not confined by half of the programs, and no other process can be.
        steps["killed"].is(0, &["SECRET"]);
        assert!(!steps["confined"].text.contains("SECRET"), "{}", steps["confined"].text);
        steps["next"].is(0, &["mode         enforcing", "SECRET"]);
        assert!(!steps["stopped"].text.lines().any(|line| line == "tollgate"), "{}", steps["stopped"].text);
        steps["ended"].is(0, &["SECRET", "mode         enforcing"]);
        for name in ["denied", "denied again"] {
            steps[name].is(1, &["Permission denied"]);
        }
    }
}

#[test]
fn leaves_half_of_all_levels_to_callers_when_an_image_names_more() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let image = scratch.path("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made =
            Command::new("/sbin/mke2fs").args(["-q", "-t", "ext4", "-N", "8000", word(&image)]).status().unwrap();
        assert!(made.success());
        let guest = guest(&scratch, kernel, &["hold"]).names(NAMES).with(&image, "/image").modules(&["loop"]);
        let steps = guest
            // Created while nothing is enforced.
            .step("image", "mkdir -p /mnt && mount -t ext4 -o loop /image /mnt && /hold pairs /mnt 3000 system_u:object_r:made:s0 && umount /mnt")
            .step("start", "next && tollgate status --json | tr ',' '\n' | grep contexts")
            .step("mount", "mount -t ext4 -o loop /image /mnt; sleep 8; tollgate status | grep contexts")
            .step("told", "grep 'half of all contexts or levels' $LOG")
            .step("new", "tollgate run --context system_u:system_r:worker:s0-s0:c1000,c1001 -- echo runs")
            .run();
        steps["image"].is(0, &[]);
        steps["start"].is(0, &[]);
        steps["told"].is(0, &["/mnt: ", "these files are unlabelled"]);
        steps["new"].is(0, &["runs"]);
    }
}
