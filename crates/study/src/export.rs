//! Results in the formats of other programs: CSV and Markdown.

use std::fmt::Write;

use crate::{
    results::{ConfigurationResult, Results, WorkloadResult},
    stats::exact::Difference,
    study::Printed,
    table::{caches, cell, decisions, notes, workloads},
    word::word,
};

/// One row per kernel, configuration and workload, with all figures; RFC 4180, with a head.
pub fn csv(results: &Results) -> String {
    let mut text = String::new();
    push(&mut text, COLUMNS.iter().map(|(head, _)| (*head).to_owned()));
    for row in results.configurations.iter().flat_map(|configuration| rows(results, configuration)) {
        push(&mut text, COLUMNS.iter().map(|(_, value)| value(&row)));
    }
    text
}

/// What a row is about: a workload that was measured or could not be, or a configuration without any.
struct Row<'r> {
    results: &'r Results,
    configuration: &'r ConfigurationResult,
    workload: &'r str,
    measured: Option<&'r WorkloadResult>,
    note: String,
}

/// A column's head, and its value in a row.
type Column = (&'static str, fn(&Row<'_>) -> String);

const COLUMNS: &[Column] = &[
    ("kernel", |row| row.configuration.kernel.clone()),
    ("configuration", |row| row.configuration.name.clone()),
    ("lsm", |row| row.configuration.lsm.clone()),
    ("oracle", |row| word(&row.configuration.oracle)),
    ("workload", |row| row.workload.to_owned()),
    ("unit", |row| row.measured(|of| of.unit.clone())),
    ("tasks", |row| row.measured(|of| word(&of.tasks))),
    ("min", |row| row.measured(|of| of.min.to_string())),
    ("median", |row| row.measured(|of| of.median.to_string())),
    ("mean", |row| row.measured(|of| of.mean.to_string())),
    ("mean_error", |row| row.measured(|of| of.mean_error.map_or(String::new(), |error| error.to_string()))),
    ("spread", |row| row.measured(|of| of.spread.to_string())),
    ("at_min", |row| row.measured(|of| of.at_min.to_string())),
    ("samples", |row| row.measured(|of| of.samples.len().to_string())),
    ("figure", |row| row.measured(|of| of.figure.to_string())),
    ("low", |row| row.measured(|of| of.low.to_string())),
    ("high", |row| row.measured(|of| of.high.to_string())),
    ("difference", |row| row.differs(|by| by.absolute)),
    ("percent", |row| row.differs(|by| by.percent)),
    ("percent_low", |row| row.differs(|by| by.low)),
    ("percent_high", |row| row.differs(|by| by.high)),
    ("published", |row| row.published(|printed| printed.figure.to_string())),
    ("published_source", |row| row.published(|printed| printed.source.to_owned())),
    ("note", |row| row.note.clone()),
];

/// The rows of a configuration: its workloads, and those that could not be measured, with the reason.
fn rows<'r>(results: &'r Results, configuration: &'r ConfigurationResult) -> Vec<Row<'r>> {
    let row = |workload, measured, note| Row { results, configuration, workload, measured, note };
    let reason = |name: &str| {
        let unmeasured = configuration.unmeasured.iter().find(|unmeasured| unmeasured.name == name);
        unmeasured.map_or(String::new(), |unmeasured| unmeasured.reason.clone())
    };
    let measured = configuration.workloads.iter().map(|of| row(of.name.as_str(), Some(of), reason(&of.name)));
    let absent = configuration.unmeasured.iter().filter(|of| configuration.workload(&of.name).is_none());
    let rows: Vec<_> = measured.chain(absent.map(|of| row(of.name.as_str(), None, of.reason.clone()))).collect();
    if rows.is_empty() { vec![row("", None, configuration.notes.join("; "))] } else { rows }
}

impl Row<'_> {
    fn measured(&self, value: fn(&WorkloadResult) -> String) -> String {
        self.measured.map_or(String::new(), value)
    }

    fn differs(&self, value: fn(Difference) -> f64) -> String {
        let difference = self.measured.and_then(|of| of.difference);
        difference.map_or(String::new(), |difference| value(difference).to_string())
    }

    /// What was printed elsewhere, by each source.
    fn published(&self, value: fn(&Printed<'_>) -> String) -> String {
        let Row { results, configuration, workload, .. } = self;
        let printed = results.study.printed(&configuration.kernel, &configuration.name, workload);
        let values = printed.filter(|_| self.measured.is_some()).map(|printed| value(&printed));
        values.collect::<Vec<_>>().join("; ")
    }
}

fn push(text: &mut String, fields: impl Iterator<Item = String>) {
    let quoted: Vec<String> = fields
        .map(|f| if f.contains([',', '"', '\r', '\n']) { format!("\"{}\"", f.replace('"', "\"\"")) } else { f })
        .collect();
    text.push_str(&quoted.join(","));
    text.push_str("\r\n");
}

/// One table per kernel, with all configurations side by side, a legend and notes.
pub fn markdown(results: &Results) -> String {
    let mut text = format!("# {}\n", escape(&results.study.title));
    for kernel in results.kernels() {
        let names = workloads(results, kernel);
        let (baseline, others): (Vec<_>, Vec<_>) = results.on(kernel).partition(|c| c.name == results.study.baseline);
        let columns: Vec<&ConfigurationResult> = baseline.into_iter().chain(others).collect();
        let heads: Vec<String> = columns.iter().map(|c| escape(&c.name)).collect();
        let _ = write!(text, "\n## Linux {}\n\n| workload | {} |\n", escape(kernel), heads.join(" | "));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(columns.len()));
        for name in &names {
            let cells: Vec<String> = columns.iter().map(|c| escape(&cell::cell(results, c, name).text)).collect();
            let _ = writeln!(text, "| {} | {} |", escape(name), cells.join(" | "));
        }
        text.push('\n');
        for line in notes::legend(results, kernel, &names).into_iter().chain(notes::notes(results, kernel)) {
            let _ = writeln!(text, "- {}", escape(&line));
        }
        if let Some(baseline) = results.find(kernel, &results.study.baseline) {
            text.push_str(&baseline_in_full(baseline));
        }
        text.push_str(&counted(results, kernel));
        text.push_str(&cached(results, kernel));
    }
    text
}

