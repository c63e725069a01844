//! What one policy grants and another does not, as text.

use tollgate_policy::{
    built::Built,
    diff::{self, Change, Diff, Domains, Side},
    file_contexts,
    vectors::Vectors,
};

/// How many names of a list are printed without --all.
const MAX_SHOWN: usize = 8;

/// What differs between two built policies.
pub(crate) fn between(before: &Built, after: &Built) -> anyhow::Result<Diff> {
    let vectors = [Vectors::of(before.server()?.tables()), Vectors::of(after.server()?.tables())];
    let mut found = diff::diff(
        Side { policy: &before.policy, vectors: &vectors[0] },
        Side { policy: &after.policy, vectors: &vectors[1] },
    );
    found.statements.extend(file_contexts::difference(&before.file_contexts, &after.file_contexts));
    Ok(found)
}

/// The report: changes by domain first, then everything else.
pub(crate) fn text(diff: &Diff, all: bool) -> String {
    if diff.is_empty() {
        return "The policies say the same.\n".to_owned();
    }
    let mut text = String::new();
    for (sign, types) in [('-', &diff.removed_types), ('+', &diff.added_types)] {
        for only in types {
            text.push_str(&format!(
                "{sign} type {} (source of {} rules, target of {})\n",
                only.name, only.as_source, only.as_target
            ));
        }
    }
    for domains in &diff.domains {
        domain(&mut text, domains, all);
    }
    for statements in &diff.statements {
        text.push_str(&format!("{}\n", statements.kind));
        for (sign, list) in [('-', &statements.removed), ('+', &statements.added)] {
            let shown = if all { list.len() } else { MAX_SHOWN };
            for statement in list.iter().take(shown) {
                text.push_str(&format!("  {sign} {statement}\n"));
            }
            if list.len() > shown {
                text.push_str(&format!("  {sign} (and {} more: --all)\n", list.len() - shown));
            }
        }
    }
    if !diff.booleans.is_empty() {
        let names: Vec<&str> = diff.booleans.iter().map(String::as_str).collect();
        text.push_str(&format!("booleans whose rules differ\n  {}\n", listed(&names, all)));
        text.push_str("Conditional rules were compared with the booleans as they are in each policy.\n");
    }
    text
}

fn domain(text: &mut String, domains: &Domains, all: bool) {
    let sources: Vec<&str> = domains.sources.iter().map(String::as_str).collect();
    text.push_str(&format!("{}\n", listed(&sources, all)));
    for change in &domains.changes {
        let Change { kind, class, added, permissions, targets, itself } = change;
        let sign = if *added { '+' } else { '-' };
        let own = if domains.sources.len() == 1 { "itself" } else { "each itself" };
        let targets: Vec<&str> = itself.then_some(own).into_iter().chain(targets.iter().map(String::as_str)).collect();
        let permissions = permissions.join(" ");
        text.push_str(&format!("  {sign} {kind} {class} {{ {permissions} }} on {}\n", listed(&targets, all)));
    }
}

/// Names, separated by commas; of a long list the first ones, and how many more there are.
pub(crate) fn listed(names: &[&str], all: bool) -> String {
    // A list that is only a little longer takes less room than the note about the rest.
    if all || names.len() <= MAX_SHOWN + 2 {
        return names.join(", ");
    }
    format!("{} (and {} more: --all)", names[..MAX_SHOWN].join(", "), names.len() - MAX_SHOWN)
}
