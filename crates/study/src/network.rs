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
const POLICY: &str = "/policy/network";
const IMAGE: &str = "/policy/network.selinux";
const NETLABELCTL: &str = "/policy/netlabelctl";
const KEYS: (&str, &str) = ("/policy/network.keys", include_str!("network/keys"));

/// The context of the workloads, and what is seen of it when the level alone travels.
const CONTEXT: &str = "system_u:system_r:talker:s3:c0,c1";
const LEVEL: &str = "system_u:object_r:netmsg_t:s3:c0,c1";

/// NetLabel labels packets in all networks with CIPSO's tag 1.
const COMMANDS: [&str; 3] = ["cipsov4 add pass doi:1 tags:1", "map del default", "map add default protocol:cipsov4,1"];

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
}

impl Labelling {
    /// The set-up for the guest's job.
    pub(crate) fn confinement(self) -> Confinement {
        let netlabel = || NetLabel { program: NETLABELCTL.into(), commands: COMMANDS.map(str::to_owned).to_vec() };
        match self {
            Self::Tunnel => Confinement::None,
            Self::Selinux | Self::NetLabel => Confinement::Selinux {
                policy: Some(IMAGE.into()),
                enforcing: true,
                context: Some(CONTEXT.to_owned()),
                netlabel: (self == Self::NetLabel).then(netlabel),
            },
            Self::Nothing | Self::Beside | Self::Cipso | Self::Sealed => Confinement::Tollgate {
                policy: POLICY.into(),
                context: Some(CONTEXT.to_owned()),
                permissive: false,
                unconfined: Vec::new(),
                hooks: Vec::new(),
                at_use: false,
                counted: false,
                daemon: false,
                network: self.networks().map(|(path, _)| path.into()),
            },
        }
    }

    /// The file of labelled networks: its path, and its text.
    fn networks(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Beside => Some(("/policy/beside.toml", include_str!("network/beside.toml"))),
            Self::Cipso => Some(("/policy/cipso.toml", include_str!("network/cipso.toml"))),
            Self::Sealed => Some(("/policy/sealed.toml", include_str!("network/sealed.toml"))),
            _ => None,
        }
    }

    /// Kernel modules: those of programs on devices, and the tunnel's.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Tunnel => &["vxlan"],
            Self::Beside | Self::Cipso | Self::Sealed => &["sch_ingress", "cls_bpf"],
            Self::Nothing | Self::Selinux | Self::NetLabel => &[],
        }
    }

    /// The label that a receiver must see in a network.
    pub(crate) fn label(self, network: Network) -> Label {
        let label = match (self, network) {
            (Self::Tunnel, Network::Veth) => Some("mark 0x123"),
            (Self::Beside | Self::Sealed, _) | (Self::Cipso, Network::Loopback) => Some(CONTEXT),
            (Self::Cipso, Network::Veth) | (Self::NetLabel, _) => Some(LEVEL),
            (Self::Tunnel, Network::Loopback) | (Self::Nothing | Self::Selinux, _) => None,
        };
        Label { network, label: label.map(str::to_owned) }
    }

    /// Puts the files that it needs into the guest's image.
    pub(crate) fn provide(self, cache: &Cache, image: &mut Image) -> Result<(), PolicyError> {
        match self {
            Self::Tunnel => {}
            Self::Selinux | Self::NetLabel => image.content(IMAGE, 0o644, &policies::network()?.1),
            _ => image.content(POLICY, 0o644, &policies::network()?.0),
        }
        if let Some((path, text)) = self.networks() {
            image.content(path, 0o644, text.as_bytes());
        }
        match self {
            Self::Sealed => image.content(KEYS.0, 0o600, KEYS.1.as_bytes()),
            Self::NetLabel => {
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

    const ALL: [Labelling; 7] = [
        Labelling::Tunnel,
        Labelling::Nothing,
        Labelling::Beside,
        Labelling::Cipso,
        Labelling::Sealed,
        Labelling::Selinux,
        Labelling::NetLabel,
    ];

    #[test]
    fn measures_in_a_context_that_the_policy_has_and_writes_so() {
        let built = Built::from_bytes(&policies::network().unwrap().0).unwrap();
        let mut server = built.server().unwrap();
        for context in [CONTEXT, LEVEL] {
            let known = server.context(context).unwrap();
            assert_eq!(server.text(&known), context);
        }
    }

    #[test]
    fn expects_a_label_wherever_packets_have_one() {
        let labelled = |network| ALL.into_iter().filter(move |own| own.label(network).label.is_some());
        assert_eq!(labelled(Network::Veth).count(), 5);
        assert_eq!(labelled(Network::Loopback).count(), 4);
    }
}
