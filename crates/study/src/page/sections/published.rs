//! What somebody else printed, beside what was found here.

use std::collections::BTreeMap;

use crate::{
    page::model::{Block, Cell, Fold, Group, Row, Section, Table},
    results::Results,
    study::Published,
    table::cell::figure,
};

/// A table a source and kernel that it is beside; nothing if the study names no published figures.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let folds: Vec<Block> = results.study.published.iter().filter_map(|published| source(results, published)).collect();
    (!folds.is_empty()).then_some(Section { id: "published", title: "Published figures beside ours", blocks: folds })
}

fn source(results: &Results, published: &Published) -> Option<Block> {
    let kernels = results.kernels().into_iter().filter(|kernel| published.is_beside(kernel));
    let tables = kernels.flat_map(|k| [baseline(results, published, k), percent(results, published, k)]);
    let blocks: Vec<Block> = tables.flatten().map(Block::Table).collect();
    (!blocks.is_empty()).then(|| Block::Fold(Fold { title: published.source.clone(), open: true, blocks }))
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

fn percent(results: &Results, published: &Published, kernel: &str) -> Option<Table> {
    let group = |(workload, printed): (&String, &BTreeMap<String, f64>)| {
        let row = |(name, printed): (&String, &f64)| {
            let own = results.find(kernel, name);
            let ours = own.and_then(|c| super::percent(c, workload));
            Row {
                name: name.clone(),
                cells: vec![
                    super::difference(*printed),
                    own.map_or_else(super::absent, |c| super::cell(results, c, workload)),
                    ours.map_or_else(super::absent, |ours| Cell::Number(format!("{:+.1}", ours - printed))),
                ],
            }
        };
        Group { heading: Some(workload.clone()), rows: printed.iter().map(row).collect() }
    };
    let groups: Vec<Group> = published.percent.iter().map(group).collect();
    (!groups.is_empty()).then(|| Table {
        caption: format!(
            "Linux {kernel}: difference to {} in percent, and how many percentage points ours is from the printed one",
            results.study.baseline
        ),
        corner: "configuration",
        columns: ["printed", "ours", "apart"].map(str::to_owned).to_vec(),
        groups,
    })
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
}
