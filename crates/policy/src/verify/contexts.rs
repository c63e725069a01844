//! Contexts for questions: valid ones with chosen types, and levels related in every possible way.

use tollgate_abi::tables::TG_OBJECT_R;

use super::random::Random;
use crate::model::{Bits, Context, Level, Policy, Range};

/// How many runs of categories a random level has at most. With more, contexts would be longer than selinuxfs accepts.
const MAX_CATEGORY_RUNS: usize = 12;

/// Makes valid contexts of one policy.
#[derive(Debug)]
pub(super) struct Contexts<'a> {
    policy: &'a Policy,
    types: Vec<u32>,
    levels: Vec<Level>,
}

impl<'a> Contexts<'a> {
    pub(super) fn new(policy: &'a Policy, random: &mut Random) -> Self {
        let types = (0u32..)
            .zip(&policy.types)
            .filter(|(_, type_)| !type_.name.is_empty() && !type_.attribute)
            .map(|(number, _)| number)
            .collect();
        Self { policy, types, levels: levels(policy, random) }
    }

    /// The type, or one of the attribute's types; for 0, any type.
    pub(super) fn type_of(&self, number: u32, random: &mut Random) -> Option<u32> {
        if number == 0 {
            return self.any_type(random);
        }
        let type_ = self.policy.types.get(number as usize)?;
        if !type_.attribute {
            return Some(number);
        }
        let members: Vec<u32> = type_.set.iter().filter(|member| *member != number).collect();
        random.pick(&members).copied()
    }

    /// A type; each is equally likely.
    pub(super) fn any_type(&self, random: &mut Random) -> Option<u32> {
        random.pick(&self.types).copied()
    }

    /// A context with this type: one of an object, or one that a process may have. `role` is a role that it gets if
    /// possible.
    pub(super) fn of_type(&self, type_: u32, role: Option<u32>, random: &mut Random) -> Option<Context> {
        let identities = self.identities(type_, role);
        if (role.is_none() && random.once_in(2)) || identities.is_empty() {
            let users: Vec<u32> = self.users().map(|(number, _)| number).collect();
            let user = *random.pick(&users)?;
            return Some(Context { user, role: TG_OBJECT_R, type_, range: self.range(None, random) });
        }
        let (user, role) = *random.pick(&identities)?;
        let limits = &self.policy.users[user as usize].range;
        Some(Context { user, role, type_, range: self.range(Some(limits), random) })
    }

    fn users(&self) -> impl Iterator<Item = (u32, &'a crate::model::User)> {
        (0u32..).zip(&self.policy.users).filter(|(_, user)| !user.name.is_empty())
    }

    /// The users and roles that a process with this type may have.
    fn identities(&self, type_: u32, wanted: Option<u32>) -> Vec<(u32, u32)> {
        let roles = (0u32..).zip(&self.policy.roles).filter(|(number, role)| {
            !role.name.is_empty()
                && *number != TG_OBJECT_R
                && role.types.has(type_)
                && wanted.is_none_or(|w| w == *number)
        });
        roles
            .flat_map(|(role, _)| {
                self.users().filter(move |(_, user)| user.roles.has(role)).map(move |(u, _)| (u, role))
            })
            .collect()
    }

    /// A range within limits.
    fn range(&self, limits: Option<&Range>, random: &mut Random) -> Range {
        if !self.policy.mls {
            return Range::default();
        }
        let fits =
            |level: &Level| limits.is_none_or(|limits| dominates(level, &limits.low) && dominates(&limits.high, level));
        let fitting: Vec<&Level> = self.levels.iter().filter(|level| fits(level)).collect();
        let Some(low) = random.pick(&fitting).copied() else {
            return limits.cloned().unwrap_or_default();
        };
        let above: Vec<&Level> = fitting.iter().copied().filter(|level| dominates(level, low)).collect();
        let high = if random.once_in(2) { low } else { random.pick(&above).copied().unwrap_or(low) };
        Range { low: low.clone(), high: high.clone() }
    }
}

/// Whether `a` dominates `b`, as the kernel's `mls_level_dom` decides.
pub(super) fn dominates(a: &Level, b: &Level) -> bool {
    a.sensitivity >= b.sensitivity && b.categories.iter().all(|category| a.categories.has(category))
}

/// Levels at the extremes (no category, all categories), and pairs that differ in one category.
fn levels(policy: &Policy, random: &mut Random) -> Vec<Level> {
    let sensitivities: Vec<u32> =
        (0u32..).zip(&policy.sensitivities).filter(|(_, s)| !s.name.is_empty()).map(|(number, _)| number).collect();
    let mut levels = Vec::new();
    for sensitivity in ends_and_some(&sensitivities, random) {
        let all: Vec<u32> = policy.sensitivities[sensitivity as usize].categories.iter().collect();
        let mut push = |categories: Bits| levels.push(Level { sensitivity, categories });
        push(Bits::default());
        if all.is_empty() {
            continue;
        }
        push(all.iter().copied().collect());
        let runs: Vec<u32> = some_runs(&all, random);
        let without = random.below(runs.len());
        push(runs.iter().copied().collect());
        push(runs.iter().enumerate().filter(|(place, _)| *place != without).map(|(_, category)| *category).collect());
        push(random.pick(&all).copied().into_iter().collect());
    }
    for user in policy.users.iter().filter(|user| !user.name.is_empty()) {
        levels.extend([user.range.low.clone(), user.range.high.clone()]);
    }
    levels.sort();
    levels.dedup();
    levels
}

/// The first, the last and two in between.
fn ends_and_some(all: &[u32], random: &mut Random) -> Vec<u32> {
    let mut some: Vec<u32> = all.first().into_iter().chain(all.last()).copied().collect();
    some.extend((0..2).filter_map(|_| random.pick(all).copied()));
    some.sort_unstable();
    some.dedup();
    some
}

/// A few runs of neighbours in `all`.
fn some_runs(all: &[u32], random: &mut Random) -> Vec<u32> {
    let mut picked = Vec::new();
    for _ in 0..=random.below(MAX_CATEGORY_RUNS) {
        let first = random.below(all.len());
        let last = (first + random.below(70)).min(all.len() - 1);
        picked.extend(&all[first..=last]);
    }
    picked.sort_unstable();
    picked.dedup();
    picked
}
