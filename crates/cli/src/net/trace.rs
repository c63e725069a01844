//! `tollgate net trace`: packets that are denied or dropped, as it happens, and why.

use std::{process::ExitCode, thread, time::Duration};

use clap::Args;
use tollgate_audit::clock::{self, Zone};
use tollgate_client::{Client, network::Traced};

use crate::output;

/// How often the daemon is asked for news.
const INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print what there is, and end; exit status 1 if there is something
    #[arg(long)]
    once: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect()?;
    let mut last = 0;
    loop {
        let packets = client.trace(last)?;
        for packet in &packets {
            let missed = packet.number.saturating_sub(last + 1);
            if missed > 0 && last > 0 && !arguments.json {
                output::write(&format!("{missed} packets more, which came too fast to be kept\n"))?;
            }
            last = packet.number;
            output::write(&line(packet, arguments.json)?)?;
        }
        if arguments.once {
            return Ok(ExitCode::from(u8::from(!packets.is_empty())));
        }
        thread::sleep(INTERVAL);
    }
}

fn line(packet: &Traced, json: bool) -> anyhow::Result<String> {
    if json {
        return Ok(serde_json::to_string(packet)? + "\n");
    }
    let time = clock::text(packet.time, Zone::Local);
    Ok(match packet.fate() {
        None => format!("{time} {}\n", packet.text),
        Some(fate) => format!("{time} dropped: {}: {}\n    {}\n", fate.text, packet.text, fate.remedy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_to_do_about_a_drop() {
        let fate = Some("dropped_forged".to_owned());
        let packet = Traced { number: 1, time: 0, fate, text: "saddr=10.0.0.1".to_owned() };
        let text = line(&packet, false).unwrap();
        assert!(text.contains("dropped: sent with a label that the process has set itself: saddr=10.0.0.1"), "{text}");
        assert!(text.contains("tollgate audit"), "{text}");
    }

    #[test]
    fn prints_a_denial_as_the_audit_log_has_it() {
        let packet = Traced { number: 1, time: 0, fate: None, text: "avc:  denied  { recv } for".to_owned() };
        assert!(line(&packet, false).unwrap().ends_with("avc:  denied  { recv } for\n"));
        assert!(line(&packet, true).unwrap().contains("\"number\":1"));
    }
}
