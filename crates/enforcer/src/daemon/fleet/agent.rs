//! Whether the fleet's agent runs, and whether this node knows what is newest.

use tollgate_client::fleet::{self, AgentState, Looked};
use tracing::{error, info};

use crate::daemon::peer::Process;

/// In seconds: how long an agent may take to come for the first time, and how much longer than it said to come again. Its
/// look may have something to fetch.
const FIRST: u64 = 20 * 60;
const GRACE: u64 = 60;

/// What the daemon has heard of the agent. Times are in seconds since 1970.
#[derive(Debug)]
pub(super) struct Agent {
    /// When this daemon began to wait for it.
    since: u64,
    last: Option<Last>,
    /// When it last knew what is newest.
    fresh: Option<u64>,
    failures: u64,
    /// Whether it was reported to be missing.
    reported: bool,
}

/// Its last look.
#[derive(Debug)]
struct Last {
    at: u64,
    looked: Looked,
    process: Process,
    /// Whether that process is gone.
    ended: bool,
}

impl Agent {
    pub(super) fn new(now: u64) -> Self {
        Self { since: now, last: None, fresh: None, failures: 0, reported: false }
    }

    /// Takes what the agent says of a look.
    pub(super) fn looked(&mut self, now: u64, looked: Looked, process: Process) {
        if looked.cause.is_some() {
            self.failures += 1;
        } else {
            self.fresh = Some(now);
        }
        self.last = Some(Last { at: now, looked, process, ended: false });
    }

    /// Called about once a second: notices that it has ended, and says so once.
    pub(super) fn wake(&mut self, now: u64) {
        if let Some(last) = &mut self.last {
            last.ended = last.ended || !last.process.lives();
        }
        let missing = self.state(now).is_missing();
        match (missing, self.reported) {
            (true, false) => error!(
                "the fleet's agent does not run: this node goes on with what it has, and hears of nothing new; see \
                 `systemctl status tollgate-fleet`"
            ),
            (false, true) => info!("the fleet's agent runs again"),
            _ => {}
        }
        self.reported = missing;
    }

    fn state(&self, now: u64) -> AgentState {
        let Some(Last { at, looked, ended, .. }) = &self.last else {
            let is_late = now > self.since.saturating_add(FIRST);
            return if is_late { AgentState::Silent } else { AgentState::Awaited };
        };
        match looked.next {
            None => AgentState::Once,
            Some(_) if *ended => AgentState::Ended,
            Some(next) if now > at.saturating_add(next.saturating_mul(2)).saturating_add(GRACE) => AgentState::Silent,
            Some(_) => AgentState::Runs,
        }
    }

    /// Since when this node does not know what is newest. `expires`: when the newest manifest does.
    pub(super) fn stale_since(&self, now: u64, expires: Option<u64>) -> Option<u64> {
        let failed = self.last.as_ref().is_some_and(|last| last.looked.cause.is_some());
        let unknown = (failed || self.state(now).is_missing()).then_some(self.fresh.unwrap_or(self.since));
        let expired = expires.filter(|expires| now >= *expires);
        unknown.into_iter().chain(expired).min()
    }

    pub(super) fn report(&self, now: u64) -> fleet::Agent {
        let last = self.last.as_ref();
        fleet::Agent {
            state: self.state(now),
            looked: last.map(|last| last.at),
            failures: self.failures,
            cause: last.and_then(|last| last.looked.cause.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn process() -> (Child, Process) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::open(child.id().cast_signed()).unwrap();
        (child, process)
    }

    fn end(child: &mut Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn good(next: Option<u64>) -> Looked {
        Looked { next, cause: None }
    }

    #[test]
    fn notices_at_once_that_the_agent_has_ended_and_that_another_one_runs() {
        let mut agent = Agent::new(1000);
        let (mut first, process_of_first) = process();
        agent.looked(1010, good(Some(20)), process_of_first);
        agent.wake(1011);
        assert_eq!((agent.report(1011).state, agent.stale_since(1011, None)), (AgentState::Runs, None));
        end(&mut first);
        agent.wake(1012);
        assert_eq!((agent.report(1012).state, agent.stale_since(1012, None)), (AgentState::Ended, Some(1010)));
        assert!(agent.reported);
        let (mut second, process_of_second) = process();
        agent.looked(1020, good(Some(20)), process_of_second);
        agent.wake(1021);
        assert_eq!(
            (agent.report(1021).state, agent.stale_since(1021, None), agent.reported),
            (AgentState::Runs, None, false)
        );
        end(&mut second);
    }

    #[test]
    fn waits_for_an_agent_as_long_as_it_may_take_and_no_longer() {
        let mut agent = Agent::new(1000);
        assert_eq!((agent.report(2200).state, agent.stale_since(2200, None)), (AgentState::Awaited, None));
        assert_eq!((agent.report(2201).state, agent.stale_since(2201, None)), (AgentState::Silent, Some(1000)));
        let (mut child, process) = process();
        agent.looked(3000, good(Some(20)), process);
        assert_eq!(agent.report(3100).state, AgentState::Runs);
        assert_eq!(
            (agent.report(3101).state, agent.stale_since(3101, None)),
            (AgentState::Silent, Some(3000)),
            "it hangs"
        );
        end(&mut child);
    }

    #[test]
    fn expects_nothing_of_an_agent_that_looks_once() {
        let mut agent = Agent::new(1000);
        let (mut child, process) = process();
        agent.looked(1010, good(None), process);
        end(&mut child);
        agent.wake(1011);
        assert_eq!((agent.report(90_000).state, agent.stale_since(90_000, None)), (AgentState::Once, None));
    }

    #[test]
    fn is_stale_since_its_last_good_look_or_since_the_manifest_expired() {
        let mut agent = Agent::new(1000);
        let failed = Looked { next: Some(20), cause: Some("no answer".to_owned()) };
        let mut children = Vec::new();
        for (at, looked) in [(1010, good(Some(20))), (1030, failed.clone()), (1050, failed)] {
            let (child, process) = process();
            agent.looked(at, looked, process);
            children.push(child);
        }
        let report = agent.report(1051);
        assert_eq!((report.failures, report.cause.as_deref(), report.looked), (2, Some("no answer"), Some(1050)));
        assert_eq!(agent.stale_since(1051, Some(5000)), Some(1010));
        assert_eq!(agent.stale_since(1051, Some(1005)), Some(1005), "what happened first");
        children.iter_mut().for_each(end);
    }
}
