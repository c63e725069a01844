//! Whether some confined domain may be denied a permission, or be audited for it.

use std::collections::{BTreeSet, HashMap};

use tollgate_policy::{
    decide::Tables,
    model::{Bits, HandleUnknown, Policy},
    vectors::{Access, Vectors},
};

use super::constraints::always_holds;

/// Permissions that are checked only for a process on itself.
const ON_ITSELF: [&str; 10] = [
    "fork",
    "execmem",
    "execstack",
    "execheap",
    "setexec",
    "setfscreate",
    "setcurrent",
    "setkeycreate",
    "setsockcreate",
    "setcap",
];
/// Classes all of whose permissions are checked only for a process on itself.
const SELF_CLASSES: [&str; 6] =
    ["capability", "capability2", "cap_userns", "cap2_userns", "memprotect", "user_namespace"];
/// Classes whose objects are processes, or descriptors that processes opened.
const OF_PROCESSES: [&str; 3] = ["process", "process2", "fd"];

/// The possible targets of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Targets {
    /// The process itself.
    Itself,
    /// Processes.
    Domains,
    /// Anything, because a file may have any label.
    All,
}

/// The denials that a policy can lead to.
pub(super) struct Denials<'a> {
    policy: &'a Policy,
    vectors: Vectors,
    /// Types that a process may have and that are not unconfined.
    confined: Vec<u32>,
    /// Types that a process may have.
    domains: Vec<u32>,
    all: Vec<u32>,
    known: HashMap<(String, String), Option<String>>,
}

impl<'a> Denials<'a> {
    pub(super) fn new(policy: &'a Policy, tables: &Tables, unconfined: &[String]) -> Self {
        let all: Vec<u32> = (0..)
            .zip(&policy.types)
            .filter(|(_, type_)| !type_.attribute && !type_.name.is_empty())
            .map(|(number, _)| number)
            .collect();
        let processes = processes(policy);
        let domains: Vec<u32> = all.iter().copied().filter(|type_| processes.has(*type_)).collect();
        let asked = |type_: &u32| {
            let name = policy.types.get(*type_ as usize).map(|known| known.name.as_str());
            !unconfined.iter().any(|free| Some(free.as_str()) == name)
        };
        let confined = domains.iter().copied().filter(asked).collect();
        Self { policy, vectors: Vectors::of(tables), confined, domains, all, known: HashMap::new() }
    }

    /// Whether the policy has a policy capability.
    pub(super) fn has_capability(&self, name: &str) -> bool {
        self.policy.capabilities.iter().any(|own| own == name)
    }

