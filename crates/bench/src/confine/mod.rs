//! Security modules under test: their set-up before anything is measured.

mod apparmor;
mod bpf;
mod landlock;
pub mod latency;
mod lockdown;
mod netlabel;
mod securityfs;
mod selinux;
mod tollgate;
pub mod tomoyo;
mod yama;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Error, counter::Counter, decisions::Counts, oracle::Act};

pub use bpf::REACHED_HOOKS;
pub use netlabel::NetLabel;
pub(crate) use securityfs::active_modules;

/// The set-up before the workloads run. The command line's `lsm=` decides which modules are active at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "module", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Confinement {
    /// Nothing: the module, if any, stays as the kernel booted it.
    None,
    /// BPF programs that do nothing, one per hook.
    BpfEmpty {
        /// The hooks; empty: those that the workloads reach.
        #[serde(default)]
        hooks: Vec<String>,
    },
    /// BPF programs of tunable latency, one per hook: see [`latency`].
    BpfLatency {
        /// The hooks; empty: those that the workloads reach.
        #[serde(default)]
        hooks: Vec<String>,
    },
    /// The same by the module `tollgate_latency` of kernels that a study builds, on all hooks.
    Latency,
    /// SELinux, with or without a policy.
    Selinux {
        /// The binary policy to load; `None`: SELinux stays active without a policy.
        policy: Option<PathBuf>,
        /// Whether denials take effect.
        enforcing: bool,
        /// The context that the measuring process enters; `None`: it stays in the kernel's.
        #[serde(default)]
        context: Option<String>,
        /// Which packets the kernel labels; `None`: none.
        #[serde(default)]
        netlabel: Option<NetLabel>,
    },
    /// AppArmor, with a profile.
    #[serde(rename = "apparmor")]
    AppArmor {
        /// The path of `apparmor_parser`.
        parser: PathBuf,
        /// The source of the profile to load.
        profile: PathBuf,
        /// Whether the measuring process enters the profile.
        confined: bool,
    },
    /// TOMOYO, enforcing what it learnt in one run of the job's workloads.
    TomoyoLearnt,
    /// Landlock, a ruleset that handles every file access right of the running kernel.
    Landlock,
    /// Lockdown in integrity mode.
    Lockdown,
    /// Yama with restricted ptrace.
    Yama,
    /// Tollgate, with a built policy.
    Tollgate {
        /// The built policy.
        policy: PathBuf,
        /// The context that the measuring process enters; `None`: it stays unconfined, as the machine's processes are.
        context: Option<String>,
        /// Whether denials are granted, and audited.
        #[serde(default)]
        permissive: bool,
        /// Domains for which the policy is not checked; empty: the machine's and the kernel's.
        #[serde(default)]
        unconfined: Vec<String>,
        /// The hooks to attach to; empty: those that the policy needs.
        #[serde(default)]
        hooks: Vec<String>,
        /// Whether descriptors are checked at each use.
        #[serde(default)]
        at_use: bool,
        /// Whether the checks of each object manager are counted; each decision takes longer then.
        #[serde(default)]
        counted: bool,
        /// Whether the daemon runs beside the workloads.
        #[serde(default)]
        daemon: bool,
        /// The file that says which networks' packets have labels, until which the daemon runs; `None`: none have.
        #[serde(default)]
        network: Option<PathBuf>,
    },
}

impl Confinement {
    /// The act that this set-up denies, and its errno; `None` for a set-up that denies nothing.
    pub fn oracle(&self) -> Option<(Act, i32)> {
        match self {
            Confinement::Selinux { policy: Some(_), enforcing: true, .. }
            | Confinement::Tollgate { context: Some(_), permissive: false, .. } => Some((Act::HeapExec, libc::EACCES)),
            Confinement::AppArmor { confined: true, .. } | Confinement::Landlock => {
                Some((Act::OpenForbidden, libc::EACCES))
            }
            Confinement::TomoyoLearnt => Some((Act::OpenForbidden, libc::EPERM)),
            Confinement::Lockdown => Some((Act::OpenDevmem, libc::EPERM)),
            Confinement::Yama => Some((Act::PtraceStranger, libc::EPERM)),
            Confinement::None
            | Confinement::BpfEmpty { .. }
            | Confinement::BpfLatency { .. }
            | Confinement::Latency
            | Confinement::Selinux { .. }
            | Confinement::AppArmor { .. }
            | Confinement::Tollgate { .. } => None,
        }
    }
}

