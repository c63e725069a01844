//! Differences between what the rules of two policies grant. Rows and columns that belong together in both policies are
//! compared only once. Vectors are first translated to common numbers and interned, so that equal ones have equal
//! numbers.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{Only, Side};
use crate::{
    model::{Bits, Policy, RuleKind},
    vectors::{Access, Vectors},
};

/// The kind of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Permissions that are granted.
    Allow,
    /// Permissions whose grants are audited.
    AuditAllow,
    /// Permissions whose denials are not audited.
    DontAudit,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::AuditAllow => "auditallow",
            Self::DontAudit => "dontaudit",
        })
    }
}

/// Permissions that some sources gain or lose on some targets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Change {
    /// The kind of rule.
    pub kind: Kind,
    /// The object class, by name.
    pub class: String,
    /// `true`: the rules of the second policy say this, and those of the first did not; `false`: the reverse.
    pub added: bool,
    /// Names of the permissions.
    pub permissions: Vec<String>,
    /// Names of the target types. For a source among them, the change does not apply to the source itself; that is
    /// `itself`.
    pub targets: Vec<String>,
    /// Whether it also applies to each source on itself.
    pub itself: bool,
}

/// Source types with the same changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Domains {
    /// The source types.
    pub sources: Vec<String>,
    /// The changes for each of them.
    pub changes: Vec<Change>,
}

