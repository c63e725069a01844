//! The same between two machines: two guests on a wire, both emulated. Their wall clock has the emulator's own time in it, so only
//! the order of the figures says something about machines.

use std::collections::BTreeMap;

use super::turns::Turns;
use crate::program::{
    Scratch,
    machine::source,
    pair::Pair,
    report_time,
    steps::{Guest, policy},
};

/// Networks of the wire, and what is in their packets.
const NETWORKS: [(u8, &str); 3] = [(0, "no label in packets"), (2, "CIPSO"), (5, "sealed")];
const ROUNDS: usize = 12;
/// The figures of a line: its first word, and the percentiles or the rate.
const FIGURES: [(&str, &str, &str); 4] = [
    ("trips length=1 ", "UDP, 1 B round trip", "us"),
    ("trips length=1024 ", "UDP, 1 KB round trip", "us"),
    ("stream", "TCP stream, time per MB", "us"),
    ("connections", "TCP connection", "us"),
];

/// Both machines have these: packets of the first network are not changed, and have the context that is written here.
const FILE: &str = "[[doi]]\nnumber = 1\ntag = \"bitmap\"\n[[doi]]\nnumber = 16\ntag = \"sealed\"\n\
    [[zone]]\naddresses = [\"10.77.0.0/24\"]\nunlabelled = \"system_u:system_r:talker:s3:c0,c1\"\n\
    [[zone]]\naddresses = [\"10.77.2.0/24\"]\ndoi = 1\nunlabelled = \"refuse\"\n\
    [[zone]]\naddresses = [\"10.77.5.0/24\"]\ndoi = 16\nunlabelled = \"refuse\"\n\
    [sealed]\nnode = NODE\nkeys = \"/network.keys\"\ntolerance = 16384\n";

/// `serve SECONDS` and `measure ROUNDS NETWORK...`, which run as `own` says.
const NAMES: &str = "\
serve() {
	own talk echo udp 4 7000 $1 > /dev/null 2>&1 &
	own talk sink 4 7001 $1 > /dev/null 2>&1 &
	sleep 2
}
measure() {
	rounds=$1
	shift
	round=0
	while [ $round -lt $rounds ]; do
		for network in $@; do
			to=10.77.$network.2
			echo network=$network
			own talk trips 4 $to 7000 1 100
			own talk trips 4 $to 7000 1024 100
			own talk stream 4 $to 7001 1000
			own talk connections 4 $to 7001 1000
		done
		round=$((round + 1))
	done
}
";

fn guest<'s>(scratch: &'s Scratch, node: u16) -> Guest<'s> {
    let built = policy(scratch, "network", &[source("crates/study/src/network.cil")]);
    let file = scratch.file(&format!("network{node}"), &FILE.replace("NODE", &node.to_string()));
    let keys = scratch.file("keys", "1 00112233445566778899aabbccddeeff\n");
    let guest = Guest::under(scratch, "6.1", &built).modules(&["sch_ingress", "cls_bpf"]);
    guest.with(&file, "/network.toml").with(&keys, "/network.keys")
}

/// What a step printed: for each kind of line and each network, its lines.
fn lines(text: &str) -> BTreeMap<(usize, u8), Vec<BTreeMap<String, f64>>> {
    let (mut network, mut found) = (0, BTreeMap::<_, Vec<_>>::new());
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("network=") {
            network = number.parse().unwrap();
        } else if let Some(kind) = FIGURES.iter().position(|(begin, ..)| line.starts_with(begin)) {
            let values = line.split(' ').filter_map(|word| word.split_once('='));
            let values = values.map(|(name, value)| (name.to_owned(), value.parse().unwrap()));
            found.entry((kind, network)).or_default().push(values.collect());
        }
    }
    found
}

/// Microseconds: the middle of the round trips, or the time per connection or megabyte.
fn figure(line: &BTreeMap<String, f64>) -> f64 {
    match (line.get("p50"), line.get("bytes"), line.get("count")) {
        (Some(middle), ..) => *middle,
        (_, Some(bytes), _) => line["microseconds"] / (bytes / 1e6),
        (_, _, Some(count)) => line["microseconds"] / count,
        _ => panic!("no figure: {line:?}"),
    }
}

/// The middle of a round's percentile, over the rounds.
fn percentile(all: &[BTreeMap<String, f64>], name: &str) -> Option<f64> {
    let mut values: Vec<f64> = all.iter().filter_map(|line| line.get(name).copied()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn tell(all: &BTreeMap<(usize, u8), Vec<BTreeMap<String, f64>>>, kind: usize, network: u8, name: &str, first: u8) {
    let (own, base) = (&all[&(kind, network)], &all[&(kind, first)]);
    let mut turns = Turns::new(2);
    base.iter().for_each(|line| turns.take(0, figure(line)));
    own.iter().for_each(|line| turns.take(1, figure(line)));
    let (_, what, unit) = FIGURES[kind];
    let percentiles = ["p50", "p95", "p99"].map(|name| percentile(own, name));
    let percentiles = if let [Some(p50), Some(p95), Some(p99)] = percentiles {
        format!("; p50 {p50:.0}, p95 {p95:.0}, p99 {p99:.0}")
    } else {
        String::new()
    };
    report_time(&format!("{what}, {name}"), &format!("{}{percentiles}", turns.tell(1, unit)), "none");
}

#[test]
fn tells_what_labels_cost_between_two_machines_by_the_wall_clock() {
    let scratch = Scratch::new();
    let pair = Pair::new(&scratch, [guest(&scratch, 7), guest(&scratch, 8)]).names(NAMES);
    let pair = pair.both("bare", "own() { \"$@\"; }; chmod 600 /network.keys").at(1, "serve bare", "serve 600");
    let pair = pair.meet("bare").at(0, "measure bare", &format!("measure {ROUNDS} 0")).meet("measured");
    let pair = pair.at(1, "end bare", "kill $(pidof talk); sleep 1");
    let enforce = "under_tollgate && own() { as s3:c0,c1 \"$@\"; }";
    let pair = pair.both("enforce", enforce).at(1, "serve", "serve 1200").meet("enforced");
    let pair = pair.at(0, "measure", &format!("measure {ROUNDS} 0 2 5")).meet("done");
    let [first, second] = pair.both("status", "tollgate net status --json").run();
    for steps in [&first, &second] {
        steps["enforce"].is(0, &[]);
        let packets = steps["status"].is(0, &[]).json()["packets"].clone();
        println!("packets: {packets}");
        assert!(packets["labelled"].as_u64() > Some(0) && packets["accepted"].as_u64() > Some(0), "{packets}");
    }
    let (bare, all) = (lines(&first["measure bare"].text), lines(&first["measure"].text));
    for kind in 0..FIGURES.len() {
        tell(&bare, kind, 0, "nothing enforced", 0);
        for (network, name) in NETWORKS {
            tell(&all, kind, network, name, 0);
        }
    }
}
