//! The guard beside a policy: domains whose processes it checks, because the policy says so.
//!
//! Guests need QEMU and kernels: without them this test fails, and says so.

use crate::{
    guard_calls::programs,
    program::{
        Scratch,
        guests::{KERNELS, kernels},
        steps::{Guest, policy, source},
    },
};

/// Only `visitor` is guarded. A process of `keeper` enters it by a file, and one of `visitor` leaves it by another one.
const GUARDED: &str = "\
(typeattribute guarded) (expandtypeattribute guarded false)
(typeattributeset guarded visitor)
(type enters) (type leaves) (typeattributeset file_type (enters leaves))
(typetransition keeper enters process visitor) (allow keeper visitor (process (transition)))
(typetransition visitor leaves process keeper) (allow visitor keeper (process (transition)))
";
/// `try DOMAIN PROGRAM`: user 1000, without any privilege, executes the program there, which executes a shell.
const TRY: &str = "try() { rm -f /marks/*; export PROGRAM=$2; as $1 acts user shell; echo \"$1 $2 marks: $(ls /marks)\"; }\n\
                   crash() { kill -9 $(daemon); sleep 0.5; }\n";
const SET_UP: &str = "for name in plain left reader; do cp /bin/acts /bin/$name; echo $name >>/bin/$name; done
    printf '#!/bin/reader\\n' >/bin/entry; chmod 755 /bin/acts /bin/plain /bin/left /bin/reader /bin/entry
    mkdir -m 777 /marks; mkfifo /order; tollgate guard add /bin/plain /bin/left /bin/entry --mode enforce";
/// The guard is there first.
const START: &str = "tollgate enforce --guard --log /log; crash; tollgate enforce /policy --log /log &&
    tollgate label set $(of enters) /bin/entry && tollgate label set $(of leaves) /bin/left && tollgate status";
const TRIES: &str = "try visitor /bin/plain; try keeper /bin/plain; try keeper /bin/entry; try visitor /bin/left";
/// A process is in the domain before the guard is there.
const RUNNING: &str =
    "tollgate guard stop; try visitor /bin/plain; try keeper /bin/entry; export PROGRAM=/bin/plain; as visitor acts user wait /order >/told &
    sleep 1; crash; tollgate enforce /policy --guard --log /log; echo shell >/order; wait $!; sed 's/^/told /' /told";

#[test]
#[ignore = "takes long: make test-rest"]
fn checks_processes_without_privilege_in_domains_that_the_policy_marks() {
    let scratch = Scratch::new();
    let [acts, _] = programs(&scratch);
    let more = scratch.file("guarded.cil", GUARDED);
    let marked = policy(&scratch, "marked", &[source("tests/enforcer/policy.cil"), more]);
    let bare = policy(&scratch, "bare", &[source("tests/enforcer/policy.cil")]);
    for kernel in kernels(KERNELS) {
        let guest = Guest::under(&scratch, kernel, &marked).with(&bare, "/bare").with(&acts, "/bin/acts").names(TRY);
        let steps = guest
            .step("set up", SET_UP)
            .step("start", START)
            .step("tries", TRIES)
            .step("log", "cat /log/daemon.log")
            .step("running", RUNNING)
            .step(
                "reloaded",
                "tollgate reload /bare; try visitor /bin/plain; tollgate reload /policy; try visitor /bin/plain",
            )
            .step("deaf", "rm /sys/fs/bpf/tollgate/maps/to_guard; tollgate status")
            .run();
        let both = ["mode         enforcing", "guard        in force", "3, 3 of them enforced", "its programs run\n"];
        steps["start"].is(0, &both);
        let [denied, granted] =
            ["shell: Operation not permitted\nvisitor /bin/plain marks: \n", "visitor /bin/plain marks: shell\n"];
        steps["tries"].is(0, &[denied, "keeper /bin/plain marks: shell\n", "visitor /bin/left marks: shell\n"]);
        // By a script, which is the program.
        let entered = "shell: Operation not permitted\nkeeper /bin/entry marks: \n";
        steps["tries"].is(0, &[entered]);
        let rule = "GUARD denied: no rule `allow /bin/plain exec /bin/busybox` (process";
        steps["log"].is(0, &[rule, "plain, user 1000, effective user 1000)", "`allow /bin/entry exec /bin/busybox`"]);
        let told = "told shell: Operation not permitted\n";
        steps["running"].is(0, &[granted, "keeper /bin/entry marks: shell\n", told]);
        steps["reloaded"].is(0, &[granted, denied]);
        steps["deaf"].is(1, &["canary     the guard does not see who enters domains with the attribute `guarded`"]);
    }
}
