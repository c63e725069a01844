//! A picture as SVG: a stand-alone heat map, light or dark as the reader's system is.

use maud::{Markup, PreEscaped, html};

use super::{
    STYLE,
    colours::{Colour, colours},
    table,
};
use crate::page::{
    model::{Cell, SHADES, Table},
    picture::Picture,
};

/// The margin around the picture.
const MARGIN: f64 = 16.0;

/// The height of a row.
const ROW: f64 = 19.0;

/// The width of a module's column.
const COLUMN: f64 = 43.0;

/// The width of the baseline's column, whose figures are absolute and longer.
const BASELINE: f64 = 58.0;

/// The width of a character: the average and a little more.
const LETTER: f64 = 6.3;

/// The angle of module names in degrees, so that long names fit over narrow columns.
const ANGLE: f64 = 50.0;

/// A picture's text, without the colours.
const TEXT: &str = "text{font:11px system-ui,-apple-system,'Segoe UI','Liberation Sans','DejaVu Sans',sans-serif;\
                    font-variant-numeric:tabular-nums}.title{font-size:15px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}";

/// The colours that a picture uses.
const FILLS: [&str; 13] = ["paper", "ink", "soft", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "m1", "m2", "m3"];

/// The positions of a table's columns.
struct Plot {
    left: f64,
    columns: usize,
    /// The height of the longest module name.
    heads: f64,
    /// How far the last module's name reaches beyond its column.
    beyond: f64,
}

impl Plot {
    fn of(tables: &[Table]) -> Self {
        let longest = |words: &mut dyn Iterator<Item = &String>| words.map(|w| w.chars().count()).max().unwrap_or(0);
        let names = longest(&mut tables.iter().flat_map(|t| &t.groups).flat_map(|g| &g.rows).map(|row| &row.name));
        let heads = longest(&mut tables.iter().flat_map(|t| t.columns.iter().skip(1))) as f64 * LETTER;
        Self {
            left: (MARGIN + names as f64 * LETTER + 8.0).ceil(),
            columns: tables.iter().map(|t| t.columns.len()).max().unwrap_or(0),
            heads: (heads * ANGLE.to_radians().sin() + 12.0).ceil(),
            beyond: (heads * ANGLE.to_radians().cos()).ceil(),
        }
    }

    /// The left edge of a column; the first is the baseline's.
    fn x(&self, column: usize) -> f64 {
        match column {
            0 => self.left,
            _ => self.left + BASELINE + COLUMN * (column - 1) as f64,
        }
    }

    fn width(&self) -> f64 {
        self.x(self.columns) + self.beyond.max(MARGIN)
    }
}

/// A whole file.
pub(in crate::page) fn svg(picture: &Picture) -> String {
    let plot = Plot::of(&picture.tables);
    let mut bottom = MARGIN + 16.0;
    let tables: Vec<Markup> = picture.tables.iter().map(|table| self::table(table, &plot, &mut bottom)).collect();
    let scale = bottom + ROW;
    let facts = scale + 26.0;
    let height = facts + 16.0 * picture.facts.len() as f64;
    let width = plot.width().max(760.0);
    let summary = picture.tables.iter().map(|table| table.caption.as_str()).collect::<Vec<_>>().join("; ");
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title summary" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } {
            title id="title" { (picture.title) }
            desc id="summary" { (summary) }
            style { (PreEscaped(style())) }
            rect.paper width="100%" height="100%" {}
            text.ink.title x=(MARGIN) y=(MARGIN + 12.0) { (picture.title) }
            @for table in tables { (table) }
            (self::scale(scale))
            @for (line, at) in picture.facts.iter().zip(0..) {
                text.soft x=(MARGIN) y=(facts + 16.0 * f64::from(at)) { (line) }
            }
        }
    }
    .into_string()
}

/// The colours of the page's style sheet, as classes that fill.
fn style() -> String {
    let fills = |shade: &dyn Fn(&Colour<'_>) -> String| -> String {
        let used = colours(STYLE).into_iter().filter(|colour| FILLS.contains(&colour.name));
        used.map(|colour| format!(".{}{{fill:{}}}", colour.name, shade(&colour))).collect()
    };
    let (light, dark) = (fills(&|c| c.light.to_owned()), fills(&|c| c.dark.to_owned()));
    format!("{TEXT}{light}@media (prefers-color-scheme:dark){{{dark}}}")
}

