//! Builds results from raw records.

use tollgate_bench::{counter::Counter, job::Measured};

use super::{BootResult, ConfigurationResult, Environment, Results, SCHEMA, Unmeasured, WorkloadResult, oracle};
use crate::{
    caches::curves,
    record::{BootRecord, Outcome},
    stats::{
        exact::{Difference, Layouts, Over, Summary},
        moments::mean,
        quantile::median,
        wall,
    },
    study::{Figure, StudyHeader},
};

/// The data of a run, apart from its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The unit of the samples.
    pub clock: Counter,
    /// `emulation`, `kvm` or `host`.
    pub accelerator: String,
    /// Why this accelerator was chosen, for people.
    pub accelerator_reason: String,
    /// When the study was started, in RFC 3339.
    pub started: String,
    /// What results keep of the study.
    pub study: StudyHeader,
    /// The environment in which it runs.
    pub environment: Environment,
}

/// The results of the boots so far, in the study's order of kernels and configurations. Records of another clock, and of
/// kernels and configurations that the study does not name, are ignored.
pub fn build(head: Head, boots: &[BootRecord]) -> Results {
    let mut configurations = Vec::new();
    for kernel in &head.study.kernels {
        let of = |name: &str| -> Vec<&BootRecord> {
            let mut own: Vec<&BootRecord> = boots
                .iter()
                .filter(|b| b.clock == head.clock && b.kernel == *kernel && b.configuration == name)
                .collect();
            own.sort_by_key(|b| b.boot);
            own
        };
        let baseline = of(&head.study.baseline);
        let mut here: Vec<ConfigurationResult> = Vec::new();
        for name in &head.study.configurations {
            let own = of(name);
            if let Some(first) = own.first() {
                here.push(configuration(head.study.figure, first, &baseline, &own));
            }
        }
        compare_with_baseline(&head, &mut here);
        configurations.extend(here);
    }
    Results {
        schema: SCHEMA,
        clock: head.clock,
        accelerator: head.accelerator,
        accelerator_reason: head.accelerator_reason,
        started: head.started,
        study: head.study,
        environment: head.environment,
        configurations,
    }
}

fn configuration(
    figure: Figure,
    first: &BootRecord,
    baseline: &[&BootRecord],
    own: &[&BootRecord],
) -> ConfigurationResult {
    let report = own.iter().find_map(|b| b.report());
    let (oracle, void) = oracle::judge(baseline, own);
    let mut notes: Vec<String> = void.map(|reason| format!("oracle void: {reason}")).into_iter().collect();
    notes.extend(own.iter().filter_map(|boot| failure(boot)));
    notes.extend(unsettled(own));
    let (workloads, unmeasured) = workloads(figure, own);
    ConfigurationResult {
        name: first.configuration.clone(),
        kernel: first.kernel.clone(),
        release: report.map(|r| r.release.clone()).unwrap_or_default(),
        lsm: report.map_or_else(|| first.lsm.clone(), |r| r.lsm.clone()),
        confinement: report.map(|r| r.confinement.clone()).unwrap_or_default(),
        command_line: first.command_line.clone(),
        oracle,
        notes,
        workloads,
        unmeasured,
    }
}

fn failure(boot: &BootRecord) -> Option<String> {
    match &boot.outcome {
        Outcome::Failed(reason) => Some(format!("{} failed: {reason}", boot.which())),
        Outcome::Report(_) => None,
    }
}

/// A note about boots in which the kernel was still at work: how many, and which tasks in the first.
fn unsettled(own: &[&BootRecord]) -> Option<String> {
    let settled = |boot: &&&BootRecord| boot.report().and_then(|r| r.settled.clone()).filter(|s| !s.quiet);
    let noisy: Vec<&BootRecord> = own.iter().filter(|boot| settled(boot).is_some()).copied().collect();
    let first = noisy.first().and_then(|boot| settled(&boot))?;
    Some(format!(
        "in {} of {} boots the kernel was not quiet when measuring began; after {} ms of waiting the busiest were (ms) {}",
        noisy.len(),
        own.len(),
        first.waited_ms,
        first.busiest.join(", ")
    ))
}

/// The workloads of all boots, in the order of first appearance.
fn workloads(figure: Figure, own: &[&BootRecord]) -> (Vec<WorkloadResult>, Vec<Unmeasured>) {
    let mut names: Vec<&str> = Vec::new();
    for measured in own.iter().filter_map(|b| b.report()).flat_map(|r| &r.workloads) {
        if !names.contains(&measured.name.as_str()) {
            names.push(&measured.name);
        }
    }
    let mut results = Vec::new();
    let mut unmeasured = Vec::new();
    for name in names {
        let runs: Vec<(&BootRecord, &Measured)> =
            own.iter().filter_map(|b| Some((*b, b.report()?.workloads.iter().find(|w| w.name == name)?))).collect();
        let error = runs.iter().find_map(|(boot, m)| Some((boot, m.error.as_ref()?)));
        let result = workload(figure, name, &runs);
        if let Some((boot, error)) = error {
            let reason = if result.is_some() { format!("{}: {error}", boot.which()) } else { error.clone() };
            unmeasured.push(Unmeasured { name: name.to_owned(), reason });
        } else if result.is_none() {
            unmeasured.push(Unmeasured { name: name.to_owned(), reason: "no sample was taken".to_owned() });
        }
        results.extend(result);
    }
    (results, unmeasured)
}

