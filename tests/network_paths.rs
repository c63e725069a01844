//! Labelled traffic over paths: a shorter link behind a router, devices with each offload on and off, and devices that stand on
//! others. Everything arrives whole, nothing stalls, and nothing is dropped.
//!
//! QEMU, a kernel and Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use std::collections::BTreeMap;

use crate::program::{
    Scratch,
    machine::source,
    pair::{talk, tools},
    steps::{Guest, Step, policy},
};

const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.18"] } else { &["6.1"] };
/// Lengths of datagrams: around the MTU of either link with and without each label, and the largest.
const LENGTHS: &str = "1 1200 1228 1300 1328 1348 1372 1436 20000 65507";

/// A guest with the functions of tests/network.
pub(crate) fn guest<'s>(scratch: &'s Scratch, kernel: &'static str, modules: &[&'static str]) -> Guest<'s> {
    let built = policy(scratch, "mls", &["mls.cil", "routers.cil"].map(|name| source("tests/network").join(name)));
    let functions = ["names.sh", "spaces.sh", "paths.sh"]
        .map(|name| std::fs::read_to_string(source("tests/network").join(name)).expect("read the guest's functions"));
    Guest::under(scratch, kernel, &built)
        .modules(&["veth", "sch_ingress", "cls_bpf"])
        .modules(modules)
        .with(&source("tests/network/paths.toml"), "/network.toml")
        .with(&tools(scratch), "/tools.tar")
        .with(&talk(scratch), "/bin/talk")
        .names(&format!("own=1\n{}", functions.concat()))
}

/// What one network's packets did: by zone (81: levels, 82: sealed labels) and family, the lines of `speak`.
type Cells = BTreeMap<(u32, u32), Vec<BTreeMap<String, String>>>;

/// The cells in the output of `speak`. A line is its first words, under the name `what`, and its values.
fn cells(step: &Step) -> Cells {
    let mut cells = Cells::new();
    let mut cell = None;
    for line in step.is(0, &[]).text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["cell", zone, family, _] = words[..] {
            cell = Some((zone.parse().unwrap(), family.parse().unwrap()));
            continue;
        }
        let is_value = |word: &&&str| word.contains('=');
        let names: Vec<&str> = words.iter().take_while(|word| !is_value(word)).copied().collect();
        let values = words.iter().filter(is_value).filter_map(|word| word.split_once('='));
        let mut values: BTreeMap<String, String> = values.map(|(name, value)| (name.into(), value.into())).collect();
        values.insert("what".into(), names.join(" "));
        cells.entry(cell.expect("a cell")).or_default().push(values);
    }
    assert!(!cells.is_empty(), "{}", step.text);
    cells
}

/// What is wrong in a cell, in words: nothing, if all arrived whole and at once. A datagram may be lost per cell, for which a
/// router says how long the next ones may be. `cuts`: the kernel cuts what UDP GSO sends.
fn wrong(lines: &[BTreeMap<String, String>], lengths: &str, cuts: bool) -> Vec<String> {
    let number = |line: &BTreeMap<String, String>, name: &str| line[name].parse::<u64>().unwrap();
    let (mut wrong, mut lost, mut seen) = (Vec::new(), 0, [0; 4]);
    for line in lines {
        let is_well = match line["what"].as_str() {
            what if what.starts_with("size") => {
                seen[0] += 1;
                lost += number(line, "lost");
                let is_refused_once = number(line, "refused") <= 1 + number(line, "lost");
                let is_as_asked = line["asked"] == line["length"] || what.ends_with(" df");
                line["whole"] == "yes" && is_refused_once && is_as_asked
            }
            "bulk" => {
                seen[1] += 1;
                line["payload"] == "good" && line["stalls"] == "0" && line["received"] == "1000000"
            }
            // From a level above the server's: it is refused by its label, and nothing else.
            _ if line.get("length").is_some_and(|length| length == "8") => {
                seen[2] += 1;
                line["sent"] == "1" && line["replies"] == "0"
            }
            // The kernel cuts no datagrams whose sums it must compute first.
            _ if line.get("errno").is_some_and(|errno| errno == "EIO") => {
                seen[3] += 1;
                !cuts
            }
            _ => {
                seen[3] += 1;
                line.get("replies").is_some_and(|replies| replies == "10")
            }
        };
        if !is_well {
            wrong.push(format!("{line:?}"));
        }
    }
    let lengths = lengths.split(' ').count();
    if lost > 1 || seen != [2 * lengths, 1, 1, 1] {
        wrong.push(format!("{lost} datagrams lost, {seen:?} lines"));
    }
    wrong
}

