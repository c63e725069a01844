//! Zones in Tollgate's own policy, with libsepol's evaluator as the oracle.

use std::{path::Path, sync::LazyLock};

use tollgate_policy::{
    built::Built,
    oracle::Oracle,
    sepol::{self, CilFile, Options},
    sources::{self, Sources},
};

use super::{Zones, ZonesError};

/// A web server that uses a cache on another machine; mail, and a database that nobody else reaches.
const ZONES: &str = r#"
[[zone]]
name = "web"
groups = ["web", "edge"]
addresses = ["10.1.0.0/16", "fd00:1::/64"]
domains = ["httpd.t", "httpd.script_t"]
ports = ["http_port_t"]

[[zone]]
name = "store"
groups = ["store"]
addresses = ["10.2.0.0/16"]
domains = ["cache.t"]

[[zone]]
name = "mail"
groups = ["mail"]
addresses = ["10.3.0.1"]
domains = ["mta.t"]
ports = ["smtp_port_t"]

[[zone]]
name = "db"
groups = ["db"]
addresses = ["10.4.0.0/16"]
domains = ["db.t"]

[[flow]]
from = "web"
to = "store"
ports = ["cache_port_t"]

[[flow]]
from = "outside"
to = "web"
ports = ["http_port_t"]

[[flow]]
from = "mail"
to = "outside"
ports = ["smtp_port_t"]
"#;

/// The classes that zones have something to do with, and others.
const CLASSES: [&str; 9] =
    ["peer", "node", "netif", "tcp_socket", "udp_socket", "unix_stream_socket", "unix_dgram_socket", "process", "file"];

const HTTPD: &str = "system_u:system_r:httpd.t:s0";
const CACHE: &str = "system_u:system_r:cache.t:s0";
const MTA: &str = "system_u:system_r:mta.t:s0";
const DB: &str = "system_u:system_r:db.t:s0";
const NTP: &str = "system_u:system_r:ntp.t:s0";

fn zones(text: &str) -> Result<Zones, ZonesError> {
    Zones::parse(text.as_bytes())
}

/// The files of Tollgate's own policy.
fn files() -> Vec<CilFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/tollgate");
    let Sources::Cil { files, .. } = sources::read(&[folder]).unwrap() else { panic!("the policy is CIL") };
    files
}

/// This policy with other statements.
fn built(more: &str) -> Built {
    let mut files = files();
    files.push(CilFile { name: "zones.cil".into(), text: more.into() });
    compile(&files)
}

fn compile(files: &[CilFile]) -> Built {
    let options = Options { without_lines: true, ..Options::default() };
    Built::from_compiled(sepol::compile(files, &options).unwrap()).unwrap()
}

static BASE: LazyLock<Built> = LazyLock::new(|| built(""));
static ZONED: LazyLock<Built> = LazyLock::new(|| built(&zones(ZONES).unwrap().statements(&BASE.to_bytes()).unwrap()));

fn node(zone: &str) -> String {
    format!("system_u:object_r:zone_{zone}_node:s0-s15:c0.c1023")
}

fn port(name: &str) -> String {
    format!("system_u:object_r:{name}_port_t:s0")
}

/// What libsepol says of the policy with zones.
struct Asked(Oracle);

impl Asked {
    fn new() -> Self {
        Self(Oracle::load(&ZONED.image).unwrap())
    }

    fn allows(&mut self, source: &str, target: &str, class: &str, permission: &str) -> bool {
        let policy = &ZONED.policy;
        let number = policy.classes.iter().position(|known| known.name == class).unwrap();
        let bit = policy.classes[number].permissions.iter().position(|known| known == permission).unwrap();
        let (source, target) = (self.0.sid(source).unwrap(), self.0.sid(target).unwrap());
        self.0.access(source, target, number as u32).allowed >> bit & 1 == 1
    }
}

#[test]
fn lets_through_what_a_flow_names() {
    let mut asked = Asked::new();
    for (source, target, class, permission) in [
        (HTTPD, &port("cache")[..], "tcp_socket", "name_connect"),
        (HTTPD, &node("store"), "node", "sendto"),
        (CACHE, HTTPD, "peer", "recv"),
        (CACHE, &node("web"), "node", "sendto"),
        (HTTPD, CACHE, "peer", "recv"),
        (CACHE, &node("store"), "node", "recvfrom"),
        (CACHE, &port("cache"), "tcp_socket", "name_bind"),
        // Within a zone, and with the outside if a flow names it.
        (HTTPD, HTTPD, "peer", "recv"),
        (HTTPD, &node("web"), "node", "sendto"),
        (HTTPD, "system_u:object_r:netmsg_t:s0", "peer", "recv"),
        (MTA, &port("smtp"), "tcp_socket", "name_connect"),
        (MTA, "system_u:object_r:node_t:s0", "node", "sendto"),
        // With its own machine.
        (DB, "system_u:object_r:lo_node_t:s0", "node", "sendto"),
        (DB, DB, "peer", "recv"),
        // What is in no zone does as before.
        (NTP, NTP, "peer", "recv"),
        (NTP, &node("db"), "node", "sendto"),
    ] {
        assert!(asked.allows(source, target, class, permission), "{source} {target} {class} {permission}");
    }
}

