//! Three guests that enforce, and three members of an etcd: what is published reaches all of them, whatever becomes of the
//! members, and a bad policy reaches its first stage alone.

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use super::{
    members::{Members, STORE},
    node::{Node, boot},
};
use crate::program::{
    Ended, Scratch,
    guests::Taken,
    machine::{policy, source},
    report, report_time,
    switch::Switch,
    word,
};

/// An hour: how far the nodes' clocks are apart, and how long the store is stopped by them.
const HOUR: i64 = 3600;
/// How far each node's clock is ahead of this machine's.
const CLOCKS: [i64; 3] = [0, -HOUR, HOUR];
/// The report, also while clocks are that far apart.
const REPORT: &str = "report --group web --silence 6h --skew 3h";

struct Fleet<'s> {
    scratch: &'s Scratch,
    switch: &'s Switch,
    nodes: Vec<Node>,
    figures: Vec<String>,
    _places: Taken,
}

impl<'s> Fleet<'s> {
    /// Makes the keys and the root file.
    fn make(scratch: &Scratch, switch: &Switch) {
        for key in ["root", "publish", "approve"] {
            scratch.run(&["key", "new", word(&scratch.path(key)), "--name", key]).with(0);
        }
        let keys = "--sign root --root-key root.pub --publish-key publish.pub --approve-key approve.pub";
        fleet(scratch, switch, &format!("init example --store {STORE} --root fleet.root {keys}")).with(0);
    }

    /// Boots three nodes, whose clocks are an hour apart, and enrols them. The first is the canary.
    fn start(scratch: &'s Scratch, switch: &'s Switch, policy: &Path) -> Self {
        let (mut nodes, places) = boot(scratch, switch, policy, [1, 2, 3]);
        for ((node, clock), also) in nodes.iter_mut().zip(CLOCKS).zip(["canary", "", ""]) {
            node.set_clock(clock);
            let (name, digits) = (node.name.clone(), node.enrol(also));
            let store = format!("--store {STORE} --root fleet.root --sign approve");
            fleet(scratch, switch, &format!("approve {name} --key {digits} {store}")).with(0);
            node.begin();
        }
        Self { scratch, switch, nodes, figures: Vec::new(), _places: places }
    }

    fn command(&self, line: &str) -> Ended {
        fleet(self.scratch, self.switch, &format!("{line} --store {STORE} --root fleet.root"))
    }

    /// Publishes a policy. Returns its generation.
    fn publish(&self, policy: &str, more: &str) -> String {
        let said = self.command(&format!("publish {policy} --group web --sign publish {more}")).with(0).stdout;
        said.split("generation ").nth(1).unwrap().split(',').next().unwrap().to_owned()
    }

    /// Publishes a policy, which all nodes put in force. Notes how long that takes.
    fn converges(&mut self, what: &str, policy: &str) {
        let (begun, generation) = (Instant::now(), self.publish(policy, ""));
        self.command(&format!("{REPORT} --wait 10min")).with(0);
        self.figures.push(format!("{what} {:.1} s", begun.elapsed().as_secs_f64()));
        for node in &mut self.nodes {
            let (policy, mode) = node.in_force();
            assert!(policy.contains(&generation) && mode == "enforcing", "{}, {what}: {policy}, {mode}", node.name);
        }
    }

    /// A clock that is an hour off is reported as such, and no node is called a liar for it.
    fn check_clocks(&self) {
        assert_eq!(self.verdicts(), ["converged", "skewed", "skewed"]);
    }

    /// What the report says of each node.
    fn verdicts(&self) -> Vec<String> {
        let said = self.command("report --group web --json").with(1).json();
        let nodes = said["nodes"].as_array().expect("nodes");
        nodes.iter().map(|node| node["verdict"].as_str().expect("a verdict").to_owned()).collect()
    }

    /// Sets the clocks so many seconds ahead of this machine's.
    fn set_clocks(&mut self, clocks: [i64; 3]) {
        self.nodes.iter_mut().zip(clocks).for_each(|(node, clock)| node.set_clock(clock));
    }

    /// Nothing that was enforced is lost: the service was granted its secret each time, and could never write it.
    fn check_service(&mut self, what: &str, nodes: std::ops::Range<usize>) -> u64 {
        let mut all = 0;
        for node in &mut self.nodes[nodes] {
            let (rounds, wrong) = node.served();
            assert_eq!(wrong, "", "{}, {what}", node.name);
            all += rounds;
        }
        all
    }

