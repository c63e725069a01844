//! Overhead by the depth of the path that an operation resolves.

use crate::{
    page::{
        model::{Axis, Block, Cell, Chart, Fold, Group, Line, Row, Section, Table},
        rows::{self, Sweep},
    },
    results::{ConfigurationResult, Results},
};

/// One chart a kernel and operation, a line a module; the figures in a table below.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let mut blocks = Vec::new();
    for kernel in results.kernels() {
        let sweeps = rows::sweeps(results, kernel);
        if !sweeps.is_empty() {
            let title = format!("Linux {kernel}");
            blocks.push(Block::Fold(Fold {
                title,
                open: blocks.is_empty(),
                blocks: on_kernel(results, kernel, &sweeps),
            }));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    let what = "What resolves a path asks about each component of it. A line that rises pays for each; one that is flat pays once.";
    blocks.insert(0, Block::Text(what.to_owned()));
    Some(Section { id: "depth", title: "Overhead by depth of the path", blocks })
}

fn on_kernel(results: &Results, kernel: &str, sweeps: &[Sweep<'_>]) -> Vec<Block> {
    let others = super::others(results, kernel);
    let charts = sweeps.iter().filter_map(|sweep| chart(results, kernel, &others, sweep)).collect();
    let table = Table {
        caption: format!("Linux {kernel}: difference to {} in percent, by depth", results.study.baseline),
        corner: "configuration",
        columns: depths(sweeps).iter().map(|depth| format!("d{depth}")).collect(),
        groups: sweeps.iter().map(|sweep| group(&others, sweep, &depths(sweeps))).collect(),
    };
    let figures = Fold { title: "The figures".to_owned(), open: false, blocks: vec![Block::Table(table)] };
    vec![Block::Charts(charts), Block::Fold(figures)]
}

/// All depths that one of them was measured at, ascending.
fn depths(sweeps: &[Sweep<'_>]) -> Vec<u8> {
    let mut depths: Vec<u8> = sweeps.iter().flat_map(|s| &s.depths).map(|(depth, _)| *depth).collect();
    depths.sort_unstable();
    depths.dedup();
    depths
}

fn group(others: &[&ConfigurationResult], sweep: &Sweep<'_>, depths: &[u8]) -> Group {
    let cell = |c: &ConfigurationResult, depth: u8| {
        let workload = sweep.depths.iter().find(|(d, _)| *d == depth).map(|(_, workload)| *workload);
        workload
            .and_then(|w| super::percent(c, w))
            .map_or_else(super::absent, |percent| Cell::Number(super::signed(percent)))
    };
    let row = |c: &&ConfigurationResult| Row {
        name: super::name(c),
        cells: depths.iter().map(|depth| cell(c, *depth)).collect(),
    };
    Group { heading: Some(sweep.name.clone()), rows: others.iter().map(row).collect() }
}

/// `None` where nothing is compared.
fn chart(results: &Results, kernel: &str, others: &[&ConfigurationResult], sweep: &Sweep<'_>) -> Option<Chart> {
    let line = |c: &&ConfigurationResult| {
        let point = |(depth, workload): &(u8, &str)| Some((f64::from(*depth), super::percent(c, workload)?));
        let points: Vec<(f64, f64)> = sweep.depths.iter().filter_map(point).collect();
        let style = super::style(results, &c.name);
        (points.len() > 1).then(|| Line { name: super::name(c), style, points })
    };
    let lines: Vec<Line> = others.iter().filter_map(line).collect();
    let (first, last) = (sweep.depths.first()?.0, sweep.depths.last()?.0);
    let steepest = lines
        .iter()
        .filter_map(|l| Some((l.points.last()?.1 - l.points.first()?.1, l)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (from, to) = (steepest.1.points.first()?.1, steepest.1.points.last()?.1);
    Some(Chart {
        title: sweep.name.clone(),
        summary: format!(
            "Overhead of {} modules on {} at depths {first} to {last}, Linux {kernel}, in percent. The steepest is {}: {from:+.1} to {to:+.1}. All figures are in the table below the charts.",
            lines.len(),
            sweep.name,
            steepest.1.name,
        ),
        across: Axis {
            title: "components of the path".to_owned(),
            ticks: sweep.depths.iter().map(|(depth, _)| (f64::from(*depth), depth.to_string())).collect(),
        },
        up: "overhead, %".to_owned(),
        lines,
        dots: Vec::new(),
    })
}
