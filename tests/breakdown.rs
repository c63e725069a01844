//! `tollgate bench breakdown`: where the instructions of an operation go, compared with the guest's counter and with the hooks
//! that the function tracer counts. `make verify CLAIM=breakdown`.

use serde_json::Value;

use crate::program::{Scratch, guests::take, report};

const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.12", "6.18", "7.2"] } else { &["6.1"] };
/// Workloads, each with hooks that an operation calls, as `hooks_count` finds them by the function tracer.
const KNOWN: [(&str, &[(&str, u64)]); 3] = [
    ("open+close", &[("security_file_open", 1), ("security_inode_permission", 6), ("security_file_free", 1)]),
    ("stat", &[("security_inode_getattr", 1), ("security_inode_permission", 5)]),
    ("pipe", &[("security_file_permission", 4)]),
];
/// Instructions by which the measuring loop and the loop that is logged differ, either way: how each reads the counter, and
/// where their buffers lie (the kernel copies what is not aligned in more steps).
const READING: f64 = 20.0;
/// Instructions on the way to an empty program and back, at least and at most.
const ENTRY: std::ops::RangeInclusive<u64> = 100..=400;

fn instructions(parts: &Value, is: impl Fn(&Value) -> bool) -> u64 {
    let parts = parts.as_array().unwrap().iter().filter(|part| is(part));
    parts.map(|part| part["instructions"].as_u64().unwrap()).sum()
}

#[test]
fn agrees_with_the_counter_and_with_the_hooks_that_are_known() {
    let scratch = Scratch::new();
    let names: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
    for kernel in KERNELS {
        let _place = take(1);
        let words = ["bench", "breakdown", "--kernel", kernel, "--configuration", "bpf-empty", "--json"];
        let rows = scratch.run(&[&words[..], &names].concat()).with(0).json();
        let mut seen = Vec::new();
        for ((name, known), row) in KNOWN.iter().zip(rows.as_array().unwrap()) {
            let operation = &row["operation"];
            let number = |key: &str| operation[key].as_u64().unwrap();
            assert_eq!((row["workload"].as_str(), number("executed")), (Some(*name), number("counted")), "{row:#}");
            let away = number("counted") as f64 - row["figure"].as_f64().unwrap();
            assert!((-READING..=READING).contains(&away), "{name}: {away}: {row:#}");
            let hooks = operation["hooks"].as_array().unwrap();
            let inside: u64 = hooks.iter().map(|hook| instructions(&hook["parts"], |_| true)).sum();
            assert_eq!(inside + number("outside") + number("interrupts"), number("executed"), "{row:#}");
            for (function, calls) in *known {
                let hook = hooks.iter().find(|hook| hook["function"] == *function).unwrap();
                assert_eq!(hook["calls"].as_u64(), Some(*calls), "{name}: {hook:#}");
                let entry = instructions(&hook["parts"], |part| part["group"] == "entry") / calls;
                assert!(ENTRY.contains(&entry), "{name}: {hook:#}");
            }
            seen.push(format!("{name} {away:+}"));
        }
        let goal = format!("the counter exactly, the figure within {READING}");
        report(&format!("{kernel}: logged instructions beside the figure"), &seen.join(", "), &goal, true);
    }
}