/// Types that only `here` has.
pub(super) fn only(here: &Policy, there: &Policy) -> Vec<Only> {
    let known: HashMap<&str, u32> = by_name(there);
    let mut found: Vec<(u32, Only)> = (0..)
        .zip(&here.types)
        .filter(|(_, t)| !t.attribute && !t.name.is_empty() && !known.contains_key(t.name.as_str()))
        .map(|(number, t)| (number, Only { name: t.name.clone(), as_source: 0, as_target: 0 }))
        .collect();
    if !found.is_empty() {
        let spoken = |rule: &&crate::model::Rule| {
            matches!(rule.kind, RuleKind::Allow | RuleKind::AuditAllow | RuleKind::DontAudit)
        };
        let mut count: HashMap<u32, (u32, u32)> = HashMap::new();
        for rule in here.rules.iter().filter(spoken) {
            count.entry(rule.source).or_default().0 += 1;
            count.entry(rule.target).or_default().1 += 1;
        }
        for (number, only) in &mut found {
            for part in here.types[*number as usize].set.iter() {
                let (source, target) = count.get(&part).copied().unwrap_or_default();
                only.as_source += source;
                only.as_target += target;
            }
        }
    }
    let mut found: Vec<Only> = found.into_iter().map(|(_, only)| only).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn by_name(policy: &Policy) -> HashMap<&str, u32> {
    let named = (0..).zip(&policy.types).filter(|(_, t)| !t.attribute && !t.name.is_empty());
    named.map(|(number, t)| (t.name.as_str(), number)).collect()
}

/// Classes and permissions of both policies, under common numbers.
#[derive(Default)]
struct Common {
    /// Names of classes, and of their permissions.
    classes: Vec<(String, Vec<String>)>,
    /// By side and class: the common class, and the common bit of each permission.
    from: [Vec<(usize, Vec<u32>)>; 2],
}

impl Common {
    fn of(sides: [&Policy; 2]) -> Self {
        let mut common = Self::default();
        for (side, policy) in sides.into_iter().enumerate() {
            for class in &policy.classes {
                let place = common.classes.iter().position(|known| known.0 == class.name).unwrap_or_else(|| {
                    common.classes.push((class.name.clone(), Vec::new()));
                    common.classes.len() - 1
                });
                let names = &mut common.classes[place].1;
                let bits = class.permissions.iter().map(|permission| {
                    let bit = names.iter().position(|known| known == permission).unwrap_or_else(|| {
                        names.push(permission.clone());
                        names.len() - 1
                    });
                    bit as u32
                });
                let bits = bits.collect();
                common.from[side].push((place, bits));
            }
        }
        common
    }

    fn translate(bits: &[u32], vector: u32) -> u64 {
        (0..).zip(bits).filter(|(from, _)| vector >> from & 1 == 1).fold(0, |all, (_, to)| all | 1 << to)
    }

    /// An access as common masks, by kind; `None`: it is empty.
    fn masks(&self, side: usize, class: u32, access: Access) -> Option<(usize, [u64; 3])> {
        if access.is_empty() {
            return None;
        }
        let (place, bits) = self.from[side].get(class as usize)?;
        let masks = [access.allow, access.auditallow, access.dontaudit].map(|mask| Self::translate(bits, mask));
        (masks != [0; 3]).then_some((*place, masks))
    }
}

/// The content of a vector: by common class, masks by kind, ascending.
type Content = Vec<(usize, [u64; 3])>;

/// A part of a difference: kind, common class, whether added, permissions.
type Piece = (Kind, usize, bool, u64);

/// Contents of vectors, interned. Number 0 is the empty content.
struct Interned {
    numbers: HashMap<Content, u32>,
    contents: Vec<Content>,
    pieces: HashMap<(u32, u32), Vec<Piece>>,
}

impl Interned {
    fn new() -> Self {
        Self { numbers: HashMap::from([(Content::new(), 0)]), contents: vec![Content::new()], pieces: HashMap::new() }
    }

    fn number(&mut self, content: Content) -> u32 {
        let next = self.contents.len() as u32;
        let contents = &mut self.contents;
        *self.numbers.entry(content).or_insert_with_key(|content| {
            contents.push(content.clone());
            next
        })
    }

    /// The numbers of a side's vectors.
    fn vectors(&mut self, common: &Common, side: usize, vectors: &Vectors) -> Vec<u32> {
        (0..vectors.vectors())
            .map(|vector| {
                let classes = 1..=vectors.classes();
                let mut content: Content =
                    classes.filter_map(|class| common.masks(side, class, vectors.access(vector, class))).collect();
                content.sort_unstable();
                self.number(content)
            })
            .collect()
    }

    /// The difference between two contents.
    fn pieces(&mut self, before: u32, after: u32) -> &[Piece] {
        let contents = &self.contents;
        self.pieces
            .entry((before, after))
            .or_insert_with(|| pieces(&contents[before as usize], &contents[after as usize]))
    }
}

fn pieces(before: &Content, after: &Content) -> Vec<Piece> {
    let mut both: BTreeMap<usize, [[u64; 3]; 2]> = BTreeMap::new();
    for (side, content) in [before, after].into_iter().enumerate() {
        for (class, masks) in content {
            both.entry(*class).or_default()[side] = *masks;
        }
    }
    let mut found = Vec::new();
    for (class, [before, after]) in both {
        for (kind, place) in [Kind::Allow, Kind::AuditAllow, Kind::DontAudit].into_iter().zip(0..) {
            for (added, mask) in [(true, after[place] & !before[place]), (false, before[place] & !after[place])] {
                if mask != 0 {
                    found.push((kind, class, added, mask));
                }
            }
        }
    }
    found.sort_unstable();
    found
}

/// A type that both policies have: its name and its numbers.
struct Shared<'a> {
    name: &'a str,
    numbers: [u32; 2],
}

