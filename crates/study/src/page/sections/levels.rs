//! Section: overhead by the number of categories of the workloads' level.

use crate::{
    page::{
        model::{Axis, Block, Cell, Chart, Group, Line, Row, Section, Table},
        rows,
    },
    results::{Oracle, Results},
    study::Study,
    table::workloads,
};

/// With this many levels or more, a configuration is a curve.
const MIN_LEVELS: usize = 3;

/// A configuration that was measured at several levels.
struct Curve<'r> {
    base: String,
    /// The number of categories, the level, and the configuration that measures it, ascending.
    levels: Vec<(u32, String, &'r str)>,
}

/// One chart per kernel and operation, with one line per configuration; `None` if no configuration has several levels.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let study = Study::parse("study.toml", &results.study.text).ok()?;
    let curves = curves(&study);
    if curves.is_empty() {
        return None;
    }
    let what = "The workloads at levels with more and more categories. A line that rises pays for categories.";
    let mut blocks = vec![Block::Text(what.to_owned())];
    for kernel in results.kernels() {
        let rows: Vec<&str> = workloads(results, kernel).into_iter().filter(|row| !rows::is_control(row)).collect();
        blocks.push(Block::Charts(rows.iter().filter_map(|row| chart(results, kernel, &curves, row)).collect()));
        blocks.push(Block::Table(table(results, kernel, &curves, &rows)));
    }
    Some(Section { id: "levels", title: "Overhead by level", blocks })
}

fn curves(study: &Study) -> Vec<Curve<'_>> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for own in study.own.iter().filter(|own| study.configurations.contains(&own.name)) {
        let Some(level) = &own.level else { continue };
        let entry = (categories(level), level.clone(), own.name.as_str());
        match curves.iter_mut().find(|curve| curve.base == own.base) {
            Some(curve) => curve.levels.push(entry),
            None => curves.push(Curve { base: own.base.clone(), levels: vec![entry] }),
        }
    }
    curves.retain(|curve| curve.levels.len() >= MIN_LEVELS);
    curves.iter_mut().for_each(|curve| curve.levels.sort());
    curves
}

/// How many categories a level such as `s0:c0.c3,c7` has.
fn categories(level: &str) -> u32 {
    let number = |category: &str| category.trim_start_matches('c').parse::<u32>().unwrap_or_default();
    let (_, categories) = level.split_once(':').unwrap_or((level, ""));
    let ranges = categories.split(',').filter(|range| !range.is_empty());
    ranges
        .map(|range| range.split_once('.').map_or(1, |(low, high)| 1 + number(high).saturating_sub(number(low))))
        .sum()
}

/// Categories on a scale on which each doubling is as far.
fn position(categories: u32) -> f64 {
    f64::from(categories + 1).log2()
}

/// `None` if there is nothing to compare.
fn chart(results: &Results, kernel: &str, curves: &[Curve<'_>], workload: &str) -> Option<Chart> {
    let line = |curve: &Curve<'_>| {
        let point = |(categories, _, name): &(u32, String, &str)| {
            let own = results.find(kernel, name).filter(|own| own.oracle != Oracle::Void)?;
            Some((position(*categories), super::percent(own, workload)?))
        };
        let points: Vec<(f64, f64)> = curve.levels.iter().filter_map(point).collect();
        let style = super::style(results, curve.levels[0].2);
        (points.len() > 1).then(|| Line { name: curve.base.clone(), style, points })
    };
    let lines: Vec<Line> = curves.iter().filter_map(line).collect();
    let mut ticks: Vec<u32> = curves.iter().flat_map(|curve| &curve.levels).map(|(number, ..)| *number).collect();
    ticks.sort_unstable();
    ticks.dedup();
    let ends = |line: &Line| (line.points[0].1, line.points[line.points.len() - 1].1);
    let words = |line: &Line| format!("{} {:+.1} to {:+.1}", line.name, ends(line).0, ends(line).1);
    (!lines.is_empty() && ticks.len() > 1).then(|| Chart {
        title: workload.to_owned(),
        remark: String::new(),
        summary: format!(
            "Overhead on {workload} by the number of categories, Linux {kernel}, in percent: {}. All figures are in the table below the charts.",
            lines.iter().map(words).collect::<Vec<_>>().join(", ")
        ),
        across: Axis {
            title: "categories".to_owned(),
            ticks: ticks.into_iter().map(|number| (position(number), number.to_string())).collect(),
        },
        up: "overhead, %".to_owned(),
        lines,
        dots: Vec::new(),
    })
}

fn table(results: &Results, kernel: &str, curves: &[Curve<'_>], workloads: &[&str]) -> Table {
    let row = |(_, level, name): &(u32, String, &str)| {
        let own = results.find(kernel, name);
        let cell =
            |workload: &&str| -> Cell { own.map_or_else(super::absent, |own| super::cell(results, own, workload)) };
        Row { name: level.clone(), cells: workloads.iter().map(cell).collect() }
    };
    let group =
        |curve: &Curve<'_>| Group { heading: Some(curve.base.clone()), rows: curve.levels.iter().map(row).collect() };
    Table {
        caption: format!("Linux {kernel}: difference to {} in percent, by level", results.study.baseline),
        corner: "level",
        columns: workloads.iter().map(|name| (*name).to_owned()).collect(),
        groups: curves.iter().map(group).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn counts_the_categories_of_a_level() {
        let counted = ["s0", "s15:c3", "s0:c0.c3,c7", "s15:c0.c1023"].map(categories);
        assert_eq!(counted, [0, 1, 5, 1024]);
    }

    #[test]
    fn draws_a_line_for_each_configuration_with_three_levels() {
        let mut built = results(&[
            boot("none", 0).measured("stat", &[1000.]).measured("null", &[300.]),
            boot("zero", 0).measured("stat", &[1010.]).measured("null", &[300.]),
            boot("one", 0).measured("stat", &[1020.]),
            boot("many", 0).measured("stat", &[1040.]).measured("null", &[300.]),
        ]);
        built.study.text = "name = \"x\"\ntitle = \"X\"\nkernels = [\"6.1\"]\nworkloads = [\"stat\"]\n\
            configurations = [\"none\", \"zero\", \"one\", \"many\"]\n"
            .to_owned();
        let mut level = |name: &str, level: &str| {
            let table = format!("[[configuration]]\nname = {name:?}\nbase = \"selinux-mls\"\nlevel = {level:?}\n");
            built.study.text.push_str(&table);
        };
        level("many", "s0:c0.c1023");
        level("zero", "s0");
        let text = built.study.text.clone();
        built.study.text.push_str("[[configuration]]\nname = \"one\"\nbase = \"selinux-mls\"\nlevel = \"s0:c7\"\n");
        let section = section(&built).unwrap();
        let [_, Block::Charts(charts), Block::Table(table)] = &section.blocks[..] else { panic!("{section:?}") };
        let [chart] = &charts[..] else { panic!("a control is no curve: {charts:?}") };
        let [line] = &chart.lines[..] else { panic!("{chart:?}") };
        let overhead: Vec<f64> = line.points.iter().map(|point| point.1.round()).collect();
        assert_eq!((line.name.as_str(), &overhead[..]), ("selinux-mls", &[1.0, 2.0, 4.0][..]));
        let names: Vec<&str> = table.groups[0].rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["s0", "s0:c7", "s0:c0.c1023"]);
        // Two levels are no curve.
        built.study.text = text.replace(", \"one\"", "");
        assert_eq!(super::section(&built), None);
    }
}
