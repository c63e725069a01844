//! A file system that is mounted under enforcement, before the daemon has looked at it: what is new works at once, and nobody
//! gets at what has a label there, by whatever image.

use std::{fs, path::PathBuf, process::Command};

use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    steps::{Guest, policy, source},
    word,
};

/// The shell's names: `M COMMAND...` as who mounts; `blind LINES` as him, while the daemon does nothing, and then lets it work.
const NAMES: &str = "mkdir -p /srv
M() { as mounter \"$@\"; }
blind() {
    rm -f /go
    M sh -c \"until [ -e /go ]; do sleep 0.1; done; $1\" & waiting=$!
    sleep 5; kill -STOP $(daemon); touch /go; wait $waiting; told=$?; kill -CONT $(daemon); sleep 4
    return $told
}
";
/// Of the file system that was here before.
const KNOWN: &str = "11111111-2222-4333-8444-555555555555";

/// An image of ext4, with files in it that say what they are, made with these options.
fn image(scratch: &Scratch, name: &str, options: &[&str]) -> PathBuf {
    let (image, files) = (scratch.file(name, ""), scratch.path(&format!("{name}.files")));
    fs::create_dir_all(files.join("dir")).unwrap();
    for file in ["plain", "labelled", "dir/inside"] {
        fs::write(files.join(file), "CONTENT\n").unwrap();
    }
    fs::File::options().write(true).open(&image).unwrap().set_len(16 << 20).unwrap();
    let mut made = Command::new("/sbin/mke2fs");
    made.args(["-q", "-t", "ext4", "-F", "-d", word(&files)]).args(options).arg(&image);
    assert!(made.status().unwrap().success(), "{}", word(&image));
    image
}

/// Gives files of an image the attribute of labels, as only who writes the image itself can.
fn label(image: &PathBuf, files: &[&str]) {
    for file in files {
        let order = format!("ea_set {file} security.bpf.tollgate system_u:object_r:secret:s0");
        let done = Command::new("/sbin/debugfs").args(["-w", "-R", &order]).arg(image).output().unwrap();
        assert!(done.status.success() && !String::from_utf8_lossy(&done.stderr).contains("ea_set:"), "{done:?}");
    }
}

/// A guest with these images in `/`, and enforcement.
fn guest<'s>(scratch: &'s Scratch, kernel: &'static str, images: &[(&str, PathBuf)]) -> Guest<'s> {
    let parts = ["policy.cil", "mounted.cil"].map(|name| source(&format!("tests/attacks/{name}")));
    let guest = Guest::under(scratch, kernel, &policy(scratch, "attacks", &parts)).names(NAMES);
    let guest = images.iter().fold(guest, |guest, (name, image)| guest.with(image, &format!("/{name}")));
    // ext4 is there, as where it has the root.
    let guest = guest.with(&image(scratch, "first", &[]), "/first.image").modules(&["loop"]);
    guest.step("start", "mkdir /first; mount -o loop /first.image /first; tollgate enforce /policy")
}

#[test]
fn allows_at_once_what_is_new_and_keeps_the_labels_that_it_gets() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let images = ["fresh", "again"].map(|name| (name, image(&scratch, name, &[])));
        let steps = guest(&scratch, kernel, &images)
            .step(
                "used",
                "blind 'mount -o loop /fresh /srv && mkdir /srv/d && echo x > /srv/d/secret && cat /srv/plain /srv/d/secret && \
                 echo x > /srv/made && cat /srv/made'",
            )
            .step("labels", "tollgate label get /srv /srv/plain /srv/d /srv/d/secret /srv/made")
            .step("forgotten", "sync; sleep 3; echo 3 > /proc/sys/vm/drop_caches; tollgate label get /srv/d/secret /srv/made")
            // Another file system gets the device, and the numbers of its files.
            .step("unmounted", "umount /srv; losetup -a")
            .step("used again", "blind 'mount -o loop /again /srv && echo x > /srv/new && cat /srv/plain /srv/new'")
            .step("watched", "umount /srv; mount -o loop /fresh /srv; sleep 4; tollgate label get /srv/d/secret /srv/made")
            .step("failures", "tollgate status | grep '^failures'")
            .run();
        steps["start"].is(0, &[]);
        // What it has made secret by a transition it may not read.
        steps["used"].is(1, &["CONTENT\nx\n", "/srv/made': Permission denied"]);
        steps["labels"].is(
            0,
            &[
                ":open:s0 /srv\n",
                ":open:s0 /srv/plain\n",
                ":file_t:s0 /srv/d\n",
                // Its maker could not have given the label that file_contexts say.
                ":file_t:s0 /srv/d/secret\n",
                ":made:s0 /srv/made\n",
            ],
        );
        for name in ["forgotten", "watched"] {
            steps[name].is(0, &[":file_t:s0 /srv/d/secret\n", ":made:s0 /srv/made\n"]);
        }
        steps["used again"].is(0, &["CONTENT\nx\n"]);
        steps["failures"].is(0, &["none"]);
    }
}

