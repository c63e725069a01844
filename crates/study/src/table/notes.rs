//! What stands below a table: the legend, and what a reader of the figures must know.

use tollgate_bench::counter::Counter;

use super::cell::{ABSENT, INCOMPARABLE, MIN_SHOWN_PERCENT, cell};
use crate::{
    results::{ConfigurationResult, Oracle, Results},
    stats::{
        quantile::median,
        wall::{FalseDifference, MIN_PAIRS},
    },
    study::{Figure, HOST_TWINS},
};

/// Baselines and the configuration that is the same machine once more.
const TWINS: [(&str, &str); 2] = [("none", "capability"), HOST_TWINS];

/// What could not be measured on a kernel and why, and what makes figures doubtful.
pub(crate) fn notes(results: &Results, kernel: &str) -> Vec<String> {
    let mut notes: Vec<(Vec<&str>, String)> = Vec::new();
    for configuration in results.on(kernel) {
        for text in about(results, configuration) {
            // What is true of several configurations is said once.
            match notes.iter_mut().find(|(_, known)| *known == text) {
                Some((names, _)) => names.push(&configuration.name),
                None => notes.push((vec![&configuration.name], text)),
            }
        }
    }
    let mut lines: Vec<String> =
        notes.into_iter().map(|(names, text)| format!("{}: {text}", names.join(", "))).collect();
    let missing: Vec<&str> = results
        .study
        .configurations
        .iter()
        .filter(|name| results.find(kernel, name).is_none())
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        lines.push(format!("not measured yet: {}; --resume goes on", missing.join(", ")));
    }
    lines
}

fn about(results: &Results, configuration: &ConfigurationResult) -> Vec<String> {
    let mut texts = configuration.notes.clone();
    if configuration.oracle == Oracle::Void && texts.is_empty() {
        texts.push("oracle void".to_owned());
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for unmeasured in &configuration.unmeasured {
        match reasons.iter_mut().find(|(reason, _)| *reason == unmeasured.reason) {
            Some((_, names)) => names.push(&unmeasured.name),
            None => reasons.push((&unmeasured.reason, vec![&unmeasured.name])),
        }
    }
    texts.extend(reasons.into_iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))));
    let boots = configuration.workloads.iter().map(|w| w.boots.len()).max().unwrap_or(0);
    if boots > 0 && (boots as u32) < results.study.boots {
        texts.push(format!("{boots} of {} boots so far", results.study.boots));
    }
    texts
}

/// What the figures are and how good they are.
pub(crate) fn legend(results: &Results, kernel: &str, workloads: &[&str]) -> Vec<String> {
    let mut lines = own_legend(results, kernel, workloads);
    for (number, table) in results.study.published.iter().enumerate().filter(|(_, table)| table.is_beside(kernel)) {
        let mark = results.study.mark(number).map_or(String::new(), |mark| format!(", {mark}"));
        lines.push(format!("(in brackets{mark}): {}.", table.source));
    }
    lines
}

/// The same of the study's own figures alone.
pub(crate) fn own_legend(results: &Results, kernel: &str, workloads: &[&str]) -> Vec<String> {
    let mut lines = vec![figures(results), machine(results, kernel)];
    if results.clock == Counter::Wall {
        lines.push(format!("Host: {}.", results.environment.machine()));
    }
    lines.extend(signs(results, kernel, workloads));
    lines.extend(match results.clock {
        Counter::Instructions => controls(results, kernel),
        Counter::Wall => false_difference(results, kernel),
    });
    lines
}

fn figures(results: &Results) -> String {
    let baseline = &results.study.baseline;
    match results.clock {
        Counter::Instructions => {
            let figure = match results.study.figure {
                Figure::Minimum => {
                    "minimum (median of CPU time without idle where tasks wait for one another); work that the kernel puts \
                     off is not in it"
                }
                Figure::Mean => {
                    "mean (of CPU time without idle where tasks wait for one another); work that the kernel puts off, and \
                     timer ticks, are in it"
                }
            };
            format!(
                "Clock: instructions. {baseline}: guest instructions per operation, {figure}; others: difference in percent."
            )
        }
        Counter::Wall => format!(
            "Clock: wall. {baseline}: nanoseconds per operation, median over rounds; others: difference in percent with \
             its 95 % confidence interval."
        ),
    }
}

fn machine(results: &Results, kernel: &str) -> String {
    let image = results.environment.kernels.iter().find(|image| image.kernel == kernel);
    let image = image.map(|i| format!("{} {}", i.package, i.version).trim_end().to_owned());
    let release = results.on(kernel).map(|c| c.release.as_str()).find(|r| !r.is_empty()).unwrap_or(kernel);
    let workloads = || results.on(kernel).flat_map(|c| &c.workloads);
    let samples = || workloads().flat_map(|w| &w.boots).map(|b| b.samples);
    let range = match (samples().min(), samples().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (Some(same), _) => same.to_string(),
        (None, _) => "no".to_owned(),
    };
    let spread = median(&workloads().map(|w| w.spread).collect::<Vec<_>>());
    format!(
        "Kernel {release}{}; accelerator {} ({}); boots per configuration: {}; {range} samples per workload and boot; in-run spread {}.",
        image.map_or(String::new(), |i| format!(" ({i})")),
        results.accelerator,
        results.accelerator_reason,
        results.study.boots,
        spread.map_or("unknown".to_owned(), |s| format!("{s:.2} % (median over workloads)")),
    )
}

