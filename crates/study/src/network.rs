//! Configurations that label packets: their files in the guest, and the labels that receivers must see.

use tollgate_bench::{
    confine::{Confinement, NetLabel},
    labels::Label,
    place::Network,
};
use tollgate_host::Cache;
use tollgate_vm::Image;

use crate::policies::{self, PolicyError};

/// Files in the guest.
const NETLABELCTL: &str = "/policy/netlabelctl";
const KEYS: (&str, &str) = ("/policy/network.keys", include_str!("network/keys"));

/// The default protocol of NetLabel, for packets in all networks or in some.
const ALL: &str = "map add default protocol:cipsov4,1";
const LOOPBACK: [&str; 2] =
    ["map add default address:127.0.0.0/8 protocol:cipsov4,1", "map add default address:0.0.0.0/0 protocol:unlbl"];

/// The policy of the workloads, and what they do it as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// A small one of the network alone.
    Network,
    /// Debian's own with 16 levels, in the kernel's domain.
    Mls,
}

impl Policy {
    /// The files in the guest: as decision tables, and as the kernel's SELinux loads it.
    fn files(self) -> (&'static str, &'static str) {
        match self {
            Self::Network => ("/policy/network", "/policy/network.selinux"),
            Self::Mls => ("/policy/mls", "/policy/mls.selinux"),
        }
    }

    /// The level of the workloads, unless a study says another.
    fn level(self) -> &'static str {
        match self {
            Self::Network => "s3:c0,c1",
            Self::Mls => "s0",
        }
    }

    /// The context of the workloads, but for the level, and what is seen of it when the level alone travels.
    fn contexts(self) -> (&'static str, &'static str) {
        match self {
            Self::Network => ("system_u:system_r:talker", "system_u:object_r:netmsg_t"),
            Self::Mls => ("system_u:system_r:kernel_t", "system_u:object_r:netlabel_peer_t"),
        }
    }

    /// Domains for which the policy is not checked. Nobody is in this one: without a name, the kernel's domain would be.
    fn unconfined(self) -> Vec<String> {
        match self {
            Self::Network => Vec::new(),
            Self::Mls => vec!["getty_t".to_owned()],
        }
    }

    /// What NetLabel is told for levels in packets: their forms, which are tried in this order.
    fn tags(self) -> &'static str {
        match self {
            Self::Network => "cipsov4 add pass doi:1 tags:1",
            Self::Mls => "cipsov4 add pass doi:1 tags:1,2,5",
        }
    }
}

/// How packets are labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labelling {
    /// By nobody; they pass through a tunnel below IP, whose header has the label.
    Tunnel,
    /// Tollgate enforces, no network is labelled.
    Nothing,
    /// Tollgate labels packets beside them, and never changes them.
    Beside,
    /// Tollgate puts levels into them.
    Cipso,
    /// Tollgate puts whole contexts into them.
    Sealed,
    /// SELinux enforces the same policy, no packet is labelled.
    Selinux,
    /// The same, and NetLabel puts levels into packets.
    NetLabel,
    /// The same, but whole contexts, into packets that stay on the machine (CIPSO's local tag).
    NetLabelLocal,
}

impl Labelling {
    /// The set-up for the guest's job; `level` is that of the workloads, if it is not the policy's.
    pub(crate) fn confinement(self, policy: Policy, level: Option<&str>) -> Confinement {
        let context = format!("{}:{}", policy.contexts().0, level.unwrap_or(policy.level()));
        match self {
            Self::Tunnel => Confinement::None,
            Self::Selinux | Self::NetLabel | Self::NetLabelLocal => Confinement::Selinux {
                policy: Some(policy.files().1.into()),
                enforcing: true,
                context: Some(context),
                netlabel: self.netlabel(policy),
            },
            Self::Nothing | Self::Beside | Self::Cipso | Self::Sealed => Confinement::Tollgate {
                policy: policy.files().0.into(),
                context: Some(context),
                permissive: false,
                unconfined: policy.unconfined(),
                hooks: Vec::new(),
                at_use: false,
                counted: false,
                daemon: false,
                network: self.networks(policy).map(|(path, _)| path.into()),
            },
        }
    }

    /// What NetLabel is told.
    fn netlabel(self, policy: Policy) -> Option<NetLabel> {
        let (doi, maps): (_, &[&str]) = match self {
            Self::NetLabel => (policy.tags(), &[ALL]),
            Self::NetLabelLocal => ("cipsov4 add local doi:1", &LOOPBACK),
            _ => return None,
        };
        let commands = [doi, "map del default"].iter().chain(maps).map(|command| (*command).to_owned()).collect();
        Some(NetLabel { program: NETLABELCTL.into(), commands })
    }

    /// The file of labelled networks: its path, and its text.
    fn networks(self, policy: Policy) -> Option<(&'static str, &'static str)> {
        match (self, policy) {
            (Self::Beside, _) => Some(("/policy/beside.toml", include_str!("network/beside.toml"))),
            (Self::Cipso, Policy::Network) => Some(("/policy/cipso.toml", include_str!("network/cipso.toml"))),
            (Self::Cipso, Policy::Mls) => Some(("/policy/ranges.toml", include_str!("network/ranges.toml"))),
            (Self::Sealed, _) => Some(("/policy/sealed.toml", include_str!("network/sealed.toml"))),
            _ => None,
        }
    }

