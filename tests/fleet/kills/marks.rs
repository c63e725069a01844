//! How far a rollout has come on a node, by what agent, daemon and kernel have done: no clock says it.

use std::{
    fs,
    path::Path,
    process::Child,
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

use super::{ACCEPTED, DATABASES, KEPT, TIMEOUT, digest, guarded_by, log, number};

/// What happens in a rollout, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// The agent is started.
    Begun,
    /// It has fetched the generation, checked it, and kept its manifest.
    Fetched,
    /// The daemon has checked what it was offered, and written the generation.
    Copied,
    /// It has noted what it is about to put in force.
    Tried,
    /// The kernel decides by it.
    Switched,
    /// The daemon has kept the manifest.
    Accepted,
    /// It begins with this generation next time.
    Led,
    /// The agent has said so.
    Said,
}

impl Mark {
    pub(super) const ALL: [Self; 8] =
        [Self::Begun, Self::Fetched, Self::Copied, Self::Tried, Self::Switched, Self::Accepted, Self::Led, Self::Said];
}

/// When agent and daemon are killed, one time after the other: first at each mark, then at a random time after it. The
/// switch is at the end of what begins with [`Mark::Tried`].
pub(super) fn plan() -> impl Iterator<Item = (Mark, bool)> {
    use Mark::{Accepted, Begun, Copied, Fetched, Led, Said, Switched, Tried};
    let later = [Tried, Copied, Tried, Begun, Tried, Fetched, Tried, Switched, Tried, Accepted, Tried, Led, Said];
    let at = Mark::ALL.into_iter().map(|mark| (mark, false));
    at.chain(later.into_iter().cycle().map(|mark| (mark, true)))
}

/// How long it took lately from each mark to the next one.
pub(super) type Spans = [Duration; Mark::ALL.len()];

/// A rollout that goes on.
pub(super) struct Rollout {
    number: u64,
    place: usize,
    /// The generation's name.
    generation: String,
    /// When these were written before: the generation's policy, what is tried, and what the agent has said.
    before: [Option<SystemTime>; 3],
}

fn written(path: impl AsRef<Path>) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

impl Rollout {
    /// One that is about to begin, of a manifest with this number and of what is at this place.
    pub(super) fn new(number: u64, place: usize, generation: String) -> Self {
        let mut rollout = Self { number, place, generation, before: [None; 3] };
        rollout.before = rollout.files();
        rollout
    }

    fn files(&self) -> [Option<SystemTime>; 3] {
        let policy = format!("{ACCEPTED}/generations/{}/policy", self.generation);
        [policy, format!("{ACCEPTED}/trial"), "/node/state".to_owned()].map(written)
    }

    fn is_reached(&self, mark: Mark) -> bool {
        let rewritten = |place: usize| self.files()[place] != self.before[place];
        let [daemon, agent] = KEPT;
        let is_kept = |path| Path::new(path).exists() && number(path) == self.number;
        match mark {
            Mark::Begun => true,
            Mark::Fetched => is_kept(agent),
            Mark::Copied => rewritten(0),
            Mark::Tried => rewritten(1),
            Mark::Switched => guarded_by() == Some(digest(DATABASES[self.place])),
            Mark::Accepted => is_kept(daemon),
            Mark::Led => {
                let link = fs::read_link(format!("{ACCEPTED}/generations/current"));
                link.is_ok_and(|link| link == Path::new(&self.generation))
            }
            Mark::Said => rewritten(2),
        }
    }

    /// The last mark of those that are reached one after the other.
    pub(super) fn reached(&self) -> Mark {
        self.on_from(Mark::Begun)
    }

    fn on_from(&self, mark: Mark) -> Mark {
        let further = Mark::ALL.into_iter().filter(|next| *next > mark).take_while(|next| self.is_reached(*next));
        further.last().unwrap_or(mark)
    }

    /// Waits until an agent that was just started, or the daemon, has reached a mark. Notes how long each step took.
    #[track_caller]
    pub(super) fn wait(&self, mark: Mark, agent: &mut Child, spans: &mut Spans) {
        let (begun, mut last) = (Instant::now(), (Mark::Begun, Instant::now()));
        loop {
            let now = self.on_from(last.0);
            if now > last.0 {
                // What came between two looks took no time.
                spans[last.0 as usize..now as usize].fill(Duration::ZERO);
                spans[last.0 as usize] = last.1.elapsed();
                last = (now, Instant::now());
            }
            if now >= mark {
                return;
            }
            assert!(begun.elapsed() < TIMEOUT, "waited too long for {mark:?}, is at {now:?}\n{}", log());
            let ended = agent.try_wait().unwrap();
            assert!(ended.is_none(), "the agent has ended at {now:?}: {ended:?}\n{}", log());
            sleep(Duration::from_micros(500));
        }
    }
}
