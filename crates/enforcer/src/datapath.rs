//! Labels in packets: what the administrator says about networks, as programs read it (`struct tg_datapath`); the programs
//! that network devices run, and what must be right beside them.

pub mod attach;
pub mod config;
pub mod counters;
pub mod keys;
pub mod labelled;
pub mod links;
pub mod namespaces;
pub mod netlink;
pub mod place;
pub mod prefix;
pub mod programs;
pub mod ranges;
pub mod routes;
pub mod running;
pub mod table;
pub mod watch;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use self::{
    config::{Config, ConfigError},
    keys::Keys,
};

/// Where labelled networks are configured.
pub const FILE: &str = "/etc/tollgate/network.toml";

/// The file of labelled networks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    path: PathBuf,
    must_exist: bool,
}

impl Default for Source {
    /// [`FILE`], which need not exist.
    fn default() -> Self {
        Self { path: FILE.into(), must_exist: false }
    }
}

impl Source {
    /// A file that the user has named. It must exist.
    #[must_use]
    pub fn named(path: PathBuf) -> Self {
        Self { path, must_exist: true }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What the administrator says about networks, with the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks {
    /// The file.
    pub file: PathBuf,
    /// What it says.
    pub config: Config,
    /// The keys of sealed labels.
    pub keys: Keys,
}

impl Networks {
    /// Whether any packet has a label.
    #[must_use]
    pub fn are_labelled(&self) -> bool {
        !self.config.zones.is_empty()
    }

    /// Reads the file, and the file of keys that it names.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with the file, the place in it, and the remedy.
    pub fn read(source: &Source) -> Result<Self, ConfigError> {
        let file = source.path.clone();
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && !source.must_exist => {
                return Ok(Self { file, ..Self::default() });
            }
            Err(cause) => return Err(ConfigError::Unreadable { file, cause }),
        };
        let config = Config::parse(&file, &text)?;
        let keys = config.seal.as_ref().map(|seal| Keys::read(&seal.keys)).transpose()?.unwrap_or_default();
        Ok(Self { file, config, keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_a_file_only_if_the_user_has_named_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("network.toml");
        let error = Networks::read(&Source::named(path.clone())).unwrap_err().to_string();
        assert!(error.contains("network.toml") && error.contains("that exists"), "{error}");
        let source = Source { path: path.clone(), must_exist: false };
        assert_eq!(Networks::read(&source).unwrap().config, Config::default());
        fs::write(&path, "[[zone]]\naddresses = [\"10.0.0.1\"]\n").unwrap();
        assert_eq!(Networks::read(&source).unwrap().config.zones.len(), 1);
        fs::write(&path, "[[zone]]\n").unwrap();
        assert!(Networks::read(&source).is_err());
    }
}
