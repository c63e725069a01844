//! Section: the same operation under the same module, from kernel to kernel.

use crate::{
    page::{
        model::{Axis, Block, Cell, Chart, Fold, Group, Line, Row, Section, Table, shade},
        rows,
    },
    results::{ConfigurationResult, Results},
    stats::quantile::median,
};

/// A chart of each module's medians over kernels, then one table per module; `None` with fewer than two kernels.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let kernels = results.kernels();
    if kernels.len() < 2 {
        return None;
    }
    let mut blocks = vec![
        Block::Text(
            "The change in the last column is in percentage points of overhead, for the baseline in percent of its own figure."
                .to_owned(),
        ),
        Block::Charts(chart(results, &kernels).into_iter().collect()),
    ];
    let baseline = results.study.baseline.as_str();
    for (i, name) in std::iter::once(baseline).chain(others(results)).enumerate() {
        let table = table(results, &kernels, name);
        if !table.groups.iter().all(|group| group.rows.is_empty()) {
            let title = if i == 0 { format!("{name} (the baseline)") } else { name.to_owned() };
            blocks.push(Block::Fold(Fold { title, open: i == 0, blocks: vec![Block::Table(table)] }));
        }
    }
    Some(Section { id: "kernels", title: "From kernel to kernel", blocks })
}

fn others(results: &Results) -> impl Iterator<Item = &str> {
    results.study.configurations.iter().map(String::as_str).filter(|name| *name != results.study.baseline)
}

/// Every operation of any kernel, in the order of first appearance.
fn operations<'r>(results: &'r Results, kernels: &[&'r str]) -> Vec<&'r str> {
    let mut names: Vec<&str> = Vec::new();
    for workload in kernels.iter().flat_map(|kernel| rows::single(results, kernel)) {
        if !names.contains(&workload) {
            names.push(workload);
        }
    }
    names
}

fn table(results: &Results, kernels: &[&str], name: &str) -> Table {
    let is_baseline = name == results.study.baseline;
    let of = |kernel: &str, workload: &str| {
        let configuration = results.find(kernel, name)?;
        if is_baseline {
            Some(configuration.workload(workload)?.figure)
        } else {
            super::percent(configuration, workload)
        }
    };
    let row = |workload: &str| {
        let course: Vec<Option<f64>> = kernels.iter().map(|kernel| of(kernel, workload)).collect();
        let known: Vec<f64> = course.iter().flatten().copied().collect();
        let (first, last) = (known.first()?, known.last()?);
        let mut cells: Vec<Cell> = kernels
            .iter()
            .map(|kernel| results.find(kernel, name).map_or_else(super::absent, |c| super::cell(results, c, workload)))
            .collect();
        cells.push(match (known.len() > 1, is_baseline) {
            (false, _) => super::absent(),
            (true, true) => super::difference(100.0 * (last - first) / first),
            (true, false) => points(last - first),
        });
        Some(Row { name: workload.to_owned(), cells })
    };
    let shown = if is_baseline {
        super::unit(results).to_owned()
    } else {
        format!("difference to {} in percent", results.study.baseline)
    };
    Table {
        caption: format!("{name} on each kernel: {shown}"),
        corner: "operation",
        columns: kernels.iter().map(|k| (*k).to_owned()).chain(["change".to_owned()]).collect(),
        groups: vec![Group { heading: None, rows: operations(results, kernels).into_iter().filter_map(row).collect() }],
    }
}

/// A change in percentage points, shaded like a difference of as many percent.
fn points(change: f64) -> Cell {
    Cell::Difference { text: super::signed(change), margin: String::new(), shade: shade(change) }
}

/// Median overhead by kernel, over the operations that all kernels have on which the module was measured.
fn chart(results: &Results, kernels: &[&str]) -> Option<Chart> {
    let operations: Vec<&str> = operations(results, kernels).into_iter().filter(|w| !rows::is_control(w)).collect();
    let line = |name: &str| {
        // A kernel on which the module could not be measured has no point, and does not affect other points.
        let has_figures = |c: &&ConfigurationResult| operations.iter().any(|w| super::percent(c, w).is_some());
        let found = |(i, kernel): (usize, &&str)| Some((i, results.find(kernel, name).filter(has_figures)?));
        let own: Vec<(usize, &ConfigurationResult)> = kernels.iter().enumerate().filter_map(found).collect();
        let everywhere = |w: &&&str| own.iter().all(|(_, c)| super::percent(c, w).is_some());
        let common: Vec<&&str> = operations.iter().filter(everywhere).collect();
        let point = |(i, c): &(usize, &ConfigurationResult)| {
            let percents: Vec<f64> = common.iter().filter_map(|w| super::percent(c, w)).collect();
            Some((*i as f64, median(&percents)?))
        };
        let points: Vec<(f64, f64)> = own.iter().filter_map(point).collect();
        (points.len() > 1).then(|| Line { name: name.to_owned(), style: super::style(results, name), points })
    };
    let lines: Vec<Line> = others(results).filter_map(line).collect();
    let (first, last) = (kernels.first()?, kernels.last()?);
    (!lines.is_empty()).then(|| Chart {
        title: "Median overhead over the operations that all its kernels have".to_owned(),
        remark: String::new(),
        summary: format!(
            "Median overhead of {} modules on Linux {first} to {last}, in percent: {}.",
            lines.len(),
            lines.iter().map(|l| format!("{} {}", l.name, course(l, kernels))).collect::<Vec<_>>().join("; ")
        ),
        across: Axis {
            title: "kernel".to_owned(),
            ticks: kernels.iter().enumerate().map(|(i, kernel)| (i as f64, (*kernel).to_owned())).collect(),
        },
        up: "overhead, %".to_owned(),
        lines,
        dots: Vec::new(),
    })
}

fn course(line: &Line, kernels: &[&str]) -> String {
    let point = |(i, y): &(f64, f64)| format!("{} on {}", super::signed(*y), kernels[*i as usize]);
    line.points.iter().map(point).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn draws_a_module_over_the_kernels_that_it_was_measured_on() {
        let on = |kernel: &str, stat: f64| {
            let none = boot("none", 0).on(kernel).measured("stat", &[100.0]);
            let tomoyo = boot("tomoyo", 0).on(kernel);
            [none, if stat > 0.0 { tomoyo.measured("stat", &[stat]) } else { tomoyo.broken("stat", "no policy") }]
        };
        let built = results(&[on("6.1", 110.0), on("6.12", 0.0), on("6.18", 130.0)].concat());
        let chart = chart(&built, &["6.1", "6.12", "6.18"]).unwrap();
        assert_eq!(chart.lines[0].points, [(0.0, 10.0), (2.0, 30.0)]);
        assert!(chart.summary.ends_with("tomoyo +10.0 on 6.1, +30.0 on 6.18."), "{}", chart.summary);
    }
}
