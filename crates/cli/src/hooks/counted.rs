//! Counts of hooks, as text for people.

use std::fmt::Write;

use tollgate_bench::tracing::{Asked, Report};

/// A report, with one line per system call.
pub(super) fn text(report: &Report) -> String {
    let mut text = head(report);
    let width = report.calls.iter().map(|call| call.call.len()).max().unwrap_or(0).max(11);
    let _ = writeln!(text, "\n{:width$} {:>10} {:>10}  hooks", "system call", "calls", "hook calls");
    for call in &report.calls {
        let asked: f64 = call.hooks.values().sum();
        let count = if call.count > 0.0 { number(call.count) } else { "-".to_owned() };
        let _ = writeln!(text, "{:width$} {count:>10} {:>10}  {}", call.call, number(asked), names(&call.hooks));
        for (hook, callers) in &call.callers {
            let _ = writeln!(text, "{:width$} {:>21}  {hook} by {}", "", "", names(callers));
        }
    }
    if !report.deferred.is_empty() {
        let asked: f64 = report.deferred.values().sum();
        let _ = writeln!(text, "{:width$} {:>10} {:>10}  {}", "deferred", "-", number(asked), names(&report.deferred));
    }
    let asked: f64 = report.hooks.values().sum();
    let calls: f64 = report.calls.iter().map(|call| call.count).sum();
    let _ = writeln!(text, "{:width$} {:>10} {:>10}  {}", "in all", number(calls), number(asked), names(&report.hooks));
    if report.pending > 0 {
        let _ = writeln!(text, "{} objects were not freed in time: their hooks are missing", report.pending);
    }
    if report.missed > 0 {
        let missed = report.missed;
        let _ = writeln!(
            text,
            "{missed} ends of objects were not recorded: up to so many hooks of deferred work may be missing"
        );
    }
    if report.running > 0 {
        let _ = writeln!(text, "{} tasks still run, and were counted until now", report.running);
    }
    if !report.untraceable.is_empty() {
        let _ = writeln!(text, "cannot be traced in this kernel: {}", report.untraceable.join(" "));
    }
    text
}

fn head(report: &Report) -> String {
    let what = match (&report.command, &report.workload) {
        (Some(command), _) => command.join(" "),
        (None, workload) => format!("an operation of {}", workload.as_deref().unwrap_or("?")),
    };
    let of = match (report.command.is_some(), report.runs) {
        (true, 1) => String::new(),
        (true, runs) => format!(", mean of {runs} runs"),
        (false, operations) => format!(", mean of {operations}"),
    };
    let cost = report.cost.map(|cost| format!("; {cost:.0} instructions untraced")).unwrap_or_default();
    let mut text = format!("{what} on {}{of}{cost}\n", report.kernel);
    if let Some(status) = report.status.iter().find(|status| **status != 0) {
        let _ = writeln!(text, "It ended with status {status}");
    }
    text
}

/// Names of hooks, the most frequent first.
fn names(asked: &Asked) -> String {
    let mut sorted: Vec<_> = asked.iter().collect();
    sorted.sort_by(|one, other| other.1.total_cmp(one.1).then(one.0.cmp(other.0)));
    let one = |(name, count): (&String, &f64)| {
        if *count == 1.0 { name.clone() } else { format!("{name}:{}", number(*count)) }
    };
    sorted.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A count, without decimals if it is whole.
fn number(count: f64) -> String {
    // A sum of nothing is -0.
    let count = count + 0.0;
    if count.fract() == 0.0 { format!("{count:.0}") } else { format!("{count:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_counts_and_whole_numbers_as_such() {
        assert_eq!(number(3.0), "3");
        assert_eq!(number(2.5), "2.50");
        assert_eq!(number([0.0; 0].iter().sum()), "0");
        let asked = Asked::from([("file_open".to_owned(), 1.0), ("inode_permission".to_owned(), 3.0)]);
        assert_eq!(names(&asked), "inode_permission:3 file_open");
    }
}