/// What caches of other sizes would have answered; empty if no checks were recorded.
fn cached(results: &Results, kernel: &str) -> String {
    let mut text = String::new();
    for curves in caches::curves(results, kernel) {
        let heads = caches::heads(&curves);
        let _ = write!(
            text,
            "\n{}: {}.\n\n| {} |\n|{}\n",
            escape(&curves.workload),
            curves.caption,
            heads.join(" | "),
            "---:|".repeat(heads.len())
        );
        for row in caches::cells(&curves) {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
    }
    text
}

/// Decisions by object manager; empty if they were not counted.
fn counted(results: &Results, kernel: &str) -> String {
    let rows = decisions::rows(results, kernel);
    let Some(first) = rows.first() else { return String::new() };
    let heads = decisions::HEADS.join(" | ");
    let mut text =
        format!("\nCounted in {}:\n\n| {heads} |\n|---|---:|---|{}\n", escape(&first.configuration), "---:|".repeat(4));
    for row in &rows {
        let _ = writeln!(text, "| {} |", decisions::cells(row).map(|cell| escape(&cell)).join(" | "));
    }
    text
}

/// The baseline's minimum, median and mean side by side, because each leaves something out.
fn baseline_in_full(baseline: &ConfigurationResult) -> String {
    let mut text = format!(
        "\n| {} | unit | minimum | samples at it | median | mean | its standard error | spread |\n|---|---|{}\n",
        escape(&baseline.name),
        "---:|".repeat(6)
    );
    for w in &baseline.workloads {
        let [min, median, mean] = [w.min, w.median, w.mean].map(cell::figure);
        let error = w.mean_error.map_or(cell::ABSENT.to_owned(), |e| format!("{e:.1}"));
        let (name, at_min, samples, spread) = (escape(&w.name), w.at_min, w.samples.len(), w.spread);
        let _ = writeln!(
            text,
            "| {name} | {} | {min} | {at_min} of {samples} | {median} | {mean} | {error} | {spread:.2} % |",
            w.unit
        );
    }
    text
}

/// Escapes the characters that have a meaning in Markdown.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | '~' | '\\' => escaped.extend(['\\', c]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, failed, results};

    fn example() -> Results {
        results(&[
            boot("none", 0).measured("stat", &[4000., 4001.]),
            boot("yama", 0).measured("stat", &[5000., 5001.]).broken("exec", "no \"true\", sorry"),
            failed("tomoyo", "panic"),
        ])
    }

    fn heads() -> Vec<&'static str> {
        COLUMNS.iter().map(|(head, _)| *head).collect()
    }

    #[test]
    fn has_the_csv_columns_that_docs_results_md_lists() {
        let page = include_str!("../../../docs/results.md");
        let (_, list) = page.split_once("The columns are, in this order:\n\n").unwrap();
        let lines = list.lines().take_while(|line| line.starts_with("- `"));
        let listed = lines.flat_map(|line| line.split('`').nth(1).unwrap().split(", "));
        assert_eq!(listed.collect::<Vec<_>>(), heads());
    }

    #[test]
    fn writes_a_csv_row_for_all_that_was_asked_for() {
        let text = csv(&example());
        let rows: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(rows[0], heads().join(","));
        assert_eq!(
            rows[1],
            "6.1,none,capability,none,stat,instructions,one,4000,4000.5,4000.5,0.5,0.01999750031246549,1,2,4000,4000,4000,,,,,,,"
        );
        assert!(
            rows[2].starts_with("6.1,yama,capability,none,stat,") && rows[2].ends_with(",1000,25,25,25,,,"),
            "{}",
            rows[2]
        );
        assert!(rows[3].starts_with("6.1,yama,") && rows[3].ends_with(",\"no \"\"true\"\", sorry\""), "{}", rows[3]);
        assert_eq!(rows[4], "6.1,tomoyo,capability,none,,,,,,,,,,,,,,,,,,,,padding 0 failed: panic");
        assert_eq!(rows.len(), 5);
    }

    #[test]
    fn writes_the_same_number_of_fields_in_each_csv_row() {
        for row in csv(&example()).split_terminator("\r\n").filter(|r| !r.contains('"')) {
            assert_eq!(row.split(',').count(), COLUMNS.len(), "{row}");
        }
    }

    #[test]
    fn writes_a_markdown_table_with_its_notes() {
        let text = markdown(&example());
        assert!(
            text.starts_with(
                "# An example\n\n## Linux 6.1\n\n| workload | none | yama | tomoyo |\n|---|---:|---:|---:|\n"
            ),
            "{text}"
        );
        assert!(text.contains("\n| stat | 4000 | +25.0% | - |\n"), "{text}");
        assert!(text.contains("\n- yama: exec: no \"true\", sorry\n"), "{text}");
        let stat = "\n| stat | instructions | 4000 | 1 of 2 | 4000 | 4000 | 0.5 | 0.02 % |\n";
        assert!(text.ends_with(stat), "{text}");
    }

    #[test]
    fn escapes_what_markdown_would_take_for_its_own() {
        assert_eq!(escape("a|b\n~0 [x]"), "a\\|b \\~0 \\[x]");
    }
}
