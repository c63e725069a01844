//! What an administrator says of a node: its names, and who the agent is.

use std::{collections::HashMap, fs, io, path::Path};

use serde::Deserialize;
use tollgate_fleet::{Name, name::NoName};

use crate::shares::users;

/// A node as its administrator describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The node.
    pub node: Name,
    /// Its group.
    pub group: Name,
    /// Smaller groups, to which it belongs as well.
    pub groups: Vec<Name>,
    /// The uid of the agent's user; `None`: only root may offer something.
    pub agent: Option<u32>,
    /// Whether to put in force what this kernel cannot enforce all of.
    pub accept_missing: bool,
}

/// Why the administrator's files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}; a node of a fleet has the files `node` and `root` there")]
    Read {
        /// The file.
        path: String,
        /// Why.
        cause: io::Error,
    },
    /// It says something that has no meaning.
    #[error("{path}: {cause}")]
    Wrong {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// The file `node`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    node: String,
    group: String,
    #[serde(default)]
    groups: Vec<String>,
    agent: Option<User>,
    #[serde(default)]
    accept_missing: bool,
}

/// A user, as an administrator names it.
#[derive(Deserialize)]
#[serde(untagged)]
enum User {
    Uid(u32),
    Name(String),
}

impl User {
    /// Its uid; `users` gives that of a name.
    fn uid(&self, users: &HashMap<u32, String>) -> Result<u32, String> {
        match self {
            Self::Uid(uid) => Ok(*uid),
            Self::Name(name) => users.iter().find(|(_, user)| *user == name).map(|(uid, _)| *uid).ok_or_else(|| {
                format!("agent: /etc/passwd has no user {name}: make it, or name the agent's user, or its uid")
            }),
        }
    }
}

impl Settings {
    /// Reads the files `node` and `root` of a folder. `None`: there is no such folder.
    pub(super) fn read(folder: &Path) -> Result<Option<(Self, Vec<u8>)>, SettingsError> {
        if !folder.exists() {
            return Ok(None);
        }
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).map_err(|cause| SettingsError::Read { path: path.display().to_string(), cause })
        };
        let wrong = |cause: String| SettingsError::Wrong { path: folder.join("node").display().to_string(), cause };
        let text = String::from_utf8(read("node")?).map_err(|cause| wrong(cause.to_string()))?;
        let users = users(&fs::read_to_string("/etc/passwd").unwrap_or_default());
        let settings = Self::parse(&text, &users).map_err(wrong)?;
        Ok(Some((settings, read("root")?)))
    }

    fn parse(text: &str, users: &HashMap<u32, String>) -> Result<Self, String> {
        let Node { node, group, groups, agent, accept_missing } =
            toml::from_str(text).map_err(|cause| cause.to_string())?;
        let name = |text: &str| text.parse::<Name>().map_err(|cause: NoName| cause.to_string());
        let agent = agent.map(|user| user.uid(users)).transpose()?;
        let groups = groups.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
        Ok(Self { node: name(&node)?, group: name(&group)?, groups, agent, accept_missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_names_that_are_none_and_words_that_it_does_not_know() {
        let good = "node = \"web1\"\ngroup = \"web\"\ngroups = [\"canary\"]\nagent = 987\n";
        let users = HashMap::from([(987, "tollgate-fleet".to_owned())]);
        for agent in ["987", "\"tollgate-fleet\""] {
            let settings = Settings::parse(&good.replace("987", agent), &users).unwrap();
            assert_eq!((settings.agent, settings.accept_missing), (Some(987), false), "{agent}");
        }
        assert!(
            Settings::parse(&good.replace("987", "\"nobody-has-this\""), &users)
                .unwrap_err()
                .contains("nobody-has-this")
        );
        for wrong in ["node = \"../x\"\ngroup = \"web\"", "node = \"web1\"", &format!("{good}agnet = 1")] {
            assert!(Settings::parse(wrong, &users).is_err(), "{wrong}");
        }
    }
}