#[test]
fn denies_a_domain_that_was_taken_over_everything_of_another_zone() {
    let mut asked = Asked::new();
    for (source, target, class, permission) in [
        (MTA, HTTPD, "peer", "recv"),
        (HTTPD, MTA, "peer", "recv"),
        (HTTPD, &node("mail")[..], "node", "sendto"),
        (MTA, &node("web"), "node", "sendto"),
        // On the same machine, too.
        (HTTPD, DB, "unix_stream_socket", "connectto"),
        // The other way round than the flow, and by other ports.
        (CACHE, &port("http"), "tcp_socket", "name_connect"),
        (CACHE, &port("cache"), "tcp_socket", "name_connect"),
        (HTTPD, &port("dns"), "tcp_socket", "name_connect"),
        (DB, &port("db"), "tcp_socket", "name_bind"),
        // To and from the outside.
        (DB, "system_u:object_r:netmsg_t:s0", "peer", "recv"),
        (DB, NTP, "peer", "recv"),
        (NTP, DB, "peer", "recv"),
        (CACHE, "system_u:object_r:node_t:s0", "node", "sendto"),
        // A host that claims to run another zone's domain.
        (HTTPD, &node("store"), "node", "recvfrom"),
        (HTTPD, "system_u:object_r:node_t:s0", "node", "recvfrom"),
    ] {
        assert!(!asked.allows(source, target, class, permission), "{source} {target} {class} {permission}");
    }
}

#[test]
fn allows_nothing_that_the_policy_without_zones_denies() {
    let names: Vec<&str> =
        BASE.policy.types.iter().filter(|t| !t.attribute && !t.name.is_empty()).map(|t| &t.name[..]).collect();
    let contexts: Vec<String> = names.iter().map(|name| format!("system_u:object_r:{name}:s0")).collect();
    let named = |(_, class): &(u32, &tollgate_policy::model::Class)| CLASSES.contains(&&class.name[..]);
    let classes: Vec<u32> = (0..).zip(&BASE.policy.classes).filter(named).map(|(number, _)| number).collect();
    assert_eq!(classes.len(), CLASSES.len());
    let answers = |image: &[u8], contexts: &[String]| -> Vec<u32> {
        let mut oracle = Oracle::load(image).unwrap();
        let sids: Vec<u32> = contexts.iter().map(|context| oracle.sid(context).unwrap()).collect();
        let pairs = sids.iter().flat_map(|source| sids.iter().map(move |target| (*source, *target)));
        pairs
            .flat_map(|(one, two)| classes.iter().map(move |class| (one, two, *class)))
            .map(|(one, two, class)| oracle.access(one, two, class).allowed)
            .collect()
    };
    let (before, after) = (answers(&BASE.image, &contexts), answers(&ZONED.image, &contexts));
    assert!(before.iter().zip(&after).all(|(before, after)| after & !before == 0));
    let fewer = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    println!("{} answers, of which zones deny something in {fewer}", before.len());
    assert!(fewer > 0);
    // A zone's host is a host like any other but for that.
    let with = |node: &str| -> Vec<String> {
        contexts.iter().cloned().chain([format!("system_u:object_r:{node}:s0")]).collect()
    };
    let (before, after) = (answers(&BASE.image, &with("node_t")), answers(&ZONED.image, &with("zone_db_node")));
    assert!(before.iter().zip(&after).all(|(before, after)| after & !before == 0));
}

#[test]
fn reports_what_crosses_and_what_is_open_in_a_policy_without_zones() {
    let zones = zones(ZONES).unwrap();
    let report = zones.report(&ZONED.to_bytes()).unwrap();
    assert_eq!(report.open, [""; 0]);
    let ways = |at: usize| -> Vec<String> {
        let ways = report.crossings[at].ways.iter();
        ways.map(|way| format!("{} {} {} {}", way.source, way.target, way.protocol, way.port)).collect()
    };
    assert_eq!(ways(0), ["httpd.t cache.t tcp cache_port_t", "httpd.t cache.t udp cache_port_t"]);
    assert_eq!(ways(1), ["outside httpd.t tcp http_port_t", "outside httpd.t udp http_port_t"]);
    assert_eq!(ways(2), ["mta.t outside tcp smtp_port_t", "mta.t outside udp smtp_port_t"]);
    assert_eq!(report.crossings[0].ports[0].numbers, ["tcp 6379", "tcp 11211", "udp 6379", "udp 11211"]);
    let open = zones.report(&BASE.to_bytes()).unwrap().open;
    assert!(open.iter().any(|line| line == "its hosts have no type of the zone web"), "{open:?}");
    assert!(open.iter().any(|line| *line == format!("{MTA}\t{HTTPD}\tpeer\t-recv")), "{open:?}");
    // The policy with zones gets the same statements.
    assert_eq!(zones.statements(&ZONED.to_bytes()).unwrap(), zones.statements(&BASE.to_bytes()).unwrap());
}

