//! The `[latency]` table: which hooks are delayed, in which runs.

use tollgate_bench::confine::{
    REACHED_HOOKS,
    latency::{Delay, Delays},
};

use super::{OwnConfiguration, Study, StudyHeader};
use crate::{
    configuration,
    design::{Design, Plan},
};

/// An experiment on the hooks of each configuration that takes delays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    /// The hooks; if empty, those of the configuration, or those that the workloads reach and the kernel has.
    pub hooks: Vec<String>,
    /// The delay of the higher level, in units.
    pub units: u64,
    /// Runs with all hooks at half of it.
    pub centres: u32,
    /// Whether each run has its opposite.
    pub folded: bool,
    /// The seed of the order of runs.
    pub seed: u64,
}

impl Latency {
    /// The runs for a configuration with these hooks of its own.
    #[must_use]
    pub fn design(&self, own: &[String]) -> Design {
        let hooks = match (self.hooks.is_empty(), own.is_empty()) {
            (false, _) => self.hooks.clone(),
            (true, false) => own.to_vec(),
            (true, true) => REACHED_HOOKS.iter().map(|hook| (*hook).to_owned()).collect(),
        };
        let Self { units, centres, folded, seed, .. } = *self;
        Plan { hooks, units, centres, folded, seed }.design()
    }
}

impl Study {
    /// Hooks to which a configuration attaches programs, including all delayed ones; if empty, the default set.
    #[must_use]
    pub fn hooks(&self, configuration: &str) -> Vec<String> {
        let mut hooks = self.own_hooks(configuration).to_vec();
        if let Some(latency) = self.latency.as_ref().filter(|_| self.takes_delays(configuration)) {
            hooks.extend(latency.hooks.iter().filter(|hook| !self.own_hooks(configuration).contains(hook)).cloned());
        }
        hooks
    }

    /// The delays under which a configuration is measured, after it was measured without any; empty if it takes no delays.
    #[must_use]
    pub fn delays(&self, configuration: &str) -> Vec<Delays> {
        let Some(latency) = self.latency.as_ref().filter(|_| self.takes_delays(configuration)) else {
            return Vec::new();
        };
        let delay = |(hook, units): (&str, u64)| (hook.to_owned(), Delay { units, nanoseconds: 0 });
        let design = latency.design(self.own_hooks(configuration));
        design.delays().map(|run| run.into_iter().map(delay).collect()).collect()
    }

    fn own_hooks(&self, configuration: &str) -> &[String] {
        self.own(configuration).map_or(&[], |own| &own.hooks)
    }

    fn takes_delays(&self, configuration: &str) -> bool {
        takes_delays(&self.own, configuration)
    }
}

impl StudyHeader {
    /// Whether hooks can be delayed under a configuration, by its base if it is one of the study's own.
    #[must_use]
    pub fn takes_delays(&self, configuration: &str) -> bool {
        let own = Study::parse(&self.name, &self.text).map_or_else(|_| Vec::new(), |study| study.own);
        takes_delays(&own, configuration)
    }
}

/// Whether hooks can be delayed under a configuration.
pub(super) fn takes_delays(own: &[OwnConfiguration], name: &str) -> bool {
    let base = own.iter().find(|own| own.name == name).map_or(name, |own| own.base.as_str());
    configuration::find(base).is_some_and(configuration::Known::takes_delays)
}
