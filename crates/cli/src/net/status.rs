//! `tollgate net status`: whether packets have labels, and what became of packets.

use std::process::ExitCode;

use clap::Args;
use tollgate_client::{
    Client,
    network::{FATES, Fate, Report, Seal},
};

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let report = Client::connect()?.network()?;
    if arguments.json {
        output::json(&report)?;
    } else {
        output::write(&text(&report))?;
    }
    Ok(ExitCode::from(u8::from(report.zones.is_empty())))
}

fn text(report: &Report) -> String {
    let labels = match report.zones.len() {
        0 => format!("none: {} has no [[zone]]", report.file),
        1 => "in packets from and to one zone: `tollgate net map`".to_owned(),
        count => format!("in packets from and to {count} zones: `tollgate net map`"),
    };
    let seal = report.seal.as_ref().map_or_else(|| "by no key".to_owned(), sealed);
    let mut text = format!("labels       {labels}\nfile         {}\nsealed       {seal}\n", report.file);
    let dropped = |fate: &&Fate| !fate.remedy.is_empty();
    for fate in FATES.iter().filter(|fate| !dropped(fate)) {
        text.push_str(&format!("{:>11}  {}\n", report.count(fate), fate.text));
    }
    let all: u64 = FATES.iter().filter(dropped).map(|fate| report.count(fate)).sum();
    text.push_str(&format!("{all:>11}  dropped\n"));
    for fate in FATES.iter().filter(dropped).filter(|fate| report.count(fate) > 0) {
        text.push_str(&format!("{:>13}  {}\n               {}\n", report.count(fate), fate.text, fate.remedy));
    }
    text
}

/// How this machine seals labels.
pub(super) fn sealed(seal: &Seal) -> String {
    let Seal { node, keys, tolerance } = seal;
    let keys = match keys[..] {
        [] => "no key".to_owned(),
        [key] => format!("key {key}"),
        [first, second, ..] => format!("key {first}; key {second} opens, too"),
    };
    let unit = if *tolerance == 1 { "window" } else { "windows" };
    format!("as node {node} by {keys}; clocks may differ by {tolerance} {unit} of 8 s")
}

#[cfg(test)]
mod tests {
    use tollgate_client::network::Zone;

    use super::*;

    #[test]
    fn says_that_no_network_is_labelled() {
        let text = text(&Report { file: "/n".to_owned(), ..Report::default() });
        assert!(text.starts_with("labels       none: /n has no [[zone]]\n"), "{text}");
        assert!(text.ends_with("          0  dropped\n"), "{text}");
    }

    #[test]
    fn shows_what_was_dropped_and_what_helps() {
        let zone = Zone { name: None, addresses: Vec::new(), doi: None, unlabelled: None, range: None };
        let seal = Seal { node: 7, keys: vec![8, 7], tolerance: 1 };
        let packets = [("labelled", 12), ("dropped_window", 3), ("dropped_key", 4)];
        let packets = packets.map(|(name, count)| (name.to_owned(), count)).into();
        let report = Report { zones: vec![zone], seal: Some(seal), packets, ..Report::default() };
        let text = text(&report);
        assert!(
            text.contains("sealed       as node 7 by key 8; key 7 opens, too; clocks may differ by 1 window"),
            "{text}"
        );
        assert!(text.contains("         12  sent with a label\n"), "{text}");
        assert!(text.contains("          7  dropped\n"), "{text}");
        assert!(
            text.contains("            3  came too late, or the clocks differ\n               synchronize"),
            "{text}"
        );
        assert!(!text.contains("forged"), "{text}");
    }
}
