//! Rows, columns and vectors: the access vectors of every source, target and class, without a loop over attributes.
//!
//! The kernel goes through all pairs of a source's and a target's attributes (`context_struct_compute_av`). Here, types
//! to which the same rules apply share a row (as sources) or a column (as targets), and the cell where they meet has
//! the sum. Rules of a type on itself, including those with `self`, would put each type into a row of its own, so they
//! are looked up by key.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use tollgate_abi::tables::{TG_CAPACITY, TG_SELF};

use crate::model::{Policy, RuleKind};

use super::{
    keys::{Keys, key},
    limit::TableLimit,
    tuples::{Access, Tuples},
};

/// How many bytes the matrix may take before equal rows and columns are merged, and the vectors before they are folded.
const WORKSPACE: usize = 8 * TG_CAPACITY as usize;

/// Where each source and target type has its tuples.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// By type: its row and its column. Attributes and number 0 have 0, which allows nothing.
    pub(super) of_type: Vec<(u32, u32)>,
    /// Rows of vectors.
    pub(super) cells: Vec<u16>,
    pub(super) vectors: u32,
    /// Vectors of tuples, by class.
    pub(super) entries: Vec<u16>,
}

/// The matrix of the rules that hold. Rules of a type on itself become `keys`.
pub(super) fn build(policy: &Policy, tuples: &mut Tuples<'_>, keys: &mut Keys) -> Result<Matrix, TableLimit> {
    let (between, own) = collect(policy);
    let grants = Grants::new(policy, between);
    let rows = Groups::new(policy, |key| !grants.of_source(key).is_empty());
    let targets = grants.targets(policy);
    let columns = Groups::new(policy, |key| targets[key as usize]);
    let bytes = rows.keys.len() * columns.keys.len() * size_of::<u16>();
    if bytes > WORKSPACE {
        return Err(TableLimit::Capacity { section: "matrix of types", needs: bytes });
    }
    let mut vectors = Vectors::new(policy, tuples);
    let mut cells = Vec::with_capacity(bytes / size_of::<u16>());
    for row in &rows.keys {
        cells.extend(fill(&grants, row, &columns.keys, &mut vectors)?);
    }
    let Vectors { entries, known, .. } = vectors;
    let vectors = known.len() as u32;
    for ((type_, class), mut access) in own {
        keys.insert(key(TG_SELF, type_, 0, class), tuples.intern(&mut access)?.into());
    }
    // Each of these may be large, and is dropped when the next one is made.
    let (row_of, merged) = merge(&cells, columns.keys.len());
    drop(cells);
    let turned = transpose(&merged, columns.keys.len());
    drop(merged);
    let (column_of, merged) = merge(&turned, row_of.count);
    drop(turned);
    let (column_of, cells) = sort(column_of, &merged);
    drop(merged);
    let place = |group: &Merged, member: u32| group.of[member as usize];
    Ok(Matrix {
        rows: row_of.count as u32,
        columns: column_of.count as u32,
        of_type: rows.of.iter().zip(&columns.of).map(|(r, c)| (place(&row_of, *r), place(&column_of, *c))).collect(),
        cells: transpose(&cells, row_of.count),
        vectors,
        entries,
    })
}

/// The subject of a rule: source, target, class.
type Subject = (u32, u32, u32);
/// What rules say about their subjects.
type Rules = Vec<(Subject, Access)>;
/// Rules of a type on itself, by type and class.
type Own = BTreeMap<(u32, u32), Access>;

