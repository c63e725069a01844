//! Doubtful points of a policy: what a kernel cannot enforce, what the policy leaves open, what comes close to the
//! limits of the tables. `neverallow` rules are not checked here, because libsepol checks them when a policy is
//! compiled.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{decide::Tables, model::Policy, stats, vectors::Vectors};

mod constraints;
mod domains;
mod kernel;
pub mod kernels;

pub use kernels::{Kernel, UnknownKernel};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is not enforced, or not enforced as it reads.
    Warning,
    /// Worth knowing; nothing is wrong by itself.
    Note,
}

/// A finding of `policy check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// The finding in words, without the names.
    pub text: String,
    /// The names that it is about.
    pub names: Vec<String>,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// A finding about `names`; `None` if there are none.
    fn about(
        severity: Severity,
        text: impl Into<String>,
        names: impl IntoIterator<Item = String>,
        remedy: &str,
    ) -> Option<Self> {
        let names: Vec<String> = names.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        (!names.is_empty()).then(|| Self { severity, text: text.into(), names, remedy: remedy.to_owned() })
    }
}

/// The part of a limit from which on it is a finding: four fifths, as numerator and denominator.
const NEAR_LIMIT: (u64, u64) = (4, 5);

/// Examines a policy, its tables with its own `levels`, and what `kernel` does with it. The most important findings
/// come first.
pub fn check(policy: &Policy, tables: &Tables, levels: usize, kernel: Option<&Kernel>) -> Vec<Finding> {
    let vectors = Vectors::of(tables);
    let near = stats::shares(tables, levels)
        .into_iter()
        .filter(|share| share.used * NEAR_LIMIT.1 >= share.limit * NEAR_LIMIT.0);
    let mut findings: Vec<Finding> = domains::findings(policy, &vectors)
        .into_iter()
        .chain(constraints::findings(policy))
        .chain(kernel.map(|kernel| kernel::findings(policy, kernel)).unwrap_or_default())
        .chain(Finding::about(
            Severity::Note,
            "near the limits of decision tables",
            near.map(|share| format!("{}: {} of {}", share.what, share.used, share.limit)),
            "a policy that passes a limit is refused when it is built; remove what it does not need",
        ))
        .collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

#[cfg(test)]
mod tests;
