//! `tollgate label`: labels of files.

use std::{
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use serde::Serialize;
use tollgate_audit::untrusted::for_people;
use tollgate_client::{Client, ClientError, tree};
use tollgate_enforcer::{labels::lost, programs::Pins};
use tollgate_policy::context::restored;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print labels
    Get(Which),
    /// Give files a label
    Set(Set),
    /// Give files the labels that the policy's file_contexts name
    Restore(Restore),
    /// List files that are unlabelled because a crash may have taken their labels, or because the policy does not have their
    /// labels
    Lost(Lost),
}

/// Files to act on.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The files; symbolic links are not followed
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Also files below directories, on the same file system
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The label to set
    context: String,
    /// Only print what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Set user, role and range too; without this option only the type, unless the file is unlabelled
    #[arg(short = 'F', long)]
    force: bool,
    /// Only print what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct Lost {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file's label, and its previous one if it was changed.
#[derive(Debug, Serialize)]
struct Labelled {
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    label: String,
}

/// Why a walk ended early.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Output(#[from] anyhow::Error),
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Get(which) => each(&which, |client, object| Ok(Some((None, client.label(object)?)))),
        Command::Set(Set { context, dry_run, which }) => each(&which, |client, object| {
            let before = if dry_run { client.label(object)? } else { client.set_label(object, &context)? };
            Ok((before != context).then(|| (Some(before), context.clone())))
        }),
        Command::Restore(Restore { force, dry_run, which }) => {
            let mut unlabelled = None;
            each(&which, |client, object| {
                let Some(default) = client.default_label(object)? else { return Ok(None) };
                let before = client.label(object)?;
                let unlabelled = match &mut unlabelled {
                    Some(known) => known,
                    unknown => unknown.insert(client.unlabelled()?),
                };
                let Some(label) = restored(&before, &default, unlabelled, force) else { return Ok(None) };
                if !dry_run {
                    client.set_label(object, &label)?;
                }
                Ok(Some((Some(before), label)))
            })
        }
        Command::Lost(Lost { json }) => lost(json),
    }
}

/// Gives files, and those below directories, the labels of file_contexts; returns whether all have them.
pub(crate) fn restore(paths: Vec<PathBuf>) -> anyhow::Result<bool> {
    let which = Which { paths, recursive: true, json: false };
    Ok(run(Command::Restore(Restore { force: false, dry_run: false, which }))? == ExitCode::SUCCESS)
}

/// Lists unlabelled files; exit status 1 if there are some.
fn lost(json: bool) -> anyhow::Result<ExitCode> {
    let files = lost::list(&Pins::default())?;
    if json {
        output::json(&files)?;
    } else {
        for file in &files {
            let place = match &file.path {
                Some(path) => people(path),
                None => format!("inode {} of device {}:{}", file.inode, file.device >> 20, file.device & 0xf_ffff),
            };
            let attribute = file.attribute.as_deref().unwrap_or("not written down");
            output::line(&format!("{} {place}", for_people(attribute)))?;
        }
        if !files.is_empty() {
            eprintln!(
                "tollgate: these are denied to confined domains: give them labels with `tollgate label restore -R PATH` or \
                 `tollgate label set CONTEXT PATH`"
            );
        }
    }
    Ok(if files.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The previous label, if it was changed, and the present label.
type Change = Option<(Option<String>, String)>;

/// Prints each change at once, because a later failure undoes none of them. JSON is one list, printed at the end.
struct Told {
    json: bool,
    list: Vec<Labelled>,
}

impl Told {
    fn add(&mut self, labelled: Labelled) -> anyhow::Result<()> {
        if self.json {
            self.list.push(labelled);
            return Ok(());
        }
        let Labelled { path, before, label } = labelled;
        let before = before.map(|before| format!("{before} -> ")).unwrap_or_default();
        output::line(&format!("{before}{label} {}", people(&path)))
    }

    fn end(self) -> anyhow::Result<()> {
        if self.json { output::json(&self.list) } else { Ok(()) }
    }
}

/// Does something for each object. A refusal is reported, and makes the exit status 2.
fn each(
    which: &Which,
    mut act: impl FnMut(&mut Client, BorrowedFd<'_>) -> Result<Change, ClientError>,
) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect()?;
    let (mut told, mut failed) = (Told { json: which.json, list: Vec::new() }, false);
    let walked = which.paths.iter().try_for_each(|root| {
        let mut refused = false;
        let mut visit = |path: &Path, object: BorrowedFd<'_>| {
            match act(&mut client, object) {
                Ok(None) => {}
                Ok(Some((before, label))) => told.add(Labelled { path: path.to_owned(), before, label })?,
                Err(ClientError::Refused(cause)) => {
                    refused = true;
                    eprintln!("tollgate: {}: {cause}", people(path));
                }
                Err(cause) => return Err(Ended::from(cause)),
            }
            Ok(())
        };
        let mut skipped = false;
        let mut skip = |path: &Path, cause: std::io::Error| {
            skipped = true;
            eprintln!("tollgate: {}: {cause}", people(path));
        };
        let walked = if which.recursive {
            tree::walk(root, &mut visit, &mut skip)
        } else {
            tree::open(root).map_err(Ended::from).and_then(|object| visit(root, object.as_fd()))
        };
        if let Err(Ended::Io(cause)) = walked {
            skip(root, cause);
            failed = true;
            return Ok(());
        }
        failed |= refused | skipped;
        walked
    });
    told.end()?;
    walked?;
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn people(path: &Path) -> String {
    for_people(path.as_os_str().as_encoded_bytes())
}
