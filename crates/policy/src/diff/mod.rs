//! What a change from one policy to another grants and takes away. Types, classes and permissions are matched by name.
//!
//! Rules are compared by what they mean for each source, target and class, and not as they are written ([`access`]): a
//! rule for an attribute equals the rules for its types. Conditional rules count according to the present values of the
//! booleans. Everything else, including constraints, is compared as statements ([`statements`]).

use serde::Serialize;

use crate::{model::Policy, vectors::Vectors};

pub mod access;
pub mod statements;

pub use access::{Change, Domains, Kind};
pub use statements::Statements;

/// One of two policies that are compared.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The policy, as its file was read.
    pub policy: &'a Policy,
    /// The rules in its tables.
    pub vectors: &'a Vectors,
}

/// A type that only one of the policies has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Only {
    /// The type's name.
    pub name: String,
    /// Number of rules (allow, auditallow, dontaudit) that have it as source, by name or by attribute.
    pub as_source: u32,
    /// Number of rules that have it as target.
    pub as_target: u32,
}

/// All differences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Types that only the first policy has. Rules about them are not in `domains`.
    pub removed_types: Vec<Only>,
    /// Types that only the second policy has.
    pub added_types: Vec<Only>,
    /// What rules grant and take away, between types that both policies have.
    pub domains: Vec<Domains>,
    /// Everything else, by kind of statement. Kinds without a difference are left out.
    pub statements: Vec<Statements>,
    /// Booleans whose rules differ, whatever their values.
    pub booleans: Vec<String>,
}

impl Diff {
    /// Whether the policies have the same meaning.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Compares two policies.
pub fn diff(before: Side<'_>, after: Side<'_>) -> Diff {
    Diff {
        removed_types: access::only(before.policy, after.policy),
        added_types: access::only(after.policy, before.policy),
        domains: access::domains(before, after),
        statements: statements::compare(before.policy, after.policy),
        booleans: statements::booleans(before.policy, after.policy),
    }
}

#[cfg(test)]
mod tests;
