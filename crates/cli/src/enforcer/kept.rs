//! Sources of the policy in force, and whether the next start uses the same policy.

use std::path::Path;

use serde::Serialize;
use tollgate_audit::untrusted::for_people;
use tollgate_enforcer::enforcer::Folder;
use tollgate_policy::{
    built::Identity,
    origin::{Origin, Source},
    store::Store,
};

use super::ago::ago;
use crate::store;

/// The part of `status` about the sources of the policy.
#[derive(Debug, Default, Serialize)]
pub(super) struct Kept {
    /// The sources of the policy in force.
    in_force: Option<Origin>,
    /// The sources of the policy of the next start.
    next_start: Option<Origin>,
    /// Whether the two policies decide and label alike; `None`: one of them cannot be read, or does not exist.
    alike: Option<bool>,
    /// Sources of the next start's policy that have changed since it was built, or are new, or are gone.
    changed: Vec<String>,
    /// Why nothing is known about the sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Kept {
    /// For the generation in force.
    pub(super) fn of(generation: u32) -> Self {
        Self::compare(&Folder::default().policy(generation), &store::here())
    }

    fn compare(in_force: &Path, store: &Store) -> Self {
        let now = Identity::open(in_force);
        let next = match store.identity() {
            Ok(Some(next)) => Ok(next),
            Ok(None) => Err(format!("there is no {}", store.policy_name().display())),
            Err(cause) => Err(cause.to_string()),
        };
        let alike = now.as_ref().ok().zip(next.as_ref().ok()).map(|(now, next)| now.is_like(next));
        let failure = next.as_ref().err().cloned();
        let (now, next) = (now.ok().and_then(|now| now.origin), next.ok().and_then(|next| next.origin));
        let changed = next.as_ref().map(|next| changed(next, store)).unwrap_or_default();
        Self { in_force: now, next_start: next, alike, changed, failure }
    }

    /// The rows of `status`.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut next = match (self.alike, &self.failure) {
            (Some(true), _) => "the same policy".to_owned(),
            (Some(false), _) => format!("ANOTHER policy, built from {}", built(self.next_start.as_ref())),
            (None, Some(failure)) => format!("NO policy: {failure}"),
            (None, None) => "not known: the policy in force cannot be read".to_owned(),
        };
        if !self.changed.is_empty() {
            next.push_str(&format!(
                "; its sources have changed since ({}): `tollgate policy rebuild`",
                for_people(self.changed.join(" "))
            ));
        }
        vec![("  built from", built(self.in_force.as_ref())), ("next start", next)]
    }
}

fn built(origin: Option<&Origin>) -> String {
    let Some(origin) = origin else { return "nobody knows what".to_owned() };
    let set = origin.booleans.iter().map(|(name, value)| format!("{name}={}", if *value { "on" } else { "off" }));
    let set: Vec<String> = set.collect();
    let booleans = if set.is_empty() { String::new() } else { format!(", with {}", set.join(" ")) };
    for_people(format!("{}{booleans}; {} ago, by {}", origin.folders(), ago(origin.built), origin.version))
}

/// The names of sources that differ from those that a policy of the store was built from.
fn changed(origin: &Origin, store: &Store) -> Vec<String> {
    if !store.has_built(origin) {
        return Vec::new();
    }
    let Ok(contents) = store.read() else { return Vec::new() };
    let now = contents.sources();
    let differs = |source: &&Source| !(now.contains(source) && origin.sources.contains(source));
    let mut names: Vec<String> =
        now.iter().chain(&origin.sources).filter(differs).map(|source| source.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}
