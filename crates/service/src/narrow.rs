//! Ports without a type of their own share one type. If rules for it were learnt from a few ports, these get a type of
//! their own.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_audit::learn::{Evidence, Rule, Subject};

use crate::listening::{Port, Protocol};

/// The types of ports that have none of their own.
pub const UNTYPED: [&str; 2] = ["port_t", "reserved_port_t"];
/// How many ports a module names one by one. A domain that uses more may use all.
const MAX_NAMED: usize = 8;

/// Ports that get types of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// The domain listens on these.
    pub bound: BTreeSet<Port>,
    /// The domain connects to these.
    pub connected: BTreeSet<Port>,
}

/// Removes rules about ports without a type from the rules of `domain`, if they were learnt from a few ports.
pub fn narrow(rules: &mut BTreeMap<Subject, Rule>, domain: &str) -> Narrowed {
    let mut narrowed = Narrowed::default();
    for ((source, target, class), rule) in rules.iter_mut() {
        let Some(protocol) = protocol(class).filter(|_| source == domain && UNTYPED.contains(&target.as_str())) else {
            continue;
        };
        for (permission, key, ports) in
            [("name_bind", "src=", &mut narrowed.bound), ("name_connect", "dest=", &mut narrowed.connected)]
        {
            let found = rule.permissions.get(permission).and_then(|evidence| numbers(evidence, key));
            if let Some(found) = found {
                ports.extend(found.into_iter().map(|number| Port { protocol, number }));
                rule.permissions.remove(permission);
            }
        }
    }
    rules.retain(|_, rule| !rule.permissions.is_empty() || !rule.commands.is_empty());
    narrowed
}

fn protocol(class: &str) -> Option<Protocol> {
    match class {
        "tcp_socket" => Some(Protocol::Tcp),
        "udp_socket" => Some(Protocol::Udp),
        _ => None,
    }
}

/// The ports of all objects in the evidence; `None`: they are too many, or not known.
fn numbers(evidence: &Evidence, key: &str) -> Option<BTreeSet<u16>> {
    let number = |object: &String| object.split(' ').find_map(|word| word.strip_prefix(key))?.parse().ok();
    let numbers: Option<BTreeSet<u16>> = evidence.objects.iter().map(number).collect();
    numbers.filter(|numbers| (1..=MAX_NAMED).contains(&numbers.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &[(&str, &str, &str, &[&str])]) -> BTreeMap<Subject, Rule> {
        let mut all: BTreeMap<Subject, Rule> = BTreeMap::new();
        for (target, class, permission, objects) in rules {
            let subject = ["web.t", target, class].map(str::to_owned).into();
            let objects = objects.iter().map(|object| (*object).to_owned()).collect();
            let evidence = Evidence { count: 1, objects, ..Evidence::default() };
            all.entry(subject).or_default().permissions.insert((*permission).to_owned(), evidence);
        }
        all
    }

    fn ports(numbers: &[u16]) -> BTreeSet<Port> {
        numbers.iter().map(|number| Port { protocol: Protocol::Tcp, number: *number }).collect()
    }

    #[test]
    fn takes_ports_that_it_used_for_types_of_their_own() {
        let mut all = rules(&[
            ("port_t", "tcp_socket", "name_bind", &["src=8085", "saddr=127.0.0.1 src=8086"]),
            ("port_t", "tcp_socket", "name_connect", &["dest=9200"]),
            ("http_port_t", "tcp_socket", "name_connect", &["dest=80"]),
        ]);
        let narrowed = narrow(&mut all, "web.t");
        assert_eq!(narrowed, Narrowed { bound: ports(&[8085, 8086]), connected: ports(&[9200]) });
        assert_eq!(all, rules(&[("http_port_t", "tcp_socket", "name_connect", &["dest=80"])]));
    }

    #[test]
    fn leaves_a_rule_for_any_port_where_ports_are_many_or_not_known() {
        let many: Vec<String> = (5000..5020).map(|port| format!("dest={port}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let all = rules(&[
            ("port_t", "tcp_socket", "name_connect", &many),
            ("port_t", "udp_socket", "name_bind", &[]),
            ("reserved_port_t", "tcp_socket", "name_bind", &["src=99", "strange"]),
        ]);
        let mut narrowed = all.clone();
        assert_eq!(narrow(&mut narrowed, "web.t"), Narrowed::default());
        assert_eq!(narrowed, all);
        assert_eq!(narrow(&mut narrowed, "other.t"), Narrowed::default());
    }
}
