//! Compares all decisions of the tables with the rules of the model, enumerated plainly: no code is shared with
//! [`crate::tables`], and no question is left to chance.
//!
//! Of types, everything is asked: each source with each target and each class. Users, roles and levels are endless, but the
//! expressions of a class see little of them: whether a name is in a set, whether two are the same, how two levels or roles
//! are related. Contexts for which all of these are alike get the same decision, so one stands for them: each combination of
//! what a class's expressions can tell apart is asked of each source and target, and what stands for it changes from pair to
//! pair. Levels are chosen so that the four of a question are related in every way that there is (`combinations`). Where no
//! rule allows anything, constraints have nothing to forbid; there, those combinations are asked that together leave whatever
//! any of them leaves, so that no constraint hides what tables allow beyond the rules.
//!
//! New objects are asked about for each source, target and class; the roles of the source take turns from pair to pair, users
//! and levels are any. With names, it is each name that a rule has, each source, and each target and class that such a rule has;
//! a name that only the tables have is not asked about.
//! Contexts are asked for with each user, role and type. Validatetrans is asked each type as the task, with each combination
//! of what the expressions can tell apart of users, roles, levels and types of the old and the new context.

mod combinations;
mod comparison;
mod labels;
mod plain;
mod report;
mod rules;

use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

pub use self::report::{Count, Decision, Difference, Report};
use self::{
    combinations::{Combinations, Parts},
    comparison::{Comparison, Subject},
    labels::Labels,
    plain::{Order, Plain},
    rules::Rules,
};
use crate::{
    context::ContextError,
    model::{Class, Context, Range},
    server::SecurityServer,
};

/// How many targets each source is asked about at least, some of them again.
const PAIRS: usize = 512;

/// Compares all decisions that the server's tables make with what its policy's rules say. The work is shared by as many threads
/// as there are processors; the report is the same for any number.
pub fn run(server: &mut SecurityServer<'_>) -> Result<Report, ContextError> {
    let subject = subject(server)?;
    let types = &subject.parts.types;
    if subject.parts.users.is_empty() || subject.parts.roles.is_empty() || subject.parts.ranges.is_empty() {
        return Ok(Report::default());
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut comparison = Comparison::new(&subject);
        while let Some(source) = types.get(next.fetch_add(1, Ordering::Relaxed)) {
            comparison.compare(*source);
        }
        comparison.finish()
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    Ok(thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let reports = workers.into_iter().map(|worker| match worker.join() {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        reports.fold(Report::default(), Report::and)
    }))
}

/// What is compared, with an identifier for each level that questions and answers may have.
fn subject<'a, 'p>(server: &'a mut SecurityServer<'p>) -> Result<Subject<'a, 'p>, ContextError> {
    let policy = server.policy();
    let levels = combinations::levels(policy);
    let mut intern = |range: Range| server.intern(&Context { range, ..Context::default() });
    for level in &levels {
        intern(Range { low: level.clone(), high: level.clone() })?;
    }
    let of_rules = policy.range_transitions.iter().map(|rule| &rule.range);
    for range in policy.users.iter().map(|user| &user.range).chain(of_rules) {
        intern(range.clone())?;
    }
    let all = (0..=server.levels().last()).map(|identifier| server.levels().get(identifier)).collect();
    let plain = Plain::new(policy, Order::new(all));
    let parts = Parts::new(policy, &plain.order, &levels);
    let constraints = policy.classes.iter().map(|class| Combinations::of_constraints(&plain, &parts, class)).collect();
    let has_changes = |class: &&Class| !class.validatetrans.is_empty();
    let change =
        |class| Some(class).filter(has_changes).map(|class| Combinations::of_validatetrans(&plain, &parts, class));
    let changes = policy.classes.iter().map(change).collect();
    Ok(Subject {
        policy,
        turns: (PAIRS / parts.types.len().max(1)).max(1),
        tables: server.tables(),
        levels: server.levels(),
        rules: Rules::new(policy),
        labels: Labels::new(policy),
        plain,
        parts,
        constraints,
        changes,
    })
}

#[cfg(test)]
mod tests;
