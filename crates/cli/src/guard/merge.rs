//! `tollgate guard merge`: sets of a distribution's programs, as this machine has them.

use std::{
    ffi::OsString,
    fs::{self, File},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use nix::unistd::{Group, User};
use tollgate_guard::{Database, Digest, Machine, Name, Set, changes};

use super::file::Options;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Text as in /usr/share/tollgate/guard: programs without their contents, and rules
    #[arg(required = true, value_name = "FILE")]
    sets: Vec<PathBuf>,
    /// Print what would change, and change nothing; exit status 1 if something would
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(Arguments { sets, dry_run, options }: &Arguments) -> anyhow::Result<ExitCode> {
    let before = options.read()?;
    let next = merged(&before, sets, true)?;
    let changes = changes(&before, &next);
    changes.iter().try_for_each(|change| output::line(&change.to_string()))?;
    if *dry_run {
        return Ok(ExitCode::from(u8::from(!changes.is_empty())));
    }
    if !changes.is_empty() {
        options.change(|database| {
            *database = merged(database, sets, false)?;
            Ok(())
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A database with sets. `says`: lines that this machine cannot have are printed.
fn merged(database: &Database, sets: &[PathBuf], says: bool) -> anyhow::Result<Database> {
    let mut next = database.clone();
    for path in sets {
        let failed = || format!("cannot take the set {}", path.display());
        let text = fs::read_to_string(path).with_context(failed)?;
        let set = Set::read(&text, &Own(&next)).with_context(failed)?;
        for line in set.left.iter().filter(|_| says) {
            output::line(&format!("# not on this machine: {line}"))?;
        }
        next.merge(&set.database).with_context(failed)?;
    }
    Ok(next)
}

/// This machine. A content that the database has keeps its name.
struct Own<'d>(&'d Database);

impl Machine for Own<'_> {
    fn program(&self, path: &Name) -> Option<(Name, Digest)> {
        let path = fs::canonicalize(Path::new(&OsString::from_vec(path.as_bytes().to_vec()))).ok()?;
        let digest = Digest::read(File::open(&path).ok()?).ok()?;
        let name = Name::of(path.as_os_str().as_bytes()).ok()?;
        Some((self.0.name_of(&digest).cloned().unwrap_or(name), digest))
    }

    fn user(&self, name: &str) -> Option<u32> {
        Some(User::from_name(name).ok()??.uid.as_raw())
    }

    fn group(&self, name: &str) -> Option<u32> {
        Some(Group::from_name(name).ok()??.gid.as_raw())
    }
}
