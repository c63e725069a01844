//! Compares the results of two enforcers on the same scenarios.

use std::collections::BTreeMap;

use tollgate_client::descriptors::Descriptors;

use crate::{
    outcome::{Outcome, Played},
    scenario::{Family, Scenario},
};

/// The results of all scenarios under one enforcer.
#[derive(Debug, Clone, Default)]
pub struct All(BTreeMap<(String, String, bool), Played>);

impl FromIterator<Played> for All {
    fn from_iter<I: IntoIterator<Item = Played>>(all: I) -> Self {
        let keyed = |played: Played| ((played.family.clone(), played.name.clone(), played.enforcing), played);
        Self(all.into_iter().map(keyed).collect())
    }
}

impl All {
    /// Parses the program's output.
    pub fn parse(lines: &str) -> Result<Self, serde_json::Error> {
        lines.lines().map(serde_json::from_str::<Played>).collect()
    }

    /// A scenario's results, enforced and permissive; one that was granted when enforced need not have been played again.
    fn both(&self, family: &Family, scenario: &Scenario) -> [Played; 2] {
        let find = |enforcing| self.0.get(&(family.name.clone(), scenario.name.clone(), enforcing)).cloned();
        let enforced = find(true).unwrap_or_else(|| Played {
            family: family.name.clone(),
            name: scenario.name.clone(),
            enforcing: true,
            outcome: Outcome::Broken("the guest ended before".into()),
            contexts: Vec::new(),
        });
        let permitted = find(false).unwrap_or_else(|| enforced.clone());
        [enforced, permitted]
    }

    /// A scenario's result in one line: enforced, the labels that it left, and its failure in permissive mode.
    fn told(&self, family: &Family, scenario: &Scenario) -> String {
        let [enforced, permitted] = self.both(family, scenario);
        let mut told = labelled(&enforced);
        if !enforced.outcome.is_granted() && (!permitted.outcome.is_granted() || !permitted.contexts.is_empty()) {
            told.push_str(&format!("; permissive: {}", labelled(&permitted)));
        }
        told
    }

    /// Errors of the scenarios themselves, which make a comparison impossible: not played, a single verdict in a family,
    /// denied in permissive mode.
    #[must_use]
    pub fn faults(&self, families: &[Family]) -> Vec<String> {
        let mut faults = Vec::new();
        for family in families {
            let granted = |scenario: &&Scenario| self.both(family, scenario)[0].outcome.is_granted();
            if family.scenarios.iter().filter(granted).count() % family.scenarios.len() == 0 {
                faults.push(format!("{}: all verdicts are the same", family.name));
            }
            for scenario in &family.scenarios {
                let [enforced, permitted] = self.both(family, scenario).map(|played| played.outcome);
                let title = format!("{}, {:?}", family.name, scenario.name);
                if let Outcome::Broken(_) = enforced {
                    faults.push(format!("{title}: {enforced}"));
                }
                match (&scenario.stays_denied, permitted.is_granted()) {
                    (None, false) => faults.push(format!("{title}: {permitted}, and nothing is enforced")),
                    (Some(_), true) => faults.push(format!("{title}: granted, and said to stay denied")),
                    _ => {}
                }
            }
        }
        faults
    }
}

fn labelled(played: &Played) -> String {
    match played.contexts.as_slice() {
        [] => played.outcome.to_string(),
        contexts => format!("{} [{}]", played.outcome, contexts.join(" ")),
    }
}

/// The numbers of scenarios: all, equal, different as listed, different and not listed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// The number of scenarios.
    pub scenarios: usize,
    /// Scenarios with equal results.
    pub equal: usize,
    /// Scenarios that differ as they say.
    pub listed: usize,
    /// Scenarios that differ without saying so, or are equal and say otherwise.
    pub unlisted: usize,
}

/// The comparison of two enforcers.
#[derive(Debug, Default)]
pub struct Comparison {
    /// One row per family.
    pub rows: Vec<(String, Counts)>,
    /// Faults, one line per scenario.
    pub complaints: Vec<String>,
}

/// Compares Tollgate's results with SELinux's, which are the reference.
#[must_use]
pub fn compare(families: &[Family], selinux: &All, tollgate: &All, descriptors: Descriptors) -> Comparison {
    let mut comparison = Comparison::default();
    for family in families {
        let mut counts = Counts { scenarios: family.scenarios.len(), ..Counts::default() };
        for scenario in &family.scenarios {
            let [reference, found] = [selinux, tollgate].map(|all| all.told(family, scenario));
            let listed = scenario.differs.as_ref().and_then(|listed| listed.of(descriptors));
            match listed {
                None if reference == found => counts.equal += 1,
                Some(listed) if reference != found && listed == found => counts.listed += 1,
                _ => {
                    counts.unlisted += 1;
                    let listed = listed.map(|listed| format!(", listed: {listed}")).unwrap_or_default();
                    let title = format!("{}, {:?}", family.name, scenario.name);
                    comparison.complaints.push(format!("{title}: SELinux: {reference}, Tollgate: {found}{listed}"));
                }
            }
        }
        comparison.rows.push((family.name.clone(), counts));
    }
    comparison
}

