//! Section: overhead by the depth of the path that an operation resolves.

use crate::{
    page::{
        model::{Axis, Block, Cell, Chart, Fold, Group, Line, Row, Section, Table},
        rows::{self, Sweep},
    },
    results::{ConfigurationResult, Results},
};

/// One chart per kernel and operation, with one line per module; the figures in a table below.
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
    let what = "An operation that resolves a path is checked at each component. A line that rises pays for each component; a flat one pays once.";
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

/// All depths at which one of them was measured, ascending.
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

/// The highest line is left out if even its lowest point is above the others by more than this factor, because it would
/// flatten them.
const MAX_RATIO: f64 = 1.5;

/// The lines to draw, and the one that is left out.
fn within_sight(mut lines: Vec<Line>) -> (Vec<Line>, Option<Line>) {
    let highest = |line: &Line| line.points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let lowest = |line: &Line| line.points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let top = (0..lines.len()).max_by(|a, b| highest(&lines[*a]).total_cmp(&highest(&lines[*b])));
    let far = top.filter(|top| {
        let rest =
            lines.iter().enumerate().filter(|(i, _)| i != top).map(|(_, line)| highest(line)).fold(0.0, f64::max);
        rest > 0.0 && lowest(&lines[*top]) > MAX_RATIO * rest
    });
    let beyond = far.map(|far| lines.remove(far));
    (lines, beyond)
}

fn remark(line: &Line) -> String {
    let ends = line.points.first().zip(line.points.last());
    let (from, to) = ends.map_or((0.0, 0.0), |(first, last)| (first.1, last.1));
    format!("Far above: {}, {} to {} %.", line.name, super::signed(from), super::signed(to))
}

/// `None` if there is nothing to compare.
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
    let (name, count) = (steepest.1.name.clone(), lines.len());
    let (lines, beyond) = within_sight(lines);
    Some(Chart {
        title: sweep.name.clone(),
        remark: beyond.as_ref().map(remark).unwrap_or_default(),
        summary: format!(
            "Overhead of {} modules on {} at depths {first} to {last}, Linux {kernel}, in percent. The steepest is {}: {from:+.1} to {to:+.1}. All figures are in the table below the charts.",
            count, sweep.name, name,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[f64]) -> Line {
        Line {
            name: name.to_owned(),
            style: 0,
            points: points.iter().zip(1_u8..).map(|(y, x)| (x.into(), *y)).collect(),
        }
    }

    #[test]
    fn leaves_out_a_line_that_would_flatten_the_others_and_says_so() {
        let (near, far) = (line("near", &[10.0, 20.0]), line("far", &[304.1, 202.0]));
        let (drawn, beyond) = within_sight(vec![near.clone(), far.clone()]);
        assert_eq!((drawn, beyond.as_ref()), (vec![near.clone()], Some(&far)));
        assert_eq!(remark(&far), "Far above: far, +304.1 to +202.0 %.");
        // The highest line stays if it comes near the others, or if there is no other.
        let lines = vec![near, line("high", &[100.0, 29.0])];
        assert_eq!(within_sight(lines.clone()), (lines, None));
        assert_eq!(within_sight(vec![far.clone()]), (vec![far], None));
    }
}
