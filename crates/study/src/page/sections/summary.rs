//! Section: what each module adds over all operations, the most frequent question.

use crate::{
    page::{
        model::{Block, Cell, Group, Row, Section, Table},
        rows,
    },
    results::{ConfigurationResult, Results},
    stats::quantile::median,
};

/// One row per kernel and configuration.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let kernels = results.kernels();
    let found: Vec<(&str, Vec<Spread<'_>>)> =
        kernels.iter().map(|kernel| (*kernel, spreads(results, kernel))).collect();
    let largest = found.iter().flat_map(|(_, spreads)| spreads).map(|s| s.median).fold(0.0, f64::max);
    let group = |(kernel, spreads): &(&str, Vec<Spread<'_>>)| Group {
        heading: (kernels.len() > 1).then(|| format!("Linux {kernel}")),
        rows: spreads.iter().map(|spread| spread.row(largest)).collect(),
    };
    let table = Table {
        caption:
            "Difference to the baseline in percent, over all operations but the controls; a depth sweep counts once"
                .to_owned(),
        corner: "configuration",
        columns: ["median", "", "least", "most", "operation with the most", "operations"].map(str::to_owned).to_vec(),
        groups: found.iter().filter(|(_, spreads)| !spreads.is_empty()).map(group).collect(),
    };
    (!table.groups.is_empty()).then(|| Section { id: "summary", title: "In short", blocks: vec![Block::Table(table)] })
}

/// A configuration's differences.
struct Spread<'r> {
    name: String,
    median: f64,
    least: f64,
    most: (f64, &'r str),
    count: usize,
}

impl Spread<'_> {
    fn row(&self, largest: f64) -> Row {
        let cells = vec![
            super::difference(self.median),
            Cell::Bar(if largest > 0.0 { (self.median / largest).clamp(0.0, 1.0) } else { 0.0 }),
            Cell::Number(super::signed(self.least)),
            Cell::Number(super::signed(self.most.0)),
            Cell::Words(self.most.1.to_owned()),
            Cell::Number(self.count.to_string()),
        ];
        Row { name: self.name.clone(), cells }
    }
}

fn spreads<'r>(results: &'r Results, kernel: &'r str) -> Vec<Spread<'r>> {
    let operations: Vec<&str> = rows::single(results, kernel).into_iter().filter(|w| !rows::is_control(w)).collect();
    super::others(results, kernel).into_iter().filter_map(|c| spread(c, &operations)).collect()
}

fn spread<'r>(configuration: &'r ConfigurationResult, operations: &[&'r str]) -> Option<Spread<'r>> {
    let differences: Vec<(f64, &str)> =
        operations.iter().filter_map(|w| Some((super::percent(configuration, w)?, *w))).collect();
    let percents: Vec<f64> = differences.iter().map(|(percent, _)| *percent).collect();
    Some(Spread {
        name: super::name(configuration),
        median: median(&percents)?,
        least: percents.iter().copied().fold(f64::INFINITY, f64::min),
        most: differences.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?,
        count: percents.len(),
    })
}
