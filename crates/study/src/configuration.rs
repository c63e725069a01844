//! Configurations: one kernel image, many modules. What each name means, and what it needs in the guest.

use std::path::PathBuf;

use tollgate_bench::{
    confine::{Confinement, tomoyo},
    labels::Label,
    place::Network,
};
use tollgate_host::Cache;
use tollgate_vm::Image;

use crate::{
    network::{Labelling, Policy},
    policies::{self, PolicyError},
};

/// Files in the guest that modules load.
const POLICY: &str = "/policy/selinux";
const PARSER: &str = "/policy/apparmor_parser";
const PROFILE: &str = "/policy/bench.profile";
const DEBIAN: &str = "/policy/debian";
const OWN: &str = "/policy/own";

/// The context of the workloads under Debian's policy: the kernel's own domain. No other domain is unconfined then.
const DEBIAN_CONTEXT: &str = "system_u:system_r:kernel_t:s0";
const DEBIAN_UNCONFINED: &str = "unconfined_t";
/// The domains of `bench.cil`.
const OWN_CONTEXT: &str = "system_u:system_r:bench_t:s0";
const NOTHING_CONTEXT: &str = "system_u:system_r:nothing_t:s0";

/// The profile of `apparmor-confined`.
const BENCH_PROFILE: &str = include_str!("bench.profile");

/// What is done to a module after the guest has booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetUp {
    Nothing,
    BpfEmpty,
    BpfLatency,
    Latency,
    SelinuxNoPolicy,
    SelinuxPermissive,
    SelinuxEnforcing,
    AppArmorConfined,
    TomoyoLearnt,
    Landlock,
    Lockdown,
    Yama,
    Tollgate(Domain),
    Network(Policy, Labelling),
}

/// The domain of the workloads under Tollgate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Domain {
    /// Tollgate's own policy, the workloads unconfined.
    OwnUnconfined,
    /// Tollgate's own policy, in a domain that may do what the workloads do.
    OwnConfined,
    /// Debian's policy, in the domain that SELinux uses.
    Debian,
    /// The same, with descriptors checked at each use, as SELinux does.
    DebianAtUse,
    /// The same, with each decision counted.
    DebianCounted,
    /// Tollgate's own policy, in a permissive domain that is allowed nothing.
    OwnPermissive,
}

/// A configuration that study files can name.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The name in study files.
    pub name: &'static str,
    /// The value of `lsm=` on the kernel's command line.
    pub lsm: &'static str,
    /// A description for people.
    pub about: &'static str,
    set_up: SetUp,
}