    /// Why a permission must be checked; `None`: no confined domain can be denied it, or be audited for it.
    pub(super) fn of(&mut self, class: &str, permission: &str) -> Option<String> {
        let key = (class.to_owned(), permission.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = self.find(class, permission);
        self.known.insert(key, found.clone());
        found
    }

    fn find(&self, class: &str, permission: &str) -> Option<String> {
        if self.confined.is_empty() {
            return None;
        }
        let defined = (1..).zip(self.policy.classes.iter().skip(1)).find(|(_, known)| known.name == class);
        let place = defined
            .and_then(|(number, known)| Some((number, known.permissions.iter().position(|name| name == permission)?)));
        let Some((number, bit)) = place else {
            let allowed = self.policy.handle_unknown == HandleUnknown::Allow
                || permission == "open" && !self.policy.capabilities.iter().any(|name| name == "open_perms");
            return (!allowed)
                .then(|| format!("the policy does not define {class} {permission}, and denies what it does not"));
        };
        let question = Question { class: number, bit: 1 << bit, targets: targets(class, permission) };
        let (source, target) = self.audited(question)?;
        let name = |type_: u32| self.policy.types.get(type_ as usize).map_or("?", |known| known.name.as_str());
        Some(format!("{} may be denied {class} {permission} on {}, or audited", name(source), name(target)))
    }

    /// A source and a target for which the answer is not silently yes.
    fn audited(&self, question: Question) -> Option<(u32, u32)> {
        let targets = match question.targets {
            Targets::Itself => {
                return self.confined.iter().find(|it| !self.grants(question, **it, **it)).map(|it| (*it, *it));
            }
            Targets::Domains => &self.domains,
            Targets::All => &self.all,
        };
        // Types with the same row or column are alike, except for rules on a type itself, bounds and constraints.
        let plain = |type_: &u32| self.policy.types.get(*type_ as usize).is_some_and(|it| it.bounds == 0);
        let special = self.constrained(question);
        let mut seen = BTreeSet::new();
        for source in &self.confined {
            for target in targets {
                let place = (self.vectors.row(*source), self.vectors.column(*target));
                let alike = source != target && !special && plain(source) && plain(target);
                if alike && !seen.insert(place) {
                    continue;
                }
                if !self.grants(question, *source, *target) {
                    return Some((*source, *target));
                }
            }
        }
        None
    }

    fn constrained(&self, question: Question) -> bool {
        let class = self.policy.classes.get(question.class as usize);
        class.is_some_and(|class| class.constraints.iter().any(|it| it.permissions & question.bit != 0))
    }

    /// Whether a source certainly has the permission on a target, without audit.
    fn grants(&self, question: Question, source: u32, target: u32) -> bool {
        let silent = |access: Access| access.allow & question.bit != 0 && access.auditallow & question.bit == 0;
        let bounds = |type_: u32| self.policy.types.get(type_ as usize).map_or(0, |known| known.bounds);
        let (parent, above) = (bounds(source), bounds(target));
        silent(self.vectors.rules(source, target, question.class))
            && self.unconstrained(question, source, target)
            && (parent == 0
                || parent != source && self.grants(question, parent, if above == 0 { target } else { above }))
    }

    fn unconstrained(&self, question: Question, source: u32, target: u32) -> bool {
        let constraints = self.policy.classes.get(question.class as usize).map_or(&[][..], |class| &class.constraints);
        let mut on_it = constraints.iter().filter(|it| it.permissions & question.bit != 0);
        let roles = self.policy.classes.get(question.class as usize).is_some_and(|class| class.name == "process");
        // A role_allow rule may forbid a transition, whatever the types.
        let changes = roles && question.bit_is(self.policy, "transition");
        !changes && on_it.all(|it| always_holds(&it.expression, source, target))
    }
}

#[derive(Debug, Clone, Copy)]
struct Question {
    class: u32,
    bit: u32,
    targets: Targets,
}

impl Question {
    fn bit_is(self, policy: &Policy, permission: &str) -> bool {
        let class = policy.classes.get(self.class as usize);
        let place = class.and_then(|class| class.permissions.iter().position(|name| name == permission));
        place.is_some_and(|place| self.bit == 1 << place)
    }
}

fn targets(class: &str, permission: &str) -> Targets {
    if SELF_CLASSES.contains(&class) || class == "process" && ON_ITSELF.contains(&permission) {
        Targets::Itself
    } else if OF_PROCESSES.contains(&class) {
        Targets::Domains
    } else {
        Targets::All
    }
}

/// Types that a process may have: those of roles other than objects', those that processes may enter, and those of
/// initial SIDs.
fn processes(policy: &Policy) -> Bits {
    let mut found = Bits::default();
    for role in policy.roles.iter().filter(|role| role.name != "object_r") {
        role.types.iter().for_each(|type_| found.insert(type_));
    }
    let Some((number, class)) = (0..).zip(&policy.classes).find(|(_, class)| class.name == "process") else {
        return found;
    };
    let ways = ["transition", "dyntransition"];
    let place = |way: &&str| class.permissions.iter().position(|name| name == way);
    let become_: u32 = ways.iter().filter_map(place).fold(0, |bits, place| bits | 1 << place);
    for rule in policy.rules.iter().filter(|rule| rule.class == number && rule.data & become_ != 0) {
        let types = policy.types.get(rule.target as usize);
        types.iter().flat_map(|type_| type_.set.iter()).for_each(|type_| found.insert(type_));
        found.insert(rule.target);
    }
    policy.initial_sids.iter().for_each(|sid| found.insert(sid.context.type_));
    found
}
