//! `tollgate-fleet simulate`: how a store carries a fleet. Each node is the real agent with a connection of its own, and
//! enforces nothing.

mod fleet;
mod tally;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::ExitCode,
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::task::LocalSet;
use tollgate_fleet::{Kept, rollout::Duty, store::Store};

use crate::{
    agent::{self, Event},
    enforcer::{Enforced, Enforcer},
    input::duration,
    node::Node,
    output,
    place::Place,
};
use fleet::Fleet;
use tally::{Spread, Tally, memory};

/// How many files a node has open: its connection, and what it writes.
const FILES: u64 = 2;
/// How many files everything else needs.
const OTHER_FILES: u64 = 200;
/// How many of the failures are printed, the most frequent first.
const SHOWN: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// The built policy that is published
    policy: PathBuf,
    /// How many nodes
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    nodes: usize,
    #[command(flatten)]
    place: Place,
    /// How long after it is told the last node fetches
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    spread: Duration,
    /// How long all nodes may take for a step
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = duration)]
    wait: Duration,
    /// A process of the store, whose memory is read
    #[arg(long = "pid", value_name = "PID")]
    processes: Vec<u32>,
    /// Where the nodes keep what they take; the memory of this machine is fastest
    #[arg(long, value_name = "FOLDER", default_value = "/dev/shm")]
    kept: PathBuf,
}

/// What a node tells the simulation.
struct Heard {
    node: usize,
    at: Instant,
    event: Event,
}

pub(crate) async fn simulate(asked: &Simulate) -> anyhow::Result<ExitCode> {
    allow_files(asked.nodes as u64 * FILES + OTHER_FILES)?;
    let fleet = Fleet::new(asked.nodes, &asked.place, &asked.kept).await?;
    fleet.publish(&asked.policy, 1).await?;
    let empty = memory(&asked.processes)?;
    let (sender, heard) = mpsc::channel();
    let begun = Instant::now();
    start(asked, &fleet, &sender)?;
    let up = hear(&heard, asked, begun, 1)?;
    let published = Instant::now();
    fleet.publish(&asked.policy, 2).await?;
    let second = hear(&heard, asked, published, 2)?;
    let grown = memory(&asked.processes)?.saturating_sub(empty);
    let converged = fleet.converged().await?;
    print(asked, &up, &second, grown, converged)
}

/// Raises the limit of open files, and says if it is too low.
fn allow_files(wanted: u64) -> anyhow::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if most < wanted {
        bail!("{wanted} files must be open at once, and {most} may: raise `ulimit -Hn`, or take fewer --nodes");
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

/// Starts the nodes, on a thread a processor.
fn start(asked: &Simulate, fleet: &Fleet, sender: &Sender<Heard>) -> anyhow::Result<()> {
    let threads = thread::available_parallelism()?.get();
    for first in 0..threads {
        let mut nodes = Vec::new();
        for number in (first..asked.nodes).step_by(threads) {
            let node = Node::open(&fleet.folder(number))?;
            let store = asked.place.open(node.name().as_str())?;
            nodes.push((number, node, store));
        }
        let (sender, spread) = (sender.clone(), asked.spread);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::spawn(move || {
            let tasks = LocalSet::new();
            for (number, node, store) in nodes {
                let sender = sender.clone();
                tasks.spawn_local(async move {
                    let hear = |event| Ok(sender.send(Heard { node: number, at: Instant::now(), event })?);
                    // It ends when the simulation does.
                    let _: anyhow::Result<()> = agent::run(&node, &store, &Pretended, spread, hear).await;
                });
            }
            runtime.block_on(tasks);
        });
    }
    Ok(())
}

/// Hears what nodes say until all of them have the manifest.
fn hear(heard: &Receiver<Heard>, asked: &Simulate, begun: Instant, number: u64) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let text = format!("manifest {number}: ");
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    while tally.looked.len() < asked.nodes {
        let Some(left) = asked.wait.checked_sub(begun.elapsed()) else { break };
        let Ok(Heard { node, at, event }) = heard.recv_timeout(left) else { break };
        let took = at.saturating_duration_since(begun);
        match event {
            Event::Told => drop(tally.told.entry(node).or_insert(took)),
            Event::Looked(said) if said.starts_with(&text) => drop(tally.looked.entry(node).or_insert(took)),
            Event::Looked(_) => {}
            Event::Failed(error) => *failures.entry(format!("{error:#}")).or_default() += 1,
        }
    }
    let mut most: Vec<_> = failures.iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (error, count) in most.into_iter().take(SHOWN) {
        output::line(&format!("{count} times: {error}"))?;
    }
    tally.failures = failures.values().sum();
    tally.missing = asked.nodes - tally.looked.len();
    Ok(tally)
}

fn print(asked: &Simulate, up: &Tally, second: &Tally, grown: u64, converged: usize) -> anyhow::Result<ExitCode> {
    let each = grown / asked.nodes as u64;
    let failed = up.failures + second.failures;
    let told = Spread::of(&second.told).context("no node was told of the second generation: look at the store")?;
    let looked = Spread::of(&second.looked).context("no node has taken the second generation: raise --wait")?;
    let mut lines = vec![
        format!("{} nodes, each with a connection of its own", asked.nodes),
        format!("all up after    {:.1} s", Spread::of(&up.looked).map_or(0.0, |up| up.last.as_secs_f64())),
        format!("told            {told}   goal: 2 s"),
        format!("acknowledged    {looked}   goal: 25 s"),
        format!("failed          {failed} requests, {} nodes   goal: 0", up.missing + second.missing),
        format!("report          {converged} of {} converged", asked.nodes),
    ];
    if !asked.processes.is_empty() {
        lines.push(format!("memory          {} kB a node in the store   goal: 200 kB", each / 1000));
    }
    lines.iter().try_for_each(|line| output::line(line))?;
    Ok(ExitCode::from(u8::from(converged < asked.nodes)))
}

/// Says that everything is in force.
struct Pretended;

impl Enforcer for Pretended {
    async fn offer(&self, _: &Kept, _: Option<Duty>, _: &impl Store) -> anyhow::Result<()> {
        Ok(())
    }

    fn looked(&self, _: Option<Duration>, _: Option<String>) -> anyhow::Result<()> {
        Ok(())
    }

    fn has_changed(&self, _: &Enforced) -> bool {
        false
    }

    fn interval(&self) -> Duration {
        Duration::MAX
    }

    fn enforced(&self, kept: &Kept, duty: Option<Duty>) -> anyhow::Result<Enforced> {
        let (Some(newest), Some(Duty::Take(mode))) = (kept.newest(), duty) else { return Ok(Enforced::default()) };
        let tables = newest.manifest().part("tables".parse()?).map(|entry| entry.hash);
        Ok(Enforced { tables, mode: Some(mode), hooks: 1, ..Enforced::default() })
    }
}
