//! Why a context is invalid (`policydb_context_isvalid`, `mls_context_isvalid`), and what would make it valid.

use super::{Question, world::dominates};
use crate::{
    cil, context,
    model::{Context, Policy},
};

/// The role of objects. It may have every type, and every user may have it.
const OBJECT_R: u32 = 1;

/// A reason why a context is invalid.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Invalid {
    /// The context as text.
    pub context: String,
    /// Why it is invalid.
    pub reason: String,
    /// The CIL that would change that, if there is any.
    pub cil: Option<String>,
}

/// Why the contexts of a question are invalid.
pub(super) fn invalid(policy: &Policy, question: &Question) -> Vec<Invalid> {
    let mut found = invalid_context(policy, &question.source);
    if question.target != question.source {
        found.extend(invalid_context(policy, &question.target));
    }
    found
}

/// Why a context is invalid. Empty if it is valid.
pub fn invalid_context(policy: &Policy, context: &Context) -> Vec<Invalid> {
    let (Some(user), Some(role)) = (policy.users.get(context.user as usize), policy.roles.get(context.role as usize))
    else {
        return Vec::new();
    };
    let text = context::text(policy, context);
    let mut found = Vec::new();
    let mut say = |reason: String, cil: Option<String>| found.push(Invalid { context: text.clone(), reason, cil });
    let is_object = context.role == OBJECT_R;
    if !is_object && !role.types.has(context.type_) {
        let type_ = cil::type_name(policy, context.type_);
        let cil = format!("(roletype {} {type_})", role.name);
        say(format!("role {} may not have type {type_}", role.name), Some(cil));
    }
    if !is_object && !user.roles.has(context.role) {
        let cil = format!("(userrole {} {})", user.name, role.name);
        say(format!("user {} may not have role {}", user.name, role.name), Some(cil));
    }
    if !policy.mls {
        return found;
    }
    let (low, high) = (&context.range.low, &context.range.high);
    for level in if low == high { vec![low] } else { vec![low, high] } {
        let Some(sensitivity) = policy.sensitivities.get(level.sensitivity as usize) else { continue };
        if level.categories.iter().any(|category| !sensitivity.categories.has(category)) {
            say(format!("sensitivity {} may not have all of these categories", sensitivity.name), None);
        }
    }
    if !dominates(high, low) {
        say("its high level does not dominate its low one".to_owned(), None);
    } else if !(is_object || dominates(low, &user.range.low) && dominates(&user.range.high, high)) {
        let range = context::range_text(policy, &user.range);
        say(format!("user {} may have no levels but those of {range}", user.name), None);
    }
    found
}
