//! `tollgate policy verify --all`: compares all decisions of the tables with the rules.

use std::{process::ExitCode, time::Instant};

use serde_json::json;
use tollgate_policy::{
    built::Built,
    verify::all::{self, Decision, Report},
};

use super::DIFFERENT;
use crate::output;

pub(super) fn run(built: &Built, json: bool) -> anyhow::Result<ExitCode> {
    let since = Instant::now();
    let report = all::run(&mut built.server()?)?;
    let seconds = since.elapsed().as_secs_f64();
    if json {
        output::json(&as_json(&report, seconds))?;
    } else {
        print(&report, seconds)?;
    }
    Ok(if report.total().different == 0 { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

const fn name(decision: Decision) -> &'static str {
    match decision {
        Decision::Access => "access",
        Decision::Ioctl => "ioctl",
        Decision::Transition => "transition",
        Decision::Named => "transition by name",
        Decision::Member => "member",
        Decision::Change => "change",
        Decision::Context => "context",
        Decision::Validatetrans => "validatetrans",
    }
}

fn print(report: &Report, seconds: f64) -> anyhow::Result<()> {
    output::line(&format!("{:<20}{:>15}{:>15}{:>13}", "decision", "compared", "granted", "different"))?;
    for decision in Decision::ALL {
        let count = report.of(decision);
        output::line(&format!(
            "{:<20}{:>15}{:>15}{:>13}",
            name(decision),
            count.compared,
            count.granted,
            count.different
        ))?;
    }
    for difference in report.differences() {
        output::line(&format!("\n{} {}", name(difference.decision), difference.question))?;
        output::line(&format!("  tables: {}\n  rules: {}", difference.tables, difference.rules))?;
    }
    let total = report.total();
    match total.different {
        0 => output::line(&format!("0 differences in {} decisions, {seconds:.1} s", total.compared)),
        count => output::line(&format!(
            "\n{count} differences in {} decisions, the first {} above, {seconds:.1} s",
            total.compared,
            report.differences().count()
        )),
    }
}

fn as_json(report: &Report, seconds: f64) -> serde_json::Value {
    let decisions = Decision::ALL.map(|decision| {
        let count = report.of(decision);
        json!({
            "kind": name(decision), "compared": count.compared, "granted": count.granted, "different": count.different,
        })
    });
    let differences = report.differences().map(|difference| {
        json!({
            "kind": name(difference.decision), "question": difference.question, "tables": difference.tables,
            "rules": difference.rules,
        })
    });
    let total = report.total();
    json!({
        "seconds": seconds,
        "compared": total.compared,
        "different": total.different,
        "decisions": decisions,
        "differences": differences.collect::<Vec<_>>(),
    })
}
