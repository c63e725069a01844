//! Stand-alone SVG pictures for dark and light, with title and description for screen readers.

use std::fmt::Write;

use crate::{Reach, Report};

const STYLE: &str = "\
svg{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:#fff}\
text{fill:#1b1f24}.quiet{fill:#57606a}.hook{fill:#9a3412;font-weight:bold}\
path{fill:none;stroke:#8c959f}.pointer{stroke:#1d4ed8;stroke-dasharray:4 3}\
.direct{fill:#b45309}.all{fill:#93b4e8}\
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.quiet{fill:#9da7b3}.hook{fill:#fdba74}\
path{stroke:#6e7681}.pointer{stroke:#79b8ff}.direct{fill:#fb923c}.all{fill:#35588f}}";

const ROW: usize = 18;
/// The width of a letter, in pixels.
const LETTER: usize = 8;
const MARGIN: usize = 16;
/// The height of the title and the legend above the drawing.
const HEADER_HEIGHT: usize = 56;
const GAP: usize = 28;

/// A function on the paths from a system call to its hooks.
#[derive(Debug, Default)]
struct Node<'r> {
    name: &'r str,
    pointer: Option<&'r str>,
    hook: bool,
    children: Vec<Node<'r>>,
}

/// One system call: the paths to its hooks, as a tree.
#[must_use]
pub fn syscall(kernel: &str, reach: &Reach) -> String {
    let root = tree(reach);
    let mut columns = Vec::new();
    widths(&root, 0, &mut columns);
    let starts: Vec<usize> = columns
        .iter()
        .scan(MARGIN, |at, width| {
            let start = *at;
            *at += width * LETTER + GAP;
            Some(start)
        })
        .collect();
    let mut body = String::new();
    let rows = draw(&root, 0, 0, &starts, &mut body);
    let legend =
        format!("Dashed: through a pointer to a function. Bold: a hook. {} functions in reach.", reach.functions.all);
    let width = starts.last().zip(columns.last()).map_or(600, |(start, letters)| start + letters * LETTER + MARGIN);
    let direct = reach.hooks.iter().filter(|hook| hook.direct).count();
    let mut description = format!(
        "{} hooks are in reach: {direct} by direct calls, {} through pointers to functions.",
        reach.hooks.len(),
        reach.hooks.len() - direct
    );
    for hook in &reach.hooks {
        let _ = write!(description, " {} after {} calls.", hook.hook, hook.depth);
    }
    let title = format!("Hooks within reach of {} on {kernel}", reach.syscall);
    page(&title, &description, &legend, width.max(600), HEADER_HEIGHT + (rows + 1) * ROW, &body)
}

/// All system calls that reach a hook: how many hooks, by direct calls and through pointers.
#[must_use]
pub fn summary(report: &Report) -> String {
    let mut reaches: Vec<&Reach> = report.syscalls.iter().filter(|reach| !reach.hooks.is_empty()).collect();
    reaches.sort_by_key(|reach| (std::cmp::Reverse(count(reach)), &reach.syscall));
    let names = reaches.iter().map(|reach| reach.syscall.len()).max().unwrap_or(0) * LETTER + MARGIN + LETTER;
    let most = reaches.iter().map(|reach| reach.hooks.len()).max().unwrap_or(0);
    let mut body = String::new();
    for (row, reach) in reaches.iter().enumerate() {
        let (y, (direct, all)) = (HEADER_HEIGHT + row * ROW, (count(reach).0, reach.hooks.len()));
        let _ = writeln!(
            body,
            "<text x=\"{MARGIN}\" y=\"{base}\">{name}</text>\
             <rect class=\"all\" x=\"{names}\" y=\"{top}\" width=\"{wide}\" height=\"12\"/>\
             <rect class=\"direct\" x=\"{names}\" y=\"{top}\" width=\"{narrow}\" height=\"12\"/>\
             <text class=\"quiet\" x=\"{end}\" y=\"{base}\">{direct} + {more}</text>",
            base = y + 12,
            name = escape(&reach.syscall),
            top = y + 2,
            wide = all * 8,
            narrow = direct * 8,
            end = names + all * 8 + 6,
            more = all - direct
        );
    }
    let legend = "Dark: by direct calls. Light: through pointers to functions as well.";
    let title = format!("Hooks within reach of each system call on {}", report.kernel);
    let description = format!(
        "{} hooks, {} system calls, of which {} reach a hook; the most, {most} hooks, are in reach of {}.",
        report.hooks.len(),
        report.syscalls.len(),
        reaches.len(),
        reaches.iter().max_by_key(|reach| reach.hooks.len()).map_or("none", |reach| &reach.syscall)
    );
    page(&title, &description, legend, names + most * 8 + 100, HEADER_HEIGHT + (reaches.len() + 1) * ROW, &body)
}

