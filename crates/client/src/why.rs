//! Why hooks have programs, or have none: what `tollgate status --why` shows.

use serde::{Deserialize, Serialize};

/// A hook, whether its program is attached, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// Name of the hook.
    pub hook: String,
    /// Whether its program is attached.
    pub attached: bool,
    /// Each would be enough. There is at least one.
    pub reasons: Vec<Reason>,
}

/// A reason for the program of a hook, or for having none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What kind of reason it is.
    pub kind: Kind,
    /// The reason in words.
    pub text: String,
    /// An example of what is denied or audited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Example>,
}

/// An access that a policy denies, or audits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The type of the subject.
    pub source: String,
    /// The type of the object.
    pub target: String,
    /// The class of the object.
    pub class: String,
    /// The permission.
    pub permission: String,
}

/// A kind of reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Labels or subjects are kept there, whatever the policy says.
    Labels,
    /// No rule allows an access that is checked there.
    Rule,
    /// An access that is checked there is audited when it is granted.
    Audit,
    /// A constraint may deny an access that is checked there.
    Constraint,
    /// The policy does not define a permission that is checked there, and denies what it does not define.
    Undefined,
    /// Something is denied there that no rule can allow.
    Fixed,
    /// Packets have labels, or the policy has each packet checked.
    Packets,
    /// Something is held that the policy in force denies.
    Revocation,
    /// The administrator named the hooks to attach to.
    Chosen,
    /// Not attached: nothing that is checked there can be denied or audited.
    Omitted,
    /// Not attached: this kernel has no such hook, or this machine nothing that would run the program.
    Absent,
    /// Not attached: there is no program for this hook.
    NoProgram,
    /// Not attached, although it is needed.
    Detached,
    /// Still attached, although it is no longer needed.
    Unneeded,
}

impl Reason {
    /// A reason without an example.
    #[must_use]
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), example: None }
    }
}
