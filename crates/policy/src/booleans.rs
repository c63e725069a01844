//! Booleans: lists them, and makes a policy with other values.

use serde::Serialize;

use crate::{
    built::{Built, BuiltError},
    context::{ContextError, Kind, Names},
    diff::statements::switches,
    model::Policy,
    sepol::{self, Compiled, SepolError},
};

/// A boolean of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Name of the boolean in the policy.
    pub name: String,
    /// Its value in the policy as it is.
    pub value: bool,
    /// How many rules have a condition that contains it.
    pub rules: u32,
}

/// Why booleans cannot be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BooleanError {
    /// A text that is not an assignment.
    #[error("`{0}` is not an assignment: NAME=on or NAME=off is expected")]
    Assignment(String),
    /// The policy has no boolean with this name.
    #[error(transparent)]
    Name(#[from] ContextError),
    /// libsepol could not make the new image.
    #[error(transparent)]
    Sepol(#[from] SepolError),
    /// The new decision tables could not be made.
    #[error(transparent)]
    Built(#[from] BuiltError),
}

/// The booleans, sorted by name.
pub fn list(policy: &Policy) -> Vec<Listed> {
    let mut rules = vec![0; policy.booleans.len()];
    let plain = policy.rules.iter().map(|rule| rule.condition);
    let by_condition = plain.chain(policy.extended_rules.iter().map(|rule| rule.condition)).flatten();
    let mut known = std::collections::HashMap::new();
    for condition in by_condition {
        let numbers = known.entry(condition.condition).or_insert_with(|| switches(policy, condition));
        for number in numbers.iter() {
            if let Some(count) = rules.get_mut(*number as usize) {
                *count += 1;
            }
        }
    }
    let mut list: Vec<Listed> = policy
        .booleans
        .iter()
        .zip(rules)
        .map(|(boolean, rules)| Listed { name: boolean.name.clone(), value: boolean.value, rules })
        .collect();
    list.sort_by(|a, b| a.name.cmp(&b.name));
    list
}

/// Reads `NAME=on` or `NAME=off`; also `true`, `false`, `1` and `0`.
pub fn assignment(text: &str) -> Result<(String, bool), BooleanError> {
    let malformed = || BooleanError::Assignment(text.to_owned());
    let (name, value) = text.split_once('=').ok_or_else(malformed)?;
    match value {
        "on" | "true" | "1" => Ok((name.to_owned(), true)),
        "off" | "false" | "0" => Ok((name.to_owned(), false)),
        _ => Err(malformed()),
    }
}

/// The booleans' values by number after `assignments`. The last assignment of a name counts.
pub fn assigned(policy: &Policy, assignments: &[(String, bool)]) -> Result<Vec<bool>, ContextError> {
    let names = Names::of(policy);
    let mut states: Vec<bool> = policy.booleans.iter().map(|boolean| boolean.value).collect();
    for (name, value) in assignments {
        states[names.find(Kind::Boolean, name)? as usize] = *value;
    }
    Ok(states)
}

/// `built` with other values of booleans: its binary policy, its tables and its model.
pub fn set(built: &Built, assignments: &[(String, bool)]) -> Result<Built, BooleanError> {
    let states = assigned(&built.policy, assignments)?;
    let (image, model) = sepol::set_booleans(&built.image, &states)?;
    let (lines, file_contexts) = (built.lines.clone(), built.file_contexts.clone());
    let mut origin = built.origin.clone();
    if let Some(origin) = &mut origin {
        origin.booleans.extend(assignments.iter().cloned());
    }
    Ok(Built { origin, ..Built::from_compiled(Compiled { image, model, lines, file_contexts })? })
}

#[cfg(test)]
mod tests {
    use super::{assignment, list, set};
    use crate::{
        built::Built,
        context::ContextError,
        model::Policy,
        origin::Origin,
        sepol::{self, CilFile, Options},
    };

    const POLICY: &str = r"
        (handleunknown deny) (mls true)
        (class file (read write)) (classorder (file))
        (sid kernel) (sidorder (kernel)) (sidcontext kernel (u r a_t ((s0) (s0))))
        (sensitivity s0) (sensitivityorder (s0)) (category c0) (categoryorder (c0)) (sensitivitycategory s0 (c0))
        (user u) (userrole u r) (userlevel u (s0)) (userrange u ((s0) (s0)))
        (role r) (role object_r) (roletype r a_t)
        (type a_t) (type b_t) (allow b_t a_t (file (read)))
        (boolean writes false) (boolean reads true)
        (booleanif writes (true (allow a_t b_t (file (write)))))
        (booleanif (and reads (not writes)) (true (allow a_t b_t (file (read)))))
    ";

    fn built() -> Built {
        let file = CilFile { name: "policy.cil".to_owned(), text: POLICY.as_bytes().to_vec() };
        Built::from_compiled(sepol::compile(&[file], &Options::default()).unwrap()).unwrap()
    }

    fn allowed(built: &Built) -> Vec<String> {
        let mut server = built.server().unwrap();
        let source = server.context("u:r:a_t:s0").unwrap();
        let target = server.context("u:object_r:b_t:s0").unwrap();
        let class = server.class("file").unwrap();
        let vector = server.access(source, target, class).allowed;
        server.permissions(class, vector).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn allows_what_the_booleans_say_and_keeps_it_in_the_image() {
        let before = built();
        assert_eq!(allowed(&before), ["read"]);
        let after = set(&before, &[("writes".to_owned(), true)]).unwrap();
        assert_eq!(allowed(&after), ["write"]);
        let again = Built::from_compiled(sepol::read(&after.image).unwrap()).unwrap();
        assert_eq!(allowed(&again), ["write"], "the binary policy has the value, too");
        assert!(after.origin.is_none(), "nobody has said what it was built from");
        let back = set(&after, &[("writes".to_owned(), false)]).unwrap();
        assert_eq!(back.policy, before.policy);
        assert_eq!(back.tables, before.tables);
    }

    #[test]
    fn notes_beside_the_sources_what_was_set_since() {
        let mut before = built();
        before.origin = Some(Origin::now(Vec::new()));
        let after = set(&before, &[("writes".to_owned(), true), ("reads".to_owned(), true)]).unwrap();
        let after = set(&after, &[("reads".to_owned(), false)]).unwrap();
        let noted: Vec<_> = after.origin.unwrap().booleans.into_iter().collect();
        assert_eq!(noted, [("reads".to_owned(), false), ("writes".to_owned(), true)]);
    }

    #[test]
    fn counts_the_rules_that_a_boolean_switches() {
        let list: Vec<_> = list(&built().policy).into_iter().map(|b| (b.name, b.value, b.rules)).collect();
        assert_eq!(list, [("reads".to_owned(), true, 1), ("writes".to_owned(), false, 2)]);
        assert!(super::list(&Policy::default()).is_empty());
    }

    #[test]
    fn rejects_unknown_booleans_and_offers_the_nearest() {
        let error = super::assigned(&built().policy, &[("write".to_owned(), true)]).unwrap_err();
        let ContextError::Unknown { nearest, .. } = error else { panic!("{error}") };
        assert_eq!(nearest, ["writes"]);
    }

    #[test]
    fn rejects_what_assigns_nothing() {
        assert!(matches!(assignment("writes=on"), Ok((name, true)) if name == "writes"));
        for text in ["writes", "writes=", "writes=maybe", ""] {
            assert!(assignment(text).is_err(), "{text}");
        }
    }
}
