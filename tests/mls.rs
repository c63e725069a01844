//! What multilevel security costs: studies/mls.toml and studies/mls-levels.toml, and what docs/mls.md says of them.

use std::path::Path;

use tollgate_study::{
    results::{Oracle, Results},
    study::Study,
};

use crate::program::{Scratch, assert_all_measured, configuration, guests, results, word};

/// The configurations in which packets have labels.
const LABELLED: [&str; 4] = ["selinux-mls-cipso", "selinux-mls-local", "tollgate-mls-cipso", "tollgate-mls-sealed"];

fn study(name: &str) -> Study {
    Study::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../studies/{name}.toml"))).unwrap()
}

/// In each boot of these, receivers saw the labels of senders, and those of the baseline saw none.
#[track_caller]
fn assert_labels_flow(results: &Results) {
    for of in results.configurations.iter().filter(|of| !["none", "capability"].contains(&of.name.as_str())) {
        assert_eq!(of.oracle, Oracle::Held, "{} on {}: {:?}", of.name, of.kernel, of.notes);
    }
}

#[test]
fn repeats_each_of_the_fifteen_printed_rows() {
    let study = study("mls");
    let rows = &study.published[0].rows;
    assert_eq!(rows.len(), 15);
    assert!(rows.iter().all(|row| !row.workloads.is_empty() && row.figures.contains_key("selinux-mls")));
    // The printed table has -48.61 % of the rate.
    let row = rows.iter().find(|row| row.test == "netperf over loopback").unwrap();
    let labelled = row.percent(&study.baseline, "selinux-mls-cipso").unwrap();
    assert!((labelled - 100.0 * (1.0 / (1.0 - 0.4861) - 1.0)).abs() < 0.05, "{labelled}");
}

