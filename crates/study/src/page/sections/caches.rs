//! Section: what caches of other sizes would have answered.

use crate::{
    caches::DOMAINS,
    page::model::{Axis, Block, Cell, Chart, Fold, Group, Line, Row, Section, Table},
    results::Results,
    table::caches::{Curves, cells, curves, heads},
};

/// Charts and tables per workload; `None` if no checks were recorded.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let what = "The checks of one domain were recorded and then asked of caches of other sizes. With more domains, each makes the \
                same checks in turns, with contexts and files of its own. Nanoseconds are by the price of what answers.";
    let mut folds: Vec<Fold> = Vec::new();
    for kernel in results.kernels() {
        for curves in curves(results, kernel) {
            let title = format!("{} on Linux {kernel}", curves.workload);
            if folds.last().is_none_or(|fold| fold.title != title) {
                folds.push(Fold { title, open: folds.is_empty(), blocks: Vec::new() });
            }
            if let Some(fold) = folds.last_mut() {
                fold.blocks.extend([Block::Charts(vec![chart(&curves)]), Block::Table(table(&curves))]);
            }
        }
    }
    let blocks: Vec<Block> = folds.into_iter().map(Block::Fold).collect();
    (!blocks.is_empty()).then(|| Section {
        id: "caches",
        title: "Caches of other sizes",
        blocks: [vec![Block::Text(what.to_owned())], blocks].concat(),
    })
}

/// Sizes at equal distances, because each is a multiple of the last.
fn chart(curves: &Curves) -> Chart {
    let line = |(place, domains): (usize, &u32)| Line {
        name: domains.to_string(),
        style: place,
        points: curves
            .rows
            .iter()
            .enumerate()
            .filter_map(|(at, (_, figures))| Some((at as f64, *figures.get(place)?)))
            .collect(),
    };
    Chart {
        title: curves.caption.clone(),
        remark: String::new(),
        summary: format!("A line for each number of domains: {}. The table below has the figures.", curves.caption),
        across: Axis {
            title: curves.corner.to_owned(),
            ticks: curves.rows.iter().enumerate().map(|(at, (size, _))| (at as f64, size.to_string())).collect(),
        },
        up: String::new(),
        lines: DOMAINS.iter().enumerate().map(line).collect(),
        dots: Vec::new(),
    }
}

fn table(curves: &Curves) -> Table {
    let row = |cells: Vec<String>| {
        let mut cells = cells.into_iter();
        Row { name: cells.next().unwrap_or_default(), cells: cells.map(Cell::Number).collect() }
    };
    Table {
        caption: format!("{}: {}", curves.workload, curves.caption),
        corner: curves.corner,
        columns: heads(curves).split_off(1),
        groups: vec![Group { heading: None, rows: cells(curves).into_iter().map(row).collect() }],
    }
}

#[cfg(test)]
mod tests {
    use tollgate_bench::asked::{Asked, Question};

    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn draws_a_line_for_each_number_of_domains() {
        let question = Question { inode: 0, source: 32, target: 33, class: 6 };
        let asked = Asked { questions: vec![question], order: vec![0; 3000] };
        let built = results(&[
            boot("none", 0).measured("stat", &[1.0]),
            boot("counted", 0).measured("stat", &[1.0]).decided(5, &[("files", 1, 0)]).asked(asked),
        ]);
        let section = section(&built).unwrap();
        let [Block::Text(_), Block::Fold(fold)] = &section.blocks[..] else { panic!("{section:?}") };
        let [Block::Charts(charts), Block::Table(table), ..] = &fold.blocks[..] else { panic!("{fold:?}") };
        assert_eq!(charts[0].lines.len(), DOMAINS.len());
        assert_eq!(charts[0].lines[0].points.len(), table.groups[0].rows.len());
    }

    #[test]
    fn is_left_out_where_nothing_was_recorded() {
        assert!(section(&results(&[boot("none", 0).measured("stat", &[1.0])])).is_none());
    }
}
