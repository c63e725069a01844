//! `tollgate policy context`: whether contexts are valid, without using them.

use std::{path::Path, process::ExitCode};

use clap::Args;
use serde::Serialize;
use tollgate_policy::{
    context::{self, ContextError, Kind, Names},
    explain,
    model::Policy,
};

use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first; with --running, the first context
    #[arg(value_name = "POLICY")]
    first: String,
    /// Contexts, such as system_u:object_r:etc_t:s0
    #[arg(value_name = "CONTEXT", required_unless_present = "running")]
    contexts: Vec<String>,
    /// Check contexts against the policy in force
    #[arg(long)]
    running: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result for one context.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    context: &'a str,
    valid: bool,
    /// The context as the policy writes it: without aliases, categories in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical: Option<String>,
    wrong: Vec<Wrong>,
}

/// What is wrong with a context that is not valid.
#[derive(Debug, Serialize)]
struct Wrong {
    /// The wrong part: user, role, type or range; `context`: the parts do not belong together, or there are too many or too
    /// few.
    part: &'static str,
    reason: String,
    /// Valid names of that part that look like the given one.
    nearest: Vec<String>,
    /// The CIL that would make the context valid, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    cil: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { first, contexts, running, json } = arguments;
    let built = if *running { policies::running()?.0 } else { policies::open(Path::new(first))? };
    let names = Names::of(&built.policy);
    let contexts = running.then_some(first).into_iter().chain(contexts);
    let answers: Vec<Answer<'_>> = contexts.map(|context| answer(&built.policy, &names, context)).collect();
    if *json {
        output::json(&answers)?;
    } else {
        answers.iter().try_for_each(print)?;
    }
    Ok(ExitCode::from(u8::from(answers.iter().any(|answer| !answer.valid))))
}

fn answer<'a>(policy: &Policy, names: &Names, text: &'a str) -> Answer<'a> {
    let (canonical, wrong) = match names.context(policy, text) {
        Ok(found) => (Some(context::text(policy, &found)), explain::invalid_context(policy, &found)),
        Err(cause) => {
            return Answer { context: text, valid: false, canonical: None, wrong: vec![unknown(cause)] };
        }
    };
    let wrong = wrong.into_iter();
    let wrong = wrong.map(|one| Wrong { part: "context", reason: one.reason, nearest: Vec::new(), cil: one.cil });
    let wrong: Vec<Wrong> = wrong.collect();
    Answer { context: text, valid: wrong.is_empty(), canonical, wrong }
}

/// What is wrong with a context of which a part cannot be parsed.
fn unknown(cause: ContextError) -> Wrong {
    let reason = cause.to_string();
    let (part, nearest) = match cause {
        ContextError::Unknown { kind, nearest, .. } => (part(kind), nearest),
        ContextError::Attribute { .. } => ("type", Vec::new()),
        ContextError::Range { .. } => ("range", Vec::new()),
        _ => ("context", Vec::new()),
    };
    Wrong { part, reason, nearest, cil: None }
}

fn part(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Role => "role",
        Kind::Type => "type",
        Kind::Sensitivity | Kind::Category => "range",
        _ => "context",
    }
}

fn print(answer: &Answer<'_>) -> anyhow::Result<()> {
    if answer.valid {
        return output::line(answer.canonical.as_deref().unwrap_or(answer.context));
    }
    for Wrong { reason, cil, .. } in &answer.wrong {
        let remedy = cil.as_ref().map(|cil| format!("; {cil} would permit it")).unwrap_or_default();
        output::line(&format!("{}: not valid: {reason}{remedy}", answer.context))?;
    }
    Ok(())
}
