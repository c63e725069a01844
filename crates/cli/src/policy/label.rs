//! `tollgate policy transition`, `member` and `change`: labelling decisions.

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use tollgate_policy::server::{Ask, SecurityServer};

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Label {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// The context of the process
    #[arg(value_name = "SCON", required_unless_present = "batch")]
    source: Option<String>,
    /// The context of the directory, of the program or of the object
    #[arg(value_name = "TCON", required_unless_present = "batch")]
    target: Option<String>,
    /// The class of the object; `process` for exec
    #[arg(required_unless_present = "batch")]
    class: Option<String>,
    /// The name of a new file, which `transition` looks at
    name: Option<String>,
    /// Answer the lines `SCON<TAB>TCON<TAB>CLASS`, for `transition` with `<TAB>NAME` if there is one, of a file (`-`:
    /// standard input), one a line: the context, or `error: ...`, and the exit status is then 2
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "json"])]
    batch: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An answer.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    source: &'a str,
    target: &'a str,
    class: &'a str,
    name: Option<&'a str>,
    context: String,
}

pub(crate) fn run(ask: Ask, arguments: &Label) -> anyhow::Result<ExitCode> {
    if ask != Ask::Transition && arguments.name.is_some() {
        bail!("only `transition` looks at a file's name: leave it out");
    }
    let built = super::open_for_questions(&arguments.policy)?;
    let mut server = built.server()?;
    if let Some(file) = &arguments.batch {
        return super::batch(file, |fields| {
            server.make_room();
            match fields {
                [source, target, class] => label(&mut server, ask, source, target, class, None),
                [source, target, class, name] if ask == Ask::Transition => {
                    label(&mut server, ask, source, target, class, Some(name))
                }
                _ if ask == Ask::Transition => {
                    bail!("expected SCON<TAB>TCON<TAB>CLASS, then <TAB>NAME if there is one")
                }
                _ => bail!("expected SCON<TAB>TCON<TAB>CLASS"),
            }
        });
    }
    let (Some(source), Some(target), Some(class)) = (&arguments.source, &arguments.target, &arguments.class) else {
        bail!("give SCON, TCON and CLASS, or --batch FILE");
    };
    let name = arguments.name.as_deref();
    let context = label(&mut server, ask, source, target, class, name)?;
    if arguments.json {
        output::json(&Answer { source, target, class, name, context })?;
    } else {
        output::line(&context)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn label(
    server: &mut SecurityServer<'_>,
    ask: Ask,
    source: &str,
    target: &str,
    class: &str,
    name: Option<&str>,
) -> anyhow::Result<String> {
    let (s, t, c) = (server.context(source)?, server.context(target)?, server.class(class)?);
    let context = server.label(ask, s, t, c, name)?;
    Ok(server.text(&context))
}