/// What is wrong in the step of a row. Prints the row: levels in IPv4 and IPv6, and sealed labels in both.
fn row(name: &str, step: &Step, lengths: &str, cuts: bool) -> Vec<String> {
    let mut failed = Vec::new();
    let cells = cells(step);
    print!("{name:<24}");
    for (zone, family) in [(81, 4), (81, 6), (82, 4), (82, 6)] {
        let Some(lines) = cells.get(&(zone, family)) else {
            print!("{:>12}", "");
            continue;
        };
        let wrong = wrong(lines, lengths, cuts);
        print!("{:>12}", if wrong.is_empty() { "whole" } else { "NOT WHOLE" });
        failed.extend(wrong.iter().map(|wrong| format!("{name}, {zone}, IPv{family}: {wrong}")));
    }
    println!();
    failed
}

fn head(kernel: &str) {
    println!("{kernel:<24}{:>12}{:>12}{:>12}{:>12}", "CIPSO", "CALIPSO", "sealed, 4", "sealed, 6");
}

/// Counters of errors in the output of `errors`, and the packets that were dropped.
#[track_caller]
fn nothing_is_lost(errors: &Step, counts: &Step) {
    let mut found = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    for line in errors.is(0, &[]).text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // /proc/net/snmp6 has one counter per line.
            [space, name, count] if !name.ends_with(':') => {
                drop(found.insert(format!("{space} {name}"), count.to_owned()))
            }
            [space, group, ..] if words[2].parse::<i64>().is_ok() => {
                let counts = names.iter().zip(&words[2..]);
                found.extend(counts.map(|(name, count)| (format!("{space} {group}{name}"), (*count).to_owned())));
            }
            [..] => names = words[2..].to_vec(),
        }
    }
    let errors = ["InCsumErrors", "InHdrErrors", "ReasmFails", "InTruncatedPkts"];
    let is_error = |name: &str| errors.iter().any(|error| name.ends_with(error));
    assert!(found.keys().filter(|name| is_error(name)).count() >= 12, "{found:?}");
    let wrong: Vec<_> = found.iter().filter(|(name, count)| is_error(name) && *count != "0").collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let counts = counts.json();
    let packets = counts["packets"].as_object().unwrap();
    let dropped: Vec<_> =
        packets.iter().filter(|(name, count)| name.starts_with("dropped") && **count != serde_json::json!(0)).collect();
    assert!(dropped.is_empty(), "{dropped:?}");
    assert!(packets["labelled"].as_u64().unwrap() > 1000, "{counts}");
}

/// Fails unless each packet that was captured on its way in has one label.
#[track_caller]
fn all_labelled(captured: &Step) {
    let of_zones = |header: &str, four: bool| {
        let source = if four { header.get(24..28) } else { header.get(16..24) };
        source.is_some_and(|source| ["0a51", "0a52", "fd000081", "fd000082"].contains(&source))
    };
    let mut count = [0; 2];
    for line in captured.is(0, &[]).text.lines().filter(|line| line.starts_with("in ip=")) {
        let four = line.starts_with("in ip=4");
        let header = line.split_once("header=").unwrap().1.split(' ').next().unwrap();
        // Not neighbour discovery.
        if !of_zones(header, four) || header.get(12..16) == Some("3aff") {
            continue;
        }
        count[usize::from(four)] += 1;
        // The whole header: a second label would make it longer.
        let label = (if four { header.get(40..44) } else { header.get(84..86) }, header.len() / 2);
        let expected = [(Some("860c"), 32), (Some("9e16"), 44), (Some("07"), 56), (Some("1e"), 64)];
        assert!(expected.contains(&label), "{line}");
    }
    assert!(count[0] >= 8 && count[1] >= 8, "{count:?}: {}", captured.text);
}

