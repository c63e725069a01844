//! The options of enforcement, and which of them a new daemon keeps.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use tollgate_abi::enforcer::{SECINITSID_KERNEL, TG_SID_MACHINE};
use tollgate_client::{after_gap::AfterGap, descriptors::Descriptors};
use tollgate_policy::model::Policy;

use super::{EnforcerError, Folder};
use crate::{
    contexts::{self, Contexts},
    datapath::{Source, running},
    labels::checkpoint::AfterCrash,
    preloaded::Preloaded,
    programs::{self, Loading, Pins, ProgramsError},
    progress::Progress,
    shares::Size,
    status_page,
    units::Places,
};

/// How many denials per second are audited by default.
pub(super) const AUDIT_LIMIT: u32 = 1000;

/// How enforcement is started. A daemon that takes over keeps what is in force unless its options say otherwise.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The directory of the pins.
    pub pins: Pins,
    /// The daemon's directory.
    pub folder: Folder,
    /// Where labels are noted that could not be written to files. It survives a restart of the machine.
    pub notes: NoteFolder,
    /// Permissive mode: what is denied is granted, and audited.
    pub permissive: bool,
    /// The context of tasks without a label; `None`: [`contexts::machine`] chooses it.
    pub machine: Option<String>,
    /// Types of the unconfined domains. Empty: the machine's domain and the kernel's. Tasks without a label are always
    /// unconfined.
    pub unconfined: Vec<String>,
    /// How many denials per second are audited; further ones are only counted. `None`: 1,000.
    pub audit_limit: Option<u32>,
    /// Whether to enforce a policy as far as possible if this kernel cannot enforce all of it.
    pub accept_missing: bool,
    /// What happens to processes that may have left their confinement while hooks did not run.
    pub after_gap: AfterGap,
    /// What happens to files whose label may have been lost in a crash.
    pub after_crash: AfterCrash,
    /// When descriptors are checked; `None`: as chosen when enforcement began, or the default.
    pub descriptors: Option<Descriptors>,
    /// Sizes of limited resources that differ from the default. Running enforcement keeps its own.
    pub sizes: Vec<Size>,
    /// How many threads load programs; `None`: as many as there are processors.
    pub threads: Option<NonZeroUsize>,
    /// Where labelled networks are configured.
    pub network: Source,
    /// Where contexts of units are configured.
    pub units: Places,
    /// The hooks to attach to, for measurements of their cost. Empty: all that the policy needs.
    pub hooks: Vec<String>,
    /// Whether checks are counted and recorded, for measurements; each takes longer then.
    pub count: bool,
    /// Where the progress of a start is reported.
    pub progress: Progress,
}

/// The directory of notes about labels that could not be written to files.
#[derive(Debug, Clone)]
pub struct NoteFolder(PathBuf);

impl Default for NoteFolder {
    fn default() -> Self {
        Self("/var/lib/tollgate".into())
    }
}

impl From<PathBuf> for NoteFolder {
    fn from(folder: PathBuf) -> Self {
        Self(folder)
    }
}

impl AsRef<Path> for NoteFolder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Options {
    /// Removes everything that enforcement has in the kernel.
    pub(super) fn unpin(&self) -> Result<(), ProgramsError> {
        running::end(&self.pins, self.folder.path());
        programs::unpin(&self.pins)?;
        status_page::end(&self.folder.status());
        Ok(())
    }

    /// The context of tasks without a label under a policy.
    pub(super) fn machine(&self, policy: &Policy) -> Result<String, EnforcerError> {
        self.machine.clone().or_else(|| contexts::machine(policy)).ok_or(EnforcerError::NoMachine)
    }

    /// How programs are loaded for this start, for so many bytes of tables.
    pub(super) fn loading(&self, tables: usize) -> Loading {
        Loading { sizes: self.sizes.clone(), tables, threads: self.threads, progress: self.progress.clone() }
    }

    /// The programs that were loaded for this start. There are none if maps must have other sizes than theirs, also for so
    /// many bytes of `tables`.
    pub(super) fn preloaded(&self, tables: usize) -> Result<Preloaded, ProgramsError> {
        if self.sizes.is_empty() && !self.count && programs::are_for(&self.pins, tables) {
            Preloaded::take(&self.pins)
        } else {
            Ok(Preloaded::default())
        }
    }

