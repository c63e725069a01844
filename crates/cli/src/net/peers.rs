//! `tollgate net peers`: who talks with whom, with which labels.

use std::process::ExitCode;

use clap::Args;
use tollgate_client::{
    Client,
    network::{Flow, Flows},
};

use super::table;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let flows = Client::connect()?.flows()?;
    if arguments.json {
        output::json(&flows)?;
    } else {
        output::write(&text(&flows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(Flows { flows, left_out }: &Flows) -> String {
    if flows.is_empty() {
        return "no socket that has a label is connected, or has received anything\n".to_owned();
    }
    let head = ["PROTOCOL", "LOCAL", "REMOTE", "NAMESPACE", "CONTEXT", "PEER"].map(str::to_owned);
    let mut text = table(&[head].into_iter().chain(flows.iter().map(row)).collect::<Vec<_>>());
    if *left_out > 0 {
        text.push_str(&format!("{left_out} more are left out\n"));
    }
    text
}

fn row(flow: &Flow) -> [String; 6] {
    let peer = flow.peer.as_deref().unwrap_or("not known").to_owned();
    let (local, remote) = (flow.local.to_string(), flow.remote.to_string());
    [flow.protocol.clone(), local, remote, flow.namespace.to_string(), flow.context.clone(), peer]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_flows_in_columns() {
        let flow = |peer: Option<&str>| Flow {
            protocol: "udp".to_owned(),
            local: "10.0.0.1:53".parse().unwrap(),
            remote: "[fd00::2]:9".parse().unwrap(),
            namespace: 4_026_531_840,
            context: "u:r:dns_t:s0".to_owned(),
            peer: peer.map(str::to_owned),
        };
        let flows = Flows { flows: vec![flow(Some("u:r:web_t:s1")), flow(None)], left_out: 2 };
        let expected = "PROTOCOL  LOCAL        REMOTE       NAMESPACE   CONTEXT       PEER\n\
                        udp       10.0.0.1:53  [fd00::2]:9  4026531840  u:r:dns_t:s0  u:r:web_t:s1\n\
                        udp       10.0.0.1:53  [fd00::2]:9  4026531840  u:r:dns_t:s0  not known\n\
                        2 more are left out\n";
        assert_eq!(text(&flows), expected);
        assert!(text(&Flows::default()).starts_with("no socket"));
    }
}
