//! An administrator confines a service, from the package's installation to its removal, with some thirty ways to lose the
//! confinement. Each time the service is confined, or the loss is reported.

use super::{
    guest::{Guest, copy},
    installed::said,
    packages,
    services::{ACTS, NOTES, UNIT},
    system::services_image,
};
use crate::program::{Scratch, report, report_time};

/// The beginning of each boot.
const BEGIN: &str = include_str!("walk/begin.sh");
/// The script of each boot.
const BOOTS: [&str; 4] = [
    include_str!("walk/install.sh"),
    include_str!("walk/ways.sh"),
    include_str!("walk/thirty.sh"),
    include_str!("walk/end.sh"),
];
/// The number of ways.
const WAYS: usize = 31;

/// The output of each boot.
fn walk() -> Vec<String> {
    let scratch = Scratch::new();
    let disk = copy(&scratch, &services_image());
    let [first, second] = ["0.1.0", "0.1.1"]
        .map(|version| packages::make(&scratch, version, version).join(format!("tollgate_{version}_amd64.deb")));
    let (notes, unit) = (scratch.file("notes.py", NOTES), scratch.file("notes.service", UNIT));
    let boot = |part: &&str| {
        let script = scratch.file("walk.sh", &format!("ACTS='{}'\n{BEGIN}{part}", ACTS.join(" ")));
        let guest = Guest::new(&scratch, "6.1", "bpf").option(&["--keep-disk"]);
        let guest = guest.with(&first, "/root/tollgate.deb").with(&second, "/root/tollgate2.deb");
        let guest = guest.with(&notes, "/root/notes.py").with(&unit, "/root/notes.service");
        let output = guest.with(&script, "/root/walk.sh").run(&disk, &["/bin/bash", "/root/walk.sh"]);
        println!("{output}");
        output
    };
    BOOTS.iter().map(boot).collect()
}

#[test]
fn loses_no_service_without_a_word() {
    let boots = walk();
    let [installed, tried, thirty, ended] = &boots[..] else { panic!("{} boots", boots.len()) };
    said(installed, &["before: 14 acts done", "kept by systemd: 1", "confine: 0", "notes: kept", "status: 0"]);
    for act in ACTS {
        let denied = |line: &str| line.contains("Permission denied") || line.contains("not permitted");
        let told: Vec<&str> = installed.lines().filter(|line| line.starts_with(&format!("{act}: "))).collect();
        assert!(told.len() == 1 && denied(told[0]), "{act}: {told:?}");
    }
    said(tried, &["status after the reboot: 0", "rebuild: 2"]);
    said(
        thirty,
        &["thirty: 0", "services confined: 30", "services confined after the upgrade: 30", "status of thirty: 0"],
    );
    said(ended, &["status with another policy: 1", "removed: 0", "notes after all: kept"]);
    let ways: Vec<&str> = boots.iter().flat_map(|boot| boot.lines()).filter(|line| line.starts_with("way ")).collect();
    let lost: Vec<&&str> = ways.iter().filter(|way| way.contains(": LOST")).collect();
    let slowest = boots.iter().flat_map(|boot| boot.lines()).filter_map(milliseconds).max().unwrap_or(0);
    let silence = boots.iter().flat_map(|boot| boot.lines()).filter_map(silence).max().unwrap_or(u64::MAX);
    report(&format!("silent losses in {} ways", ways.len()), &lost.len().to_string(), "0", lost.is_empty());
    report_time("a loss is told after (ms, emulated)", &format!("at most {slowest}"), "1000");
    report_time("a command is silent for (ms, emulated)", &format!("at most {silence}"), "5000");
    assert!(lost.is_empty() && ways.len() == WAYS, "{} ways: {ways:#?}", ways.len());
}

/// `way NAME: told after 700 ms: ...`
fn milliseconds(line: &str) -> Option<u64> {
    line.strip_prefix("way ")?.split_once(": told after ")?.1.split(' ').next()?.parse().ok()
}

/// `took: 900 ms, silent at most: 700 ms: COMMAND`
fn silence(line: &str) -> Option<u64> {
    line.strip_prefix("took: ")?.split_once("silent at most: ")?.1.split(' ').next()?.parse().ok()
}
