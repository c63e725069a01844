//! A file keeps its label, whatever its creator does to the file, and whatever happens to its file system.

use std::process::Command;

use super::{NAMES, program};
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::{Guest, policy, source},
    word,
};

/// Drops what is in memory, and waits until the daemon has written and noted labels.
const FORGET: &str = "sync; sleep 3; echo 3 > /proc/sys/vm/drop_caches;";

/// A guest with an ext4 of small blocks at `/srv`, an old one at `/old`, and enforcement.
pub(super) fn ext4<'s>(scratch: &'s Scratch, kernel: &'static str, programs: &[&str]) -> Guest<'s> {
    let parts = ["policy.cil", "labels.cil"].map(|name| source(&format!("tests/attacks/{name}")));
    let guest = Guest::under(scratch, kernel, &policy(scratch, "attacks", &parts)).names(NAMES);
    let guest = guest.modules(&["loop", "overlay"]);
    let guest = programs.iter().fold(guest, |guest, name| guest.with(&program(scratch, name), &format!("/{name}")));
    let images = [("image", &["-b", "1024"][..]), ("old.image", &["-b", "1024", "-O", "^metadata_csum"])];
    let guest = images.into_iter().fold(guest, |guest, (name, options)| {
        let image = scratch.file(name, "");
        std::fs::File::options().write(true).open(&image).unwrap().set_len(16 << 20).unwrap();
        let made = Command::new("/sbin/mke2fs").args(["-q", "-t", "ext4", "-F"]).args(options).arg(&image).status();
        assert!(made.unwrap().success(), "{}", word(&image));
        guest.with(&image, &format!("/{name}"))
    });
    let start = "mkdir -p /old; mount -o loop /image /srv; mount -o loop /old.image /old; chmod 777 /srv /old; \
                 echo SECRET > /srv/secret; echo SECRET > /old/secret; echo tool > /srv/tool; tollgate enforce /policy; \
                 tollgate label set $(of secret) /old/secret";
    guest.step("start", start)
}

const FILLED: usize = 3;

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_the_label_of_a_file_whose_attributes_leave_it_no_room() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let each = |act: &str| format!("for i in $(seq {FILLED}); do {act}; done");
        let steps = ext4(&scratch, kernel, &["eafull"])
            .step("make", &each("mkdir -p /srv/$i; W /eafull /srv/$i/made 1024 TEXT"))
            .step("small", "mkdir /srv/s; W sh -c 'echo x > /srv/s/made'")
            // Another thread writes it, and the daemon reports it later.
            .step(
                "told",
                "sleep 3; for i in $(seq 60); do grep -q 'No space' /var/log/tollgate/daemon.log && break; sleep 1; done; \
                 tollgate status | grep '^failures'; cat /var/log/tollgate/daemon.log",
            )
            .step("noted", "grep -c '^+' /var/lib/tollgate/unwritten; stat -c %a /var/lib/tollgate")
            // With another device number, so that nothing is recognised by it.
            .step(
                "mounted",
                "umount /srv; losetup /dev/loop0 /policy; mount -o loop /image /srv; sleep 3; cat /proc/mounts",
            )
            .step("read", &each("O cat /srv/$i/made"))
            .step("started", "tollgate stop; umount /srv; mount -o loop /image /srv; tollgate enforce /policy")
            .step("labels", &each("tollgate label get /srv/$i/made"))
            .step("small again", "tollgate label get /srv/s/made")
            .step("read again", &each("O cat /srv/$i/made"))
            .run();
        // The label was set immediately after the file was created.
        assert_eq!(steps["make"].is(0, &[]).text, "", "{kernel}");
        steps["told"].is(0, &["a label not written to its file", "No space left on device", "are noted"]);
        assert_eq!(steps["told"].text.matches("No space").count(), 1, "{}", steps["told"].text);
        steps["noted"].is(0, &[&FILLED.to_string(), "700"]);
        steps["mounted"].is(0, &["/dev/loop2 /srv"]);
        steps["labels"].is(0, &[]);
        assert_eq!(steps["labels"].text.matches(":made:").count(), FILLED, "{}", steps["labels"].text);
        steps["small again"].is(0, &[":made:"]);
        for name in ["read", "read again"] {
            assert_eq!(steps[name].text.matches("Permission denied").count(), FILLED, "{}", steps[name].text);
        }
    }
}

