//! Labelled traffic between two network namespaces of one machine: each kind of packet arrives where the policy allows it, and
//! nowhere else; sealed labels carry whole contexts; forged ones do not arrive; what is not labelled does not change.
//!
//! QEMU, a kernel and Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use crate::program::{
    Scratch,
    machine::source,
    pair::{talk, tools},
    steps::{Guest, Step, policy},
};

const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.12", "6.18", "7.2"] } else { &["6.1"] };
const PROTOCOLS: [&str; 6] = ["udp4", "udp6", "tcp4", "tcp6", "icmp4", "icmp6"];
/// What is sent of each protocol, and how long it is; 0: the kernel never sends such packets.
const KINDS: [(&str, [usize; 3]); 3] =
    [("plain", [100, 100, 100]), ("fragment", [9000, 4000, 9000]), ("GSO", [1000, 60000, 0])];

/// A guest with the functions of tests/network, the programs that they need, and the policy that SELinux enforces in
/// network_selinux.rs.
pub(crate) fn guest<'s>(scratch: &'s Scratch, kernel: &'static str) -> Guest<'s> {
    let built = policy(scratch, "mls", &[source("tests/network/mls.cil")]);
    let functions = ["names.sh", "spaces.sh"]
        .map(|name| std::fs::read_to_string(source("tests/network").join(name)).expect("read the guest's functions"));
    Guest::under(scratch, kernel, &built)
        .modules(&["veth", "sch_ingress", "cls_bpf"])
        .with(&source("tests/network/network.toml"), "/network.toml")
        .with(&tools(scratch), "/tools.tar")
        .with(&talk(scratch), "/bin/talk")
        .names(&format!("own=1\n{}", functions.concat()))
}

/// Whether what had this length was received, whole. TCP's beginning in fragments is answered at once, or not at all.
fn arrived(protocol: &str, length: usize, heard: &Step, said: &Step) -> bool {
    if protocol.starts_with("tcp") && (4000..5000).contains(&length) {
        let begun = format!("begin{} length={length} accepted=", &protocol[3..]);
        let answer = said.text.lines().find_map(|line| line.strip_prefix(&begun));
        return answer.unwrap_or_else(|| panic!("{begun}: {}", said.text)) == "yes";
    }
    let mut lines = heard.text.lines().filter_map(|line| line.strip_prefix(&format!("{protocol} ")));
    lines.any(|line| line.contains(&format!(" length={length} ")) && line.contains("payload=good"))
}

/// The counters in lines of /proc/net/snmp: the names of a protocol, then the numbers.
fn counters(text: &str) -> Vec<(String, i64)> {
    let lines: Vec<&str> = text.lines().collect();
    let (pairs, _) = lines.as_chunks::<2>();
    let pair = |[names, numbers]: &[&str; 2]| -> Vec<(String, i64)> {
        let numbers = numbers.split(' ').skip(1).map(|number| number.parse().unwrap());
        names.split(' ').skip(1).map(str::to_owned).zip(numbers).collect()
    };
    let found: Vec<_> = pairs.iter().flat_map(pair).collect();
    assert!(found.iter().any(|(name, _)| name == "InCsumErrors"), "{text}");
    found
}

#[test]
fn delivers_each_kind_of_packet_where_policy_allows_it() {
    for kernel in KERNELS {
        delivers_each_kind(kernel);
    }
}

