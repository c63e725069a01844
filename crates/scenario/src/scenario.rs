//! Scenarios as data: a family is a file of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tollgate_client::descriptors::Descriptors;

use crate::acts;

/// The fewest scenarios that a family has.
pub const MIN_SCENARIOS: usize = 5;

/// Why a file is no family.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// TOML did not take it.
    #[error("scenarios {family}: {cause}")]
    Syntax {
        /// The file's name.
        family: String,
        /// What TOML says, with line and column.
        cause: Box<toml::de::Error>,
    },
    /// It is not one that can be played.
    #[error("scenarios {family}, {scenario:?}: {what}")]
    Content {
        /// The file's name.
        family: String,
        /// The scenario.
        scenario: String,
        /// What is wrong, and what helps.
        what: String,
    },
}

/// Scenarios about one thing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The file's name.
    #[serde(default)]
    pub name: String,
    /// What they are about.
    pub about: String,
    /// The scenarios.
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
}

/// A subject, objects, and what the one does to the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A sentence without its subject, the verdict first: "denies reading without read".
    pub name: String,
    /// The domain of the subject: a type, or a whole context.
    pub domain: String,
    /// Where the objects lie.
    #[serde(default)]
    pub place: Place,
    /// What there is before it begins, made in this order.
    #[serde(default)]
    pub objects: Vec<Object>,
    /// What the subject has done before it entered its domain: what it opened is still open.
    #[serde(default)]
    pub before: Vec<String>,
    /// What it does, until something fails.
    pub acts: Vec<String>,
    /// Paths whose contexts are compared afterwards.
    #[serde(default)]
    pub look: Vec<String>,
    /// Tollgate decides otherwise here, and that is known.
    pub differs: Option<Difference>,
    /// Why the same is denied when nothing is enforced: what asks SELinux no question knows of no permissive mode.
    pub stays_denied: Option<String>,
}

/// A difference that is known.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// What comes of it under Tollgate: an [`Outcome`](crate::outcome::Outcome) as it is printed.
    pub tollgate: String,
    /// What comes of it where descriptors are asked about at their use; none: what comes of it under SELinux.
    pub at_use: Option<String>,
    /// Why.
    pub reason: String,
}

impl Difference {
    /// What comes of it; `None`: what comes of it under SELinux.
    pub(crate) fn of(&self, descriptors: Descriptors) -> Option<&str> {
        match descriptors {
            Descriptors::Check => Some(&self.tollgate),
            Descriptors::Use => self.at_use.as_deref(),
        }
    }
}

/// A file system of the runner's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In memory.
    #[default]
    Tmpfs,
    /// On a block device.
    Ext4,
    /// In memory; System V objects and message queues in a namespace of their own.
    Ipc,
}

/// Something that is made for a scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// Its path, or a process's name.
    pub path: String,
    /// What it is.
    #[serde(default)]
    pub kind: Kind,
    /// Its type, or a whole context; without one it keeps that with which it was made.
    #[serde(rename = "type")]
    pub context: Option<String>,
    /// Its mode, octal.
    pub mode: Option<String>,
    /// Whose it is; the superuser's otherwise.
    pub owner: Option<u32>,
    /// A file's bytes, a link's target, a mount's options.
    pub content: Option<String>,
    /// What a process does before the subject begins.
    #[serde(default)]
    pub acts: Vec<String>,
}

/// What there may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    #[default]
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A character device, the null device's numbers.
    Chr,
    /// A copy of this program, which goes on with the subject's acts when it is executed.
    Program,
    /// A file whose interpreter is the program of that path.
    Script,
    /// A tmpfs.
    Tmpfs,
    /// An overlay.
    Overlay,
    /// A process of that domain, waiting.
    Process,
}

impl Family {
    /// Reads a family, and looks whether it can be played.
    pub fn parse(name: &str, text: &str) -> Result<Self, FamilyError> {
        let family: Self = toml::from_str(text)
            .map_err(|cause| FamilyError::Syntax { family: name.to_owned(), cause: Box::new(cause) })?;
        let family = Self { name: name.to_owned(), ..family };
        let wrong = |scenario: &str, what: String| {
            Err(FamilyError::Content { family: name.to_owned(), scenario: scenario.to_owned(), what })
        };
        if family.scenarios.len() < MIN_SCENARIOS {
            return wrong(
                "all",
                format!("there are {}, a family has at least {MIN_SCENARIOS}", family.scenarios.len()),
            );
        }
        let mut names = BTreeSet::new();
        for scenario in &family.scenarios {
            if !names.insert(&scenario.name) {
                return wrong(&scenario.name, "there are two of that name".into());
            }
            if let Some(what) = scenario.wrong() {
                return wrong(&scenario.name, what);
            }
        }
        Ok(family)
    }
}

impl Scenario {
    fn wrong(&self) -> Option<String> {
        if self.acts.is_empty() {
            return Some("the subject does nothing".into());
        }
        let of_objects = self.objects.iter().flat_map(|object| &object.acts);
        self.before.iter().chain(&self.acts).chain(of_objects).find_map(|act| acts::find(act).err())
    }
}

/// The whole context of a subject (role `system_r`) or of an object, if only its type is given.
pub(crate) fn whole(context: &str, role: &str) -> String {
    if context.contains(':') { context.to_owned() } else { format!("system_u:{role}:{context}:s0") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(scenario: &str) -> Result<Family, String> {
        let rest: String = (1..MIN_SCENARIOS)
            .map(|n| format!("[[scenario]]\nname = \"{n}\"\ndomain = \"d\"\nacts = [\"read\"]\n"))
            .collect();
        Family::parse("some", &format!("about = \"x\"\n{rest}[[scenario]]\n{scenario}")).map_err(|e| e.to_string())
    }

    #[test]
    fn reads_a_scenario() {
        let family =
            parse("name = \"n\"\ndomain = \"d\"\nobjects = [{ path = \"f\" }]\nacts = [\"open f r\"]").unwrap();
        let last = family.scenarios.last().unwrap();
        assert_eq!((last.place, last.objects[0].kind), (Place::Tmpfs, Kind::File));
    }

    #[test]
    fn rejects_what_cannot_be_played() {
        let rejected = |scenario: &str, expected: &str| {
            let error = parse(scenario).unwrap_err();
            assert!(error.contains("some") && error.contains(expected), "{error}");
        };
        rejected("name = \"n\"\ndomain = \"d\"\nacts = []", "does nothing");
        rejected("name = \"n\"\ndomain = \"d\"\nacts = [\"dance\"]", "dance");
        rejected("name = \"n\"\ndomain = \"d\"\nacts = [\"open f\"]", "open PATH FLAGS");
        rejected("name = \"1\"\ndomain = \"d\"\nacts = [\"read\"]", "two of that name");
        rejected("name = \"n\"\ndomain = \"d\"\nact = [\"read\"]", "unknown field");
        let few = "about = \"x\"\n[[scenario]]\nname = \"1\"\ndomain = \"d\"\nacts = [\"read\"]\n";
        assert!(Family::parse("few", few).unwrap_err().to_string().contains("at least 5"));
    }

    #[test]
    fn completes_a_type_to_a_context() {
        assert_eq!(whole("worker", "system_r"), "system_u:system_r:worker:s0");
        assert_eq!(whole("u:r:t:s1", "system_r"), "u:r:t:s1");
    }
}
