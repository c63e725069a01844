//! A machine that crashes loses labels that were not written yet: their files are unlabelled after the next start, and never
//! get their directory's label.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use super::guest;
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::{Guest, Step},
};

/// A disk image with a file system.
pub(crate) fn disk(scratch: &Scratch, kind: &str, megabytes: u64) -> PathBuf {
    let image = scratch.path(&format!("{kind}-{megabytes}"));
    File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
    let made = Command::new(format!("/sbin/mkfs.{kind}")).arg("-q").arg(&image).status().unwrap();
    assert!(made.success(), "mkfs.{kind}");
    image
}

/// A guest with the disk at `/srv`, and enforcement.
fn started<'s>(scratch: &'s Scratch, kernel: &'static str, image: &Path) -> Guest<'s> {
    let guest = guest(scratch, kernel, &["settled"]).volume(image);
    guest.step(
        "start",
        "mount /dev/vda /srv && mkdir -p /srv/old /srv/new /srv/both/new /srv/from && tollgate enforce /policy",
    )
}

#[track_caller]
fn is_labelled(step: &Step, labels: &[(&str, &str)]) {
    for (path, label) in labels {
        step.is(0, &[&format!(":{label}:s0 {path}\n")]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn leaves_unlabelled_what_a_crash_took_the_label_of_and_nothing_else() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let image = disk(&scratch, "ext4", 64);
        let written = "W sh -c 'echo > /srv/old/made; echo > /srv/old/log; echo > /srv/log; echo > /srv/old/open; \
                       echo > /srv/from/open; echo > /srv/both/one; echo > /srv/both/new/two'; \
                       mkdir -p /srv/deep/later; echo > /srv/deep/later/one; /settled /srv; echo > /srv/deep/later/two; /settled /srv";
        // A stopped daemon writes nothing: the crash comes between the hook's entry and the attribute.
        let noted = "W sh -c 'until [ -e /go ]; do sleep 0.1; done; echo > /srv/new/made; echo >> /srv/log; \
                     echo >> /srv/old/log; echo > /srv/deep/three; echo > /srv/deep/later/three; echo > /srv/both/made; echo > /srv/both/new/made; \
                     mv /srv/from/open /srv/both/new/open; ln /srv/old/made /srv/new/linked' &\n\
                     sleep 4; kill -STOP $(daemon); touch /go; wait $!; sync";
        started(&scratch, kernel, &image).step("written", written).step("noted", noted).run_until_cut();
        let get = "tollgate label get /srv /srv/old /srv/old/made /srv/old/log /srv/log /srv/new /srv/new/made";
        // Files were created in all of these directories, whose labels are known all the same: one was made under
        // enforcement, and then used a second time.
        let directories = "tollgate label get /srv/both /srv/both/new /srv/both/one /srv/both/new/two /srv/new/linked \
                           /srv/deep/later /srv/deep/later/one";
        let steps = started(&scratch, kernel, &image)
            .step("labels", get)
            .step("directories", directories)
            .step("doubtful", "tollgate label get /srv/both/made /srv/both/new/made /srv/both/new/open")
            .step("read", "O cat /srv/new/made")
            .step("lost", "tollgate label lost")
            .step("status", "tollgate status")
            .step("restored", "tollgate label set $(of made) /srv/new/made; tollgate label lost --json")
            .step(
                "ended",
                "sleep 3; kill $(daemon); sleep 2; umount /srv; mount /dev/vda /srv; tollgate enforce /policy; sleep 3",
            )
            .step("again", get)
            .step("listed again", "tollgate label lost --json")
            .run();
        steps["start"].is(0, &[]);
        is_labelled(
            &steps["labels"],
            &[("/srv", "open"), ("/srv/old", "open"), ("/srv/old/made", "made"), ("/srv/old/log", "open")],
        );
        is_labelled(&steps["labels"], &[("/srv/log", "open"), ("/srv/new", "open")]);
        steps["labels"].is(0, &[":unlabeled_t:s15:c0.c1023 /srv/new/made\n"]);
        is_labelled(
            &steps["directories"],
            &[
                ("/srv/both", "open"),
                ("/srv/both/new", "open"),
                ("/srv/both/one", "open"),
                ("/srv/both/new/two", "open"),
                ("/srv/deep/later", "open"),
                ("/srv/deep/later/one", "open"),
            ],
        );
        is_labelled(&steps["directories"], &[("/srv/new/linked", "made")]);
        assert_eq!(steps["doubtful"].is(0, &[]).text.matches(":unlabeled_t:").count(), 3, "{}", steps["doubtful"].text);
        steps["read"].is(1, &["Permission denied"]);
        steps["lost"].is(1, &["/srv/new/made\n", "tollgate label restore"]);
        assert!(!steps["lost"].text.contains("/log"), "{}", steps["lost"].text);
        steps["status"].is(0, &["a label lost in a crash"]);
        assert!(!steps["restored"].text.contains("/srv/new/made\""), "{}", steps["restored"].text);
        // The checkpoint has moved on, so nothing else is doubtful.
        assert_eq!(steps["listed again"].text.matches("\"inode\"").count(), 5, "{}", steps["listed again"].text);
        is_labelled(&steps["again"], &[("/srv/new/made", "made"), ("/srv/old/log", "open"), ("/srv/log", "open")]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn doubts_nothing_after_an_orderly_end() {
    let scratch = Scratch::new();
    let image = disk(&scratch, "ext4", 64);
    // However long the daemon takes to end.
    let made = "W sh -c 'echo > /srv/new/made; echo > /srv/open'; daemon=$(daemon); kill $daemon; \
                while [ -n \"$(tr -d '\\0' < /proc/$daemon/cmdline 2>&-)\" ]; do sleep 0.1; done; sync";
    started(&scratch, "6.1", &image).step("made", made).run_until_cut();
    let other = disk(&scratch, "ext4", 32);
    // What is mounted after the first checkpoint gets checkpoints, too.
    let later = "echo > /srv/first; /settled /srv && mkdir /later && mount /dev/vdb /later && echo > /later/file && \
                 /settled /later";
    let steps = started(&scratch, "6.1", &image)
        .volume(&other)
        .step("labels", "tollgate label get /srv/new/made /srv/open")
        .step("lost", "tollgate label lost")
        .step("later", later)
        .run();
    is_labelled(&steps["labels"], &[("/srv/new/made", "made"), ("/srv/open", "open")]);
    steps["lost"].is(0, &[]);
    steps["later"].is(0, &[]);
}

/// The type that `label get` prints for the file with this text.
fn label_of<'t>(step: &'t Step, text: &str) -> &'t str {
    let lines: Vec<&str> = step.text.lines().collect();
    let found = lines.chunks(2).find(|pair| pair[0] == text).expect(&step.text);
    found[1].split(':').nth(2).unwrap()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_files_of_xfs_to_change_places_until_their_labels_are_written() {
    const LOOK: &str = "for file in /srv/open/file /srv/tool/file; do cat $file; tollgate label get $file; done";
    const EXCHANGE: &str = "W /exchange /srv/open/file /srv/tool/file";
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let image = disk(&scratch, "xfs", 320);
        let started = || {
            let guest = guest(&scratch, kernel, &["exchange", "settled"]).modules(&["xfs"]).volume(&image);
            guest.step("start", "mount /dev/vda /srv && mkdir -p /srv/open /srv/tool && tollgate enforce /policy")
        };
        // Both files have the labels of their directories, and so no attributes.
        let files = "tollgate label set $(of tool) /srv/tool; for name in open tool; do echo $name > /srv/$name/file; done; /settled /srv";
        let cut = "W sh -c 'until [ -e /go ]; do sleep 0.1; done; /exchange /srv/open/file /srv/tool/file' &\n\
                   sleep 4; kill -STOP $(daemon); touch /go; wait $!; sync";
        started().step("files", files).step("exchanged", cut).run_until_cut();
        let steps = started()
            .step("after", LOOK)
            .step("at once", EXCHANGE)
            .step("later", &format!("sleep 3; {EXCHANGE}"))
            .step("exchanged", LOOK)
            .run();
        steps["start"].is(0, &[]);
        steps["at once"].is(1, &["Device or resource busy"]);
        steps["later"].is(0, &[]);
        for (step, text) in ["after", "exchanged"].into_iter().flat_map(|step| [(step, "open"), (step, "tool")]) {
            assert_eq!(label_of(&steps[step], text), text, "{kernel}, {step}");
        }
        assert!(steps["exchanged"].text.starts_with("tool\n"), "{}", steps["exchanged"].text);
    }
}
