//! Labels of ports by the administrator: lines `portcon tcp 8000-8010 CONTEXT`, as in SELinux's ports.local.

use std::fmt;

use super::StoreError;
use crate::{
    context::{self, Kind, Names},
    model::{Policy, PortContext},
};

/// The attribute that types of ports have, if the policy has it.
const PORT_TYPE: &str = "port_type";
const EXPECTED: &str = "`portcon PROTOCOL PORT[-PORT] USER:ROLE:TYPE:RANGE` is expected";

/// A transport protocol whose ports can have labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Protocol {
    Tcp,
    Udp,
    Dccp,
    Sctp,
}

impl Protocol {
    /// All protocols, with their names and their numbers in IP packets.
    const ALL: [(Self, &'static str, u8); 4] =
        [(Self::Tcp, "tcp", 6), (Self::Udp, "udp", 17), (Self::Dccp, "dccp", 33), (Self::Sctp, "sctp", 132)];

    /// The protocol with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own, _)| *own == name).map(|(protocol, ..)| *protocol)
    }

    fn number(self) -> u8 {
        Self::ALL.iter().find(|(protocol, ..)| *protocol == self).map_or(0, |(.., number)| *number)
    }

    /// The name for a protocol number of IP packets.
    fn name_of(number: u8) -> String {
        let found = Self::ALL.iter().find(|(.., own)| *own == number);
        found.map_or_else(|| number.to_string(), |(_, name, _)| (*name).to_owned())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::name_of(self.number()))
    }
}

/// Ports of a protocol, and their label.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Port {
    pub protocol: Protocol,
    /// The first port.
    pub low: u16,
    /// The last port.
    pub high: u16,
    /// The context; empty where it does not matter.
    pub context: String,
}

impl Port {
    /// Reads ports `8085` or `8000-8010`; `None`: they are not valid.
    pub fn new(protocol: Protocol, ports: &str, context: &str) -> Option<Self> {
        let (low, high) = ports.split_once('-').unwrap_or((ports, ports));
        let (low, high) = (low.parse().ok()?, high.parse().ok()?);
        (0 < low && low <= high).then(|| Self { protocol, low, high, context: context.to_owned() })
    }

    /// The ports that a policy labels.
    pub fn of(policy: &Policy) -> Vec<Self> {
        let known = policy.ports.iter().filter_map(|label| {
            let (protocol, ..) = Protocol::ALL.iter().find(|(.., number)| *number == label.protocol)?;
            let context = context::text(policy, &label.context);
            Some(Self { protocol: *protocol, low: label.low, high: label.high, context })
        });
        known.collect()
    }

    /// Whether both have the same ports.
    pub fn is_for(&self, other: &Self) -> bool {
        (self.protocol, self.low, self.high) == (other.protocol, other.low, other.high)
    }

    fn is(&self, label: &PortContext) -> bool {
        (self.protocol.number(), self.low, self.high) == (label.protocol, label.low, label.high)
    }

    /// Whether they overlap, and neither contains the other.
    fn crosses(&self, label: &PortContext) -> bool {
        let holds = |a: (u16, u16), b: (u16, u16)| a.0 <= b.0 && b.1 <= a.1;
        let (own, other) = ((self.low, self.high), (label.low, label.high));
        let meet = own.0 <= other.1 && other.0 <= own.1;
        self.protocol.number() == label.protocol && meet && !holds(own, other) && !holds(other, own)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol, range(self.low, self.high))
    }
}

/// Ports as people write them.
fn range(low: u16, high: u16) -> String {
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}

/// The label in each line of a text; `None`: the line is empty or a comment.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<Option<Port>>, StoreError> {
    let lines = (1..).zip(text.lines());
    let parsed = lines.map(|(line, text)| {
        let wrong = || StoreError::Line { file: file.to_owned(), line, expected: EXPECTED };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [] => Ok(None),
            [first, ..] if first.starts_with('#') => Ok(None),
            ["portcon", protocol, ports, context] => {
                let port = Protocol::find(protocol).and_then(|protocol| Port::new(protocol, ports, context));
                port.filter(|port| cil_context(&port.context).is_some()).map(Some).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    });
    parsed.collect()
}

/// The text with a label, in the place of the one that it has for these ports, or at the end.
pub(super) fn with(text: &str, port: &Port) -> String {
    let Port { protocol, low, high, context } = port;
    without(text, port) + &format!("portcon {protocol} {} {context}\n", range(*low, *high))
}

/// The text without the label of these ports.
pub(super) fn without(text: &str, port: &Port) -> String {
    let is_for = |line: &&str| parse(line, "").is_ok_and(|found| found.iter().flatten().any(|own| own.is_for(port)));
    text.lines().filter(|line| !is_for(line)).flat_map(|line| [line, "\n"]).collect()
}

/// The labels as CIL, each on the line that it has in the file.
pub(super) fn cil(ports: &[Option<Port>]) -> String {
    let statement = |port: &Option<Port>| {
        let port = port.as_ref()?;
        let ports = if port.low == port.high { port.low.to_string() } else { format!("({} {})", port.low, port.high) };
        Some(format!("(portcon {} {ports} {})", port.protocol, cil_context(&port.context)?))
    };
    ports.iter().map(|port| statement(port).unwrap_or_default() + "\n").collect()
}

/// A context as CIL: `(system_u object_r web_port_t ((s0) (s0)))`; `None` of what is none.
fn cil_context(text: &str) -> Option<String> {
    let named = |name: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        (!name.is_empty() && name.chars().all(fits)).then(|| name.to_owned())
    };
    let [user, role, type_, range] = text.splitn(4, ':').collect::<Vec<_>>()[..] else { return None };
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let [user, role, type_] = [named(user)?, named(role)?, named(type_)?];
    Some(format!("({user} {role} {type_} ({} {}))", cil_level(low)?, cil_level(high)?))
}

