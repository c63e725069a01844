//! Labelled traffic between two network namespaces of one machine: each kind of packet arrives where the policy allows it, and
//! nowhere else.
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
fn guest<'s>(scratch: &'s Scratch, kernel: &'static str) -> Guest<'s> {
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

#[test]
fn delivers_each_kind_of_packet_where_policy_allows_it() {
    for kernel in KERNELS {
        delivers_each_kind(kernel);
    }
}

fn delivers_each_kind(kernel: &'static str) {
    let scratch = Scratch::new();
    let steps = guest(&scratch, kernel)
        .step("join", "join_space 1500")
        .step("enforce", "under_tollgate")
        .step("hear", "hear_there")
        .step("from s0", "row s0 1")
        .step("from s1", "row s1 2")
        .step("from s3", "row s3 3")
        .step("trace", "tollgate net trace --once; true")
        .step("heard", "heard_there")
        .step("counts", "tollgate net status --json; true")
        .step("errors", "grep -E '^(Ip|Udp|Tcp):' /proc/net/snmp; there grep -E '^(Ip|Udp|Tcp):' /proc/net/snmp")
        .run();
    for step in ["join", "enforce", "hear", "from s0", "from s1", "from s3", "heard"] {
        steps[step].is(0, &[]);
    }
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
    println!("{}", counts["counters"]);
    assert_eq!(counts["counters"]["dropped_malformed"], 0, "{counts}");
}
