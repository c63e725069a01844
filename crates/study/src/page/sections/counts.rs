//! Section: how often hooks were called, by system call.

use std::collections::BTreeMap;

use crate::page::{
    material::Counts,
    model::{Block, Cell, Fold, Group, Row, Section, Table},
};

/// One table per workload or command; `None` if nothing was counted.
pub(in crate::page) fn section(counts: &[Counts]) -> Option<Section> {
    let fold = |(i, counts): (usize, &Counts)| {
        Block::Fold(Fold { title: title(counts), open: i == 0, blocks: blocks(counts) })
    };
    let folds: Vec<Block> = counts.iter().enumerate().map(fold).collect();
    let what = "Traced, not modelled: how often the kernel asked its security modules in each system call. Work that was put \
                off counts for the call that caused it.";
    (!folds.is_empty()).then(|| Section {
        id: "counts",
        title: "Hooks by system call",
        blocks: [vec![Block::Text(what.to_owned())], folds].concat(),
    })
}

fn title(counts: &Counts) -> String {
    let what = match (&counts.workload, &counts.command) {
        (Some(workload), _) => workload.clone(),
        (None, Some(command)) => command.join(" "),
        (None, None) => "unnamed".to_owned(),
    };
    if counts.kernel.is_empty() { what } else { format!("{what} on Linux {}", counts.kernel) }
}

fn blocks(counts: &Counts) -> Vec<Block> {
    let mut rows: Vec<(f64, Row)> = counts.calls.iter().map(|c| row(&c.call, Some(c.count), &c.hooks)).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
    if !counts.deferred.is_empty() {
        rows.push(row("for no call that was found", None, &counts.deferred));
    }
    let of = if counts.workload.is_some() { "operation" } else { "run of the command" };
    let table = Table {
        caption: match counts.runs {
            Some(runs) => format!("{}: a mean {of}, of {runs}", title(counts)),
            None => format!("{}: a mean {of}", title(counts)),
        },
        corner: "system call",
        columns: ["calls", "hook calls", "hook calls per call", "which"].map(str::to_owned).to_vec(),
        groups: vec![Group { heading: None, rows: rows.into_iter().map(|(_, row)| row).collect() }],
    };
    let mut blocks = vec![Block::Table(table)];
    if counts.lost > 0 {
        blocks.push(Block::Notes(vec![format!("{} events were lost: the counts are too small.", counts.lost)]));
    }
    blocks
}

/// A row, and the number of hooks in it.
fn row(name: &str, calls: Option<f64>, hooks: &BTreeMap<String, f64>) -> (f64, Row) {
    let total: f64 = hooks.values().sum();
    let mut sorted: Vec<(&String, &f64)> = hooks.iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let which: Vec<String> = sorted.iter().map(|(hook, count)| format!("{hook} {}", number(**count))).collect();
    let each = calls.filter(|calls| *calls > 0.0).map(|calls| total / calls);
    let cells = vec![
        calls.map_or_else(super::absent, |calls| Cell::Number(number(calls))),
        Cell::Number(number(total)),
        each.map_or_else(super::absent, |each| Cell::Number(number(each))),
        Cell::Words(which.join(", ")),
    ];
    (total, Row { name: name.to_owned(), cells })
}

/// A mean count, to a hundredth.
fn number(count: f64) -> String {
    // The sum of nothing is -0.
    let text = format!("{:.2}", count + 0.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::material::Call;

    fn counts() -> Counts {
        let call = |name: &str, count, hooks: &[(&str, f64)]| Call {
            call: name.into(),
            count,
            hooks: hooks.iter().map(|(hook, n)| ((*hook).to_owned(), *n)).collect(),
        };
        Counts {
            kernel: "6.1".into(),
            workload: None,
            command: Some(vec!["ls".into(), "-l".into()]),
            runs: Some(2),
            lost: 3,
            calls: vec![call("read", 1.5, &[]), call("openat", 2.0, &[("file_open", 2.0), ("inode_permission", 6.5)])],
            deferred: BTreeMap::from([("file_free".to_owned(), 1.0)]),
        }
    }

    #[test]
    fn puts_the_call_that_asks_most_first_and_what_was_put_off_last() {
        let section = section(&[counts()]).unwrap();
        let Block::Fold(fold) = &section.blocks[1] else { panic!("{section:?}") };
        assert_eq!(fold.title, "ls -l on Linux 6.1");
        let [Block::Table(table), Block::Notes(notes)] = &fold.blocks[..] else { panic!("{fold:?}") };
        let names: Vec<&str> = table.groups[0].rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["openat", "read", "for no call that was found"]);
        let text = |text: &str| Cell::Number(text.into());
        let words = Cell::Words("inode_permission 6.5, file_open 2".into());
        assert_eq!(table.groups[0].rows[0].cells, [text("2"), text("8.5"), text("4.25"), words]);
        assert_eq!(table.groups[0].rows[1].cells[1..3], [text("0"), text("0")]);
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn says_nothing_where_nothing_was_counted() {
        assert_eq!(section(&[]), None);
    }
}
