//! NetLabel: labels that the kernel puts into packets, under SELinux.

use std::{path::PathBuf, process::Command};

use serde::{Deserialize, Serialize};

use crate::{Error, error::Context};

/// What `netlabelctl` is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetLabel {
    /// The path of `netlabelctl`.
    pub program: PathBuf,
    /// Its commands, in order.
    pub commands: Vec<String>,
}

impl NetLabel {
    /// Runs the commands; returns a description.
    pub(super) fn configure(&self) -> Result<String, Error> {
        for command in &self.commands {
            let words = command.split_whitespace();
            let output =
                Command::new(&self.program).args(words).output().context(format!("run netlabelctl {command}"))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(Error::Unavailable(format!("netlabelctl {command}: {}: {}", output.status, said.trim())));
            }
        }
        Ok(format!("netlabel: {}", self.commands.join("; ")))
    }
}
