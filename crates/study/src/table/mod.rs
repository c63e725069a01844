//! The table: workloads by configurations, within the width of a terminal.

pub(crate) mod caches;
pub(crate) mod cell;
pub(crate) mod decisions;
mod layout;
pub(crate) mod notes;

use tollgate_bench::{selection::Selection, workload::Group};

use crate::results::{ConfigurationResult, Oracle, Results};
use layout::{Column, Label};

/// The style of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The longest line, in characters.
    pub width: usize,
    /// Whether differences are coloured by size.
    pub colour: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 100, colour: false }
    }
}

/// The tables of all kernels, one after the other, each with its legend and notes.
pub fn render(results: &Results, style: Style) -> String {
    let mut text = format!("{}\n", results.study.title);
    for kernel in results.kernels() {
        text.push('\n');
        text.push_str(&on_kernel(results, kernel, style));
    }
    if results.configurations.is_empty() {
        text.push_str("\nNothing has been measured yet.\n");
    }
    text
}

fn on_kernel(results: &Results, kernel: &str, style: Style) -> String {
    let workloads = workloads(results, kernel);
    let column = |configuration: &ConfigurationResult| Column {
        head: head(configuration),
        cells: workloads.iter().map(|w| cell::cell(results, configuration, w)).collect(),
    };
    let baseline =
        results.find(kernel, &results.study.baseline).map_or_else(|| unmeasured(results, &workloads), column);
    let others: Vec<Column> = results.on(kernel).filter(|c| c.name != results.study.baseline).map(column).collect();
    let mut text = layout::lay_out(&labels(&workloads), &baseline, &others, style.width, style.colour);
    text.push('\n');
    for line in notes::legend(results, kernel, &workloads) {
        text.push_str(&notes::wrap(&line, style.width));
    }
    let notes = notes::notes(results, kernel);
    if !notes.is_empty() {
        text.push_str("\nNotes\n");
    }
    for note in notes {
        text.push_str(&notes::wrap(&note, style.width));
    }
    text.push_str(&decisions::render(results, kernel));
    text.push_str(&caches::render(results, kernel));
    text
}

/// The column of a baseline that is not measured yet.
fn unmeasured(results: &Results, workloads: &[&str]) -> Column {
    let absent = cell::Cell { text: cell::ABSENT.to_owned(), size: cell::Size::Nothing };
    Column { head: layout::head(&results.study.baseline), cells: vec![absent; workloads.len()] }
}

fn head(configuration: &ConfigurationResult) -> Vec<String> {
    let mut lines = layout::head(&configuration.name);
    if configuration.oracle == Oracle::Void {
        lines.push("(void)".to_owned());
    }
    lines
}

/// Every workload of a configuration on the kernel: by group, else in the study's order.
pub(crate) fn workloads<'a>(results: &'a Results, kernel: &'a str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for configuration in results.on(kernel) {
        let measured = configuration.workloads.iter().map(|w| w.name.as_str());
        for name in measured.chain(configuration.unmeasured.iter().map(|u| u.name.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.sort_by_key(|name| group(name).map_or(u8::MAX, |g| g as u8));
    names
}

/// `None` for a workload that the catalogue no longer has.
fn group(name: &str) -> Option<Group> {
    name.parse::<Selection>().ok().map(|s| s.workload.group)
}

/// The names of the rows, each with its group's heading if the group begins there.
pub(crate) fn labels(workloads: &[&str]) -> Vec<Label> {
    let mut last = None;
    let label = |name: &&str| {
        let heading = match group(name) {
            Some(Group::Control) => "controls",
            Some(Group::Files) => "files",
            Some(Group::Processes) => "processes",
            Some(Group::Communication) => "communication",
            Some(Group::Flask) => "flask",
            Some(Group::Mls) => "mls",
            Some(Group::Commands) => "commands",
            Some(Group::Calls) => "calls",
            None => "others",
        };
        let begins = last.replace(heading) != Some(heading);
        Label { name: (*name).to_owned(), heading: begins.then_some(heading) }
    };
    workloads.iter().map(label).collect()
}

#[cfg(test)]
mod tests;