/// Explains the signs that the table holds, and no others.
fn signs(results: &Results, kernel: &str, workloads: &[&str]) -> Vec<String> {
    let texts: Vec<String> =
        results.on(kernel).flat_map(|c| workloads.iter().map(|w| cell(results, c, w).text)).collect();
    let holds = |sign: &str| texts.iter().any(|t| t.split(' ').next() == Some(sign));
    let mut signs = Vec::new();
    if holds("~0") {
        signs.push(match results.clock {
            Counter::Instructions => match results.study.figure {
                Figure::Minimum => format!("~0: less than layout alone moves it, or than {MIN_SHOWN_PERCENT} %."),
                Figure::Mean => format!(
                    "~0: less than layout alone moves it, or than twice its standard error, or than {MIN_SHOWN_PERCENT} %."
                ),
            },
            Counter::Wall => format!("~0: the interval includes none, or less than {MIN_SHOWN_PERCENT} %."),
        });
    }
    if texts.iter().any(|t| t.contains('±')) {
        signs.push(match results.study.figure {
            Figure::Minimum => "±: what layout alone moves.".to_owned(),
            Figure::Mean => "±: what layout alone moves, or twice its standard error if that is more.".to_owned(),
        });
    }
    if holds(ABSENT) {
        signs.push(format!("{ABSENT}: not measured, see the notes."));
    }
    if holds(INCOMPARABLE) {
        signs.push(match results.clock {
            Counter::Instructions => format!("{INCOMPARABLE}: the baseline was not measured at the same padding."),
            Counter::Wall => format!("{INCOMPARABLE}: fewer than {MIN_PAIRS} rounds in common with the baseline."),
        });
    }
    if signs.is_empty() { Vec::new() } else { vec![signs.join(" ")] }
}

fn controls(results: &Results, kernel: &str) -> Vec<String> {
    let controls = results.controls(kernel);
    if controls.is_empty() {
        return Vec::new();
    }
    let configurations = results.on(kernel).filter(|c| !c.workloads.is_empty()).count();
    let names: Vec<&str> = controls.iter().map(|c| c.workload.as_str()).collect();
    let moved: Vec<String> = controls
        .iter()
        .filter(|c| !c.held())
        .map(|c| {
            let (low, high) = (c.lowest, c.highest);
            format!("{} {low} to {high} ({}, {})", c.workload, percent_of(low, high), c.highest_in)
        })
        .collect();
    let verdict = if moved.is_empty() { "yes".to_owned() } else { format!("no: {}", moved.join(", ")) };
    vec![format!("Controls {} equal under all {configurations} configurations: {verdict}.", names.join(", "))]
}

fn percent_of(low: f64, high: f64) -> String {
    super::cell::percent(100.0 * (high - low) / low)
}

fn false_difference(results: &Results, kernel: &str) -> Vec<String> {
    let twin = TWINS.iter().find(|(baseline, _)| *baseline == results.study.baseline).map(|(_, twin)| *twin);
    let Some((name, again)) = twin.and_then(|name| Some((name, results.find(kernel, name)?))) else {
        return Vec::new();
    };
    let differences: Vec<_> = again.workloads.iter().filter_map(|w| w.difference).collect();
    let line = FalseDifference::of(&differences).map(|f| {
        format!(
            "A/A: {name} is the baseline's own machine and seems to differ by {:.1} % (median over workloads), {:.1} % at \
             most; {} of {} workloads show no difference.",
            f.median, f.largest, f.nothing, f.workloads
        )
    });
    line.into_iter().collect()
}

/// Breaks a text into lines of at most `width` characters; all but the first are indented.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |l| l.chars().count());
        if line + 1 + word.chars().count() > width && line > 0 {
            lines.push(format!("  {word}"));
        } else if let Some(current) = lines.last_mut() {
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, failed, results};

    #[test]
    fn says_once_what_is_true_of_several() {
        let reason = "this kernel has no user namespace";
        let built = results(&[
            boot("none", 0).measured("stat", &[1.0]).broken("sh", reason).broken("exec", reason),
            boot("yama", 0).measured("stat", &[1.0]).broken("sh", reason).broken("exec", reason),
            failed("tomoyo", "the guest panicked"),
        ]);
        assert_eq!(
            notes(&built, "6.1"),
            ["none, yama: sh, exec: this kernel has no user namespace", "tomoyo: padding 0 failed: the guest panicked",]
        );
    }

    #[test]
    fn notes_what_an_interrupted_run_has_not_measured() {
        let mut built = results(&[boot("none", 0).measured("stat", &[1.0])]);
        built.study.configurations.push("yama".to_owned());
        built.study.boots = 3;
        assert_eq!(notes(&built, "6.1"), ["none: 1 of 3 boots so far", "not measured yet: yama; --resume goes on"]);
    }

    #[test]
    fn reports_a_control_that_moved_and_by_how_much() {
        let built = results(&[boot("none", 0).measured("null", &[300.]), boot("tomoyo", 0).measured("null", &[303.])]);
        assert_eq!(
            controls(&built, "6.1"),
            ["Controls null equal under all 2 configurations: no: null 300 to 303 (+1.0%, tomoyo)."]
        );
    }

    #[test]
    fn wraps_within_the_width_and_loses_no_word() {
        let text = "one two three four five six";
        let wrapped = wrap(text, 11);
        assert_eq!(wrapped, "one two\n  three\n  four five\n  six\n");
        assert_eq!(wrap("averyverylongword x", 5), "averyverylongword\n  x\n");
    }
}
