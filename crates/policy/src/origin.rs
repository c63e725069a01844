//! What a built policy was built from. It is part of the built file, so that it stays with the policy.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The time that builders of packages want in files, in seconds since 1970 (reproducible-builds.org).
const EPOCH: &str = "SOURCE_DATE_EPOCH";
/// How many names of one directory are shown. If there are more, only their number is shown.
const MAX_SHOWN: usize = 4;

/// A file that a policy was built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Path of the file, as given when the policy was built.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits. For a module package, of the CIL that libsepol made of it.
    pub sha256: String,
}

impl Source {
    /// A file with this name and content.
    pub fn new(name: impl Into<String>, content: &[u8]) -> Self {
        Self { name: name.into(), sha256: hexadecimal(&Sha256::digest(content)) }
    }
}

/// What a policy was built from, when, and by which version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The version of the program that built it.
    pub version: String,
    /// When it was built, in seconds since 1970.
    pub built: u64,
    /// The files, in the order in which they were read.
    pub sources: Vec<Source>,
    /// Booleans that were set after the sources were compiled, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub booleans: BTreeMap<String, bool>,
}

impl Origin {
    /// The origin of a policy that is built now.
    pub fn now(sources: Vec<Source>) -> Self {
        let said = env::var(EPOCH).ok().and_then(|seconds| seconds.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { version, built: said.unwrap_or_else(now), sources, booleans: BTreeMap::new() }
    }

    /// The form in a built file; empty if it is not known.
    pub(crate) fn to_bytes(origin: Option<&Self>) -> Vec<u8> {
        // It consists of texts and numbers, which can always be written.
        origin.and_then(|origin| serde_json::to_vec(origin).ok()).unwrap_or_default()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, serde_json::Error> {
        if bytes.is_empty() { Ok(None) } else { serde_json::from_slice(bytes).map(Some) }
    }

    /// The files by directory: `/usr/share/tollgate/policy (10 files), /etc/tollgate/policy.d (web.cil web.fc)`.
    pub fn folders(&self) -> String {
        let mut folders: Vec<(&Path, Vec<&str>)> = Vec::new();
        for source in &self.sources {
            let path = Path::new(&source.name);
            let folder = path.parent().unwrap_or(Path::new(""));
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(&source.name);
            match folders.iter_mut().find(|(known, _)| *known == folder) {
                Some((_, names)) => names.push(name),
                None => folders.push((folder, vec![name])),
            }
        }
        let shown: Vec<String> = folders
            .iter()
            .map(|(folder, names)| {
                let names = if names.len() > MAX_SHOWN { format!("{} files", names.len()) } else { names.join(" ") };
                if folder.as_os_str().is_empty() { names } else { format!("{} ({names})", folder.display()) }
            })
            .collect();
        shown.join(", ")
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
