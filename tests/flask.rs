//! Flask's evaluation of 1999 on Tollgate: studies/flask.toml, and what docs/flask.md says of it.

use tollgate_bench::decisions::Decisions;

use crate::program::{Scratch, assert_all_measured, configuration, guests, results, word, workload};

/// The configuration in which decisions are counted.
const COUNTED: &str = "tollgate-debian-counted";

/// All checks, and those that the cache answered.
fn answers(decisions: &Decisions) -> (u64, u64) {
    let cached = decisions.managers.iter().map(|manager| manager.cached).sum();
    let tables: u64 = decisions.managers.iter().map(|manager| manager.tables).sum();
    (cached + tables, cached)
}

/// The names of the object managers that made checks.
fn managers(decisions: &Decisions) -> Vec<&str> {
    decisions.managers.iter().map(|manager| manager.name.as_str()).collect()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn measures_each_of_flasks_workloads_and_counts_what_was_decided() {
    let scratch = Scratch::new();
    let text = format!(
        "name = \"flask-once\"\ntitle = \"Once\"\nkernels = [\"6.1\"]\nconfigurations = [{COUNTED:?}]\n\
         baseline = {COUNTED:?}\nworkloads = [\"null\", \"@flask\"]\nsamples = 1\nfigure = \"mean\"\n"
    );
    let (file, out) = (scratch.file("once.toml", &text), scratch.path("out"));
    let place = guests::take(1);
    let ended = scratch.run(&["study", "run", word(&file), "--out", word(&out)]).with(0);
    drop(place);
    let results = results(&out);
    assert_all_measured(&results);
    let counted = configuration(&results, COUNTED);
    let decisions = |name: &str| workload(counted, name).decisions.as_ref().unwrap();
    let made = decisions("make");
    let (asked, cached) = answers(made);
    assert!(made.operations >= 2, "{made:?}");
    for manager in ["files", "directories", "processes"] {
        assert!(managers(made).contains(&manager), "{manager}: {made:?}");
    }
    // Each of 20 sources is compiled, assembled and linked by programs that are found, started and read.
    assert!(asked > 1000 * made.operations && cached < asked, "{made:?}");
    // Each of two messages is checked when it is sent and when it is received.
    let messages = decisions("msg-8");
    assert!(managers(messages).contains(&"System V IPC"), "{messages:?}");
    assert!(answers(messages).0 >= 2 * 2 * messages.operations, "{messages:?}");
    assert_eq!(answers(decisions("null")).0, 0);
    assert!(ended.stdout.contains("Decisions by object manager, counted in"), "{}", ended.stdout);
}

/// The whole study, beside the figures that Flask's authors published.
#[cfg(feature = "long")]
mod whole {
    use tollgate_study::results::{ConfigurationResult, Oracle, Results};

    use super::*;
    use crate::program::report;

    /// The share of checks that, according to Flask, never reach the security server, in percent.
    const CACHED: f64 = 99.0;
    const TOLLGATE: &str = "tollgate-debian-confined";
    const MAKES: [&str; 2] = ["make:ext4", "make"];

    /// A difference to the baseline with its interval, in percent.
    fn percent(of: &ConfigurationResult, name: &str) -> (f64, String) {
        let difference = workload(of, name).difference.unwrap();
        (
            difference.percent,
            format!("{:+.3} % ({:+.3} to {:+.3})", difference.percent, difference.low, difference.high),
        )
    }

    fn compare_with_selinux(results: &Results, name: &str) {
        let [selinux, tollgate] = ["selinux-enforcing", TOLLGATE].map(|of| configuration(results, of));
        let ((theirs, selinux), (ours, tollgate)) = (percent(selinux, name), percent(tollgate, name));
        report(&format!("{name} under Tollgate"), &tollgate, &format!("SELinux's {selinux}"), ours <= theirs);
    }

    #[test]
    fn answers_flasks_make_from_the_cache_and_tells_what_it_costs_beside_selinux() {
        let scratch = Scratch::new();
        let out = scratch.path("out");
        scratch.run(&["study", "run", "flask", "--out", word(&out), "--timeout", "3600"]).with(0);
        let results = results(&out);
        assert_all_measured(&results);
        for of in &results.configurations {
            assert!(of.name == "none" || of.oracle == Oracle::Held, "{}: {:?}", of.name, of.notes);
        }
        for name in MAKES {
            compare_with_selinux(&results, name);
            for part in ["tollgate-file-hooks", "tollgate-process-hooks"] {
                println!("  {name} under {part}: {}", percent(configuration(&results, part), name).1);
            }
        }
        let none = configuration(&results, "none");
        for of in none.workloads.iter().filter(|of| of.name.starts_with("ipc-") || of.name.starts_with("msg-")) {
            let shown = ["selinux-enforcing", TOLLGATE].map(|name| percent(configuration(&results, name), &of.name).1);
            println!("  {}: SELinux {}, Tollgate {}", of.name, shown[0], shown[1]);
        }
        for name in MAKES {
            let decisions = workload(configuration(&results, COUNTED), name).decisions.clone().unwrap();
            let (asked, cached) = answers(&decisions);
            let share = 100.0 * cached as f64 / asked as f64;
            let figure = format!("{share:.3} % of {asked} in {} operations", decisions.operations);
            report(
                &format!("{name}: decisions from the cache"),
                &figure,
                &format!("more than {CACHED} %"),
                share > CACHED,
            );
            assert!(share > CACHED, "{decisions:?}");
        }
    }
}
