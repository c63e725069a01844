//! A Debian system on a disk image: systemd, services, a user; with labels of its own SELinux policy.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tollgate_debian::{self as debian, Flavour, Modules};
use tollgate_host::{Cache, Packages};

use crate::program::{Scratch, word};

const RELEASE: &str = "bookworm";
/// Change this number whenever the content of the image changes.
const FOLDER: &str = "systems/2/bookworm";
const SCRIPT: &str = include_str!("script.sh");
const PACKAGES: [&str; 27] = [
    "bash-completion",
    "ca-certificates",
    "cron",
    "cron-daemon-common",
    "dbus",
    "e2fsprogs",
    "init",
    "iproute2",
    "kmod",
    "libnss-systemd",
    "libpam-systemd",
    "login",
    "logrotate",
    "mount",
    "netbase",
    "nginx-light",
    "openssh-server",
    "passwd",
    "policycoreutils",
    "procps",
    "systemd",
    "systemd-sysv",
    "systemd-timesyncd",
    "tzdata",
    "udev",
    "util-linux",
    "util-linux-extra",
];
/// The image's size; empty space takes no room on disk.
const SIZE: &str = "1500M";
/// The files of SELinux in a system.
const SELINUX: &str = "etc/selinux";

/// Packages of services of several kinds, in addition to [`PACKAGES`].
const SERVICES: [&str; 4] = ["apt", "postgresql", "prometheus-node-exporter", "python3"];
const SERVICES_FOLDER: &str = "systems/services-1/bookworm";

/// Runtimes of containers, and what is in their images, in addition to [`PACKAGES`].
const CONTAINERS: [&str; 6] = ["apt", "busybox-static", "crun", "podman", "python3", "runc"];
const CONTAINERS_FOLDER: &str = "systems/containers-1/bookworm";

/// The image, from the cache or built.
pub(crate) fn image() -> PathBuf {
    image_of(FOLDER, &PACKAGES)
}

/// The image of a system with more services.
pub(crate) fn services_image() -> PathBuf {
    image_of(SERVICES_FOLDER, &[&PACKAGES[..], &SERVICES].concat())
}

/// The image of a system with runtimes of containers.
pub(crate) fn containers_image() -> PathBuf {
    image_of(CONTAINERS_FOLDER, &[&PACKAGES[..], &CONTAINERS].concat())
}

fn image_of(folder: &str, packages: &[&str]) -> PathBuf {
    let cache = Cache::of_user().unwrap();
    let policy = debian::build(&cache, Flavour::Default, Modules::Enabled).unwrap();
    let made = cache.folder(folder, |fresh| make(&cache, &policy, packages, fresh));
    made.unwrap().join("image")
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The policy of docs/debian.md.
pub(crate) fn policy(scratch: &Scratch) -> PathBuf {
    let [labels, runtime] = ["labels", "runtime"].map(|name| repository(&format!("policies/debian/{name}.cil")));
    let policy = scratch.path("policy");
    let with = ["--with", word(&labels), "--with", word(&runtime)];
    scratch.run(&[&["policy", "debian", "default"], &with[..], &["-o", word(&policy)]].concat()).with(0);
    policy
}

fn make(cache: &Cache, policy: &Path, names: &[&str], fresh: &Path) -> Result<(), tollgate_host::Error> {
    let (root, package) = (fresh.join("root"), fresh.join("package"));
    let packages = Packages::new(cache);
    packages.install(RELEASE, names, SCRIPT, &root)?;
    packages.unpack(&[&format!("selinux-policy-default/{RELEASE}")], &package)?;
    let home = root.join(SELINUX).join("default");
    run(Command::new("cp").args(["-a"]).arg(package.join(SELINUX)).arg(root.join("etc")));
    let config = "SELINUX=enforcing\nSELINUXTYPE=default\n";
    fs::write(root.join(SELINUX).join("config"), config).unwrap();
    fs::write(home.join("seusers"), "root:unconfined_u:s0-s0:c0.c1023\n__default__:unconfined_u:s0-s0:c0.c1023\n")
        .unwrap();
    fs::create_dir_all(home.join("policy")).unwrap();
    fs::copy(policy.join(debian::IMAGE), home.join("policy").join(debian::IMAGE)).unwrap();
    let file_contexts = home.join("contexts/files/file_contexts");
    fs::copy(policy.join(debian::FILE_CONTEXTS), &file_contexts).unwrap();
    label(&root, &file_contexts);
    let mut mke2fs = Command::new("/sbin/mke2fs");
    mke2fs.args(["-q", "-t", "ext4", "-E", "root_owner=0:0,lazy_itable_init=0", "-d"]).arg(&root);
    run(mke2fs.arg(fresh.join("image")).arg(SIZE));
    for folder in [root, package] {
        fs::remove_dir_all(folder).unwrap();
    }
    Ok(())
}

/// Labels the files with the system's own setfiles, which runs here with its own libraries.
fn label(root: &Path, file_contexts: &Path) {
    let mut setfiles = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
    setfiles.arg("--library-path").arg(root.join("usr/lib/x86_64-linux-gnu")).arg(root.join("usr/sbin/setfiles"));
    run(setfiles.args(["-F", "-r"]).arg(root).arg(file_contexts).arg(root));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
