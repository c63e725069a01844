//! `tollgate guard list`, `add`, `remove` and `mode`.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow};
use clap::Args;
use tollgate_guard::{Class, Database, Digest, Item, Mode as GuardMode, Name, Program};

use super::file::Options;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// A path of a program, or a line such as `allow /usr/bin/su exec /usr/bin/bash free`
    #[arg(required = true, value_name = "PATH|LINE")]
    items: Vec<String>,
    /// The mode of the programs; without it, new ones learn, and known ones stay as they are
    #[arg(long, value_parser = mode_of)]
    mode: Option<GuardMode>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// A path of a program, or a line as `tollgate guard list` prints it
    #[arg(required = true, value_name = "PATH|LINE")]
    items: Vec<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
pub(crate) struct Mode {
    /// The path of a program; `setuid` or `daemon`: programs of this class that the database lacks
    #[arg(value_name = "PATH|CLASS")]
    program: String,
    /// off, learn, warn or enforce
    #[arg(value_parser = mode_of)]
    mode: GuardMode,
    #[command(flatten)]
    options: Options,
}

fn mode_of(text: &str) -> Result<GuardMode, String> {
    text.parse()
}

pub(crate) fn list(arguments: &List) -> anyhow::Result<ExitCode> {
    output::write(&arguments.options.read()?.to_string())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn add(Add { items, mode, options }: &Add) -> anyhow::Result<ExitCode> {
    options.change(|database| {
        for text in items {
            let item =
                if text.starts_with('/') { program(text, *mode, GuardMode::Learn, database)? } else { parse(text)? };
            database.enter(item).with_context(|| format!("cannot enter `{text}`"))?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn remove(Remove { items, options }: &Remove) -> anyhow::Result<ExitCode> {
    options.change(|database| {
        for text in items {
            let item = if text.starts_with('/') { known(text, database)? } else { parse(text)? };
            database.remove(&item).with_context(|| format!("cannot remove `{text}`"))?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn mode(Mode { program, mode, options }: &Mode) -> anyhow::Result<ExitCode> {
    options.change(|database| {
        let item = match program.parse::<Class>() {
            Ok(class) => Item::Default(class, *mode),
            Err(_) if !program.starts_with('/') => {
                return Err(anyhow!("`{program}` is neither a path nor a class: name a path, `setuid` or `daemon`"));
            }
            Err(_) => match known(program, database)? {
                Item::Program(name, program) => Item::Program(name, Program { mode: *mode, ..program }),
                other => other,
            },
        };
        database.enter(item)?;
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn parse(line: &str) -> anyhow::Result<Item> {
    line.parse().map_err(|cause: String| anyhow!(cause))
}

/// The program at a path, with its present content. Without `mode`, a known one keeps its own.
fn program(path: &str, mode: Option<GuardMode>, of_new: GuardMode, database: &Database) -> anyhow::Result<Item> {
    let failed = || format!("cannot read the program {path}");
    // The kernel knows a program by the path without links.
    let path = fs::canonicalize(PathBuf::from(path)).with_context(failed)?;
    let digest = Digest::read(File::open(&path).with_context(failed)?).with_context(failed)?;
    let name = Name::of(path.into_os_string().into_vec()).map_err(|cause| anyhow!(cause))?;
    let mode = mode.unwrap_or_else(|| database.program(&name).map_or(of_new, |known| known.mode));
    Ok(Item::Program(name, Program { mode, digests: [digest].into() }))
}

/// Enters the program at a path with its present content. A content that has the name of a file which is gone gets this one.
/// Returns whether anything is new.
pub(super) fn register(path: &Path, options: &Options) -> anyhow::Result<bool> {
    let path = path.to_str().context("its path is no text")?;
    let _lock = options.lock()?;
    let mut database = options.read()?;
    let mode = database.default_mode(Class::Setuid);
    let Item::Program(name, program) = program(path, None, mode, &database)? else { return Ok(false) };
    let Some(digest) = program.digests.first() else { return Ok(false) };
    match database.name_of(digest).cloned() {
        Some(known) if known == name || exists(&known) => return Ok(false),
        Some(gone) => {
            let content = Program { mode, digests: [*digest].into() };
            database.remove(&Item::Program(gone, content))?;
        }
        None => {}
    }
    database.enter(Item::Program(name, program))?;
    options.replace(&database)?;
    Ok(true)
}

fn exists(name: &Name) -> bool {
    Path::new(OsStr::from_bytes(name.as_bytes())).exists()
}

/// A program that the database has: by its name, or by the path without links.
fn known(text: &str, database: &Database) -> anyhow::Result<Item> {
    let real = fs::canonicalize(text).ok().and_then(|path| Name::of(path.into_os_string().into_vec()).ok());
    let names = text.parse::<Name>().ok().into_iter().chain(real);
    let found = names.filter_map(|name| Some((database.program(&name)?.clone(), name))).next();
    let (program, name) = found.with_context(|| {
        format!("the database has no program {text}; `tollgate guard list` prints those that it has, `tollgate guard add {text}` enters it")
    })?;
    Ok(Item::Program(name, program))
}
