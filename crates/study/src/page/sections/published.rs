//! Section: published figures beside the study's own.

use std::collections::BTreeMap;

use crate::{
    page::model::{Block, Cell, Fold, Group, Row, Section, Table},
    results::{ConfigurationResult, Results},
    study::{PrintedRow, Published},
    table::{cell::figure, workloads},
};

/// One table per source and kernel; `None` if the study names no published figures.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let folds: Vec<Block> = results.study.published.iter().filter_map(|published| source(results, published)).collect();
    (!folds.is_empty()).then_some(Section { id: "published", title: "Published figures beside ours", blocks: folds })
}

fn source(results: &Results, published: &Published) -> Option<Block> {
    let kernels = results.kernels().into_iter().filter(|kernel| published.is_beside(kernel));
    let tables = kernels
        .flat_map(|k| [rows(results, published, k), baseline(results, published, k), percent(results, published, k)]);
    let mut blocks: Vec<Block> = tables.flatten().map(Block::Table).collect();
    if !published.rows.is_empty() {
        blocks.push(Block::Notes(published.rows.iter().enumerate().map(about).collect()));
    }
    (!blocks.is_empty()).then(|| Block::Fold(Fold { title: published.source.clone(), open: true, blocks }))
}

/// The printed table, row by row: by how much the same work took longer, printed and ours.
fn rows(results: &Results, published: &Published, kernel: &str) -> Option<Table> {
    let of = |row: &PrintedRow, name: &str| row.percent(&results.study.baseline, name);
    let others = super::others(results, kernel);
    let is_printed = |name: &str| published.rows.iter().any(|row| of(row, name).is_some());
    let columns = others.iter().flat_map(|own| {
        let printed = is_printed(&own.name).then(|| format!("{}, printed", own.name));
        printed.into_iter().chain([super::name(own)])
    });
    let cells = |row: &PrintedRow, workload: &str| -> Vec<Cell> {
        let own = |own: &&ConfigurationResult| {
            let printed = of(row, &own.name).map_or_else(super::absent, super::difference);
            let printed = is_printed(&own.name).then_some(printed);
            printed.into_iter().chain([super::cell(results, own, workload)]).collect::<Vec<Cell>>()
        };
        others.iter().flat_map(own).collect()
    };
    let row = |workload: &String, row: &PrintedRow| Row { name: workload.clone(), cells: cells(row, workload) };
    let group = |(number, printed): (usize, &PrintedRow)| Group {
        heading: Some(format!("{}. {}", number + 1, printed.test)),
        rows: printed.workloads.iter().map(|workload| row(workload, printed)).collect(),
    };
    (!published.rows.is_empty()).then(|| Table {
        caption: format!(
            "Linux {kernel}: how much more the same work takes than under {}, in percent",
            results.study.baseline
        ),
        corner: "row and workload",
        columns: columns.collect(),
        groups: published.rows.iter().enumerate().map(group).collect(),
    })
}

/// What repeats a row, and what does not.
fn about((number, row): (usize, &PrintedRow)) -> String {
    let printed = |(name, figure): (&String, &f64)| format!("{name} {figure}");
    let printed: Vec<String> = row.figures.iter().map(printed).collect();
    format!(
        "{}. {} (printed in {}: {}). The same: {}. Less: {}. Not said: {}.",
        number + 1,
        row.test,
        row.unit,
        printed.join(", "),
        row.same,
        row.scaled,
        row.unsaid
    )
}

fn baseline(results: &Results, published: &Published, kernel: &str) -> Option<Table> {
    let own = results.find(kernel, &results.study.baseline)?;
    let row = |(workload, printed): (&String, &f64)| {
        let ours = own.workload(workload).map(|w| w.figure);
        Row {
            name: workload.clone(),
            cells: vec![
                Cell::Number(figure(*printed)),
                ours.map_or_else(super::absent, |ours| Cell::Number(figure(ours))),
                ours.map_or_else(super::absent, |ours| super::difference(100.0 * (ours - printed) / printed)),
            ],
        }
    };
    let rows: Vec<Row> = published.baseline.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: format!(
            "Linux {kernel}: {} in {}, and how far ours is from the printed one in percent",
            own.name,
            super::unit(results)
        ),
        corner: "operation",
        columns: ["printed", "ours", "apart"].map(str::to_owned).to_vec(),
        groups: vec![Group { heading: None, rows }],
    })
}

