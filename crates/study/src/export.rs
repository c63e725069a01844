//! Results in the formats of other programs: CSV and Markdown.

use std::fmt::Write;

use crate::{
    results::{ConfigurationResult, Results, WorkloadResult},
    table::{cell, decisions, notes, workloads},
    word::word,
};

/// One row per kernel, configuration and workload, with all figures; RFC 4180, with a head.
pub fn csv(results: &Results) -> String {
    let mut text = format!("{}\r\n", COLUMNS.join(","));
    for configuration in &results.configurations {
        for workload in &configuration.workloads {
            push(&mut text, &measured(results, configuration, workload));
        }
        let absent = configuration.unmeasured.iter().filter(|u| configuration.workload(&u.name).is_none());
        for unmeasured in absent {
            let mut fields = head(configuration, &unmeasured.name);
            fields.resize(COLUMNS.len() - 1, String::new());
            fields.push(unmeasured.reason.clone());
            push(&mut text, &fields);
        }
        if configuration.workloads.is_empty() && configuration.unmeasured.is_empty() {
            let mut fields = head(configuration, "");
            fields.resize(COLUMNS.len() - 1, String::new());
            fields.push(configuration.notes.join("; "));
            push(&mut text, &fields);
        }
    }
    text
}

const COLUMNS: [&str; 24] = [
    "kernel",
    "configuration",
    "lsm",
    "oracle",
    "workload",
    "unit",
    "tasks",
    "min",
    "median",
    "mean",
    "mean_error",
    "spread",
    "at_min",
    "samples",
    "figure",
    "low",
    "high",
    "difference",
    "percent",
    "percent_low",
    "percent_high",
    "published",
    "published_source",
    "note",
];

fn head(configuration: &ConfigurationResult, workload: &str) -> Vec<String> {
    let c = configuration;
    vec![c.kernel.clone(), c.name.clone(), c.lsm.clone(), word(&c.oracle), workload.to_owned()]
}

fn measured(results: &Results, configuration: &ConfigurationResult, workload: &WorkloadResult) -> Vec<String> {
    let w = workload;
    let mut fields = head(configuration, &w.name);
    fields.extend([w.unit.clone(), word(&w.tasks)]);
    fields.extend([w.min, w.median, w.mean].map(|n| n.to_string()));
    fields.push(w.mean_error.map_or(String::new(), |e| e.to_string()));
    fields.push(w.spread.to_string());
    fields.extend([w.at_min, w.samples.len()].map(|n| n.to_string()));
    fields.extend([w.figure, w.low, w.high].map(|n| n.to_string()));
    let difference = w.difference.map(|d| [d.absolute, d.percent, d.low, d.high].map(|n| n.to_string()));
    fields.extend(difference.unwrap_or_default());
    let printed: Vec<_> = results.study.printed(&configuration.kernel, &configuration.name, &w.name).collect();
    fields.push(joined(printed.iter().map(|p| p.figure.to_string())));
    fields.push(joined(printed.iter().map(|p| p.source.to_owned())));
    let note = configuration.unmeasured.iter().find(|u| u.name == w.name);
    fields.push(note.map_or(String::new(), |u| u.reason.clone()));
    fields
}

/// A field that holds several values.
fn joined(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join("; ")
}

fn push(text: &mut String, fields: &[String]) {
    let quoted: Vec<String> = fields
        .iter()
        .map(|f| if f.contains([',', '"', '\r', '\n']) { format!("\"{}\"", f.replace('"', "\"\"")) } else { f.clone() })
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

    #[test]
    fn writes_a_csv_row_for_all_that_was_asked_for() {
        let text = csv(&example());
        let rows: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(rows[0], COLUMNS.join(","));
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
