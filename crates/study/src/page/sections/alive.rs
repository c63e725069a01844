//! Section: overhead by the number of levels that are alive at once.

use crate::{
    page::model::{Axis, Block, Chart, Line, Section},
    results::{ConfigurationResult, Results},
    table::workloads,
};

/// The workloads' names begin with this; the number of levels follows.
const PREFIX: &str = "levels-";

/// One chart per kernel, with one line per configuration; `None` if nothing was measured with several numbers of levels.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let charts: Vec<Chart> = results.kernels().into_iter().filter_map(|kernel| chart(results, kernel)).collect();
    let what = "As many objects, each of a level of its own, are looked at in turn. A line that rises has no room for so many decisions.";
    (!charts.is_empty()).then(|| Section {
        id: "alive",
        title: "Overhead by the number of levels alive",
        blocks: vec![Block::Text(what.to_owned()), Block::Charts(charts)],
    })
}

fn chart(results: &Results, kernel: &str) -> Option<Chart> {
    let rows = workloads(results, kernel);
    let mut numbers: Vec<(u32, &str)> =
        rows.into_iter().filter_map(|row| Some((row.strip_prefix(PREFIX)?.parse().ok()?, row))).collect();
    numbers.sort_unstable();
    // Each doubling is as far.
    let position = |number: u32| f64::from(number).log2();
    let line = |own: &&ConfigurationResult| {
        let point = |(number, row): &(u32, &str)| Some((position(*number), super::percent(own, row)?));
        let points: Vec<(f64, f64)> = numbers.iter().filter_map(point).collect();
        (points.len() > 1).then(|| Line { name: super::name(own), style: super::style(results, &own.name), points })
    };
    let lines: Vec<Line> = super::others(results, kernel).iter().filter_map(line).collect();
    let ends = |line: &Line| (line.points[0].1, line.points[line.points.len() - 1].1);
    let words = |line: &Line| format!("{} {:+.1} to {:+.1}", line.name, ends(line).0, ends(line).1);
    (!lines.is_empty()).then(|| Chart {
        title: format!("Linux {kernel}"),
        remark: String::new(),
        summary: format!(
            "Overhead on a look at a socket by the number of levels alive, Linux {kernel}, in percent: {}.",
            lines.iter().map(words).collect::<Vec<_>>().join(", ")
        ),
        across: Axis {
            title: "levels alive".to_owned(),
            ticks: numbers.iter().map(|(number, _)| (position(*number), number.to_string())).collect(),
        },
        up: "overhead, %".to_owned(),
        lines,
        dots: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn draws_a_line_by_the_number_of_levels_in_the_names() {
        let built = results(&[
            boot("none", 0).measured("levels-1", &[100.]).measured("levels-16", &[1000.]).measured("stat", &[7.]),
            boot("selinux-mls", 0)
                .measured("levels-16", &[2000.])
                .measured("levels-1", &[110.])
                .measured("stat", &[8.]),
        ]);
        let section = section(&built).unwrap();
        let [_, Block::Charts(charts)] = &section.blocks[..] else { panic!("{section:?}") };
        let points: Vec<(f64, f64)> = charts[0].lines[0].points.iter().map(|(x, y)| (*x, y.round())).collect();
        assert_eq!(points, [(0.0, 10.0), (4.0, 100.0)]);
        let only = results(&[boot("none", 0).measured("stat", &[7.]), boot("selinux-mls", 0).measured("stat", &[8.])]);
        assert_eq!(super::section(&only), None);
    }
}
