//! `tollgate net status`: whether packets have labels, and what became of packets.

use std::process::ExitCode;

use clap::Args;
use tollgate_client::{
    Client,
    network::{Contexts, FATES, Fate, Namespaces, Report, Seal, UnlabelledDevice},
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
    text.extend(report.contexts.iter().map(contexts));
    if !report.zones.is_empty() {
        text.push_str(&namespaces(&report.namespaces));
        text.push_str(&devices(report));
    }
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

/// What became of questions to other machines.
fn contexts(contexts: &Contexts) -> String {
    let Contexts { port, closed, asked, learned, unanswered, refused, answered } = contexts;
    if let Some(why) = closed {
        return format!("contexts     are not asked of other machines: UDP port {port}: {why}\n");
    }
    let mut text = format!("contexts     asked on UDP port {port}; {learned} learned of {asked}");
    for (count, what) in [(unanswered, "without an answer"), (refused, "refused")] {
        if *count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    format!("{text}; {answered} told to others\n")
}

fn namespaces(Namespaces { labelled, most, denied }: &Namespaces) -> String {
    let mut text = format!("namespaces   labelled in {labelled} of {most} at most");
    if *denied > 0 {
        text.push_str(&format!("; {denied} sockets were denied in others: limit user.max_net_namespaces (sysctl)"));
    }
    text + "\n"
}

/// The devices whose packets have no labels, with what helps.
fn devices(report: &Report) -> String {
    let place = |UnlabelledDevice { namespace, process, .. }: &UnlabelledDevice| match process {
        0 => format!("network namespace {namespace}"),
        process => format!("network namespace {namespace}, of process {process}"),
    };
    let device = |own: &UnlabelledDevice| {
        let UnlabelledDevice { device, why, remedy, .. } = own;
        format!("unlabelled   {device} ({}): {why}\n               {remedy}\n", place(own))
    };
    let mut text: String = report.devices.iter().map(device).collect();
    if report.devices_left_out > 0 {
        text.push_str(&format!("unlabelled   {} devices more\n", report.devices_left_out));
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
    fn says_what_was_asked_of_other_machines() {
        let asked = Contexts { port: 4748, asked: 3, learned: 2, unanswered: 1, ..Contexts::default() };
        let line = "contexts     asked on UDP port 4748; 2 learned of 3, 1 without an answer; 0 told to others\n";
        assert_eq!(contexts(&asked), line);
        let closed = Contexts { closed: Some("in use".to_owned()), ..asked };
        assert_eq!(contexts(&closed), "contexts     are not asked of other machines: UDP port 4748: in use\n");
    }

    #[test]
    fn names_devices_whose_packets_have_no_labels() {
        let device = UnlabelledDevice {
            device: "gre0".to_owned(),
            namespace: 7,
            process: 12,
            why: "it is refused".to_owned(),
            remedy: "use another".to_owned(),
        };
        let mounted = UnlabelledDevice { process: 0, ..device.clone() };
        let report = Report { devices: vec![device, mounted], devices_left_out: 3, ..Report::default() };
        let expected = "unlabelled   gre0 (network namespace 7, of process 12): it is refused\n               use another\n\
                        unlabelled   gre0 (network namespace 7): it is refused\n               use another\n\
                        unlabelled   3 devices more\n";
        assert_eq!(devices(&report), expected);
        let denied = namespaces(&Namespaces { labelled: 2, most: 1024, denied: 9 });
        assert!(denied.starts_with("namespaces   labelled in 2 of 1024 at most; 9 sockets were denied"), "{denied}");
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
