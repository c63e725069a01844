//! Other contexts for a question that constraints deny: one part of one context is changed.

use super::{
    Question,
    attributes::merge,
    validity,
    world::{World, dominates},
};
use crate::{
    context,
    model::{Context, Level, Policy, Range},
};

/// How many contexts are shown for one part.
const MAX_CONTEXTS: usize = 3;

/// A context that constraints would not deny.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Alternative {
    /// The part that is changed, for example `source range` or `target role`.
    pub part: String,
    /// The whole context.
    pub context: String,
}

/// Contexts that would do in place of one of the question's, with the other unchanged. Of ranges, the most similar one.
pub(super) fn find(world: &World<'_>, question: &Question) -> Vec<Alternative> {
    let policy = world.policy;
    let mut found = Vec::new();
    for (party, is_source) in [("source", true), ("target", false)] {
        let own = if is_source { &question.source } else { &question.target };
        let does = |context: &Context| {
            let mut asked = question.clone();
            *(if is_source { &mut asked.source } else { &mut asked.target }) = context.clone();
            context != own
                && validity::invalid(policy, &asked).is_empty()
                && world.steps(&asked).iter().all(|step| world.taken_away(step).is_empty())
        };
        let ranges = ranges(policy, question, own).map(|range| Context { range, ..own.clone() });
        let roles = (1..policy.roles.len() as u32).map(|role| Context { role, ..own.clone() });
        let users = (1..policy.users.len() as u32).map(|user| Context { user, ..own.clone() });
        let mut tell = |part: &str, contexts: &mut dyn Iterator<Item = Context>, most: usize| {
            for context in contexts.filter(|context| does(context)).take(most) {
                found.push(Alternative { part: format!("{party} {part}"), context: context::text(policy, &context) });
            }
        };
        tell("range", &mut { ranges }, 1);
        tell("role", &mut { roles }, MAX_CONTEXTS);
        tell("user", &mut { users }, MAX_CONTEXTS);
    }
    found
}

/// Ranges made of the question's levels. Those that leave one end unchanged come first.
fn ranges<'q>(policy: &Policy, question: &'q Question, own: &'q Context) -> impl Iterator<Item = Range> + use<'q> {
    let (s, t) = (&question.source.range, &question.target.range);
    let mut levels: Vec<Level> = [&s.low, &t.low, &s.high, &t.high].map(Level::clone).to_vec();
    let count = if policy.mls { levels.len() } else { 0 };
    levels.truncate(count);
    for first in 0..count {
        for second in first + 1..count {
            levels.push(join(&levels[first], &levels[second], true));
            levels.push(join(&levels[first], &levels[second], false));
        }
    }
    let all = levels.clone();
    let low = levels.clone().into_iter().map(|low| Range { low, high: own.range.high.clone() });
    let high = levels.clone().into_iter().map(|high| Range { low: own.range.low.clone(), high });
    let single = levels.clone().into_iter().map(|level| Range { low: level.clone(), high: level });
    let both = levels
        .into_iter()
        .flat_map(move |low| all.clone().into_iter().map(move |high| Range { low: low.clone(), high }));
    low.chain(high).chain(single).chain(both).filter(|range| dominates(&range.high, &range.low))
}

/// The lowest level that dominates both, or the highest that both dominate.
fn join(first: &Level, second: &Level, up: bool) -> Level {
    let sensitivities = (first.sensitivity, second.sensitivity);
    let sensitivity = if up { sensitivities.0.max(sensitivities.1) } else { sensitivities.0.min(sensitivities.1) };
    let mut categories = merge(&first.categories, &second.categories, |a, b| if up { a | b } else { a & b });
    while categories.0.last() == Some(&0) {
        categories.0.pop();
    }
    Level { sensitivity, categories }
}

#[cfg(test)]
mod tests {
    use super::join;
    use crate::model::Level;

    #[test]
    fn joins_levels_upwards_and_downwards() {
        let level =
            |sensitivity, categories: &[u32]| Level { sensitivity, categories: categories.iter().copied().collect() };
        let (one, other) = (level(1, &[0, 70]), level(2, &[0, 1]));
        assert_eq!(join(&one, &other, true), level(2, &[0, 1, 70]));
        assert_eq!(join(&one, &other, false), level(1, &[0]));
    }
}
