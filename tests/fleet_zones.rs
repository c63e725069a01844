//! Zones of a fleet: two machines on a wire, each in a zone of its own, and a process on one that somebody has taken over.
//!
//! QEMU, a kernel and Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use std::path::{Path, PathBuf};

use crate::program::{
    Scratch,
    machine::{build, own_parts, source},
    pair::Pair,
    steps::{Guest, Step},
    word,
};

/// The first machine is in zone one, where talkers run, and the second in zone two, where tellers do.
const ZONES: &str = r#"
[[zone]]
name = "one"
groups = ["one"]
addresses = ["10.77.0.1", "fd00:77::1"]
domains = ["talker"]

[[zone]]
name = "two"
groups = ["two"]
addresses = ["10.77.0.2", "fd00:77::2"]
domains = ["teller"]
"#;
const FLOW: &str = "\n[[flow]]\nfrom = \"one\"\nto = \"two\"\nports = [\"talk_port_t\"]\n";

const NETWORKS: &str = "[[doi]]\nnumber = 16\ntag = \"sealed\"\n\
                        [[zone]]\naddresses = [\"10.77.0.0/24\", \"fd00:77::/64\"]\ndoi = 16\nunlabelled = \"refuse\"\n\
                        [sealed]\nnode = NODE\nkeys = \"/network.keys\"\ntolerance = 16384\n";

const NAMES: &str = "
in_zone() { domain=$1; shift; tollgate run --context system_u:system_r:$domain:s0 -- \"$@\"; }
known() { in_zone talker true && in_zone teller true; }
hear() {
    for family in 4 6; do
        in_zone teller talk recv tcp $family 7000 900 > /tmp/tcp$family 2>&1 &
        in_zone teller talk recv udp $family 7001 900 > /tmp/udp$family 2>&1 &
    done
    for attempt in $(seq 300); do [ $(cat /tmp/tcp* /tmp/udp* | grep -c ready) = 4 ] && return; sleep 0.1; done
    cat /tmp/tcp* /tmp/udp*; return 1
}
say() {
    in_zone talker talk send tcp 4 10.77.0.2 7000 $1 --wait 5000
    in_zone talker talk send tcp 6 fd00:77::2 7000 $1 --wait 5000
    in_zone talker talk send udp 4 10.77.0.2 7001 $1 --wait 500
    in_zone talker talk send udp 6 fd00:77::2 7001 $1 --wait 500
    true
}
";

/// The policy with these zones, by `tollgate fleet zones`.
fn zoned(scratch: &Scratch, name: &str, zones: &str, sources: &[PathBuf], base: &Path) -> PathBuf {
    let file = scratch.file(&format!("{name}.toml"), zones);
    let fleet = scratch.program().with_file_name("tollgate-fleet");
    let ask = |more: &[&str], policy: &Path| {
        let words = [&["zones", word(&file), word(policy)], more].concat();
        scratch.finish(scratch.command(word(&fleet), &words))
    };
    let statements = scratch.file(&format!("{name}.cil"), &ask(&["--cil"], base).with(0).stdout);
    assert!(ask(&[], base).with(1).stdout.contains("was not built with these zones"));
    let built = build(scratch, name, &[sources, &[statements]].concat(), &[]);
    println!("{}", ask(&[], &built).with(0).stdout);
    built
}

/// What was heard of a length, in lines.
fn heard<'h>(step: &'h Step, length: &str) -> Vec<&'h str> {
    step.text.lines().filter(|line| line.contains(&format!("length={length} "))).collect()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_a_process_of_one_zone_everything_of_another_but_what_a_flow_names() {
    let scratch = Scratch::new();
    let sources =
        [own_parts(), ["mls", "zones"].map(|name| source(&format!("tests/network/{name}.cil"))).to_vec()].concat();
    let base = build(&scratch, "base", &sources, &[]);
    let apart = zoned(&scratch, "apart", ZONES, &sources, &base);
    let flow = zoned(&scratch, "flow", &format!("{ZONES}{FLOW}"), &sources, &base);
    let keys = scratch.file("keys", "1 00112233445566778899aabbccddeeff\n");
    let guest = |node: &str| {
        let networks = scratch.file(&format!("network{node}"), &NETWORKS.replace("NODE", node));
        let guest = Guest::under(&scratch, "6.1", &base).modules(&["sch_ingress", "cls_bpf"]);
        let guest = guest.with(&networks, "/network.toml").with(&keys, "/network.keys");
        guest.with(&apart, "/apart").with(&flow, "/flow")
    };
    let pair = Pair::new(&scratch, [guest("1"), guest("2")]).names(NAMES);
    let pair = pair.both("enforce", "chmod 600 /network.keys; under_tollgate && known").meet("enforced");
    let pair = pair.at(1, "hear", "hear").meet("ready").at(0, "before", "say 100").meet("said");
    let pair = pair.both("apart", "tollgate reload /apart && known").meet("apart");
    let pair = pair.at(0, "denied", "say 110").meet("denied");
    let pair = pair.both("flow", "tollgate reload /flow && known").meet("flow");
    let pair = pair.at(0, "let through", "say 120").meet("let through");
    let back = "in_zone teller talk send tcp 4 10.77.0.1 7000 130 --wait 2000";
    let pair = pair.at(0, "listen", "in_zone talker talk recv tcp 4 7000 1").at(1, "back", back).meet("back");
    let [first, second] = pair.at(1, "heard", "cat /tmp/tcp4 /tmp/tcp6 /tmp/udp4 /tmp/udp6").run();
    for (name, steps) in [("first", &first), ("second", &second)] {
        for step in ["join", "enforce", "apart", "flow"] {
            steps.get(step).unwrap_or_else(|| panic!("{name}: no {step}")).is(0, &[]);
        }
    }
    let all = second["heard"].is(0, &[]);
    println!("{}\n{}\n{}", first["before"].text, first["denied"].text, all.text);
    assert_eq!(heard(all, "100").len(), 4, "without zones: {}", all.text);
    assert_eq!(heard(all, "110"), [""; 0], "a process of another zone is heard");
    assert_eq!(first["denied"].text.matches("connect=EACCES").count(), 2, "{}", first["denied"].text);
    assert_eq!(heard(all, "120").len(), 4, "{}{}", first["let through"].text, all.text);
    second["back"].is(1, &["connect=EACCES"]);
    first["listen"].is(1, &["talk: bind: EACCES"]);
}
