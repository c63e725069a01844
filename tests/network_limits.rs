//! What labelled networks cannot do: devices that take no program, and more network namespaces than there is room for. And what
//! is known of flows.
//!
//! QEMU, a kernel and Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use crate::{
    network_paths,
    network_traffic::guest,
    program::{Scratch, steps::Step},
};

#[test]
fn names_a_device_that_takes_no_program_and_lists_flows() {
    let scratch = Scratch::new();
    // Before Linux 6.6, a queueing discipline `ingress` has no place for programs on packets that leave.
    // The kernel refuses while the daemon tries to attach the program.
    let mend = "until tc qdisc del dev va ingress; do sleep 0.1; done; for attempt in $(seq 100); do
            tollgate net status | grep -q ^unlabelled || break; sleep 0.2; done; tollgate net status";
    let talk =
        "as_there s1 talk recv udp 4 7001 60 > /tmp/udp 2>&1 & as_there s1 talk bulk 4 7002 400000000 60 > /dev/null &
        sleep 3; as s1 talk send udp 4 10.77.0.2 7001 100 --bind 7003 --wait 1
        as s1 talk bulk 4 7002 400000000 60 --to 10.77.0.2 > /dev/null & sleep 2; cat /tmp/udp";
    let steps = guest(&scratch, "6.1")
        .step("join", "join_space 1500")
        .step("before", "tc qdisc add dev va ingress")
        .step("enforce", "under_tollgate")
        .step("refused", "tollgate net status")
        .step("json", "tollgate net status --json")
        .step("mended", mend)
        .step("nothing", "tollgate net peers")
        .step("talk", talk)
        .step("peers", "tollgate net peers")
        .step("flows", "tollgate net peers --json")
        .run();
    for step in ["join", "before", "enforce"] {
        steps[step].is(0, &[]);
    }
    let words = [
        "unlabelled   va (network namespace 40",
        "the egress program cannot be attached",
        "tc qdisc del dev va ingress",
    ];
    steps["refused"].is(0, &words);
    let device = &steps["json"].is(0, &[]).json()["devices"][0];
    assert_eq!(device["device"], "va", "{device}");
    assert!(!steps["mended"].is(0, &["namespaces   labelled in 1 of 1024"]).text.contains("unlabelled   "));
    steps["nothing"].is(0, &["no socket that has a label is connected"]);
    let (context, sent) = ("system_u:system_r:talker:s1", "system_u:object_r:netmsg_t:s1");
    let flows = steps["flows"].is(0, &[]).json();
    let flows = flows["flows"].as_array().unwrap();
    let find = |protocol: &str, remote: &str| {
        let found = flows.iter().find(|flow| flow["protocol"] == protocol && flow["remote"] == remote);
        found.unwrap_or_else(|| panic!("no {protocol} with {remote}: {}", steps["peers"].text))
    };
    let heard = find("udp", "10.77.0.1:7003");
    assert!(heard["peer"] == sent && heard["context"] == context, "{heard}");
    // Both ends, each in its namespace.
    let client = find("tcp", "10.77.0.2:7002");
    let server = find("tcp", client["local"].as_str().unwrap());
    assert!(client["peer"] == sent && server["peer"] == sent, "{client} {server}");
    assert_ne!(client["namespace"], server["namespace"]);
    steps["peers"].is(0, &["PROTOCOL  LOCAL", "tcp ", "udp ", "10.77.0.1:7003"]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn bounds_the_network_namespaces_of_a_user_and_leaves_room_to_others() {
    let scratch = Scratch::new();
    let status = "tollgate net status --json";
    let back = "for attempt in $(seq 200); do tollgate net status | grep -q 'labelled in . of' && break; sleep 1; done
        tollgate net status | grep 'labelled in'";
    let steps = guest(&scratch, "6.1")
        .step("join", "ip link set lo up")
        .step("enforce", "under_tollgate")
        .step("spaces", "as s1 talk spaces 2000 40 user --wait 15000 > /tmp/spaces 2>&1 & user=$!; while ! [ -s /tmp/spaces ]; do sleep 1; done")
        .step("made", "cat /tmp/spaces")
        .step("full", status)
        .step("asked", "tollgate status")
        .step("of root", "as s1 talk spaces 3 200")
        .step("ended", "wait $user")
        .step("back", back)
        .step("free", status)
        .step("again", "as s1 talk spaces 3 200 user")
        .run();
    for step in ["join", "enforce", "spaces", "ended"] {
        steps[step].is(0, &[]);
    }
    let full = steps["full"].is(0, &[]).json()["namespaces"].clone();
    println!("{}{full}", steps["made"].text);
    // It made less than it wanted. The daemon was told of some more than it had entered when half of the places were taken.
    assert!(steps["made"].text.contains(" refused=5") && !steps["made"].text.contains("made=2000 "));
    assert!((512..768).contains(&full["labelled"].as_u64().unwrap()), "{full}");
    assert!(full["denied"].as_u64().unwrap() >= 5, "{full}");
    steps["asked"].is(0, &["too many network namespaces"]);
    steps["of root"].is(0, &["made=3 refused=0"]);
    let free = steps["free"].is(0, &[]).json()["namespaces"].clone();
    assert!(free["labelled"].as_u64().unwrap() < 10, "{free}");
    steps["again"].is(0, &["made=3 refused=0"]);
}

/// How many datagrams from this address a step has captured with CIPSO, and how many without.
fn captured(step: &Step, address: &str) -> [usize; 2] {
    let mut counts = [0; 2];
    for line in step.is(0, &[]).text.lines().filter(|line| line.starts_with("in ip=4")) {
        let header = line.split_once("header=").unwrap().1;
        if header.get(24..32) == Some(address) && header.get(18..20) == Some("11") {
            counts[usize::from(header.get(40..42) != Some("86"))] += 1;
        }
    }
    println!("{address}: {} with a label, {} without", counts[0], counts[1]);
    counts
}

#[test]
fn sends_nothing_without_a_label_from_a_namespace_that_nobody_is_in() {
    let scratch = Scratch::new();
    // Nobody is in the namespace any more, but for the process that makes the socket and ends.
    let left = "in_space $router tollgate run --context system_u:system_r:talker:s1 -- \
            talk away 10.81.9.1 7000 150 --wait 1500 > /tmp/left 2>&1 &
        while ! grep -q ready /tmp/left; do sleep 0.1; done
        kill -9 $router; seconds=8 seen $space wb true; cat /tmp/left";
    let steps = network_paths::guest(&scratch, "6.1", &["macvlan", "dummy"])
        .step("join", "begin_spaces && link one 1500 $router wa $space wb")
        .step("addresses", "address $router wa 9 2; address $space wb 9 1")
        .step("enforce", "under_tollgate")
        .step("left", left)
        .step("status", "tollgate status")
        .run();
    for step in ["join", "addresses", "enforce"] {
        steps[step].is(0, &[]);
    }
    println!("{}", steps["left"].text.lines().find(|line| line.starts_with("away")).unwrap_or_default());
    let [labelled, without] = captured(&steps["left"], "0a510902");
    assert!(labelled > 20 && without == 0, "{labelled} with a label, {without} without");
    steps["status"].is(0, &["packets have no labels yet in a new network namespace"]);
}
