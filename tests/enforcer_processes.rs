//! Processes on real kernels, beyond the reach of scenarios: threads, storms of forks, overridden credentials, and that only
//! permitted processes end enforcement.
//!
//! QEMU and a kernel, from the cache or a network, and a C compiler are needed: without them these tests fail, and say so.

use std::{collections::BTreeMap, sync::OnceLock};

use crate::program::{
    Scratch,
    guests::KERNELS,
    machine::{Machine, policy, source},
    steps::TIMEOUT,
    word,
};

/// The output of each part of tests/processes/script.sh.
type Parts = BTreeMap<String, Vec<String>>;

fn play(kernel: &str) -> Parts {
    let scratch = Scratch::new();
    let policy = policy(&scratch, "policy", &[source("tests/policies/processes.cil")]);
    let (act, program) = (scratch.path("act"), source("tests/processes/act.c"));
    let compile = ["-static", "-pthread", "-Wall", "-Werror", "-o", word(&act), word(&program)];
    scratch.finish(scratch.command("cc", &compile)).with(0);
    let machine = Machine::new(&scratch, kernel, "bpf", TIMEOUT).modules(&["overlay"]);
    let machine = machine.file(&scratch.program(), "/bin/tollgate").file(&act, "/act").file(&policy, "/policy");
    let machine = machine.file(&source("tests/processes/script.sh"), "/script.sh");
    let ended = machine.run(&["sh", "/script.sh"]).with(0);
    let mut parts = Parts::new();
    for part in ended.stdout.split("== ").skip(1) {
        let mut lines = part.lines().map(str::to_owned);
        parts.insert(lines.next().unwrap(), lines.collect());
    }
    assert!(parts.contains_key("end"), "{}{}", ended.stdout, ended.stderr);
    parts
}

/// The output of a part, on each kernel.
fn part(name: &str) -> Vec<(&'static str, &'static [String])> {
    static PLAYED: OnceLock<Vec<(&str, Parts)>> = OnceLock::new();
    let played = PLAYED.get_or_init(|| KERNELS.iter().map(|kernel| (*kernel, play(kernel))).collect());
    played.iter().map(|(kernel, parts)| (*kernel, parts[name].as_slice())).collect()
}

fn came(name: &str, expected: &[&str]) {
    for (kernel, lines) in part(name) {
        assert_eq!(lines, expected, "{name} on {kernel}");
    }
}

#[test]
fn denies_by_the_domain_that_a_program_is_executed_in() {
    came("read", &["read done", "read done", "read EACCES", "read EACCES"]);
}

#[test]
fn changes_the_domain_when_a_thread_that_is_not_the_first_executes() {
    came("thread", &["read EACCES", "read done"]);
}

#[test]
fn tells_a_program_to_trust_nothing_where_the_domain_changes_without_noatsecure() {
    came("script", &["secure 1", "secure 0"]);
    // AT_SECURE is not set for a program that an unconfined domain starts.
    came("secure", &["secure 1", "secure 0", "secure 0"]);
}

#[test]
fn denies_each_descendant_in_a_storm_of_forks() {
    let (all, none) = ("storm granted 80 denied 0", "storm granted 0 denied 80");
    came("storm", &[none, all, none]);
}

/// The kernel does not call `security_cred_free` for credentials that are freed where no module but bpf runs.
#[test]
fn grants_descriptors_that_the_machine_opened_with_credentials_in_the_place_of_freed_ones() {
    for (kernel, lines) in part("freed credentials") {
        assert_eq!(lines[0], "storm granted 400 denied 0", "{kernel}");
        assert_eq!(lines[1..].iter().map(|line| line.trim()).collect::<Vec<_>>(), ["20 read done"], "{kernel}");
    }
}

#[test]
fn denies_to_signal_trace_or_limit_the_daemon_without_setenforce() {
    came("daemon", &["kill EACCES", "trace EACCES", "limit EACCES", "denied"]);
    came("other", &["kill done", "trace done", "limit done", "done"]);
}

/// How many BPF objects were opened, and how many were denied.
fn counts(line: &str) -> (u32, u32) {
    let words: Vec<&str> = line.split(' ').collect();
    (words[2].parse().unwrap(), words[4].parse().unwrap())
}

#[test]
fn denies_descriptors_of_its_maps_and_programs_without_permission() {
    for (kernel, lines) in [part("maps"), part("programs")].concat() {
        let (opened, denied) = counts(&lines[0]);
        // The guest has no other maps and programs than the enforcer's.
        assert!(opened == 0 && denied > 15, "{lines:?} on {kernel}");
        let all = (denied, 0);
        assert_eq!((counts(&lines[1]), counts(&lines[2])), (all, all), "{lines:?} on {kernel}");
    }
}

#[test]
fn denies_to_remove_or_unmount_its_pins_without_permission() {
    came("pins", &["denied", "denied", "denied", "denied", "done"]);
}

#[test]
fn grants_overlayfs_what_its_unconfined_mounter_may() {
    // Copying up creates a file in a folder that the domain may not even search.
    came("overlay", &["done", "done", "denied", "denied"]);
}

#[test]
fn denies_through_overlayfs_what_its_confined_mounter_may_not() {
    came("mounted by worked", &["done", "read done", "read done", "read EACCES"]);
}

#[test]
fn denies_a_ring_the_credentials_of_another_without_override_creds() {
    came("own ring", &["open_by_ring done", "open_by_ring EACCES"]);
    came("ring of the machine", &["open_by_ring EACCES", "open_by_ring EACCES"]);
}

#[test]
fn denies_by_the_domain_whose_credentials_a_ring_has() {
    came("ring of worked", &["open_by_ring done", "open_by_ring done", "open_by_ring EACCES"]);
}

#[test]
fn grants_the_end_of_enforcement_to_who_may_and_goes_on_without_a_daemon() {
    came("officer", &["done", "denied", "kill done", "done", "read EACCES"]);
}

#[test]
fn denies_labels_to_who_has_the_number_of_a_daemon_that_was_killed() {
    came("successor", &["impersonate EPERM"]);
}

#[test]
fn leaves_the_first_thread_as_it_was_when_another_enters_a_domain() {
    came("mixed", &["enter done", "read EACCES", "read done"]);
}

#[test]
fn refuses_to_change_the_domain_of_credentials_that_others_have_too() {
    came("enter", &["enter done", "enter EAGAIN"]);
}

#[test]
fn counts_no_failure_meanwhile() {
    came("limits", &["failures     none"]);
}
