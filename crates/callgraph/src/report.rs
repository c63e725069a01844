//! The report of a kernel, and the comparison of two.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Figures, Graph, Reach};

/// A kernel's hooks, and the system calls that reach them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The kernel's name in the command.
    pub kernel: String,
    /// The size of the graph.
    pub figures: Figures,
    /// The kernel's hooks.
    pub hooks: Vec<Hook>,
    /// The kernel's system calls.
    pub syscalls: Vec<Reach>,
    /// Lines of C below `security/` in its source, if the source was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
}

/// A hook of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hook {
    /// The name by which modules register for it.
    pub name: String,
    /// The framework's functions that call it, without `security_`.
    pub functions: Vec<String>,
    /// The number of system calls that reach one of them by direct calls.
    pub direct: usize,
    /// The number of system calls that reach one of them at all.
    pub all: usize,
}

impl Report {
    /// The report of a graph and the results of its search.
    #[must_use]
    pub fn new(kernel: &str, graph: &Graph, syscalls: Vec<Reach>) -> Self {
        let mut hooks: BTreeMap<&str, BTreeSet<&str>> =
            graph.hooks().iter().map(|hook| (hook.as_str(), BTreeSet::new())).collect();
        for (function, asked) in graph.hook_functions() {
            for hook in asked.iter().filter(|hook| !hook.is_empty()) {
                hooks.entry(hook).or_default().insert(function);
            }
        }
        let reaching = |functions: &BTreeSet<&str>, direct: bool| {
            let reaches = |reach: &&Reach| {
                reach.hooks.iter().any(|hook| (hook.direct || !direct) && functions.contains(hook.hook.as_str()))
            };
            syscalls.iter().filter(reaches).count()
        };
        let hooks = hooks.iter().map(|(name, functions)| Hook {
            name: (*name).to_string(),
            functions: functions.iter().map(|name| (*name).to_string()).collect(),
            direct: reaching(functions, true),
            all: reaching(functions, false),
        });
        let hooks = hooks.collect();
        Self { kernel: kernel.into(), figures: graph.figures().clone(), hooks, syscalls, lines: None }
    }
}

/// Two kernels side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The first and the second kernel.
    pub kernels: [Side; 2],
    /// Hooks that only the second kernel has.
    pub come: Vec<String>,
    /// Hooks that only the first kernel has.
    pub gone: Vec<String>,
    /// Hooks of both kernels that direct calls reach from other system calls than before.
    pub moved: Vec<Moved>,
    /// Published figures of earlier kernels.
    pub published: [Published; 2],
}

/// One of the two kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The kernel's name.
    pub kernel: String,
    /// The number of its hooks.
    pub hooks: usize,
    /// The number of the framework's functions that call them.
    pub functions: usize,
    /// The number of its system calls.
    pub syscalls: usize,
    /// Lines of C below `security/`; none if the source was not given.
    pub lines: Option<u64>,
}

/// A hook that other system calls reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The hook's name.
    pub hook: String,
    /// System calls of both kernels that reach it only in the second.
    pub gained: Vec<String>,
    /// System calls of both kernels that reach it only in the first.
    pub lost: Vec<String>,
}

/// A kernel of "Analyzing the Overhead of File Protection by Linux Security Modules" (Zhang, Liu, Jaeger, 2021).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The kernel's version.
    pub kernel: &'static str,
    /// The number of its hooks.
    pub hooks: u32,
    /// Lines of its security modules.
    pub lines: u32,
}

/// The paper's figures: from 122 to 224 hooks, from 10,684 to 64,018 lines.
pub const PUBLISHED: [Published; 2] =
    [Published { kernel: "2.6.0", hooks: 122, lines: 10_684 }, Published { kernel: "5.3", hooks: 224, lines: 64_018 }];

