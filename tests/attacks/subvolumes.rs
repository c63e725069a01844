//! Subvolumes of btrfs use the same inode numbers: a label belongs to its own file, in each subvolume.

use super::guest;
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::Guest,
};

/// A guest with `/srv` on btrfs, subvolumes `sub`, `good` and `evil` in it, and enforcement.
fn btrfs<'s>(scratch: &'s Scratch, kernel: &'static str) -> Guest<'s> {
    let prepare = "truncate -s 256M /image; mkfs.btrfs -q /image >/dev/null; mount -o loop /image /srv && \
                   /subvolume create /srv sub && /subvolume create /srv good && \
                   /subvolume create /srv evil && tollgate enforce /policy";
    let guest = guest(scratch, kernel, &["subvolume"]).modules(&["btrfs", "loop"]);
    // On that kernel, the crypto algorithm that btrfs needs is a module.
    let guest = if kernel == "6.1" { guest } else { guest.modules(&["crc32c-cryptoapi"]) };
    guest.with("/usr/sbin/mkfs.btrfs".as_ref(), "/bin/mkfs.btrfs").step("start", prepare)
}

#[test]
fn keeps_labels_of_files_of_one_number_in_two_subvolumes_apart() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let steps = btrfs(&scratch, kernel)
            .step(
                "made",
                "W sh -c 'echo top > /srv/made; echo sub > /srv/sub/made'; stat -c %i /srv/made /srv/sub/made",
            )
            .step("secret", "echo secret > /srv/good/secret; tollgate label set $(of secret) /srv/good/secret")
            .step("taken", "W sh -c 'echo mine > /srv/evil/made'; stat -c %i /srv/good/secret /srv/evil/made")
            .step("forgotten", "sync; sleep 3; echo 3 > /proc/sys/vm/drop_caches; tollgate label get /srv/good/secret")
            .step("read", "W cat /srv/good/secret")
            .step(
                "again",
                "umount /srv; mount -o loop /image /srv; sleep 3; tollgate label get /srv/made /srv/sub/made",
            )
            .step("read again", "W cat /srv/good/secret")
            .run();
        steps["start"].is(0, &[]);
        // The test attacks only if the numbers are the same.
        for name in ["made", "taken"] {
            let numbers: Vec<&str> = steps[name].is(0, &[]).text.lines().collect();
            assert_eq!(numbers[0], numbers[1], "{kernel}");
        }
        steps["forgotten"].is(0, &[":secret:"]);
        steps["again"].is(0, &[":made:s0 /srv/made", ":made:s0 /srv/sub/made"]);
        for name in ["read", "read again"] {
            steps[name].is(1, &["Permission denied"]);
        }
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn leaves_no_label_below_its_own_in_a_snapshot_nor_in_a_subvolume_whose_directory_is_relabelled() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let get = "tollgate label get /srv/snap/made /srv/snap/plain /srv/ro/made /srv/ro/plain";
        let steps = btrfs(&scratch, kernel)
            .step("before", "echo old > /srv/sub/plain; echo old > /srv/good/plain; sync; sleep 5")
            // The snapshots are taken before the attribute is written.
            .step(
                "snapshots",
                "W sh -c 'until [ -e /go ]; do sleep 0.1; done; echo new > /srv/sub/made; \
                 /subvolume snapshot /srv/sub /srv snap; /subvolume readonly /srv/sub /srv ro' & writer=$!; sleep 5; \
                 kill -STOP $(daemon); touch /go; wait $writer; kill -CONT $(daemon); sleep 4",
            )
            .step("labels", get)
            .step("read", "O cat /srv/sub/made /srv/snap/made /srv/ro/made")
            .step("lost", "tollgate label lost")
            .step(
                "inside",
                "mkdir /srv/dir; /subvolume create /srv/dir in; sleep 2; tollgate label set $(of tool) /srv/dir",
            )
            .step("kept", "tollgate label get /srv/dir /srv/dir/in")
            .step(
                "again",
                "sync; sleep 3; umount /srv; mount -o loop /image /srv; sleep 4; tollgate label get /srv/dir/in",
            )
            .step("labels again", get)
            // No daemon knows of it before the next one starts.
            .step(
                "unattended",
                "W sh -c 'until [ -e /gone ]; do sleep 0.1; done; echo new > /srv/good/made; \
                 /subvolume snapshot /srv/good /srv late; cat /srv/late/plain' & writer=$!; sleep 5; \
                 kill -KILL $(daemon); touch /gone; wait $writer; sleep 3; tollgate enforce /policy && sleep 4",
            )
            .step("labels unattended", "tollgate label get /srv/late/made /srv/late/plain /srv/good/made")
            .run();
        for name in ["before", "snapshots", "inside", "unattended"] {
            steps[name].is(0, &[]);
        }
        for name in ["labels", "labels again"] {
            steps[name].is(0, &[":open:s0 /srv/snap/plain\n", ":open:s0 /srv/ro/plain\n"]);
            steps[name]
                .is(0, &[":unlabeled_t:s15:c0.c1023 /srv/snap/made\n", ":unlabeled_t:s15:c0.c1023 /srv/ro/made\n"]);
        }
        assert_eq!(steps["read"].text.matches("Permission denied").count(), 3, "{}", steps["read"].text);
        // Files in a snapshot are denied until it was walked.
        steps["unattended"].is(0, &["Permission denied"]);
        steps["labels unattended"].is(
            0,
            &[":unlabeled_t:s15:c0.c1023 /srv/late/made\n", ":open:s0 /srv/late/plain\n", ":made:s0 /srv/good/made\n"],
        );
        steps["lost"].is(1, &["/srv/snap/made\n", "/srv/ro/made\n"]);
        steps["kept"].is(0, &[":tool:s0 /srv/dir\n", ":open:s0 /srv/dir/in\n"]);
        steps["again"].is(0, &[":open:s0 /srv/dir/in\n"]);
    }
}
