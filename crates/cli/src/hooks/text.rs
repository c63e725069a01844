//! The hooks of a kernel's call graph, as text for people.

use std::fmt::Write;

use tollgate_callgraph::{Comparison, Moved, Reach, Report};

/// How many hooks per system call the table names.
const MAX_SHOWN: usize = 4;
/// How many system calls are named for a hook that has moved.
const MAX_CALLS: usize = 6;

/// All system calls, one per line.
pub(super) fn report(report: &Report) -> String {
    let mut text = head(report);
    let width = report.syscalls.iter().map(|reach| reach.syscall.len()).max().unwrap_or(0).max(11);
    let _ = writeln!(
        text,
        "\n{:width$}  {:^17}  {:^17}  unknown\nsystem call{:gap$}  {:>6} {:>10}  {:>6} {:>10}    calls  nearest (calls deep)",
        "",
        "hooks",
        "functions",
        "",
        "direct",
        "pointers",
        "direct",
        "all",
        gap = width - 11,
    );
    let reaching = report.syscalls.iter().filter(|reach| !reach.hooks.is_empty());
    for reach in reaching {
        let direct = reach.hooks.iter().filter(|hook| hook.direct).count();
        let named = reach.hooks.iter().take(MAX_SHOWN).map(|hook| format!("{}:{}", hook.hook, hook.depth));
        let more = if reach.hooks.len() > MAX_SHOWN { " ..." } else { "" };
        let _ = writeln!(
            text,
            "{:width$}  {direct:>6} {:>10}  {:>6} {:>10} {:>8}  {}{more}",
            reach.syscall,
            reach.hooks.len() - direct,
            reach.functions.direct,
            reach.functions.all,
            reach.unknown,
            named.collect::<Vec<_>>().join(" ")
        );
    }
    let none = report.syscalls.iter().filter(|reach| reach.hooks.is_empty()).map(|reach| reach.syscall.as_str());
    let none: Vec<_> = none.collect();
    let _ = writeln!(text, "\n{} reach no hook: {}", none.len(), none.join(" "));
    text
}

fn head(report: &Report) -> String {
    let figures = &report.figures;
    let mut text = format!(
        "{}: {} hooks, {} system calls, {} functions (names from {})\n",
        report.kernel,
        report.hooks.len(),
        report.syscalls.len(),
        figures.functions,
        figures.symbols.describe()
    );
    if figures.types {
        let _ = writeln!(
            text,
            "Calls through pointers: {} by a known member or variable ({} of them hold nothing in the image), {} unknown",
            figures.followed, figures.empty, figures.unknown
        );
    } else {
        text.push_str(
            "The image has no types (BTF): what calls through pointers lead to is unknown but for variables; a kernel with \
             CONFIG_DEBUG_INFO_BTF, such as Debian's, tells\n",
        );
    }
    if let Some(lines) = report.lines {
        let _ = writeln!(text, "Lines of C below security/: {lines}");
    }
    text
}

/// The kernel's hooks, one per line.
pub(super) fn hooks(report: &Report) -> String {
    let mut text = head(report);
    let width = report.hooks.iter().map(|hook| hook.name.len()).max().unwrap_or(0).max(4);
    let _ =
        writeln!(text, "\n{:width$}  system calls\nhook{:gap$}  direct     all  called by", "", "", gap = width - 4);
    for hook in &report.hooks {
        let functions: Vec<_> = hook.functions.iter().map(|name| format!("security_{name}")).collect();
        let _ = writeln!(text, "{:width$}  {:>6} {:>7}  {}", hook.name, hook.direct, hook.all, functions.join(" "));
    }
    text
}

/// One system call: its hooks, each with a path to it.
pub(super) fn syscall(kernel: &str, reach: &Reach) -> String {
    let direct = reach.hooks.iter().filter(|hook| hook.direct).count();
    let mut text = format!(
        "{} on {kernel}: {} hooks within reach, {direct} by direct calls; {} functions, {} of them by direct calls; {} \
         calls in them go where nothing tells\n",
        reach.syscall,
        reach.hooks.len(),
        reach.functions.all,
        reach.functions.direct,
        reach.unknown
    );
    for hook in &reach.hooks {
        let how = if hook.direct { "by direct calls" } else { "through pointers" };
        let _ = writeln!(text, "\n{}, {} deep, {how}", hook.hook, hook.depth);
        for step in &hook.path {
            let through = step.pointer.as_ref().map(|slot| format!("  (through {slot})")).unwrap_or_default();
            let _ = writeln!(text, "    {}{through}", step.function);
        }
    }
    text
}

/// The comparison of two kernels.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let mut text =
        format!("{:<28} {:>6} {:>10} {:>13} {:>10}\n", "kernel", "hooks", "called by", "system calls", "security/");
    for side in &comparison.kernels {
        let lines = side.lines.map_or_else(|| "-".to_string(), |lines| lines.to_string());
        let _ = writeln!(
            text,
            "{:<28} {:>6} {:>10} {:>13} {lines:>10}",
            side.kernel, side.hooks, side.functions, side.syscalls
        );
    }
    for published in &comparison.published {
        let name = format!("{} (published)", published.kernel);
        let _ = writeln!(text, "{name:<28} {:>6} {:>10} {:>13} {:>10}", published.hooks, "-", "-", published.lines);
    }
    text.push_str(
        "Published: Zhang, Liu, Jaeger, Analyzing the Overhead of File Protection by Linux Security Modules, 2021\n",
    );
    names(&mut text, "come", &comparison.come);
    names(&mut text, "gone", &comparison.gone);
    let _ = writeln!(text, "\n{} hooks that other system calls reach by direct calls", comparison.moved.len());
    for moved in &comparison.moved {
        one(&mut text, moved);
    }
    text
}

fn names(text: &mut String, what: &str, hooks: &[String]) {
    let _ = writeln!(
        text,
        "\n{} hooks have {what}{}{}",
        hooks.len(),
        if hooks.is_empty() { "" } else { ": " },
        hooks.join(" ")
    );
}

fn one(text: &mut String, moved: &Moved) {
    let list = |calls: &[String]| {
        let more = calls.len().saturating_sub(MAX_CALLS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", calls.iter().take(MAX_CALLS).map(String::as_str).collect::<Vec<_>>().join(" "))
    };
    let _ = writeln!(text, "  {}", moved.hook);
    if !moved.gained.is_empty() {
        let _ = writeln!(text, "    now also  {}", list(&moved.gained));
    }
    if !moved.lost.is_empty() {
        let _ = writeln!(text, "    no longer {}", list(&moved.lost));
    }
}

#[cfg(test)]
mod tests {
    use tollgate_callgraph::{Figures, Source};

    use super::*;

    #[test]
    fn tells_that_an_image_without_types_says_little_and_which_says_more() {
        let figures = Figures {
            symbols: Source::Kallsyms,
            types: true,
            functions: 9,
            direct: 9,
            followed: 5,
            empty: 1,
            unknown: 2,
            indirect: 3,
            objects: 1,
            objects_typed: 1,
        };
        let mut report = Report { kernel: "own".into(), figures, hooks: Vec::new(), syscalls: Vec::new(), lines: None };
        assert!(head(&report).contains("5 by a known member or variable (1 of them"));
        report.figures.types = false;
        let text = head(&report);
        assert!(text.contains("no types (BTF)") && text.contains("CONFIG_DEBUG_INFO_BTF"), "{text}");
    }
}
