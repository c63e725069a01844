//! The sections of a page, one per file. Each is a function of the results, and `None` if there is nothing to show.

pub(super) mod alive;
pub(super) mod caches;
pub(super) mod counts;
pub(super) mod depth;
pub(super) mod kernels;
pub(super) mod latency;
pub(super) mod levels;
pub(super) mod measured;
pub(super) mod overhead;
pub(super) mod published;
pub(super) mod reach;
pub(super) mod summary;

use crate::{
    page::model::{Cell, shade},
    results::{ConfigurationResult, Oracle, Results},
    table::cell::{self, Size},
};

/// The cell of a workload under a configuration: the baseline's figure, or the difference to it.
fn cell(results: &Results, configuration: &ConfigurationResult, workload: &str) -> Cell {
    let shown = cell::own(results, configuration, workload);
    if shown.size == Size::Plain {
        return Cell::Number(shown.text);
    }
    let percent = percent(configuration, workload).filter(|_| shown.size != Size::Nothing).unwrap_or(0.0);
    let (text, margin) = shown.text.split_once(' ').unwrap_or((&shown.text, ""));
    Cell::Difference { text: text.replace('%', ""), margin: margin.to_owned(), shade: shade(percent) }
}

/// A difference in percent as a cell, without a margin.
fn difference(percent: f64) -> Cell {
    Cell::Difference { text: signed(percent), margin: String::new(), shade: shade(percent) }
}

/// A percentage without the percent sign; differences that would print as zero are shown as about zero.
fn signed(percent: f64) -> String {
    if percent.abs() < cell::MIN_SHOWN_PERCENT { "~0".to_owned() } else { cell::percent(percent).replace('%', "") }
}

fn absent() -> Cell {
    Cell::Difference { text: cell::ABSENT.to_owned(), margin: String::new(), shade: 0 }
}

fn percent(configuration: &ConfigurationResult, workload: &str) -> Option<f64> {
    Some(configuration.workload(workload)?.difference?.percent)
}

/// A configuration's name, marked if its oracle did not hold.
fn name(configuration: &ConfigurationResult) -> String {
    match configuration.oracle {
        Oracle::Void => format!("{} (void)", configuration.name),
        Oracle::Held | Oracle::None => configuration.name.clone(),
    }
}

/// The configurations on a kernel that are compared with the baseline.
fn others<'r>(results: &'r Results, kernel: &'r str) -> Vec<&'r ConfigurationResult> {
    results.on(kernel).filter(|c| c.name != results.study.baseline).collect()
}

/// The place of a configuration in the study, which determines its colour in every chart.
fn style(results: &Results, configuration: &str) -> usize {
    let others = results.study.configurations.iter().filter(|name| **name != results.study.baseline);
    others.into_iter().position(|name| name == configuration).unwrap_or(0)
}

/// The name of a figure's unit.
fn unit(results: &Results) -> &'static str {
    match results.clock {
        tollgate_bench::counter::Counter::Instructions => "guest instructions per operation",
        tollgate_bench::counter::Counter::Wall => "nanoseconds per operation",
    }
}