/// The rules that hold: between types or attributes, and of a type on itself.
fn collect(policy: &Policy) -> (Rules, Own) {
    let mut between = Vec::with_capacity(policy.rules.len());
    let mut own = Own::new();
    let mut add = |subject: Subject, access: Access| {
        let (source, target, class) = subject;
        if source == target && !policy.types[source as usize].attribute {
            own.entry((source, class)).or_default().add(&access);
        } else {
            between.push((subject, access));
        }
    };
    for rule in &policy.rules {
        let vector = matches!(rule.kind, RuleKind::Allow | RuleKind::AuditAllow | RuleKind::DontAudit);
        if vector && policy.holds(rule.condition) {
            let mut access = Access::NONE;
            access.permit(rule.kind, rule.data);
            add((rule.source, rule.target, rule.class), access);
        }
    }
    for (rule, place) in policy.extended_rules.iter().zip(0..) {
        if policy.holds(rule.condition) {
            add((rule.source, rule.target, rule.class), Access { extended: vec![place], ..Access::NONE });
        }
    }
    (between, own)
}

/// Rules sorted by source, target and class. Tuples and vectors are numbered in this order, whatever the order of the
/// rules.
#[derive(Debug)]
struct Grants {
    grants: Rules,
    /// By source: where its grants are, target by target.
    by_source: Vec<Vec<(u32, Range<usize>)>>,
}

impl Grants {
    fn new(policy: &Policy, mut rules: Rules) -> Self {
        rules.sort_unstable_by_key(|(subject, _)| *subject);
        let mut grants: Rules = Vec::with_capacity(rules.len());
        for (subject, access) in rules {
            match grants.last_mut() {
                Some((last, sum)) if *last == subject => sum.add(&access),
                _ => grants.push((subject, access)),
            }
        }
        let mut by_source = vec![Vec::new(); policy.types.len()];
        let mut start = 0;
        for same in grants.chunk_by(|(a, _), (b, _)| (a.0, a.1) == (b.0, b.1)) {
            let (source, target, _) = same[0].0;
            by_source[source as usize].push((target, start..start + same.len()));
            start += same.len();
        }
        Self { grants, by_source }
    }

    fn of_source(&self, key: u32) -> &[(u32, Range<usize>)] {
        &self.by_source[key as usize]
    }

    /// By type or attribute: whether a rule has it as target.
    fn targets(&self, policy: &Policy) -> Vec<bool> {
        let mut targets = vec![false; policy.types.len()];
        self.by_source.iter().flatten().for_each(|(target, _)| targets[*target as usize] = true);
        targets
    }
}

/// Types with the same keys: themselves and their attributes, as far as rules name them.
#[derive(Debug)]
struct Groups {
    /// The group of each type, by number of the type.
    of: Vec<u32>,
    /// The keys of each group; the first group has none.
    keys: Vec<Vec<u32>>,
}

impl Groups {
    fn new(policy: &Policy, named: impl Fn(u32) -> bool) -> Self {
        let mut groups = Self { of: vec![0; policy.types.len()], keys: vec![Vec::new()] };
        let mut known = HashMap::from([(Vec::new(), 0)]);
        for (type_, group) in policy.types.iter().zip(&mut groups.of).filter(|(type_, _)| !type_.attribute) {
            let keys: Vec<u32> = type_.set.iter().filter(|key| named(*key)).collect();
            *group = *known.entry(keys).or_insert_with_key(|keys| {
                groups.keys.push(keys.clone());
                groups.keys.len() as u32 - 1
            });
        }
        groups
    }
}

/// Vectors, each once. The first is all zero.
struct Vectors<'t, 'p> {
    tuples: &'t mut Tuples<'p>,
    /// The number of classes plus 1.
    length: usize,
    entries: Vec<u16>,
    known: HashMap<Vec<u16>, u16>,
    /// The present sum by class, and the classes in it.
    sum: Vec<Access>,
    classes: Vec<u32>,
}

impl<'t, 'p> Vectors<'t, 'p> {
    fn new(policy: &Policy, tuples: &'t mut Tuples<'p>) -> Self {
        let length = policy.classes.len().max(1);
        Self {
            tuples,
            length,
            entries: vec![0; length],
            known: HashMap::from([(vec![0; length], 0)]),
            sum: vec![Access::NONE; length],
            classes: Vec::new(),
        }
    }