/// The MTU in the answers of `ip route get` for zones 81 and 82, each of IPv4 and IPv6.
fn mtus(step: &Step) -> Vec<u32> {
    let words: Vec<&str> = step.is(0, &[]).text.split_whitespace().filter(|word| *word != "lock").collect();
    let mtu = |pair: &[&str]| (pair[0] == "mtu").then(|| pair[1].parse().ok()).flatten();
    words.windows(2).filter_map(mtu).collect()
}

/// One of each length, TCP and UDP GSO over a router with a shorter link behind it.
fn path(kernel: &'static str, router: &str, expected: &[u32]) {
    let scratch = Scratch::new();
    let capture = "seen $space vb as s1 sh -c 'for zone in 81 82; do \
                   talk sizes 4 10.$zone.2.1 7000 100 3000 --no-df; talk sizes 6 fd00:$zone:2::1 7000 100 3000 --no-df; done'";
    let steps = guest(&scratch, kernel, &["macvlan", "dummy"])
        .step("join", "begin_spaces && join_path")
        .step("enforce", "under_tollgate")
        .step("router", router)
        .step("serve", "serve 2")
        .step("speak", &format!("speak 2 {LENGTHS}"))
        .step("routes", "for zone in 81 82; do ip route get 10.$zone.2.1; ip -6 route get fd00:$zone:2::1; done")
        .step("capture", capture)
        .step("counts", "tollgate net status --json; true")
        .step("errors", "errors own $$; errors router $router; errors far $space")
        .run();
    for step in ["join", "enforce", "router", "serve"] {
        steps[step].is(0, &[]);
    }
    head(kernel);
    let failed = row("1500, router, 1400", &steps["speak"], LENGTHS, true);
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(mtus(&steps["routes"]), expected, "{}", steps["routes"].text);
    all_labelled(&steps["capture"]);
    nothing_is_lost(&steps["errors"], &steps["counts"]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn finds_the_mtu_of_a_path_past_a_router_without_labels() {
    for kernel in KERNELS {
        // 1,400 bytes without the labels of 12, 24 and 24 bytes. For CALIPSO the route itself leaves more room: 1,500 without 144.
        path(kernel, "true", &[1388, 1356, 1376, 1376]);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn finds_the_mtu_of_a_path_past_a_router_with_labels() {
    for kernel in KERNELS {
        // The router's routes leave room for 1,024 categories: 40 bytes of IPv4; of IPv6 144, and no less than 1,280 left.
        let known = "in_space $router tollgate run --context system_u:system_r:talker:s1 -- talk recv udp 4 9999 1";
        path(kernel, known, &[1360, 1280, 1376, 1376]);
    }
}

/// Lengths for a single link.
const FEW_LENGTHS: &str = "1 1436 20000 65507";
const FEATURES: [&str; 5] = ["tso", "gso", "gro", "tx-checksum", "rx-checksum"];

#[test]
#[ignore = "takes long: make test-rest"]
fn loses_nothing_with_each_offload_on_and_off() {
    for kernel in KERNELS {
        each_offload(kernel);
    }
}

/// TCP both ways, datagrams, fragments and UDP GSO on a link with all offloads, without each of them, and without any.
fn each_offload(kernel: &'static str) {
    let scratch = Scratch::new();
    let mut rows: Vec<(String, String)> =
        FEATURES.iter().map(|feature| (format!("without {feature}"), (*feature).to_owned())).collect();
    rows.insert(0, ("all".into(), String::new()));
    rows.push(("none".into(), FEATURES.join(" ")));
    let guest = guest(&scratch, kernel, &[])
        .step("join", "begin_spaces && join_veth")
        .step("enforce", "under_tollgate")
        .step("serve", "serve 3");
    let with_rows = rows.iter().fold(guest, |guest, (name, off)| {
        let set = format!("talk offload va {off}; there talk offload vb {off}");
        guest.step(&format!("set {name}"), &set).step(name, &format!("speak 3 {FEW_LENGTHS}"))
    });
    let steps = with_rows
        .step("counts", "tollgate net status --json; true")
        .step("errors", "errors own $$; errors far $space")
        .run();
    for step in ["join", "enforce", "serve"] {
        steps[step].is(0, &[]);
    }
    head(kernel);
    let mut failed = Vec::new();
    for (name, off) in &rows {
        // What the test switches off is off, and what it switches on is on.
        let set = steps[&format!("set {name}")].is(0, &[]);
        let wanted = |feature: &&str| format!("{feature}={}", if off.contains(*feature) { "off" } else { "on" });
        for feature in ["gso", "gro", "tx-checksum"] {
            assert_eq!(set.text.matches(&wanted(&feature)).count(), 2, "{name}: {}", set.text);
        }
        failed.extend(row(name, &steps[name], FEW_LENGTHS, !off.contains("tx-checksum")));
    }
    assert!(failed.is_empty(), "{failed:#?}");
    nothing_is_lost(&steps["errors"], &steps["counts"]);
}

/// Devices that stand on others, the last number of their networks, and what `speak` needs to know of them.
const STACKED: [(&str, u32, &str); 8] = [
    ("VLAN", 5, ""),
    ("bridge", 6, ""),
    ("ipip", 7, "families=4"),
    ("vxlan", 8, ""),
    ("gre", 9, ""),
    ("sit", 10, "families=6"),
    ("containers, bridge", 11, "from=$router"),
    ("containers, routed", 13, "from=$router"),
];

#[test]
#[ignore = "takes long: make test-rest"]
fn labels_packets_once_on_devices_that_stand_on_others() {
    for kernel in KERNELS {
        stacked(kernel);
    }
}

fn stacked(kernel: &'static str) {
    let scratch = Scratch::new();
    let guest = guest(&scratch, kernel, &["8021q", "bridge", "ipip", "vxlan", "ip_gre", "sit"])
        .step("join", "begin_spaces && join_veth && join_stacked && join_containers && join_routed")
        .step("enforce", "under_tollgate")
        .step("serve", "serve 3");
    let guest = STACKED
        .iter()
        .fold(guest, |guest, (name, network, how)| guest.step(name, &format!("{how} speak {network} {FEW_LENGTHS}")));
    let capture = |device: &str, network: u32| {
        format!(
            "seen $space {device} as s1 sh -c 'for zone in 81 82; do talk sizes 4 10.$zone.{network}.1 7000 1 3000 20 --no-df
                talk sizes 6 fd00:$zone:{network}::1 7000 1 3000 20 --no-df; done'"
        )
    };
    let steps = guest
        .step("VLAN captured", &capture("vb", 5))
        .step("bridge captured", &capture("vd", 6))
        .step("counts", "tollgate net status --json; true")
        .step("errors", "errors own $$; errors far $space")
        .run();
    for step in ["join", "enforce", "serve"] {
        steps[step].is(0, &[]);
    }
    head(kernel);
    let failed: Vec<_> = STACKED.iter().flat_map(|(name, ..)| row(name, &steps[*name], FEW_LENGTHS, true)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    all_labelled(&steps["VLAN captured"]);
    all_labelled(&steps["bridge captured"]);
    nothing_is_lost(&steps["errors"], &steps["counts"]);
}