/// The numbers of hooks: by direct calls, then through pointers.
fn count(reach: &Reach) -> (usize, usize) {
    (reach.hooks.iter().filter(|hook| hook.direct).count(), reach.hooks.len())
}

fn page(title: &str, description: &str, legend: &str, width: usize, height: usize, body: &str) -> String {
    let (title, description, legend) = (escape(title), escape(description), escape(legend));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n<style>{STYLE}</style>\n\
         <text x=\"{MARGIN}\" y=\"22\" style=\"font-size:15px\">{title}</text>\n\
         <text class=\"quiet\" x=\"{MARGIN}\" y=\"40\">{legend}</text>\n{body}</svg>\n"
    )
}

fn tree(reach: &Reach) -> Node<'_> {
    let mut root = Node::default();
    for hook in &reach.hooks {
        let mut at = &mut root;
        for step in &hook.path {
            let place = at
                .children
                .iter()
                .position(|child| child.name == step.function && child.pointer == step.pointer.as_deref());
            let place = place.unwrap_or_else(|| {
                at.children.push(Node { name: &step.function, pointer: step.pointer.as_deref(), ..Node::default() });
                at.children.len() - 1
            });
            at = &mut at.children[place];
        }
        at.hook = true;
    }
    // All paths begin with the system call's entry.
    root.children.pop().unwrap_or_default()
}

fn widths(node: &Node<'_>, depth: usize, columns: &mut Vec<usize>) {
    if columns.len() == depth {
        columns.push(0);
    }
    columns[depth] = columns[depth].max(node.name.len());
    for child in &node.children {
        widths(child, depth + 1, columns);
    }
}

/// Draws a function and its callees from this row on; returns the number of rows.
fn draw(node: &Node<'_>, depth: usize, row: usize, starts: &[usize], body: &mut String) -> usize {
    let (x, y) = (starts[depth], HEADER_HEIGHT + row * ROW + 12);
    let class = if node.hook { " class=\"hook\"" } else { "" };
    let through = node.pointer.map(|slot| format!("<title>through {}</title>", escape(slot))).unwrap_or_default();
    let _ = writeln!(body, "<text{class} x=\"{x}\" y=\"{y}\">{}{through}</text>", escape(node.name));
    let mut rows = 0;
    for child in &node.children {
        let (to, below) = (starts[depth + 1], HEADER_HEIGHT + (row + rows) * ROW + 8);
        let from = x + node.name.len() * LETTER;
        let class = if child.pointer.is_some() { " class=\"pointer\"" } else { "" };
        let bend = to - GAP / 2;
        let _ =
            writeln!(body, "<path{class} d=\"M{from} {level}H{bend}V{below}H{end}\"/>", level = y - 4, end = to - 3);
        rows += draw(child, depth + 1, row + rows, starts, body);
    }
    rows.max(1)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extent, Reached, Step};

    fn reach() -> Reach {
        let step = |function: &str, pointer: Option<&str>| Step {
            function: function.into(),
            pointer: pointer.map(Into::into),
        };
        let hook =
            |name: &str, direct, path: Vec<Step>| Reached { hook: name.into(), direct, depth: path.len() - 1, path };
        let first = vec![step("__x64_sys_mkdir", None), step("vfs_mkdir", None), step("security_inode_mkdir", None)];
        let second = vec![
            step("__x64_sys_mkdir", None),
            step("vfs_mkdir", None),
            step("ext4<mkdir>", Some("inode_operations.mkdir")),
        ];
        Reach {
            syscall: "mkdir".into(),
            functions: Extent { direct: 3, all: 4 },
            unknown: 0,
            hooks: vec![hook("inode_mkdir", true, first), hook("inode_alloc", false, second)],
        }
    }

    #[test]
    fn draws_what_ways_share_once() {
        let picture = syscall("6.1", &reach());
        assert_eq!(picture.matches(">vfs_mkdir<").count(), 1, "{picture}");
        assert_eq!(picture.matches("<path").count(), 3);
        assert_eq!(picture.matches("class=\"pointer\"").count(), 1);
        assert_eq!(picture.matches("class=\"hook\"").count(), 2);
    }

    #[test]
    fn tells_those_who_do_not_see_it() {
        let picture = syscall("6.1", &reach());
        assert!(picture.contains("<title id=\"title\">Hooks within reach of mkdir on 6.1</title>"));
        assert!(picture.contains("1 by direct calls, 1 through pointers to functions. inode_mkdir after 2 calls."));
    }

    #[test]
    fn escapes_what_names_hold() {
        assert!(syscall("<&\">", &reach()).contains("ext4&lt;mkdir&gt;<title>through inode_operations.mkdir</title>"));
        assert!(!syscall("<&\">", &reach()).contains("<&"));
    }

    #[test]
    fn draws_a_system_call_without_hooks() {
        let none = Reach { hooks: Vec::new(), ..reach() };
        assert!(syscall("6.1", &none).contains("0 hooks are in reach"));
    }
}