fn delivers_each_kind(kernel: &'static str) {
    let scratch = Scratch::new();
    // At the same time: what was decided about the last packet is remembered (admitted.h). Each has an identifier of its
    // own: of two that ask with one, the kernel's answers are taken for answers to who asked last (sender.h).
    let ping = |level, own, length| format!("as {level} talk send icmp 4 10.77.0.2 {own} {length} 200 --wait 100");
    let together = format!("{} & {}; wait $!", ping("s1", 7, 501), ping("s3", 8, 601));
    let steps = guest(&scratch, kernel)
        .step("join", "join_space 1500")
        .step("enforce", "under_tollgate")
        .step("hear", "hear_there")
        .step("together", &together)
        .step("from s0", "row s0 1")
        .step("from s1", "row s1 2")
        .step("from s3", "row s3 3")
        .step("trace", "tollgate net trace --once; true")
        .step("heard", "heard_there")
        .step("counts", "tollgate net status --json; true")
        .step("errors", "grep -E '^(Ip|Udp|Tcp):' /proc/net/snmp; there grep -E '^(Ip|Udp|Tcp):' /proc/net/snmp")
        .run();
    for step in ["join", "enforce", "hear", "together", "from s0", "from s1", "from s3", "heard"] {
        steps[step].is(0, &[]);
    }
    let heard = |length: usize| steps["heard"].text.contains(&format!(" length={length} "));
    assert!(heard(501) && !heard(601), "{}", steps["heard"].text);
    println!("{kernel}: what s1 receives\n{:<8}{:<10}{:>8}{:>8}{:>8}", "", "", "s0", "s1", "s3");
    let mut wrong = Vec::new();
    for protocol in PROTOCOLS {
        for (kind, lengths) in KINDS {
            let length = lengths[["udp", "tcp", "icmp"].iter().position(|name| protocol.starts_with(name)).unwrap()];
            if length == 0 {
                println!("{protocol:<8}{kind:<10}  the kernel never segments it");
                continue;
            }
            let seen = [("s0", 1), ("s1", 2), ("s3", 3)]
                .map(|(level, odd)| arrived(protocol, length + odd, &steps["heard"], &steps[&format!("from {level}")]));
            let words = seen.map(|seen| if seen { "allowed" } else { "denied" });
            println!("{protocol:<8}{kind:<10}{:>8}{:>8}{:>8}", words[0], words[1], words[2]);
            if seen != [true, true, false] {
                wrong.push(format!("{protocol} {kind}: {words:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", steps["heard"].text);
    // The alarm names the cause.
    steps["trace"].is(0, &["{ recv }", "tcontext=system_u:object_r:netmsg_t:s3 tclass=peer"]);
    let counts = steps["counts"].json();
    assert_eq!(dropped(&counts), 0, "{counts}");
    for (name, count) in counters(&steps["errors"].text) {
        assert!(!["InHdrErrors", "InCsumErrors"].contains(&name.as_str()) || count == 0, "{name}: {count}");
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn carries_whole_contexts_by_sealed_labels_and_changes_keys_without_loss() {
    let scratch = Scratch::new();
    let bulk = "as_there s1 talk bulk 4 7001 20000000 60 & sleep 2
        as s1 talk bulk 4 7001 20000000 60 --to 10.77.0.2 & own=$!
        keys=/etc/tollgate/network.keys
        tollgate net key new --second --file $keys && tollgate reload /policy &&
            tollgate net key swap --file $keys && tollgate reload /policy && wait $own";
    // The kernel answers each connection by a SYN cookie, without a socket.
    let cookies = "there sh -c 'echo 2 > /proc/sys/net/ipv4/tcp_syncookies'
        there tollgate run --context system_u:system_r:teller:s1 -- talk recv tcp 4 7100 60 > /teller &
        until grep -q ready /teller; do sleep 0.1; done
        as s1 talk send tcp 4 10.77.0.2 7100 300 --wait 5000; cat /teller";
    let steps = guest(&scratch, "6.1")
        .with(&source("tests/network/sealed.toml"), "/sealed.toml")
        .step("join", "join_space 1500")
        .step("key", "mkdir -p /etc/tollgate && tollgate net key new --file /etc/tollgate/network.keys")
        .step("enforce", "cp /sealed.toml /network.toml && under_tollgate")
        .step("hear", "hear_there")
        .step("from s1", "row s1 2")
        .step("from s3", "row s3 3")
        .step("bulk", bulk)
        .step("cookies", cookies)
        .step("heard", "heard_there")
        .step("counts", "tollgate net status --json; true")
        .run();
    for step in ["join", "key", "enforce", "hear", "from s1", "from s3", "bulk", "heard"] {
        steps[step].is(0, &[]);
    }
    // The receiver's peer is the sender itself, and not just its level.
    steps["heard"].is(0, &["tcp4 tcp4 length=102 payload=good", "label=system_u:system_r:talker:s1 "]);
    steps["cookies"]
        .is(0, &["connect=none label=system_u:system_r:teller:s1", "label=system_u:system_r:talker:s1 options=none"]);
    for (kind, lengths) in KINDS {
        for protocol in PROTOCOLS {
            let length = lengths[["udp", "tcp", "icmp"].iter().position(|name| protocol.starts_with(name)).unwrap()];
            if length == 0 {
                continue;
            }
            let seen = [("s1", 2), ("s3", 3)]
                .map(|(level, odd)| arrived(protocol, length + odd, &steps["heard"], &steps[&format!("from {level}")]));
            assert_eq!(seen, [true, false], "{protocol} {kind}");
        }
    }
    let whole = steps["bulk"].text.lines().filter(|line| line.contains("payload=good") && line.contains("stalls=0"));
    assert_eq!(whole.count(), 2, "{}", steps["bulk"].text);
    let counts = steps["counts"].json();
    assert_eq!((&counts["seal"]["node"], dropped(&counts)), (&7.into(), 0), "{counts}");
}

/// How many packets were dropped.
fn dropped(counts: &serde_json::Value) -> u64 {
    let packets = counts["packets"].as_object().unwrap().iter();
    packets.filter(|(name, _)| name.starts_with("dropped")).map(|(_, count)| count.as_u64().unwrap()).sum()
}

/// CIPSO options of domain 1 at s1 and at s3.
const FORGED: [&str; 2] = ["860c0000000101060001c000", "860c0000000101060003c000"];

#[test]
fn drops_labels_that_processes_write_themselves() {
    let scratch = Scratch::new();
    // Root of a namespace that no confined process has entered: nothing runs on its devices.
    let outside = "unshare -n sleep 10000 & outer=$space; space=$!; sleep 0.2
        ip link add vc type veth peer name vd; ip link set vd netns $space
        ip addr add 10.77.0.17/30 dev vc; ip link set vc up
        ip_there addr add 10.77.0.18/30 dev vd; ip_there link set vd up";
    let steps = guest(&scratch, "6.1")
        .step("join", "join_space 1500")
        .step("enforce", "under_tollgate")
        .step("netlabel", "netlabelctl cipsov4 add pass doi:1 tags:1,2,5")
        .step("hear", "hear_there")
        .step("lower", &format!("as s3 talk send udp 4 10.77.0.2 7000 201 --options {} --wait 200", FORGED[0]))
        .step("raw", &format!("as s3 talk send icmp 4 10.77.0.2 7 202 --options {} --wait 200", FORGED[0]))
        .step("counts", "tollgate net status --json; true")
        .step("outside", outside)
        .step("own", "as s3 talk recv udp 4 7009 20 > /tmp/heard/own 2>&1 & sleep 1; true")
        .step("higher", &format!("there talk send udp 4 10.77.0.17 7009 203 --options {} --wait 200", FORGED[1]))
        .step("honest", "there talk send udp 4 10.77.0.17 7009 204 --wait 200")
        .step("all counts", "tollgate net status --json; true")
        .step("trace", "tollgate net trace --once; true")
        .step("heard", "heard_there")
        .run();
    for step in ["join", "enforce", "netlabel", "hear", "outside", "own", "heard"] {
        steps[step].is(0, &[]);
    }
    for length in [201, 202, 203] {
        assert!(!steps["heard"].text.contains(&format!(" length={length} ")), "{}", steps["heard"].text);
    }
    // What a socket outside sends without options has that socket's own label.
    steps["heard"].is(0, &["length=204"]);
    let forged = |step: &str| steps[step].json()["packets"]["dropped_forged"].as_u64().unwrap();
    println!("forged labels dropped: {} by confined processes, {} in all", forged("counts"), forged("all counts"));
    assert!(forged("counts") >= 2 && forged("all counts") > forged("counts"));
    steps["trace"].is(0, &["dropped: sent with a label that the process has set itself"]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn changes_no_packet_to_networks_that_are_not_labelled() {
    let scratch = Scratch::new();
    let addresses =
        "ip addr add 10.66.0.1/24 dev va; ip_there addr add 10.66.0.2/24 dev vb; ip addr add fd00:66::1/64 dev va nodad
        ip_there addr add fd00:66::2/64 dev vb nodad; ip neigh; sleep 1";
    // Packets of echo requests differ by their number and by nothing else.
    let capture = |name: &str| {
        format!(
            "there talk capture vb 6 > /tmp/{name} & sleep 1; for to in 10.66.0.2 fd00:66::2; do
                family=4; case $to in fd*) family=6;; esac
                talk send icmp $family $to 7 100 2 --wait 300; talk send icmp $family $to 7 3000 --wait 300; done; wait $!
            cat /tmp/{name}"
        )
    };
    let steps = guest(&scratch, "6.1")
        .step("join", "join_space 1500")
        .step("addresses", addresses)
        .step("before", &capture("before"))
        .step("enforce", "under_tollgate")
        .step("hear", "hear_there")
        .step("after", &capture("after"))
        .run();
    let seen = |step: &str| steps[step].text.lines().filter_map(constant_part).collect::<Vec<_>>();
    println!("{:#?}", seen("after"));
    assert!(seen("before").len() >= 8, "{}", steps["before"].text);
    assert_eq!(seen("before"), seen("after"));
}

/// What is the same each time that one of these packets is sent: its header without the number, the checksum and IPv6's
/// flow, and the hash of the rest, but for fragments of IPv6, which are numbered there. `None`: it is another packet.
fn constant_part(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [_, version, length, header, rest] = words[..] else { return None };
    let header = header.strip_prefix("header=")?;
    let is_asked = line.starts_with("in ") && ["0a420001", "fd000066"].iter().any(|network| header.contains(network));
    // Not neighbour discovery.
    if !is_asked || header.get(12..16) == Some("3aff") {
        return None;
    }
    let (before, after) = if version == "ip=4" {
        (format!("{}....{}....", &header[..8], &header[12..20]), &header[24..])
    } else {
        (format!("{}.......", &header[..1]), &header[8..])
    };
    let rest = if version == "ip=6" && header.get(12..14) == Some("2c") { "" } else { rest };
    Some(format!("{version} {length} {before}{after} {rest}"))
}
