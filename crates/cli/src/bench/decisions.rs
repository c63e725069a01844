//! `tollgate bench decisions`: times decisions on this machine's processor.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use tollgate_enforcer::cost::{Bench, Part, Times};
use tollgate_policy::built::Built;
use tollgate_study::{
    machine::Machine,
    policies as own,
    stats::{
        exact::Summary,
        quantile::{ascending, median, quantile},
    },
};

use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Decisions {
    /// A built policy; or CIL, a module package or a binary policy, which is built first [default: Tollgate's own]
    policy: Option<PathBuf>,
    /// How often each part is timed
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Print JSON, with the time of every run
    #[arg(long)]
    json: bool,
}

/// What times are read without knowing.
#[derive(Debug, Serialize)]
struct Conditions {
    #[serde(flatten)]
    machine: Machine,
    /// Whether the kernel has compiled the BPF programs.
    jit: bool,
    /// `net.core.bpf_jit_harden`, which makes compiled programs slower unless it is 0.
    jit_harden: String,
    policy: String,
    questions: usize,
    runs: u32,
}

pub(crate) fn run(arguments: &Decisions) -> anyhow::Result<ExitCode> {
    let (built, policy) = match &arguments.policy {
        Some(path) => (policies::open(path)?, path.display().to_string()),
        None => (Built::from_bytes(&own::own()?)?, "Tollgate's own policy".to_owned()),
    };
    let mut bench = Bench::load(built)?;
    let conditions = Conditions {
        machine: Machine::this(),
        jit: bench.is_compiled()?,
        jit_harden: fs::read_to_string("/proc/sys/net/core/bpf_jit_harden").unwrap_or_default().trim().to_owned(),
        policy,
        questions: bench.questions(),
        runs: arguments.runs,
    };
    let figures = figures(&bench.run(arguments.runs)?);
    if arguments.json {
        output::json(&as_json(&conditions, &figures))?;
    } else {
        output::write(&text(&conditions, &figures))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The figures of one part, in nanoseconds a decision.
#[derive(Debug, Serialize)]
struct Figures {
    part: &'static str,
    least: f64,
    median: f64,
    /// The range between the 10th and the 90th percentile of the runs, in percent of the median.
    spread: f64,
    /// The median of the differences to the part that decides nothing, in the same run.
    net: Option<f64>,
    /// Of the questions alone, without the clock.
    by_question: Option<ByQuestion>,
    samples: Vec<f64>,
}

/// The distribution over questions; each counts with its median over runs.
#[derive(Debug, Serialize)]
struct ByQuestion {
    median: f64,
    p95: f64,
    greatest: f64,
}

const fn name(part: Part) -> &'static str {
    match part {
        Part::Nothing => "nothing",
        Part::HitFile => "hit-file",
        Part::Hit => "hit",
        Part::Miss => "miss",
        Part::Tables => "tables",
        Part::NothingInUserSpace => "nothing-user",
        Part::TablesInUserSpace => "tables-user",
    }
}

const fn about(part: Part) -> &'static str {
    match part {
        Part::Nothing => "BPF, an empty function in the loop",
        Part::HitFile => "BPF, the caches of tasks and of files",
        Part::Hit => "BPF, the access vector cache",
        Part::Miss => "BPF, the tables, and the answer is cached",
        Part::Tables => "BPF, the evaluator of the tables alone",
        Part::NothingInUserSpace => "user space, an empty function",
        Part::TablesInUserSpace => "user space, the same evaluator",
    }
}

/// Whether each question has its own way through the tables. What a cache answers takes less than a reading of the clock.
const fn differs_by_question(part: Part) -> bool {
    matches!(part, Part::Miss | Part::Tables | Part::TablesInUserSpace)
}

fn figures(all: &[Times]) -> Vec<Figures> {
    let floor = |times: &Times| all.iter().find(|other| other.part == times.part.floor());
    all.iter().filter_map(|times| figures_of(times, floor(times)?)).collect()
}

/// `None`: there was no run.
fn figures_of(times: &Times, floor: &Times) -> Option<Figures> {
    let summary = Summary::of(&times.runs)?;
    let differences: Vec<f64> = times.runs.iter().zip(&floor.runs).map(|(time, floor)| time - floor).collect();
    let net = if times.part == floor.part { None } else { median(&differences) };
    Some(Figures {
        part: name(times.part),
        least: summary.min,
        median: summary.median,
        spread: summary.spread,
        net,
        by_question: if differs_by_question(times.part) { by_question(times, floor) } else { None },
        samples: times.runs.clone(),
    })
}

fn by_question(times: &Times, floor: &Times) -> Option<ByQuestion> {
    let medians = |times: &Times| -> Vec<f64> { times.each.iter().filter_map(|runs| median(runs)).collect() };
    let clock = median(&medians(floor))?;
    let sorted = ascending(&medians(times));
    let at = |part| quantile(&sorted, part).map(|time| time - clock);
    Some(ByQuestion { median: at(0.5)?, p95: at(0.95)?, greatest: at(1.0)? })
}

