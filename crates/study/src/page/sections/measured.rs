//! Section: what was measured, where and how.

use tollgate_bench::counter::Counter;

use crate::{
    page::{
        model::{Block, Cell, Fold, Group, Row, Section, Table},
        rows,
    },
    results::{Oracle, Results},
    study::Figure,
    table::workloads,
};

/// Always present, because figures without this section would be meaningless.
pub(in crate::page) fn section(results: &Results) -> Section {
    let mut blocks = vec![Block::Facts(facts(results))];
    if results.configurations.is_empty() {
        blocks.push(Block::Text("Nothing has been measured yet.".to_owned()));
    } else {
        blocks.push(fold("Configurations, and whether their policy was seen to deny", configurations(results)));
        blocks.push(fold("Operations", operations(results)));
    }
    blocks.push(Block::Fold(Fold {
        title: "Versions, and the study file".to_owned(),
        open: false,
        blocks: [vec![Block::Facts(versions(results))], study_file(results)].concat(),
    }));
    Section { id: "measured", title: "What was measured", blocks }
}

fn fold(title: &str, table: Table) -> Block {
    Block::Fold(Fold { title: title.to_owned(), open: false, blocks: vec![Block::Table(table)] })
}

/// What was measured, in names and values.
pub(in crate::page) fn facts(results: &Results) -> Vec<(&'static str, String)> {
    let study = &results.study;
    let count = |of: &dyn Fn(&crate::results::ConfigurationResult) -> usize| -> usize {
        results.configurations.iter().map(of).sum()
    };
    let boots = count(&|c| c.workloads.iter().map(|w| w.boots.len()).max().unwrap_or(0));
    let samples = count(&|c| c.workloads.iter().map(|w| w.samples.len()).sum());
    let clock = match results.clock {
        Counter::Instructions => "instructions: what the guest executes, counted exactly; blind to caches and branches",
        Counter::Wall => "wall: nanoseconds, with 95 % confidence intervals",
    };
    let figure = match (results.clock, study.figure) {
        (Counter::Wall, _) => "median over rounds",
        (Counter::Instructions, Figure::Minimum) => {
            "minimum; the median of CPU time without idle where tasks wait for one another"
        }
        (Counter::Instructions, Figure::Mean) => "mean, with what the kernel puts off and its timer ticks",
    };
    let planned = study.configurations.len() * study.kernels.len();
    let measured = results.kernels().iter().map(|k| workloads(results, k).len()).max().unwrap_or(0);
    vec![
        ("Clock", clock.to_owned()),
        ("Figure", figure.to_owned()),
        ("Kernels", kernels(results).join(", ")),
        ("Compared with", format!("{} (the baseline)", study.baseline)),
        ("Kernels \u{d7} configurations", format!("{} of {planned}", results.configurations.len())),
        ("Workloads", measured.to_string()),
        ("Boots", format!("{boots} of {}", planned * study.boots as usize)),
        ("Samples", grouped(samples)),
        ("Executed by", format!("{} ({})", results.accelerator, results.accelerator_reason)),
        ("Started", results.started.clone()),
    ]
}

/// `uname -r` of each kernel, or its name if no boot reported it.
fn kernels(results: &Results) -> Vec<String> {
    let release = |kernel: &&str| {
        let known = results.on(kernel).map(|c| c.release.as_str()).find(|release| !release.is_empty());
        known.unwrap_or(kernel).to_owned()
    };
    results.kernels().iter().map(release).collect()
}

/// A number with its thousands separated by a space that does not break.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join("\u{202f}")
}

fn configurations(results: &Results) -> Table {
    let row = |c: &crate::results::ConfigurationResult| Row {
        name: c.name.clone(),
        cells: [
            c.lsm.clone(),
            match c.oracle {
                Oracle::Held => "yes, in every boot",
                Oracle::Void => "no: void",
                Oracle::None => "has nothing to deny",
            }
            .to_owned(),
            c.confinement.clone(),
            c.notes.join("; "),
        ]
        .map(Cell::Words)
        .to_vec(),
    };
    let group =
        |kernel: &&str| Group { heading: Some(format!("Linux {kernel}")), rows: results.on(kernel).map(row).collect() };
    Table {
        caption:
            "Configurations: the active modules, whether what the policy must deny was denied, and what was set up"
                .to_owned(),
        corner: "configuration",
        columns: ["modules", "seen to deny", "set-up", "notes"].map(str::to_owned).to_vec(),
        groups: results.kernels().iter().map(group).collect(),
    }
}

fn operations(results: &Results) -> Table {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for kernel in results.kernels() {
        for workload in rows::single(results, kernel) {
            let name = workload.split(':').next().unwrap_or(workload);
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, rows::about(workload).unwrap_or("not in this program's catalogue")));
            }
        }
    }
    let row =
        |(name, about): &(&str, &str)| Row { name: (*name).to_owned(), cells: vec![Cell::Words((*about).to_owned())] };
    Table {
        caption: "What one operation is. A name's suffixes say where: file system (tmpfs if none), depth (d3 if none), network".to_owned(),
        corner: "operation",
        columns: vec!["what it does".to_owned()],
        groups: vec![Group { heading: None, rows: names.iter().map(row).collect() }],
    }
}

fn versions(results: &Results) -> Vec<(&'static str, String)> {
    let environment = &results.environment;
    let images = environment.kernels.iter().map(|k| format!("{} {}", k.package, k.version).trim_end().to_owned());
    let mut facts = vec![
        (
            "Tollgate",
            match &environment.revision {
                Some(revision) => format!("{}, revision {revision}", environment.tollgate),
                None => environment.tollgate.clone(),
            },
        ),
        ("Kernel packages", images.collect::<Vec<_>>().join(", ")),
        ("Other packages", environment.packages.join(", ")),
        ("QEMU", environment.qemu.clone().unwrap_or_else(|| "not used".to_owned())),
        ("Host", environment.machine()),
    ];
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

fn study_file(results: &Results) -> Vec<Block> {
    let text = results.study.text.trim();
    if text.is_empty() { Vec::new() } else { vec![Block::Listing(text.to_owned())] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_thousands_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]);
    }
}
