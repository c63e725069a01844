//! The study file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tollgate_bench::counter::Counter;
use tollgate_vm::system::Recipe;

use super::Error;

/// A study of applications.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Applications {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub title: String,
    /// The guest's clock.
    pub clock: Counter,
    /// The kernel: a series or a release.
    pub kernel: String,
    /// Runs of each application with the guard, and as many without it.
    pub runs: u32,
    /// The difference in percent that is to be ruled out.
    pub margin: f64,
    /// Seconds that the guest may take.
    pub timeout: u64,
    /// The system that the guest boots.
    pub system: System,
    /// What is run.
    #[serde(rename = "application")]
    pub applications: Vec<Application>,
    /// What others have published.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// The `[system]` table. Its scripts are bash's, run as root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct System {
    /// Debian's release.
    pub release: String,
    /// Packages beside those of each system.
    pub packages: Vec<String>,
    /// Run once, when the image is made.
    #[serde(default)]
    pub install: String,
    /// Run once in the guest before anything else.
    #[serde(default)]
    pub set_up: String,
    /// Restarts the daemons, which are guarded from their exec on.
    #[serde(default)]
    pub restart: String,
}

/// An `[[application]]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Its name in tables.
    pub name: String,
    /// What it does.
    pub about: String,
    /// Run before each run, without being timed.
    #[serde(default)]
    pub before: String,
    /// What is timed. Unless it returns 0, the study fails.
    pub run: String,
}

/// A `[[published]]` table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Where it was published, and of what machine.
    pub source: String,
    /// By application.
    pub seconds: BTreeMap<String, Spread>,
}

/// Means with their standard deviations, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Without the guard.
    pub without: (f64, f64),
    /// With it.
    pub with: (f64, f64),
}

impl Applications {
    /// Whether a study file is one of applications.
    #[must_use]
    pub fn is_of(text: &str) -> bool {
        text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("system"))
    }

    /// Reads a study file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] names what is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let wrong = |cause: String| Error::File { name: name.to_owned(), cause };
        let study: Self = toml::from_str(text).map_err(|cause| wrong(cause.to_string()))?;
        let names: Vec<&str> = study.applications.iter().map(|application| application.name.as_str()).collect();
        if names.is_empty()
            || names.iter().any(|name| !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
        {
            return Err(wrong("it needs applications, with names of letters, digits and `-`".into()));
        }
        if study.runs < 2 || study.margin <= 0.0 {
            return Err(wrong("runs must be 2 or more, and margin greater than 0".into()));
        }
        for published in &study.published {
            if let Some(unknown) = published.seconds.keys().find(|name| !names.contains(&name.as_str())) {
                return Err(wrong(format!("published figures of {unknown}, which is no application of it")));
            }
        }
        Ok(study)
    }

    /// What the system is made of.
    #[must_use]
    pub fn recipe(&self) -> Recipe {
        let System { release, packages, install, .. } = self.system.clone();
        Recipe { release, packages, script: install, labels: None, size: 2048 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = 'a'\ntitle = 'A'\nclock = 'wall'\nkernel = '6.1'\nruns = 2\nmargin = 1.0\ntimeout = 9\n\
                        [system]\nrelease = 'bookworm'\npackages = ['rsync']\n\
                        [[application]]\nname = 'copy'\nabout = 'copies'\nrun = 'true'\n\
                        [[published]]\nsource = 'B'\nseconds = { copy = { without = [1.0, 0.1], with = [1.1, 0.1] } }\n";

    #[test]
    fn tells_its_files_from_those_of_operations() {
        assert!(Applications::is_of(TEXT));
        assert!(!Applications::is_of("name = 'quick'\nworkloads = []\n"));
    }

    #[test]
    fn refuses_what_cannot_be_measured() {
        let study = Applications::parse("a.toml", TEXT).unwrap();
        assert_eq!(study.published[0].seconds["copy"].with, (1.1, 0.1));
        for (what, instead, said) in [
            ("runs = 2", "runs = 1", "2 or more"),
            ("name = 'copy'", "name = 'a b'", "letters"),
            ("{ copy =", "{ other =", "other"),
            ("kernel", "kernels", "kernels"),
        ] {
            let error = Applications::parse("a.toml", &TEXT.replacen(what, instead, 1)).unwrap_err().to_string();
            assert!(error.starts_with("a.toml: ") && error.contains(said), "{error}");
        }
    }
}
