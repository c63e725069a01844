//! Decision tables against real kernels: their SELinux, which has the same policy, and their BPF, which runs the same
//! evaluator.
//!
//! `policy_decisions` has libsepol. Debian's policies, QEMU and kernels are needed, from the cache or a network: without them
//! these tests fail, and say so.

use std::{
    env,
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tollgate_policy::{built::Built, server::SecurityServer};

use crate::program::{
    Ended, Scratch,
    inside::{INSIDE, is_guest, name},
    machine::{Machine, build, source},
    steps::TIMEOUT,
    word,
};

const POLICIES: [&str; 3] = ["tollgate", "default", "mls"];

/// One of the policies, built.
fn policy(scratch: &Scratch, name: &str) -> PathBuf {
    if name == "tollgate" {
        return build(scratch, name, &[source("policies/tollgate")], &[]);
    }
    let out = scratch.path(name);
    scratch.run(&["policy", "debian", name, "-o", word(&out)]).with(0);
    out
}

/// Runs a shell line in a guest whose SELinux has loaded a built policy, `/built`, and does not enforce.
fn with_policy(scratch: &Scratch, kernel: &str, built: &Path, line: &str, files: &[(&Path, &str)]) -> Ended {
    let image = scratch.path("image");
    scratch.run(&["policy", "export", word(built), "--image", word(&image)]).with(0);
    let line = format!(
        "mount -t selinuxfs none /sys/fs/selinux && dd if=/image of=/sys/fs/selinux/load bs=16M && {{ {line}; }}"
    );
    let machine = Machine::new(scratch, kernel, "selinux", TIMEOUT).option(&["--append", "enforcing=0"]);
    let files = [(built, "/built"), (&image, "/image")].into_iter().chain(files.iter().copied());
    files.fold(machine, |machine, (host, guest)| machine.file(host, guest)).run(&["sh", "-c", &line])
}

/// Fails unless at least this many questions of a kind were compared, and all answers were equal.
#[track_caller]
fn all_alike(verified: &Value, policy: &str, floors: &[(&str, u64)]) {
    assert_eq!(verified["mismatches"], Value::Array(Vec::new()), "{policy}");
    for (kind, floor) in floors {
        let questions = verified["questions"].as_array().unwrap();
        let tally = questions.iter().find(|tally| tally["kind"] == *kind).unwrap();
        assert_eq!(tally["mismatches"], 0, "{policy} {kind}");
        let count = |name: &str| tally[name].as_u64().unwrap();
        assert!(count("asked") >= *floor, "{policy} {kind}: {tally}");
        assert!(count("granted") * 20 > count("asked"), "{policy} {kind}: nearly all is denied: {tally}");
    }
}

/// The least number of questions of each kind for a kernel.
const OF_KERNEL: [(&str, u64); 5] =
    [("access", 10_000), ("transition", 2_400), ("member", 2_400), ("change", 2_400), ("validatetrans", 600)];

#[test]
fn decides_as_the_selinux_of_kernels_does() {
    let scratch = Scratch::new();
    let line = "tollgate policy verify /built --against kernel --decisions 10000 --json";
    for name in POLICIES {
        let built = policy(&scratch, name);
        let kernels: &[&str] = match name {
            _ if cfg!(feature = "long") => &["6.1", "7.2"],
            "mls" => &["7.2"],
            _ => &["6.1"],
        };
        for kernel in kernels {
            let ended = with_policy(&scratch, kernel, &built, line, &[]).with(0);
            all_alike(&ended.json(), &format!("{name} on {kernel}"), &OF_KERNEL);
        }
    }
}

#[test]
fn notices_that_a_kernel_runs_another_policy() {
    let scratch = Scratch::new();
    let built = policy(&scratch, "tollgate");
    let small = build(&scratch, "small", &[source("tests/policies/ioctl.cil")], &[]);
    let line = "tollgate policy verify /other --against kernel";
    with_policy(&scratch, "6.1", &built, line, &[(&small, "/other")]).refused(&["another policy", "class"]);
}

#[test]
fn says_what_is_missing_where_there_is_no_selinux() {
    let scratch = Scratch::new();
    let machine = Machine::new(&scratch, "6.1", "bpf", TIMEOUT).file(&policy(&scratch, "tollgate"), "/built");
    let ended = machine.run(&["tollgate", "policy", "verify", "/built", "--against", "kernel"]);
    ended.refused(&["/sys/fs/selinux does not exist", "lsm=", "mount -t selinuxfs"]);
}

const OF_BPF: [(&str, u64); 5] =
    [("access", 20_000), ("transition", 5_000), ("member", 5_000), ("change", 5_000), ("validatetrans", 1_250)];

/// Also extended permissions, of which Debian's policies have none.
#[test]
fn decides_in_bpf_as_on_the_host_on_every_kernel() {
    let scratch = Scratch::new();
    let names = ["tollgate", "mls"];
    let policies = names.map(|name| policy(&scratch, name));
    let verify = "tollgate policy verify $policy --against bpf --decisions 20000 --json";
    let line = format!("for policy in /policies/tollgate /policies/mls; do {verify} || exit; done");
    // The oldest and the newest kernel differ most.
    let kernels: &[&str] = if cfg!(feature = "long") { &["6.1", "6.12", "6.18", "7.2"] } else { &["6.1", "7.2"] };
    for kernel in kernels {
        let machine = Machine::new(&scratch, kernel, "bpf", TIMEOUT).booted();
        let machine = names
            .iter()
            .zip(&policies)
            .fold(machine, |machine, (name, built)| machine.file(built, &format!("/policies/{name}")));
        let told = machine.run(&["sh", "-c", &line]).with(0).stdout;
        let verified: Vec<Value> = serde_json::Deserializer::from_str(&told).into_iter().map(Result::unwrap).collect();
        assert_eq!(verified.len(), names.len(), "{told}");
        for (name, verified) in names.iter().zip(&verified) {
            all_alike(verified, &format!("{name} on {kernel}"), &OF_BPF);
        }
    }
}

/// Commands that SELinux checks in another way (selinux_file_ioctl): FIBMAP, FIGETBSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX,
/// FIOASYNC, KDSKBENT, KDSKBSENT.
const SPECIAL: [u32; 9] = [0x1, 0x2, 0x541b, 0x5421, 0x5450, 0x5451, 0x5452, 0x4b47, 0x4b49];

#[test]
fn permits_the_ioctls_that_a_kernels_selinux_permits() {
    if is_guest() {
        return ioctls();
    }
    let scratch = Scratch::new();
    let built = build(&scratch, "ioctl", &[source("tests/policies/ioctl.cil")], &[]);
    let this = env::current_exe().unwrap();
    let line = format!(
        "echo > /tmp/scratch; echo 1 > /sys/fs/selinux/enforce; export {INSIDE}=1; \
         printf u:r:tool:s0 > /proc/self/attr/exec && \
         exec /tests --exact {} --nocapture",
        name(permits_the_ioctls_that_a_kernels_selinux_permits)
    );
    let kernels: &[&str] = if cfg!(feature = "long") { &["6.1", "7.2"] } else { &["6.1"] };
    for kernel in kernels {
        let ended = with_policy(&scratch, kernel, &built, &line, &[(&this, "/tests")]).with(0);
        assert!(ended.stdout.contains("12 drivers, 256 functions, 3 files"), "{}{}", ended.stdout, ended.stderr);
    }
}

/// Real ioctls, in a guest, of a process in the domain `tool`.
fn ioctls() {
    let own = fs::read_to_string("/proc/self/attr/current").unwrap();
    assert_eq!(own.trim_end_matches(['\0', '\n']), "u:r:tool:s0");
    let built = Built::open(Path::new("/built")).unwrap();
    let mut server = built.server().unwrap();
    let (mut permitted, mut denied) = (0, 0);
    let drivers = [0x00, 0x11, 0x12, 0x13, 0x33, 0x54, 0x66, 0x70, 0x88, 0x89, 0x8a, 0xff];
    let files = [("/built", "thing"), ("/tmp/scratch", "scratch"), ("/proc/version", "other")];
    for (path, type_) in files {
        let file = File::open(path).unwrap();
        for command in drivers.iter().flat_map(|driver| (0..=0xff).map(move |function| driver << 8 | function)) {
            if SPECIAL.contains(&command) {
                continue;
            }
            // SAFETY: none of these commands does anything to the file; those that it knows get no memory to write to.
            let result = unsafe { libc::ioctl(file.as_raw_fd(), command.into(), 0) };
            let errno = io::Error::last_os_error().raw_os_error();
            let by_kernel = !(result < 0 && errno == Some(libc::EACCES));
            assert_eq!(may(&mut server, type_, command), by_kernel, "{command:#x} on {path}");
            *if by_kernel { &mut permitted } else { &mut denied } += 1;
        }
    }
    println!("12 drivers, 256 functions, 3 files: {permitted} permitted, {denied} denied");
    assert!(permitted > 3000 && denied > 3000);
}

/// Whether the tables let `tool` use an ioctl command (`ioctl_has_perm`, `avc_has_extended_perms`).
fn may(server: &mut SecurityServer<'_>, type_: &str, command: u32) -> bool {
    let source = server.context("u:r:tool:s0").unwrap();
    let target = server.context(&format!("u:object_r:{type_}:s0")).unwrap();
    let class = server.class("file").unwrap();
    let decision = server.access(source, target, class);
    let (driver, function) = ((command >> 8) as u8, command as usize & 0xff);
    let plain = server.permissions(class, decision.allowed).contains(&"ioctl");
    let named = server.tables().extend(&decision, driver);
    plain && named.is_none_or(|named| named.allow[function / 64] >> (function % 64) & 1 == 1)
}
