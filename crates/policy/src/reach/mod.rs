//! Where information can go by the rules of a policy: what a domain's information reaches, and which domains can write
//! to a type, in any number of steps.
//!
//! Nodes are types. A rule with a permission that writes lets information go from source to target; one that reads,
//! from target to source ([`flow`]). A transition of a process counts as a write, so what one domain can do by entering
//! another is found as well. Only rules count: constraints, including MLS, may forbid more. Types with the same row (or
//! column) have the same neighbours, so each row and each column is followed once.

use std::collections::VecDeque;

use serde::Serialize;

use self::flow::Flow;
use crate::{
    cil,
    model::{Bits, Policy},
    vectors::Vectors,
};

mod flow;

/// The direction in which information is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Where it can go from a type.
    From,
    /// From where it can come to a type.
    To,
}

/// What is left out.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Types that are not followed.
    pub exclude: Bits,
    /// The maximum number of steps; `None`: any.
    pub steps: Option<u32>,
    /// Whether permissions that carry little information count as well.
    pub weak: bool,
}

/// A step of information from one type to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The type from which it goes.
    pub from: String,
    /// The type to which it goes.
    pub to: String,
    /// The rules that permit it, as CIL, with the permissions that matter.
    pub rules: Vec<String>,
}

/// The types that information reaches (or comes from), and how.
#[derive(Debug)]
pub struct Reach<'a> {
    policy: &'a Policy,
    vectors: &'a Vectors,
    flow: Flow,
    way: Way,
    start: u32,
    /// By type: the number of steps, and the type before it.
    found: Vec<Option<(u32, u32)>>,
}

/// What a vector allows: reading and writing.
const READ: u8 = 1;
const WRITE: u8 = 2;

/// The types by row and by column, and what each vector allows.
struct Graph<'a> {
    vectors: &'a Vectors,
    does: Vec<u8>,
    in_row: Vec<Vec<u32>>,
    in_column: Vec<Vec<u32>>,
}

impl<'a> Graph<'a> {
    fn of(policy: &Policy, vectors: &'a Vectors, flow: &Flow) -> Self {
        let does = (0..vectors.vectors()).map(|vector| {
            (1..=vectors.classes()).fold(0, |does, class| {
                let allow = vectors.access(vector, class).allow;
                let read = if allow & flow.reads(class) == 0 { 0 } else { READ };
                let write = if allow & flow.writes(class) == 0 { 0 } else { WRITE };
                does | read | write
            })
        });
        let does = does.collect();
        let mut in_row = vec![Vec::new(); vectors.rows() as usize];
        let mut in_column = vec![Vec::new(); vectors.columns() as usize];
        for (number, _) in (0..).zip(&policy.types).filter(|(_, t)| !t.attribute && !t.name.is_empty()) {
            if let Some(row) = in_row.get_mut(vectors.row(number) as usize) {
                row.push(number);
            }
            if let Some(column) = in_column.get_mut(vectors.column(number) as usize) {
                column.push(number);
            }
        }
        Self { vectors, does, in_row, in_column }
    }

    fn does(&self, row: u32, column: u32) -> u8 {
        self.does.get(self.vectors.vector(row, column) as usize).copied().unwrap_or_default()
    }

    /// Targets of a source row whose rules allow `what`.
    fn targets(&self, row: u32, what: u8) -> impl Iterator<Item = u32> + '_ {
        let columns = (0..self.vectors.columns()).filter(move |column| self.does(row, *column) & what != 0);
        columns.flat_map(|column| self.in_column[column as usize].iter().copied())
    }

    /// Sources whose rules allow `what` on a target column.
    fn sources(&self, column: u32, what: u8) -> impl Iterator<Item = u32> + '_ {
        let rows = (0..self.vectors.rows()).filter(move |row| self.does(*row, column) & what != 0);
        rows.flat_map(|row| self.in_row[row as usize].iter().copied())
    }
}

