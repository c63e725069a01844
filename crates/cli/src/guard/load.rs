//! `tollgate guard load` and `save`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use tollgate_enforcer::guard::FILE;
use tollgate_guard::changes;
use tollgate_signing::Signatures;

use super::file::{self, Options};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// A saved database, with its signature in FILE.sig if this machine demands one; or text
    file: PathBuf,
    /// Print what would change, and change nothing; exit status 1 if something would
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Save {
    /// The file that is written
    file: PathBuf,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn load(Load { file, dry_run }: &Load) -> anyhow::Result<ExitCode> {
    let own = Options { database: FILE.into() };
    let next = file::accepted(file)?;
    let changes = changes(&own.read().unwrap_or_default(), &next);
    changes.iter().try_for_each(|change| output::line(&change.to_string()))?;
    if *dry_run {
        return Ok(ExitCode::from(u8::from(!changes.is_empty())));
    }
    let _lock = own.lock()?;
    file::put_in_force(&next)?;
    // What was signed is kept as it is.
    file::write(Path::new(FILE), &next.to_bytes())?;
    if let Ok(signatures) = fs::read(Signatures::of(file)) {
        file::write(&Signatures::of(Path::new(FILE)), &signatures)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn save(Save { file, options }: &Save) -> anyhow::Result<ExitCode> {
    file::write(file, &options.read()?.to_bytes())?;
    Ok(ExitCode::SUCCESS)
}
