//! How long a start takes, by the guest's instruction clock, and which part of it takes how much.
//!
//! QEMU counts the instructions of one processor only. What two processors save is seen with two threads on one: each
//! thread's time is counted, and the start takes as long as the longest of them and what no thread shares.

use std::collections::BTreeMap;

use crate::program::{
    Scratch,
    guests::{kernels, take},
    report, word,
};

/// Milliseconds, with one processor and with two.
const GOAL: u64 = 5_000;
/// The parts that a start has.
const PARTS: [&str; 8] = [
    "reading the policy",
    "asking which hooks the policy needs",
    "loading programs, which the kernel verifies",
    "putting the policy in force",
    "attaching programs",
    "labelling files",
    "writing labels to files",
    "in all",
];

/// What a part took: until it was over, of processors' time, and as if each thread had a processor.
type Times = [u64; 3];

/// The table of `--timing`.
fn table(text: &str) -> BTreeMap<&str, Times> {
    let row = |line: &'_ str| {
        let mut rest = line;
        let times = [(); 3].map(|()| {
            let (word, more) = rest.trim_start().split_once(' ')?;
            rest = more;
            word.parse().ok()
        });
        let [Some(elapsed), Some(worked), Some(apart)] = times else { return None };
        Some((line.len() - rest.trim_start().len(), [elapsed, worked, apart]))
    };
    text.lines().filter_map(|line| row(line).map(|(at, times)| (&line[at..], times))).collect()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn reports_what_each_part_of_a_start_with_debians_policy_takes() {
    let scratch = Scratch::new();
    let debian = scratch.path("debian");
    scratch.run(&["policy", "debian", "default", "-o", word(&debian)]).with(0);
    let [program, policy] = [(&scratch.program(), "/bin/tollgate"), (&debian, "/debian")]
        .map(|(path, inside)| format!("{}:{inside}", word(path)));
    let start = |threads| {
        format!(
            "tollgate enforce /debian --accept-missing --unconfined unconfined_t --once --timing --threads {threads}"
        )
    };
    let script = format!("{} && tollgate stop --force && echo AGAIN && {}", start(1), start(2));
    for kernel in kernels(&["6.1"]) {
        let options = ["vm", "run", "--clock", "instructions", "--kernel", kernel, "--lsm", "bpf", "--timeout", "1800"];
        let files = ["--file", &program, "--file", &policy, "--", "sh", "-c", &script];
        let place = take(1);
        let said = scratch.run(&[&options[..], &files].concat()).with(0).stdout;
        drop(place);
        let (one, two) = said.split_once("AGAIN").unwrap();
        for (processors, text, of) in [("one processor", one, 0), ("two processors", two, 2)] {
            let took = table(text);
            for part in PARTS {
                println!("start, {kernel}, {processors}: {:>6} ms {part}", took[part][of]);
            }
            let all = took["in all"][of];
            let figure = format!("{all} ms of the instruction clock");
            report(&format!("start with Debian's policy, {kernel}, {processors}"), &figure, "5000 ms", all <= GOAL);
            // The threads' times belong to the part in which they run, and to no other.
            assert!(took.values().all(|[elapsed, _, apart]| apart <= &(elapsed + 20)), "{took:?}");
        }
        let [one, two] = [one, two].map(|text| table(text)[PARTS[2]][2]);
        assert!(two * 10 < one * 7, "two threads take {two} ms, one {one}: the work is not shared");
    }
}