#[test]
fn puts_workloads_at_levels_with_up_to_all_categories() {
    let study = study("mls-levels");
    for base in ["selinux-mls", "selinux-mls-cipso", "tollgate-mls", "tollgate-mls-cipso"] {
        let levels: Vec<&str> =
            study.own.iter().filter(|own| own.base == base).filter_map(|own| own.level.as_deref()).collect();
        assert!(levels.contains(&"s0") && levels.contains(&"s0:c0.c1023"), "{base}: {levels:?}");
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn measures_labelled_streams_at_the_highest_level_whose_labels_are_seen_to_flow() {
    let scratch = Scratch::new();
    let names = [&["none"], &LABELLED[..], &["highest"]].concat();
    let text = format!(
        "name = \"mls-once\"\ntitle = \"Once\"\nkernels = [\"6.1\"]\nconfigurations = {names:?}\n\
         workloads = [\"null\", \"copy-1:ext4\", \"ring:veth\"]\nsamples = 1\n\
         [[configuration]]\nname = \"highest\"\nbase = \"selinux-mls-cipso\"\nlevel = \"s15:c0.c1023\"\n"
    );
    let (file, out) = (scratch.file("once.toml", &text), scratch.path("out"));
    let place = guests::take(2);
    scratch.run(&["study", "run", word(&file), "--out", word(&out), "--timeout", "1200"]).with(0);
    drop(place);
    let results = results(&out);
    assert_all_measured(&results);
    assert_labels_flow(&results);
    let seen = configuration(&results, "highest");
    assert!(seen.workloads.iter().all(|of| !of.samples.is_empty()), "{seen:?}");
}

/// The whole study, beside what was printed in 2010.
#[cfg(feature = "long")]
mod whole {
    use super::*;
    use crate::program::report;

    const CALCULATION: [&str; 4] = ["digests", "prime", "ray-trace", "fft"];
    const STORAGE: [&str; 5] = ["find:ext4", "read-direct:ext4", "read-cached:ext4", "copy-1m:ext4", "copy-1:ext4"];
    const STREAMS: [&str; 3] = ["stream-16k", "stream-1k", "stream-1"];
    /// Configurations, and the same at the highest level.
    const LEVELS: [(&str, &str); 3] = [
        ("selinux-mls", "selinux-mls-high"),
        ("selinux-mls-cipso", "selinux-mls-cipso-high"),
        ("tollgate-mls", "tollgate-mls-high"),
    ];
    const MODULES: [&str; 2] = ["selinux-mls", "tollgate-mls"];

    /// The results of a study, or those in a folder of the named one if it has been run.
    fn measured(study: &str) -> Results {
        let scratch = Scratch::new();
        let run = || {
            let out = scratch.path("out");
            scratch.run(&["study", "run", study, "--out", word(&out), "--timeout", "3600"]).with(0);
            results(&out)
        };
        let results = std::env::var_os("TOLLGATE_RESULTS").map_or_else(run, |of| results(&Path::new(&of).join(study)));
        assert_all_measured(&results);
        results
    }

    struct On<'r> {
        results: &'r Results,
        kernel: &'r str,
    }

    impl On<'_> {
        fn figure(&self, name: &str, row: &str) -> f64 {
            self.results.find(self.kernel, name).unwrap().workload(row).unwrap().figure
        }

        /// How much more a row takes under a configuration than under another, in percent.
        fn percent(&self, name: &str, than: &str, row: &str) -> f64 {
            100.0 * (self.figure(name, row) / self.figure(than, row) - 1.0)
        }

        fn rows(&self) -> impl Iterator<Item = &str> {
            self.results.find(self.kernel, "none").unwrap().workloads.iter().map(|of| of.name.as_str())
        }

        fn claim(&self, what: &str, figure: &str, goal: &str, met: bool) {
            report(&format!("{}: {what}", self.kernel), figure, goal, met);
        }

        fn is_the_same_machine_again(&self) {
            for row in self.rows() {
                let apart = self.percent("capability", "none", row);
                let figure = format!("{apart:+.3} %");
                self.claim(&format!("{row} under capability"), &figure, "less than 0.1 %", apart.abs() < 0.1);
                assert!(apart.abs() < 0.1, "{row}: {apart}");
            }
            for row in ["null", "loop", "ray-trace", "fft"] {
                assert_eq!(self.percent("capability", "none", row), 0.0, "{row}");
            }
        }

        fn levels_do_not_matter(&self) {
            for (low, high) in LEVELS {
                for row in self.rows() {
                    let apart = self.percent(high, low, row);
                    let met = apart.abs() < 1.0;
                    self.claim(&format!("{row} under {high}"), &format!("{apart:+.2} %"), "less than 1 %", met);
                    // Only what is not cached depends on the level: the names of levels of many categories are read.
                    assert!(met || row == "find:ext4", "{row}: {apart}");
                }
            }
        }

        fn calculation_is_unaffected(&self) {
            // By the least sample: on 6.18, those of `digests` lie in two heaps, 0.16 % apart, without a module as well.
            let least = |name: &str, row| self.results.find(self.kernel, name).unwrap().workload(row).unwrap().min;
            for (name, row) in MODULES.iter().flat_map(|name| CALCULATION.map(|row| (*name, row))) {
                let apart = 100.0 * (least(name, row) / least("none", row) - 1.0);
                let met = apart.abs() < 0.1;
                self.claim(&format!("{row} under {name}"), &format!("{apart:+.3} %"), "less than 0.1 %", met);
                assert!(met, "{row}: {apart}");
            }
        }

        fn one_byte_copies_are_the_worst_row_of_storage(&self) {
            for name in MODULES {
                let of = |row: &&str| self.percent(name, "none", row);
                let worst = STORAGE.iter().max_by(|a, b| of(a).total_cmp(&of(b))).unwrap();
                let figure = format!("{worst} {:+.1} %, copy-1:ext4 {:+.1} %", of(worst), of(&"copy-1:ext4"));
                self.claim(
                    &format!("worst row of storage under {name}"),
                    &figure,
                    "copy-1:ext4",
                    *worst == "copy-1:ext4",
                );
            }
        }

        fn labels_cost_more_or_less_than_hooks(&self) {
            for row in STREAMS {
                let hooks = self.percent("selinux-mls", "none", row);
                let all = self.percent("selinux-mls-cipso", "none", row);
                let figure = format!("hooks {hooks:+.1} points, labels {:+.1}", all - hooks);
                self.claim(&format!("{row} under SELinux"), &figure, "labels most of it", all - hooks > hooks);
                let ours = self.percent("tollgate-mls-sealed", "none", row);
                let figure = format!("{ours:+.1} %, SELinux {all:+.1} %");
                self.claim(
                    &format!("{row} with labels under Tollgate"),
                    &figure,
                    "half of SELinux's",
                    ours <= all / 2.0,
                );
            }
        }
    }

    #[test]
    fn tells_what_levels_cost_beside_the_printed_table() {
        let results = measured("mls");
        assert_labels_flow(&results);
        for kernel in results.kernels() {
            let on = On { results: &results, kernel };
            on.is_the_same_machine_again();
            on.levels_do_not_matter();
            on.calculation_is_unaffected();
            on.one_byte_copies_are_the_worst_row_of_storage();
            on.labels_cost_more_or_less_than_hooks();
        }
    }

    #[test]
    fn tells_what_many_levels_alive_cost() {
        let results = measured("mls-alive");
        for kernel in results.kernels() {
            let on = On { results: &results, kernel };
            for name in MODULES {
                let [few, many] = ["levels-16", "levels-1024"].map(|row| on.percent(name, "none", row));
                let met = (many - few).abs() < 1.0;
                let figure = format!("{few:+.1} % with 16 levels, {many:+.1} % with 1,024");
                on.claim(&format!("levels alive under {name}"), &figure, "the same", met);
                assert!(met || name == "selinux-mls", "{figure}");
            }
        }
    }
}
