//! Random calls of an intruder, `fuzz/`, under the kernel's SELinux and under Tollgate; the same seed gives the same calls.
//!
//! Tollgate denies what SELinux denies, the kernel reports no error, and nothing stays in Tollgate's maps. A sequence is
//! compared up to its first difference, because later ones may follow from it.

use std::collections::BTreeMap;
#[cfg(feature = "long")]
use std::time::{Duration, Instant, SystemTime};

use crate::{
    attacks::acts::{compile, guest_with, of_acts, sources},
    program::{Scratch, guests::kernels, report},
};

/// Sequences that once found an error: (first, how many).
const SEEDS: (u64, u64) = (1, 120);
/// How many entries the machine itself may add to the maps meanwhile.
const SLACK: i64 = 16;

/// The result of each call of each sequence.
type Sequences = BTreeMap<u64, Vec<(String, String)>>;

struct Played {
    sequences: Sequences,
    /// The growth of each map, in entries.
    grown: BTreeMap<String, i64>,
}

fn sequence(line: &str) -> Option<(u64, Vec<(String, String)>)> {
    let (number, calls) = line.split_once(' ')?;
    let call = |call: &str| {
        let (name, result) = call.split_once('=').unwrap_or((call, ""));
        (name.to_owned(), result.to_owned())
    };
    Some((number.parse().ok()?, calls.split(' ').map(call).collect()))
}

fn table(text: &str) -> BTreeMap<String, i64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
        .collect()
}

fn play(kernel: &'static str, lsm: &'static str, (first, count): (u64, u64)) -> Played {
    let scratch = Scratch::new();
    let mut files = sources(&["tests/attacks/fuzz", "tests/attacks/fuzz/calls", "lib"]);
    files.extend(of_acts(&["stage", "domain", "ring"]));
    let fuzz = compile(&scratch, "fuzz", &files);
    let tables = if lsm == "selinux" { "true" } else { "sleep 2; echo 3 > /proc/sys/vm/drop_caches; /fuzz count" };
    let run = format!("/fuzz run intruder {first} {count}");
    // The first sequence causes the labels that are needed only once, such as those of proc.
    let warm = "/fuzz run intruder 0 3";
    let guest = guest_with(&scratch, kernel, lsm, &[(&fuzz, "/fuzz")]).step("warm", warm).step("before", tables);
    let guest = guest.step("run", &run).step("after", tables);
    let steps = guest.step("kernel", "! dmesg | grep -E 'WARNING:|BUG:|Oops'").run();
    for step in ["place", "enforce", "run", "before", "after", "kernel"] {
        steps[step].is(0, &[]);
    }
    let (before, mut grown) = (table(&steps["before"].text), table(&steps["after"].text));
    grown.iter_mut().for_each(|(name, count)| *count -= before.get(name).unwrap_or(&0));
    Played { sequences: steps["run"].text.lines().filter_map(sequence).collect(), grown }
}

/// The first difference of a sequence: the call, SELinux's answer, Tollgate's.
fn first_difference(selinux: &[(String, String)], tollgate: &[(String, String)]) -> Option<(String, String, String)> {
    let (at, (ours, theirs)) = selinux.iter().zip(tollgate).enumerate().find(|(_, (one, other))| one != other)?;
    Some((format!("{}, call {at}", ours.0), ours.1.clone(), theirs.1.clone()))
}

/// Whether an answer is a denial. Other errors are not: a refused connection was permitted.
fn denies(answer: &str) -> bool {
    ["EACCES", "EPERM"].contains(&answer)
}

/// Compares sequences; returns what Tollgate permits wrongly, or keeps.
fn complaints(kernel: &'static str, seeds: (u64, u64)) -> Vec<String> {
    let (selinux, tollgate) = (play(kernel, "selinux", seeds), play(kernel, "bpf", seeds));
    assert_eq!(selinux.sequences.len() as u64, seeds.1, "{kernel}: sequences of SELinux");
    let (mut found, mut differ, mut calls) = (Vec::new(), 0, 0);
    for (seed, theirs) in &selinux.sequences {
        let ours = tollgate.sequences.get(seed).unwrap_or_else(|| panic!("{kernel}: {seed} was not played"));
        calls += ours.len();
        let Some((call, denied, got)) = first_difference(theirs, ours) else { continue };
        differ += 1;
        println!("{kernel}: {seed}: {call}: SELinux {denied}, Tollgate {got}");
        if denies(&denied) && !denies(&got) {
            found.push(format!("{kernel}: {seed}: {call}: SELinux {denied}, Tollgate {got}"));
        }
    }
    let leaks = tollgate.grown.iter().filter(|(_, grown)| **grown > SLACK);
    found.extend(leaks.map(|(name, grown)| format!("{kernel}: {name} has {grown} entries more")));
    let figure =
        format!("{calls} calls in {} sequences, {differ} with a difference; tables {:?}", seeds.1, tollgate.grown);
    report(&format!("random calls on {kernel} from {}", seeds.0), &figure, "nothing let through", found.is_empty());
    found
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_random_calls_that_selinux_denies() {
    let mut found = Vec::new();
    for kernel in kernels(&["6.1"]) {
        found.append(&mut complaints(kernel, SEEDS));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Random seeds; add those that find an error to `SEEDS`. TOLLGATE_FUZZ_SECONDS sets the time.
#[test]
#[cfg(feature = "long")]
fn denies_random_calls_of_half_an_hour_that_selinux_denies() {
    let (started, clock) = (Instant::now(), SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap());
    let limit = std::env::var("TOLLGATE_FUZZ_SECONDS").map_or(1800, |seconds| seconds.parse().unwrap());
    let mut found = Vec::new();
    let mut first = clock.as_secs() * 10_000;
    for kernel in kernels(&["6.1", "6.18", "7.2"]).into_iter().cycle() {
        if started.elapsed() > Duration::from_secs(limit) {
            break;
        }
        found.append(&mut complaints(kernel, (first, 400)));
        first += 400;
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
