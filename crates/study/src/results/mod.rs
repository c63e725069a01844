//! The results of a study: the schema of `results.json`, which docs/results.md describes.

mod build;
mod controls;
pub(crate) mod oracle;

#[cfg(test)]
pub(crate) mod examples;

use serde::{Deserialize, Serialize};
use tollgate_bench::{counter::Counter, decisions::Decisions, workload::Tasks};

pub use build::{Head, build};
pub use controls::Control;

use crate::{caches::Point, machine, stats::exact::Difference, study::StudyHeader};

/// The version of the results' format that this program writes and reads.
pub const SCHEMA: u32 = 1;

/// The results of a study, complete or so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`] of the program that wrote them.
    pub schema: u32,
    /// The unit of the samples.
    pub clock: Counter,
    /// `emulation`, `kvm` or `host`.
    pub accelerator: String,
    /// Why this accelerator was chosen, for people.
    pub accelerator_reason: String,
    /// When the study was started, in RFC 3339.
    pub started: String,
    /// What results keep of the study.
    pub study: StudyHeader,
    /// The environment in which it ran.
    pub environment: Environment,
    /// One entry per kernel and configuration with at least one boot, in the study's order.
    pub configurations: Vec<ConfigurationResult>,
}

/// Where a study ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The version of `tollgate`.
    pub tollgate: String,
    /// The git revision of the checkout, if it was run from one.
    pub revision: Option<String>,
    /// QEMU's version, as it prints it; absent if QEMU was not used.
    pub qemu: Option<String>,
    /// The host's processor.
    pub cpu: String,
    /// The number of the host's processors that the run may use.
    pub cores: u32,
    /// The host's kernel.
    pub host: String,
    /// The hypervisor that the host runs on, or `none`; absent in results of programs that did not look for one.
    #[serde(default)]
    pub hypervisor: Option<String>,
    /// The measured kernels.
    pub kernels: Vec<KernelImage>,
    /// Packages of measured code and policies, except kernels, as `NAME VERSION`.
    pub packages: Vec<String>,
}

impl Environment {
    /// The host in a few words.
    pub(crate) fn machine(&self) -> String {
        machine::in_words(&self.cpu, self.cores, &self.host, self.hypervisor.as_deref())
    }
}

/// A kernel that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelImage {
    /// The study's name for it.
    pub kernel: String,
    /// The package, or the path of an image.
    pub package: String,
    /// The package's version; empty for an image.
    pub version: String,
}

/// One configuration on one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationResult {
    /// The configuration's name.
    pub name: String,
    /// The kernel, as the study names it.
    pub kernel: String,
    /// `uname -r`; empty if no boot produced a report.
    pub release: String,
    /// The active modules, or the requested list if no boot produced a report.
    pub lsm: String,
    /// What the set-up found: the loaded policy, the number of attached programs.
    pub confinement: String,
    /// The kernel's command line at the first boot.
    pub command_line: String,
    /// Whether the policy was seen to deny.
    pub oracle: Oracle,
    /// Why the oracle is void, and other remarks about the figures.
    pub notes: Vec<String>,
    /// One entry per measured workload.
    pub workloads: Vec<WorkloadResult>,
    /// One entry per workload that was not measured, or not in every boot.
    pub unmeasured: Vec<Unmeasured>,
}

/// Whether a configuration's policy was seen to deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Oracle {
    /// Each act that the policy must deny succeeded under the baseline and failed under the policy with the right errno, in
    /// every boot.
    Held,
    /// It did not hold: the figures do not price the policy.
    Void,
    /// The configuration denies nothing.
    None,
}

/// A workload's figures under one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadResult {
    /// The selection, such as `open+close:d10`.
    pub name: String,
    /// `instructions` or `ns`, per operation.
    pub unit: String,
    /// Whether tasks wait for one another in the workload.
    pub tasks: Tasks,
    /// The smallest sample of all boots.
    #[serde(serialize_with = "crate::number::one")]
    pub min: f64,
    /// The median of all boots' samples.
    #[serde(serialize_with = "crate::number::one")]
    pub median: f64,
    /// The mean of all boots' samples.
    #[serde(serialize_with = "crate::number::one")]
    pub mean: f64,
    /// The standard error of the mean; absent where a boot has a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_error: Option<f64>,
    /// In-run spread: (90th - 10th percentile) / median in percent, median over the boots.
    #[serde(serialize_with = "crate::number::one")]
    pub spread: f64,
    /// How many samples equal the smallest.
    pub at_min: usize,
    /// The figure of tables: the median over boots of one figure per boot, which is the mean if the study uses means, else
    /// the minimum (instructions, one task) or the median.
    #[serde(serialize_with = "crate::number::one")]
    pub figure: f64,
    /// The smallest boot's figure.
    #[serde(serialize_with = "crate::number::one")]
    pub low: f64,
    /// The largest boot's figure.
    #[serde(serialize_with = "crate::number::one")]
    pub high: f64,
    /// The difference to the baseline; absent for the baseline itself, and if there is nothing to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Decisions of object managers in the first boot, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    /// What caches of other sizes would have answered of these decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<Point>,
    /// The figures of each boot.
    pub boots: Vec<BootResult>,
    /// Every sample, boot after boot, in the order taken.
    #[serde(serialize_with = "crate::number::many")]
    pub samples: Vec<f64>,
}

/// A workload's figures in one boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootResult {
    /// The padding's index, or the round.
    pub boot: u32,
    /// The smallest sample.
    #[serde(serialize_with = "crate::number::one")]
    pub min: f64,
    /// The median of the boot's samples.
    #[serde(serialize_with = "crate::number::one")]
    pub median: f64,
    /// The mean of the boot's samples.
    #[serde(serialize_with = "crate::number::one")]
    pub mean: f64,
    /// How many samples were taken.
    pub samples: usize,
}

/// A workload that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmeasured {
    /// The selection, such as `open+close:d10`.
    pub name: String,
    /// Why it was not measured.
    pub reason: String,
}

impl Results {
    /// The kernels of the results, in their order.
    pub fn kernels(&self) -> Vec<&str> {
        let mut kernels: Vec<&str> = Vec::new();
        for configuration in &self.configurations {
            if !kernels.contains(&configuration.kernel.as_str()) {
                kernels.push(&configuration.kernel);
            }
        }
        kernels
    }

    /// The configurations on one kernel, in their order.
    pub fn on<'a>(&'a self, kernel: &'a str) -> impl Iterator<Item = &'a ConfigurationResult> {
        self.configurations.iter().filter(move |c| c.kernel == kernel)
    }

    /// One configuration on one kernel.
    pub fn find(&self, kernel: &str, configuration: &str) -> Option<&ConfigurationResult> {
        self.configurations.iter().find(|c| c.kernel == kernel && c.name == configuration)
    }
}

impl ConfigurationResult {
    /// The figures of a workload.
    pub fn workload(&self, name: &str) -> Option<&WorkloadResult> {
        self.workloads.iter().find(|w| w.name == name)
    }

    /// Whether a workload could not be measured, or not in every boot.
    pub fn failed(&self, name: &str) -> bool {
        self.unmeasured.iter().any(|u| u.name == name)
    }
}
