//! Which nodes belong to the fleet: a node asks, an administrator approves its key, and takes it away again.

use std::fmt;

use tollgate_signing::PublicKey;

use crate::{
    document::{DocumentError, Lines, Signed, Text, Wrong, parsed},
    name::Name,
    root::Root,
    time::Time,
};

/// The maximum number of nodes of a register.
const MAX_NODES: usize = 100_000;

/// A node of the fleet. Its text is `NAME KEY GROUP`, and more groups for stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub node: Name,
    /// The key that signs what it says.
    pub key: PublicKey,
    /// The group whose manifests it takes.
    pub group: Name,
    /// Smaller groups, which stages name.
    pub others: Vec<Name>,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.node, self.key.digits(), self.group)?;
        self.others.iter().try_for_each(|group| write!(f, " {group}"))
    }
}

impl Member {
    fn read(text: &str) -> Result<Self, Wrong> {
        let mut words = text.split(' ');
        let mut word = |what| words.next().ok_or_else(|| Wrong(format!("it lacks {what}")));
        let node: Name = parsed(word("a name")?)?;
        let key = PublicKey::parse(&format!("public ed25519 {node} {}", word("a key")?)).map_err(Wrong)?;
        let group = parsed(word("a group")?)?;
        Ok(Self { node, key, group, others: words.map(parsed).collect::<Result<_, _>>()? })
    }
}

/// A node's request to belong to the fleet, which its own key has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The fleet.
    pub fleet: Name,
    /// What shall be written into the register.
    pub member: Member,
    /// When it was made.
    pub made: Time,
}

impl Text for Request {
    const KIND: &'static str = "request";
    const LIMIT: u64 = 1 << 14;

    fn write(&self) -> String {
        format!("fleet {}\nnode {}\nmade {}\n", self.fleet, self.member, self.made)
    }

    fn read(lines: &mut Lines<'_>) -> Result<Self, Wrong> {
        let fleet = lines.parsed("fleet")?;
        let member = Member::read(lines.value("node")?)?;
        Ok(Self { fleet, member, made: lines.parsed("made")? })
    }
}

impl Request {
    /// Reads a request, which must be signed by the key that it names. A token may have signed it, too
    /// ([`Voucher`](crate::voucher::Voucher)).
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let document = Signed::<Self>::parse(bytes)?;
        match document.count(std::slice::from_ref(&document.unverified().member.key)) {
            0 => Err(DocumentError::Unsigned { kind: Self::KIND, found: 0, wanted: 1 }),
            _ => Ok(document.unverified().clone()),
        }
    }
}

/// The nodes of a fleet, signed by those who may approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// The fleet.
    pub fleet: Name,
    /// Its number, which grows with each change.
    pub number: u64,
    /// When it was made.
    pub made: Time,
    /// The nodes, by name, each once.
    pub members: Vec<Member>,
}

impl Text for Register {
    const KIND: &'static str = "register";
    const LIMIT: u64 = 64 << 20;

    fn write(&self) -> String {
        let members = self.members.iter().map(|member| format!("node {member}\n"));
        let head = format!("fleet {}\nnumber {}\nmade {}\n", self.fleet, self.number, self.made);
        head + &members.collect::<String>()
    }

    fn read(lines: &mut Lines<'_>) -> Result<Self, Wrong> {
        let (fleet, number, made) = (lines.parsed("fleet")?, lines.parsed("number")?, lines.parsed("made")?);
        let mut members: Vec<Member> = Vec::new();
        while let Some(line) = lines.optional("node") {
            let member = Member::read(line)?;
            if members.last().is_some_and(|last| last.node >= member.node) {
                return Err(Wrong("the nodes above are not in the order of their names".to_owned()));
            }
            members.push(member);
        }
        if members.len() > MAX_NODES {
            return Err(Wrong(format!("there are more than {MAX_NODES} nodes")));
        }
        Ok(Self { fleet, number, made, members })
    }
}

/// Why a register is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// It is none, or its signatures are wrong.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is another fleet's.
    #[error("a register of the fleet {0}: look who has written it into this store")]
    Fleet(Name),
}

