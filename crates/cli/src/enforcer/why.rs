//! `tollgate status --why`: why hooks have programs, or have none.

use std::process::ExitCode;

use tollgate_audit::untrusted::for_people;
use tollgate_client::{
    Client,
    why::{Kind, Why},
};

use crate::output;

/// Shows the reasons of one hook, or the first reason of each. Exit status 1: a program that is needed is not attached.
pub(super) fn show(hook: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let hooks = Client::connect()?.why(hook)?;
    if json {
        output::json(&hooks)?;
    } else {
        output::write(&table(&hooks))?;
    }
    let lacks = |why: &Why| why.reasons.iter().any(|reason| reason.kind == Kind::Detached);
    Ok(if hooks.iter().any(lacks) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// One line per reason. Those after a hook's first have no hook.
fn table(hooks: &[Why]) -> String {
    let width = hooks.iter().map(|why| why.hook.len()).max().unwrap_or(0).max("HOOK".len());
    let line = |hook: &str, attached: &str, why: &str| format!("{hook:<width$} {attached:<8} {why}\n");
    let mut text = line("HOOK", "ATTACHED", "WHY");
    for Why { hook, attached, reasons } in hooks {
        let mut first = (hook.as_str(), if *attached { "yes" } else { "no" });
        for reason in reasons {
            text.push_str(&line(first.0, first.1, &for_people(reason.text.clone())));
            first = ("", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tollgate_client::why::Reason;

    use super::*;

    #[test]
    fn shows_one_line_per_reason() {
        let why = |hook: &str, attached, reasons: &[&str]| Why {
            hook: hook.to_owned(),
            attached,
            reasons: reasons.iter().map(|text| Reason::new(Kind::Rule, *text)).collect(),
        };
        let hooks =
            [why("file_open", true, &["a_t may not open b_t:file", "and more"]), why("syslog", false, &["nothing"])];
        let expected = "HOOK      ATTACHED WHY\n\
                        file_open yes      a_t may not open b_t:file\n          \
                                           and more\n\
                        syslog    no       nothing\n";
        let shown = table(&hooks);
        let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        let wanted: Vec<Vec<&str>> = expected.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, wanted);
        assert_eq!(shown.lines().nth(2).and_then(|line| line.find("and")), shown.find("WHY"), "{shown}");
    }
}
