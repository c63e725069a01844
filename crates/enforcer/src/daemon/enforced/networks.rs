//! What the daemon reports of labels in packets.

use tollgate_abi::enforcer::{SECINITSID_UNLABELED, TG_FAILED_NAMESPACES};
use tollgate_client::{
    network::{Doi, Flow, Flows, Namespaces, Report, Seal, Zone},
    protocol::{MAX_REPLY_LENGTH, Refusal},
};

use super::{Enforced, known, refused};
use crate::{
    datapath::{
        Networks,
        config::{self, Unlabelled},
        counters,
        running::Datapath,
    },
    enforcer::EnforcerError,
};

impl Enforced {
    /// What `tollgate net` reports.
    pub(super) fn network_report(&self) -> Result<Report, Refusal> {
        let enforcer = self.on()?;
        let packets = counters::packets(&enforcer.options().pins);
        let packets = packets.map_err(|cause| refused(&EnforcerError::from(cause)))?;
        let unlabelled = enforcer.contexts().text(SECINITSID_UNLABELED);
        let contexts = self.asking.report();
        let (devices, devices_left_out) = enforcer.datapath().map(Datapath::unlabelled).unwrap_or_default();
        let namespaces = Namespaces {
            labelled: enforcer.datapath().map_or(0, |datapath| datapath.size().0 as u64),
            most: Datapath::room() as u64,
            denied: enforcer.state().failures()[TG_FAILED_NAMESPACES as usize],
        };
        let configured = report(enforcer.networks(), unlabelled);
        Ok(Report { packets, contexts, namespaces, devices, devices_left_out, ..configured })
    }

    /// What `tollgate net peers` reports.
    pub(super) fn flows_report(&self) -> Result<Flows, Refusal> {
        let enforcer = self.on()?;
        let text = |sid| known(enforcer, sid).unwrap_or_else(|| format!("SID {sid}"));
        let mut flows: Vec<Flow> = enforcer
            .flows()
            .map_err(|cause| refused(&cause))?
            .iter()
            .map(|flow| Flow {
                protocol: protocol(flow.class),
                local: flow.local,
                remote: flow.remote,
                namespace: flow.namespace,
                context: text(flow.own),
                peer: flow.peer.map(text),
            })
            .collect();
        flows.sort();
        Ok(fitting(flows, MAX_FLOWS_LENGTH))
    }
}

/// The maximum length of a report of flows, in bytes: a reply has no room for more than twice as much.
const MAX_FLOWS_LENGTH: usize = MAX_REPLY_LENGTH / 2;
/// What a flow needs in a report beside its contexts, at most.
const FLOW_LENGTH: usize = 256;

/// As many flows as there is room for.
fn fitting(mut flows: Vec<Flow>, room: usize) -> Flows {
    let mut length = 0;
    let fits = flows.iter().take_while(|flow| {
        length += FLOW_LENGTH + flow.context.len() + flow.peer.as_ref().map_or(0, String::len);
        length <= room
    });
    let fits = fits.count();
    let left_out = (flows.len() - fits) as u64;
    flows.truncate(fits);
    Flows { flows, left_out }
}

/// The protocol of a class of sockets: `tcp` for `tcp_socket`.
fn protocol(class: u32) -> String {
    let name = tollgate_abi::class(class).map_or("unknown", |class| class.name);
    name.strip_suffix("_socket").unwrap_or(name).to_owned()
}

/// What is configured. `unlabelled` is the context of the policy's initial SID.
fn report(networks: &Networks, unlabelled: &str) -> Report {
    let Networks { file, config, keys } = networks;
    let zone = |zone: &config::Zone| Zone {
        name: zone.name.clone(),
        addresses: zone.addresses.clone(),
        doi: zone.doi.map(|place| config.dois[place].number),
        unlabelled: match &zone.unlabelled {
            Unlabelled::Initial => Some(unlabelled.to_owned()),
            Unlabelled::Context(context) => Some(context.clone()),
            Unlabelled::Refused => None,
        },
        range: zone.range.clone(),
    };
    let doi = |doi: &config::Doi| Doi { number: doi.number, tag: doi.tag, translation: doi.translation.clone() };
    let seal = |seal: &config::Seal| Seal {
        node: seal.node,
        keys: keys.iter().map(|key| key.number).collect(),
        tolerance: seal.tolerance,
    };
    Report {
        file: file.display().to_string(),
        dois: config.dois.iter().map(doi).collect(),
        zones: config.zones.iter().map(zone).collect(),
        seal: config.seal.as_ref().map(seal),
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::datapath::{config::Config, keys::Keys};

    #[test]
    fn leaves_out_flows_that_find_no_room() {
        let flow = Flow {
            protocol: protocol(u32::MAX),
            local: "10.0.0.1:1".parse().unwrap(),
            remote: "[fd00::1]:2".parse().unwrap(),
            namespace: u64::MAX,
            context: "u:r:t".repeat(10),
            peer: None,
        };
        let Flows { flows, left_out } = fitting(vec![flow; 20], 10 * (FLOW_LENGTH + 50) + 1);
        assert_eq!((flows.len(), left_out), (10, 10));
        let json = serde_json::to_string(&flows).unwrap();
        assert!(json.len() <= 10 * (FLOW_LENGTH + 50), "{}", json.len());
    }

    #[test]
    fn reports_what_is_configured_and_no_secret() {
        let text = "[sealed]\nnode = 7\n[[doi]]\nnumber = 5\ntag = \"sealed\"\n\
                    [[zone]]\naddresses = [\"10.0.0.0/8\"]\ndoi = 5\nunlabelled = \"refuse\"\n\
                    [[zone]]\naddresses = [\"::/0\"]\n[[zone]]\naddresses = [\"11.0.0.1\"]\nunlabelled = \"a:b:c\"\n";
        let secret = "0123456789abcdef0123456789abcdef";
        let networks = Networks {
            file: "/n".into(),
            config: Config::parse(Path::new("/n"), text).unwrap(),
            keys: Keys::of_text(Path::new("/k"), &format!("3 {secret}\n2 {secret}\n")).unwrap(),
        };
        let report = report(&networks, "u:r:unlabeled_t");
        assert_eq!(report.seal, Some(Seal { node: 7, keys: vec![3, 2], tolerance: 1 }));
        let unlabelled: Vec<Option<&str>> = report.zones.iter().map(|zone| zone.unlabelled.as_deref()).collect();
        assert_eq!(unlabelled, [None, Some("u:r:unlabeled_t"), Some("a:b:c")]);
        assert_eq!((report.zones[0].doi, report.zones[1].doi, report.dois[0].number), (Some(5), None, 5));
        let json = serde_json::to_string(&report).unwrap();
        assert!(!json.contains(&secret[..8]), "{json}");
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