/// All known configurations, in the order of the tables; the first is the baseline, the second its A/A twin.
pub const KNOWN: &[Known] = &[
    known("none", "", SetUp::Nothing, "no module but those that are always there (lockdown, capability)"),
    known("capability", "capability", SetUp::Nothing, "the same machine again: the A/A pair"),
    known("bpf", "bpf", SetUp::Nothing, "BPF LSM without a program"),
    known("bpf-empty", "bpf", SetUp::BpfEmpty, "BPF programs that do nothing on the hooks the workloads reach"),
    known("bpf-latency", "bpf", SetUp::BpfLatency, "BPF programs on the same hooks, with delays that the study sets"),
    known(
        "latency",
        "tollgate_latency",
        SetUp::Latency,
        "the same in the kernel, on all hooks (6.1-built alone has it)",
    ),
    known("selinux-nopolicy", "selinux", SetUp::SelinuxNoPolicy, "SELinux before a policy is loaded"),
    known("selinux-permissive", "selinux", SetUp::SelinuxPermissive, "SELinux, Debian's policy, permissive"),
    known("selinux-enforcing", "selinux", SetUp::SelinuxEnforcing, "SELinux, Debian's policy, enforcing"),
    known("apparmor", "apparmor", SetUp::Nothing, "AppArmor without a profile"),
    known("apparmor-confined", "apparmor", SetUp::AppArmorConfined, "AppArmor, the workloads confined by a profile"),
    known("tomoyo", "tomoyo", SetUp::Nothing, "TOMOYO before a policy is loaded"),
    known("tomoyo-learnt", "tomoyo", SetUp::TomoyoLearnt, "TOMOYO enforcing what it learnt from the workloads"),
    known("landlock", "landlock", SetUp::Landlock, "the workloads in a Landlock domain"),
    known("lockdown", "lockdown", SetUp::Lockdown, "lockdown in integrity mode"),
    known("yama", "yama", SetUp::Yama, "Yama with restricted ptrace"),
    known(
        "tollgate-own-unconfined",
        "bpf",
        SetUp::Tollgate(Domain::OwnUnconfined),
        "Tollgate's own policy, the workloads unconfined",
    ),
    known(
        "tollgate-own-confined",
        "bpf",
        SetUp::Tollgate(Domain::OwnConfined),
        "Tollgate's own policy, the workloads confined",
    ),
    known(
        "tollgate-debian-confined",
        "bpf",
        SetUp::Tollgate(Domain::Debian),
        "Tollgate, Debian's policy, the workloads as SELinux's",
    ),
    known(
        "tollgate-debian-at-use",
        "bpf",
        SetUp::Tollgate(Domain::DebianAtUse),
        "the same, descriptors checked at each use",
    ),
    known(
        "tollgate-debian-counted",
        "bpf",
        SetUp::Tollgate(Domain::DebianCounted),
        "the same, decisions counted by object manager",
    ),
    known(
        "tollgate-permissive",
        "bpf",
        SetUp::Tollgate(Domain::OwnPermissive),
        "Tollgate's own policy, permissive, nothing allowed",
    ),
    known(
        "vxlan-gbp",
        "",
        SetUp::Network(Policy::Network, Labelling::Tunnel),
        "no module; the veth pair carries a VXLAN with a label",
    ),
    known(
        "selinux-net",
        "selinux",
        SetUp::Network(Policy::Network, Labelling::Selinux),
        "SELinux, an MLS policy of the network",
    ),
    known(
        "selinux-net-cipso",
        "selinux",
        SetUp::Network(Policy::Network, Labelling::NetLabel),
        "the same, and NetLabel puts levels into packets",
    ),
    known(
        "tollgate-net",
        "bpf",
        SetUp::Network(Policy::Network, Labelling::Nothing),
        "Tollgate, the same policy, no network labelled",
    ),
    known(
        "tollgate-net-beside",
        "bpf",
        SetUp::Network(Policy::Network, Labelling::Beside),
        "the same, labels beside packets, which are not changed",
    ),
    known(
        "tollgate-net-cipso",
        "bpf",
        SetUp::Network(Policy::Network, Labelling::Cipso),
        "the same, levels in packets (CIPSO)",
    ),
    known(
        "tollgate-net-sealed",
        "bpf",
        SetUp::Network(Policy::Network, Labelling::Sealed),
        "the same, sealed contexts in packets",
    ),
    known(
        "selinux-mls",
        "selinux",
        SetUp::Network(Policy::Mls, Labelling::Selinux),
        "SELinux, Debian's MLS policy, enforcing",
    ),
    known(
        "selinux-mls-cipso",
        "selinux",
        SetUp::Network(Policy::Mls, Labelling::NetLabel),
        "the same, and NetLabel puts levels into packets",
    ),
    known(
        "selinux-mls-local",
        "selinux",
        SetUp::Network(Policy::Mls, Labelling::NetLabelLocal),
        "the same, but whole contexts, over the loopback device alone",
    ),
    known("tollgate-mls", "bpf", SetUp::Network(Policy::Mls, Labelling::Nothing), "Tollgate, Debian's MLS policy"),
    known(
        "tollgate-mls-cipso",
        "bpf",
        SetUp::Network(Policy::Mls, Labelling::Cipso),
        "the same, levels in packets (CIPSO)",
    ),
    known(
        "tollgate-mls-sealed",
        "bpf",
        SetUp::Network(Policy::Mls, Labelling::Sealed),
        "the same, sealed contexts in packets",
    ),
];

const fn known(name: &'static str, lsm: &'static str, set_up: SetUp, about: &'static str) -> Known {
    Known { name, lsm, about, set_up }
}

/// Finds a known configuration by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

impl Known {
    /// Whether its hooks can be delayed, as a job's delays say.
    #[must_use]
    pub fn takes_delays(&self) -> bool {
        matches!(self.set_up, SetUp::BpfLatency | SetUp::Latency)
    }

