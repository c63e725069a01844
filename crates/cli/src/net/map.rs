//! `tollgate net map`: which networks' packets have which labels.

use std::{net::IpAddr, process::ExitCode};

use clap::Args;
use serde::Serialize;
use tollgate_client::{
    Client,
    network::{Prefix, Report, Zone},
};

use super::table;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// An address: print the network that it falls in
    #[arg(value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where an address falls, as JSON.
#[derive(Debug, Serialize)]
struct Found<'a> {
    address: IpAddr,
    /// The longest network that contains it; none: packets are left alone.
    network: Option<Prefix>,
    zone: Option<&'a Zone>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let report = Client::connect()?.network()?;
    let Some(address) = arguments.address else {
        if arguments.json {
            output::json(&report.zones)?;
        } else {
            output::write(&text(&report))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let found = report.zone_of(address);
    if arguments.json {
        let (zone, network) = (found.map(|(zone, _)| zone), found.map(|(_, network)| network));
        output::json(&Found { address, network, zone })?;
    } else if let Some((zone, network)) = found {
        output::write(&table(&[head(), row(&report, zone, network)]))?;
    } else {
        output::line(&format!("{address} is in no zone: packets from and to there have no label, and are left alone"))?;
    }
    Ok(ExitCode::from(u8::from(found.is_none())))
}

fn text(report: &Report) -> String {
    if report.zones.is_empty() {
        return format!("no network is labelled: {} has no [[zone]]\n", report.file);
    }
    let networks = report.zones.iter().flat_map(|zone| zone.addresses.iter().map(move |network| (zone, *network)));
    let rows = networks.map(|(zone, network)| row(report, zone, network));
    table(&[head()].into_iter().chain(rows).collect::<Vec<_>>())
}

fn head() -> [String; 5] {
    ["NETWORK", "ZONE", "LABELS", "LEVELS", "WITHOUT LABEL"].map(str::to_owned)
}

fn row(report: &Report, zone: &Zone, network: Prefix) -> [String; 5] {
    let doi = report.dois.iter().find(|doi| Some(doi.number) == zone.doi);
    let labels = doi.map_or_else(|| "none".to_owned(), |doi| format!("doi {}, {}", doi.number, doi.tag));
    let all = if doi.is_some() { "all" } else { "-" };
    let without = zone.unlabelled.as_deref().unwrap_or("dropped");
    [
        network.to_string(),
        zone.name.as_deref().unwrap_or("-").to_owned(),
        labels,
        zone.range.as_deref().unwrap_or(all).to_owned(),
        without.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use tollgate_client::network::{Doi, Tag};

    use super::*;

    #[test]
    fn lists_each_network_with_its_labels() {
        let zone = |name: Option<&str>, addresses: &[&str], doi| Zone {
            name: name.map(str::to_owned),
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            doi,
            unlabelled: doi.is_none().then(|| "u:r:t:s0".to_owned()),
            range: None,
        };
        let report = Report {
            dois: vec![Doi { number: 5, tag: Tag::Ranges, translation: None }],
            zones: vec![zone(Some("cluster"), &["10.0.0.0/8", "fd00::/64"], Some(5)), zone(None, &["0.0.0.0/0"], None)],
            ..Report::default()
        };
        let expected = "NETWORK     ZONE     LABELS         LEVELS  WITHOUT LABEL\n\
                        10.0.0.0/8  cluster  doi 5, ranges  all     dropped\n\
                        fd00::/64   cluster  doi 5, ranges  all     dropped\n\
                        0.0.0.0/0   -        none           -       u:r:t:s0\n";
        assert_eq!(text(&report), expected);
    }

    #[test]
    fn says_that_no_network_is_labelled() {
        let report = Report { file: "/n".to_owned(), ..Report::default() };
        assert_eq!(text(&report), "no network is labelled: /n has no [[zone]]\n");
    }
}