/// A source with a single configuration has one row per operation, others have a group of rows.
fn percent(results: &Results, published: &Published, kernel: &str) -> Option<Table> {
    let operations = in_order(results, published, kernel);
    let mut names: Vec<&str> = operations.iter().flat_map(|(_, row)| row.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let cells = |workload: &str, name: &str, printed: f64| {
        let own = results.find(kernel, name);
        let ours = own.and_then(|c| super::percent(c, workload));
        vec![
            super::difference(printed),
            own.map_or_else(super::absent, |c| super::cell(results, c, workload)),
            ours.map_or_else(super::absent, |ours| Cell::Number(format!("{:+.1}", ours - printed))),
        ]
    };
    let (of, corner, groups) = if let [only] = names[..] {
        let row = |(workload, printed): &(&str, &BTreeMap<String, f64>)| {
            let printed = printed.get(only)?;
            Some(Row { name: (*workload).to_owned(), cells: cells(workload, only, *printed) })
        };
        let rows = operations.iter().filter_map(row).collect();
        (format!("{only}, difference"), "operation", vec![Group { heading: None, rows }])
    } else {
        let group = |(workload, printed): &(&str, &BTreeMap<String, f64>)| Group {
            heading: Some((*workload).to_owned()),
            rows: printed
                .iter()
                .map(|(name, p)| Row { name: name.clone(), cells: cells(workload, name, *p) })
                .collect(),
        };
        ("difference".to_owned(), "configuration", operations.iter().map(group).collect())
    };
    (!operations.is_empty()).then(|| Table {
        caption: format!(
            "Linux {kernel}: {of} to {} in percent, and how many percentage points ours is from the printed one",
            results.study.baseline
        ),
        corner,
        columns: ["printed", "ours", "apart"].map(str::to_owned).to_vec(),
        groups,
    })
}

/// Published operations: first those that the study measures, in its order, then the others.
fn in_order<'p>(
    results: &Results,
    published: &'p Published,
    kernel: &str,
) -> Vec<(&'p str, &'p BTreeMap<String, f64>)> {
    let measured = workloads(results, kernel);
    let place = |name: &str| measured.iter().position(|workload| *workload == name).unwrap_or(usize::MAX);
    let mut rows: Vec<_> = published.percent.iter().map(|(name, row)| (name.as_str(), row)).collect();
    rows.sort_by_key(|(name, _)| place(name));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn sets_ours_beside_the_printed_figure_and_says_how_far_apart() {
        let mut built =
            results(&[boot("none", 0).measured("stat", &[1000.]), boot("yama", 0).measured("stat", &[1250.])]);
        built.study.published = vec![Published {
            source: "a paper".into(),
            kernel: Some("6.1".into()),
            baseline: BTreeMap::from([("stat".into(), 800.0)]),
            percent: BTreeMap::from([("stat".into(), BTreeMap::from([("yama".into(), 27.0), ("gone".into(), 1.0)]))]),
            rows: Vec::new(),
        }];
        let texts = |table: &Table| -> Vec<String> {
            let cells = table.groups.iter().flat_map(|g| &g.rows).flat_map(|row| &row.cells);
            cells
                .map(|cell| match cell {
                    Cell::Difference { text, .. } | Cell::Number(text) => text.clone(),
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        let section = section(&built).unwrap();
        let [Block::Fold(fold)] = &section.blocks[..] else { panic!("{section:?}") };
        let [Block::Table(baseline), Block::Table(percent)] = &fold.blocks[..] else { panic!("{fold:?}") };
        assert_eq!(fold.title, "a paper");
        assert_eq!(texts(baseline), ["800", "1000", "+25.0"]);
        assert_eq!(texts(percent), ["+1.0", "-", "-", "+27.0", "+25.0", "-2.0"]);
    }

    #[test]
    fn sets_a_printed_row_beside_the_workloads_that_repeat_it_and_says_what_is_less() {
        let measured = |name: &str, of: f64| boot(name, 0).measured("stat", &[of]).measured("exec", &[of]);
        let mut built = results(&[measured("none", 1000.), measured("yama", 1250.), measured("tomoyo", 1500.)]);
        let words = |text: &str| text.to_owned();
        built.study.published = vec![Published {
            rows: vec![PrintedRow {
                test: words("a test"),
                unit: words("MB/s"),
                figures: BTreeMap::from([(words("none"), 100.0), (words("yama"), 80.0)]),
                workloads: vec![words("stat"), words("exec")],
                same: words("the calls"),
                scaled: words("the files"),
                unsaid: words("seeks"),
            }],
            source: words("a paper"),
            kernel: None,
            baseline: BTreeMap::new(),
            percent: BTreeMap::new(),
        }];
        let table = rows(&built, &built.study.published[0], "6.1").unwrap();
        assert_eq!(table.columns, ["yama, printed", "yama", "tomoyo"]);
        let [group] = &table.groups[..] else { panic!("{table:?}") };
        assert_eq!((group.heading.as_deref(), group.rows.len()), (Some("1. a test"), 2));
        let Cell::Difference { text, .. } = &group.rows[0].cells[0] else { panic!("{group:?}") };
        assert_eq!(text, "+25.0");
        let said = about((0, &built.study.published[0].rows[0]));
        assert_eq!(
            said,
            "1. a test (printed in MB/s: none 100, yama 80). The same: the calls. Less: the files. Not said: seeks."
        );
    }

    #[test]
    fn gives_a_source_of_one_configuration_a_row_an_operation_in_the_studys_order() {
        let measured =
            |name: &str, times: f64| boot(name, 0).measured("stat", &[1000. * times]).measured("exec", &[times]);
        let mut built = results(&[measured("none", 1.0), measured("yama", 1.25)]);
        let row = |percent| BTreeMap::from([("yama".to_owned(), percent)]);
        built.study.published = vec![Published {
            source: "a paper".into(),
            kernel: None,
            baseline: BTreeMap::new(),
            percent: BTreeMap::from([("exec".into(), row(1.0)), ("stat".into(), row(2.0)), ("gone".into(), row(3.0))]),
            rows: Vec::new(),
        }];
        let table = percent(&built, &built.study.published[0], "6.1").unwrap();
        assert!(table.caption.starts_with("Linux 6.1: yama, difference to none"), "{}", table.caption);
        let [group] = &table.groups[..] else { panic!("{table:?}") };
        let names: Vec<&str> = group.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["stat", "exec", "gone"]);
    }
}
