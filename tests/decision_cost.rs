//! What a decision costs by the wall clock (`tollgate bench decisions`): in this machine's BPF, and in guests, whose verifiers
//! must take the same programs.
//!
//! On this machine it needs root and a kernel that takes BPF programs of the type `syscall` (6.1 or later); BPF LSM is not
//! needed.

use serde_json::Value;

use crate::program::{
    Ended, Scratch,
    machine::{Machine, build, source},
    steps::TIMEOUT,
    word,
};

/// The parts, and whether each question has a time of its own.
const PARTS: [(&str, bool); 7] = [
    ("nothing", false),
    ("hit-file", false),
    ("hit", false),
    ("miss", true),
    ("tables", true),
    ("nothing-user", false),
    ("tables-user", true),
];

fn part<'v>(timed: &'v Value, name: &str) -> &'v Value {
    let parts = timed["parts"].as_array().unwrap();
    parts.iter().find(|part| part["part"] == name).unwrap_or_else(|| panic!("no {name}: {timed}"))
}

fn nanoseconds(timed: &Value, name: &str, figure: &str) -> f64 {
    part(timed, name)[figure].as_f64().unwrap_or_else(|| panic!("{name} has no {figure}: {timed}"))
}

/// The figures of a policy, which must be whole. No time is a verdict, but that a miss takes far longer than a hit.
#[track_caller]
fn whole(ended: Ended, runs: usize, least: u64) -> Value {
    let timed = ended.with(0).json();
    assert_eq!((timed["clock"].as_str(), timed["unit"].as_str()), (Some("wall"), Some("ns")));
    let conditions = &timed["conditions"];
    assert!(["cpu", "host", "hypervisor", "jit_harden", "policy"].iter().all(|key| conditions[*key].is_string()));
    assert!(conditions["jit"].is_boolean() && conditions["cores"].as_u64() > Some(0), "{conditions}");
    assert!(conditions["questions"].as_u64() >= Some(least), "{conditions}");
    assert_eq!(timed["parts"].as_array().unwrap().len(), PARTS.len());
    for (name, by_question) in PARTS {
        let samples = part(&timed, name)["samples"].as_array().unwrap();
        assert!(samples.len() == runs && samples.iter().all(|sample| sample.as_f64() > Some(0.0)), "{name}: {timed}");
        assert_eq!(part(&timed, name)["by_question"].is_object(), by_question, "{name}");
    }
    let least = |name| nanoseconds(&timed, name, "least");
    assert!(least("miss") > 2.0 * least("hit"), "{timed}");
    timed
}

#[test]
fn times_decisions_in_the_bpf_of_kernels() {
    let scratch = Scratch::new();
    let built = build(&scratch, "tollgate", &[source("policies/tollgate")], &[]);
    let kernels: &[&str] = if cfg!(feature = "long") { &["6.1", "6.12", "6.18", "7.2"] } else { &["6.1"] };
    for kernel in kernels {
        let machine = Machine::new(&scratch, kernel, "bpf", TIMEOUT).file(&built, "/built");
        let timed = whole(machine.run(&["tollgate", "bench", "decisions", "/built", "--runs", "3", "--json"]), 3, 500);
        assert_eq!(timed["conditions"]["jit"], true, "{kernel}");
    }
}

#[test]
fn refuses_to_time_decisions_without_privilege_and_names_the_remedy() {
    let scratch = Scratch::new();
    let program = scratch.program();
    let command = scratch.command("unshare", &["--map-root-user", word(&program), "bench", "decisions"]);
    scratch.finish(command).refused(&["may not load BPF programs", "as root", "tollgate vm run"]);
}

#[test]
fn refuses_to_time_a_policy_that_grants_nothing() {
    let scratch = Scratch::new();
    let text = std::fs::read_to_string(source("tests/policies/small.cil")).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| !line.contains("allow ")).collect();
    let nothing =
        scratch.file("nothing.cil", &lines.join("\n").replace("(handleunknown allow)", "(handleunknown deny)"));
    scratch.run(&["bench", "decisions", word(&nothing)]).refused(&["grants nothing", "allow rules"]);
    scratch.run(&["bench", "decisions", "missing.cil"]).refused(&["missing.cil", "No such file"]);
}

/// The figures of docs/verify.md, of our policy and Debian's.
#[cfg(feature = "long")]
#[test]
fn tells_what_decisions_cost_on_this_processor() {
    assert!(nix::unistd::geteuid().is_root(), "run this test as root: it loads BPF programs");
    let scratch = Scratch::new();
    let mls = scratch.path("mls");
    scratch.run(&["policy", "debian", "mls", "-o", word(&mls)]).with(0);
    for (name, policy) in [("our policy", None), ("Debian mls", Some(word(&mls)))] {
        let words: Vec<&str> = ["bench", "decisions", "--json"].into_iter().chain(policy).collect();
        let timed = whole(scratch.run(&words), 100, 500);
        println!("{name}: {}", timed["conditions"]);
        for (part_name, by_question) in PARTS {
            let [least, median, spread] =
                ["least", "median", "spread"].map(|figure| nanoseconds(&timed, part_name, figure));
            let mut text = format!("{median:.1} ns (least {least:.1}, spread {spread:.1} %)");
            if by_question {
                let alone = &part(&timed, part_name)["by_question"];
                text += &format!(
                    "; by question {:.0}, 95 % {:.0}",
                    alone["median"].as_f64().unwrap(),
                    alone["p95"].as_f64().unwrap()
                );
            }
            crate::program::report_time(&format!("a decision of {name}, {part_name}"), &text, "none");
        }
    }
}
