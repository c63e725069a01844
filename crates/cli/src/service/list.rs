//! `tollgate service list`: what should be confined, and what is.

use std::process::ExitCode;

use clap::Args;
use tollgate_client::{
    Client,
    services::{Service, Verdict},
};

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// List only services that are not confined and should be
    #[arg(long)]
    lacking: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut services = Client::connect()?.services()?;
    services.retain(|service| !arguments.lacking || service.verdict != Verdict::Confined);
    if arguments.json {
        output::json(&services)?;
    } else {
        output::write(&text(&services))?;
    }
    let lacks = services.iter().any(|service| service.verdict == Verdict::NotConfined);
    Ok(ExitCode::from(u8::from(lacks)))
}

fn text(services: &[Service]) -> String {
    let mut text = format!("{:<28} {:<13} {:<20} {:<20} {}\n", "SERVICE", "VERDICT", "SHOULD BE", "IS", "LISTENS");
    for Service { name, expected, domains, listening, verdict, why } in services {
        let is: Vec<String> = domains
            .iter()
            .map(|(domain, count)| if *count == 1 { domain.clone() } else { format!("{domain} ({count})") })
            .collect();
        let is = if is.is_empty() { "not running".to_owned() } else { is.join(", ") };
        let should = expected.as_deref().unwrap_or("-");
        let listens: Vec<&str> = listening.iter().map(String::as_str).collect();
        let line = format!("{name:<28} {verdict:<13} {should:<20} {is:<20} {}", listens.join(", "));
        text.push_str(line.trim_end());
        text.push('\n');
        text.extend(why.iter().map(|why| format!("    {why}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn shows_what_is_and_what_should_be() {
        let service = Service {
            name: "web.service".to_owned(),
            expected: Some("web_t".to_owned()),
            domains: BTreeMap::from([("unconfined_t".to_owned(), 1), ("web_t".to_owned(), 2)]),
            listening: BTreeSet::from(["tcp 80".to_owned(), "tcp 443".to_owned()]),
            verdict: Verdict::NotConfined,
            why: vec!["restart it".to_owned()],
        };
        let text = text(&[service]);
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words.join(" "), "web.service NOT CONFINED web_t unconfined_t, web_t (2) tcp 443, tcp 80");
        assert!(text.ends_with("\n    restart it\n"));
    }
}
