//! `tollgate net key`: the keys that seal labels.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tollgate_enforcer::{
    datapath::keys::{self, Key, Keys, KeysError, Rank},
    requirements,
};

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a new random key, or add it to a file
    New(New),
    /// Exchange the two keys of a file: the second one seals from the next reload on
    Swap(Swap),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Add the key to this file as the one that seals; of two keys in it, the second one is dropped
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Add it as the one that only opens labels, until all machines have it
    #[arg(long, requires = "file")]
    second: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Swap {
    /// The file of keys
    #[arg(long, value_name = "FILE", default_value = keys::FILE)]
    file: PathBuf,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::New(New { file: None, .. }) => {
            let key = Key::random(&Keys::default()).context("cannot make a random key")?;
            output::line(&key.line())?;
        }
        Command::New(New { file: Some(file), second }) => {
            add(file, if *second { Rank::Second } else { Rank::First })?;
        }
        Command::Swap(Swap { file }) => {
            requirements::root()?;
            let Some(text) = keys::swapped(&keys::text(file)?) else {
                bail!(
                    "{} does not have two keys: `tollgate net key new --second --file {}` adds one",
                    file.display(),
                    file.display()
                );
            };
            write(file, &text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn add(file: &Path, rank: Rank) -> anyhow::Result<()> {
    requirements::root()?;
    let text = match keys::text(file) {
        Err(KeysError::Unreadable { cause, .. }) if cause.kind() == ErrorKind::NotFound => String::new(),
        other => other?,
    };
    let key = Key::random(&Keys::listed(file, &text)?).context("cannot make a random key")?;
    write(file, &keys::with(&text, &key, rank))
}

/// Writes a file of keys, and says what they do.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let numbers: Vec<u8> = Keys::listed(file, text)?.iter().map(|key| key.number).collect();
    keys::write(file, text)?;
    let opens = numbers.get(1).map(|second| format!(", and key {second} opens")).unwrap_or_default();
    let seals = numbers.first().context("there is no key")?;
    output::line(&format!("{}: from the next reload on, key {seals} seals{opens}", file.display()))
}
