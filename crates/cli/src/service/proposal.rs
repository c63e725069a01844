//! What a service did while it was permissive: rules, and in words what they allow.

use std::{io::Write, path::Path};

use tollgate_audit::{
    Entry,
    learn::{self, Learnt, abstraction},
    log::Filter,
};
use tollgate_policy::{built::Built, explain::Explainer};
use tollgate_service::words::{Domain, Sentence};

use crate::{denials, output};

/// What was learnt of a domain since then, in milliseconds since 1970; nothing if there is no log yet.
pub(super) fn learnt(built: &Built, log: &Path, domain: &str, since: u64) -> anyhow::Result<Learnt> {
    let unwritten = crate::learn::settle();
    if unwritten > 0 {
        eprintln!("tollgate: {unwritten} records could not be written, so what was denied is not all in the log");
    }
    let filter = Filter { domain: Some(domain.to_owned()), since: Some(since) };
    let mut entries: Vec<Entry> = Vec::new();
    denials::read_log(log, Some(since), |entry| {
        if filter.takes(&entry) {
            entries.push(entry);
        }
    })?;
    Ok(learn::learn(&Explainer::new(&built.policy, &built.lines), entries))
}

/// Replaces rules by calls of the policy's macros that stand for them.
pub(super) fn group(learnt: &mut Learnt, built: &Built) {
    learnt.group(&abstraction::of(&built.lines), &built.policy);
}

/// Reports what no rule can allow, and what is in no log.
pub(super) fn tell_doubts(learnt: &Learnt) {
    learnt.doubts().iter().for_each(|doubt| eprintln!("tollgate: {doubt}"));
    for apart in &learnt.apart {
        eprint!("tollgate: will be denied, because no rule may allow it: {apart}");
    }
}

/// Prints what a domain may do.
pub(super) fn tell(domain: &Domain) -> anyhow::Result<()> {
    let mut text = format!("{}, in words (! think of it):\n", domain.name);
    for sentence in domain.sentences() {
        text.push_str(&format!("  {sentence}\n"));
    }
    output::write(&text)
}

/// Reports ports on which a service listens and to which nobody connected while it learnt.
pub(super) fn tell_unanswered(subject: &str, unanswered: &[String]) {
    if !unanswered.is_empty() {
        eprintln!(
            "tollgate: nobody connected to {subject} while it learnt ({}): enforced, it may not answer there, and those who ask \
             wait in vain; `tollgate service confine {subject} --learn` learns more, while somebody uses it",
            unanswered.join(", ")
        );
    }
}

/// Requests consent on the terminal.
pub(super) fn consent(grave: usize) -> anyhow::Result<bool> {
    let mark = if grave > 0 { format!(" ({grave} marked !)") } else { String::new() };
    output::write(&format!("Enforce this{mark}? [y/N] "))?;
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// How many sentences are marked as wide.
pub(super) fn grave(domain: &Domain) -> usize {
    domain.sentences().iter().filter(|Sentence { grave, .. }| *grave).count()
}
