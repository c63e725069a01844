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
    /// Rows of the printed table, in its order and its units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<PrintedRow>,
}

/// A row of a printed table, and what repeats it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrintedRow {
    /// The row's name, as printed.
    pub test: String,
    /// The unit: `s`, one that ends with `/s`, or `%` for differences that were printed in place of figures.
    pub unit: String,
    /// The figures by configuration.
    pub figures: BTreeMap<String, f64>,
    /// The workloads that repeat it.
    pub workloads: Vec<String>,
    /// What is the same,
    pub same: String,
    /// what is less than in the printed one,
    pub scaled: String,
    /// and what an emulator cannot say.
    pub unsaid: String,
}

impl PrintedRow {
    /// How much longer the same work took than under the baseline, in percent.
    #[must_use]
    pub fn percent(&self, baseline: &str, configuration: &str) -> Option<f64> {
        let of = *self.figures.get(configuration)?;
        if self.unit == "%" {
            return Some(of);
        }
        let ratio = of / self.figures.get(baseline)?;
        // Of a rate, twice as much is half of the time.
        let longer = if self.unit.ends_with("/s") { 1.0 / ratio } else { ratio };
        Some(100.0 * (longer - 1.0))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_by_the_unit_what_took_longer() {
        let row = |unit: &str, none: f64, of: f64| PrintedRow {
            test: "a test".into(),
            unit: unit.into(),
            figures: BTreeMap::from([("none".into(), none), ("yama".into(), of)]),
            workloads: Vec::new(),
            same: String::new(),
            scaled: String::new(),
            unsaid: String::new(),
        };
        let percent = |row: PrintedRow| row.percent("none", "yama").unwrap().round();
        assert_eq!(percent(row("s", 10.0, 12.0)), 20.0);
        assert_eq!(percent(row("KB/s", 10.0, 8.0)), 25.0);
        assert_eq!(percent(row("%", 0.0, 3.0)), 3.0);
        assert_eq!(row("s", 1.0, 1.0).percent("none", "gone"), None);
    }
}