/// `None` if no boot has a sample. A workload that ended with an error keeps no samples, because it did not do its work.
fn workload(figure: Figure, name: &str, runs: &[(&BootRecord, &Measured)]) -> Option<WorkloadResult> {
    let mut boots = Vec::new();
    let mut figures = Vec::new();
    let mut errors = Vec::new();
    let mut spreads = Vec::new();
    let mut samples: Vec<f64> = Vec::new();
    let sound = runs.iter().filter(|(_, m)| m.error.is_none());
    for (boot, measured) in sound {
        let Some(summary) = Summary::of(&measured.samples) else { continue };
        boots.push(BootResult {
            boot: boot.boot,
            min: summary.min,
            median: summary.median,
            mean: summary.mean,
            samples: measured.samples.len(),
        });
        figures.push(match boot.clock {
            Counter::Instructions => figure.choose(measured.tasks, summary.min, summary.median, summary.mean),
            Counter::Wall => summary.median,
        });
        errors.push(summary.mean_error);
        spreads.push(summary.spread);
        samples.extend(&measured.samples);
    }
    let all = Summary::of(&samples)?;
    let over = Over::of(&figures)?;
    let (_, first) = runs.first()?;
    let mut decisions = runs.iter().find_map(|(_, measured)| measured.decisions.clone());
    // The checks themselves stay in the records.
    let asked = decisions.as_mut().and_then(|decisions| decisions.asked.take());
    Some(WorkloadResult {
        name: name.to_owned(),
        unit: first.unit.clone(),
        tasks: first.tasks,
        min: all.min,
        median: all.median,
        mean: all.mean,
        mean_error: error_over_boots(&errors),
        spread: median(&spreads)?,
        at_min: all.at_min,
        figure: over.figure,
        low: over.low,
        high: over.high,
        difference: None,
        decisions,
        caches: asked.map(|asked| curves(&asked)).unwrap_or_default(),
        boots,
        samples,
    })
}

/// The standard error of the mean over boots, from each boot's own; `None` if one of them has none.
fn error_over_boots(errors: &[Option<f64>]) -> Option<f64> {
    let squares: Vec<f64> = errors.iter().map(|error| error.map(|e| e * e)).collect::<Option<_>>()?;
    Some((mean(&squares)? / squares.len() as f64).sqrt())
}

fn compare_with_baseline(head: &Head, configurations: &mut [ConfigurationResult]) {
    let Some(baseline) = configurations.iter().find(|c| c.name == head.study.baseline).cloned() else { return };
    for configuration in configurations.iter_mut().filter(|c| c.name != baseline.name) {
        for workload in &mut configuration.workloads {
            let Some(reference) = baseline.workload(&workload.name) else { continue };
            workload.difference = match head.clock {
                Counter::Instructions => {
                    Difference::of_layouts(&reference.layouts(head.study.figure), &workload.layouts(head.study.figure))
                }
                Counter::Wall => wall::paired(&reference.rounds(), &workload.rounds()),
            };
        }
    }
}

impl WorkloadResult {
    fn layouts(&self, figure: Figure) -> Layouts {
        let of = |boot: &BootResult| figure.choose(self.tasks, boot.min, boot.median, boot.mean);
        let error = match figure {
            Figure::Minimum => 0.0,
            Figure::Mean => self.mean_error.unwrap_or_default(),
        };
        Layouts { figures: self.boots.iter().map(|boot| (boot.boot, of(boot))).collect(), error }
    }