/// A level as CIL: `(s0 (c1 (range c3 c5)))`.
fn cil_level(text: &str) -> Option<String> {
    let word = |name: &str| {
        (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then(|| name.to_owned())
    };
    let (sensitivity, categories) = text.split_once(':').map_or((text, None), |(one, other)| (one, Some(other)));
    let sensitivity = word(sensitivity)?;
    let Some(categories) = categories else { return Some(format!("({sensitivity})")) };
    let categories = categories.split(',').map(|item| match item.split_once('.') {
        Some((first, last)) => Some(format!("(range {} {})", word(first)?, word(last)?)),
        None => word(item),
    });
    Some(format!("({sensitivity} ({}))", categories.collect::<Option<Vec<_>>>()?.join(" ")))
}

/// Whether ports can have a label that they do not have yet.
pub(super) fn check(port: &Port, policy: &Policy) -> Result<(), StoreError> {
    let names = Names::of(policy);
    let text = |label: &PortContext| context::text(policy, &label.context);
    if let Some(label) = policy.ports.iter().find(|label| port.is(label)) {
        return Err(StoreError::PortTaken { port: port.to_string(), context: text(label) });
    }
    check_all(std::slice::from_ref(port), policy)?;
    let type_ = port.context.split(':').nth(2).unwrap_or_default();
    let number = names.find(Kind::Type, type_)?;
    let attribute = names.attribute(PORT_TYPE).and_then(|attribute| policy.types.get(attribute as usize));
    match attribute {
        Some(attribute) if !attribute.set.has(number) => Err(StoreError::NotPortType { type_: type_.to_owned() }),
        _ => Ok(()),
    }
}

/// Whether the labels of a policy leave open which of them ports have.
pub(super) fn check_all(ports: &[Port], policy: &Policy) -> Result<(), StoreError> {
    for port in ports {
        if let Some(label) = policy.ports.iter().find(|label| port.crosses(label)) {
            let other = format!("{} {}", Protocol::name_of(label.protocol), range(label.low, label.high));
            let context = context::text(policy, &label.context);
            return Err(StoreError::PortsOverlap { port: port.to_string(), other, context });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Context;

    const CONTEXT: &str = "u:object_r:web.port_t:s0";

    fn port(ports: &str) -> Port {
        Port::new(Protocol::Tcp, ports, CONTEXT).unwrap()
    }

    fn labelled(low: u16, high: u16) -> Policy {
        let ports = vec![PortContext { protocol: 6, low, high, context: Context::default() }];
        Policy { ports, ..Policy::default() }
    }

    #[test]
    fn reads_what_it_wrote_and_keeps_what_people_wrote() {
        let text = with(&with("# ours\n", &port("8085")), &port("8000-8010"));
        assert_eq!(text, format!("# ours\nportcon tcp 8085 {CONTEXT}\nportcon tcp 8000-8010 {CONTEXT}\n"));
        let known: Vec<Port> = parse(&text, "f").unwrap().into_iter().flatten().collect();
        assert_eq!(known, [port("8085"), port("8000-8010")]);
        let other = Port { context: "u:object_r:other_t:s0".into(), ..port("8085") };
        assert_eq!(parse(&with(&text, &other), "f").unwrap().len(), 3, "one label for each port");
        assert_eq!(without(&text, &port("8085")), format!("# ours\nportcon tcp 8000-8010 {CONTEXT}\n"));
    }

    #[test]
    fn becomes_cil_on_the_same_line() {
        let text = "# ours\nportcon udp 5-9 u:object_r:p:s0-s15:c0.c1023,c1025\n\nportcon sctp 9 u:object_r:p:s0\n";
        let cil = cil(&parse(text, "f").unwrap());
        let expected = "\n(portcon udp (5 9) (u object_r p ((s0) (s15 ((range c0 c1023) c1025)))))\n\n\
                        (portcon sctp 9 (u object_r p ((s0) (s0))))\n";
        assert_eq!(cil, expected);
    }

    #[test]
    fn names_the_line_that_labels_nothing() {
        for wrong in [
            "portcon tcp 80",
            "portcon ip 80 u:r:t:s0",
            "portcon tcp 0 u:r:t:s0",
            "portcon tcp 9-8 u:r:t:s0",
            "portcon tcp 65536 u:r:t:s0",
            "portcon tcp 80 u:r:t",
            "portcon tcp 80 u:r:(t:s0",
        ] {
            let error = parse(&format!("# ours\n{wrong}\n"), "f").unwrap_err().to_string();
            assert!(error.starts_with("f, line 2: `portcon "), "{wrong}: {error}");
        }
    }

    #[test]
    fn refuses_labels_that_leave_open_which_a_port_has() {
        let verdict = |ports: &str| check_all(&[port(ports)], &labelled(100, 200)).is_ok();
        for held in ["100-200", "120-130", "100-199", "50-300", "201-300", "1-99"] {
            assert!(verdict(held), "{held}");
        }
        for crossing in ["50-100", "50-150", "200-201", "101-300"] {
            assert!(!verdict(crossing), "{crossing}");
        }
        let udp = Port { protocol: Protocol::Udp, ..port("50-150") };
        assert!(check_all(&[udp], &labelled(100, 200)).is_ok());
    }

    #[test]
    fn refuses_ports_that_have_a_label() {
        let error = check(&port("100-200"), &labelled(100, 200)).unwrap_err().to_string();
        assert!(error.starts_with("tcp 100-200 is "), "{error}");
    }
}
