//! Published figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A published table, to be shown beside a study's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where it was printed.
    pub source: String,
    /// The kernel of the study beside which it is shown; `None`: beside every kernel.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The baseline's figures by workload, in the clock's unit.
    pub baseline: BTreeMap<String, f64>,
    /// Differences to the baseline in percent, by workload, then configuration.
    pub percent: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Published {
    /// Whether it is shown beside that kernel's figures.
    pub fn is_beside(&self, kernel: &str) -> bool {
        self.kernel.as_deref().is_none_or(|own| own == kernel)
    }

    /// The published figure of the baseline.
    pub fn baseline(&self, kernel: &str, workload: &str) -> Option<f64> {
        self.baseline.get(workload).copied().filter(|_| self.is_beside(kernel))
    }

    /// The published difference of a configuration, in percent.
    pub fn percent(&self, kernel: &str, workload: &str, configuration: &str) -> Option<f64> {
        self.percent.get(workload)?.get(configuration).copied().filter(|_| self.is_beside(kernel))
    }
}
