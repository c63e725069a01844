//! `tollgate policy verify`: compares the decision tables with another implementation of SELinux's decisions, or with the
//! rules.

mod all;

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use tollgate_policy::{
    built::Built,
    kernel::{Kernel, SELINUXFS},
    sepol,
    server::SecurityServer,
    verify::{self, Bpf, KernelPeer, Kind, Libsepol, Peer, Plan, Report},
};

use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// The implementation to compare with
    #[arg(long, value_enum, default_value_t = Against::Libsepol)]
    against: Against,
    /// Compare every decision with the policy's rules, which takes minutes for a large policy
    #[arg(long, conflicts_with_all = ["against", "decisions", "seed"])]
    all: bool,
    /// How many access decisions to compare; other decisions are compared in proportion
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..))]
    decisions: u32,
    /// The seed of the random questions
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Against {
    /// SELinux's own library, in this process
    Libsepol,
    /// The running kernel's SELinux, which must have loaded this policy
    Kernel,
    /// The running kernel's BPF, which runs the same evaluator
    Bpf,
}

impl Against {
    const fn name(self) -> &'static str {
        match self {
            Self::Libsepol => "libsepol",
            Self::Kernel => "kernel",
            Self::Bpf => "bpf",
        }
    }
}

/// The exit status if decisions differ.
const DIFFERENT: u8 = 1;

pub(crate) fn run(arguments: &Verify) -> anyhow::Result<ExitCode> {
    let built = policies::open(&arguments.policy)?;
    if arguments.all {
        return all::run(&built, arguments.json);
    }
    let plan = Plan { decisions: arguments.decisions as usize, seed: arguments.seed };
    let report = match arguments.against {
        Against::Libsepol => {
            // libsepol reads the policy in this process, so only an image that it has read in the confined child before.
            let read = sepol::read(&built.image).with_context(|| arguments.policy.display().to_string())?;
            compare(&built, plan, &mut Libsepol::new(&read.image))?
        }
        Against::Kernel => {
            let kernel = Kernel::open(SELINUXFS.as_ref(), &built.policy)?;
            compare(&built, plan, &mut KernelPeer::new(kernel))?
        }
        Against::Bpf => compare(&built, plan, &mut Bpf::new(&built.policy, &built.tables)?)?,
    };
    if arguments.json {
        output::json(&as_json(&report, arguments.against))?;
    } else {
        print(&report, arguments.against)?;
    }
    Ok(if report.count() == 0 { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

fn compare(built: &Built, plan: Plan, peer: &mut dyn Peer) -> anyhow::Result<Report> {
    let server = || Ok(SecurityServer::new(&built.policy, &built.tables, &built.levels)?);
    Ok(verify::run(&server, peer, plan)?)
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Access => "access",
        Kind::Extended => "ioctl",
        Kind::Transition => "transition",
        Kind::Member => "member",
        Kind::Change => "change",
        Kind::Validate => "validatetrans",
    }
}

/// Times of the batches.
#[derive(Debug, Serialize)]
struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self { least: *sorted.first()?, median: sorted[sorted.len() / 2], greatest: *sorted.last()? })
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} [{:.0}..{:.0}]", self.median, self.least, self.greatest)
    }
}

fn print(report: &Report, against: Against) -> anyhow::Result<()> {
    let peer = against.name();
    let nanoseconds = |values: &[f64]| Spread::of(values).map_or_else(|| "-".into(), |spread| spread.to_string());
    output::line(&format!(
        "{:<14}{:>9}{:>9}{:>11}   {:<22}{peer}, ns",
        "question", "compared", "granted", "mismatches", "ours, ns"
    ))?;
    for (kind, tally) in &report.tallies {
        output::line(&format!(
            "{:<14}{:>9}{:>9}{:>11}   {:<22}{}",
            name(*kind),
            tally.asked,
            tally.granted,
            tally.mismatches,
            nanoseconds(&tally.ours_ns),
            nanoseconds(&tally.peers_ns)
        ))?;
    }
    for (difference, count) in &report.differences {
        output::line(&format!("{count} not compared: {difference}"))?;
    }
    for mismatch in &report.mismatches {
        output::line(&format!("\n{} {}", name(mismatch.kind), mismatch.question))?;
        output::line(&format!("  ours: {}\n  {peer}: {}", mismatch.ours, mismatch.peers))?;
    }
    match report.count() {
        0 => output::line("0 mismatches"),
        count => output::line(&format!("\n{count} mismatches, the first {} above", report.mismatches.len())),
    }
}

fn as_json(report: &Report, against: Against) -> serde_json::Value {
    let tallies = report.tallies.iter().map(|(kind, tally)| {
        json!({
            "kind": name(*kind), "asked": tally.asked, "granted": tally.granted, "mismatches": tally.mismatches,
            "ours_ns": Spread::of(&tally.ours_ns), (against.name().to_owned() + "_ns"): Spread::of(&tally.peers_ns),
        })
    });
    let differences = report
        .differences
        .iter()
        .map(|(difference, count)| json!({ "reason": difference.to_string(), "not_compared": count }));
    let mismatches = report.mismatches.iter().map(|mismatch| {
        json!({
            "kind": name(mismatch.kind), "question": mismatch.question, "ours": mismatch.ours, against.name(): mismatch.peers,
        })
    });
    let access = report.of(Kind::Access);
    json!({
        "nanoseconds": { "ours": Spread::of(&access.ours_ns), against.name(): Spread::of(&access.peers_ns) },
        "questions": tallies.collect::<Vec<_>>(),
        "known_differences": differences.collect::<Vec<_>>(),
        "mismatches": mismatches.collect::<Vec<_>>(),
    })
}
