//! The policy file that confines a service. It is written here, and read again when the command is called again.
//!
//! Its header names the service and its state. Learnt rules stay when the block is written again.

use std::{collections::BTreeSet, fmt};

use crate::{
    block::{Block, Way},
    listening::{Port, Protocol},
};

const HEADER_PREFIX: &str = "; Made by `tollgate service confine` for ";
const DOMAIN: &str = "; Domain: ";
const STATE: &str = "; State: ";
const ENFORCED: &str = "enforced";
const LEARNING: &str = "learning since ";
const LEARNT: &str = "; ---- Learnt.";

/// The state of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Its domain is permissive since this time, in the format of the audit log.
    Learning(String),
    /// What its rules do not allow is denied.
    Enforced,
}

/// A policy module for one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name of the unit, or path of the program.
    pub subject: String,
    /// Type of the domain.
    pub domain: String,
    /// How far it is.
    pub state: State,
    /// The block; empty if the policy has a domain for the service.
    pub block: String,
    /// Learnt rules, as CIL with their evidence.
    pub learnt: String,
}

impl Module {
    /// The module for a service with its own block, and the rules that an earlier one had learnt.
    #[must_use]
    pub fn of_block(subject: &str, block: &Block, since: &str, before: Option<&Self>) -> Self {
        let state = match block.way {
            Way::Learn => State::Learning(since.to_owned()),
            Way::Macro => State::Enforced,
        };
        Self {
            subject: subject.to_owned(),
            domain: block.domain(),
            state,
            block: block.cil(),
            learnt: before.map(|before| before.learnt.clone()).unwrap_or_default(),
        }
    }

    /// The module for a service that the policy has a domain for.
    #[must_use]
    pub fn of_domain(subject: &str, domain: &str, state: State) -> Self {
        let [subject, domain] = [subject, domain].map(str::to_owned);
        Self { subject, domain, state, block: String::new(), learnt: String::new() }
    }

    /// Adds rules as CIL.
    pub fn learn(&mut self, rules: &str) {
        if !rules.trim().is_empty() {
            self.learnt.push_str(rules.trim_end());
            self.learnt.push_str("\n\n");
        }
    }

    /// Reads the module from a file; `None`: something else has written the file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let subject = lines.next()?.strip_prefix(HEADER_PREFIX)?.strip_suffix('.')?.to_owned();
        let domain = lines.next()?.strip_prefix(DOMAIN)?.strip_suffix('.')?.to_owned();
        let state = match lines.next()?.strip_prefix(STATE)?.strip_suffix('.')? {
            ENFORCED => State::Enforced,
            other => State::Learning(other.strip_prefix(LEARNING)?.to_owned()),
        };
        let rest: Vec<&str> = lines.skip_while(|line| line.starts_with(';')).collect();
        let at = rest.iter().position(|line| *line == LEARNT).unwrap_or(rest.len());
        let (block, learnt) = (&rest[..at], rest.get(at + 1..).unwrap_or_default());
        let permissive = permissive(&domain);
        let text = |lines: &[&str]| {
            let text = lines.iter().filter(|line| **line != permissive).copied().collect::<Vec<_>>().join("\n");
            let text = text.trim();
            if text.is_empty() { String::new() } else { format!("{text}\n") }
        };
        let learnt = text(learnt);
        let learnt = if learnt.is_empty() { learnt } else { format!("{learnt}\n") };
        Some(Self { subject, domain, state, block: text(block), learnt })
    }

    /// The ports to which its block gives a type.
    #[must_use]
    pub fn ports(&self, kind: &str) -> BTreeSet<Port> {
        let port = |line: &str| {
            let (port, rest) = line.trim().strip_prefix("(portcon ")?.split_once(" (")?;
            let (protocol, number) = port.split_once(' ')?;
            let protocol = [Protocol::Tcp, Protocol::Udp].into_iter().find(|own| own.to_string() == protocol)?;
            rest.split(' ').any(|word| word == kind).then_some(Port { protocol, number: number.parse().ok()? })
        };
        self.block.lines().filter_map(port).collect()
    }
}

fn permissive(domain: &str) -> String {
    format!("(typepermissive {domain})")
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, domain, state, block, learnt } = self;
        writeln!(f, "{HEADER_PREFIX}{subject}.")?;
        writeln!(f, "{DOMAIN}{domain}.")?;
        match state {
            State::Learning(since) => writeln!(f, "{STATE}{LEARNING}{since}.")?,
            State::Enforced => writeln!(f, "{STATE}{ENFORCED}.")?,
        }
        writeln!(
            f,
            "; The block is written anew by that command; rules of your own belong into a file beside this one.\n"
        )?;
        f.write_str(block)?;
        if matches!(state, State::Learning(_)) {
            writeln!(f, "{}", permissive(domain))?;
        }
        if learnt.is_empty() { Ok(()) } else { write!(f, "\n{LEARNT}\n{learnt}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(state: State, learnt: &str) -> Module {
        Module {
            subject: "web.service".to_owned(),
            domain: "web.t".to_owned(),
            state,
            block: "(block web\n  (type t)\n  (portcon tcp 8085 (system_u object_r port_t lowest))\n  \
                    (portcon tcp 9200 (system_u object_r remote_port_t lowest)))\n"
                .to_owned(),
            learnt: learnt.to_owned(),
        }
    }

    #[test]
    fn reads_what_it_wrote() {
        for state in [State::Enforced, State::Learning("2026-11-23T19:00:00.000Z".to_owned())] {
            for learnt in ["", "; once\n(allow web.t web.data_t (file (read)))\n\n"] {
                let module = module(state.clone(), learnt);
                assert_eq!(Module::parse(&module.to_string()), Some(module));
            }
            let shipped = Module::of_domain("nginx.service", "httpd.t", state);
            assert_eq!(Module::parse(&shipped.to_string()), Some(shipped));
        }
    }

    #[test]
    fn makes_the_domain_permissive_only_while_it_learns() {
        let learning = module(State::Learning("now".to_owned()), "").to_string();
        assert!(learning.contains("\n(typepermissive web.t)\n"), "{learning}");
        assert!(!module(State::Enforced, "").to_string().contains("typepermissive"));
    }

    #[test]
    fn takes_a_file_that_somebody_else_wrote_for_none() {
        assert_eq!(Module::parse("(block web (type t))\n"), None);
        assert_eq!(Module::parse(""), None);
        let text = module(State::Enforced, "").to_string().replace("enforced", "strange");
        assert_eq!(Module::parse(&text), None);
    }

    #[test]
    fn knows_the_ports_that_were_given_types() {
        let module = module(State::Enforced, "");
        let tcp = |number| BTreeSet::from([Port { protocol: Protocol::Tcp, number }]);
        assert_eq!((module.ports("port_t"), module.ports("remote_port_t")), (tcp(8085), tcp(9200)));
    }

    #[test]
    fn keeps_what_was_learnt_before() {
        let mut module = module(State::Enforced, "");
        module.learn("(allow web.t self (process (fork)))\n");
        module.learn("  \n");
        module.learn("(allow web.t self (fifo_file (read)))");
        let again = Module::parse(&module.to_string()).unwrap();
        assert_eq!(again.learnt.matches("(allow ").count(), 2);
        assert_eq!(again, module);
    }
}
