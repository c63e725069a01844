//! The text of a table's cells.

use tollgate_bench::counter::Counter;

use crate::results::{ConfigurationResult, Results, WorkloadResult};

/// The size of a difference, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// No difference, or nothing to say.
    Nothing,
    /// Under 5 %, or cheaper.
    Small,
    /// Under 20 %.
    Middling,
    /// 20 % and more.
    Large,
    /// Not a difference.
    Plain,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) size: Size,
}

/// The cell of something that was not measured.
pub(crate) const ABSENT: &str = "-";

/// The cell of something that was measured and has nothing to be compared with.
pub(crate) const INCOMPARABLE: &str = "?";

/// The cell of a workload under a configuration, with what was published in brackets.
pub(crate) fn cell(results: &Results, configuration: &ConfigurationResult, workload: &str) -> Cell {
    let is_baseline = configuration.name == results.study.baseline;
    let mut cell = own(results, configuration, workload);
    for printed in results.study.printed(&configuration.kernel, &configuration.name, workload) {
        let text = if is_baseline { figure(printed.figure) } else { format!("{:+.1}", printed.figure) };
        let mark = printed.mark.map_or(String::new(), |mark| format!(" {mark}"));
        cell.text.push_str(&format!(" ({text}{mark})"));
    }
    cell
}

/// The same without published figures.
pub(crate) fn own(results: &Results, configuration: &ConfigurationResult, workload: &str) -> Cell {
    match configuration.workload(workload) {
        None => Cell { text: ABSENT.to_owned(), size: Size::Nothing },
        Some(measured) if configuration.name == results.study.baseline => {
            Cell { text: figure(measured.figure), size: Size::Plain }
        }
        Some(measured) => difference(results.clock, measured),
    }
}

/// The smallest percentage that does not print as 0.0. Two boots of the same machine may differ by more than nothing even if
/// no padding moves them: five instructions of 12254 were seen.
pub(crate) const MIN_SHOWN_PERCENT: f64 = 0.05;

fn difference(clock: Counter, measured: &WorkloadResult) -> Cell {
    let Some(d) = measured.difference else {
        return Cell { text: INCOMPARABLE.to_owned(), size: Size::Nothing };
    };
    if d.is_nothing() || d.percent.abs() < MIN_SHOWN_PERCENT {
        let text = if d.is_none_at_all() { "0" } else { "~0" };
        return Cell { text: text.to_owned(), size: Size::Nothing };
    }
    let size = match d.percent {
        p if p < 5.0 => Size::Small,
        p if p < 20.0 => Size::Middling,
        _ => Size::Large,
    };
    let mut text = percent(d.percent);
    let margin = (d.high - d.low) / 2.0;
    match clock {
        Counter::Wall => text.push_str(&format!(" [{:.1} {:.1}]", d.low, d.high)),
        Counter::Instructions if margin >= MIN_SHOWN_PERCENT => text.push_str(&format!(" ±{margin:.1}")),
        Counter::Instructions => {}
    }
    Cell { text, size }
}

/// A percentage with its sign, to a tenth; above 1000 % without decimals.
pub(crate) fn percent(percent: f64) -> String {
    if percent.abs() < 1000.0 { format!("{percent:+.1}%") } else { format!("{percent:+.0}%") }
}

/// A figure in its unit, to the unit; small ones to a tenth.
pub(crate) fn figure(figure: f64) -> String {
    if figure.fract() == 0.0 || figure >= 100.0 { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results, wall_results};

    fn text(baseline: &[f64], own: &[f64]) -> String {
        let boots = |name, figures: &[f64]| {
            figures.iter().zip(0..).map(|(f, i)| boot(name, i).measured("stat", &[*f])).collect::<Vec<_>>()
        };
        let built = results(&[boots("none", baseline), boots("tomoyo", own)].concat());
        cell(&built, built.find("6.1", "tomoyo").unwrap(), "stat").text
    }

    #[test]
    fn prints_the_same_as_0_and_what_layout_could_make_as_about_0() {
        assert_eq!(text(&[3916.], &[3916.]), "0");
        assert_eq!(text(&[3916., 3926.], &[3920., 3920.]), "~0");
    }

    #[test]
    fn prints_what_rounds_to_no_percent_as_about_0() {
        assert_eq!(text(&[12254., 12254.], &[12249., 12249.]), "~0");
        assert_eq!(text(&[12254., 12254.], &[12247., 12247.]), "-0.1%");
    }

    #[test]
    fn prints_a_percentage_and_how_far_layout_moves_it() {
        assert_eq!(text(&[6252.], &[7979.]), "+27.6%");
        assert_eq!(text(&[1000., 1004.], &[1300., 1302.]), "+29.8% ±0.4");
        assert_eq!(text(&[1000.], &[990.]), "-1.0%");
        assert_eq!(text(&[10.], &[1234.]), "+12240%");
    }

    #[test]
    fn prints_the_confidence_interval_on_the_wall_clock() {
        let boots: Vec<_> = (0..10)
            .flat_map(|r| {
                let own = [148.0, 152.0][r as usize % 2];
                [boot("none", r).wall().measured("stat", &[100.]), boot("tomoyo", r).wall().measured("stat", &[own])]
            })
            .collect();
        let built = wall_results(&boots);
        assert_eq!(cell(&built, built.find("6.1", "tomoyo").unwrap(), "stat").text, "+50.0% [48.0 52.0]");
    }

    #[test]
    fn sizes_a_difference_for_the_colours() {
        let size = |own: f64| {
            let built =
                results(&[boot("none", 0).measured("stat", &[1000.]), boot("yama", 0).measured("stat", &[own])]);
            cell(&built, built.find("6.1", "yama").unwrap(), "stat").size
        };
        assert_eq!(
            [1000., 1049., 900., 1050., 1200.].map(size),
            [Size::Nothing, Size::Small, Size::Small, Size::Middling, Size::Large]
        );
    }

    #[test]
    fn prints_figures_to_the_unit_and_small_ones_to_a_tenth() {
        assert_eq!([337.0, 3916.5, 12.25].map(figure), ["337", "3916", "12.2"]);
    }
}
