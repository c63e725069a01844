//! Judges whether a configuration's policy was seen to deny.

use tollgate_bench::{labels::Label, oracle::Act};

use super::Oracle;
use crate::{record::BootRecord, word::word};

/// The verdict on a configuration's boots, beside the baseline's on the same kernel, and why it is void.
pub(super) fn judge(baseline: &[&BootRecord], own: &[&BootRecord]) -> (Oracle, Option<String>) {
    let mut judged = Oracle::None;
    for boot in own {
        for denial in &boot.denials {
            judged = Oracle::Held;
            if let Err(reason) =
                baseline_allows(baseline, denial.act).and_then(|()| denies(boot, denial.act, denial.errno))
            {
                return (Oracle::Void, Some(reason));
            }
        }
    }
    for boot in own.iter().filter(|boot| boot.labels.iter().any(|label| label.label.is_some())) {
        judged = Oracle::Held;
        if let Err(reason) = labels_flow(baseline, boot) {
            return (Oracle::Void, Some(reason));
        }
    }
    if judged == Oracle::Held && own.iter().all(|boot| boot.report().is_none()) {
        return (Oracle::Void, Some("no boot came to a report".to_owned()));
    }
    (judged, None)
}

/// An act that fails under the baseline too proves nothing.
fn baseline_allows(baseline: &[&BootRecord], act: Act) -> Result<(), String> {
    let outcomes: Vec<Option<i32>> = baseline.iter().filter_map(|boot| outcome(boot, act)).collect();
    match outcomes.iter().flatten().next() {
        _ if outcomes.is_empty() => Err(format!("{} was not tried under the baseline", word(&act))),
        Some(errno) => Err(format!("{} fails under the baseline too, with errno {errno}", word(&act))),
        None => Ok(()),
    }
}

fn denies(boot: &BootRecord, act: Act, errno: i32) -> Result<(), String> {
    match outcome(boot, act) {
        _ if boot.report().is_none() => Ok(()), // its failure is noted; the other boots decide
        None => Err(format!("{} was not tried ({})", word(&act), boot.which())),
        Some(None) => Err(format!("{} succeeded, errno {errno} was due ({})", word(&act), boot.which())),
        Some(Some(got)) if got != errno => {
            Err(format!("{} failed with errno {got}, errno {errno} was due ({})", word(&act), boot.which()))
        }
        Some(Some(_)) => Ok(()),
    }
}

/// Receivers saw the labels that they must see, both before and after everything was measured, and none under the baseline.
fn labels_flow(baseline: &[&BootRecord], boot: &BootRecord) -> Result<(), String> {
    let mut reports = baseline.iter().filter_map(|boot| boot.report()).peekable();
    if reports.peek().is_none_or(|report| report.labels.is_empty()) {
        return Err("labels were not looked for under the baseline".to_owned());
    }
    if let Some(seen) = reports.flat_map(|report| &report.labels).find(|seen| seen.label.is_some()) {
        return Err(format!("under the baseline packets have labels too: {}", shown(seen)));
    }
    let Some(report) = boot.report() else { return Ok(()) };
    let due = [boot.labels.as_slice(), &boot.labels].concat();
    let wrong = due.iter().zip(&report.labels).find(|(due, seen)| due != seen);
    match wrong {
        Some((due, seen)) => Err(format!("{} was due, {} was seen ({})", shown(due), shown(seen), boot.which())),
        None if report.labels.len() != due.len() => Err(format!("labels were not looked for ({})", boot.which())),
        None => Ok(()),
    }
}

fn shown(label: &Label) -> String {
    format!("{} over {}", label.label.as_deref().unwrap_or("no label"), label.network.name())
}

/// The outcome of an act in a boot: `None` if it was not tried, `Some(None)` if it succeeded.
fn outcome(boot: &BootRecord, act: Act) -> Option<Option<i32>> {
    boot.report()?.acts.iter().find(|o| o.act == act).map(|o| o.errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, denying, failed};

    const EACCES: i32 = 13;
    const EPERM: i32 = 1;

    fn verdict(under_baseline: Option<i32>, under_own: Option<i32>) -> (Oracle, Option<String>) {
        let baseline = boot("none", 0).tried(Act::HeapExec, under_baseline);
        let own = denying("selinux-enforcing", Act::HeapExec, EACCES).tried(Act::HeapExec, under_own);
        judge(&[&baseline.0], &[&own.0])
    }

    #[test]
    fn holds_when_the_act_succeeds_under_the_baseline_and_fails_as_it_should() {
        assert_eq!(verdict(None, Some(EACCES)), (Oracle::Held, None));
    }

    #[test]
    fn voids_an_act_that_is_not_denied() {
        let (oracle, reason) = verdict(None, None);
        assert_eq!(oracle, Oracle::Void);
        assert_eq!(reason.unwrap(), "heap-exec succeeded, errno 13 was due (padding 0)");
    }

    #[test]
    fn voids_a_denial_with_another_errno() {
        assert_eq!(verdict(None, Some(EPERM)).0, Oracle::Void);
    }

    #[test]
    fn voids_an_act_that_the_baseline_denies_too() {
        assert_eq!(verdict(Some(EPERM), Some(EACCES)).0, Oracle::Void);
    }

    #[test]
    fn voids_an_act_that_was_never_tried() {
        let own = denying("selinux-enforcing", Act::HeapExec, EACCES);
        assert_eq!(judge(&[&boot("none", 0).0], &[&own.0]).0, Oracle::Void);
    }

    /// The verdict on a boot whose receivers must see `label`, and saw these labels before and after it was measured.
    fn flow(under_baseline: Option<&str>, seen: &[Option<&str>]) -> (Oracle, Option<String>) {
        let baseline = boot("none", 0).saw(&[under_baseline, under_baseline]);
        let own = boot("tollgate-net-cipso", 0).must_show("s3").saw(seen);
        judge(&[&baseline.0], &[&own.0])
    }

    #[test]
    fn holds_when_receivers_see_the_label_and_none_under_the_baseline() {
        assert_eq!(flow(None, &[Some("s3"), Some("s3")]), (Oracle::Held, None));
    }

    #[test]
    fn voids_labels_that_do_not_flow_or_do_not_until_the_end() {
        for (seen, reason) in [
            (&[None, None][..], "s3 over veth was due, no label over veth was seen (padding 0)"),
            (&[Some("s3"), Some("s0")], "s3 over veth was due, s0 over veth was seen (padding 0)"),
            (&[Some("s3")], "labels were not looked for (padding 0)"),
        ] {
            assert_eq!(flow(None, seen), (Oracle::Void, Some(reason.to_owned())));
        }
    }

    #[test]
    fn voids_labels_that_the_baseline_has_too() {
        assert_eq!(flow(Some("s3"), &[Some("s3"), Some("s3")]).0, Oracle::Void);
    }

    #[test]
    fn has_nothing_to_say_of_a_configuration_that_denies_nothing() {
        assert_eq!(judge(&[&boot("none", 0).0], &[&boot("capability", 0).0]), (Oracle::None, None));
    }

    #[test]
    fn voids_a_configuration_that_never_came_up() {
        let baseline = boot("none", 0).tried(Act::HeapExec, None);
        let own = failed("selinux-enforcing", "the guest panicked").must_deny(Act::HeapExec, EACCES);
        assert_eq!(judge(&[&baseline.0], &[&own.0]).0, Oracle::Void);
    }
}
