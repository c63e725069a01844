//! What the guard does: which database is in force, how many processes it checks, and what it has denied.

use serde::{Deserialize, Serialize};

/// The guard in the kernel, and the database in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardStatus {
    /// The digest of the database in force; `None`: one is just being put in force.
    pub in_force: Option<String>,
    /// Modes of setuid programs and of daemons that the database lacks.
    pub setuid: String,
    #[expect(missing_docs, reason = "see above")]
    pub daemon: String,
    /// How many programs the database has.
    pub programs: usize,
    /// How many of them are denied calls that no rule allows.
    pub enforced: usize,
    /// How many rules it has.
    pub rules: usize,
    /// How many processes are guarded.
    pub processes: u32,
    /// Hooks that this kernel lacks: what they would check is not checked.
    pub missing: Vec<String>,
    /// Calls that were checked.
    pub asked: u64,
    /// Calls that no rule allows: denied, granted with a warning, and granted while learning.
    pub denied: u64,
    #[expect(missing_docs, reason = "see above")]
    pub warned: u64,
    #[expect(missing_docs, reason = "see above")]
    pub learnt: u64,
    /// Events that are missing from the log.
    pub lost: u64,
    /// Why its programs do not run, or not all; `None` while all is well.
    pub alarm: Option<String>,
    /// Whether a daemon looks after it, and logs.
    pub watched: bool,
}

impl GuardStatus {
    /// Its rows in a report, below another one: names and values.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let Self { programs, enforced, rules, processes, asked, denied, warned, learnt, lost, .. } = self;
        let canary = match (&self.alarm, self.watched) {
            (Some(alarm), _) => alarm.clone(),
            (None, true) => "its programs run".to_owned(),
            (None, false) => {
                "its programs are attached; no daemon watches and logs: `tollgate enforce --guard`".to_owned()
            }
        };
        let mut rows = vec![
            (
                "  programs",
                format!(
                    "{programs}, {enforced} of them enforced; others: setuid {}, daemon {}",
                    self.setuid, self.daemon
                ),
            ),
            ("  rules", rules.to_string()),
            ("  guarded", format!("{processes} processes")),
            (
                "  calls",
                format!(
                    "{asked} checked, {denied} denied, {warned} granted with a warning, {learnt} granted while learning"
                ),
            ),
            ("  events", format!("{lost} lost")),
            ("  canary", canary),
        ];
        if !self.missing.is_empty() {
            rows.push(("  unchecked", format!("{}: this kernel lacks these hooks", self.missing.join(", "))));
        }
        rows
    }
}
