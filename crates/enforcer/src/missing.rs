//! What a policy needs and this kernel, or this program, cannot enforce.

use tollgate_policy::model::Policy;

use crate::generation::CAPABILITIES;

/// A policy that cannot be enforced whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this kernel cannot enforce all of the policy: {}; --accept-missing enforces the rest", .0.join(", "))]
pub struct Missing(pub Vec<String>);

/// Refuses a policy that cannot be enforced whole, unless the user accepts that.
pub fn refuse(policy: &Policy, accepted: bool) -> Result<(), Missing> {
    let missing = of(policy);
    if missing.is_empty() || accepted { Ok(()) } else { Err(Missing(missing)) }
}

/// What cannot be enforced, by name.
#[must_use]
pub fn of(policy: &Policy) -> Vec<String> {
    let capabilities = policy.capabilities.iter().filter(|name| !CAPABILITIES.contains(&name.as_str()));
    capabilities.map(|name| format!("the policy capability {name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_nobody_enforces_unless_it_is_accepted() {
        let mut policy = Policy { capabilities: vec!["open_perms".into()], ..Policy::default() };
        assert_eq!(refuse(&policy, false), Ok(()));
        policy.capabilities.push("telepathy".into());
        let refusal = refuse(&policy, false).unwrap_err().to_string();
        assert!(refusal.contains("the policy capability telepathy; --accept-missing"), "{refusal}");
        assert_eq!(refuse(&policy, true), Ok(()));
    }
}