/// A set-up in force.
///
/// Dropping it undoes what can be undone: BPF programs are detached, TOMOYO and Yama return to their previous state. A loaded
/// SELinux or AppArmor policy, Tollgate's, a Landlock domain and lockdown stay until the machine or the process ends.
#[derive(Debug)]
pub(crate) struct Confined {
    /// What was verified, in one line.
    pub(crate) verified: String,
    /// Values that must live as long as the set-up.
    kept: Kept,
    /// The counts of decisions, if they are counted.
    pub(crate) decisions: Option<Counts>,
}

#[derive(Debug)]
enum Kept {
    Nothing,
    Programs { _pinned: bpf::Pinned },
    Latency(latency::Latency, latency::Calibration),
    Tomoyo(tomoyo::Learning),
    Yama { _scope: yama::Restricted },
    Daemon(tollgate::Daemon),
}

impl Confined {
    fn standing(verified: String) -> Confined {
        Confined { verified, kept: Kept::Nothing, decisions: None }
    }

    /// The means to set delays, and their cost, if the set-up has any.
    pub(crate) fn latency(&self) -> Option<(&latency::Latency, &latency::Calibration)> {
        match &self.kept {
            Kept::Latency(latency, calibration) => Some((latency, calibration)),
            _ => None,
        }
    }

    /// Whether the workloads must be run once, for the module to learn them, before [`Confined::enforce_learnt`].
    pub(crate) fn learns(&self) -> bool {
        matches!(self.kept, Kept::Tomoyo(_))
    }

    /// Ends what was needed until labels flow; does nothing if there is nothing of that kind.
    pub(crate) fn end_daemon(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.kept, Kept::Nothing) {
            Kept::Daemon(daemon) => daemon.end(),
            kept => {
                self.kept = kept;
                Ok(())
            }
        }
    }

    /// Ends the learning and enforces what was learnt; does nothing if the module does not [learn](Confined::learns).
    pub(crate) fn enforce_learnt(&mut self) -> Result<(), Error> {
        if let Kept::Tomoyo(learning) = &mut self.kept {
            self.verified = learning.enforce()?;
        }
        Ok(())
    }
}

