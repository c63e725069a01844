//! A Debian system on a disk image: systemd, services, a person; labelled as its SELinux policy says, which is in it.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tollgate_policy::debian::{self, Flavour, Modules};
use tollgate_vm::{Cache, Packages};

const RELEASE: &str = "bookworm";
/// Whoever changes what is in the image gives it a new number.
const FOLDER: &str = "systems/1/bookworm";
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
/// The image's size, in MiB; what is empty takes no room.
const SIZE: &str = "1500M";
/// The files of SELinux in a system.
const SELINUX: &str = "etc/selinux";

/// The image, and beside it its policy.
pub(crate) struct System {
    pub(crate) image: PathBuf,
    /// The policy for Tollgate.
    pub(crate) policy: PathBuf,
}

/// The system, out of the cache or made.
pub(crate) fn system() -> System {
    let cache = Cache::of_user().unwrap();
    let policy = debian::build(&cache, Flavour::Default, Modules::Enabled).unwrap();
    let made = cache.folder(FOLDER, |fresh| make(&cache, &policy, fresh));
    let folder = made.unwrap();
    System { image: folder.join("image"), policy: folder.join("policy") }
}

fn make(cache: &Cache, policy: &Path, fresh: &Path) -> Result<(), tollgate_vm::Error> {
    let (root, package) = (fresh.join("root"), fresh.join("package"));
    let packages = Packages::new(cache);
    packages.install(RELEASE, &PACKAGES, SCRIPT, &root)?;
    packages.unpack(&[&format!("selinux-policy-default/{RELEASE}")], &package)?;
    let home = root.join(SELINUX).join("default");
    run(Command::new("cp").args(["-a"]).arg(package.join(SELINUX)).arg(root.join("etc")));
    let config = "SELINUX=enforcing\nSELINUXTYPE=default\n";
    fs::write(root.join(SELINUX).join("config"), config).unwrap();
    fs::write(home.join("seusers"), "root:unconfined_u:s0-s0:c0.c1023\n__default__:unconfined_u:s0-s0:c0.c1023\n")
        .unwrap();
    fs::create_dir_all(home.join("policy")).unwrap();
    fs::copy(policy.join(debian::IMAGE), home.join("policy").join(debian::IMAGE)).unwrap();
    let files = home.join("contexts/files");
    let labels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/debian/labels.cil");
    let with = debian::compile(cache, Flavour::Default, Modules::Enabled, &[labels], &package);
    let (mut built, _) = with.unwrap();
    let subs = fs::read_to_string(files.join("file_contexts.subs_dist")).unwrap();
    let text = fs::read_to_string(policy.join(debian::FILE_CONTEXTS)).unwrap();
    fs::write(files.join("file_contexts"), with_homes(&text)).unwrap();
    built.file_contexts = with_aliases(&with_homes(&text), &subs);
    built.write(&fresh.join("policy")).unwrap();
    label(&root, &files.join("file_contexts"));
    let mut mke2fs = Command::new("/sbin/mke2fs");
    mke2fs.args(["-q", "-t", "ext4", "-E", "root_owner=0:0,lazy_itable_init=0", "-d"]).arg(&root);
    run(mke2fs.arg(fresh.join("image")).arg(SIZE));
    for folder in [root, package] {
        fs::remove_dir_all(folder).unwrap();
    }
    Ok(())
}

/// Labels the files as the system's own setfiles does, which runs here with its own libraries.
fn label(root: &Path, file_contexts: &Path) {
    let mut setfiles = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
    setfiles.arg("--library-path").arg(root.join("usr/lib/x86_64-linux-gnu")).arg(root.join("usr/sbin/setfiles"));
    run(setfiles.args(["-F", "-r"]).arg(root).arg(file_contexts).arg(root));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The lines about homes, as genhomedircon writes them: root's, and those in /home of who has no SELinux user of his own.
fn with_homes(text: &str) -> String {
    let about_homes = |line: &&str| line.starts_with("HOME_DIR");
    let others = text.lines().filter(|line| !about_homes(line) && !line.contains("%{USERNAME}"));
    let mut whole: Vec<String> =
        others.map(|line| line.replace("HOME_ROOT", "/home").replace("%{USERID}", "[0-9]+")).collect();
    for home in ["/root", "/home/[^/]+"] {
        let of_users = |line: &str| line.replace("HOME_DIR", home).replace("system_u:", "unconfined_u:");
        whole.extend(text.lines().filter(about_homes).map(of_users));
    }
    once(whole.into_iter())
}

/// For each pair `ALIAS PATH` the lines about what is below the path, for the alias, too: libselinux reads the pairs from a
/// file beside its own, and looks one path up for the other.
fn with_aliases(text: &str, pairs: &str) -> String {
    let mut whole: Vec<String> = text.lines().map(str::to_owned).collect();
    for pair in pairs.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let [alias, path] = pair[..] else { continue };
        if alias.starts_with('#') {
            continue;
        }
        let [alias, path] = [alias, path].map(|text| text.replace('.', "\\."));
        let below = |line: &str| {
            let rest = line.strip_prefix(&path).filter(|rest| rest.starts_with(['/', '(', '\t', ' ']))?;
            Some(format!("{alias}{rest}"))
        };
        whole.extend(text.lines().filter_map(below));
    }
    once(whole.into_iter())
}

/// The lines, of several for the same paths the first: libselinux refuses the others.
fn once(lines: impl Iterator<Item = String>) -> String {
    let mut known = HashSet::new();
    let key = |line: &str| line.rsplit_once(char::is_whitespace).map_or("", |(key, _)| key.trim()).to_owned();
    lines.filter(|line| known.insert(key(line))).map(|line| line + "\n").collect()
}
