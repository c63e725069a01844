//! The contexts that the expressions of a class can tell apart.

use std::collections::{BTreeMap, HashMap};

use tollgate_abi::tables::tg_context;

use super::plain::{Order, Parties, Plain, changes_role};
use crate::model::{Bits, Class, Comparison, Level, NameKind, Pair, Party, Policy, Term};

/// How many alternatives of a group are kept.
const ALTERNATIVES: usize = 256;
/// How many categories four levels need to be related in every way.
const CATEGORIES: usize = 4;

/// Levels of which four can be related in every way that the policy has. Relations of four levels are those of four sets: for
/// each level, the set of those that it dominates. With fewer than four categories, sensitivities must do the rest.
pub(super) fn levels(policy: &Policy) -> Vec<Level> {
    if !policy.mls {
        return vec![Level::default()];
    }
    let named = (0..).zip(&policy.sensitivities).filter(|(_, sensitivity)| !sensitivity.name.is_empty());
    let sensitivities: Vec<u32> = named.map(|(number, _)| number).collect();
    let all: Vec<u32> = (0..).zip(&policy.categories).map(|(number, _)| number).collect();
    let categories = spread(&all, CATEGORIES);
    let of_each = spread(&sensitivities, if categories.len() < CATEGORIES { 4 } else { 2 });
    let subsets = 0..1u32 << categories.len();
    let subset = |bits: u32| -> Bits {
        (0..).zip(&categories).filter(|(place, _)| bits >> place & 1 == 1).map(|(_, category)| *category).collect()
    };
    of_each
        .iter()
        .flat_map(|sensitivity| {
            subsets.clone().map(move |bits| Level { sensitivity: *sensitivity, categories: subset(bits) })
        })
        .collect()
}

/// At most `count` of `all`, with the first and the last.
fn spread(all: &[u32], count: usize) -> Vec<u32> {
    let last = all.len().saturating_sub(1);
    let mut some: Vec<u32> = (0..count).filter_map(|step| all.get(step * last / (count - 1)).copied()).collect();
    some.dedup();
    some
}

/// What contexts are made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) users: Vec<u16>,
    pub(super) roles: Vec<u16>,
    pub(super) types: Vec<u32>,
    /// Low and high of a source, low and high of a target.
    pub(super) ranges: Vec<[u32; 4]>,
}

impl Parts {
    /// The policy's users, roles and types, and all pairs of ranges of `levels`.
    pub(super) fn new(policy: &Policy, order: &Order, levels: &[Level]) -> Self {
        let levels: Vec<u32> = levels.iter().map(|level| order.find(level)).collect();
        let above = |low: u32| levels.iter().copied().filter(move |high| order.dominates(*high, low));
        let ranges: Vec<[u32; 2]> = levels.iter().flat_map(|low| above(*low).map(|high| [*low, high])).collect();
        let number = |place: usize| u16::try_from(place).unwrap_or_default();
        let named = |names: Vec<&str>| -> Vec<u16> {
            names.iter().enumerate().filter(|(_, name)| !name.is_empty()).map(|(place, _)| number(place)).collect()
        };
        let types = (0..).zip(&policy.types).filter(|(_, type_)| !type_.attribute && !type_.name.is_empty());
        Self {
            users: named(policy.users.iter().map(|user| user.name.as_str()).collect()),
            roles: named(policy.roles.iter().map(|role| role.name.as_str()).collect()),
            types: types.map(|(number, _)| number).collect(),
            ranges: ranges.iter().flat_map(|[a, b]| ranges.iter().map(move |[c, d]| [*a, *b, *c, *d])).collect(),
        }
    }
}

/// The part of a context that a term is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Role,
    Type,
    Range,
}

fn part(term: &Term) -> Part {
    match term {
        Term::Compare(Pair::Users, _) | Term::In { kind: NameKind::User, .. } => Part::User,
        Term::Compare(Pair::Roles, _) | Term::In { kind: NameKind::Role, .. } => Part::Role,
        Term::Compare(Pair::Types, _) | Term::In { kind: NameKind::Type, .. } => Part::Type,
        _ => Part::Range,
    }
}

