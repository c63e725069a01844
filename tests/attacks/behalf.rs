//! Acts with other credentials than the process's own: overlayfs may do what it must, and no process does more by way of it.

use super::labels::ext4;
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
};

#[test]
fn denies_the_attribute_of_labels_to_io_uring_and_leaves_overlayfs_its_own() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let overlay = "mount -t overlay -o lowerdir=/srv/low,upperdir=/srv/up,workdir=/srv/work none /srv/over";
        let steps = ext4(&scratch, kernel, &["uring"])
            .step(
                "overlay",
                &format!("cd /srv; mkdir -p low/d up work over; echo x > low/x; echo y > low/d/y; {overlay}"),
            )
            .step("labels", "tollgate label set $(of tool) /srv/low/x /srv/low/d /srv/low/d/y")
            .step("ring", "echo x > /srv/file; W /uring /srv/file $(of tool)")
            .step("ring, new", "W sh -c 'echo x > /srv/mine; /uring /srv/mine $1' - $(of tool)")
            .step("ring, machine", "/uring /srv/file $(of tool)")
            .step("copy", "W sh -c 'echo more >> /srv/over/x'; tollgate label get /srv/over/x /srv/up/x /srv/low/x")
            .step("ring, copy", "W /uring /srv/over/x $(of open)")
            .step("remove", "W sh -c 'rm /srv/over/d/y; rmdir /srv/over/d'")
            .step("after", "sleep 3; umount /srv/over; tollgate label get /srv/file /srv/mine /srv/up/x")
            .run();
        for name in ["ring", "ring, new", "ring, machine", "ring, copy"] {
            steps[name].is(1, &["Operation not permitted"]);
        }
        steps["copy"].is(0, &[":tool:s0 /srv/over/x", ":tool:s0 /srv/up/x", ":tool:s0 /srv/low/x"]);
        steps["remove"].is(0, &[]);
        steps["after"].is(0, &[":open:s0 /srv/file", ":open:s0 /srv/mine", ":tool:s0 /srv/up/x"]);
    }
}
