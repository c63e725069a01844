//! Compares two results of the same clock: which figures are identical, which differ, and what became dearer.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_bench::{counter::Counter, workload::Tasks};

use crate::{
    results::{Oracle, Results, WorkloadResult},
    stats::wall,
    study::Figure,
    table::{cell, notes::wrap},
};

/// The longest line, in characters.
const WIDTH: usize = 100;

/// How many names are printed of workloads that only one run measured.
const MAX_NAMES: usize = 12;

/// Two results side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The unit of both.
    pub clock: Counter,
    /// The least increase, in percent, that counts as dearer.
    pub threshold: f64,
    /// One entry per kernel, configuration and workload that both measured, in the order of the first.
    pub pairs: Vec<Pair>,
    /// Oracles that held in the first and not in the second, as `KERNEL CONFIGURATION`: those figures of the second do not
    /// price the policy.
    pub voided: Vec<String>,
    /// Workloads that the first measured and the second could not, or not in every boot, as `KERNEL CONFIGURATION WORKLOAD`.
    pub failed: Vec<String>,
    /// Workloads that only the first measured and the second did not try.
    pub only_before: Vec<String>,
    /// Workloads that only the second measured.
    pub only_after: Vec<String>,
    /// Other possible reasons for differences: other releases of a kernel, other accelerators or programs.
    pub notes: Vec<String>,
}

/// One workload under one configuration on one kernel, in both results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The kernel, as the studies name it.
    pub kernel: String,
    /// The configuration's name.
    pub configuration: String,
    /// The workload's selection, such as `open+close:d10`.
    pub workload: String,
    /// Whether tasks wait for one another in the workload.
    pub tasks: Tasks,
    /// The figure in the first: the mean if both studies use it, else the minimum of one task, or the median of several tasks
    /// and of wall time.
    #[serde(serialize_with = "crate::number::one")]
    pub before: f64,
    /// The figure in the second, likewise.
    #[serde(serialize_with = "crate::number::one")]
    pub after: f64,
    /// Whether the smallest samples are equal.
    pub same_minimum: bool,
    /// The difference in percent of the first; on the wall clock the Hodges-Lehmann shift of the rounds.
    #[serde(serialize_with = "crate::number::one")]
    pub percent: f64,
}

/// Two results that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// One counts instructions, the other nanoseconds.
    #[error("the first counts {before}, the second {after}: compare results of the same clock")]
    Clocks {
        /// The unit of the first.
        before: &'static str,
        /// The unit of the second.
        after: &'static str,
    },
    /// They have nothing in common.
    #[error(
        "the two have no kernel, configuration and workload in common (first: {before}; second: {after}): compare runs of the same study"
    )]
    NothingInCommon {
        /// The kernels of the first.
        before: String,
        /// The kernels of the second.
        after: String,
    },
}

type Key<'a> = (&'a str, &'a str, &'a str);

/// Compares the second results with the first.
pub fn compare(before: &Results, after: &Results, threshold: f64) -> Result<Comparison, CompareError> {
    if before.clock != after.clock {
        return Err(CompareError::Clocks { before: before.clock.unit(), after: after.clock.unit() });
    }
    let later: BTreeMap<Key<'_>, &WorkloadResult> = index(after).into_iter().collect();
    let compared = Compared::of(before, after);
    let mut pairs = Vec::new();
    let mut only_before = Vec::new();
    let mut failed = Vec::new();
    for (key, first) in index(before) {
        let fails = has_come_to_fail(before, after, key);
        if fails {
            failed.push(name(key));
        }
        match later.get(&key) {
            Some(second) => pairs.push(pair(before.clock, compared, key, first, second)),
            None if fails => {}
            None => only_before.push(name(key)),
        }
    }
    if pairs.is_empty() && failed.is_empty() {
        return Err(CompareError::NothingInCommon { before: kernels(before), after: kernels(after) });
    }
    let earlier: BTreeMap<Key<'_>, &WorkloadResult> = index(before).into_iter().collect();
    let only_after = index(after).into_iter().filter(|(k, _)| !earlier.contains_key(k)).map(|(k, _)| name(k)).collect();
    let (voided, notes) = (voided(before, after), notes(before, after));
    Ok(Comparison { clock: before.clock, threshold, pairs, voided, failed, only_before, only_after, notes })
}

