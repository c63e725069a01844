//! The content of a page before it is HTML: sections of text, tables, charts and trees.

/// A whole page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Page {
    /// The study's title.
    pub(crate) title: String,
    /// The study's name.
    pub(crate) name: String,
    /// The name and version of the program that wrote it.
    pub(crate) writer: String,
    /// The sections, in order.
    pub(crate) sections: Vec<Section>,
}

/// A part of a page with a heading of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    /// The anchor of links to it; lower case letters.
    pub(crate) id: &'static str,
    /// The text of the heading.
    pub(crate) title: &'static str,
    /// The blocks of the section.
    pub(crate) blocks: Vec<Block>,
}

/// A block of a section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// A paragraph of text.
    Text(String),
    /// Names with their values.
    Facts(Vec<(&'static str, String)>),
    /// Remarks about the figures above.
    Notes(Vec<String>),
    /// Text that is shown as it is, line by line.
    Listing(String),
    /// The legend of the shades.
    Scale,
    /// A table of figures or words.
    Table(Table),
    /// Charts side by side.
    Charts(Vec<Chart>),
    /// A part that can be unfolded.
    Fold(Fold),
    /// Branches that can be unfolded.
    Tree(Vec<Branch>),
}

/// Blocks below a heading that folds them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fold {
    /// The text of the heading.
    pub(crate) title: String,
    /// Whether it is unfolded at first.
    pub(crate) open: bool,
    /// The folded content.
    pub(crate) blocks: Vec<Block>,
}

/// A table whose first column names the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    /// The caption, with the unit.
    pub(crate) caption: String,
    /// The head of the first column.
    pub(crate) corner: &'static str,
    /// The heads of the others.
    pub(crate) columns: Vec<String>,
    /// The rows, by groups.
    pub(crate) groups: Vec<Group>,
}

/// Rows of a table that belong together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Group {
    /// The heading above the rows.
    pub(crate) heading: Option<String>,
    /// The rows of the group.
    pub(crate) rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The text of the first column.
    pub(crate) name: String,
    /// One cell per column.
    pub(crate) cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    /// Words, aligned left.
    Words(String),
    /// A number, aligned right.
    Number(String),
    /// A difference, its margin, and its size.
    Difference {
        /// The difference with its sign.
        text: String,
        /// The margin; empty if there is none to show.
        margin: String,
        /// From -3 (much cheaper) to 7 (more than twice as dear); 0 is no difference.
        shade: i8,
    },
    /// A share from 0 to 1, drawn as a bar; another cell of the row has the number.
    Bar(f64),
}

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    /// The heading above the chart.
    pub(crate) title: String,
    /// What is not drawn, and why; empty if everything is.
    pub(crate) remark: String,
    /// A description in words.
    pub(crate) summary: String,
    /// The horizontal axis.
    pub(crate) across: Axis,
    /// The title of the vertical axis, whose range is that of the lines, with 0.
    pub(crate) up: String,
    /// The lines of the chart.
    pub(crate) lines: Vec<Line>,
    /// Points without a line: measurements, where the line is a model of them.
    pub(crate) dots: Vec<(f64, f64)>,
}

/// The horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// The title of the axis.
    pub(crate) title: String,
    /// Positions with words, ascending; at least two.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// The name, which stands at the line's end.
    pub(crate) name: String,
    /// The number of its colour and dashes: the same name has the same style in all charts.
    pub(crate) style: usize,
    /// Its points, from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A branch of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The branch's text.
    pub(crate) name: String,
    /// Text beside the name; may be empty.
    pub(crate) remark: String,
    /// Whether it is a hook at the end of a path.
    pub(crate) end: bool,
    /// The branches below it.
    pub(crate) branches: Vec<Branch>,
}

/// The shade of a difference in percent.
pub(crate) fn shade(percent: f64) -> i8 {
    const DEARER: [f64; 7] = [0.05, 2.0, 5.0, 10.0, 20.0, 40.0, 100.0];
    const CHEAPER: [f64; 3] = [0.05, 5.0, 20.0];
    let steps = |limits: &[f64]| limits.iter().filter(|limit| percent.abs() >= **limit).count() as i8;
    if percent < 0.0 { -steps(&CHEAPER) } else { steps(&DEARER) }
}

/// Round figures from `low` to `high`, some four of them; only `low` if there is no room.
pub(crate) fn steps(low: f64, high: f64) -> Vec<f64> {
    let wanted = (high - low) / 4.0;
    if !wanted.is_normal() {
        return vec![low];
    }
    let power = 10f64.powf(wanted.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= wanted).unwrap_or(10.0 * power);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// The shades with their meanings, cheapest first.
pub(crate) const SHADES: [(i8, &str); 10] = [
    (-3, "−20 % and less"),
    (-2, "to −5 %"),
    (-1, "cheaper"),
    (1, "dearer"),
    (2, "2 %"),
    (3, "5 %"),
    (4, "10 %"),
    (5, "20 %"),
    (6, "40 %"),
    (7, "100 % and more"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_by_size_and_sign() {
        let shades = [0.0, 0.04, 0.05, 1.9, 2.0, 99.0, 100.0, 9e9, -0.04, -1.0, -5.0, -90.0].map(shade);
        assert_eq!(shades, [0, 0, 1, 1, 2, 6, 7, 7, 0, -1, -2, -3]);
    }

    #[test]
    fn steps_by_round_figures_that_hold_zero() {
        assert_eq!(steps(0.0, 31.0), [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(steps(-3.0, 8.0), [0.0, 5.0]);
        assert_eq!(steps(0.0, 0.9), [0.0, 0.5]);
        assert_eq!(steps(0.0, 1.0), [0.0, 0.5, 1.0]);
        // Of so small a range no power of ten is left.
        assert_eq!((steps(0.0, 1e-323), steps(0.0, f64::INFINITY)), (vec![0.0], vec![0.0]));
        assert!(steps(0.0, 1e-307).len() < 10);
    }
}
