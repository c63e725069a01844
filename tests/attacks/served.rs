//! File systems that the attacker serves, and that need not answer: the daemon answers all the same, and the next one starts.

use super::guest;
use crate::program::{Scratch, guests::KERNELS};

/// A shell function: runs a command with a time limit, and prints how it ended.
const NAMES: &str = r#"
limited() { begun=$(date +%s); timeout 240 "$@"; echo "exit $? after $(($(date +%s) - begun))"; }
mount_all() { mkdir -p /m /o /up; mount -t tmpfs t /up; mkdir /up/u /up/w; W /serve /m /mute & until grep -q ' /m fuse ' /proc/mounts; do sleep 1; done
  W mount -t overlay -o lowerdir=/m,upperdir=/up/u,workdir=/up/w o /o; }
"#;
const ASKED: [&str; 4] = ["get", "set", "get below overlayfs", "set below overlayfs"];

#[test]
#[ignore = "takes long: make test-rest"]
fn answers_while_a_file_system_that_the_attacker_serves_does_not() {
    for kernel in KERNELS {
        let scratch = Scratch::new();
        let guest = guest(&scratch, kernel, &["serve"]).names(NAMES).modules(&["fuse", "overlay"]);
        let mut guest = guest
            .step(
                "start",
                "echo SECRET > /srv/secret; tollgate enforce /policy && tollgate label set $(of secret) /srv/secret",
            )
            .step("serve", "mount_all; W ls /m/file /o/file && tollgate label get /m/file /o/file")
            .step("hold", "W sh -c 'exec 3</m/file 4</o/file; cd /m; exec sleep 1000' & sleep 1; touch /mute");
        let acts = ["get /m/file", "set $(of tool) /m/file", "get /o/file", "set $(of tool) /o/file"];
        for (name, act) in ASKED.iter().zip(acts) {
            let line = format!("limited tollgate label {act}; limited tollgate status");
            guest = guest.step(name, &line);
        }
        // This file system keeps no attributes: `stop` loses the labels.
        let again = "tollgate stop --force; limited tollgate enforce /policy; limited tollgate status; \
                     tollgate label set $(of secret) /srv/secret";
        let steps = guest
            .step("killed", "kill -9 $(daemon); sleep 1; limited tollgate enforce /policy; limited tollgate status")
            .step("started again", again)
            .step("denied", "W cat /srv/secret")
            .run();
        steps["serve"].is(0, &[" /m/file", " /o/file"]);
        for name in ASKED.into_iter().chain(["killed", "started again"]) {
            steps[name].is(0, &["mode         enforcing"]);
            assert!(!steps[name].text.contains("exit 143") && !steps[name].text.contains("exit 124"), "{name}");
        }
        steps["set"].is(0, &["need not answer"]);
        steps["denied"].is(1, &["Permission denied"]);
    }
}