    /// The unconfined domains under a policy: those that the options name, or the machine's and the kernel's.
    pub(super) fn unconfined(&self, policy: &Policy, contexts: &Contexts) -> Vec<String> {
        if !self.unconfined.is_empty() {
            return self.unconfined.clone();
        }
        let type_ = |sid| contexts.text(sid).split(':').nth(2).map(str::to_owned);
        let mut names: Vec<String> = [TG_SID_MACHINE, SECINITSID_KERNEL].into_iter().filter_map(type_).collect();
        names.retain(|name| policy.types.iter().any(|type_| type_.name == *name));
        names
    }

    /// Keeps the machine's context and the unconfined domains that are in force, if these options name no others.
    /// Returns whether they do. Domains that are in force by default are not kept, because another policy has its own
    /// default.
    pub(super) fn keep(&mut self, policy: &Policy, machine: &str, unconfined: &[String]) -> bool {
        let in_force = Self { machine: Some(machine.to_owned()), ..Self::default() };
        let by_default = in_force.unconfined(policy, &Contexts::initial(policy, machine));
        let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
        let other_machine = self.machine.as_deref().is_some_and(|own| own != machine);
        let other_domains = !self.unconfined.is_empty() && set(&self.unconfined) != set(unconfined);
        if self.machine.is_none() && contexts::machine(policy).as_deref() != Some(machine) {
            self.machine = in_force.machine;
        }
        if self.unconfined.is_empty() && set(unconfined) != set(&by_default) {
            self.unconfined = unconfined.to_vec();
        }
        other_machine || other_domains
    }
}

#[cfg(test)]
mod tests {
    use tollgate_policy::model::{Context, InitialSid, Role, Type, User};

    use super::*;

    const MACHINE: &str = "system_u:system_r:unconfined_t";
    const WEB: &str = "system_u:system_r:web_t";

    fn policy() -> Policy {
        let type_ = |name: &str| Type { name: name.to_owned(), ..Type::default() };
        let role = |name: &str, types: &[u32]| Role {
            name: name.to_owned(),
            types: types.iter().copied().collect(),
            ..Role::default()
        };
        let user = User { name: "system_u".to_owned(), roles: [2].into_iter().collect(), ..User::default() };
        let context = Context { user: 1, role: 2, type_: 1, ..Context::default() };
        let kernel = InitialSid { sid: SECINITSID_KERNEL, name: "kernel".to_owned(), context };
        Policy {
            types: vec![Type::default(), type_("kernel_t"), type_("unconfined_t"), type_("web_t")],
            roles: vec![Role::default(), role("object_r", &[]), role("system_r", &[1, 2, 3])],
            users: vec![User::default(), user],
            initial_sids: vec![kernel],
            ..Policy::default()
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn keeps_nothing_that_the_policy_says_itself() {
        let mut options = Options::default();
        assert_eq!(options.machine(&policy()).unwrap(), MACHINE);
        assert!(!options.keep(&policy(), MACHINE, &names(&["kernel_t", "unconfined_t"])));
        assert_eq!((options.machine, options.unconfined), (None, vec![]));
    }

    #[test]
    fn keeps_what_an_earlier_daemon_was_told() {
        let mut options = Options::default();
        assert!(!options.keep(&policy(), WEB, &names(&["kernel_t", "web_t"])));
        assert_eq!((options.machine.as_deref(), &options.unconfined), (Some(WEB), &vec![]));
        let mut options = Options::default();
        assert!(!options.keep(&policy(), MACHINE, &names(&["web_t"])));
        assert_eq!((options.machine, options.unconfined), (None, names(&["web_t"])));
    }

    #[test]
    fn tells_what_is_named_anew_from_what_is_in_force() {
        let both = names(&["kernel_t", "web_t"]);
        let mut options = Options { unconfined: names(&["web_t", "kernel_t"]), ..Options::default() };
        assert!(!options.keep(&policy(), MACHINE, &both));
        let mut options = Options { unconfined: names(&["web_t"]), ..Options::default() };
        assert!(options.keep(&policy(), MACHINE, &both));
        assert_eq!(options.unconfined, names(&["web_t"]));
        let mut options = Options { machine: Some(WEB.to_owned()), ..Options::default() };
        assert!(options.keep(&policy(), MACHINE, &names(&["kernel_t", "unconfined_t"])));
        assert_eq!((options.machine.as_deref(), options.unconfined), (Some(WEB), vec![]));
    }
}
