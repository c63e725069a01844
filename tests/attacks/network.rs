//! Labels in packets, attacked from the wire: by whoever keeps packets of honest senders, changes them, and sends whatever he
//! likes. Two guests on a wire: the first receives. In the second, honest senders have labels, and root outside the policy is
//! the wire: what it writes passes none of Tollgate's programs (tests/network/inject.c).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::{
    Scratch,
    machine::source,
    pair::Pair,
    steps::{Guest, Step, policy},
};

type Steps = BTreeMap<String, Step>;

const KEY: &str = "1 000102030405060708090a0b0c0d0e0f\n";

fn text(path: &str) -> String {
    std::fs::read_to_string(source(path)).expect("read a file of the repository")
}

/// Whole contexts in labels, to and from these addresses, which are joined by `", "`.
fn sealed(addresses: &str) -> String {
    format!(
        "[[doi]]\nnumber = 16\ntag = \"sealed\"\n\n[[zone]]\naddresses = [\"{addresses}\"]\ndoi = 16\n\
         unlabelled = \"refuse\"\n\n[sealed]\nnode = 7\nkeys = \"/keys\"\n"
    )
}

/// Two guests with these networks, and further modules.
fn pair<'s>(scratch: &'s Scratch, networks: &str, modules: &[&'static str]) -> Pair<'s> {
    let files = [source("tests/network/mls.cil"), source("tests/attacks/network.cil")];
    let built = policy(scratch, "mls", &files);
    let (networks, keys) = (scratch.file("network.toml", networks), scratch.file("keys", KEY));
    let guest = || {
        let guest = Guest::under(scratch, "6.1", &built).modules(&["sch_ingress", "cls_bpf"]).modules(modules);
        guest.with(&source("tests/attacks/taken.sh"), "/taken.sh").with(&networks, "/network.toml").with(&keys, "/keys")
    };
    Pair::new(scratch, [guest(), guest()]).names(&text("tests/attacks/network.sh"))
}

/// The packets of each fate between two steps that print `tollgate net status --json`.
fn between(steps: &Steps, before: &str, after: &str) -> BTreeMap<String, u64> {
    let count = |step: &str| steps[step].json()["packets"].clone();
    let (before, after) = (count(before), count(after));
    let difference =
        |(name, value): (&String, &Value)| (name.clone(), value.as_u64().unwrap() - before[name].as_u64().unwrap());
    let all = after.as_object().unwrap().iter().map(difference);
    all.filter(|(_, count)| *count > 0).collect()
}

fn dropped(fates: &BTreeMap<String, u64>) -> u64 {
    fates.iter().filter(|(name, _)| name.starts_with("dropped")).map(|(_, count)| count).sum()
}

/// All packets that came.
fn incoming(fates: &BTreeMap<String, u64>) -> u64 {
    let out = ["labelled", "plain", "dropped_egress", "dropped_no_room"];
    fates.iter().filter(|(name, _)| !out.contains(&name.as_str())).map(|(_, count)| count).sum()
}

#[track_caller]
fn all_went(steps: &Steps, names: &[&str]) {
    for name in names {
        steps[*name].is(0, &[]);
    }
}

/// How many packets a step says that it has injected.
fn injected(step: &Step) -> u64 {
    let lines = step.text.lines().filter(|line| line.contains(" failed="));
    let words = lines.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("sent="));
    words.map(|count| count.parse::<u64>().unwrap()).sum()
}

/// How often something of this length was received.
fn arrived(heard: &Step, receiver: &str, length: usize) -> usize {
    let lines = heard.text.lines().filter(|line| line.starts_with(&format!("{receiver} ")));
    lines.filter(|line| line.contains(&format!(" length={length} "))).count()
}

const COUNTS: &str = "tollgate net status --json; true";

