//! The cost of policies, printed with spread and goal: `make verify CLAIM=policies_cost`. Times are of the wall clock and of
//! the present machine, so none of them fails the test; sizes do.

use std::{path::Path, time::Duration};

use crate::program::{Scratch, report, report_time, word};

/// How often a command is run for its time.
const RUNS: usize = 11;

const QUESTION: [&str; 3] = ["system_u:system_r:sshd_t:s0", "system_u:object_r:shadow_t:s0", "file"];

/// Least, median and greatest of some times, in milliseconds.
fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    format!("{median:.1} ms (least {:.1}, greatest {:.1}, {} runs)", times[0], times[times.len() - 1], times.len())
}

fn milliseconds(times: impl Iterator<Item = Duration>) -> Vec<f64> {
    times.map(|time| time.as_secs_f64() * 1e3).collect()
}

fn timed(scratch: &Scratch, arguments: &[&str], status: i32) -> Vec<f64> {
    milliseconds((0..RUNS).map(|_| scratch.run(arguments).with(status).took))
}

/// The median of a spread of nanoseconds, and all of it.
fn nanoseconds(spread: &serde_json::Value) -> (f64, String) {
    let [least, median, greatest] = ["least", "median", "greatest"].map(|part| spread[part].as_f64().unwrap());
    (median, format!("{median:.0} ns (least {least:.0}, greatest {greatest:.0})"))
}

/// Debian's policy, built or from the cache.
fn debian(scratch: &Scratch, name: &str) -> std::path::PathBuf {
    let out = scratch.path(name);
    scratch.run(&["policy", "debian", name, "-o", word(&out)]).with(0);
    out
}

fn tables_of(scratch: &Scratch, policy: &Path) -> (u64, Vec<f64>) {
    let (image, out) = (scratch.path("image"), scratch.path("again"));
    scratch.run(&["policy", "export", word(policy), "--image", word(&image)]).with(0);
    let build = || scratch.run(&["policy", "build", word(&image), "-o", word(&out), "--json"]).with(0).json();
    let reports: Vec<_> = (0..5).map(|_| build()).collect();
    let times = reports.iter().map(|report| report["tables_seconds"].as_f64().unwrap() * 1e3).collect();
    (reports[0]["tables_bytes"].as_u64().unwrap(), times)
}

#[test]
fn reports_what_policies_cost() {
    let scratch = Scratch::new();
    let (default, mls) = (debian(&scratch, "default"), debian(&scratch, "mls"));
    let (bytes, times) = tables_of(&scratch, &mls);
    let mib = bytes as f64 / f64::from(1 << 20);
    report("decision tables of Debian mls", &format!("{mib:.2} MiB"), "at most 4 MiB", mib <= 4.0);
    assert!(mib <= 4.0);
    let text = spread(times);
    report_time("laying out Debian mls after libsepol's work", &text, "1 s");

    let [source, target, class] = QUESTION;
    let text = spread(timed(&scratch, &["policy", "query", word(&mls), source, target, class], 0));
    report_time("query of a built policy, the whole process", &text, "50 ms");
    let text = spread(timed(&scratch, &["policy", "diff", word(&default), word(&mls), "--json"], 1));
    report_time("diff of Debian default and mls", &text, "5 s");

    for (name, policy) in [("default", &default), ("mls", &mls)] {
        let verified =
            scratch.run(&["policy", "verify", word(policy), "--decisions", "200000", "--json"]).with(0).json();
        let (ours, our_text) = nanoseconds(&verified["nanoseconds"]["ours"]);
        let (theirs, their_text) = nanoseconds(&verified["nanoseconds"]["libsepol"]);
        let figure = format!("{our_text} against libsepol's {their_text}: {:.0} times faster", theirs / ours);
        report_time(&format!("a decision under Debian {name}"), &figure, "10 times");
    }
}