#[test]
fn asks_questions_that_a_policy_with_other_zones_fails() {
    let zones = zones(ZONES).unwrap();
    let questions = zones.questions(&ZONED.to_bytes()).unwrap();
    assert!(questions.contains(&format!("{HTTPD}\t{}\tnode\t-sendto\n", node("db"))), "{questions}");
    assert!(questions.contains(&format!("{HTTPD}\t{}\ttcp_socket\t-name_connect\n", port("dns"))), "{questions}");
    assert!(questions.lines().all(|line| line.split('\t').count() == 4));
    let wider = ZONES.to_owned() + "[[flow]]\nfrom = \"web\"\nto = \"db\"\nports = [\"db_port_t\"]\n";
    let wider = built(&super::Zones::parse(wider.as_bytes()).unwrap().statements(&BASE.to_bytes()).unwrap());
    let open = zones.report(&wider.to_bytes()).unwrap().open;
    assert!(open.contains(&format!("{HTTPD}\t{}\tnode\t-sendto", node("db"))), "{open:?}");
}

#[test]
fn refuses_zones_that_mean_nothing_and_says_what_helps() {
    for (from, to, part) in [
        ("\"edge\"", "\"store\"", "the group store is in zone web already; a node is in one zone"),
        ("[\"cache.t\"]", "[\"httpd.t\"]", "the domain httpd.t is in zone web already"),
        ("10.2.0.0/16", "10.1.7.0/24", "10.1.7.0/24 and 10.1.0.0/16 of zone web have addresses in common"),
        ("10.2.0.0/16", "127.0.0.0/16", "leave 127.0.0.0/8 and ::1 out"),
        ("10.2.0.0/16", "10.2.0.1/16", "is no network"),
        ("to = \"store\"", "to = \"web\"", "flow from web to web: a zone talks to itself without a flow"),
        ("to = \"store\"", "to = \"stor\"", "there is no zone stor (like it: store)"),
        ("name = \"store\"", "name = \"outside\"", "no name of a zone"),
        ("name = \"store\"", "name = \"web\"", "there are two of this name"),
        ("name = \"store\"", "name = \"a) (allow\"", "no name of a zone"),
        ("[\"cache.t\"]", "[\"cache.t) (allow\"]", "is no type"),
        ("[\"cache.t\"]", "[]", "it has no domains"),
        ("[\"cache_port_t\"]", "[]", "it has no ports"),
        ("from = \"mail\"\nto = \"outside\"", "from = \"outside\"\nto = \"web\"", "it is there twice"),
        ("groups = [\"mail\"]", "group = [\"mail\"]", "unknown field `group`"),
    ] {
        let text = ZONES.replace(from, to);
        assert_ne!(text, ZONES, "{from}");
        let error = zones(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(zones(&"x".repeat(2 << 20)).unwrap_err().to_string().contains("longer than"));
}

#[test]
fn refuses_names_that_the_policy_does_not_have_as_what_they_must_be() {
    let policy = BASE.to_bytes();
    for (from, to, part) in [
        ("cache.t", "cash.t", "zone store: the policy has no type `cash.t`"),
        ("cache.t", "unconfined_t", "the machine's own domain"),
        ("cache.t", "http_port_t", "http_port_t is no domain"),
        ("cache.t", "confined", "attribute"),
        ("cache_port_t", "cash_port_t", "flow from web to store: the policy has no type `cash_port_t`"),
        ("cache_port_t", "cache.t", "no port has the type cache.t"),
    ] {
        let error = zones(&ZONES.replace(from, to)).unwrap().report(&policy).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn refuses_a_policy_that_cannot_tell_hosts_and_peers_apart() {
    let zones = zones(ZONES).unwrap();
    for (from, to, part) in [
        ("(policycap network_peer_controls)", "", "does not check the peers of packets"),
        ("node_type", "hosts", "has no attribute node_type"),
        ("(nodecon lo6 lo6_mask (system_u object_r lo_node_t full))", "", "labels 127.0.0.1 or ::1 as any host"),
    ] {
        let mut files = files();
        for file in &mut files {
            file.text = String::from_utf8_lossy(&file.text).replace(from, to).into_bytes();
        }
        let error = zones.statements(&compile(&files).to_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}