/// Both begin, at the same time of day.
fn ready(pair: Pair<'_>) -> Pair<'_> {
    pair.meet("begin").both("prepare", "date -s @1800000000 && prepare")
}

#[test]
fn refuses_sealed_labels_that_were_changed_moved_or_kept_for_later() {
    let scratch = Scratch::new();
    // Of each family: what is refused, and what is a copy.
    let changed = "keep_both 100 s1 && for family in 4 6; do
            for change in each ports addresses nodes strip 'contexts 200' 'seals 200'; do
                talk inject eth0 /kept$family 102 $change
            done
        done
        keep /fragment 4 4000 s1 && talk inject eth0 /fragment 0 ports";
    let copied = "keep_both 103 s1 && for family in 4 6; do
            talk inject eth0 /kept$family 103 same 2; talk inject eth0 /kept$family 104 same
        done";
    let later = |length: usize| format!("for family in 4 6; do talk inject eth0 /kept$family {length} same; done");
    // The daemon looks each second what time it is.
    let date = |seconds: &str| format!("date -s @$(($(date +%s) + {seconds})) && sleep 2");
    let honest =
        "as s1 talk send udp 4 10.77.0.1 7000 107 --wait 1; as s1 talk send udp 6 fd00:77::1 7000 107 --wait 1";
    let steps = ready(pair(&scratch, &sealed("10.77.0.0/24\", \"fd00:77::/64"), &[]))
        .at(0, "hear", "receive_both udp s1 7000 && receive_both other s1 7001")
        .meet("ready")
        .at(0, "counts", COUNTS)
        .meet("change")
        .at(1, "changed", changed)
        .meet("changed")
        .at(0, "changed", COUNTS)
        .meet("copy")
        .at(1, "copied", copied)
        .meet("copied")
        .at(0, "copied", COUNTS)
        .at(0, "minute", &date("60"))
        .meet("minute")
        .at(1, "old", &later(105))
        .meet("old")
        .at(0, "old", COUNTS)
        // A label has the 16 low bits of its window.
        .at(0, "round", &date("65536 * 8 - 60"))
        .meet("round")
        .at(1, "older", &later(106))
        .meet("older")
        .at(0, "older", COUNTS)
        .at(0, "back", &date("-65536 * 8"))
        .meet("back")
        .at(1, "honest", honest)
        .meet("end")
        .at(0, "heard", "heard")
        .at(0, "log", "kernel_log")
        .run();
    let [receiver, sender] = steps;
    all_went(&receiver, &["prepare", "hear", "minute", "round", "back", "heard", "log"]);
    all_went(&sender, &["prepare", "changed", "copied", "old", "older", "honest"]);
    // Each packet that was sent is counted; of those that were changed none is accepted. Two datagrams came whole, and one
    // in three fragments.
    let changed = between(&receiver, "counts", "changed");
    println!("changed: {} injected, {changed:?}", injected(&sender["changed"]));
    assert_eq!((changed["accepted"], dropped(&changed)), (5, injected(&sender["changed"])), "{changed:?}");
    let [old, older] = [("copied", "old"), ("old", "older")].map(|(before, after)| between(&receiver, before, after));
    assert_eq!((old["dropped_window"], dropped(&old)), (2, 2), "{old:?}");
    assert_eq!((older["dropped_seal"], dropped(&older)), (2, 2), "{older:?}");
    for family in ["4", "6"] {
        let own = format!("udp{family}");
        let seen = |length| arrived(&receiver["heard"], &own, length);
        // What an honest sender sent, and copies of it, whatever they carry.
        assert_eq!([100, 102, 103, 104, 105, 106, 107].map(seen), [1, 0, 3, 1, 0, 0, 1]);
        assert!(!receiver["heard"].text.contains(&format!("other{family} udp{family} ")));
    }
}

/// A flood of malformed options, of which each family gets half, beside honest traffic.
fn floods(malformed: usize) {
    let scratch = Scratch::new();
    let receivers = "receive_both udp s1 7000; receive_both low s0 7001
        as s1:c0,c1 talk echo udp 4 7300 600 > /tmp/heard/echo 2>&1 &
        for number in 0 1 2 3 4 5 6 7 8 9; do
            tollgate run --context system_u:system_r:listener$number:s15:c0.c1023 -- \
                talk recv tcp 4 710$number 600 > /tmp/heard/listener$number 2>&1 &
        done
        until [ $(cat /tmp/heard/* | grep -c ready) = 15 ]; do sleep 0.2; done";
    let kept = "keep_both 100 s1:c0,c1 || echo nothing
        talk keep eth0 /open 17 100 > /tmp/kept & until grep -q ready /tmp/kept; do sleep 0.05; done
        as s1:c0,c1 talk send udp 4 10.77.2.1 7000 100 --bind 4000 --wait 1; wait $!";
    let half = malformed / 2;
    let flood = format!(
        "for round in 1 2 3 4 5 6 7 8; do as s1:c0,c1 talk send udp 4 10.77.0.1 7300 99 50 --wait 20000; done &
        talk inject eth0 /kept4 101 malformed {half} & talk inject eth0 /kept6 101 malformed {half}; wait"
    );
    let honest = "as s1:c0,c1 talk send tcp 4 10.77.0.1 7100 107 --wait 5000";
    let steps = ready(pair(&scratch, &text("tests/attacks/network.toml"), &[]))
        .at(0, "hear", receivers)
        .meet("ready")
        .at(1, "kept", kept)
        .meet("kept")
        .at(0, "counts", COUNTS)
        .at(0, "before", "tollgate status --json")
        .at(0, "resident before", "resident")
        .meet("flood")
        .at(1, "flood", &flood)
        .meet("flooded")
        .at(0, "flooded", COUNTS)
        .meet("levels")
        .at(1, "levels", "talk inject eth0 /open 102 levels 2000")
        .meet("counted")
        .at(0, "levels", COUNTS)
        .meet("begin connections")
        .at(1, "connections", "talk inject eth0 /open 0 beginnings 300")
        .meet("begun")
        .at(1, "honest", honest)
        .meet("end")
        .at(0, "after", "tollgate status --json")
        .at(0, "resident after", "resident")
        .at(0, "heard", "heard")
        .at(0, "log", "kernel_log")
        .run();
    let [receiver, sender] = steps;
    all_went(&receiver, &["prepare", "hear", "heard", "log"]);
    all_went(&sender, &["prepare", "kept", "flood", "levels", "connections"]);
    sender["honest"].is(0, &["reply=good"]);
    let [flooded, levels] =
        [("counts", "flooded"), ("flooded", "levels")].map(|(before, after)| between(&receiver, before, after));
    println!("malformed: {} injected, {flooded:?}\nlevels: {levels:?}", injected(&sender["flood"]));
    // Each packet is counted, beside 400 honest ones, of which queues may lose a few, and what keeps the link.
    let replies = sender["flood"].text.split("replies=").skip(1).map(|rest| rest.lines().next().unwrap());
    let replies: u64 = replies.map(|count| count.parse::<u64>().unwrap()).sum();
    println!("honest: {replies} of 400 answered");
    assert!(replies >= 380, "{}", sender["flood"].text);
    let others = incoming(&flooded).checked_sub(injected(&sender["flood"]));
    assert!(others.is_some_and(|others| (replies..=420).contains(&others)), "{others:?} others: {flooded:?}");
    assert!(flooded["dropped_malformed"] > malformed as u64 / 3);
    // A zone brings 256 levels, and begins connections in 2,048 contexts.
    assert_eq!((levels["accepted"], levels["dropped_full"]), (256, 2000 - 256), "{levels:?}");
    let count = |step: &str| receiver[step].json()["contexts"].as_u64().unwrap();
    let made = count("after") - count("before");
    println!("contexts made: {made}");
    assert!((2200..2048 + 256 + 16).contains(&made), "{made}");
    receiver["after"].is(0, &["a connection from a network that has begun too many"]);
    let resident = |step: &str| receiver[step].text.trim().parse::<u64>().unwrap();
    println!("resident: {} KiB, then {} KiB", resident("resident before"), resident("resident after"));
    assert!(resident("resident after") < resident("resident before") + 16384);
    // Who does not dominate the level of those who are honest got nothing.
    for forged in ["length=101", "length=102", "payload=bad"] {
        assert!(!receiver["heard"].text.contains(forged), "{}", receiver["heard"].text);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn drops_100_000_packets_with_malformed_options_and_ever_new_levels() {
    floods(100_000);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn reaches_no_port_outside_its_label_from_a_service_that_was_taken_over() {
    let scratch = Scratch::new();
    let receivers = "for family in 4 6; do
            for protocol in udp tcp; do
                run front talk recv $protocol $family 7300 600 > /tmp/heard/front-$protocol$family 2>&1 &
                run back talk recv $protocol $family 7400 600 > /tmp/heard/back-$protocol$family 2>&1 &
            done
        done
        until [ $(cat /tmp/heard/* | grep -c ready) = 8 ]; do sleep 0.2; done
        # A context is known here when a process has had it.
        run taken true; as s0 true";
    let keep = "run front true; run back true
        keep_both 100 s0 7400
        as s0 talk send tcp 4 10.77.0.1 7400 100 --wait 3000; as s0 talk send tcp 6 fd00:77::1 7400 100 --wait 3000";
    let taken = "run taken sh -c \". /names; . /taken.sh;";
    let again = "keep_both 100 s0 7400";
    let given = "mkfifo /order /done
        run taken unshare -Urn sh -c '. /names; . /taken.sh; serve' &
        until [ -s /box ]; do sleep 0.1; done
        box=$(cat /box)
        inbox() { echo \"$*\" > /order; read status < /done; cat /answer; return $status; }
        for device in eth0 all; do echo 1 > /proc/sys/net/ipv4/conf/$device/proxy_arp; done
        echo 1 > /proc/sys/net/ipv4/ip_forward
        ip link add va type veth peer name vb && ip link set vb netns $box && ip link set va up
        ip addr add 10.77.0.41/32 dev va
        for host in 42 43; do ip route add 10.77.0.$host/32 dev va; done";
    let upper = "ip link add m0 link eth0 type macvlan && ip link set m0 netns $box";
    let steps = ready(pair(&scratch, &sealed("10.77.0.0/24\", \"fd00:77::/64"), &["veth", "macvlan", "cls_matchall"]))
        .at(0, "hear", receivers)
        .meet("ready")
        .at(1, "names", "sed '/^# Waits until/,$d; /^mkdir.*tools.tar/d' /script > /names")
        .at(1, "keep", keep)
        .at(1, "directly", &format!("{again} && for family in 4 6; do {taken} directly $family\"; done"))
        .at(1, "given", given)
        .at(1, "inside", &format!("{again} && inbox inside vb 10.77.0.42"))
        .at(1, "classes", "inbox classes vb")
        .at(1, "forwarded", "inbox forwarded")
        .at(1, "upper", &format!("{upper} && {again} && inbox \"ip link del vb; inside m0 10.77.0.45\""))
        .at(1, "counts", COUNTS)
        .meet("end")
        .at(0, "counts", COUNTS)
        .at(0, "heard", "heard")
        .both("log", "kernel_log")
        .run();
    let [receiver, sender] = steps;
    all_went(&receiver, &["prepare", "hear", "heard", "log"]);
    all_went(&sender, &["prepare", "keep", "directly", "given", "inside", "classes", "forwarded", "upper", "log"]);
    let lines = receiver["heard"].text.lines().filter(|line| line.contains(" length="));
    let (back, front): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with("back"));
    println!("reached: {front:#?}\nforbidden: {back:#?}");
    // The forbidden port got what the honest sender sent: a frame of each family four times, and two connections.
    assert!(back.len() == 10 && back.iter().all(|line| line.contains(" length=100 ")), "{back:#?}");
    let reached = |length: usize| front.iter().filter(|line| line.contains(&format!(" length={length} "))).count();
    assert_eq!([200, 202, 220, 224].map(reached), [2, 2, 2, 1], "{front:#?}");
    assert!(reached(222) >= 1, "{front:#?}");
    let counts = sender["counts"].json();
    assert!(counts["packets"]["dropped_forged"].as_u64().unwrap() >= 6, "{counts}");
}

/// Modules of ESP with AES-GCM, each after those that its own tests need.
const ESP: [&str; 10] = [
    "esp4",
    "xfrm_user",
    "xfrm_interface",
    "gcm",
    "ctr",
    "seqiv",
    "ghash-generic",
    "sha3_generic",
    "jitterentropy_rng",
    "drbg",
];

#[test]
#[ignore = "takes long: make test-rest"]
fn refuses_repeated_packets_under_esp() {
    // The label of a packet in a tunnel is within, and that of the other one is before ESP's header.
    for (mode, network, label) in [("tunnel", "10.79.0", "options=none"), ("transport", "10.77.0", "options=9e16")] {
        let scratch = Scratch::new();
        let kept = format!(
            "talk keep eth0 /kept 50 0 > /tmp/kept & until grep -q ready /tmp/kept; do sleep 0.05; done
            as s1 talk send udp 4 {network}.1 7000 100 --wait 1; wait $!; cat /tmp/kept
            as s3 talk send udp 4 {network}.1 7000 101 --wait 1"
        );
        let steps = ready(pair(&scratch, &sealed(&format!("{network}.0/24")), &ESP))
            .both("esp", &format!("esp {mode}"))
            .at(0, "hear", "as s3 true; receive udp s1 udp 4 7000")
            .meet("ready")
            .at(1, "kept", &kept)
            .at(1, "repeat", "talk inject eth0 /kept 0 replay 5")
            .at(1, "honest", &format!("as s1 talk send udp 4 {network}.1 7000 102 --wait 1"))
            .meet("end")
            .at(
                0,
                "refused",
                "cat /proc/net/xfrm_stat; tollgate net status --json | grep -E '(accepted|dropped).*[1-9]'; true",
            )
            .at(0, "heard", "heard")
            .at(0, "log", "kernel_log")
            .run();
        let [receiver, sender] = steps;
        all_went(&receiver, &["prepare", "esp", "hear", "heard", "log"]);
        all_went(&sender, &["prepare", "esp", "kept", "repeat", "honest"]);
        sender["kept"].is(0, &[label]);
        let seen = [100, 101, 102].map(|length| arrived(&receiver["heard"], "udp", length));
        println!("{mode}: {seen:?}\n{}", receiver["refused"].text);
        assert_eq!(seen, [1, 0, 1], "{mode}: {}", receiver["heard"].text);
        let refused = receiver["refused"].text.lines().find_map(|line| line.strip_prefix("XfrmInStateSeqError"));
        assert_eq!(refused.unwrap().trim(), "5", "{mode}");
    }
}