    /// A bad policy stops at its first stage: the canary has refused it or gone back, and the others never saw it.
    fn stops_at_the_canary(&mut self, policy: &str, more: &str, why: &str) {
        let good: Vec<_> = self.nodes.iter_mut().map(Node::in_force).collect();
        let stages = [
            "--stage".to_owned(),
            "group canary enforcing hold 0 denials 30 missing 0".to_owned(),
            "--stage".to_owned(),
            "share 100 enforcing hold 0 denials 30 missing 0".to_owned(),
        ];
        let line = format!("publish {policy} --group web --sign publish {more} --store {STORE} --root fleet.root");
        let words: Vec<&str> = line.split_ascii_whitespace().chain(stages.iter().map(String::as_str)).collect();
        let said = run(self.scratch, self.switch, &words).with(0).stdout;
        let bad = said.split("generation ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        let begun = Instant::now();
        while !self.nodes[0].does("tollgate status --json 2>/dev/null").contains(why) {
            assert!(begun.elapsed() < Duration::from_secs(600), "the canary does not say {why:?}");
            sleep(Duration::from_secs(1));
        }
        self.figures.push(format!("{policy}: stopped after {:.1} s", begun.elapsed().as_secs_f64()));
        // It says so itself, soon.
        while self.verdicts()[0] == "converged" {
            assert!(begun.elapsed() < Duration::from_secs(600), "nobody is told that the canary has gone back");
            sleep(Duration::from_secs(1));
        }
        self.figures.push(format!("and reported after {:.1} s", begun.elapsed().as_secs_f64()));
        // As long as the canary is without proof, the next stage does not begin.
        self.command("rollout promote --group web --sign publish").with(2);
        for (node, good) in self.nodes.iter_mut().zip(good) {
            assert_eq!(node.in_force(), good, "{}", node.name);
        }
        for node in &mut self.nodes[1..] {
            assert_ne!(node.order(&format!("ls /node/generations/{bad}")).0, 0, "{} has seen it", node.name);
        }
    }
}

/// Runs `tollgate fleet` at the switch.
fn fleet(scratch: &Scratch, switch: &Switch, line: &str) -> Ended {
    run(scratch, switch, &line.split_ascii_whitespace().collect::<Vec<_>>())
}

fn run(scratch: &Scratch, switch: &Switch, words: &[&str]) -> Ended {
    switch.hub.within(|| scratch.run(&[&["fleet"], words].concat()))
}

#[test]
#[ignore = "takes long: make verify"]
fn reaches_three_guests_whatever_becomes_of_the_store_and_stops_a_bad_policy_at_its_first_stage() {
    let scratch = Scratch::new();
    let base = source("tests/enforcer/policy.cil");
    let grant = scratch.file("grant.cil", "(allow visitor three (file (read open getattr)))\n");
    let more = scratch.file("more.cil", "(type more)\n");
    // All but the first let the service read its secret.
    let denies = policy(&scratch, "denies", std::slice::from_ref(&base));
    policy(&scratch, "one", &[base.clone(), grant.clone()]);
    policy(&scratch, "two", &[base, grant, more]);
    scratch.file("asked", "system_u:system_r:visitor:s0\tsystem_u:object_r:three:s0\tfile\t-read\n");
    let switch = Switch::new();
    let mut members = Members::start(&switch, &scratch);
    Fleet::make(&scratch, &switch);
    let mut fleet = Fleet::start(&scratch, &switch, &denies);

    fleet.converges("all members", "one");
    fleet.check_clocks();
    fleet.nodes.iter_mut().for_each(Node::serve);
    fleet.converges("the next one", "two");
    let other = (members.leader().unwrap() + 1) % 3;
    members.kill(other);
    fleet.converges("a member killed", "one");
    members.begin_all();
    let leader = members.leader().unwrap();
    members.set_joined(leader, false);
    fleet.converges("the leader cut off", "two");
    members.set_joined(leader, true);
    fleet.check_service("members come and go", 0..3);

    members.kill_all();
    fleet.set_clocks(CLOCKS.map(|clock| clock + HOUR));
    sleep(Duration::from_secs(20));
    let before: Vec<_> = fleet.nodes.iter_mut().map(Node::in_force).collect();
    assert!(before.iter().all(|(_, mode)| mode == "enforcing"), "{before:?}");
    for node in &mut fleet.nodes {
        assert!(node.does("cat /agent").contains("stale"), "{} says that it is", node.name);
    }
    fleet.check_service("an hour without store", 0..3);
    members.begin_all();
    members.compact();
    fleet.converges("after an hour without store, compacted", "one");
    let rounds = fleet.check_service("the store comes back", 0..3);

    // With clocks that are right, nobody's word for them is needed.
    fleet.set_clocks([0; 3]);
    fleet.converges("with clocks set right", "two");
    fleet.command("report --group web").with(0);
    fleet.stops_at_the_canary("one", "--sanity asked", "a sanity question fails");
    fleet.check_service("a question fails", 0..3);
    fleet.stops_at_the_canary("denies", "", "denials in a minute");
    fleet.check_service("a service is denied", 1..3);
    fleet.nodes[0].served();
    fleet.converges("the good one after it", "two");
    let rounds = rounds.max(fleet.check_service("the end", 0..3));
    report_time("publish to converged, three guests", &fleet.figures.join("; "), "each catches up");
    report("the service's acts that were decided otherwise", &format!("0 of {rounds}"), "0", rounds > 300);
}
