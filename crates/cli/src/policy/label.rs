//! `tollgate policy transition`, `member` and `change`: labelling decisions.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use tollgate_policy::server::{Ask, SecurityServer};

use super::question::Question;
use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Transition {
    #[command(flatten)]
    question: Question,
    /// The name of the new file, for transitions by name
    #[arg(conflicts_with = "batch")]
    name: Option<String>,
}

/// The result, as JSON has it.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    source: &'a str,
    target: &'a str,
    class: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    context: String,
}

pub(crate) fn transition(arguments: &Transition) -> anyhow::Result<ExitCode> {
    run(Ask::Transition, &arguments.question, arguments.name.as_deref())
}

/// Only [`Ask::Transition`] uses `name`.
pub(crate) fn run(ask: Ask, arguments: &Question, name: Option<&str>) -> anyhow::Result<ExitCode> {
    let built = policies::open_for_questions(&arguments.policy)?;
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
    let [source, target, class] = arguments.parts()?;
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
