//! Debian's privileged programs under what the guard has learnt of them.
//!
//! A Debian system is installed on an image (mmdebstrap from the mirrors; root), once for all tests. Guests need QEMU and
//! kernels: without them those tests fail, and say so.

use tollgate_host::Cache;
use tollgate_study::applications::Applications;
use tollgate_vm::system::System;

use crate::program::{Scratch, machine::Machine, steps::source, word};

const ACTS: [&str; 10] = ["passwd", "su", "sudo", "ping", "mount", "cron", "mail", "print", "ssh", "upgrade"];

/// Runs the acts in a guest. Returns what they printed since the database is enforced, and the database.
fn run(scratch: &Scratch, word_of_script: &str, database: Option<&str>) -> (String, String) {
    let study = Applications::parse("bop", include_str!("../studies/bop.toml")).unwrap();
    let image = System::find(&Cache::of_user().unwrap(), &study.recipe()).unwrap().image();
    let machine = Machine::new(scratch, "6.1", "yama,bpf", 1800).option(&["--memory", "2048", "--disk", word(&image)]);
    let machine = machine.file(&scratch.program(), "/usr/bin/tollgate");
    let machine = machine.file(&source("tests/guard_debian/acts.sh"), "/acts");
    let machine = match database {
        Some(text) => machine.file(&scratch.file("database", text), "/database"),
        None => machine,
    };
    let printed = machine.run(&["bash", "/acts", word_of_script]).with(0).stdout;
    let learnt: String = printed
        .lines()
        .filter_map(|line| line.strip_prefix("database "))
        .fold(String::new(), |text, line| text + line + "\n");
    let (before, enforced) = printed.split_once("enforced\n").unwrap_or((&printed, ""));
    println!("{before}\n{enforced}");
    (enforced.to_owned(), learnt)
}

#[track_caller]
fn all_work_and_nothing_is_denied(enforced: &str) {
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
    let (enforced, database) = run(&scratch, "learn", None);
    all_work_and_nothing_is_denied(&enforced);
    let (elsewhere, _) = run(&scratch, "enforce", Some(&database));
    all_work_and_nothing_is_denied(&elsewhere);
}
