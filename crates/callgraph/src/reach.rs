//! Searches the graph: the hooks that a system call reaches, their depth, and a path to each.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::{
    Error,
    code::Number,
    graph::{Graph, Way},
    stop::StopList,
};

/// The hooks that a system call can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// The system call's name.
    pub syscall: String,
    /// The number of functions that it can reach, without and with pointers.
    pub functions: Extent,
    /// The number of calls with unknown targets in these functions.
    pub unknown: usize,
    /// The hooks: first those by direct calls, by depth.
    pub hooks: Vec<Reached>,
}

/// A figure without and with pointers to functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Extent {
    /// By direct calls and jumps alone.
    pub direct: usize,
    /// Through pointers as well.
    pub all: usize,
}

/// A hook that the system call can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// The framework's function without `security_`.
    pub hook: String,
    /// Whether direct calls alone reach it.
    pub direct: bool,
    /// The length of a shortest path, in calls.
    pub depth: usize,
    /// One shortest path, from the system call's entry to the hook.
    pub path: Vec<Step>,
}

/// A function on a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The function's name.
    pub function: String,
    /// The slot whose pointer led to it, such as `file_operations.open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

/// A graph that is prepared for searches.
#[derive(Debug)]
pub struct Search<'g> {
    graph: &'g Graph,
    stopped: Vec<bool>,
    /// Edges that the stop list adds.
    added: BTreeMap<Number, Vec<Number>>,
    direct_only: bool,
}

/// For each function, its predecessor and its depth; none if it is not reached.
struct Ways(Vec<Option<(Number, Way, usize)>>);

impl<'g> Search<'g> {
    /// Prepares a search. Functions of the stop list are reached and not entered; with `direct_only` pointers are not
    /// followed.
    #[must_use]
    pub fn new(graph: &'g Graph, stop: &StopList, direct_only: bool) -> Self {
        let stopped = graph.names.iter().map(|name| stop.holds(name)).collect();
        let mut added: BTreeMap<Number, Vec<Number>> = BTreeMap::new();
        for (from, to) in stop.deferred() {
            if let Some((from, to)) = graph.function(from).zip(graph.function(to)) {
                added.entry(from).or_default().push(to);
            }
        }
        Self { graph, stopped, added, direct_only }
    }

    /// Searches from one system call.
    pub fn of(&self, syscall: &str) -> Result<Reach, Error> {
        let Some(start) = self.graph.syscalls.get(syscall) else {
            let near =
                self.graph.syscalls.keys().filter(|name| name.contains(syscall) || syscall.contains(name.as_str()));
            return Err(Error::NoSyscall { name: syscall.into(), near: near.take(5).cloned().collect() });
        };
        Ok(self.reach(syscall, *start))
    }

    /// Searches from every system call, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Reach> {
        let syscalls: Vec<_> = self.graph.syscalls.iter().collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = |first: usize| {
            let own = syscalls.iter().skip(first).step_by(threads);
            own.map(|(name, start)| self.reach(name, **start)).collect::<Vec<_>>()
        };
        let mut all = std::thread::scope(|scope| {
            let share = &share;
            let others: Vec<_> = (1..threads).map(|first| scope.spawn(move || share(first))).collect();
            let mut all = share(0);
            for other in others {
                match other.join() {
                    Ok(reaches) => all.extend(reaches),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        });
        all.sort_by(|a, b| a.syscall.cmp(&b.syscall));
        all
    }

    fn reach(&self, syscall: &str, start: Number) -> Reach {
        let direct = self.walk(start, false);
        let all = if self.direct_only { None } else { Some(self.walk(start, true)) };
        let widest = all.as_ref().unwrap_or(&direct);
        let hooks = self.graph.hooks.functions.keys().filter_map(|hook| {
            let (ways, is_direct) = if direct.depth(*hook).is_some() { (&direct, true) } else { (widest, false) };
            Some(Reached {
                hook: self.graph.hook_name(*hook).to_string(),
                direct: is_direct,
                depth: ways.depth(*hook)?,
                path: self.path(ways, start, *hook),
            })
        });
        let mut hooks: Vec<_> = hooks.collect();
        hooks.sort_by(|a, b| (!a.direct, a.depth, &a.hook).cmp(&(!b.direct, b.depth, &b.hook)));
        let entered = (0..).zip(&widest.0).zip(&self.stopped).filter(|((_, way), stopped)| way.is_some() && !**stopped);
        // Hooks call into modules, which do not count as the framework's unknown calls.
        let entered =
            entered.map(|((number, _), _)| number).filter(|number| !self.graph.hooks.functions.contains_key(number));
        Reach {
            syscall: syscall.into(),
            functions: Extent { direct: direct.count(), all: widest.count() },
            unknown: entered.map(|number: Number| self.graph.unknown[number as usize] as usize).sum(),
            hooks,
        }
    }

    fn walk(&self, start: Number, pointers: bool) -> Ways {
        let mut ways = Ways(vec![None; self.graph.names.len()]);
        ways.0[start as usize] = Some((start, Way::Part, 0));
        let mut waiting = VecDeque::from([start]);
        let mut entered = vec![false; self.graph.names.len()];
        while let Some(from) = waiting.pop_front() {
            // Parts of a function have the function's depth, so one may be queued twice.
            if self.stopped[from as usize] || std::mem::replace(&mut entered[from as usize], true) {
                continue;
            }
            let depth = ways.depth(from).unwrap_or(0);
            let added = self.added.get(&from).into_iter().flatten().map(|to| (*to, Way::Call));
            for (to, way) in self.graph.edges[from as usize].iter().copied().chain(added) {
                if matches!(way, Way::Pointer(_)) && !pointers {
                    continue;
                }
                let deeper = depth + usize::from(way != Way::Part);
                if ways.depth(to).is_some_and(|known| known <= deeper) {
                    continue;
                }
                ways.0[to as usize] = Some((from, way, deeper));
                if way == Way::Part { waiting.push_front(to) } else { waiting.push_back(to) }
            }
        }
        ways
    }

    fn path(&self, ways: &Ways, start: Number, end: Number) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = end;
        while let Some((before, way, _)) = ways.0[at as usize] {
            let pointer = match way {
                Way::Pointer(slot) => Some(self.graph.slot(slot).to_string()),
                _ => None,
            };
            steps.push(Step { function: self.graph.names[at as usize].clone(), pointer });
            if at == start {
                break;
            }
            at = before;
        }
        steps.reverse();
        steps
    }
}

impl Ways {
    fn depth(&self, number: Number) -> Option<usize> {
        self.0[number as usize].map(|(_, _, depth)| depth)
    }

    fn count(&self) -> usize {
        self.0.iter().flatten().count()
    }
}
