//! Arranges cells in columns, and columns in blocks that fit the width.

use super::cell::{Cell, Size};

/// The most columns in a block beside the baseline; more are hard to read.
const MAX_COLUMNS: usize = 8;

/// The distance between columns, in characters.
const GAP: usize = 2;

/// A longer name is broken over two lines of the head.
const MAX_HEAD_WIDTH: usize = 8;

/// A configuration's column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// The lines of its head.
    pub(super) head: Vec<String>,
    /// One cell per row.
    pub(super) cells: Vec<Cell>,
}

/// A row's name, and the heading of its group if the group begins there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) heading: Option<&'static str>,
}

/// A configuration's name as the lines of a column's head, broken behind the hyphen that makes it narrowest.
pub(super) fn head(name: &str) -> Vec<String> {
    let breaks = name.match_indices('-').map(|(i, _)| name.split_at(i + 1));
    match breaks.min_by_key(|(a, b)| a.len().max(b.len())) {
        Some((a, b)) if name.len() > MAX_HEAD_WIDTH => vec![a.to_owned(), b.to_owned()],
        _ => vec![name.to_owned()],
    }
}

impl Column {
    fn width(&self) -> usize {
        let lines = self.head.iter().map(String::as_str);
        lines.chain(self.cells.iter().map(|c| c.text.as_str())).map(width).max().unwrap_or(0)
    }
}

/// The table: one block below the other, each with the labels and the first column.
pub(super) fn lay_out(labels: &[Label], first: &Column, others: &[Column], limit: usize, colour: bool) -> String {
    let label_width = labels.iter().map(|l| width(&l.name) + 2).max().unwrap_or(0);
    let room = limit.saturating_sub(label_width + GAP + first.width());
    let blocks = balanced(others, room).into_iter().map(|block| {
        let columns: Vec<&Column> = std::iter::once(first).chain(block).collect();
        render(labels, label_width, &columns, colour)
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// As few blocks as the width allows, with columns spread evenly.
fn balanced(columns: &[Column], room: usize) -> Vec<&[Column]> {
    let fewest = blocks(columns, room, MAX_COLUMNS);
    let narrower = (1..MAX_COLUMNS).map(|most| blocks(columns, room, most)).find(|b| b.len() == fewest.len());
    narrower.unwrap_or(fewest)
}

/// Blocks of at most this many columns, each as full as the width allows; at least one block.
fn blocks(columns: &[Column], room: usize, most: usize) -> Vec<&[Column]> {
    let mut blocks = Vec::new();
    let mut rest = columns;
    loop {
        let (block, later) = rest.split_at(fitting(rest, room, most));
        blocks.push(block);
        if later.is_empty() {
            return blocks;
        }
        rest = later;
    }
}

/// How many of the columns fit into this many characters: at least one.
fn fitting(columns: &[Column], room: usize, most: usize) -> usize {
    let mut used = 0;
    let fit = columns.iter().take(most).take_while(|column| {
        used += GAP + column.width();
        used <= room
    });
    fit.count().max(1).min(columns.len())
}

fn render(labels: &[Label], label_width: usize, columns: &[&Column], colour: bool) -> String {
    let mut lines = Vec::new();
    let height = columns.iter().map(|c| c.head.len()).max().unwrap_or(0);
    for line in 0..height {
        // Heads are aligned at the bottom, so short ones leave the upper lines free.
        let part = |c: &&Column| (line + c.head.len()).checked_sub(height).map_or(String::new(), |i| c.head[i].clone());
        let cells = columns.iter().map(|c| (part(c), Size::Plain, c.width()));
        lines.push(row("", label_width, cells, colour));
    }
    for (i, label) in labels.iter().enumerate() {
        lines.extend(label.heading.map(str::to_owned));
        let cells = columns.iter().map(|c| (c.cells[i].text.clone(), c.cells[i].size, c.width()));
        lines.push(row(&format!("  {}", label.name), label_width, cells, colour));
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn row(label: &str, label_width: usize, cells: impl Iterator<Item = (String, Size, usize)>, colour: bool) -> String {
    let mut line = format!("{label:label_width$}");
    for (text, size, column) in cells {
        line.push_str(&" ".repeat(GAP + column - width(&text)));
        line.push_str(&if colour { paint(&text, size) } else { text });
    }
    line
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn paint(text: &str, size: Size) -> String {
    let code = match size {
        Size::Plain => return text.to_owned(),
        Size::Nothing => "2",
        Size::Small => "32",
        Size::Middling => "33",
        Size::Large => "31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_columns_evenly_over_as_few_blocks_as_fit() {
        let columns: Vec<Column> =
            (0..13).map(|n| Column { head: vec![format!("column{n:02}")], cells: Vec::new() }).collect();
        let sizes = |room| balanced(&columns, room).iter().map(|block| block.len()).collect::<Vec<_>>();
        assert_eq!(sizes(60), [5, 5, 3], "six would fit: 6, 6 and 1");
        assert_eq!(sizes(1000), [7, 6], "no block has more than eight");
        assert_eq!(sizes(0), [1; 13]);
        assert_eq!(balanced(&[], 100).len(), 1);
    }

    #[test]
    fn breaks_long_names_where_they_get_narrowest() {
        assert_eq!(head("selinux-enforcing"), ["selinux-", "enforcing"]);
        assert_eq!(head("my-own-thing-x"), ["my-own-", "thing-x"]);
        assert_eq!(head("bpf-0"), ["bpf-0"]);
        assert_eq!(head("capability"), ["capability"]);
    }

    #[test]
    fn colours_by_size_only() {
        assert_eq!(paint("+27.6%", Size::Large), "\x1b[31m+27.6%\x1b[0m");
        assert_eq!(paint("3916", Size::Plain), "3916");
    }

    #[test]
    fn fits_one_column_at_least_and_eight_at_most() {
        let column = Column { head: vec!["x".repeat(10)], cells: Vec::new() };
        let columns = vec![column; 12];
        assert_eq!(fitting(&columns, 3, MAX_COLUMNS), 1);
        assert_eq!(fitting(&columns, 36, MAX_COLUMNS), 3);
        assert_eq!(fitting(&columns, 1000, MAX_COLUMNS), 8);
        assert_eq!(fitting(&columns[..0], 1000, MAX_COLUMNS), 0);
    }
}