    /// The vector for the sum of `grants`.
    fn intern<'g>(&mut self, grants: impl Iterator<Item = &'g (Subject, Access)>) -> Result<u16, TableLimit> {
        for ((_, _, class), access) in grants {
            let sum = &mut self.sum[*class as usize];
            if *sum == Access::NONE {
                self.classes.push(*class);
            }
            sum.add(access);
        }
        let mut vector = vec![0; self.length];
        for class in self.classes.drain(..) {
            let sum = &mut self.sum[class as usize];
            vector[class as usize] = self.tuples.intern(sum)?;
            *sum = Access::NONE;
        }
        if let Some(number) = self.known.get(&vector) {
            return Ok(*number);
        }
        let count = self.known.len();
        let needs = (self.entries.len() + self.length) * size_of::<u16>();
        if needs > WORKSPACE {
            return Err(TableLimit::Capacity { section: "vectors of classes", needs });
        }
        let number = u16::try_from(count).map_err(|_| TableLimit::Identifiers {
            what: "different vectors of a source and a target",
            has: count + 1,
            most: 1 << u16::BITS,
        })?;
        self.entries.extend_from_slice(&vector);
        self.known.insert(vector, number);
        Ok(number)
    }
}

/// The cells of a row for types with `sources`, by column. Columns with the same keys among the row's rules have the
/// same cell.
fn fill(
    grants: &Grants,
    sources: &[u32],
    columns: &[Vec<u32>],
    vectors: &mut Vectors<'_, '_>,
) -> Result<Vec<u16>, TableLimit> {
    let mut by_target: Vec<Vec<&Range<usize>>> = vec![Vec::new(); grants.by_source.len()];
    for (target, range) in sources.iter().flat_map(|source| grants.of_source(*source)) {
        by_target[*target as usize].push(range);
    }
    let mut known: HashMap<Vec<u32>, u16> = HashMap::new();
    let mut targets = Vec::new();
    let mut cells = Vec::with_capacity(columns.len());
    for column in columns {
        targets.clear();
        targets.extend(column.iter().copied().filter(|key| !by_target[*key as usize].is_empty()));
        cells.push(match known.get(&targets) {
            Some(vector) => *vector,
            None => {
                let ranges = targets.iter().flat_map(|target| &by_target[*target as usize]);
                let vector = vectors.intern(ranges.flat_map(|range| &grants.grants[(*range).clone()]))?;
                known.insert(targets.clone(), vector);
                vector
            }
        });
    }
    Ok(cells)
}

/// For each line, the merged line that it has become.
struct Merged {
    count: usize,
    of: Vec<u32>,
}

/// The lines of `width` cells, each once, in the order of their first occurrence.
fn merge(cells: &[u16], width: usize) -> (Merged, Vec<u16>) {
    let mut known: HashMap<&[u16], u32> = HashMap::new();
    let mut merged = Vec::new();
    let of = cells.chunks_exact(width).map(|line| {
        let next = known.len() as u32;
        *known.entry(line).or_insert_with(|| {
            merged.extend_from_slice(line);
            next
        })
    });
    let of = of.collect();
    (Merged { count: known.len(), of }, merged)
}

/// The same lines in the order of their cells, so that lines beside one another are much alike.
fn sort(lines: Merged, cells: &[u16]) -> (Merged, Vec<u16>) {
    let width = (cells.len() / lines.count.max(1)).max(1);
    let mut order: Vec<(&[u16], usize)> = cells.chunks_exact(width).zip(0..).collect();
    order.sort_unstable();
    let mut place = vec![0; lines.count];
    order.iter().zip(0..).for_each(|((_, line), new)| place[*line] = new);
    let of = lines.of.iter().map(|line| place[*line as usize]).collect();
    (Merged { count: lines.count, of }, order.iter().flat_map(|(line, _)| *line).copied().collect())
}

/// Lines of `width` cells, turned into columns.
fn transpose(cells: &[u16], width: usize) -> Vec<u16> {
    (0..width).flat_map(|column| cells.iter().skip(column).step_by(width)).copied().collect()
}
