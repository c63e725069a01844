//! The power fails at any instant while confined domains create, link and move files.
//!
//! Whatever was lost, no file has a label below its own afterwards, such as its directory's. The same holds when the daemon
//! is killed or stopped and everything is unmounted. `TOLLGATE_CUTS` sets how often a file system's power fails,
//! `TOLLGATE_SEED` when.

use std::{
    collections::BTreeMap,
    env,
    fs::File,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fastrand::Rng;

use super::{NAMES, program};
use crate::program::{
    Scratch,
    guests::{KERNELS, kernels},
    signal,
    steps::{Guest, policy, source},
};

/// The file systems, with their sizes in MiB.
const KINDS: [(&str, u64); 3] = [("ext4", 64), ("xfs", 320), ("btrfs", 256)];
/// The longest time that a load runs, in milliseconds.
const MAX_LOAD_MS: u64 = 9000;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn random() -> Rng {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = number("TOLLGATE_SEED").unwrap_or_else(now);
    println!("seed {seed}");
    Rng::with_seed(seed)
}

/// What was found in the files of a file system.
#[derive(Debug, Default)]
struct Tally {
    checks: u64,
    files: u64,
    kept: u64,
    lost: u64,
    unlisted: u64,
    wrong: u64,
}

/// Adds a guest's report.
fn tally(tallies: &mut BTreeMap<String, Tally>, output: &str) {
    assert!(!output.contains("cannot be mounted"), "{output}");
    for line in output.lines() {
        if line.starts_with("wrong: ") || line.starts_with("not listed: ") {
            println!("{line}");
        }
        let Some(("checked", rest)) = line.split_once(' ') else { continue };
        let (kind, numbers) = rest.split_once(' ').unwrap();
        let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        let [files, kept, lost, unlisted, wrong] = numbers[..] else { panic!("{line}") };
        println!("{kind}: {files} files, {kept} kept, {lost} unlabelled, {unlisted} not listed, {wrong} wrong");
        let tally = tallies.entry(kind.to_owned()).or_default();
        tally.checks += 1;
        tally.files += files;
        tally.kept += kept;
        tally.lost += lost;
        tally.unlisted += unlisted;
        tally.wrong += wrong;
    }
}

fn judge(tallies: &BTreeMap<String, Tally>, what: &str) {
    for (kind, tally) in tallies {
        let Tally { checks, files, kept, lost, unlisted, wrong } = tally;
        println!(
            "{kind}: {checks} {what}, {files} files: {kept} kept, {lost} unlabelled ({unlisted} of them not listed), {wrong} wrong"
        );
    }
    let each = |found: fn(&Tally) -> u64| tallies.values().map(found).collect::<Vec<_>>();
    assert_eq!(each(|tally| tally.wrong), [0, 0, 0], "labels below their own");
    assert_eq!(each(|tally| tally.unlisted), [0, 0, 0], "unlabelled and not listed");
    // Otherwise nothing was tested.
    assert!(tallies.values().all(|tally| tally.kept > 0 && tally.files > tally.checks * 10), "{tallies:?}");
}

fn disks(scratch: &Scratch) -> Vec<PathBuf> {
    KINDS
        .map(|(kind, megabytes)| {
            let image = scratch.path(kind);
            File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
            let mut made = Command::new(format!("/sbin/mkfs.{kind}"));
            assert!(made.arg("-q").arg(&image).output().unwrap().status.success(), "mkfs.{kind}");
            image
        })
        .into()
}

struct Parts {
    policy: PathBuf,
    load: PathBuf,
    script: String,
    disks: Vec<PathBuf>,
}

impl Parts {
    fn new(scratch: &Scratch) -> Self {
        let parts = ["policy.cil", "power.cil"].map(|name| source(&format!("tests/attacks/{name}")));
        Self {
            policy: policy(scratch, "power.policy", &parts),
            load: program(scratch, "power"),
            script: std::fs::read_to_string(source("tests/attacks/power.sh")).unwrap(),
            disks: disks(scratch),
        }
    }

    fn guest<'s>(&self, scratch: &'s Scratch, kernel: &'static str) -> Guest<'s> {
        let guest = Guest::under(scratch, kernel, &self.policy).names(NAMES).lines(&self.script);
        let guest = guest.modules(&["xfs", "btrfs"]).with(&self.load, "/power");
        // On that kernel, the crypto algorithm that btrfs needs is a module.
        let guest = if kernel == "6.1" { guest } else { guest.modules(&["crc32c-cryptoapi"]) };
        self.disks.iter().fold(guest, |guest, image| guest.volume(image as &Path))
    }
}

/// A guest that examines what the one before has left, and begins again. Half of them mount first, half enforce first.
fn script(random: &mut Rng) -> String {
    let mount_first = "mounts; tollgate enforce /policy; echo enforced $?";
    let enforce_first = "tollgate enforce /policy; echo enforced $?; mounts; sleep 4";
    let begin = if random.u64(..2) == 0 { mount_first } else { enforce_first };
    let after = format!("sleep {}.{}", random.u64(..3), random.u64(..10));
    let daemon = match random.u64(..4) {
        0 => format!("{after}; kill -STOP $(daemon)"),
        1 => format!("{after}; kill -KILL $(daemon)"),
        _ => String::new(),
    };
    format!("{begin}; check; load {}; echo loaded\n{daemon}\nsleep 600\n", random.u64(..1 << 30))
}

#[test]
fn leaves_no_label_below_its_own_whenever_the_power_fails() {
    let (scratch, mut random) = (Scratch::new(), random());
    let parts = Parts::new(&scratch);
    let cuts = number("TOLLGATE_CUTS").unwrap_or(200).div_ceil(KINDS.len() as u64);
    let (kernels, mut tallies) = (kernels(KERNELS), BTreeMap::new());
    // The last one only examines.
    for cut in 0..=cuts {
        let kernel = kernels[usize::try_from(cut).unwrap() % kernels.len()];
        let lines = script(&mut random);
        let delay = random.u64(..MAX_LOAD_MS);
        let (mut running, _place) = parts.guest(&scratch, kernel).lines(&lines).start();
        running.wait_until("the load", |running| running.stdout().contains("loaded\n"));
        sleep(Duration::from_millis(delay));
        running.emulators().iter().for_each(|emulator| signal("KILL", &emulator.to_string()));
        running.wait_for_end();
        let output = running.stdout();
        assert!(output.contains("enforced 0\n"), "{output}\n{}", running.stderr());
        println!("guest {cut}, {kernel}, power off after {delay} ms");
        tally(&mut tallies, &output);
    }
    judge(&tallies, "cuts");
}

#[test]
fn leaves_no_label_below_its_own_when_the_daemon_does_not_run_and_all_is_unmounted() {
    let mut random = random();
    for kernel in kernels(KERNELS) {
        let scratch = Scratch::new();
        let mut guest = Parts::new(&scratch).guest(&scratch, kernel).step("start", "mounts; tollgate enforce /policy");
        let rounds = [
            ("no", "no", "sleep 3"),
            ("KILL", "no", "tollgate enforce /policy; sleep 3"),
            ("STOP", "CONT", "sleep 4"),
            ("STOP", "KILL", "sleep 1; tollgate enforce /policy; sleep 3"),
        ];
        for (number, (before, after, then)) in rounds.iter().enumerate() {
            let send = |name: &str| if name == "no" { "true".to_owned() } else { format!("kill -{name} $(daemon)") };
            let line = format!(
                "load {}; sleep {}; {}; sleep 0.{}; kill -KILL $LOADS $(pidof power); unmounts; {}; mounts; {then}; check",
                random.u64(..1 << 30),
                random.u64(..3),
                send(before),
                random.u64(..10),
                send(after)
            );
            guest = guest.step(&number.to_string(), &line);
        }
        let mut tallies = BTreeMap::new();
        for (name, step) in guest.run() {
            println!("{kernel}, round {name}");
            tally(&mut tallies, &step.is(0, &[]).text);
        }
        judge(&tallies, "unmounts");
    }
}