#[test]
fn denies_a_file_system_that_was_here_before_until_it_is_walked() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let images = [("known", &["-U", KNOWN][..]), ("copied", &["-U", KNOWN]), ("short", &[])];
        let images = images.map(|(name, options)| (name, image(&scratch, name, options)));
        let steps = guest(&scratch, kernel, &images)
            .step("known", "mount -o loop /known /srv; sleep 4; tollgate label set $(of secret) /srv/labelled; umount /srv")
            .step("mounted", "blind 'mount -o loop /known /srv && cat /srv/plain; cat /srv/labelled; echo x > /srv/new'")
            .step("walked", "M cat /srv/plain; M cat /srv/labelled; umount /srv")
            // Another has its UUID.
            .step("copied", "blind 'mount -o loop /copied /srv && cat /srv/plain'")
            .step("copy walked", "M cat /srv/plain; umount /srv")
            // No attribute says yet what was made.
            .step(
                "unwritten",
                "blind 'mount -o loop /short /srv && echo SECRET > /srv/made && umount /srv && mount -o loop /short /srv && \
                 cat /srv/made /srv/plain'",
            )
            .step("written", "M cat /srv/made /srv/plain; tollgate label get /srv/made")
            .run();
        steps["start"].is(0, &[]);
        for (name, denied) in [("mounted", 3), ("copied", 1), ("unwritten", 2)] {
            let text = &steps[name].text;
            assert_eq!(text.matches("ermission denied").count(), denied, "{name}: {text}");
            assert!(!text.contains("CONTENT") && !text.contains("SECRET"), "{name}: {text}");
        }
        steps["walked"].is(0, &["CONTENT", "/srv/labelled': Permission denied"]);
        steps["copy walked"].is(0, &["CONTENT"]);
        steps["written"].is(0, &["CONTENT", ":made:s0"]);
        assert!(!steps["written"].text.contains("SECRET"), "{}", steps["written"].text);
    }
}

#[test]
fn denies_what_has_an_attribute_in_an_image_that_nobody_knows() {
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let images = ["files", "rooted"].map(|name| (name, image(&scratch, name, &[])));
        label(&images[0].1, &["labelled", "dir"]);
        label(&images[1].1, &["/"]);
        let steps = guest(&scratch, kernel, &images)
            .step(
                "mounted",
                "blind 'mount -o loop /files /srv && cat /srv/plain; cat /srv/labelled; cat /srv/dir/inside; ls /srv/dir; \
                 echo x > /srv/dir/new'",
            )
            .step("walked", "M cat /srv/plain; M cat /srv/labelled; tollgate label get /srv/labelled /srv/dir; umount /srv")
            .step("root", "blind 'mount -o loop /rooted /srv && cat /srv/plain; echo x > /srv/new'")
            .run();
        steps["start"].is(0, &[]);
        for (name, denied) in [("mounted", 4), ("root", 2)] {
            let text = &steps[name].text;
            assert_eq!(text.matches("ermission denied").count(), denied, "{name}: {text}");
        }
        assert_eq!(steps["mounted"].text.matches("CONTENT").count(), 1, "{}", steps["mounted"].text);
        steps["walked"].is(0, &["CONTENT", ":secret:s0 /srv/labelled", ":secret:s0 /srv/dir"]);
        assert_eq!(steps["walked"].text.matches("CONTENT").count(), 1, "{}", steps["walked"].text);
        assert!(!steps["root"].text.contains("CONTENT"), "{}", steps["root"].text);
    }
}
