//! A table of decisions by object manager and by what answered them, if they were counted.

use std::fmt::Write;

use tollgate_bench::decisions::Manager;

use crate::results::Results;

/// The decisions of one object manager, or of all, in a workload's operations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The configuration in which it was counted.
    pub(crate) configuration: String,
    /// The workload's selection.
    pub(crate) workload: String,
    /// The number of operations.
    pub(crate) operations: u64,
    /// The object manager; `all` is their sum.
    pub(crate) manager: String,
    /// Decisions answered by the access vector cache.
    pub(crate) cached: u64,
    /// Decisions answered by the security server.
    pub(crate) tables: u64,
}

impl Row {
    /// The sum of both.
    pub(crate) fn asked(&self) -> u64 {
        self.cached + self.tables
    }

    /// The cache's share in percent.
    pub(crate) fn share(&self) -> f64 {
        100.0 * self.cached as f64 / self.asked() as f64
    }
}

/// The counts on a kernel, by configuration and workload, with a sum if there are several managers.
pub(crate) fn rows(results: &Results, kernel: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for configuration in results.on(kernel) {
        for workload in &configuration.workloads {
            let Some(decisions) = &workload.decisions else { continue };
            let row = |manager: &str, cached, tables| Row {
                configuration: configuration.name.clone(),
                workload: workload.name.clone(),
                operations: decisions.operations,
                manager: manager.to_owned(),
                cached,
                tables,
            };
            let managers = &decisions.managers;
            rows.extend(managers.iter().map(|manager| row(&manager.name, manager.cached, manager.tables)));
            if managers.len() > 1 {
                let sum = |of: fn(&Manager) -> u64| -> u64 { managers.iter().map(of).sum() };
                rows.push(row("all", sum(|manager| manager.cached), sum(|manager| manager.tables)));
            }
        }
    }
    rows
}

/// The heads of the columns.
pub(crate) const HEADS: [&str; 7] =
    ["workload", "operations", "object manager", "decisions", "by cache", "by the tables", "cache's share"];

/// The cells of a row.
pub(crate) fn cells(row: &Row) -> [String; 7] {
    [
        row.workload.clone(),
        row.operations.to_string(),
        row.manager.clone(),
        row.asked().to_string(),
        row.cached.to_string(),
        row.tables.to_string(),
        format!("{:.3} %", row.share()),
    ]
}

/// The table as text; empty if nothing was counted.
pub(super) fn render(results: &Results, kernel: &str) -> String {
    let rows = rows(results, kernel);
    let Some(first) = rows.first() else { return String::new() };
    let cells: Vec<[String; 7]> = rows.iter().map(cells).collect();
    let width = |column: usize| {
        let below = cells.iter().map(|cells| cells[column].len());
        below.chain([HEADS[column].len()]).max().unwrap_or_default()
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = format!("\nDecisions by object manager, counted in {}\n", first.configuration);
    for line in std::iter::once(HEADS.map(str::to_owned)).chain(cells) {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            // Words are aligned left, numbers right. Writing to a string does not fail.
            let _ = match column {
                0 | 2 => write!(text, "  {cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn adds_up_what_several_managers_decided() {
        let built = results(&[
            boot("none", 0).measured("stat", &[1.0]),
            boot("counted", 0).measured("stat", &[1.0]).decided(5, &[("files", 990, 0), ("processes", 5, 5)]),
        ]);
        let rows = rows(&built, "6.1");
        let shown: Vec<[String; 7]> = rows.iter().map(cells).collect();
        assert_eq!(shown[0], ["stat", "5", "files", "990", "990", "0", "100.000 %"]);
        assert_eq!(shown[2], ["stat", "5", "all", "1000", "995", "5", "99.500 %"]);
        let text = render(&built, "6.1");
        assert!(text.contains("counted in counted\n") && text.lines().count() == 6, "{text}");
    }

    #[test]
    fn says_nothing_where_nothing_was_counted() {
        let built = results(&[boot("none", 0).measured("stat", &[1.0])]);
        assert_eq!(render(&built, "6.1"), "");
    }
}
