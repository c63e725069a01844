//! `tollgate-fleet agent`: a node waits for what its fleet publishes, takes it, and says so, for as long as it runs.

use std::{
    future,
    path::PathBuf,
    pin::pin,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use tokio::time::{sleep, timeout};
use tollgate_fleet::{Kept, store::Store};

use crate::{
    daemon::Daemon,
    enforcer::Enforcer,
    input::duration,
    node::{KEPT, Node, Seen},
    output,
    place::Place,
};

/// How long a node waits at least after it was told, so that no store keeps it busy.
const REST: Duration = Duration::from_millis(200);
/// How long a node waits after the first failure. It doubles with each further one, up to the store's interval.
const PAUSE: Duration = Duration::from_secs(1);

/// How long it takes at most to write a file. One that is unfinished for longer is left by an agent that was killed.
const WRITING: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Agent {
    #[command(flatten)]
    place: Place,
    /// Where this node keeps its key and what it has accepted
    #[arg(long, value_name = "FOLDER", default_value = KEPT)]
    kept: PathBuf,
    /// How long after it begins, or is told, the last node fetches, so that nodes do not all come at once
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    spread: Duration,
    /// Look once, and end
    #[arg(long)]
    once: bool,
}

/// What happens to an agent.
pub(crate) enum Event {
    /// The store says that something may be new.
    Told,
    /// It has looked, taken what is its turn, and said what is in force.
    Looked(String),
    /// It has not; it goes on with what it has.
    Failed(anyhow::Error),
}

pub(crate) async fn agent(Agent { place, kept, spread, once }: &Agent) -> anyhow::Result<ExitCode> {
    let node = Node::open(kept)?;
    if let Err(cause) = Kept::open(kept).and_then(|kept| kept.sweep(WRITING)) {
        output::failed(&cause.into());
    }
    let (store, daemon) = (place.open(node.name().as_str())?, Daemon { folder: kept.clone() });
    if *once {
        let (seen, looked) = node.look(&store, &daemon).await;
        let told = daemon.looked(None, seen.stale);
        output::line(&looked?)?;
        told?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut before = String::new();
    run(&node, &store, &daemon, *spread, |event| {
        let said = match event {
            Event::Told => return Ok(()),
            Event::Looked(said) => said,
            Event::Failed(error) => format!("stale: {error:#}"),
        };
        if said != before {
            output::line(&said)?;
            before = said;
        }
        Ok(())
    })
    .await
}

/// Runs an agent until whoever hears of its events fails.
pub(crate) async fn run<T>(
    node: &Node,
    store: &impl Store,
    enforcer: &impl Enforcer,
    spread: Duration,
    mut hear: impl FnMut(Event) -> anyhow::Result<()>,
) -> anyhow::Result<T> {
    let interval = store.interval();
    let mut failures = 0;
    // All nodes may have begun at once, such as after a power failure.
    sleep(node.share(spread)).await;
    loop {
        let (seen, looked) = node.look(store, enforcer).await;
        let pause = if looked.is_ok() { interval } else { PAUSE.saturating_mul(1 << failures.min(16)).min(interval) };
        failures = if looked.is_ok() { 0 } else { failures + 1 };
        let pause = pause + node.share(pause);
        let heard = enforcer.looked(Some(pause + REST + spread), seen.stale.clone());
        hear(looked.and_then(|said| heard.map(|()| said)).map_or_else(Event::Failed, Event::Looked))?;
        if told(node, store, enforcer, &seen, pause).await {
            hear(Event::Told)?;
            sleep(REST + node.share(spread)).await;
        }
    }
}

/// Waits until the store says that something is new, or something else is in force, and at most so long. Returns whether the
/// store said so.
async fn told(node: &Node, store: &impl Store, enforcer: &impl Enforcer, seen: &Seen, pause: Duration) -> bool {
    let (end, head) = (Instant::now() + pause, node.head());
    let mut changed = pin!(async {
        match &seen.revision {
            Some(revision) => store.changed(&head, revision.as_ref()).await,
            // The store did not answer.
            None => future::pending().await,
        }
    });
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if timeout(left.min(enforcer.interval()), changed.as_mut()).await.is_ok() {
            return true;
        }
        // Whoever promotes a rollout must hear at once that this node has gone back.
        if Instant::now() >= end || enforcer.has_changed(&seen.enforced) {
            return false;
        }
    }
}