fn text(conditions: &Conditions, figures: &[Figures]) -> String {
    let Conditions { machine, jit, jit_harden, policy, questions, runs } = conditions;
    let compiled = if *jit { "compiled by the kernel (JIT)" } else { "interpreted: the kernel's JIT is off" };
    let mut lines = vec![
        format!(
            "Wall clock, nanoseconds a decision; {runs} runs of {questions} different questions that the policy grants."
        ),
        format!("{}.", machine.in_words()),
        format!("BPF is {compiled}; net.core.bpf_jit_harden is {jit_harden}. Policy: {policy}."),
    ];
    if machine.is_emulated() {
        lines.push("This machine is emulated, so these are times of the emulator.".to_owned());
    }
    lines.push(String::new());
    lines.push(format!(
        "{:<13} {:>8} {:>8} {:>8} {:>8}   {:>10} {:>8} {:>9}",
        "", "LEAST", "MEDIAN", "SPREAD", "NET", "A QUESTION", "95 %", "GREATEST"
    ));
    lines.extend(figures.iter().map(row));
    lines.push(String::new());
    lines.extend(Part::ALL.map(|part| format!("{:<13} {}", name(part), about(part))));
    lines.push("NET: the median without the empty function of the same run. A QUESTION: the median of the".to_owned());
    lines.push("questions, timed one by one, without the clock.".to_owned());
    lines.join("\n") + "\n"
}

fn row(figures: &Figures) -> String {
    let Figures { part, least, median, spread, net, by_question, .. } = figures;
    let net = net.map_or_else(|| "-".to_owned(), |net| format!("{net:.1}"));
    let alone = by_question.as_ref().map_or_else(String::new, |alone| {
        format!("   {:>10.0} {:>8.0} {:>9.0}", alone.median, alone.p95, alone.greatest)
    });
    format!("{part:<13} {least:>8.1} {median:>8.1} {spread:>7.1}% {net:>8}{alone}")
}

fn as_json(conditions: &Conditions, figures: &[Figures]) -> serde_json::Value {
    json!({
        "tollgate": env!("CARGO_PKG_VERSION"),
        "revision": option_env!("TOLLGATE_REVISION"),
        "clock": "wall",
        "unit": "ns",
        "conditions": conditions,
        "parts": figures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(part: Part, runs: &[f64], each: &[&[f64]]) -> Times {
        Times { part, runs: runs.to_vec(), each: each.iter().map(|runs| runs.to_vec()).collect() }
    }

    fn measured() -> Vec<Figures> {
        figures(&[
            times(Part::Nothing, &[9.0, 10.0, 11.0], &[&[20.0, 21.0, 90.0], &[22.0, 21.0, 20.0]]),
            times(Part::Hit, &[14.0, 15.5, 17.0], &[&[25.0; 3], &[26.0; 3]]),
            times(Part::Miss, &[210.0, 230.0, 900.0], &[&[221.0, 9000.0, 220.0], &[421.0; 3]]),
        ])
    }

    #[test]
    fn takes_off_what_the_empty_function_takes() {
        let figures = measured();
        let net: Vec<_> = figures.iter().map(|figures| figures.net).collect();
        assert_eq!(net, [None, Some(5.5), Some(220.0)]);
    }

    #[test]
    fn takes_off_the_clock_and_disturbed_runs_of_single_questions() {
        let figures = measured();
        assert!(figures[0].by_question.is_none() && figures[1].by_question.is_none());
        let alone = figures[2].by_question.as_ref().unwrap();
        assert_eq!((alone.median, alone.p95, alone.greatest), (300.0, 390.0, 400.0));
    }

    #[test]
    fn compares_what_user_space_does_with_an_empty_function_there() {
        let all = [
            times(Part::Nothing, &[9.0], &[]),
            times(Part::NothingInUserSpace, &[1.0], &[]),
            times(Part::TablesInUserSpace, &[101.0], &[]),
        ];
        assert_eq!(figures(&all)[2].net, Some(100.0));
    }

    #[test]
    fn says_under_which_conditions_times_were_taken() {
        let machine =
            Machine { cpu: "A 9".into(), cores: 2, host: "6.1.0".into(), hypervisor: "QEMU's emulation".into() };
        let conditions =
            Conditions { machine, jit: false, jit_harden: "1".into(), policy: "small".into(), questions: 2, runs: 3 };
        let text = text(&conditions, &measured());
        for words in ["A 9, 2 processors, Linux 6.1.0", "JIT is off", "bpf_jit_harden is 1", "times of the emulator"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains("\nmiss             210.0    230.0"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