/// What can be asked where an expression asks `term`: of levels and roles, each relation.
fn distinctions(term: &Term) -> Vec<Term> {
    match term {
        Term::Not | Term::And | Term::Or => Vec::new(),
        Term::Compare(pair @ (Pair::Users | Pair::Types), _) => vec![Term::Compare(*pair, Comparison::Eq)],
        Term::Compare(pair, _) => {
            [Comparison::Eq, Comparison::Dom, Comparison::DomBy].map(|relation| Term::Compare(*pair, relation)).into()
        }
        term @ Term::In { .. } => vec![term.clone()],
    }
}

/// Values that the same distinctions hold for, of each group.
type Groups<T> = Vec<Vec<T>>;

fn group<T: Copy>(values: impl Iterator<Item = T>, answers: impl Fn(T) -> Vec<bool>) -> Groups<T> {
    let mut groups: BTreeMap<Vec<bool>, Vec<T>> = BTreeMap::new();
    for value in values {
        groups.entry(answers(value)).or_default().push(value);
    }
    let thin = |all: Vec<T>| {
        let step = all.len().div_ceil(ALTERNATIVES);
        all.into_iter().step_by(step).collect()
    };
    groups.into_values().map(thin).collect()
}

/// The combinations of users, roles, ranges (and for validatetrans types) that a class's expressions can tell apart, each with
/// alternatives that they cannot.
#[derive(Debug)]
pub(super) struct Combinations {
    users: Groups<[u16; 3]>,
    roles: Groups<[u16; 3]>,
    ranges: Groups<[u32; 4]>,
    types: Groups<[u32; 2]>,
    /// By type: equal numbers for types that expressions cannot tell apart as source, and as target.
    kinds: [Vec<u32>; 2],
}

impl Combinations {
    /// Of a class's constraints, and of the role rules if a permission of it needs them. Types are not among them.
    pub(super) fn of_constraints(plain: &Plain<'_>, parts: &Parts, class: &Class) -> Self {
        let terms = class.constraints.iter().flat_map(|constraint| &constraint.expression);
        Self::new(plain, parts, terms, changes_role(class) != 0)
    }

    /// Of a class's validatetrans, with types of source and target.
    pub(super) fn of_validatetrans(plain: &Plain<'_>, parts: &Parts, class: &Class) -> Self {
        let terms = || class.validatetrans.iter().flatten();
        let mut all = Self::new(plain, parts, terms(), false);
        let mut known: HashMap<[u32; 2], usize> = HashMap::new();
        let some: Vec<u32> = parts
            .types
            .iter()
            .copied()
            .filter(|type_| {
                let count = known.entry([0, 1].map(|side| all.kind(side, *type_))).or_default();
                *count += 1;
                *count <= 4
            })
            .collect();
        let pairs = some.iter().flat_map(|source| some.iter().map(move |target| [*source, *target]));
        let distinctions = Distinctions::new(plain, terms());
        all.types = group(pairs, |types| distinctions.of(Part::Type, &parties([0; 3], [0; 3], [0; 4], types)));
        all
    }

    fn new<'e>(plain: &Plain<'_>, parts: &Parts, terms: impl Iterator<Item = &'e Term>, changes_role: bool) -> Self {
        let distinctions = Distinctions::new(plain, terms);
        let roles = |roles| {
            let parties = parties([0; 3], roles, [0; 4], [0; 2]);
            let mut answers = distinctions.of(Part::Role, &parties);
            answers.push(changes_role && plain.may_change_role(&parties));
            answers.push(changes_role && roles[0] == roles[1]);
            answers
        };
        let count = plain.policy.types.len() as u32;
        Self {
            users: group(trios(&parts.users, distinctions.ask_task(Part::User)), |users| {
                distinctions.of(Part::User, &parties(users, [0; 3], [0; 4], [0; 2]))
            }),
            roles: group(trios(&parts.roles, distinctions.ask_task(Part::Role)), roles),
            ranges: group(parts.ranges.iter().copied(), |ranges| {
                distinctions.of(Part::Range, &parties([0; 3], [0; 3], ranges, [0; 2]))
            }),
            types: vec![vec![[0; 2]]],
            kinds: [Party::Source, Party::Target].map(|party| distinctions.kinds(party, count)),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.users.len() * self.roles.len() * self.ranges.len() * self.types.len()
    }