impl Comparison {
    /// Compares two reports.
    #[must_use]
    pub fn new(first: &Report, second: &Report) -> Self {
        let names = |report: &Report| report.hooks.iter().map(|hook| hook.name.clone()).collect::<BTreeSet<_>>();
        let (before, after) = (names(first), names(second));
        let (reached_before, reached_after) = (reached(first), reached(second));
        let calls =
            |report: &Report| report.syscalls.iter().map(|reach| reach.syscall.clone()).collect::<BTreeSet<_>>();
        let both: BTreeSet<String> = calls(first).intersection(&calls(second)).cloned().collect();
        let moved = before.intersection(&after).filter_map(|hook| {
            let of = |all: &BTreeMap<String, BTreeSet<String>>| {
                all.get(hook).map(|calls| calls.intersection(&both).cloned().collect()).unwrap_or_default()
            };
            let (before, after): (BTreeSet<String>, BTreeSet<String>) = (of(&reached_before), of(&reached_after));
            let gained: Vec<_> = after.difference(&before).cloned().collect();
            let lost: Vec<_> = before.difference(&after).cloned().collect();
            (!gained.is_empty() || !lost.is_empty()).then(|| Moved { hook: hook.clone(), gained, lost })
        });
        Self {
            kernels: [side(first), side(second)],
            come: after.difference(&before).cloned().collect(),
            gone: before.difference(&after).cloned().collect(),
            moved: moved.collect(),
            published: PUBLISHED,
        }
    }
}

fn side(report: &Report) -> Side {
    Side {
        kernel: report.kernel.clone(),
        hooks: report.hooks.len(),
        functions: report.hooks.iter().flat_map(|hook| &hook.functions).collect::<BTreeSet<_>>().len(),
        syscalls: report.syscalls.len(),
        lines: report.lines,
    }
}

/// The system calls that reach each hook by direct calls. Edges through pointers differ too easily.
fn reached(report: &Report) -> BTreeMap<String, BTreeSet<String>> {
    let mut by_function: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for reach in &report.syscalls {
        for hook in reach.hooks.iter().filter(|hook| hook.direct) {
            by_function.entry(&hook.hook).or_default().insert(reach.syscall.clone());
        }
    }
    let hooks = report.hooks.iter().map(|hook| {
        let calls = hook.functions.iter().filter_map(|function| by_function.get(function.as_str()));
        (hook.name.clone(), calls.flatten().cloned().collect())
    });
    hooks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extent, Reached, Source};

    fn report(kernel: &str, hooks: &[&str], reaches: &[(&str, &[(&str, bool)])]) -> Report {
        let figures = Figures {
            symbols: Source::Kallsyms,
            types: true,
            functions: 0,
            direct: 0,
            followed: 0,
            empty: 0,
            unknown: 0,
            indirect: 0,
            objects: 0,
            objects_typed: 0,
        };
        let hooks =
            hooks.iter().map(|name| Hook { name: (*name).into(), functions: vec![(*name).into()], direct: 0, all: 0 });
        let syscalls = reaches.iter().map(|(syscall, hooks)| Reach {
            syscall: (*syscall).into(),
            functions: Extent { direct: 0, all: 0 },
            unknown: 0,
            hooks: hooks
                .iter()
                .map(|(hook, direct)| Reached { hook: (*hook).into(), direct: *direct, depth: 1, path: Vec::new() })
                .collect(),
        });
        Report { kernel: kernel.into(), figures, hooks: hooks.collect(), syscalls: syscalls.collect(), lines: None }
    }

    #[test]
    fn tells_hooks_that_have_come_gone_and_moved() {
        let first = report("1", &["a", "b", "c"], &[("open", &[("a", true), ("c", false)]), ("old", &[("c", true)])]);
        let second = report("2", &["a", "c", "d"], &[("open", &[("c", true)]), ("new", &[("a", true)])]);
        let comparison = Comparison::new(&first, &second);
        assert_eq!((comparison.come, comparison.gone), (vec!["d".to_string()], vec!["b".to_string()]));
        // A system call that only one kernel has moves no hook, nor do edges through pointers.
        let [a, c] = &comparison.moved[..] else { panic!("{:?}", comparison.moved) };
        assert_eq!((a.hook.as_str(), &a.gained[..], &a.lost[..]), ("a", &[][..], &["open".to_string()][..]));
        assert_eq!((c.hook.as_str(), &c.gained[..], &c.lost[..]), ("c", &["open".to_string()][..], &[][..]));
    }

    #[test]
    fn finds_no_difference_between_a_kernel_and_itself() {
        let one = report("1", &["a"], &[("open", &[("a", true)])]);
        let comparison = Comparison::new(&one, &one);
        assert!(comparison.come.is_empty() && comparison.gone.is_empty() && comparison.moved.is_empty());
    }
}
