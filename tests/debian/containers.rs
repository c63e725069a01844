//! Containers of podman with crun, and of runc, in a Debian system: what one does to another and to the host, without Tollgate
//! and with it.

use super::{
    guest::{Guest, copy},
    installed::said,
    packages,
    system::containers_image,
};
use crate::program::Scratch;

const ACTS: &str = include_str!("containers/acts.py");
const BEGIN: &str = include_str!("containers/begin.sh");
const RUNC: &str = include_str!("containers/runc.sh");
const PODMAN: &str = include_str!("containers/podman.sh");
const MANY: &str = include_str!("containers/many.sh");

/// Acts of one container on another, and on what of the host is mounted into it.
const ON_OTHERS: [&str; 12] = [
    "read-secret",
    "read-shadow",
    "write-new",
    "kill",
    "ptrace",
    "read-environ",
    "connect",
    "abstract",
    "send",
    "shm",
    "sem",
    "msg",
];

fn run(script: &str) -> String {
    let scratch = Scratch::new();
    let disk = copy(&scratch, &containers_image());
    let package = packages::make(&scratch, "0.1.0", "package").join("tollgate_0.1.0_amd64.deb");
    let guest = Guest::new(&scratch, "6.1", "bpf")
        .option(&["--module", "overlay"])
        .with(&package, "/root/tollgate.deb")
        .with(&scratch.file("acts.py", ACTS), "/root/acts.py");
    let output = guest.run(&disk, &["/bin/bash", "-c", &format!("{BEGIN}{script}")]);
    println!("{output}");
    output
}

/// Each act succeeds without Tollgate, and is denied with it.
#[track_caller]
fn denied_since(output: &str, who: &str, acts: &[&str]) {
    for act in acts {
        said(output, &[&format!("without {who} {act}: done")]);
        let with = format!("with {who} {act}: ");
        let line = output.lines().find_map(|line| line.strip_prefix(&with));
        assert!(
            matches!(line, Some("Permission denied" | "Operation not permitted")),
            "{who} {act}: {line:?}\n{output}"
        );
    }
}

#[test]
fn denies_a_container_of_runc_another_ones_objects_and_the_hosts() {
    let output = run(RUNC);
    denied_since(&output, "a", &ON_OTHERS);
    denied_since(&output, "privileged", &["read-shadow", "write-cron", "mount", "move", "connect", "run"]);
    said(
        &output,
        &["own: done", "volume: done", "exec: the container's", "privileged is container_t", "apart: 2 levels"],
    );
    said(&output, &["dead: refused", "dead: nothing started", "back: kept", "left: 0"]);
}

#[test]
fn denies_a_container_of_podman_another_ones_objects_and_the_hosts() {
    let output = run(PODMAN);
    denied_since(&output, "a", &ON_OTHERS);
    said(&output, &["own: done", "hosts: read", "exec: the container's", "again: done", "left: 0"]);
    said(&output, &["dead: refused"]);
}

#[test]
fn gives_fifty_containers_that_start_at_once_labels_of_their_own_and_takes_all_back() {
    let output = run(MANY);
    said(&output, &["running: 50", "contexts: 50", "confined: 50", "left: 0", "again: 50", "left again: 0"]);
}
