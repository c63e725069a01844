//! Scenarios as data: one family per file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tollgate_client::descriptors::Descriptors;

use crate::acts;

/// The least number of scenarios in a family.
pub const MIN_SCENARIOS: usize = 5;

/// Why a file is no valid family.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// The file is no valid TOML.
    #[error("scenarios {family}: {cause}")]
    Syntax {
        /// The file's name.
        family: String,
        /// TOML's error, with line and column.
        cause: Box<toml::de::Error>,
    },
    /// A scenario cannot be played.
    #[error("scenarios {family}, {scenario:?}: {what}")]
    Content {
        /// The file's name.
        family: String,
        /// The name of the scenario.
        scenario: String,
        /// What is wrong, and the remedy.
        what: String,
    },
}

/// Scenarios about one subject.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The file's name.
    #[serde(default)]
    pub name: String,
    /// The subject of the family.
    pub about: String,
    /// The scenarios, in the file's order.
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
}

/// A subject, objects, and the acts of the subject.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A sentence without its subject, the verdict first: "denies reading without read".
    pub name: String,
    /// The domain of the subject: a type, or a whole context.
    pub domain: String,
    /// The place of the objects.
    #[serde(default)]
    pub place: Place,
    /// The objects, created in this order.
    #[serde(default)]
    pub objects: Vec<Object>,
    /// Acts of the subject before it enters its domain; files that it opens stay open.
    #[serde(default)]
    pub before: Vec<String>,
    /// Acts of the subject, until one fails.
    pub acts: Vec<String>,
    /// Paths whose contexts are compared afterwards.
    #[serde(default)]
    pub look: Vec<String>,
    /// A known difference of Tollgate.
    pub differs: Option<Difference>,
    /// Why permissive mode denies it too: a denial outside SELinux's checks does not depend on the mode.
    pub stays_denied: Option<String>,
}

/// A known difference.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The result under Tollgate: an [`Outcome`](crate::outcome::Outcome) as it is printed.
    pub tollgate: String,
    /// The result if descriptors are checked at each use; none: SELinux's result.
    pub at_use: Option<String>,
    /// The reason for the difference.
    pub reason: String,
}

impl Difference {
    /// The expected result; `None`: SELinux's result.
    pub(crate) fn of(&self, descriptors: Descriptors) -> Option<&str> {
        match descriptors {
            Descriptors::Check => Some(&self.tollgate),
            Descriptors::Use => self.at_use.as_deref(),
        }
    }
}

/// A file system of the runner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A tmpfs of the runner.
    #[default]
    Tmpfs,
    /// An ext4 on a block device in memory.
    Ext4,
    /// A tmpfs; System V objects and message queues in a namespace of their own.
    Ipc,
}

/// An object that is created for a scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// The path, or a process's name.
    pub path: String,
    /// The kind of the object.
    #[serde(default)]
    pub kind: Kind,
    /// The type, or a whole context; none: it keeps the context of its creation.
    #[serde(rename = "type")]
    pub context: Option<String>,
    /// The mode, in octal.
    pub mode: Option<String>,
    /// The owner's uid; root by default.
    pub owner: Option<u32>,
    /// The content of a file, the target of a link, or the options of a mount.
    pub content: Option<String>,
    /// Acts of a process before the subject starts.
    #[serde(default)]
    pub acts: Vec<String>,
}

/// The kinds of objects.
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
    /// A character device with the null device's numbers.
    Chr,
    /// A copy of this program, which continues with the subject's acts when it is executed.
    Program,
    /// A file whose interpreter is the program of that path.
    Script,
    /// A tmpfs of the runner.
    Tmpfs,
    /// A mounted overlayfs.
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
}
