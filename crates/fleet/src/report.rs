//! What the signed states of nodes prove: which of them enforce what a manifest says.
//!
//! Everything is verified from the root file on, so whoever has the same bytes and the same root file comes to the same
//! report. These bytes are the [`Evidence`].

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use tollgate_policy::built::Section;

use crate::{
    document::Signed,
    manifest::Manifest,
    name::Name,
    part::Part,
    register::{Member, Register, RegisterError},
    rollout::Duty,
    root::Root,
    state::State,
    time::Time,
    trust::{self, Checked, TrustError},
};

/// How much is believed of what nodes say of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// After how long without a word a node is stale.
    pub silence: Duration,
    /// How far its clock may be apart from those of the publisher and of who reads the evidence.
    pub skew: Duration,
}

impl Limits {
    /// What counts unless somebody says otherwise.
    pub const USUAL: Self = Self { silence: Duration::from_secs(30 * 60), skew: Duration::from_secs(5 * 60) };
}

/// The bytes that a report rests on. None of them is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// When they were read, in seconds since 1970.
    pub read: u64,
    /// The manifest of the group.
    pub manifest: String,
    /// The register of nodes.
    pub register: String,
    /// What each node says.
    pub states: BTreeMap<String, String>,
}

/// What is known about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It enforces the generation, as the manifest says.
    Converged,
    /// Its turn has not come.
    Waiting,
    /// It enforces something else, or not all of it.
    Behind,
    /// What it says is old.
    Stale,
    /// It says nothing.
    Silent,
    /// It says something at a time that cannot be: its clock is wrong. Nothing else of what it says is doubted, but nobody
    /// can say how old that is.
    Skewed,
    /// What is said in its name is not signed by it, or cannot be true.
    Lying,
    /// It does not belong to the fleet.
    Foreign,
}

/// A line of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The node.
    pub node: String,
    /// What is known about it.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

/// A report on the nodes of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The fleet.
    pub fleet: Name,
    /// The group.
    pub group: Name,
    /// The number of the manifest.
    pub number: u64,
    /// How far its rollout has come.
    pub rollout: String,
    /// The number of the register.
    pub register: u64,
    /// Whether all nodes of the group enforce the generation.
    pub converged: bool,
    /// The nodes.
    pub nodes: Vec<Finding>,
}

/// Why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The manifest is not believed.
    #[error(transparent)]
    Manifest(#[from] TrustError),
    /// The register is not believed.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

impl Evidence {
    /// The report on a group.
    pub fn report(&self, root: &Root, group: &Name, limits: Limits) -> Result<Report, ReportError> {
        let read = Time::of_seconds(self.read);
        let checked = trust::check(self.manifest.as_bytes(), root, group, None, read)?;
        let register = Register::check(self.register.as_bytes(), root)?;
        let judge = Judge { checked: &checked, read, limits };
        let members = register.members.iter().filter(|member| member.group == *group);
        let mut nodes: Vec<Finding> = members.map(|member| judge.finding(member, &self.states)).collect();
        let is_known = |node: &str| node.parse().is_ok_and(|name| register.member(&name).is_some());
        nodes.extend(self.states.keys().filter(|node| !is_known(node)).map(|node| Finding {
            node: node.clone(),
            verdict: Verdict::Foreign,
            why: "the register does not name it".to_owned(),
        }));
        let Manifest { fleet, number, progress, .. } = checked.manifest();
        // Anybody who can write into the store can pretend to be a foreign node, so these change nothing.
        let mut own = nodes.iter().filter(|finding| finding.verdict != Verdict::Foreign).peekable();
        let converged = own.peek().is_some() && own.all(|finding| finding.verdict == Verdict::Converged);
        Ok(Report {
            fleet: fleet.clone(),
            group: group.clone(),
            number: *number,
            rollout: progress.to_string(),
            register: register.number,
            converged,
            nodes,
        })
    }
}

impl Report {
    /// How many nodes do not prove that they have the generation, though it is their turn.
    #[must_use]
    pub fn missing(&self) -> usize {
        let is_missing =
            |finding: &&Finding| !matches!(finding.verdict, Verdict::Converged | Verdict::Waiting | Verdict::Foreign);
        self.nodes.iter().filter(is_missing).count()
    }
}

struct Judge<'a> {
    checked: &'a Checked,
    read: Time,
    limits: Limits,
}