/// Whether the second tried a workload that the first measured, and failed.
fn has_come_to_fail(before: &Results, after: &Results, (kernel, configuration, workload): Key<'_>) -> bool {
    let Some(now) = after.find(kernel, configuration) else { return false };
    // If every boot fails, no workload is named in the results.
    if now.workloads.is_empty() && now.unmeasured.is_empty() {
        return true;
    }
    let failed_before = before.find(kernel, configuration).is_some_and(|c| c.failed(workload));
    now.failed(workload) && (!failed_before || now.workload(workload).is_none())
}

fn voided(before: &Results, after: &Results) -> Vec<String> {
    let held = before.configurations.iter().filter(|c| c.oracle == Oracle::Held);
    let void = held.filter(|c| after.find(&c.kernel, &c.name).is_some_and(|now| now.oracle == Oracle::Void));
    void.map(|c| format!("{} {}", c.kernel, c.name)).collect()
}

fn index(results: &Results) -> Vec<(Key<'_>, &WorkloadResult)> {
    let all = results.configurations.iter();
    all.flat_map(|c| c.workloads.iter().map(|w| ((c.kernel.as_str(), c.name.as_str(), w.name.as_str()), w))).collect()
}

fn name((kernel, configuration, workload): Key<'_>) -> String {
    format!("{kernel} {configuration} {workload}")
}

fn kernels(results: &Results) -> String {
    let kernels = results.kernels();
    if kernels.is_empty() { "nothing measured".to_owned() } else { kernels.join(", ") }
}

/// The figures by which two results are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// The figures that both tables show.
    Figures,
    /// The smallest sample of one task; of several tasks, the figure that both tables show.
    Minima,
    /// The smallest sample of one task, the median of several: one table shows means, the other does not.
    Neither,
}

impl Compared {
    fn of(before: &Results, after: &Results) -> Self {
        match (before.clock, before.study.figure, after.study.figure) {
            (Counter::Wall, _, _) | (_, Figure::Mean, Figure::Mean) => Self::Figures,
            (_, Figure::Minimum, Figure::Minimum) => Self::Minima,
            _ => Self::Neither,
        }
    }

    fn figure(self, workload: &WorkloadResult) -> f64 {
        match (self, workload.tasks) {
            (Self::Figures, _) | (Self::Minima, Tasks::Several) => workload.figure,
            (Self::Minima | Self::Neither, Tasks::One) => workload.min,
            (Self::Neither, Tasks::Several) => workload.median,
        }
    }
}

fn pair(clock: Counter, compared: Compared, key: Key<'_>, first: &WorkloadResult, second: &WorkloadResult) -> Pair {
    let (before, after) = (compared.figure(first), compared.figure(second));
    let ratio = if before == after { 0.0 } else { 100.0 * (after - before) / before };
    let percent = match clock {
        Counter::Instructions => ratio,
        Counter::Wall => wall::unpaired(&first.rounds(), &second.rounds()).unwrap_or(ratio),
    };
    Pair {
        kernel: key.0.to_owned(),
        configuration: key.1.to_owned(),
        workload: key.2.to_owned(),
        tasks: first.tasks,
        before,
        after,
        same_minimum: first.min == second.min,
        percent,
    }
}

fn notes(before: &Results, after: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    for kernel in before.kernels() {
        let release = |r: &Results| r.on(kernel).map(|c| c.release.clone()).find(|r| !r.is_empty());
        if let (Some(a), Some(b)) = (release(before), release(after))
            && a != b
        {
            notes.push(format!("kernel {kernel} was {a} in the first and is {b} in the second"));
        }
    }
    let mut differs = |what: &str, a: &str, b: &str| {
        if a != b {
            notes.push(format!("{what} was {a} in the first and is {b} in the second"));
        }
    };
    differs("the accelerator", &before.accelerator, &after.accelerator);
    differs("tollgate", &before.environment.tollgate, &after.environment.tollgate);
    let revision = |r: &Results| r.environment.revision.clone().unwrap_or_else(|| "unknown".to_owned());
    differs("the revision", &revision(before), &revision(after));
    let qemu = |r: &Results| r.environment.qemu.clone().unwrap_or_else(|| "not used".to_owned());
    differs("QEMU", &qemu(before), &qemu(after));
    if Compared::of(before, after) == Compared::Neither {
        notes.push(
            "one study goes by means and the other by minima: minima are compared, medians where tasks wait for one another"
                .to_owned(),
        );
    }
    notes
}

