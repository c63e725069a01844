//! Charts as SVG. Each line's name stands at its end, so that colours need not be distinguished.

use maud::{Markup, html};

use super::Ids;
use crate::page::model::{Chart, Line, steps};

/// The width of a chart in its own units; on a phone, a unit is about a pixel.
const WIDTH: f64 = 360.0;

/// The least distance between names at the lines' ends.
const LEADING: f64 = 13.0;

/// The width of a character of a name.
const LETTER: f64 = 5.9;

/// The room above and below the lines.
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;

/// The room left of the lines, for the figures of the axis.
const LEFT: f64 = 38.0;

/// The number of line styles in the style sheet.
const STYLES: usize = 16;

/// The area of the lines.
struct Plot {
    right: f64,
    bottom: f64,
    across: (f64, f64),
    up: (f64, f64),
}

impl Plot {
    fn of(chart: &Chart) -> Self {
        let longest = chart.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let height = (LEADING * chart.lines.len() as f64).max(150.0);
        let ys = || chart.lines.iter().flat_map(|l| &l.points).chain(&chart.dots).map(|p| p.1);
        let low = ys().fold(0.0, f64::min);
        let high = ys().fold(0.0, f64::max);
        let across = chart.across.ticks.first().zip(chart.across.ticks.last());
        Self {
            right: (WIDTH - 14.0 - LETTER * longest as f64).round(),
            bottom: TOP + height,
            across: across
                .map_or((0.0, 1.0), |((first, _), (last, _))| (*first, if last > first { *last } else { first + 1.0 })),
            up: (low, if high > low { high } else { low + 1.0 }),
        }
    }

    fn x(&self, x: f64) -> f64 {
        let (low, high) = self.across;
        LEFT + (self.right - LEFT) * (x - low) / (high - low)
    }

    fn y(&self, y: f64) -> f64 {
        let (low, high) = self.up;
        self.bottom - (self.bottom - TOP) * (y - low) / (high - low)
    }
}

/// A chart with its title, and a description in words.
pub(super) fn chart(chart: &Chart, ids: &mut Ids) -> Markup {
    let plot = Plot::of(chart);
    let (title, summary) = (ids.next(), ids.next());
    let names = beside(&chart.lines.iter().map(|line| plot.y(end(line).1)).collect::<Vec<_>>(), plot.bottom + 4.0);
    html! {
        figure.chart {
            figcaption {
                (chart.title)
                @if !chart.remark.is_empty() { " " span.remark { (chart.remark) } }
            }
            svg role="img" aria-labelledby={ (title) " " (summary) } viewBox={ "0 0 " (WIDTH) " " (plot.bottom + BOTTOM) } {
                title id=(title) { (chart.title) }
                desc id=(summary) { (chart.summary) }
                (axes(chart, &plot))
                @for (line, at) in chart.lines.iter().zip(names) { (self::line(line, &plot, at)) }
                @for (x, y) in &chart.dots { circle cx=(short(plot.x(*x))) cy=(short(plot.y(*y))) r="2.5" {} }
            }
        }
    }
}

fn axes(chart: &Chart, plot: &Plot) -> Markup {
    let steps = steps(plot.up.0, plot.up.1);
    html! {
        text.axis x="0" y="11" { (chart.up) }
        @for step in &steps {
            path.grid d={ "M" (LEFT) " " (short(plot.y(*step))) "H" (short(plot.right)) } {}
            text.tick.up x=(LEFT - 5.0) y=(short(plot.y(*step) + 4.0)) { (number(*step, &steps)) }
        }
        @for (x, word) in &chart.across.ticks {
            text.tick.across x=(short(plot.x(*x))) y=(short(plot.bottom + 15.0)) { (word) }
        }
        text.axis.across x=(short((LEFT + plot.right) / 2.0)) y=(short(plot.bottom + 30.0)) { (chart.across.title) }
    }
}

fn line(line: &Line, plot: &Plot, name_at: f64) -> Markup {
    let (x, y) = end(line);
    let (x, y) = (plot.x(x), plot.y(y));
    html! {
        g class={ "s" (line.style % STYLES) } {
            path d=(course(line, plot)) {}
            @if (name_at - y).abs() > 2.0 {
                path.lead d={ "M" (short(x)) " " (short(y)) "L" (short(plot.right + 8.0)) " " (short(name_at)) } {}
            }
            text x=(short(plot.right + 11.0)) y=(short(name_at + 4.0)) { (line.name) }
        }
    }
}

/// A path through a line's points, each relative to the last, because a page has thousands of them.
fn course(line: &Line, plot: &Plot) -> String {
    let tenths = |number: f64| (10.0 * number).round() as i64;
    let mut path = String::new();
    let mut last = (0, 0);
    for (i, (x, y)) in line.points.iter().enumerate() {
        let at = (tenths(plot.x(*x)), tenths(plot.y(*y)));
        let [x, y] = [at.0 - last.0, at.1 - last.1].map(|n| short(n as f64 / 10.0));
        let letter = ["M", "l", " "][i.min(2)];
        // A minus sign separates two numbers as well as a space does.
        let gap = if y.starts_with('-') { "" } else { " " };
        path.push_str(&format!("{letter}{x}{gap}{y}"));
        last = at;
    }
    path
}

/// The last point of a line.
fn end(line: &Line) -> (f64, f64) {
    line.points.last().copied().unwrap_or_default()
}

/// Heights for names that should be near these: no two overlap, none is below `lowest`, and the order stays.
fn beside(wishes: &[f64], lowest: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|a, b| wishes[*a].total_cmp(&wishes[*b]));
    let mut heights = wishes.to_vec();
    let mut above = f64::NEG_INFINITY;
    for i in &order {
        heights[*i] = heights[*i].max(above + LEADING);
        above = heights[*i];
    }
    let mut below = lowest + LEADING;
    for i in order.iter().rev() {
        heights[*i] = heights[*i].min(below - LEADING);
        below = heights[*i];
    }
    heights
}

/// A figure of an axis, with as many decimals as its steps need.
fn number(figure: f64, steps: &[f64]) -> String {
    let whole = steps.iter().all(|s| (s - s.round()).abs() < 1e-9);
    let figure = if figure == 0.0 { 0.0 } else { figure };
    if whole { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

/// A coordinate to a tenth, without trailing zero.
fn short(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_names_apart_in_the_order_of_their_lines_and_none_below_the_plot() {
        assert_eq!(beside(&[50.0, 52.0, 10.0], 100.0), [50.0, 63.0, 10.0]);
        assert_eq!(beside(&[98.0, 99.0], 100.0), [87.0, 100.0]);
        assert!(beside(&[], 1.0).is_empty());
    }

    #[test]
    fn draws_a_line_through_its_points() {
        let line = Line { name: String::new(), style: 0, points: vec![(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)] };
        let plot = Plot { right: LEFT + 20.0, bottom: TOP + 10.0, across: (0.0, 2.0), up: (0.0, 2.0) };
        assert_eq!(course(&line, &plot), format!("M{LEFT} {}l10-10 10 5", TOP + 10.0));
    }
}