/// Sets the module up.
///
/// `contexts` are those that workloads [give to sockets](label_new_sockets), `work` is the directory of the workloads, `counter`
/// the unit of the calibration. Landlock, AppArmor and Tollgate confine
/// the calling thread and the processes that it starts afterwards; the others confine the whole machine.
pub(crate) fn confine(
    confinement: &Confinement,
    contexts: &[String],
    work: &Path,
    counter: Counter,
) -> Result<Confined, Error> {
    match confinement {
        Confinement::None => Ok(Confined::standing("nothing loaded".to_owned())),
        Confinement::BpfEmpty { hooks } => {
            let (verified, pinned) = bpf::attach(bpf::EMPTY, hooks)?;
            Ok(Confined { kept: Kept::Programs { _pinned: pinned }, ..Confined::standing(verified) })
        }
        Confinement::BpfLatency { hooks } => {
            let detached = latency::cost(counter);
            let (verified, latency) = latency::Latency::attach(hooks)?;
            let calibration = latency.calibrate(counter, detached)?;
            Ok(Confined { kept: Kept::Latency(latency, calibration), ..Confined::standing(verified) })
        }
        Confinement::Latency => {
            let (verified, latency) = latency::Latency::module()?;
            let calibration = latency.calibrate(counter, latency::cost(counter))?;
            Ok(Confined { kept: Kept::Latency(latency, calibration), ..Confined::standing(verified) })
        }
        Confinement::Selinux { policy, enforcing, context, netlabel } => {
            let verified = selinux::load(policy.as_deref(), *enforcing)?;
            let labels = netlabel.as_ref().map(NetLabel::configure).transpose()?;
            let entered = context.as_deref().map(selinux::enter).transpose()?;
            let parts = [Some(verified), labels, entered];
            Ok(Confined::standing(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
        }
        Confinement::AppArmor { parser, profile, confined } => {
            apparmor::load(parser, profile, *confined).map(Confined::standing)
        }
        Confinement::TomoyoLearnt => {
            let learning = tomoyo::Learning::begin()?;
            let standing = Confined::standing("tomoyo: learning".to_owned());
            Ok(Confined { kept: Kept::Tomoyo(learning), ..standing })
        }
        Confinement::Landlock => landlock::restrict(work).map(Confined::standing),
        Confinement::Lockdown => lockdown::set_integrity().map(Confined::standing),
        Confinement::Yama => {
            let (verified, scope) = yama::Restricted::set()?;
            Ok(Confined { kept: Kept::Yama { _scope: scope }, ..Confined::standing(verified) })
        }
        Confinement::Tollgate { policy, context, permissive, unconfined, hooks, at_use, counted, daemon, network } => {
            let (context, permissive, at_use, counted) = (context.as_deref(), *permissive, *at_use, *counted);
            let start = tollgate::Start { policy, context, contexts, permissive, unconfined, hooks, at_use, counted };
            if *daemon || network.is_some() {
                let (verified, daemon) = tollgate::begin(start, network.as_deref())?;
                return Ok(Confined { kept: Kept::Daemon(daemon), ..Confined::standing(verified) });
            }
            let (verified, decisions) = tollgate::enforce(start)?;
            Ok(Confined { decisions, ..Confined::standing(verified) })
        }
    }
}

/// The context of sockets that the calling thread makes from now on; `None`: the policy's. Does nothing where no policy is in
/// force.
pub(crate) fn label_new_sockets(context: Option<&str>) -> Result<(), Error> {
    if selinux::is_loaded() {
        selinux::label_new_sockets(context)
    } else if tollgate::is_in_force() {
        tollgate::label_new_sockets(context)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_confinement_by_its_module() {
        let read = |text| serde_json::from_str::<Confinement>(text);
        assert_eq!(read(r#"{"module":"landlock"}"#).unwrap(), Confinement::Landlock);
        assert_eq!(read(r#"{"module":"bpf-empty"}"#).unwrap(), Confinement::BpfEmpty { hooks: vec![] });
        assert_eq!(
            read(r#"{"module":"selinux","policy":"/policy","enforcing":true}"#).unwrap(),
            Confinement::Selinux { policy: Some("/policy".into()), enforcing: true, context: None, netlabel: None }
        );
    }

    #[test]
    fn rejects_an_unknown_module_and_an_unknown_key() {
        let read = |text| serde_json::from_str::<Confinement>(text);
        assert!(read(r#"{"module":"smack"}"#).is_err());
        assert!(read(r#"{"module":"selinux","enforcing":true,"mode":"x"}"#).is_err());
    }

    #[test]
    fn expects_a_denial_only_of_what_enforces() {
        let selinux = |policy: Option<&str>, enforcing| {
            let policy = policy.map(Into::into);
            Confinement::Selinux { policy, enforcing, context: None, netlabel: None }.oracle()
        };
        assert_eq!(selinux(Some("/policy"), true), Some((Act::HeapExec, libc::EACCES)));
        assert_eq!(selinux(Some("/policy"), false), None);
        assert_eq!(selinux(None, false), None);
        assert_eq!(Confinement::None.oracle(), None);
        let tollgate = |text: &str| serde_json::from_str::<Confinement>(text).unwrap().oracle();
        let confined = r#"{"module":"tollgate","policy":"/p","context":"u:r:t"}"#;
        assert_eq!(tollgate(confined), Some((Act::HeapExec, libc::EACCES)));
        assert_eq!(tollgate(r#"{"module":"tollgate","policy":"/p","context":"u:r:t","permissive":true}"#), None);
        assert_eq!(tollgate(r#"{"module":"tollgate","policy":"/p","context":null}"#), None);
    }
}
