//! `tollgate net doi`: how packets write levels.

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;
use serde::Serialize;
use tollgate_client::{
    Client,
    network::{Doi, Report, Seal, Tag},
};

use super::{status::sealed, table};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The domains and the keys, as JSON.
#[derive(Debug, Serialize)]
struct Domains<'a> {
    dois: &'a [Doi],
    seal: Option<&'a Seal>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let report = Client::connect()?.network()?;
    if arguments.json {
        output::json(&Domains { dois: &report.dois, seal: report.seal.as_ref() })?;
    } else {
        output::write(&text(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(report: &Report) -> String {
    if report.dois.is_empty() {
        return format!("there is no domain: {} has no [[doi]]\n", report.file);
    }
    let head = ["DOI", "TAG", "IPV4", "IPV6", "ZONES", "NUMBERS"].map(str::to_owned);
    let rows = report.dois.iter().map(|doi| row(report, doi));
    let mut text = table(&[head].into_iter().chain(rows).collect::<Vec<_>>());
    if let Some(seal) = &report.seal {
        text.push_str(&format!("labels are sealed {}\n", sealed(seal)));
    }
    text
}

fn row(report: &Report, doi: &Doi) -> [String; 6] {
    let zones = report.zones.iter().filter(|zone| zone.doi == Some(doi.number)).count();
    let ipv4 = format!("CIPSO tag {}", doi.tag.number());
    let ipv6 = if doi.tag == Tag::Sealed { "sealed" } else { "CALIPSO" };
    [doi.number.to_string(), doi.tag.to_string(), ipv4, ipv6.to_owned(), zones.to_string(), numbers(doi)]
}

fn numbers(doi: &Doi) -> String {
    let list = |numbers: &BTreeMap<String, u16>| {
        numbers.iter().map(|(name, number)| format!("{name}={number}")).collect::<Vec<_>>()
    };
    match &doi.translation {
        _ if doi.tag == Tag::Sealed => "whole contexts".to_owned(),
        None => "as in the policy".to_owned(),
        Some(translation) => [list(&translation.levels), list(&translation.categories)].concat().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_client::network::Translation;

    use super::*;

    #[test]
    fn lists_domains_with_their_numbers() {
        let numbers = |name: &str, number| BTreeMap::from([(name.to_owned(), number)]);
        let translation = Translation { levels: numbers("s3", 5), categories: numbers("c0", 1) };
        let report = Report {
            dois: vec![
                Doi { number: 1, tag: Tag::Bitmap, translation: Some(translation) },
                Doi { number: 2, tag: Tag::Sealed, translation: None },
                Doi { number: 3, tag: Tag::Ranges, translation: None },
            ],
            seal: Some(Seal { node: 7, keys: vec![4], tolerance: 2 }),
            ..Report::default()
        };
        let expected = "DOI  TAG     IPV4           IPV6     ZONES  NUMBERS\n\
                        1    bitmap  CIPSO tag 1    CALIPSO  0      s3=5 c0=1\n\
                        2    sealed  CIPSO tag 129  sealed   0      whole contexts\n\
                        3    ranges  CIPSO tag 5    CALIPSO  0      as in the policy\n\
                        labels are sealed as node 7 by key 4; clocks may differ by 2 windows of 8 s\n";
        assert_eq!(text(&report), expected);
    }
}