impl Judge<'_> {
    fn finding(&self, member: &Member, states: &BTreeMap<String, String>) -> Finding {
        let (verdict, why) = match states.get(member.node.as_str()) {
            None => (Verdict::Silent, "it has said nothing".to_owned()),
            Some(text) => self.verdict(member, text),
        };
        Finding { node: member.node.to_string(), verdict, why }
    }

    fn verdict(&self, member: &Member, text: &str) -> (Verdict, String) {
        let manifest = self.checked.manifest();
        let lying = |why: String| (Verdict::Lying, why);
        let document = match Signed::<State>::parse(text.as_bytes()) {
            Ok(document) => document,
            Err(cause) => return lying(cause.to_string()),
        };
        let state = match document.verified(std::slice::from_ref(&member.key), 1) {
            Ok(state) => state,
            Err(cause) => return lying(cause.to_string()),
        };
        if state.fleet != manifest.fleet || state.node != member.node {
            return lying(format!("it signs as {} of the fleet {}", state.node, state.fleet));
        }
        if state.manifest == Some(self.checked.hash()) && state.number != manifest.number {
            return lying(format!("it gives this manifest the number {}", state.number));
        }
        self.of_time(state).unwrap_or_else(|| self.of_state(member, state))
    }

    /// What the time at which it was said shows; `None`: it may be.
    fn of_time(&self, state: &State) -> Option<(Verdict, String)> {
        let Limits { silence, skew } = self.limits;
        let skewed = |apart: Duration, word: &str| {
            let why = format!("its clock is {} s {word}, so nobody knows how old this is: set it", apart.as_secs());
            Some((Verdict::Skewed, why))
        };
        let ahead = state.made.since(self.read);
        if ahead > skew {
            return skewed(ahead, "ahead");
        }
        // Nobody can have seen a manifest before it was made.
        let behind = self.checked.manifest().made.since(state.made);
        if state.manifest == Some(self.checked.hash()) && behind > skew {
            return skewed(behind, "behind at least");
        }
        let is_old = self.read.since(state.made) > silence;
        is_old.then(|| (Verdict::Stale, format!("it said something for the last time on {}", state.made)))
    }

    fn of_state(&self, member: &Member, state: &State) -> (Verdict, String) {
        let manifest = self.checked.manifest();
        let has = state.generation == Some(manifest.generation());
        let tables = manifest.part(Part::Policy(Section::Tables)).map(|entry| entry.hash);
        let behind = |why: String| (Verdict::Behind, why);
        if has && state.mode.is_some() && state.tables != tables {
            return (Verdict::Lying, "its tables are not those of the generation that it names".to_owned());
        }
        let mode = match manifest.duty(&member.node, &member.others) {
            Duty::Take(mode) => mode,
            Duty::Wait | Duty::Keep(_) => return (Verdict::Waiting, "its stage has not begun".to_owned()),
        };
        if state.manifest != Some(self.checked.hash()) {
            return behind(format!("the newest manifest that it has seen is {}", state.number));
        }
        match state.mode {
            _ if !has => behind("another generation is in force".to_owned()),
            None => behind("the generation is there, and not in force".to_owned()),
            Some(found) if found != mode => behind(format!("it is {found}, and should be {mode}")),
            Some(_) if state.unenforced > 0 || state.failures > 0 => {
                behind(format!("{} hooks are not enforced, and {} things failed", state.unenforced, state.failures))
            }
            Some(_) => (Verdict::Converged, format!("{mode} on {} hooks", state.hooks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hash::Hash,
        manifest::Progress,
        register::tests::register,
        root::tests::{key, root},
        stage::Mode,
        trust::tests::{NOW, manifest as plain, name, signed},
    };

    const LIMITS: Limits = Limits { silence: Duration::from_secs(600), skew: Duration::from_secs(300) };

    fn manifest() -> Manifest {
        Manifest { progress: Progress::Open(3), ..plain(7) }
    }

    /// The state of a node that enforces the manifest.
    fn state(node: &str) -> State {
        let manifest = manifest();
        State {
            fleet: name("example"),
            node: name(node),
            sequence: 1,
            made: Time::of_seconds(NOW + 60),
            number: 7,
            manifest: Some(Signed::new(manifest.clone()).hash()),
            generation: Some(manifest.generation()),
            tables: manifest.part(Part::Policy(Section::Tables)).map(|entry| entry.hash),
            mode: Some(Mode::Enforcing),
            hooks: 150,
            unenforced: 0,
            failures: 0,
            denials: 3,
        }
    }

    fn said(state: State, seed: u8) -> String {
        let mut document = Signed::new(state);
        document.sign(&key(seed));
        String::from_utf8(document.bytes()).unwrap()
    }

    /// Node `a` has key 31, `b` has 32.
    fn evidence(states: &[(&str, String)]) -> Evidence {
        Evidence {
            read: NOW + 120,
            manifest: String::from_utf8(signed(manifest(), &[11, 12])).unwrap(),
            register: String::from_utf8(register(&[("a", 31), ("b", 32)])).unwrap(),
            states: states.iter().map(|(node, text)| ((*node).to_owned(), text.clone())).collect(),
        }
    }

    fn report(evidence: &Evidence) -> Report {
        evidence.report(&root(), &name("web"), LIMITS).unwrap()
    }

    /// The verdict on `b` where `a` has converged.
    fn verdict(text: String) -> (Verdict, String) {
        let report = report(&evidence(&[("a", said(state("a"), 31)), ("b", text)]));
        assert_eq!(report.nodes[0].verdict, Verdict::Converged);
        assert_eq!(report.converged, report.nodes[1].verdict == Verdict::Converged);
        (report.nodes[1].verdict, report.nodes[1].why.clone())
    }

    #[test]
    fn has_converged_when_each_node_proves_it_and_not_before() {
        assert_eq!(verdict(said(state("b"), 32)), (Verdict::Converged, "enforcing on 150 hooks".into()));
        let one = report(&evidence(&[("a", said(state("a"), 31))]));
        assert!(!one.converged && one.nodes[1].verdict == Verdict::Silent && one.missing() == 1);
        let mut nobody = evidence(&[]);
        nobody.register = String::from_utf8(register(&[])).unwrap();
        assert!(!report(&nobody).converged, "no node proves nothing");
    }

    #[test]
    fn reports_lies() {
        let no_tables = State { tables: Some(Hash::of(b"others")), ..state("b") };
        let other_fleet = State { fleet: name("other"), ..state("b") };
        for (text, part) in [
            (said(state("b"), 31), "of a key that may not sign"),
            (said(state("a"), 31), "of a key that may not sign"),
            (said(state("a"), 32), "it signs as a"),
            (said(other_fleet, 32), "of the fleet other"),
            (said(state("b"), 32).replace("denials 3", "denials 2"), "a signature that is wrong"),
            (said(no_tables, 32), "its tables are not those"),
            (said(State { number: 8, ..state("b") }, 32), "the number 8"),
            ("junk".into(), "no state of a fleet"),
        ] {
            let (verdict, why) = verdict(text);
            assert!(verdict == Verdict::Lying && why.contains(part), "{part}: {verdict:?} {why}");
        }
    }

    #[test]
    fn reports_clocks_that_are_wrong_and_calls_nobody_a_liar_for_it() {
        let at = |made: u64, manifest| State { made: Time::of_seconds(made), manifest, ..state("b") };
        let (present, other) = (state("b").manifest, Some(Hash::of(b"another")));
        for (made, manifest, expected, part) in [
            (NOW + 120 + 300, present, Verdict::Converged, "enforcing"),
            (NOW + 120 + 301, present, Verdict::Skewed, "301 s ahead"),
            (NOW + 120 + 3600, other, Verdict::Skewed, "3600 s ahead"),
            (NOW - 300, present, Verdict::Converged, "enforcing"),
            (NOW - 301, present, Verdict::Skewed, "301 s behind at least"),
            (NOW - 3600, present, Verdict::Skewed, "3600 s behind at least"),
            (NOW - 3600, other, Verdict::Stale, "for the last time"),
        ] {
            let (found, why) = verdict(said(at(made, manifest), 32));
            assert!(found == expected && why.contains(part), "{made}: {found:?} {why}");
        }
        let all = evidence(&[("a", said(state("a"), 31)), ("b", said(at(NOW + 3700, present), 32))]);
        let limits = Limits { skew: Duration::from_secs(3600), ..LIMITS };
        assert!(all.report(&root(), &name("web"), limits).unwrap().converged, "an administrator may accept it");
        assert_eq!(report(&all).missing(), 1);
    }

    #[test]
    fn refuses_each_changed_byte_of_a_state() {
        let text = said(state("b"), 32);
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(verdict(changed).0, Verdict::Lying, "byte {place}");
        }
    }

    #[test]
    fn reports_nodes_that_are_behind_stale_or_foreign() {
        let before = Some(Hash::of(b"the one before"));
        let old = State { made: Time::of_seconds(NOW - 600), manifest: before, number: 6, ..state("b") };
        assert_eq!(verdict(said(old, 32)).0, Verdict::Stale, "as well if the store replays it");
        let other = Hash::of(b"another");
        for (state, part) in [
            (State { manifest: Some(other), number: 6, ..state("b") }, "has seen is 6"),
            (State { generation: Some(other), ..state("b") }, "another generation"),
            (State { mode: None, tables: None, ..state("b") }, "not in force"),
            (State { mode: Some(Mode::Permissive), ..state("b") }, "it is permissive, and should be enforcing"),
            (State { unenforced: 2, ..state("b") }, "2 hooks are not enforced"),
            (State { failures: 1, ..state("b") }, "1 things failed"),
        ] {
            let (verdict, why) = verdict(said(state, 32));
            assert!(verdict == Verdict::Behind && why.contains(part), "{part}: {verdict:?} {why}");
        }
        let states = [("a", said(state("a"), 31)), ("b", said(state("b"), 32)), ("c", said(state("c"), 33))];
        let report = report(&evidence(&states));
        assert!(report.converged && report.nodes[2].verdict == Verdict::Foreign, "{report:?}");
        assert_eq!(report.missing(), 0);
    }

    #[test]
    fn has_not_converged_while_nodes_wait_for_their_stage() {
        let mut waiting = evidence(&[("a", said(state("a"), 31)), ("b", said(state("b"), 32))]);
        let paused = Manifest { progress: Progress::Paused(3), ..plain(7) };
        waiting.manifest = String::from_utf8(signed(paused, &[11, 12])).unwrap();
        let report = report(&waiting);
        assert!(!report.converged && report.nodes.iter().all(|finding| finding.verdict == Verdict::Waiting));
    }

    #[test]
    fn refuses_evidence_whose_manifest_or_register_is_forged() {
        let good = evidence(&[]);
        let forged = Evidence { manifest: good.manifest.replace("number 7", "number 8"), ..good.clone() };
        assert!(matches!(forged.report(&root(), &name("web"), LIMITS), Err(ReportError::Manifest(_))));
        let forged = Evidence { register: good.register.replace("number 2", "number 3"), ..good.clone() };
        assert!(matches!(forged.report(&root(), &name("web"), LIMITS), Err(ReportError::Register(_))));
    }
}
