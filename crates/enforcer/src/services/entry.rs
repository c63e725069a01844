//! Domains that a process of the machine enters by executing a program, according to the policy.

use std::collections::BTreeMap;

use tollgate_policy::model::{Policy, RuleKind, Type};

/// The type of the domain, by the type of the program, for a process of the type `machine`. Domains that are unconfined
/// according to `asked` are left out.
#[must_use]
pub fn domains(policy: &Policy, machine: u32, asked: impl Fn(u32) -> bool) -> BTreeMap<String, String> {
    let Some(process) = policy.classes.iter().position(|class| class.name == "process") else { return BTreeMap::new() };
    let name = |type_: u32| policy.types.get(type_ as usize).map(|type_| type_.name.clone()).unwrap_or_default();
    let applies = |source: u32| {
        let own = policy.types.get(machine as usize);
        source == machine || own.is_some_and(|own: &Type| own.set.iter().any(|attribute| attribute == source))
    };
    let rules = policy.rules.iter().filter(|rule| {
        rule.kind == RuleKind::Transition
            && rule.class as usize == process
            && applies(rule.source)
            && policy.holds(rule.condition)
            && asked(rule.data)
    });
    let mut found = BTreeMap::new();
    for rule in rules {
        let target = policy.types.get(rule.target as usize);
        let members =
            target.filter(|target| target.attribute).map(|attribute| attribute.set.iter().collect::<Vec<_>>());
        for type_ in members.unwrap_or_else(|| vec![rule.target]) {
            found.insert(name(type_), name(rule.data));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tollgate_policy::model::{Class, Rule};

    use super::*;

    #[test]
    fn finds_what_the_machine_enters_also_by_attributes() {
        let type_ = |name: &str, attribute: bool, set: &[u32]| Type {
            name: name.to_owned(),
            attribute,
            set: set.iter().copied().collect(),
            ..Type::default()
        };
        let rule =
            |source, target, data| Rule { kind: RuleKind::Transition, source, target, class: 1, data, condition: None };
        let policy = Policy {
            classes: vec![Class::default(), Class { name: "process".to_owned(), ..Class::default() }],
            types: vec![
                Type::default(),
                type_("unconfined_t", false, &[1, 4]),
                type_("web_exec", false, &[2]),
                type_("web_t", false, &[3]),
                type_("unconfined_domain", true, &[1]),
                type_("other_exec", false, &[5]),
                type_("both_exec", true, &[2, 5]),
            ],
            rules: vec![rule(4, 2, 3), rule(3, 5, 3), rule(1, 5, 1)],
            ..Policy::default()
        };
        let found = domains(&policy, 1, |type_| type_ != 1);
        assert_eq!(found, BTreeMap::from([("web_exec".to_owned(), "web_t".to_owned())]));
        let policy = Policy { rules: vec![rule(1, 6, 3)], ..policy };
        assert_eq!(domains(&policy, 1, |_| true).len(), 2);
    }
}
