//! Fleets of simulated nodes on members of an etcd that are killed, cut off, stopped, compacted, or that lie.

use std::fs;

use clap::Parser;
use tokio::time::{sleep, timeout};
use tollgate_fleet::{Hash, shelf::Shelf};

use super::*;
use crate::{
    etcd::{servers::Servers, tests::wait},
    walk::policy,
};

const NODES: usize = 12;

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    place: Place,
}

/// A fleet whose nodes run in this thread.
struct Running {
    fleet: Fleet,
    policy: tempfile::NamedTempFile,
    nodes: LocalSet,
}

impl Running {
    async fn start(servers: &Servers) -> Self {
        let words = servers.options("root");
        let place = Words::try_parse_from(["place"].into_iter().chain(words.split(' '))).unwrap().place;
        let fleet = Fleet::new(NODES, &place, &std::env::temp_dir()).await.unwrap();
        let built = tempfile::NamedTempFile::new().unwrap();
        fs::write(built.path(), policy("one")).unwrap();
        fleet.publish(built.path(), 1).await.unwrap();
        let nodes = LocalSet::new();
        for number in 0..NODES {
            let node = Node::open(&fleet.folder(number)).unwrap();
            let store = place.open(node.name().as_str()).unwrap();
            nodes.spawn_local(async move {
                let spread = Duration::from_millis(200);
                let _: anyhow::Result<()> = agent::run(&node, &store, &Pretended, spread, |_| Ok(())).await;
            });
        }
        Self { fleet, policy: built, nodes }
    }

    /// Lets the nodes run while something else happens.
    async fn during<T>(&self, other: impl Future<Output = T>) -> T {
        self.nodes.run_until(other).await
    }

    async fn publish(&self, number: u64) {
        // A member may have just ended, and another one not know yet that it leads.
        let published = async {
            while self.fleet.publish(self.policy.path(), number).await.is_err() {
                sleep(Duration::from_millis(200)).await;
            }
        };
        self.during(timeout(Duration::from_secs(60), published)).await.expect("published");
    }

    /// Waits until the report says that all nodes have converged.
    async fn converges(&self, within: Duration) {
        let converged = async {
            while self.fleet.converged().await.ok() != Some(NODES) {
                sleep(Duration::from_millis(100)).await;
            }
        };
        let begun = Instant::now();
        let all = self.during(timeout(within, converged)).await;
        assert!(all.is_ok(), "{:?} of {NODES} after {:?}", self.fleet.converged().await, begun.elapsed());
    }

    /// The generation on each node's shelf, and how many nodes have it.
    fn shelves(&self) -> BTreeMap<Option<Hash>, usize> {
        let mut found = BTreeMap::new();
        for number in 0..NODES {
            *found.entry(Shelf::of(&self.fleet.folder(number)).hash()).or_default() += 1;
        }
        found
    }
}

/// Which member leads.
async fn leader(servers: &Servers, members: usize) -> usize {
    for at in (0..members).cycle() {
        let mut client = servers.client(at).await;
        let status = timeout(Duration::from_secs(2), client.status()).await;
        if let Ok(Ok(status)) = status
            && status.leader() == status.header().unwrap().member_id()
        {
            return at;
        }
    }
    unreachable!("a cluster has a leader")
}

#[test]
fn converges_with_one_of_three_members_killed() {
    wait(async {
        let mut servers = Servers::start(3);
        let running = Running::start(&servers).await;
        running.converges(Duration::from_secs(20)).await;
        let leader = leader(&servers, 3).await;
        servers.kill(leader);
        running.publish(2).await;
        running.converges(Duration::from_secs(30)).await;
    });
}

#[test]
fn keeps_what_it_has_while_the_store_is_stopped_and_compacted_and_converges_afterwards() {
    wait(async {
        let mut servers = Servers::start(1);
        let running = Running::start(&servers).await;
        running.converges(Duration::from_secs(20)).await;
        let before = running.shelves();
        assert_eq!(before.values().copied().collect::<Vec<_>>(), [NODES]);
        servers.kill(0);
        running.during(sleep(Duration::from_secs(3))).await;
        assert_eq!(running.shelves(), before, "the last good one");
        servers.begin(0);
        // Nodes that come back find neither their watch nor the history that they knew.
        running.publish(2).await;
        let mut client = servers.client(0).await;
        let now = client.status().await.unwrap().header().unwrap().revision();
        client.compact(now, None).await.unwrap();
        running.converges(Duration::from_secs(40)).await;
        assert_ne!(running.shelves(), before);
    });
}

#[test]
fn takes_nothing_from_a_store_that_replays_or_withholds_and_converges_when_it_is_honest() {
    wait(async {
        let servers = Servers::start(1);
        let running = Running::start(&servers).await;
        running.converges(Duration::from_secs(20)).await;
        let mut client = servers.client(0).await;
        let key = "tollgate/policy/current/simulated";
        let read = |answer: etcd_client::GetResponse| answer.kvs()[0].value().to_vec();
        let old = read(client.get(key, None).await.unwrap());
        running.publish(2).await;
        running.converges(Duration::from_secs(20)).await;
        let shelves = running.shelves();
        let new = read(client.get(key, None).await.unwrap());
        for lie in [old, b"tollgate fleet manifest\n".to_vec(), vec![0; 1_400_000]] {
            client.put(key, lie, None).await.unwrap();
            running.during(sleep(Duration::from_millis(1500))).await;
            assert_eq!(running.shelves(), shelves, "the newest good one");
        }
        client.delete(key, None).await.unwrap();
        running.during(sleep(Duration::from_millis(1500))).await;
        assert_eq!(running.shelves(), shelves, "the newest good one");
        client.put(key, new, None).await.unwrap();
        running.publish(3).await;
        running.converges(Duration::from_secs(20)).await;
        assert_ne!(running.shelves(), shelves);
    });
}

#[test]
#[ignore = "takes long: make test-rest"]
fn converges_though_the_leader_answers_nobody_and_comes_back() {
    wait(async {
        let servers = Servers::start(3);
        let running = Running::start(&servers).await;
        running.converges(Duration::from_secs(20)).await;
        let leader = leader(&servers, 3).await;
        servers.signal(leader, "STOP");
        running.publish(2).await;
        // Nodes whose watch is with that member learn it when it does not answer to a ping.
        running.converges(Duration::from_secs(120)).await;
        servers.signal(leader, "CONT");
        running.publish(3).await;
        running.converges(Duration::from_secs(30)).await;
    });
}