impl<'a> Reach<'a> {
    /// Follows information from (or to) the type `start`. The nearest types come first.
    pub fn new(policy: &'a Policy, vectors: &'a Vectors, way: Way, start: u32, limits: &Limits) -> Self {
        let flow = Flow::of(policy, limits.weak);
        let found = follow(&Graph::of(policy, vectors, &flow), policy.types.len(), way, start, limits);
        Self { policy, vectors, flow, way, start, found }
    }

    /// The types found, with the number of steps to each, nearest first, without the start.
    pub fn types(&self) -> Vec<(u32, u32)> {
        let mut types: Vec<(u32, u32)> = (0..)
            .zip(&self.found)
            .filter(|(number, _)| *number != self.start)
            .filter_map(|(number, found)| found.map(|(steps, _)| (number, steps)))
            .collect();
        types.sort_by_key(|(number, steps)| (*steps, &self.policy.types[*number as usize].name));
        types
    }

    /// A shortest path between the start and `type_`, in the direction of the information; `None`: it was not found.
    pub fn path(&self, type_: u32) -> Option<Vec<Step>> {
        let mut now = type_;
        let mut steps = Vec::new();
        self.found.get(now as usize).copied().flatten()?;
        while now != self.start {
            let (_, before) = self.found.get(now as usize).copied().flatten()?;
            steps.push(match self.way {
                Way::From => self.step(before, now),
                Way::To => self.step(now, before),
            });
            now = before;
        }
        if self.way == Way::From {
            steps.reverse();
        }
        Some(steps)
    }

    /// `class permission` pairs whose direction is not known. They count as both directions.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.flow.unknown.iter().map(String::as_str)
    }

    fn step(&self, from: u32, to: u32) -> Step {
        let mut rules = Vec::new();
        let mut tell = |source: u32, target: u32, class: u32, carried: u32| {
            let vector = self.vectors.rules(source, target, class).allow & carried;
            if vector != 0 {
                let (source, target) = (cil::type_name(self.policy, source), cil::type_name(self.policy, target));
                let permissions = cil::class_permissions(self.policy, class, vector);
                rules.push(format!("(allow {source} {target} {permissions})"));
            }
        };
        for class in 1..=self.vectors.classes() {
            tell(from, to, class, self.flow.writes(class));
            tell(to, from, class, self.flow.reads(class));
        }
        Step { from: cil::type_name(self.policy, from), to: cil::type_name(self.policy, to), rules }
    }
}

/// By type: the number of steps, and the type from which it was found. The start is its own.
fn follow(graph: &Graph<'_>, types: usize, way: Way, start: u32, limits: &Limits) -> Vec<Option<(u32, u32)>> {
    // From the source's point of view, a rule carries information out by writing and in by reading. Backwards it is
    // the reverse.
    let (as_source, as_target) = match way {
        Way::From => (WRITE, READ),
        Way::To => (READ, WRITE),
    };
    let mut found: Vec<Option<(u32, u32)>> = vec![None; types];
    let mut rows = vec![false; graph.in_row.len()];
    let mut columns = vec![false; graph.in_column.len()];
    let mut queue = VecDeque::new();
    if let Some(place) = found.get_mut(start as usize) {
        *place = Some((0, start));
        queue.push_back(start);
    }
    while let Some(now) = queue.pop_front() {
        let steps = found[now as usize].map_or(0, |(steps, _)| steps) + 1;
        if limits.steps.is_some_and(|limit| steps > limit) {
            break;
        }
        let (row, column) = (graph.vectors.row(now), graph.vectors.column(now));
        let mut next: Vec<u32> = Vec::new();
        if rows.get(row as usize) == Some(&false) {
            rows[row as usize] = true;
            next.extend(graph.targets(row, as_source));
        }
        if columns.get(column as usize) == Some(&false) {
            columns[column as usize] = true;
            next.extend(graph.sources(column, as_target));
        }
        next.sort_unstable();
        for type_ in next {
            if found[type_ as usize].is_none() && !limits.exclude.has(type_) {
                found[type_ as usize] = Some((steps, now));
                queue.push_back(type_);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
