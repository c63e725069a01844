//! Section: cost against injected delay, with the fitted line.

use tollgate_bench::counter::Counter;

use crate::{
    model::{Fit, Fits, Observations, fit, observations::Run},
    page::model::{Axis, Block, Cell, Chart, Fold, Group, Line, Row, Section, Table, steps},
};

/// The confidence level of the intervals, as in `tollgate model fit`.
const LEVEL: f64 = 0.95;

/// The axes are in thousands.
const THOUSAND: f64 = 1000.0;

/// One chart per workload, and a table of slopes; `None` if no hook was delayed.
pub(in crate::page) fn section(all: &[Observations]) -> Option<Section> {
    let fold = |(i, observations): (usize, &Observations)| {
        let title = format!("Linux {}, {}", observations.kernel, observations.configuration);
        Block::Fold(Fold { title: title.trim_end_matches(", ").to_owned(), open: i == 0, blocks: blocks(observations) })
    };
    let folds: Vec<Block> = all.iter().enumerate().map(fold).collect();
    let what = "Hooks were made to take longer, several at a time. A point is a run; from left to right is the delay that an operation met by \
                the fitted slopes: how often it passes each hook, times the delay there. The nearer the points are to the line, the better \
                the model explains them.";
    (!folds.is_empty()).then(|| Section {
        id: "latency",
        title: "Cost against injected delay",
        blocks: [vec![Block::Text(what.to_owned())], folds].concat(),
    })
}

fn blocks(observations: &Observations) -> Vec<Block> {
    match fit(observations, LEVEL) {
        Ok(fits) => {
            let charts = fits.workloads.iter().filter_map(|fit| chart(observations, fit)).collect();
            vec![Block::Charts(charts), Block::Table(table(&fits))]
        }
        Err(error) => vec![Block::Text(format!("No line can be fitted. {error}"))],
    }
}

fn unit(clock: Counter) -> &'static str {
    match clock {
        Counter::Instructions => "instructions",
        Counter::Wall => "nanoseconds",
    }
}

/// Each run's delay per operation, and its cost.
fn points(observations: &Observations, fit: &Fit) -> Vec<(f64, f64)> {
    let met = |run: &Run| -> f64 {
        fit.slopes.iter().map(|slope| slope.value * observations.injected(run, &slope.hook)).sum()
    };
    let point = |run: &Run| Some((met(run) / THOUSAND, run.costs.get(&fit.workload)? / THOUSAND));
    observations.runs.iter().filter_map(point).collect()
}

/// `None` for a workload that no delay reached.
fn chart(observations: &Observations, fit: &Fit) -> Option<Chart> {
    let dots = points(observations, fit);
    let most = dots.iter().map(|dot| dot.0).fold(0.0, f64::max);
    let mut ticks = steps(0.0, most);
    let step = ticks.get(1).filter(|_| most * THOUSAND >= 1.0)?;
    if let Some(last) = ticks.last().copied().filter(|last| *last < most) {
        ticks.push(last + step);
    }
    let intercept = fit.intercept.value / THOUSAND;
    let unit = unit(observations.clock);
    Some(Chart {
        title: fit.workload.clone(),
        remark: String::new(),
        summary: format!(
            "{} runs of {} on Linux {}: cost against the delay that an operation met, up to {most:.1} thousand {unit}, and the \
             fitted line from {intercept:.1} thousand. The slopes are in the table below the charts.",
            dots.len(),
            fit.workload,
            observations.kernel
        ),
        across: Axis {
            title: format!("delay met, thousand {unit}"),
            ticks: ticks.iter().map(|tick| (*tick, short(*tick))).collect(),
        },
        up: format!("cost, thousand {unit}"),
        lines: vec![Line {
            name: "fitted".to_owned(),
            style: 1,
            points: vec![(0.0, intercept), (most, intercept + most)],
        }],
        dots,
    })
}

fn table(fits: &Fits) -> Table {
    let row = |fit: &Fit| {
        let mut cells = vec![Cell::Number(format!("{:.0}", fit.intercept.value))];
        cells.extend(fits.hooks.iter().map(|hook| {
            let slope = fit.slopes.iter().find(|slope| slope.hook == *hook);
            slope.map_or_else(super::absent, |slope| Cell::Number(short(slope.value)))
        }));
        cells.push(fit.r_squared.map_or_else(super::absent, |r| Cell::Number(format!("{r:.6}"))));
        Row { name: fit.workload.clone(), cells }
    };
    let hooks = fits.hooks.iter().cloned();
    Table {
        caption: format!(
            "Linux {}: an operation's cost without delay in {}, how often it passes each hook by the fitted slopes, and R²",
            fits.kernel,
            unit(fits.clock)
        ),
        corner: "operation",
        columns: std::iter::once("no delay".to_owned()).chain(hooks).chain(["R²".to_owned()]).collect(),
        groups: vec![Group { heading: None, rows: fits.workloads.iter().map(row).collect() }],
    }
}

/// A number to a hundredth, without trailing zeros and without -0.
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hooks, passed once and thrice; a unit costs 15 instructions, the first 40.
    fn observations() -> Observations {
        let run = |a: u64, b: u64| {
            let of = |units: u64| units.checked_sub(1).map_or(0, |more| 40 + 15 * more);
            serde_json::json!({ "units": { "file_open": a, "inode_permission": b },
                "costs": { "open+close": 6000 + of(a) + 3 * of(b), "pipe": 10_000 } })
        };
        let text = serde_json::json!({ "schema": 1, "clock": "instructions", "kernel": "6.1", "configuration": "bpf-latency",
            "calibration": { "first": 40.0, "unit": 15.0 }, "workloads": ["open+close", "pipe"],
            "runs": [run(0, 0), run(100, 0), run(0, 100), run(100, 100), run(50, 50), run(0, 0)] });
        Observations::read(&text.to_string()).unwrap().remove(0)
    }

    #[test]
    fn draws_points_on_the_line_where_the_model_explains_all() {
        let section = section(&[observations()]).unwrap();
        let Block::Fold(fold) = &section.blocks[1] else { panic!("{section:?}") };
        assert_eq!(fold.title, "Linux 6.1, bpf-latency");
        let [Block::Charts(charts), Block::Table(table)] = &fold.blocks[..] else { panic!("{fold:?}") };
        // No delay reaches the pipe.
        let [chart] = &charts[..] else { panic!("{charts:?}") };
        assert_eq!(chart.dots.len(), 6);
        assert!(chart.dots.iter().all(|(x, y)| (y - x - 6.0).abs() < 1e-6), "{:?}", chart.dots);
        assert!(chart.across.ticks.last().unwrap().0 >= 4.0 * 1.525 - 1e-9, "every point is within the axis");
        let texts: Vec<&Cell> = table.groups[0].rows[0].cells.iter().take(3).collect();
        assert_eq!(texts, [&Cell::Number("6000".into()), &Cell::Number("1".into()), &Cell::Number("3".into())]);
    }
}
