//! A page as HTML.

mod chart;
mod colours;
pub(super) mod picture;
mod table;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::model::{Block, Branch, Fold, Page, SHADES, Section};

/// Colours, type and layout.
const STYLE: &str = include_str!("style.css");

/// The script for copying and the theme; the page is complete without it.
const SCRIPT: &str = include_str!("script.js");

/// The content security policy: the browser prevents the page from fetching anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Numbers the elements that others refer to.
#[derive(Debug, Default)]
struct Ids(usize);

impl Ids {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("n{}", self.0)
    }
}

/// Removes end tags and quotes that HTML allows to leave out: they are a fifth of a large table. Texts are escaped and
/// contain neither `<` nor `"`, so everything that looks like markup is markup.
fn slim(markup: &str) -> String {
    const NEEDLESS: [&str; 6] = ["</td>", "</th>", "</tr>", "</tbody>", "</thead>", "</li>"];
    let html = NEEDLESS.iter().fold(markup.replace("\"></path>", "\"/>"), |html, tag| html.replace(tag, ""));
    let mut slim = String::with_capacity(html.len());
    let mut rest = html.as_str();
    while let Some((before, quoted)) = rest.split_once("=\"") {
        let (value, after) = quoted.split_once('"').unwrap_or((quoted, ""));
        let is_plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
        // A slash after an unquoted value would be taken as part of it.
        let quote = if is_plain && !after.starts_with('/') { "" } else { "\"" };
        slim.extend([before, "=", quote, value, quote]);
        rest = after;
    }
    slim + rest
}

/// A whole document.
pub(super) fn document(page: &Page) -> String {
    let mut ids = Ids::default();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "tollgate " (page.writer) };
                title { (page.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the figures" }
                header {
                    p.over { "Tollgate · study " (page.name) }
                    h1 { (page.title) }
                    button #theme type="button" hidden { "Dark" }
                    nav aria-label="Sections" {
                        ul { @for section in &page.sections { li { a href={ "#" (section.id) } { (section.title) } } } }
                    }
                }
                main #main tabindex="-1" {
                    @for section in &page.sections {
                        (PreEscaped(slim(&self::section(section, &mut ids).into_string())))
                    }
                }
                footer {
                    p { "Written by tollgate " (page.writer) ". The figures are those of results.json in the study's folder." }
                }
                p #said.unseen role="status" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

fn section(section: &Section, ids: &mut Ids) -> Markup {
    let heading = format!("{}-heading", section.id);
    html! {
        section id=(section.id) aria-labelledby=(heading) {
            h2 id=(heading) { (section.title) }
            @for block in &section.blocks { (self::block(block, 3, ids)) }
        }
    }
}

/// `level` is the level of the next heading below.
fn block(block: &Block, level: u8, ids: &mut Ids) -> Markup {
    match block {
        Block::Text(text) => html! { p { (text) } },
        Block::Facts(facts) => html! {
            dl.facts { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
        },
        Block::Notes(notes) => html! { ul.notes { @for note in notes { li { (note) } } } },
        Block::Listing(text) => {
            html! { pre tabindex="0" role="region" aria-label="The study file" { (text) } }
        }
        Block::Scale => scale(),
        Block::Table(table) => table::table(table, ids),
        Block::Charts(charts) => html! {
            div.charts { @for chart in charts { (chart::chart(chart, ids)) } }
        },
        Block::Fold(fold) => self::fold(fold, level, ids),
        Block::Tree(branches) => html! { ul.tree { @for branch in branches { (self::branch(branch)) } } },
    }
}

fn fold(fold: &Fold, level: u8, ids: &mut Ids) -> Markup {
    html! {
        details.fold open[fold.open] {
            summary {
                @if level == 3 { h3 { (fold.title) } } @else { h4 { (fold.title) } }
            }
            @for block in &fold.blocks { (self::block(block, level + 1, ids)) }
        }
    }
}

fn branch(branch: &Branch) -> Markup {
    let label = html! {
        @if branch.end { strong { (branch.name) } } @else { (branch.name) }
        @if !branch.remark.is_empty() { " " span.remark { (branch.remark) } }
    };
    html! {
        li {
            @if branch.branches.is_empty() { (label) } @else {
                details { summary { (label) } ul { @for next in &branch.branches { (self::branch(next)) } } }
            }
        }
    }
}

fn scale() -> Markup {
    html! {
        ul.scale aria-label="Shades of the tables: difference to the baseline" {
            @for (shade, text) in SHADES { li class=(table::shade(shade)) { (text) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_of_markup_what_a_browser_adds_by_itself() {
        let markup = html! { tr { td class="p1" title="a b" { "x=\"y\" </td>" } } path d="M0 0" {} circle r="2" {} };
        let expected =
            "<tr><td class=p1 title=\"a b\">x=&quot;y&quot; &lt;/td&gt;<path d=\"M0 0\"/><circle r=2></circle>";
        assert_eq!(slim(&markup.into_string()), expected);
    }
}