/// A table below `bottom`, which is moved down by its height.
fn table(table: &Table, plot: &Plot, bottom: &mut f64) -> Markup {
    let caption = *bottom + ROW;
    let heads = caption + plot.heads;
    let mut at = heads + 6.0;
    let rows: Vec<(&str, &[Cell], f64)> = table
        .groups
        .iter()
        .flat_map(|group| {
            at += 6.0;
            let first = at;
            at += ROW * group.rows.len() as f64;
            group
                .rows
                .iter()
                .zip(0..)
                .map(move |(row, i)| (row.name.as_str(), &row.cells[..], first + ROW * f64::from(i)))
        })
        .collect();
    *bottom = at;
    html! {
        text.soft x=(MARGIN) y=(caption) { (table.caption) }
        @for (i, name) in table.columns.iter().enumerate() { (head(name, plot, i, heads)) }
        @for (name, cells, top) in rows {
            text.ink x=(MARGIN) y=(top + 13.0) { (name) }
            @for (i, cell) in cells.iter().enumerate() { (self::cell(cell, plot, i, top)) }
        }
    }
}

fn head(name: &str, plot: &Plot, column: usize, bottom: f64) -> Markup {
    if column == 0 {
        return html! { text.soft.end x=(plot.x(1) - 8.0) y=(bottom) { (name) } };
    }
    let x = plot.x(column) + COLUMN / 2.0;
    html! { text.soft transform={ "translate(" (x) " " (bottom) ") rotate(-" (ANGLE) ")" } { (name) } }
}

/// Cells have no margins: there is no room for them in the picture.
fn cell(cell: &Cell, plot: &Plot, column: usize, top: f64) -> Markup {
    let x = plot.x(column);
    match cell {
        Cell::Number(text) | Cell::Words(text) => {
            html! { text.ink.end x=(x + if column == 0 { BASELINE - 8.0 } else { COLUMN - 4.0 }) y=(top + 13.0) { (text) } }
        }
        Cell::Difference { text, shade, .. } => html! {
            @if *shade != 0 {
                rect class=(table::shade(*shade)) x=(x) y=(top) width=(COLUMN - 1.0) height=(ROW - 1.0) {}
            }
            text.ink.mid x=(x + (COLUMN - 1.0) / 2.0) y=(top + 13.0) { (text) }
        },
        Cell::Bar(_) => html! {},
    }
}

/// The legend: the shades side by side with their meanings.
fn scale(top: f64) -> Markup {
    let mut next = MARGIN;
    let places = SHADES.map(|(_, text)| {
        let x = next;
        next += (34.0 + LETTER * text.chars().count() as f64).ceil();
        x
    });
    html! {
        @for ((shade, text), x) in SHADES.iter().zip(places) {
            rect class=(table::shade(*shade)) x=(x) y=(top - 8.0) width="10" height="10" {}
            text.soft x=(x + 14.0) y=(top + 1.0) { (text) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::model::{Group, Row};

    fn picture(text: &str) -> Picture {
        let cells = vec![
            Cell::Number("6025".to_owned()),
            Cell::Difference { text: "+31.5".to_owned(), margin: String::new(), shade: 5 },
        ];
        let groups = vec![Group { heading: None, rows: vec![Row { name: "open+close".to_owned(), cells }] }];
        let columns = vec!["none".to_owned(), "yama".to_owned()];
        let table = Table { caption: "Linux 6.1".to_owned(), corner: "operation", columns, groups };
        Picture { title: text.to_owned(), tables: vec![table], facts: vec!["Clock: instructions".to_owned()] }
    }

    #[test]
    fn draws_each_cell_in_its_shade_and_writes_the_facts_below() {
        let text = svg(&picture("Title"));
        for part in [">6025<", "<rect class=\"p5\"", ">+31.5<", ">yama<", ">open+close<", ">Clock: instructions<"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn needs_nothing_but_itself_and_escapes_what_comes_from_outside() {
        let text = svg(&picture("</title><script>&"));
        assert!(text.contains("&lt;script&gt;&amp;") && !text.contains("<script"), "{text}");
        assert_eq!(text.matches("http").count(), 1, "the name space alone");
    }

    #[test]
    fn has_the_colours_of_the_style_sheet_in_both_themes() {
        let style = style();
        let (light, dark) = style.split_once("@media (prefers-color-scheme:dark)").unwrap();
        for colour in colours(STYLE).iter().filter(|colour| FILLS.contains(&colour.name)) {
            assert!(light.contains(&format!(".{}{{fill:{}}}", colour.name, colour.light)));
            assert!(dark.contains(&format!(".{}{{fill:{}}}", colour.name, colour.dark)));
        }
        assert!(SHADES.iter().all(|(shade, _)| light.contains(&format!(".{}{{", table::shade(*shade)))));
    }
}