    /// The contexts of a combination; `pick` chooses one of so many alternatives.
    pub(super) fn parties(&self, number: usize, mut pick: impl FnMut(usize) -> usize) -> Parties {
        let (number, user) = (number / self.users.len(), number % self.users.len());
        let (number, role) = (number / self.roles.len(), number % self.roles.len());
        let (types, range) = (number / self.ranges.len(), number % self.ranges.len());
        let users = self.users[user][pick(self.users[user].len())];
        let roles = self.roles[role][pick(self.roles[role].len())];
        let ranges = self.ranges[range][pick(self.ranges[range].len())];
        parties(users, roles, ranges, self.types[types][pick(self.types[types].len())])
    }

    /// The kind of a type as source (0) or target (1).
    pub(super) fn kind(&self, side: usize, type_: u32) -> u32 {
        self.kinds[side][type_ as usize]
    }
}

/// Source, target and, if it counts, task.
fn trios(all: &[u16], with_task: bool) -> impl Iterator<Item = [u16; 3]> + '_ {
    let tasks = if with_task { all } else { all.get(..1).unwrap_or_default() };
    all.iter().flat_map(move |a| all.iter().flat_map(move |b| tasks.iter().map(move |c| [*a, *b, *c])))
}

/// The contexts of these parts. Nothing asks about the range of the task.
pub(super) fn parties(users: [u16; 3], roles: [u16; 3], ranges: [u32; 4], types: [u32; 2]) -> Parties {
    let [l1, h1, l2, h2] = ranges;
    [
        tg_context { user: users[0], role: roles[0], type_: types[0], low: l1, high: h1 },
        tg_context { user: users[1], role: roles[1], type_: types[1], low: l2, high: h2 },
        tg_context { user: users[2], role: roles[2], type_: 0, low: l1, high: h1 },
    ]
}

/// What expressions can ask.
struct Distinctions<'a, 'p> {
    plain: &'a Plain<'p>,
    terms: Vec<Term>,
}

impl<'a, 'p> Distinctions<'a, 'p> {
    fn new<'e>(plain: &'a Plain<'p>, terms: impl Iterator<Item = &'e Term>) -> Self {
        let mut all: Vec<Term> = Vec::new();
        for term in terms.flat_map(distinctions) {
            if !all.contains(&term) {
                all.push(term);
            }
        }
        Self { plain, terms: all }
    }

    /// The answers about a part of contexts.
    fn of(&self, about: Part, parties: &Parties) -> Vec<bool> {
        let terms = self.terms.iter().filter(|term| part(term) == about);
        terms.map(|term| self.plain.term(term, parties)).collect()
    }

    fn ask_task(&self, about: Part) -> bool {
        let of_task = |term: &Term| matches!(term, Term::In { party: Party::Task, .. });
        self.terms.iter().any(|term| part(term) == about && of_task(term))
    }

    /// By type: the number of its answers as that party.
    fn kinds(&self, of: Party, types: u32) -> Vec<u32> {
        let mut known: HashMap<Vec<bool>, u32> = HashMap::new();
        let sets: Vec<&Bits> = (self.terms.iter())
            .filter_map(|term| match term {
                Term::In { party, kind: NameKind::Type, names, .. } if *party == of => Some(names),
                _ => None,
            })
            .collect();
        let kind = |type_| {
            let next = known.len() as u32;
            *known.entry(sets.iter().map(|names| names.has(type_)).collect()).or_insert(next)
        };
        (0..types).map(kind).collect()
    }
}