    /// The median of each round on the wall clock.
    pub(crate) fn rounds(&self) -> wall::Rounds {
        self.boots.iter().map(|b| (b.boot, b.median)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::results::{
        Oracle,
        examples::{boot, denying, failed, mean_results, results, wall_results},
    };
    use tollgate_bench::oracle::Act;

    #[test]
    fn builds_the_figure_as_the_median_over_paddings_and_keeps_the_range() {
        let built = results(&[
            boot("none", 2).measured("stat", &[3916., 3930.]),
            boot("none", 0).measured("stat", &[3900., 3910.]),
            boot("none", 1).measured("stat", &[3904., 3904., 3999.]),
        ]);
        let stat = built.find("6.1", "none").unwrap().workload("stat").unwrap();
        assert_eq!((stat.figure, stat.low, stat.high), (3904.0, 3900.0, 3916.0));
        assert_eq!((stat.min, stat.at_min, stat.median), (3900.0, 1, 3910.0));
        assert_eq!(stat.boots.iter().map(|b| b.boot).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(stat.samples, [3900., 3910., 3904., 3904., 3999., 3916., 3930.]);
        assert_eq!(stat.difference, None);
    }

    #[test]
    fn builds_the_figure_from_means_where_the_study_says_so() {
        let built = mean_results(&[
            boot("none", 0).measured("stat", &[100., 100., 160.]),
            boot("none", 1).measured("stat", &[100., 100., 100.]),
            boot("yama", 0).measured("stat", &[200.]),
        ]);
        let stat = built.find("6.1", "none").unwrap().workload("stat").unwrap();
        assert_eq!((stat.figure, stat.low, stat.high), (110.0, 100.0, 120.0));
        assert_eq!((stat.min, stat.mean, stat.boots[0].mean), (100.0, 110.0, 120.0));
        // The first boot's error is 20, the second's 0; that of their mean, half of 20.
        assert!((stat.mean_error.unwrap() - 10.0).abs() < 1e-9, "{stat:?}");
        let yama = built.find("6.1", "yama").unwrap().workload("stat").unwrap();
        assert_eq!(yama.mean_error, None);
        let percent = |n: f64| (n * 10.0).round() / 10.0;
        let difference = yama.difference.unwrap();
        // Against padding 0 alone: 80 of 120, and twice the error of 10.
        assert_eq!([difference.low, difference.percent, difference.high].map(percent), [50.0, 66.7, 83.3]);
    }

    #[test]
    fn compares_each_configuration_with_the_baseline_of_its_own_kernel() {
        let built = results(&[
            boot("none", 0).measured("stat", &[4000.]),
            boot("tomoyo", 0).measured("stat", &[5000.]),
            boot("none", 0).on("6.12").measured("stat", &[2000.]),
            boot("tomoyo", 0).on("6.12").measured("stat", &[3000.]),
        ]);
        let percent =
            |kernel| built.find(kernel, "tomoyo").unwrap().workload("stat").unwrap().difference.unwrap().percent;
        assert_eq!((percent("6.1"), percent("6.12")), (25.0, 50.0));
    }

    #[test]
    fn keeps_the_reason_of_what_could_not_be_measured() {
        let built = results(&[
            boot("none", 0).measured("exec", &[1.0]),
            boot("landlock", 0).broken("exec", "execve /x: Permission denied"),
        ]);
        let landlock = built.find("6.1", "landlock").unwrap();
        assert!(landlock.workloads.is_empty());
        assert_eq!(landlock.unmeasured[0].name, "exec");
        assert_eq!(landlock.unmeasured[0].reason, "execve /x: Permission denied");
    }

    #[test]
    fn says_which_padding_could_not_be_measured_when_others_could() {
        let built =
            results(&[boot("none", 0).measured("exec", &[7.0]), boot("none", 1).broken("exec", "out of memory")]);
        let none = built.find("6.1", "none").unwrap();
        assert_eq!(none.workload("exec").unwrap().samples, [7.0]);
        assert_eq!(none.unmeasured[0].reason, "padding 1: out of memory");
    }

    #[test]
    fn notes_a_boot_that_failed() {
        let built = results(&[boot("none", 0).measured("stat", &[1.0]), failed("tomoyo", "the guest panicked")]);
        let tomoyo = built.find("6.1", "tomoyo").unwrap();
        assert_eq!(tomoyo.notes, ["padding 0 failed: the guest panicked"]);
        assert_eq!(tomoyo.oracle, Oracle::None);
    }

    #[test]
    fn marks_the_oracle_and_notes_why_it_is_void() {
        let built = results(&[
            boot("none", 0).tried(Act::OpenForbidden, None),
            denying("landlock", Act::OpenForbidden, 13).tried(Act::OpenForbidden, None),
        ]);
        let landlock = built.find("6.1", "landlock").unwrap();
        assert_eq!(landlock.oracle, Oracle::Void);
        assert_eq!(landlock.notes, ["oracle void: open-forbidden succeeded, errno 13 was due (padding 0)"]);
    }

    #[test]
    fn pairs_rounds_on_the_wall_clock() {
        let boots: Vec<_> = (0..10u32)
            .flat_map(|round| {
                let base = f64::from(100 + 20 * (round % 3));
                [
                    boot("none", round).wall().measured("stat", &[base]),
                    boot("tomoyo", round).wall().measured("stat", &[base * 1.5]),
                ]
            })
            .collect();
        let built = wall_results(&boots);
        let difference = built.find("6.1", "tomoyo").unwrap().workload("stat").unwrap().difference.unwrap();
        assert!((difference.percent - 50.0).abs() < 1e-9, "{difference:?}");
    }

    #[test]
    fn writes_whole_numbers_as_integers_and_reads_them_back() {
        let built = results(&[
            boot("none", 0).measured("stat", &[3916., 3917.5]),
            boot("tomoyo", 0).measured("stat", &[3999., 4000.]),
        ]);
        let text = serde_json::to_string(&built).unwrap();
        assert!(text.contains(r#""samples":[3916,3917.5]"#), "{text}");
        assert!(text.contains(r#""min":3916,"#), "{text}");
        assert!(text.contains(r#""clock":"instructions""#), "{text}");
        assert_eq!(serde_json::from_str::<crate::results::Results>(&text).unwrap(), built);
    }
}