    /// Kernel modules: those of programs on devices, and the tunnel's.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Tunnel => &["vxlan"],
            Self::Beside | Self::Cipso | Self::Sealed => &["sch_ingress", "cls_bpf"],
            Self::Nothing | Self::Selinux | Self::NetLabel | Self::NetLabelLocal => &[],
        }
    }

    /// The label that a receiver must see in a network; `level` is that of the workloads, if it is not the policy's.
    pub(crate) fn label(self, policy: Policy, level: Option<&str>, network: Network) -> Label {
        let (own, packets) = policy.contexts();
        let at = |of: &str| Some(format!("{of}:{}", level.unwrap_or(policy.level())));
        let label = match (self, network) {
            (Self::Tunnel, Network::Veth) => Some("mark 0x123".to_owned()),
            (Self::Beside | Self::Sealed, _) | (Self::Cipso | Self::NetLabelLocal, Network::Loopback) => at(own),
            (Self::Cipso, Network::Veth) | (Self::NetLabel, _) => at(packets),
            (Self::Tunnel, Network::Loopback)
            | (Self::NetLabelLocal, Network::Veth)
            | (Self::Nothing | Self::Selinux, _) => None,
        };
        Label { network, label }
    }

    /// The cache's records of the packages from which the files were built.
    pub(crate) fn packages(self, policy: Policy) -> &'static [&'static str] {
        match (policy, self) {
            (_, Self::Tunnel) => &[],
            (Policy::Network, Self::NetLabel | Self::NetLabelLocal) => &[policies::NETLABEL_RECORD],
            (Policy::Network, _) => &[],
            (Policy::Mls, Self::NetLabel | Self::NetLabelLocal) => &[policies::MLS_RECORD, policies::NETLABEL_RECORD],
            (Policy::Mls, _) => &[policies::MLS_RECORD],
        }
    }

    /// Puts the files that it needs into the guest's image.
    pub(crate) fn provide(self, policy: Policy, cache: &Cache, image: &mut Image) -> Result<(), PolicyError> {
        let (tables, kernels) = policy.files();
        let selinux = matches!(self, Self::Selinux | Self::NetLabel | Self::NetLabelLocal);
        match (policy, self) {
            (_, Self::Tunnel) => {}
            (Policy::Network, _) if selinux => image.content(kernels, 0o644, &policies::network()?.1),
            (Policy::Network, _) => image.content(tables, 0o644, &policies::network()?.0),
            (Policy::Mls, _) => {
                let (built, binary) = policies::mls(cache)?;
                let (from, to) = if selinux { (binary, kernels) } else { (built, tables) };
                image.host_file(&from, to)?;
            }
        }
        if let Some((path, text)) = self.networks(policy) {
            image.content(path, 0o644, text.as_bytes());
        }
        match self {
            Self::Sealed => image.content(KEYS.0, 0o600, KEYS.1.as_bytes()),
            Self::NetLabel | Self::NetLabelLocal => {
                let tool = policies::netlabel(cache)?;
                image.program(&tool.program, NETLABELCTL, &tool.libraries)?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tollgate_policy::built::Built;

    use super::*;

    const LABELLINGS: [Labelling; 8] = [
        Labelling::Tunnel,
        Labelling::Nothing,
        Labelling::Beside,
        Labelling::Cipso,
        Labelling::Sealed,
        Labelling::Selinux,
        Labelling::NetLabel,
        Labelling::NetLabelLocal,
    ];

    #[test]
    fn measures_in_a_context_that_the_policy_has_and_writes_so() {
        let built = Built::from_bytes(&policies::network().unwrap().0).unwrap();
        let mut server = built.server().unwrap();
        let (own, packets) = Policy::Network.contexts();
        for context in [own, packets].map(|context| format!("{context}:{}", Policy::Network.level())) {
            let known = server.context(&context).unwrap();
            assert_eq!(server.text(&known), context);
        }
    }

    #[test]
    fn expects_a_label_wherever_packets_have_one() {
        let labelled =
            |network| LABELLINGS.into_iter().filter(move |own| own.label(Policy::Mls, None, network).label.is_some());
        assert_eq!(labelled(Network::Veth).count(), 5);
        assert_eq!(labelled(Network::Loopback).count(), 5);
    }

    #[test]
    fn expects_the_level_that_a_study_says_in_its_workloads_and_in_packets() {
        let seen = |labelling: Labelling| labelling.label(Policy::Mls, Some("s1:c5"), Network::Loopback).label;
        assert_eq!(seen(Labelling::NetLabel).unwrap(), "system_u:object_r:netlabel_peer_t:s1:c5");
        assert_eq!(seen(Labelling::NetLabelLocal).unwrap(), "system_u:system_r:kernel_t:s1:c5");
        let Confinement::Selinux { context, .. } = Labelling::Selinux.confinement(Policy::Mls, Some("s1:c5")) else {
            panic!()
        };
        assert_eq!(context.unwrap(), "system_u:system_r:kernel_t:s1:c5");
    }
}