/// The changes between types that both policies have, by source.
pub(super) fn domains(before: Side<'_>, after: Side<'_>) -> Vec<Domains> {
    let sides = [before.vectors, after.vectors];
    let there = by_name(after.policy);
    let mut types: Vec<Shared<'_>> = by_name(before.policy)
        .into_iter()
        .filter_map(|(name, number)| Some(Shared { name, numbers: [number, *there.get(name)?] }))
        .collect();
    types.sort_unstable_by_key(|shared| shared.name);

    let common = Common::of([before.policy, after.policy]);
    let mut interned = Interned::new();
    let numbers = [0, 1].map(|side| interned.vectors(&common, side, sides[side]));
    let rows = grouped(&types, |shared| [0, 1].map(|side| sides[side].row(shared.numbers[side])));
    let columns = grouped(&types, |shared| [0, 1].map(|side| sides[side].column(shared.numbers[side])));
    let own = own_rules(sides);

    let mut found: Vec<Domains> = Vec::new();
    for (row, sources) in &rows {
        let lines = [0, 1].map(|side| sides[side].row_of(row[side]));
        let number = |side: usize, column: u32| {
            let vector = lines[side].get(column as usize).map_or(0, |vector| usize::from(*vector));
            numbers[side].get(vector).copied().unwrap_or_default()
        };
        let mut wide: BTreeMap<Piece, Bits> = BTreeMap::new();
        for (column, targets) in &columns {
            let (before, after) = (number(0, column[0]), number(1, column[1]));
            if before == after {
                continue;
            }
            for piece in interned.pieces(before, after) {
                let set = wide.entry(*piece).or_default();
                targets.iter().for_each(|target| set.insert(*target));
            }
        }
        let mut alike: BTreeMap<Vec<Piece>, Vec<u32>> = BTreeMap::new();
        for source in sources {
            let itself = [0, 1].map(|side| {
                let type_ = types[*source as usize].numbers[side];
                let content = &interned.contents[number(side, sides[side].column(type_)) as usize];
                with_own(&common, side, content, own[side].get(&type_).map_or(&[], Vec::as_slice))
            });
            let narrow = if itself[0] == itself[1] { Vec::new() } else { pieces(&itself[0], &itself[1]) };
            alike.entry(narrow).or_default().push(*source);
        }
        found.extend(
            alike.into_iter().filter_map(|(narrow, sources)| report(&types, &common, &wide, &narrow, &sources)),
        );
    }
    found.sort_by(|a, b| a.sources.cmp(&b.sources));
    found
}

/// Groups types by a key. Members are indices of `types`.
fn grouped(types: &[Shared<'_>], key: impl Fn(&Shared<'_>) -> [u32; 2]) -> BTreeMap<[u32; 2], Vec<u32>> {
    let mut groups: BTreeMap<[u32; 2], Vec<u32>> = BTreeMap::new();
    for (place, shared) in (0..).zip(types) {
        groups.entry(key(shared)).or_default().push(place);
    }
    groups
}

/// By side and type: the rules on the type itself, by class.
fn own_rules(sides: [&Vectors; 2]) -> [HashMap<u32, Vec<(u32, Access)>>; 2] {
    sides.map(|vectors| {
        let mut own: HashMap<u32, Vec<(u32, Access)>> = HashMap::new();
        for (type_, class, access) in vectors.own() {
            own.entry(type_).or_default().push((class, access));
        }
        own
    })
}

/// The content of a vector together with the rules on the type itself.
fn with_own(common: &Common, side: usize, content: &Content, own: &[(u32, Access)]) -> Content {
    let mut all: BTreeMap<usize, [u64; 3]> = content.iter().copied().collect();
    for (class, masks) in own.iter().filter_map(|(class, access)| common.masks(side, *class, *access)) {
        let known = all.entry(class).or_default();
        (0..3).for_each(|kind| known[kind] |= masks[kind]);
    }
    all.into_iter().collect()
}

/// The changes for sources with one row: `wide` on other types, `narrow` on themselves; `None`: there are none.
fn report(
    types: &[Shared<'_>],
    common: &Common,
    wide: &BTreeMap<Piece, Bits>,
    narrow: &[Piece],
    sources: &[u32],
) -> Option<Domains> {
    let mut all: BTreeMap<Piece, (Vec<u32>, bool)> = BTreeMap::new();
    for (piece, targets) in wide {
        let alone = if let [source] = sources { Some(*source) } else { None };
        let targets: Vec<u32> = targets.iter().filter(|target| Some(*target) != alone).collect();
        if !targets.is_empty() {
            all.insert(*piece, (targets, false));
        }
    }
    for piece in narrow {
        all.entry(*piece).or_default().1 = true;
    }
    let name = |place: &u32| types[*place as usize].name.to_owned();
    let changes = all.into_iter().map(|((kind, class, added, mask), (targets, itself))| {
        let (class, permissions) = &common.classes[class];
        let named = (0..).zip(permissions).filter(|(bit, _)| mask >> bit & 1 == 1);
        Change {
            kind,
            class: class.clone(),
            added,
            permissions: named.map(|(_, name)| name.clone()).collect(),
            targets: targets.iter().map(name).collect(),
            itself,
        }
    });
    let changes: Vec<Change> = changes.collect();
    (!changes.is_empty()).then(|| Domains { sources: sources.iter().map(name).collect(), changes })
}
