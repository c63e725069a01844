//! Separates workloads with a row of their own from operations that were measured at several depths.

use tollgate_bench::{
    selection::Selection,
    workload::{Group, Scope},
};

use crate::{results::Results, table::workloads};

/// With this many depths or more, an operation is a sweep.
const MIN_DEPTHS: usize = 3;

/// An operation that was measured at several depths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sweep<'r> {
    /// The selection without its depth.
    pub(crate) name: String,
    /// Depth and selection, ascending.
    pub(crate) depths: Vec<(u8, &'r str)>,
}

/// The operations on a kernel that were measured at three depths or more.
pub(crate) fn sweeps<'r>(results: &'r Results, kernel: &'r str) -> Vec<Sweep<'r>> {
    let mut sweeps: Vec<Sweep<'r>> = Vec::new();
    for workload in workloads(results, kernel) {
        let Some((name, depth)) = depth(workload) else { continue };
        match sweeps.iter_mut().find(|sweep| sweep.name == name) {
            Some(sweep) => sweep.depths.push((depth, workload)),
            None => sweeps.push(Sweep { name, depths: vec![(depth, workload)] }),
        }
    }
    sweeps.retain(|sweep| sweep.depths.len() >= MIN_DEPTHS);
    sweeps.iter_mut().for_each(|sweep| sweep.depths.sort_unstable());
    sweeps
}

/// The workloads on a kernel. A sweep has one row: the depth that a selection without a depth means, else the least depth.
pub(crate) fn single<'r>(results: &'r Results, kernel: &'r str) -> Vec<&'r str> {
    let sweeps = sweeps(results, kernel);
    let stands = |workload: &&str| match sweeps.iter().find(|s| s.depths.iter().any(|(_, w)| w == workload)) {
        None => true,
        Some(sweep) => {
            let usual = sweep.depths.iter().find(|(_, w)| *w == sweep.name).or(sweep.depths.first());
            usual.is_some_and(|(_, w)| w == workload)
        }
    };
    workloads(results, kernel).into_iter().filter(stands).collect()
}

/// A selection without its depth, and the depth; `None` for a workload that resolves no path.
fn depth(workload: &str) -> Option<(String, u8)> {
    let selection = workload.parse::<Selection>().ok().filter(|s| s.workload.scope == Scope::Path)?;
    let depth = selection.depth;
    // The usual depth may be written out, and is the same selection.
    let bare: Vec<&str> = workload.split(':').filter(|part| *part != format!("d{depth}")).collect();
    Some((bare.join(":"), depth))
}

/// The description of a workload; `None` if the catalogue no longer has it.
pub(crate) fn about(workload: &str) -> Option<&'static str> {
    workload.parse::<Selection>().ok().map(|s| s.workload.about)
}

/// Whether a workload is a control, whose cost must not change.
pub(crate) fn is_control(workload: &str) -> bool {
    workload.parse::<Selection>().is_ok_and(|s| s.workload.group == Group::Control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn joins_an_operations_depths_and_lets_the_usual_one_stand_for_them() {
        let built = results(&[boot("none", 0)
            .measured("stat:d10", &[3.0])
            .measured("stat", &[2.0])
            .measured("stat:d1", &[1.0])
            .measured("stat:ext4:d1", &[1.0])
            .measured("open+close:d1", &[1.0])
            .measured("open+close:d2", &[1.0])
            .measured("pipe", &[1.0])]);
        let found = sweeps(&built, "6.1");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "stat");
        assert_eq!(found[0].depths, [(1, "stat:d1"), (3, "stat"), (10, "stat:d10")]);
        let single = single(&built, "6.1");
        assert_eq!(single, ["stat", "stat:ext4:d1", "open+close:d1", "open+close:d2", "pipe"]);
    }

    #[test]
    fn lets_the_shallowest_stand_where_the_usual_depth_is_missing() {
        let deep = |b: crate::results::examples::Boot, d: &str| b.measured(&format!("stat:{d}"), &[1.0]);
        let built = results(&[["d4", "d5", "d6"].iter().fold(boot("none", 0), |b, d| deep(b, d))]);
        assert_eq!(single(&built, "6.1"), ["stat:d4"]);
    }
}