impl Comparison {
    /// Workloads that became dearer by more than the threshold, dearest first.
    pub fn dearer(&self) -> Vec<&Pair> {
        let mut dearer: Vec<&Pair> = self.pairs.iter().filter(|p| p.percent > self.threshold).collect();
        dearer.sort_by(|a, b| b.percent.total_cmp(&a.percent));
        dearer
    }

    /// Whether the second is worse: something became dearer or failed, or an oracle no longer holds.
    pub fn is_worse(&self) -> bool {
        !self.dearer().is_empty() || !self.failed.is_empty() || !self.voided.is_empty()
    }

    /// Workloads of a single task whose minimum is the same in both, and how many there are.
    pub fn identical(&self) -> (usize, usize) {
        let single = || self.pairs.iter().filter(|p| p.tasks == Tasks::One);
        (single().filter(|p| p.same_minimum).count(), single().count())
    }

    /// The comparison for people, with the workloads that differ.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if self.clock == Counter::Instructions {
            let (same, all) = self.identical();
            text.push_str(&format!("{same} of {all} single-task minima identical.\n"));
        }
        let differing: Vec<&Pair> = self.pairs.iter().filter(|p| p.before != p.after).collect();
        if !differing.is_empty() {
            text.push_str(&self.table(&differing));
        }
        let lists = [
            ("Oracle held in the first, void in the second", &self.voided),
            ("Measured in the first, failed in the second", &self.failed),
            ("Only the first measured", &self.only_before),
            ("Only the second measured", &self.only_after),
        ];
        for (what, names) in lists {
            if !names.is_empty() {
                text.push_str(&wrap(&format!("{what}: {}.", some(names)), WIDTH));
            }
        }
        for note in &self.notes {
            text.push_str(&wrap(&format!("Note: {note}."), WIDTH));
        }
        let verdict = match self.dearer().len() {
            0 => "Nothing got".to_owned(),
            n => format!("{n} of {} got", self.pairs.len()),
        };
        text.push_str(&format!("{verdict} dearer by more than {} %.\n", self.threshold));
        text
    }

    fn table(&self, pairs: &[&Pair]) -> String {
        let mut rows =
            vec![["kernel", "configuration", "workload", "before", "after", "difference"].map(str::to_owned)];
        for pair in pairs {
            let mark = if pair.percent > self.threshold { " dearer" } else { "" };
            rows.push([
                pair.kernel.clone(),
                pair.configuration.clone(),
                pair.workload.clone(),
                cell::figure(pair.before),
                cell::figure(pair.after),
                format!("{}{mark}", precise(pair.percent)),
            ]);
        }
        let widths: [usize; 6] = std::array::from_fn(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0));
        let line = |row: &[String; 6]| {
            let [k, c, w, b, a, d] = row;
            let [kw, cw, ww, bw, aw, _] = widths;
            format!("{k:kw$}  {c:cw$}  {w:ww$}  {b:>bw$}  {a:>aw$}  {d}\n")
        };
        rows.iter().map(line).collect()
    }
}

/// The first of many names, because the run of another study may lack hundreds.
fn some(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len() - names.len().min(MAX_NAMES) {
        0 => shown,
        more => format!("{shown}, and {more} more (--json prints all)"),
    }
}

/// A percentage with enough digits that a difference does not print as zero.
fn precise(percent: f64) -> String {
    if percent.abs() < 0.1 { format!("{percent:+.3}%") } else { cell::percent(percent) }
}