#[test]
fn keeps_labels_over_an_unmount_and_the_daemons_end_within_the_second() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let steps = ext4(&scratch, kernel, &[])
            .step("unmounted", "W sh -c 'mkdir /srv/a; echo x > /srv/a/made; umount /srv'")
            .step("mounted", "mount -o loop /image /srv; sleep 3; tollgate label get /srv/a/made")
            .step(
                "stale",
                "W sh -c 'mkdir /srv/b; echo x > /srv/b/made; umount /srv'; sleep 3; losetup /dev/loop0 /policy",
            )
            .step("elsewhere", "mount -o loop /image /srv; sleep 3; tollgate label get /srv/b/made")
            .step("ended", "W sh -c 'mkdir /srv/c; echo x > /srv/c/made'; kill $(daemon); sleep 3; umount /srv")
            .step(
                "begun",
                "mount -o loop /image /srv; tollgate enforce /policy; sleep 3; tollgate label get /srv/c/made",
            )
            .step("read", "for i in a b c; do O cat /srv/$i/made; done")
            .step("failures", "tollgate status | grep '^failures'")
            .run();
        for name in ["mounted", "elsewhere", "begun"] {
            steps[name].is(0, &[":made:s0"]);
        }
        assert_eq!(steps["read"].text.matches("Permission denied").count(), 3, "{}", steps["read"].text);
        steps["failures"].is(0, &["none"]);
    }
}

/// Ways to give a file another generation, with the file. Setting it needs a file system whose checksums do not include it.
const GENERATIONS: [(&str, &str); 5] = [
    ("swap", "/srv/secret"),
    ("set", "/old/secret"),
    ("set32", "/old/secret"),
    ("version", "/old/secret"),
    ("version32", "/old/secret"),
];

/// All of them, as a shell function.
fn renumbered(whose: &str) -> String {
    GENERATIONS.map(|(way, file)| format!("{whose}/renumber {way} {file}")).join("; ")
}

#[test]
fn denies_another_generation_to_who_may_not_take_the_label_away() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let labels = "tollgate label get /srv/secret /old/secret; W cat /srv/secret /old/secret";
        let steps = ext4(&scratch, kernel, &["renumber"])
            .step("denied", &format!("{}; {labels}", renumbered("W ")))
            // A process that may do it removes no label either.
            .step("by the machine", &renumbered(""))
            .step("labels", &format!("{FORGET} {labels}"))
            .step(
                "mounted",
                "umount /srv; umount /old; mount -o loop /image /srv; mount -o loop /old.image /old; sleep 3",
            )
            .step("labels again", labels)
            .run();
        // The ioctl is denied, not the opening before it.
        for (way, _) in GENERATIONS {
            steps["denied"].is(1, &[&format!("{way}: Permission denied")]);
        }
        let done = steps["by the machine"].is(0, &[]).text.matches(": done").count();
        assert_eq!(done, GENERATIONS.len() + 1, "{}", steps["by the machine"].text);
        for name in ["denied", "labels", "labels again"] {
            steps[name].is(1, &[":secret:s0 /srv/secret", ":secret:s0 /old/secret"]);
            assert!(!steps[name].text.contains("SECRET"), "{}", steps[name].text);
        }
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn answers_while_a_file_system_is_frozen() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let limited =
            |order: &str| format!("begun=$(date +%s); timeout 60 {order}; echo exit $? after $(($(date +%s) - begun))");
        let steps = ext4(&scratch, kernel, &["freeze"])
            .step("freeze", "/freeze freeze /srv")
            .step("hangs", &limited("tollgate label set $(of tool) /srv/tool"))
            .step("again", &limited("tollgate label set $(of tool) /srv/tool"))
            .step("status", &limited("tollgate status"))
            .step("mode", &limited("tollgate mode enforcing"))
            .step("other", &limited("tollgate label set $(of tool) /old/secret"))
            .step("in force", "tollgate label get /srv/tool")
            .step("killed", "kill -9 $(daemon); sleep 1; tollgate enforce /policy; tollgate status | grep ^mode")
            .step("thaw", "/freeze thaw /srv; sleep 3; tollgate label get /srv/tool")
            .step("afterwards", "tollgate label set $(of tool) /srv/tool; tollgate label get /srv/tool")
            .run();
        steps["freeze"].is(0, &[]);
        for name in ["hangs", "again"] {
            steps[name].is(0, &["does not answer", "exit 2"]);
        }
        for name in ["status", "mode", "other"] {
            steps[name].is(0, &["exit 0"]);
        }
        for name in ["in force", "thaw"] {
            steps[name].is(0, &[":open:"]);
        }
        steps["killed"].is(0, &["enforcing"]);
        steps["afterwards"].is(0, &[":tool:"]);
    }
}