impl Comparison {
    /// The counts of all families.
    #[must_use]
    pub fn all(&self) -> Counts {
        let sum = |of: fn(&Counts) -> usize| self.rows.iter().map(|(_, counts)| of(counts)).sum();
        Counts {
            scenarios: sum(|counts| counts.scenarios),
            equal: sum(|counts| counts.equal),
            listed: sum(|counts| counts.listed),
            unlisted: sum(|counts| counts.unlisted),
        }
    }

    /// A table with one row per family, and the sum.
    #[must_use]
    pub fn table(&self) -> String {
        let line = |name: &str, counts: Counts| {
            let Counts { scenarios, equal, listed, unlisted } = counts;
            format!("{name:<18} {scenarios:>9} {equal:>6} {listed:>7} {unlisted:>9}\n")
        };
        let head = format!("{:<18} {:>9} {:>6} {:>7} {:>9}\n", "family", "scenarios", "equal", "listed", "unlisted");
        let rows = self.rows.iter().map(|(name, counts)| line(name, *counts));
        std::iter::once(head).chain(rows).chain([line("all", self.all())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Difference, MIN_SCENARIOS};

    fn families() -> Vec<Family> {
        let scenario = |n| format!("[[scenario]]\nname = \"{n}\"\ndomain = \"d\"\nacts = [\"read\"]\n");
        let scenarios: String = (1..=MIN_SCENARIOS).map(scenario).collect();
        vec![Family::parse("some", &format!("about = \"x\"\n{scenarios}")).unwrap()]
    }

    fn played(name: usize, enforcing: bool, outcome: Outcome) -> Played {
        Played { family: "some".into(), name: name.to_string(), enforcing, outcome, contexts: Vec::new() }
    }

    fn denied() -> Outcome {
        Outcome::Denied { act: 1, errno: "EACCES".into() }
    }

    /// The first scenario is denied, all others are granted; then `and`.
    fn all(and: &[Played]) -> All {
        let granted = (1..=MIN_SCENARIOS).flat_map(|n| [true, false].map(|mode| played(n, mode, Outcome::Granted)));
        granted.chain([played(1, true, denied())]).chain(and.iter().cloned()).collect()
    }

    #[test]
    fn counts_equal_scenarios() {
        let comparison = compare(&families(), &all(&[]), &all(&[]), Descriptors::Check);
        assert_eq!(comparison.complaints, Vec::<String>::new());
        assert_eq!(comparison.rows[0].1, Counts { scenarios: 5, equal: 5, listed: 0, unlisted: 0 });
        assert!(comparison.table().ends_with("all                        5      5       0         0\n"));
    }

    #[test]
    fn complains_of_a_difference() {
        let complaint = |and: Played, expected: &str| {
            let comparison = compare(&families(), &all(&[]), &all(&[and]), Descriptors::Check);
            assert_eq!(comparison.rows[0].1, Counts { scenarios: 5, equal: 4, listed: 0, unlisted: 1 });
            assert!(comparison.complaints[0].contains(expected), "{:?}", comparison.complaints);
        };
        complaint(played(2, true, denied()), "\"2\": SELinux: granted, Tollgate: EACCES at act 1");
        complaint(played(1, false, denied()), "EACCES at act 1; permissive: EACCES at act 1");
        complaint(played(1, true, Outcome::Denied { act: 1, errno: "EPERM".into() }), "Tollgate: EPERM at act 1");
        let contexts = vec!["u:r:t:s0".into()];
        complaint(Played { contexts, ..played(2, true, Outcome::Granted) }, "Tollgate: granted [u:r:t:s0]");
    }

    #[test]
    fn complains_of_a_listed_difference_that_is_none_or_another() {
        let mut families = families();
        families[0].scenarios[1].differs =
            Some(Difference { tollgate: "EACCES at act 1".into(), at_use: None, reason: "it is so".into() });
        let compare = |and: &[Played], when| compare(&families, &all(&[]), &all(and), when).rows[0].1;
        let counts = |and: &[Played]| compare(and, Descriptors::Check);
        assert_eq!(counts(&[played(2, true, denied())]), Counts { scenarios: 5, equal: 4, listed: 1, unlisted: 0 });
        assert_eq!(counts(&[]), Counts { scenarios: 5, equal: 4, listed: 0, unlisted: 1 });
        let killed = Outcome::Killed { signal: "SIGKILL".into() };
        assert_eq!(counts(&[played(2, true, killed)]).unlisted, 1);
        // The scenario says that it does not differ if descriptors are checked at each use.
        assert_eq!(compare(&[], Descriptors::Use).equal, 5);
        assert_eq!(compare(&[played(2, true, denied())], Descriptors::Use).unlisted, 1);
    }

    #[test]
    fn finds_faults_of_scenarios() {
        let faults = |and: &[Played]| all(and).faults(&families());
        assert_eq!(faults(&[]), Vec::<String>::new());
        assert!(faults(&[played(1, true, Outcome::Granted)])[0].contains("all verdicts are the same"));
        assert!(faults(&[played(1, false, denied())])[0].contains("nothing is enforced"));
        assert!(faults(&[played(2, true, Outcome::Broken("a".into()))])[0].contains("not played: a"));
        assert!(All::default().faults(&families()).iter().any(|fault| fault.contains("ended before")));
        let mut stays = families();
        stays[0].scenarios[0].stays_denied = Some("why".into());
        assert!(all(&[]).faults(&stays)[0].contains("said to stay denied"));
    }
}
