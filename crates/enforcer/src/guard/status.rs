//! What `tollgate status` and `tollgate guard status` report of the guard.

use std::sync::atomic::{AtomicU32, Ordering};

use tollgate_client::guard::GuardStatus;
use tollgate_guard::{Class, Database, Mode};
use tracing::warn;

use super::{Finding, Guard, GuardError};
use crate::{guarded, programs::Pins};

impl Guard {
    /// What it does, with the database in force. `found` is what the canary has found; without one, only links are looked for.
    pub fn status(&self, database: &Database, found: Option<&Finding>) -> GuardStatus {
        let known = |what, found: Result<Vec<String>, GuardError>| {
            found.unwrap_or_else(|cause| {
                warn!(%cause, "{what} is not known: {cause}");
                Vec::new()
            })
        };
        let links = found.is_none().then(|| self.look_for_links(&known("which programs should run", Self::expected())));
        let counts = self.counts();
        GuardStatus {
            in_force: self.database().map(|digest| digest.to_string()),
            setuid: database.default_mode(Class::Setuid).to_string(),
            daemon: database.default_mode(Class::Daemon).to_string(),
            programs: database.programs().len(),
            enforced: database.programs().filter(|(_, program)| program.mode == Mode::Enforce).count(),
            rules: database.rule_count(),
            processes: self.processes(),
            missing: known("which hooks this kernel lacks", Self::missing()),
            asked: counts.asked,
            denied: counts.denied,
            warned: counts.warned,
            learnt: counts.learnt,
            lost: counts.lost,
            alarm: found.or(links.as_ref()).and_then(Finding::alarm).or_else(|| self.is_deaf()),
            watched: self.is_watched(),
        }
    }

    /// The problem, if the enforcer does not tell it of domains.
    fn is_deaf(&self) -> Option<String> {
        guarded::is_deaf(&Pins::default(), &self.pins).then(|| {
            "the guard does not see who enters domains with the attribute `guarded`: start the daemon again".to_owned()
        })
    }

    /// Whether a daemon's canary looks after it.
    fn is_watched(&self) -> bool {
        // SAFETY: the member lies in the mapping, aligned.
        let thread = unsafe { AtomicU32::from_ptr(&raw mut (*self.state.get()).canary) }.load(Ordering::Relaxed);
        // A daemon that was killed has left its number.
        thread != 0
            && std::fs::read_to_string(format!("/proc/{thread}/comm"))
                .is_ok_and(|name| name.trim() == super::canary::NAME)
    }
}
