//! All that rules grant a domain, whoever wrote them: read from the policy itself and not from what it was made of.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_policy::{
    cil,
    context::{Kind, Names},
    decide::Tables,
    model::Policy,
    vectors::Vectors,
};

/// What a domain may do, by the type and the class of what it does it to. Constraints are left aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(pub BTreeMap<(String, String), BTreeSet<String>>);

impl Grants {
    /// What a policy grants a domain; nothing to one that it does not have.
    #[must_use]
    pub fn of(policy: &Policy, tables: &Tables, domain: &str) -> Self {
        let Ok(source) = Names::of(policy).find(Kind::Type, domain) else { return Self::default() };
        let vectors = Vectors::of(tables);
        let types =
            (1u32..).zip(policy.types.iter().skip(1)).filter(|(_, kind)| !kind.attribute && !kind.name.is_empty());
        let mut grants = BTreeMap::new();
        for (target, kind) in types {
            for class in 1..=vectors.classes() {
                let allowed = vectors.rules(source, target, class).allow;
                if allowed != 0 {
                    let permissions = cil::permission_names(policy, class, allowed).into_iter().collect();
                    grants.insert((kind.name.clone(), cil::class_name(policy, class)), permissions);
                }
            }
        }
        Self(grants)
    }

    /// The types to whose things of one of the classes it may do one of these.
    pub(crate) fn types(&self, classes: &[&str], permissions: &[&str]) -> BTreeSet<&str> {
        let wanted = |granted: &BTreeSet<String>| permissions.iter().any(|name| granted.contains(*name));
        let is_found = |((_, class), granted): &(&(String, String), &BTreeSet<String>)| {
            classes.contains(&class.as_str()) && wanted(granted)
        };
        self.0.iter().filter(is_found).map(|((kind, _), _)| kind.as_str()).collect()
    }

    /// What it may do to things of one type and class.
    pub(crate) fn permissions(&self, kind: &str, class: &str) -> impl Iterator<Item = &str> {
        let found = self.0.get(&(kind.to_owned(), class.to_owned()));
        found.into_iter().flatten().map(String::as_str)
    }
}
