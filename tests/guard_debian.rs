//! Debian's privileged programs under what the guard has learnt of them, and under the sets that are shipped.
//!
//! A Debian system is installed on an image (mmdebstrap from the mirrors; root), once for all tests. Guests need QEMU and
//! kernels: without them those tests fail, and say so.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tollgate_host::Cache;
use tollgate_study::applications::Applications;
use tollgate_vm::system::System;

use crate::program::{Scratch, machine::Machine, steps::source, word};

const ACTS: [&str; 11] = ["passwd", "su", "sudo", "ping", "mount", "cron", "mail", "print", "ssh", "upgrade", "bus"];

/// Runs the acts in a guest with files, by a word of the script. Returns all that it printed.
fn run(scratch: &Scratch, word_of_script: &str, files: &[(PathBuf, String)]) -> String {
    let study = Applications::parse("bop", include_str!("../studies/bop.toml")).unwrap();
    let image = System::find(&Cache::of_user().unwrap(), &study.recipe()).unwrap().image();
    let machine = Machine::new(scratch, "6.1", "yama,bpf", 1800).option(&["--memory", "2048", "--disk", word(&image)]);
    let machine = machine.file(&scratch.program(), "/usr/bin/tollgate");
    let machine = machine.file(&source("tests/guard_debian/acts.sh"), "/acts");
    let machine = files.iter().fold(machine, |machine, (file, inside)| machine.file(file, inside));
    let printed = machine.run(&["bash", "/acts", word_of_script]).with(0).stdout;
    println!("{printed}");
    printed
}

/// What was printed since the database is enforced.
#[track_caller]
fn all_work_and_nothing_is_denied(printed: &str) {
    let (_, enforced) = printed.split_once("\nenforced\n").expect("it is enforced");
    for act in ACTS {
        assert!(enforced.contains(&format!("act {act} 0\n")), "{act}: {enforced}");
    }
    assert!(!enforced.contains(" denied: "), "{enforced}");
    assert!(enforced.contains(" 0 denied"), "{enforced}");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn privileged_programs_go_on_working_under_what_was_learnt_here_and_on_a_second_machine() {
    let scratch = Scratch::new();
    let printed = run(&scratch, "learn", &[]);
    all_work_and_nothing_is_denied(&printed);
    let learnt: String = printed
        .lines()
        .filter_map(|line| line.strip_prefix("database "))
        .fold(String::new(), |text, line| text + line + "\n");
    for changing in ["write /proc/*/loginuid", "write /run/mount/utab.??????", "write /var/spool/lpd/lp/"] {
        assert!(learnt.contains(&format!("{changing}\n")), "{changing}: {learnt}");
    }
    assert!(!learnt.contains(" /tmp/\n") && !learnt.contains(" any\n"), "{learnt}");
    let database = scratch.file("database", &learnt);
    let elsewhere = run(&scratch, "enforce", &[(database, "/database".to_owned())]);
    all_work_and_nothing_is_denied(&elsewhere);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn privileged_programs_go_on_working_under_the_sets_that_are_shipped() {
    let scratch = Scratch::new();
    let sets = fs::read_dir(source("policies/guard")).unwrap().map(|entry| entry.unwrap().path());
    let sets: Vec<_> =
        sets.filter(|path| path.extension().is_none()).map(|path| (path.clone(), inside(&path))).collect();
    assert!(sets.len() >= 10, "{sets:?}");
    let printed = run(&scratch, "shipped", &sets);
    all_work_and_nothing_is_denied(&printed);
    for program in [
        "bin/passwd",
        "bin/su",
        "bin/sudo",
        "bin/ping",
        "bin/mount",
        "sbin/cron",
        "sbin/smtpd",
        "sbin/lpd",
        "sbin/sshd",
        "bin/dbus-daemon",
        "lib/dbus-1.0/dbus-daemon-launch-helper",
    ] {
        assert!(printed.contains(&format!("+ program /usr/{program} enforce sha256:")), "{program}: {printed}");
    }
}

fn inside(set: &Path) -> String {
    format!("/sets/{}", set.file_name().unwrap().to_str().unwrap())
}