    /// Whether its policy denies something, and must be seen to deny it.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.confinement(&[], None).oracle().is_some()
    }

    /// Words for the kernel's command line that the set-up needs.
    #[must_use]
    pub fn command_line(&self) -> Vec<String> {
        match self.set_up {
            SetUp::TomoyoLearnt => tomoyo::command_line().split(' ').map(Into::into).collect(),
            _ => Vec::new(),
        }
    }

    /// The set-up for the guest's job. `hooks` limits `bpf-empty`, `bpf-latency` and Tollgate's configurations; others have
    /// no hooks. `level` is that of the workloads, where a policy has levels; `None`: the configuration's.
    #[must_use]
    pub fn confinement(&self, hooks: &[String], level: Option<&str>) -> Confinement {
        let selinux = |loaded: bool, enforcing| Confinement::Selinux {
            policy: loaded.then(|| PathBuf::from(POLICY)),
            enforcing,
            context: None,
            netlabel: None,
        };
        match self.set_up {
            SetUp::Nothing => Confinement::None,
            SetUp::BpfEmpty => Confinement::BpfEmpty { hooks: hooks.to_vec() },
            SetUp::BpfLatency => Confinement::BpfLatency { hooks: hooks.to_vec() },
            SetUp::Latency => Confinement::Latency,
            SetUp::SelinuxNoPolicy => selinux(false, false),
            SetUp::SelinuxPermissive => selinux(true, false),
            SetUp::SelinuxEnforcing => selinux(true, true),
            SetUp::AppArmorConfined => {
                Confinement::AppArmor { parser: PARSER.into(), profile: PROFILE.into(), confined: true }
            }
            SetUp::TomoyoLearnt => Confinement::TomoyoLearnt,
            SetUp::Landlock => Confinement::Landlock,
            SetUp::Lockdown => Confinement::Lockdown,
            SetUp::Yama => Confinement::Yama,
            SetUp::Tollgate(domain) => domain.confinement(hooks),
            SetUp::Network(policy, labelling) => labelling.confinement(policy, level),
        }
    }

    /// Whether it says which labels packets have; the baseline must then have none.
    #[must_use]
    pub fn tells_labels(&self) -> bool {
        matches!(self.set_up, SetUp::Network(..))
    }

    /// Whether a study can say at which level the workloads run.
    #[must_use]
    pub fn has_levels(&self) -> bool {
        self.tells_labels() && !self.tunnels()
    }

    /// The label that a receiver must see in a network; `None` where confined processes need not be able to look.
    #[must_use]
    pub fn label(&self, level: Option<&str>, network: Network) -> Option<Label> {
        match self.set_up {
            SetUp::Network(policy, labelling) => Some(labelling.label(policy, level, network)),
            SetUp::Nothing => Some(Label { network, label: None }),
            _ => None,
        }
    }

    /// Kernel modules that it needs.
    #[must_use]
    pub fn modules(&self) -> &'static [&'static str] {
        match self.set_up {
            SetUp::Network(_, labelling) => labelling.modules(),
            _ => &[],
        }
    }

    /// Whether packets between network namespaces go through a tunnel.
    #[must_use]
    pub fn tunnels(&self) -> bool {
        matches!(self.set_up, SetUp::Network(_, Labelling::Tunnel))
    }

    /// Whether only kernels that Tollgate builds have its module.
    #[must_use]
    pub fn needs_built_kernel(&self) -> bool {
        self.set_up == SetUp::Latency
    }

    /// The cache's records of the packages from which the set-up's files were built.
    #[must_use]
    pub fn packages(&self) -> &'static [&'static str] {
        match self.set_up {
            SetUp::SelinuxPermissive
            | SetUp::SelinuxEnforcing
            | SetUp::Tollgate(Domain::Debian | Domain::DebianAtUse | Domain::DebianCounted) => {
                &[policies::SELINUX_RECORD]
            }
            SetUp::AppArmorConfined => &[policies::APPARMOR_RECORD],
            SetUp::Network(policy, labelling) => labelling.packages(policy),
            _ => &[],
        }
    }

    /// Puts the files that the set-up loads into the guest's image, and builds them first if the cache does not have them.
    pub fn provide(&self, cache: &Cache, image: &mut Image) -> Result<(), PolicyError> {
        match self.set_up {
            SetUp::SelinuxPermissive | SetUp::SelinuxEnforcing => {
                image.host_file(&policies::selinux(cache)?, POLICY)?;
            }
            SetUp::AppArmorConfined => {
                let parser = policies::apparmor_parser(cache)?;
                image.program(&parser.program, PARSER, &parser.libraries)?;
                image.content(PROFILE, 0o644, BENCH_PROFILE.as_bytes());
            }
            SetUp::Tollgate(Domain::Debian | Domain::DebianAtUse | Domain::DebianCounted) => {
                image.host_file(&policies::debian(cache)?, DEBIAN)?
            }
            SetUp::Tollgate(_) => image.content(OWN, 0o644, &policies::own()?),
            SetUp::Network(policy, labelling) => labelling.provide(policy, cache, image)?,
            _ => {}
        }
        Ok(())
    }
}

