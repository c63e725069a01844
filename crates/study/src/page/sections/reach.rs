//! Section: the call graph, from each system call to the hooks that direct calls reach.

use crate::page::{
    material::{Graph, Reach, Reached},
    model::{Block, Branch, Fold, Section},
};

/// One tree per kernel; `None` if the folder has no graph.
pub(in crate::page) fn section(graphs: &[Graph]) -> Option<Section> {
    let fold = |graph: &Graph| {
        let calls: Vec<Branch> = graph.syscalls.iter().filter_map(call).collect();
        let title = format!("Linux {}: {} system calls that reach a hook", graph.kernel, calls.len());
        Block::Fold(Fold { title, open: graphs.len() == 1, blocks: vec![Block::Tree(calls)] })
    };
    let what = "Read from the kernel's image: a system call, the functions that lead from it, and in bold the hooks at their ends, each \
                on a shortest way. Only direct calls are drawn; what pointers to functions can lead to besides is counted.";
    (!graphs.is_empty()).then(|| Section {
        id: "reach",
        title: "Call graph",
        blocks: std::iter::once(Block::Text(what.to_owned())).chain(graphs.iter().map(fold)).collect(),
    })
}

/// `None` for a system call that reaches nothing.
fn call(reach: &Reach) -> Option<Branch> {
    let mut direct: Vec<&Reached> = reach.hooks.iter().filter(|hook| hook.direct && hook.path.len() > 1).collect();
    direct.sort_by(|a, b| functions(a).cmp(functions(b)));
    let indirect = reach.hooks.iter().filter(|hook| !hook.direct).count();
    let remark = match (direct.len(), indirect) {
        (0, 0) => return None,
        (0, indirect) => format!("{} through pointers alone", hooks(indirect)),
        (direct, 0) => hooks(direct),
        (direct, indirect) => format!("{}, {indirect} more through pointers", hooks(direct)),
    };
    Some(Branch { name: reach.syscall.clone(), remark, end: false, branches: below(&direct, 1) })
}

fn hooks(count: usize) -> String {
    if count == 1 { "1 hook".to_owned() } else { format!("{count} hooks") }
}

fn functions(hook: &Reached) -> impl Iterator<Item = &str> {
    hook.path.iter().map(|step| step.function.as_str())
}

/// The branches below a function: `hooks` share the first `at` functions of their paths, by which they are sorted.
fn below(hooks: &[&Reached], at: usize) -> Vec<Branch> {
    let next = |hook: &Reached| hook.path.get(at).map(|step| step.function.clone());
    hooks.chunk_by(|a, b| next(a) == next(b)).filter_map(|chunk| branch(chunk, at)).collect()
}

/// A chain of functions without a fork is one branch.
fn branch(hooks: &[&Reached], at: usize) -> Option<Branch> {
    let (first, last) = (hooks.first()?, hooks.last()?);
    let mut end = at;
    // In sorted paths, all share what the first and the last share.
    while end < first.path.len() && first.path.get(end) == last.path.get(end) {
        end += 1;
    }
    let names: Vec<&str> = functions(first).take(end).skip(at).collect();
    let (ending, passing): (Vec<&&Reached>, Vec<&&Reached>) = hooks.iter().partition(|hook| hook.path.len() == end);
    let passing: Vec<&Reached> = passing.into_iter().copied().collect();
    let mut branches = below(&passing, end);
    let Some(hook) = ending.first() else {
        return Some(Branch { name: names.join(" → "), remark: String::new(), end: false, branches });
    };
    let leaf =
        |branches| Branch { name: hook.hook.clone(), remark: format!("depth {}", hook.depth), end: true, branches };
    // The hook's own function adds nothing to the hook's name.
    let (_, before) = names.split_last()?;
    if before.is_empty() {
        return Some(leaf(branches));
    }
    branches = vec![leaf(branches)];
    Some(Branch { name: before.join(" → "), remark: String::new(), end: false, branches })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::material::Step;

    fn reached(hook: &str, direct: bool, path: &str) -> Reached {
        let path: Vec<Step> = path.split(' ').map(|function| Step { function: function.into() }).collect();
        Reached { hook: hook.into(), direct, depth: path.len() - 1, path }
    }

    fn drawn(branches: &[Branch], indent: usize) -> String {
        let line = |b: &Branch| {
            let mark = if b.end { "*" } else { "" };
            format!("{}{mark}{}\n{}", " ".repeat(indent), b.name, drawn(&b.branches, indent + 1))
        };
        branches.iter().map(line).collect()
    }

    #[test]
    fn joins_ways_as_far_as_they_are_one_and_ends_each_in_its_hook() {
        let reach = Reach {
            syscall: "mkdir".into(),
            hooks: vec![
                reached("path_mkdir", true, "sys do_mkdirat security_path_mkdir"),
                reached("inode_mkdir", true, "sys do_mkdirat vfs_mkdir may security_inode_mkdir"),
                reached(
                    "inode_permission",
                    true,
                    "sys do_mkdirat vfs_mkdir inode_permission security_inode_permission",
                ),
                reached("late", true, "sys do_mkdirat security_path_mkdir security_late"),
                reached("far", false, "sys a b"),
            ],
        };
        let call = call(&reach).unwrap();
        assert_eq!(call.remark, "4 hooks, 1 more through pointers");
        let expected = [
            "do_mkdirat",
            " *path_mkdir",
            "  *late",
            " vfs_mkdir",
            "  inode_permission",
            "   *inode_permission",
            "  may",
            "   *inode_mkdir",
        ];
        assert_eq!(drawn(&call.branches, 0).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn leaves_out_a_system_call_that_reaches_nothing() {
        assert_eq!(call(&Reach { syscall: "getpid".into(), hooks: Vec::new() }), None);
    }
}
