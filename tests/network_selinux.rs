//! Two machines on a wire, of which one or both are under the kernel's SELinux with NetLabel: who receives what, and with which
//! label.
//!
//! QEMU, a kernel and Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{
    Scratch,
    machine::source,
    pair::Pair,
    steps::{Guest, Step, policy},
    word,
};

/// The levels of tests/network/names.sh.
const SENDERS: [&str; 5] = ["s0", "s1", "s1:c0,c2", "s3", "s3:c0.c5"];
const RECEIVERS: [&str; 4] = ["s0", "s1", "s1:c0.c5", "s3:c0.c15"];

/// The protocols of which a receiver sees the sender's context. The kernel has no IPV6_PASSSEC, and passes contexts beside
/// datagrams (SCM_SECURITY) only from security modules of its own.
const SEEN_UNDER_SELINUX: [&str; 4] = ["icmp4", "tcp4", "tcp6", "udp4"];
const SEEN_UNDER_TOLLGATE: [&str; 2] = ["tcp4", "tcp6"];

/// What was sent: by which protocol in which network, from and to which level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    protocol: String,
    network: String,
    sender: &'static str,
    receiver: &'static str,
}

/// The label that each receiver saw; nothing if it received nothing.
type Table = BTreeMap<Row, Option<String>>;

/// All rows, as if nobody had received anything.
fn nothing() -> Table {
    let mut table = Table::new();
    for (protocol, networks) in [("udp4", 3), ("tcp4", 3), ("icmp4", 3), ("udp6", 1), ("tcp6", 1), ("icmp6", 1)] {
        let names = if networks == 3 { &["10.77.0", "10.77.2", "10.77.5"][..] } else { &["fd00:77:"] };
        for (network, sender, receiver) in names.iter().flat_map(|network| {
            SENDERS.iter().flat_map(move |sender| RECEIVERS.iter().map(move |receiver| (network, sender, receiver)))
        }) {
            let (protocol, network) = (protocol.to_owned(), (*network).to_owned());
            table.insert(Row { protocol, network, sender, receiver }, None);
        }
    }
    table
}

/// The table in the output of `heard`: lines `PROTOCOL RECEIVER PROTOCOL length=... from=... label=...`.
fn table(heard: &Step) -> Table {
    let mut table = nothing();
    for line in heard.is(0, &[]).text.lines().filter(|line| line.contains(" length=")) {
        let words: Vec<&str> = line.split(' ').collect();
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)).unwrap_or_default();
        assert_eq!(value("payload="), "good", "{line}");
        let length: usize = value("length=").parse().unwrap();
        let network = value("from=").rsplit_once(['.', ':']).unwrap().0.to_owned();
        let receiver = RECEIVERS.into_iter().find(|level| *level == words[1]).unwrap();
        let row = Row { protocol: words[0].to_owned(), network, sender: SENDERS[length - 100], receiver };
        *table.get_mut(&row).unwrap_or_else(|| panic!("{line}")) = Some(value("label=").to_owned());
    }
    table
}

/// The categories of a level: `s3:c0.c5` has 0 to 5, and `s1:c0,c2` two of them.
fn categories(level: &str) -> BTreeSet<u32> {
    let number = |name: &str| name[1..].parse::<u32>().unwrap();
    let parts = level.split_once(':').map_or("", |(_, categories)| categories).split(',').filter(|p| !p.is_empty());
    parts
        .flat_map(|part| {
            let (first, last) = part.split_once('.').unwrap_or((part, part));
            number(first)..=number(last)
        })
        .collect()
}

/// Whether what a level sends may be received at another.
fn dominates(receiver: &str, sender: &str) -> bool {
    receiver[1..2] >= sender[1..2] && categories(receiver).is_superset(&categories(sender))
}

/// Prints a table: networks beside one another.
fn tell(name: &str, table: &Table) {
    println!("{name}");
    for (row, label) in table {
        let seen = label.as_ref().map_or("denied".to_owned(), |label| format!("received as {label}"));
        println!("{} {} {} -> {}: {seen}", row.protocol, row.network, row.sender, row.receiver);
    }
}

/// Fails unless exactly those receive who dominate the sender, and see the sender's level if their protocol is among these.
fn assert_by_level(name: &str, seen: &[&str], table: &Table) {
    tell(name, table);
    for (row, label) in table {
        let expected = dominates(row.receiver, row.sender).then(|| {
            let sees = seen.contains(&row.protocol.as_str());
            if sees { format!("system_u:object_r:netmsg_t:{}", row.sender) } else { "none".to_owned() }
        });
        assert_eq!(*label, expected, "{name}: {row:?}");
    }
}

/// A guest under Tollgate, which labels what it sends as NetLabel does at the other end.
fn tollgate<'s>(scratch: &'s Scratch, kernel: &'static str) -> Guest<'s> {
    let built = policy(scratch, "mls", &[source("tests/network/mls.cil")]);
    let guest = Guest::under(scratch, kernel, &built).modules(&["sch_ingress", "cls_bpf"]);
    guest.with(&source("tests/network/network.toml"), "/network.toml")
}

/// A guest under the kernel's SELinux, which labels what it sends.
fn selinux<'s>(scratch: &'s Scratch, kernel: &'static str) -> Guest<'s> {
    let built = policy(scratch, "mls", &[source("tests/network/mls.cil")]);
    let image = scratch.path("image");
    scratch.run(&["policy", "export", word(&built), "--image", word(&image)]).with(0);
    Guest::under(scratch, kernel, &image).lsm("selinux")
}

/// Both send everything to all receivers of the other.
fn everything(pair: Pair<'_>) -> Pair<'_> {
    let pair = pair.both("hear", "hear").meet("ready");
    let pair = pair.at(0, "say", "say").meet("said").at(1, "say", "say").meet("answered");
    pair.both("heard", "heard")
}

#[test]
#[ignore = "takes long: make test-rest"]
fn receives_what_it_dominates_between_two_machines_under_selinux() {
    let scratch = Scratch::new();
    let pair = Pair::new(&scratch, [selinux(&scratch, "6.1"), selinux(&scratch, "6.1")]);
    let pair = pair.both("enforce", "under_selinux").both("netlabel", "netlabel").meet("labelled");
    for (number, steps) in everything(pair).run().iter().enumerate() {
        for step in ["join", "enforce", "netlabel", "hear", "say"] {
            steps[step].is(0, &[]);
        }
        assert_by_level(&format!("guest {}", number + 1), &SEEN_UNDER_SELINUX, &table(&steps["heard"]));
    }
}

#[test]
fn agrees_with_selinux_at_the_other_end_of_a_wire() {
    let scratch = Scratch::new();
    let pair = Pair::new(&scratch, [tollgate(&scratch, "6.1"), selinux(&scratch, "6.1")]);
    let pair = pair.at(0, "enforce", "under_tollgate").at(1, "enforce", "under_selinux");
    let pair = pair.at(1, "netlabel", "netlabel").meet("labelled");
    let [first, second] = everything(pair).at(0, "status", "tollgate net status").run();
    for (name, steps) in [("Tollgate", &first), ("SELinux", &second)] {
        for step in ["join", "enforce", "hear", "say"] {
            steps.get(step).unwrap_or_else(|| panic!("{name}: no {step}")).is(0, &[]);
        }
    }
    assert_by_level("to Tollgate", &SEEN_UNDER_TOLLGATE, &table(&first["heard"]));
    assert_by_level("to SELinux", &SEEN_UNDER_SELINUX, &table(&second["heard"]));
}
