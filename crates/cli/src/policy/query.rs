//! `tollgate policy query`: access vectors.

use std::{path::Path, process::ExitCode};

use anyhow::bail;
use serde::Serialize;
use tollgate_policy::server::SecurityServer;

use super::question::Question;
use crate::{output, policies};

/// The result, as JSON has it.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    source: &'a str,
    target: &'a str,
    class: &'a str,
    allowed: Vec<&'a str>,
    auditallow: Vec<&'a str>,
    dontaudit: Vec<&'a str>,
    /// Whether the source is permissive: what is not allowed is granted and audited.
    permissive: bool,
    /// Whether rules of extended permissions (ioctl commands) apply too.
    extended: bool,
}

pub(crate) fn run(arguments: &Question) -> anyhow::Result<ExitCode> {
    let built = policies::open_for_questions(&arguments.policy)?;
    let mut server = built.server()?;
    if let Some(file) = &arguments.batch {
        return batch(&mut server, file);
    }
    let [source, target, class] = arguments.parts()?;
    let answer = ask(&mut server, source, target, class)?;
    if arguments.json {
        output::json(&answer)?
    } else {
        print(&answer)?
    }
    Ok(ExitCode::SUCCESS)
}

fn ask<'a>(
    server: &mut SecurityServer<'a>,
    source: &'a str,
    target: &'a str,
    class: &'a str,
) -> anyhow::Result<Answer<'a>> {
    let (s, t, c) = (server.context(source)?, server.context(target)?, server.class(class)?);
    let decision = server.access(s, t, c);
    Ok(Answer {
        source,
        target,
        class,
        allowed: server.permissions(c, decision.allowed),
        auditallow: server.permissions(c, decision.auditallow),
        dontaudit: server.permissions(c, !decision.auditdeny),
        permissive: decision.permissive != 0,
        extended: decision.extended | decision.extended_self != 0,
    })
}

fn print(answer: &Answer<'_>) -> anyhow::Result<()> {
    let list = |names: &[&str]| if names.is_empty() { "-".to_owned() } else { names.join(" ") };
    output::line(&format!("allowed     {}", list(&answer.allowed)))?;
    if !answer.auditallow.is_empty() {
        output::line(&format!("auditallow  {}", list(&answer.auditallow)))?;
    }
    if !answer.dontaudit.is_empty() {
        output::line(&format!("dontaudit   {}", list(&answer.dontaudit)))?;
    }
    if answer.permissive {
        output::line("permissive  the source is: what is not allowed is granted all the same, and audited")?;
    }
    if answer.extended {
        output::line(
            "extended    only some ioctl commands are allowed: `tollgate policy explain ... ioctl` lists them",
        )?;
    }
    Ok(())
}

fn batch(server: &mut SecurityServer<'_>, file: &Path) -> anyhow::Result<ExitCode> {
    super::batch(file, |fields| {
        let [source, target, class] = fields else { bail!("expected SCON<TAB>TCON<TAB>CLASS") };
        server.make_room();
        let (s, t, c) = (server.context(source)?, server.context(target)?, server.class(class)?);
        let allowed = server.permissions(c, server.access(s, t, c).allowed);
        Ok(if allowed.is_empty() { "-".to_owned() } else { allowed.join(",") })
    })
}