impl Register {
    /// A register without nodes.
    #[must_use]
    pub fn empty(fleet: Name, made: Time) -> Self {
        Self { fleet, number: 0, made, members: Vec::new() }
    }

    /// Reads a register, whose bytes may be anyone's.
    pub fn check(bytes: &[u8], root: &Root) -> Result<Self, RegisterError> {
        let document = Signed::<Self>::parse(bytes)?;
        let register = root.approve.verified(&document)?;
        if register.fleet != root.fleet {
            return Err(RegisterError::Fleet(register.fleet.clone()));
        }
        Ok(register.clone())
    }

    /// A node.
    #[must_use]
    pub fn member(&self, node: &Name) -> Option<&Member> {
        let place = self.members.binary_search_by(|member| member.node.cmp(node)).ok()?;
        self.members.get(place)
    }

    /// The next register, with this node in place of one of its name.
    #[must_use]
    pub fn with(mut self, member: Member, made: Time) -> Self {
        match self.members.binary_search_by(|present| present.node.cmp(&member.node)) {
            Ok(place) => self.members[place] = member,
            Err(place) => self.members.insert(place, member),
        }
        self.number += 1;
        Self { made, ..self }
    }

    /// The next register, without this node; `None`: it is not there.
    #[must_use]
    pub fn without(mut self, node: &Name, made: Time) -> Option<Self> {
        let before = self.members.len();
        self.members.retain(|member| member.node != *node);
        self.number += 1;
        (self.members.len() < before).then_some(Self { made, ..self })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        root::tests::{key, root},
        trust::tests::{NOW, name},
    };

    /// A node of the group `web`, with the key of this number.
    pub(crate) fn member(node: &str, seed: u8) -> Member {
        Member::read(&format!("{node} {} web canary", key(seed).public().digits())).unwrap()
    }

    pub(crate) fn register(members: &[(&str, u8)]) -> Vec<u8> {
        let made = Time::of_seconds(NOW);
        let empty = Register::empty(name("example"), made);
        let register = members.iter().fold(empty, |register, (node, seed)| register.with(member(node, *seed), made));
        let mut document = Signed::new(register);
        document.sign(&key(21));
        document.bytes()
    }

    #[test]
    fn keeps_each_node_once_and_in_order() {
        let register = Register::check(&register(&[("b", 32), ("a", 31), ("b", 33)]), &root()).unwrap();
        let nodes: Vec<String> = register.members.iter().map(|member| member.node.to_string()).collect();
        assert_eq!((nodes.join(" ").as_str(), register.number), ("a b", 3));
        assert_eq!(register.member(&name("b")).map(|member| member.key.digits()), Some(key(33).public().digits()));
        let without = register.clone().without(&name("a"), register.made).unwrap();
        assert_eq!((without.number, without.member(&name("a"))), (4, None));
        assert_eq!(register.clone().without(&name("c"), register.made), None);
    }

    #[test]
    fn refuses_a_register_that_no_approver_signed_and_another_fleet_s() {
        let text = String::from_utf8(register(&[("a", 31), ("b", 32)])).unwrap();
        let refuses = |text: &str, part: &str| {
            let error = Register::check(text.as_bytes(), &root()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refuses(&text.replace("number 2", "number 3"), "a signature that is wrong");
        refuses(&text[..text.find("signature").unwrap()], "signed by 0 of the keys");
        let swapped = text.replace("node a ", "node c ");
        refuses(&swapped, "not in the order of their names");
        let other = Root { fleet: name("other"), ..root() };
        assert!(matches!(Register::check(text.as_bytes(), &other), Err(RegisterError::Fleet(_))));
    }

    #[test]
    fn refuses_a_request_in_the_name_of_another_key() {
        let made = Time::of_seconds(NOW);
        let mut request = Signed::new(Request { fleet: name("example"), member: member("a", 31), made });
        assert!(Request::parse(&request.bytes()).is_err(), "nobody has signed");
        request.sign(&key(32));
        assert!(Request::parse(&request.bytes()).is_err(), "a stranger has signed");
        let mut request = Signed::new(request.unverified().clone());
        request.sign(&key(31));
        assert_eq!(Request::parse(&request.bytes()).unwrap().member, member("a", 31));
    }
}
