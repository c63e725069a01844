//! All that the rules of a policy grant to a domain, whoever wrote them. It is read from the policy itself, not from
//! its sources.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_policy::{
    cil,
    context::{Kind, Names},
    decide::Tables,
    model::Policy,
    vectors::Vectors,
};

/// The permissions of a domain, by type and class of the object, without constraints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(pub BTreeMap<(String, String), BTreeSet<String>>);

impl Grants {
    /// What a policy grants to a domain. Empty if the policy does not have it.
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

    /// The types for which the domain has one of these permissions in one of these classes.
    pub(crate) fn types(&self, classes: &[&str], permissions: &[&str]) -> BTreeSet<&str> {
        let wanted = |granted: &BTreeSet<String>| permissions.iter().any(|name| granted.contains(*name));
        let is_found = |((_, class), granted): &(&(String, String), &BTreeSet<String>)| {
            classes.contains(&class.as_str()) && wanted(granted)
        };
        self.0.iter().filter(is_found).map(|((kind, _), _)| kind.as_str()).collect()
    }

    /// The permissions of the domain on one type and class.
    pub(crate) fn permissions(&self, kind: &str, class: &str) -> impl Iterator<Item = &str> {
        let found = self.0.get(&(kind.to_owned(), class.to_owned()));
        found.into_iter().flatten().map(String::as_str)
    }
}
