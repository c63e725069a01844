//! Tables as HTML.

use maud::{Markup, html};

use super::Ids;
use crate::page::model::{Cell, Row, Table};

/// A table that scrolls by itself if it is wider than the page.
pub(super) fn table(table: &Table, ids: &mut Ids) -> Markup {
    let caption = ids.next();
    let all = table.columns.len() + 1;
    html! {
        div.table role="region" tabindex="0" aria-labelledby=(caption) {
            table {
                caption { span id=(caption) { (table.caption) } }
                thead {
                    tr {
                        th scope="col" { (table.corner) }
                        @for (i, column) in table.columns.iter().enumerate() {
                            @if column.is_empty() { td {} } @else { th.w[holds_words(table, i)] scope="col" { (column) } }
                        }
                    }
                }
                @for group in &table.groups {
                    tbody {
                        @if let Some(heading) = &group.heading {
                            tr.group { th scope="rowgroup" colspan=(all) { span { (heading) } } }
                        }
                        @for row in &group.rows { (self::row(row)) }
                    }
                }
            }
        }
    }
}

/// Whether a column holds words: its cells and its head are then aligned left.
fn holds_words(table: &Table, column: usize) -> bool {
    let first = table.groups.iter().flat_map(|group| &group.rows).next();
    matches!(first.and_then(|row| row.cells.get(column)), Some(Cell::Words(_)))
}

fn row(row: &Row) -> Markup {
    html! {
        tr {
            th scope="row" { (row.name) }
            @for cell in &row.cells { (self::cell(cell)) }
        }
    }
}

fn cell(cell: &Cell) -> Markup {
    match cell {
        Cell::Words(text) => html! { td.w { (text) } },
        Cell::Number(text) => html! { td { (text) } },
        Cell::Difference { text, margin, shade } => html! {
            td class=[(*shade != 0).then(|| self::shade(*shade))] {
                (text)
                @if !margin.is_empty() { " " small { (margin) } }
            }
        },
        Cell::Bar(part) => html! { td.bar { span style={ "width:" (format!("{:.0}", 100.0 * part)) "%" } {} } },
    }
}

/// The class of a shade.
pub(super) fn shade(shade: i8) -> String {
    if shade < 0 { format!("m{}", -shade) } else { format!("p{shade}") }
}
