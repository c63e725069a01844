//! `tollgate shadow`: a policy on trial is evaluated beside the one in force, and decides nothing.

use std::{os::fd::AsFd, path::PathBuf, process::ExitCode};

use clap::Subcommand;
use tollgate_audit::untrusted::for_people;
use tollgate_client::{
    Client,
    shadow::{Difference, Report},
};

use super::ago::ago;
use crate::{output, policies};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try a policy from now on; it replaces another one on trial
    Start {
        /// A built policy; or CIL, a module package or a binary policy, which is built first
        policy: PathBuf,
    },
    /// Print what it would have decided differently; exit status 1 if there are differences, or if it did not decide
    /// everything
    Report {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End the trial
    Stop,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect()?;
    match command {
        Command::Start { policy } => {
            let file = policies::file_of(&policies::open_to_enforce(policy)?, policy)?;
            for context in client.start_shadow(file.as_fd())? {
                eprintln!(
                    "tollgate: {context} is no context of that policy: objects with it count as unlabelled there"
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Report { json } => {
            let Some(report) = client.shadow()? else {
                anyhow::bail!("no policy is on trial: `tollgate shadow start POLICY`");
            };
            if *json {
                output::json(&report)?
            } else {
                output::write(&table(&report))?
            }
            Ok(ExitCode::from(u8::from(!report.differences.is_empty() || report.not_asked > 0)))
        }
        Command::Stop => client.stop_shadow().map(|()| ExitCode::SUCCESS).map_err(Into::into),
    }
}

fn table(report: &Report) -> String {
    let candidate = &report.candidate;
    let mut text = format!("{}, on trial for {}\n", candidate.policy, ago(candidate.since));
    for difference in &report.differences {
        for (verb, permissions) in [("deny", &difference.denied), ("grant", &difference.granted)] {
            if !permissions.is_empty() {
                text.push_str(&line(verb, permissions, difference));
            }
        }
    }
    let count = report.differences.len();
    text.push_str(&match (count, report.not_asked) {
        (0, 0) => "it would have decided everything alike\n".to_owned(),
        (0, _) => "it would have decided alike in all compared decisions\n".to_owned(),
        (1, _) => "it would have decided otherwise about one pair of contexts\n".to_owned(),
        _ => format!("it would have decided otherwise about {count} pairs of contexts\n"),
    });
    if report.omitted > 0 {
        text.push_str(&format!("{} others came up less often\n", report.omitted));
    }
    if report.not_asked > 0 {
        text.push_str(&format!("{} decisions were not compared: {NOT_COMPARED}\n", report.not_asked));
    }
    text
}

/// Why some decisions were not compared, and what helps.
const NOT_COMPARED: &str = "a context had just come into use, or there was no room for another difference. \
    What the candidate would have decided there is unknown; start again with `tollgate shadow start POLICY`";

fn line(verb: &str, permissions: &[String], difference: &Difference) -> String {
    let Difference { source, target, class, count, since, process, command, .. } = difference;
    let (permissions, ago, command) = (permissions.join(" "), ago(*since), for_people(command));
    format!(
        "  would {verb} {source} {target} {class} {{ {permissions} }}  {count} times, first {ago} ago, {command}[{process}]\n"
    )
}

#[cfg(test)]
mod tests {
    use tollgate_client::shadow::Candidate;

    use super::*;

    #[test]
    fn lists_what_would_be_denied_and_what_would_be_granted() {
        let difference = Difference {
            source: "a:b:c_t".into(),
            target: "a:b:d_t".into(),
            class: "file".into(),
            denied: vec!["read".into(), "open".into()],
            granted: vec!["write".into()],
            count: 3,
            since: 0,
            process: 7,
            command: "cat".into(),
        };
        let candidate = Candidate { policy: "/p".into(), since: 0 };
        let report = Report { candidate, differences: vec![difference], omitted: 0, not_asked: 2 };
        let text = table(&report);
        let unasked = table(&Report { differences: Vec::new(), ..report.clone() });
        assert!(!unasked.contains("everything") && unasked.contains("2 decisions were not compared: "), "{unasked}");
        assert!(text.contains("would deny a:b:c_t a:b:d_t file { read open }  3 times, first "), "{text}");
        assert!(text.contains("would grant a:b:c_t a:b:d_t file { write }  "), "{text}");
        assert!(text.contains("cat[7]") && text.contains("2 decisions were not compared"), "{text}");
        let none = table(&Report { differences: Vec::new(), not_asked: 0, ..report });
        assert!(none.ends_with("it would have decided everything alike\n"), "{none}");
    }
}
