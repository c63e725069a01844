//! What the daemon reports of labels in packets.

use tollgate_abi::enforcer::SECINITSID_UNLABELED;
use tollgate_client::{
    network::{Doi, Report, Seal, Zone},
    protocol::Refusal,
};

use super::{Enforced, refused};
use crate::{
    datapath::{
        Networks,
        config::{self, Unlabelled},
        counters,
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
        Ok(Report { packets, contexts, ..report(enforcer.networks(), unlabelled) })
    }
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
        contexts: None,
        packets: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::datapath::{config::Config, keys::Keys};

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
