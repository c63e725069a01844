//! `tollgate label`: labels of files.

use std::{
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use serde::Serialize;
use tollgate_enforcer::{
    client::{Client, ClientError, tree},
    labels::relabel::restored,
};

use super::printable;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print labels
    Get(Which),
    /// Give files a label
    Set(Set),
    /// Give files the labels that the policy's file_contexts say
    Restore(Restore),
}

/// The files.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The files; symbolic links are not followed
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// What is below directories too, on the same file system
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The label
    context: String,
    /// Only say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// User, role and range too; without, only the type
    #[arg(short = 'F', long)]
    force: bool,
    /// Only say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    which: Which,
}

/// A label, and the one before where it was changed.
#[derive(Debug, Serialize)]
struct Labelled {
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    label: String,
}

/// Why the walk ends, if it does.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Get(which) => each(&which, |client, object| Ok(Some((None, client.label(object)?)))),
        Command::Set(Set { context, dry_run, which }) => each(&which, |client, object| {
            let before = if dry_run { client.label(object)? } else { client.set_label(object, &context)? };
            Ok((before != context).then(|| (Some(before), context.clone())))
        }),
        Command::Restore(Restore { force, dry_run, which }) => each(&which, |client, object| {
            let Some(default) = client.default_label(object)? else { return Ok(None) };
            let before = client.label(object)?;
            let Some(label) = restored(&before, &default, force) else { return Ok(None) };
            if !dry_run {
                client.set_label(object, &label)?;
            }
            Ok(Some((Some(before), label)))
        }),
    }
}

/// A label before, where it was changed, and the label now.
type Change = Option<(Option<String>, String)>;

/// Does something for each object; what is refused is said, and makes the exit status 2.
fn each(
    which: &Which,
    mut act: impl FnMut(&mut Client, BorrowedFd<'_>) -> Result<Change, ClientError>,
) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect()?;
    let (mut labelled, mut failed) = (Vec::new(), false);
    for root in &which.paths {
        let mut refused = false;
        let mut visit = |path: &Path, object: BorrowedFd<'_>| {
            match act(&mut client, object) {
                Ok(None) => {}
                Ok(Some((before, label))) => labelled.push(Labelled { path: path.to_owned(), before, label }),
                Err(ClientError::Refused(cause)) => {
                    refused = true;
                    eprintln!("tollgate: {}: {cause}", printable(&path.display().to_string()));
                }
                Err(cause) => return Err(Ended::from(cause)),
            }
            Ok(())
        };
        let mut skipped = false;
        let mut skip = |path: &Path, cause: std::io::Error| {
            skipped = true;
            eprintln!("tollgate: {}: {cause}", printable(&path.display().to_string()));
        };
        let walked = if which.recursive {
            tree::walk(root, &mut visit, &mut skip)
        } else {
            use std::os::fd::AsFd;
            tree::open(root).map_err(Ended::from).and_then(|object| visit(root, object.as_fd()))
        };
        match walked {
            Err(Ended::Io(cause)) => skip(root, cause),
            other => other?,
        }
        failed |= refused | skipped;
    }
    print(&labelled, which.json)?;
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn print(labelled: &[Labelled], json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&labelled);
    }
    let lines = labelled.iter().map(|Labelled { path, before, label }| {
        let before = before.as_ref().map(|before| format!("{before} -> ")).unwrap_or_default();
        format!("{before}{label} {}\n", printable(&path.display().to_string()))
    });
    output::write(&lines.collect::<String>())
}