impl Domain {
    fn confinement(self, hooks: &[String]) -> Confinement {
        let (policy, context) = match self {
            Self::OwnUnconfined => (OWN, None),
            Self::OwnConfined => (OWN, Some(OWN_CONTEXT)),
            Self::Debian | Self::DebianAtUse | Self::DebianCounted => (DEBIAN, Some(DEBIAN_CONTEXT)),
            Self::OwnPermissive => (OWN, Some(NOTHING_CONTEXT)),
        };
        Confinement::Tollgate {
            policy: policy.into(),
            context: context.map(Into::into),
            permissive: self == Self::OwnPermissive,
            // Without a name here, the kernel's domain would be unconfined.
            unconfined: if policy == DEBIAN { vec![DEBIAN_UNCONFINED.into()] } else { Vec::new() },
            hooks: hooks.to_vec(),
            at_use: self == Self::DebianAtUse,
            counted: self == Self::DebianCounted,
            daemon: false,
            network: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_each_configuration_once_and_starts_with_the_pair() {
        let mut names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        assert_eq!(names[..2], ["none", "capability"]);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KNOWN.len());
    }

    #[test]
    fn denies_something_wherever_a_policy_is_enforced() {
        let denying: Vec<&str> = KNOWN.iter().filter(|known| known.denies()).map(|known| known.name).collect();
        assert_eq!(
            denying,
            [
                "selinux-enforcing",
                "apparmor-confined",
                "tomoyo-learnt",
                "landlock",
                "lockdown",
                "yama",
                "tollgate-own-confined",
                "tollgate-debian-confined",
                "tollgate-debian-at-use",
                "tollgate-debian-counted",
                "selinux-net",
                "selinux-net-cipso",
                "tollgate-net",
                "tollgate-net-beside",
                "tollgate-net-cipso",
                "tollgate-net-sealed",
                "selinux-mls",
                "selinux-mls-cipso",
                "selinux-mls-local",
                "tollgate-mls",
                "tollgate-mls-cipso",
                "tollgate-mls-sealed"
            ]
        );
    }

    #[test]
    fn delays_hooks_by_programs_or_by_the_kernels_own_module() {
        let delaying: Vec<&str> = KNOWN.iter().filter(|known| known.takes_delays()).map(|known| known.name).collect();
        assert_eq!(delaying, ["bpf-latency", "latency"]);
    }

    #[test]
    fn is_listed_in_docs_study_files_md_in_the_same_order() {
        let page = include_str!("../../../docs/study-files.md");
        let (_, section) = page.split_once("\n## Configurations\n").unwrap();
        let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let heads = rows.map_while(|row| row.strip_prefix("| ")?.split_once(" | ")).map(|(names, _)| names);
        let listed: Vec<&str> = heads.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
        assert_eq!(listed, KNOWN.iter().map(|known| known.name).collect::<Vec<_>>());
    }

    #[test]
    fn leaves_the_oracles_file_out_of_the_profile() {
        assert!(!BENCH_PROFILE.lines().any(|line| line.trim().starts_with("/sys") || line.trim().starts_with("/**")));
        assert!(BENCH_PROFILE.matches(" r,\n").count() >= 60);
    }
}
