//! Contexts of other machines that sealed labels name: the machine that has sent them is asked, and what it does not say stays
//! unknown.
//!
//! QEMU, a kernel and Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use serde_json::Value;

use crate::program::{
    Scratch,
    machine::source,
    pair::Pair,
    steps::{Guest, Step, policy},
};

/// Sealed labels, and no packet without one. The range leaves out the highest level, which the machine's own context has.
const NETWORKS: &str = "[[doi]]\nnumber = 16\ntag = \"sealed\"\n\
                        [[zone]]\naddresses = [\"10.77.0.0/24\", \"fd00:77::/64\"]\ndoi = 16\nunlabelled = \"refuse\"\n\
                        range = \"s0-s3:c0.c15\"\n\
                        [sealed]\nnode = NODE\nkeys = \"/network.keys\"\ntolerance = 16384\n";

/// A guest under Tollgate. Both have the same policy and the same key.
fn guest<'s>(scratch: &'s Scratch, node: u16) -> Guest<'s> {
    let built = policy(scratch, "mls", &[source("tests/network/mls.cil")]);
    let networks = scratch.file(&format!("network{node}"), &NETWORKS.replace("NODE", &node.to_string()));
    let keys = scratch.file("keys", "1 00112233445566778899aabbccddeeff\n");
    let guest = Guest::under(scratch, "6.1", &built).modules(&["sch_ingress", "cls_bpf"]);
    guest.with(&networks, "/network.toml").with(&keys, "/network.keys")
}

/// What a guest says of questions and answers, and how many packets it dropped because of their context.
fn contexts(step: &Step) -> (Value, u64) {
    let report = step.is(0, &[]).json();
    (report["contexts"].clone(), report["packets"]["dropped_identifier"].as_u64().unwrap())
}

#[test]
fn learns_a_context_that_only_the_sender_has_met() {
    let scratch = Scratch::new();
    let hear = "for family in 4 6; do as s3:c0.c15 talk recv tcp $family 7000 600 > /tmp/tcp$family 2>&1 & done
        as s3:c0.c15 talk recv udp 4 7001 600 > /tmp/udp4 2>&1 &
        for attempt in $(seq 100); do [ $(cat /tmp/tcp* /tmp/udp* | grep -c ready) = 3 ] && break; sleep 0.1; done";
    let say = "as s1:c1,c3 talk send udp 4 10.77.0.2 7001 100 --wait 1
        as s1:c1,c3 talk send tcp 4 10.77.0.2 7000 101 --wait 20000
        as s2:c5,c7 talk send tcp 6 fd00:77::2 7000 102 --wait 20000
        as s1:c1,c3 talk send udp 4 10.77.0.2 7001 103 --wait 200";
    let pair = Pair::new(&scratch, [guest(&scratch, 7), guest(&scratch, 8)]);
    let pair =
        pair.both("enforce", "chmod 600 /network.keys; under_tollgate").both("own", "tollgate net status --json");
    let pair = pair.at(1, "hear", hear).meet("ready").at(0, "say", say).meet("said");
    let pair = pair.at(1, "heard", "cat /tmp/tcp4 /tmp/tcp6 /tmp/udp4").both("status", "tollgate net status --json");
    let pair = pair.both("text", "tollgate net status").at(1, "peers", "tollgate net peers");
    let [first, second] = pair.run();
    for (name, steps) in [("first", &first), ("second", &second)] {
        for step in ["join", "enforce", "own"] {
            steps.get(step).unwrap_or_else(|| panic!("{name}: no {step}")).is(0, &[]);
        }
        assert_eq!(contexts(&steps["own"]).0["closed"], Value::Null);
    }
    let heard = second["heard"].is(0, &["length=103"]);
    let line = |length: &str| heard.text.lines().find(|line| line.contains(length)).unwrap_or_default();
    // The first packet is lost: nobody knew its context yet.
    assert!(!heard.text.contains("length=100"), "{}", heard.text);
    for (length, level) in [("length=101", "s1:c1,c3"), ("length=102", "s2:c5,c7")] {
        let label = format!("label=system_u:system_r:talker:{level} ");
        assert!(format!("{} ", line(length)).contains(&label), "{length}: {}", heard.text);
    }
    let (learned, dropped) = contexts(&second["status"]);
    println!("{learned}\n{dropped} packets were dropped until their contexts were known");
    assert!(learned["learned"] == 2 && learned["asked"] == 2 && dropped >= 2, "{learned}");
    let (answered, dropped) = contexts(&first["status"]);
    assert!(answered["answered"].as_u64().unwrap() >= 2 && dropped == 0, "{answered}");
    second["peers"].is(0, &["udp ", "10.77.0.1:", "talker:s1:c1,c3"]);
    second["text"].is(0, &["contexts     asked on UDP port 4748; 2 learned of 2"]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn drops_contexts_that_their_sender_does_not_name() {
    let scratch = Scratch::new();
    let pair = Pair::new(&scratch, [guest(&scratch, 7), guest(&scratch, 8)]);
    let pair = pair.both("enforce", "chmod 600 /network.keys; under_tollgate");
    let hear = "as s3:c0.c15 talk recv udp 4 7001 600 > /tmp/udp4 2>&1 & sleep 2";
    // A process that has its context already goes on without the daemon.
    let say =
        "as s1:c1,c3 sh -c 'sleep 5; for i in 1 2 3 4 5 6 7 8; do sleep 1; talk send udp 4 10.77.0.2 7001 100 --wait 1; done' &
        until tollgate ps | grep -q s1:c1,c3; do sleep 0.1; done; kill -9 $(cat /run/tollgate/lock); wait $!";
    let pair = pair.at(1, "hear", hear).meet("ready").at(0, "say", say).meet("said");
    let pair = pair.at(1, "heard", "sleep 3; cat /tmp/udp4").at(1, "status", "tollgate net status --json");
    let pair = pair.at(1, "trace", "tollgate net trace --once; true");
    let [_, second] = pair.run();
    assert!(!second["heard"].text.contains("length="), "{}", second["heard"].text);
    let (asked, dropped) = contexts(&second["status"]);
    println!("{asked}\n{dropped} packets were dropped");
    assert!(asked["learned"] == 0 && asked["unanswered"].as_u64().unwrap() >= 1 && dropped >= 4, "{asked}");
    second["trace"].is(0, &["came with a context that is not known here yet", "look whether the sender's daemon runs"]);
}
