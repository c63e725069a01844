//! Compares slopes with counts, which are found independently and must agree.

use serde::Serialize;

use super::{
    counts::Counts,
    fit::{Fit, Fits, Slope},
};

/// The largest accepted difference, as a share of the count, or of one call if the count is less.
const TOLERANCE: f64 = 0.01;
/// If a line is further from the costs than this share of them, it proves little.
const ROUGH: f64 = 0.01;

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// Compared pairs of a workload and a hook.
    pub pairs: usize,
    /// Those of the pairs in which the hook was passed at all.
    pub passed: usize,
    /// The pairs that differ.
    pub differences: Vec<Difference>,
    /// Workloads without counts, or with counts of several other kernels only.
    pub uncounted: Vec<String>,
    /// Hooks that were counted in a workload and had no delay, so that their slopes are unknown.
    pub not_delayed: Vec<String>,
}

/// A slope that differs from its count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The workload's selection.
    pub workload: String,
    /// The hook's name.
    pub hook: String,
    /// Calls per operation by regression.
    pub slope: f64,
    /// Calls per operation by counting.
    pub count: f64,
    /// The reason, if it is known.
    pub reason: Option<String>,
}

/// Compares each workload that has both slopes and counts.
#[must_use]
pub fn against(fits: &Fits, counts: &[Counts]) -> Against {
    let mut result =
        Against { pairs: 0, passed: 0, differences: Vec::new(), uncounted: Vec::new(), not_delayed: Vec::new() };
    for fit in &fits.workloads {
        let Some(counted) = Counts::of(counts, &fit.workload, |kernel| kernel == fits.kernel) else {
            result.uncounted.push(fit.workload.clone());
            continue;
        };
        for slope in &fit.slopes {
            let count = counted.hooks.get(&slope.hook).copied().unwrap_or(0.0);
            result.pairs += 1;
            result.passed += usize::from(count > 0.0);
            if !agree(slope, count) {
                let reason = reason(fit, slope, counted);
                let (workload, hook) = (fit.workload.clone(), slope.hook.clone());
                result.differences.push(Difference { workload, hook, slope: slope.value, count, reason });
            }
        }
        let missing = |(hook, count): &(&String, &f64)| **count > 0.0 && !fits.hooks.contains(*hook);
        result.not_delayed.extend(counted.hooks.iter().filter(missing).map(|(hook, _)| hook.clone()));
    }
    result.not_delayed.sort();
    result.not_delayed.dedup();
    result
}

fn agree(slope: &Slope, count: f64) -> bool {
    (slope.value - count).abs() <= TOLERANCE * count.max(1.0)
}

/// The reason that the data give for a difference.
fn reason(fit: &Fit, slope: &Slope, counts: &Counts) -> Option<String> {
    let count = counts.hooks.get(&slope.hook).copied().unwrap_or(0.0);
    let deferred = counts.deferred(&slope.hook);
    if counts.lost > 0 {
        return Some(format!("{} events were lost while counting: count again", counts.lost));
    }
    if counts.untraceable.contains(&slope.hook) {
        return Some("it cannot be traced in the kernel that was counted on".to_owned());
    }
    // The hooks of an object's end are missing if the end is.
    if counts.pending > 0 && slope.value > count && slope.hook.contains("free") {
        return Some(format!(
            "{} objects were not freed while counting: hooks of their end are missing",
            counts.pending
        ));
    }
    if deferred > 0.0 && agree(slope, count - deferred) {
        return Some(format!(
            "{deferred} of its calls are made later, by the kernel, when the operation is over: no delay of theirs is in its cost"
        ));
    }
    let low = slope.low.is_some_and(|low| low <= count) && slope.high.is_some_and(|high| count <= high);
    let rough = fit.deviation.is_some_and(|deviation| deviation > ROUGH * fit.intercept.value);
    match (low, rough) {
        (true, _) => Some("within the slope's interval: the costs of equal runs differ".to_owned()),
        (_, true) => Some(format!(
            "the line does not fit: residuals of {:.0} at a cost of {:.0}",
            fit.deviation.unwrap_or_default(),
            fit.intercept.value
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fit::{fit, tests::observed};

    fn counts(open: f64, extra: &str) -> Vec<Counts> {
        let text = format!(
            r#"[{{"schema":1,"kernel":"6.1","workload":"open+close","runs":1,"lost":0,"cost":null,
            "hooks":{{"file_open":{open},"inode_permission":7,"file_alloc_security":1}}{extra}}}]"#
        );
        Counts::read(&text).unwrap()
    }

    fn fits() -> Fits {
        let observed = observed(&[("open+close", 6000.0, [1.0, 0.0, 7.0]), ("stat", 4000.0, [0.0, 1.0, 6.0])], |_| 0.0);
        fit(&observed, 0.95).unwrap()
    }

    #[test]
    fn finds_equal_what_is_and_tells_what_was_not_compared() {
        let same = against(&fits(), &counts(1.0, ""));
        assert_eq!((same.pairs, same.passed, same.differences.len()), (3, 2, 0));
        assert_eq!(
            (same.uncounted, same.not_delayed),
            (vec!["stat".to_owned()], vec!["file_alloc_security".to_owned()])
        );
    }

    #[test]
    fn lists_what_differs_with_the_reason_that_the_counts_give() {
        let other = against(&fits(), &counts(2.0, ""));
        let [difference] = &other.differences[..] else { panic!("{other:?}") };
        assert_eq!((difference.hook.as_str(), difference.count, &difference.reason), ("file_open", 2.0, &None));
        let later = against(&fits(), &counts(2.0, r#","deferred":{"file_open":1}"#));
        assert!(later.differences[0].reason.as_ref().unwrap().contains("made later"), "{later:?}");
    }

    #[test]
    fn excuses_no_more_calls_by_what_the_kernel_does_later_than_it_does() {
        let later = against(&fits(), &counts(3.0, r#","deferred":{"file_open":1}"#));
        assert_eq!((later.differences[0].count, &later.differences[0].reason), (3.0, &None));
    }

    #[test]
    fn tells_hooks_that_could_not_be_counted() {
        let none = against(&fits(), &counts(0.0, r#","untraceable":["file_open"]"#));
        assert!(none.differences[0].reason.as_ref().unwrap().contains("cannot be traced"), "{none:?}");
        let counted = || Counts { hooks: std::collections::BTreeMap::new(), pending: 2, ..counts(0.0, "").remove(0) };
        let slope = |hook: &str, value| Slope { hook: hook.into(), value, error: 0.0, low: None, high: None };
        let reason = |hook, value| reason(&fits().workloads[0], &slope(hook, value), &counted());
        assert!(reason("inode_free_security", 1.0).unwrap().contains("2 objects were not freed"));
        assert_eq!((reason("file_open", 1.0), reason("inode_free_security", -1.0)), (None, None));
    }

    #[test]
    fn holds_slopes_against_counts_of_their_own_kernel() {
        let other = counts(2.0, "").remove(0);
        let own = Counts { kernel: fits().kernel, ..counts(1.0, "").remove(0) };
        assert_eq!(against(&fits(), &[other.clone(), own]).differences, []);
        assert_eq!(against(&fits(), &[other.clone(), other]).uncounted, ["open+close", "stat"]);
    }

    #[test]
    fn takes_one_part_in_a_hundred_for_the_same() {
        let slope = |value| Slope { hook: "h".into(), value, error: 0.0, low: None, high: None };
        assert!(agree(&slope(7.06), 7.0) && agree(&slope(0.009), 0.0));
        assert!(!agree(&slope(7.08), 7.0) && !agree(&slope(0.02), 0.0));
    }
}
