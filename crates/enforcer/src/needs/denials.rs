//! Whether some confined domain may be denied a permission, or be audited for it.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
};

use tollgate_abi::enforcer::{SECINITSID_KERNEL, SECINITSID_UNLABELED};
use tollgate_client::why::{Example, Kind, Reason};
use tollgate_policy::{
    cil,
    decide::Tables,
    model::{Bits, HandleUnknown, InitialSid, Policy, Rule, RuleKind, Term},
    vectors::{Access, Vectors},
};

use super::{
    checks::{Sources, Targets, changes_role, sources, targets},
    constraints::{Sides, always_holds},
};
use crate::hooks::FILES;

/// Says where a constraint is written that concerns a permission of a class, by their number and bit.
pub(crate) type Places<'p> = dyn Fn(u32, u32, &[Term]) -> Vec<String> + 'p;

/// The role that every context of an object may have, whatever its type.
const OBJECT_R: &str = "object_r";

/// The denials that a policy can lead to.
pub(super) struct Denials<'a> {
    policy: &'a Policy,
    places: &'a Places<'a>,
    vectors: Vectors,
    /// Types that a process may have and that are not unconfined.
    confined: Vec<u32>,
    /// Types that no process has and that are not unconfined.
    objects: Vec<u32>,
    /// Types that a process may have.
    domains: Vec<u32>,
    all: Vec<u32>,
    known: RefCell<HashMap<(String, String), Option<Reason>>>,
}

/// A permission of a class, as the policy numbers them.
#[derive(Debug, Clone, Copy)]
struct Question<'q> {
    class: u32,
    bit: u32,
    names: (&'q str, &'q str),
}

/// Why a source may not silently have a permission on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Rule,
    Audit,
    /// Which of the class's constraints may not hold.
    Constraint(usize),
    /// A transition may need a rule for a change of the role.
    Role,
}

/// An access that is not silently granted.
#[derive(Debug, Clone, Copy)]
struct Found {
    source: u32,
    target: u32,
    cause: Cause,
    /// The parents that bound both types, if the cause is about them.
    parents: Option<(u32, u32)>,
}

impl<'a> Denials<'a> {
    pub(super) fn new(policy: &'a Policy, tables: &Tables, unconfined: &[String], places: &'a Places<'a>) -> Self {
        let all: Vec<u32> = (0..)
            .zip(&policy.types)
            .filter(|(_, type_)| !type_.attribute && !type_.name.is_empty())
            .map(|(number, _)| number)
            .collect();
        let (processes, initial) = (processes(policy), initial(policy));
        let is_process = |type_: &u32| processes.has(*type_) || initial.has(*type_);
        let checked = |type_: &u32| {
            let name = policy.types.get(*type_ as usize).map(|known| known.name.as_str());
            !unconfined.iter().any(|free| Some(free.as_str()) == name)
        };
        let domains: Vec<u32> = all.iter().copied().filter(is_process).collect();
        let (mut confined, objects): (Vec<u32>, _) = all.iter().copied().filter(checked).partition(is_process);
        // Examples name domains of programs, if there are any.
        confined.sort_by_key(|type_| initial.has(*type_));
        let (vectors, known) = (Vectors::of(tables), RefCell::default());
        Self { policy, places, vectors, confined, objects, domains, all, known }
    }

    /// Whether the policy has a policy capability.
    pub(super) fn has_capability(&self, name: &str) -> bool {
        self.policy.capabilities.iter().any(|own| own == name)
    }

    /// Whether the policy has a domain that is confined.
    pub(super) fn confines(&self) -> bool {
        !self.confined.is_empty()
    }

    /// Whether the policy allows what it does not define.
    pub(super) fn allows_unknown(&self) -> bool {
        self.policy.handle_unknown == HandleUnknown::Allow
    }

    /// Why a permission must be checked; `None`: no confined domain can be denied it, or be audited for it.
    pub(super) fn of(&self, class: &str, permission: &str) -> Option<Reason> {
        let key = (class.to_owned(), permission.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let found = if self.confines() { self.find(class, permission) } else { None };
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    fn find(&self, class: &str, permission: &str) -> Option<Reason> {
        let defined = (1..).zip(self.policy.classes.iter().skip(1)).find(|(_, known)| known.name == class);
        let place = defined
            .and_then(|(number, known)| Some((number, known.permissions.iter().position(|name| name == permission)?)));
        let Some((number, bit)) = place else {
            let opens = permission == "open" && FILES.contains(&class) && !self.has_capability("open_perms");
            let text = format!("the policy does not define {class} {permission}, and denies what it does not define");
            return (!opens && !self.allows_unknown()).then(|| Reason::new(Kind::Undefined, text));
        };
        let question = Question { class: number, bit: 1 << bit, names: (class, permission) };
        self.audited(question).map(|found| self.reason(question, found))
    }

    /// A source and a target for which the answer is not silently yes.
    fn audited(&self, question: Question<'_>) -> Option<Found> {
        let (class, permission) = question.names;
        let of_initial;
        let targets = match targets(class, permission) {
            Targets::Itself => return self.confined.iter().find_map(|it| self.cause(question, *it, *it, true)),
            Targets::Domains => &self.domains,
            Targets::Initial(sid) => match self.policy.initial_sids.iter().find(|initial| initial.sid == sid) {
                Some(initial) => {
                    of_initial = vec![initial.context.type_];
                    &of_initial
                }
                None => &self.all,
            },
            Targets::All => &self.all,
        };
        let objects = match sources(class, permission) {
            Sources::Processes => &[][..],
            Sources::Sockets => &self.objects,
        };
        // Types with the same row or column are alike, except for rules on a type itself, bounds and constraints.
        let plain = |type_: &u32| self.policy.types.get(*type_ as usize).is_some_and(|it| it.bounds == 0);
        let special = self.constrained(question);
        let mut seen = BTreeSet::new();
        for source in self.confined.iter().chain(objects) {
            for target in targets {
                let place = (self.vectors.row(*source), self.vectors.column(*target));
                let alike = source != target && !special && plain(source) && plain(target);
                if alike && !seen.insert(place) {
                    continue;
                }
                if let Some(found) = self.cause(question, *source, *target, false) {
                    return Some(found);
                }
            }
        }
        None
    }

    fn constrained(&self, question: Question<'_>) -> bool {
        let class = self.policy.classes.get(question.class as usize);
        class.is_some_and(|class| class.constraints.iter().any(|it| it.permissions & question.bit != 0))
    }

    /// Why a source may not have the permission on a target, or not without audit. `same`: both have one context.
    fn cause(&self, question: Question<'_>, source: u32, target: u32, same: bool) -> Option<Found> {
        let sides = Sides { source, target, same };
        let audited = self.rules(question, sides).auditallow & question.bit != 0;
        let audit = || audited.then_some((Cause::Audit, None));
        let found = self.withheld(question, sides).map(|cause| (cause, None)).or_else(audit);
        let found = found
            .or_else(|| self.withheld_from_parents(question, sides).map(|(cause, parents)| (cause, Some(parents))));
        found.map(|(cause, parents)| Found { source, target, cause, parents })
    }

    fn rules(&self, question: Question<'_>, Sides { source, target, .. }: Sides) -> Access {
        self.vectors.rules(source, target, question.class)
    }

    /// Why rules and constraints may not allow it, without regard to parents that bound types.
    fn withheld(&self, question: Question<'_>, sides: Sides) -> Option<Cause> {
        if self.rules(question, sides).allow & question.bit == 0 {
            return Some(Cause::Rule);
        }
        // A roleallow may be missing, whatever the types.
        if changes_role(question.names) {
            return Some(Cause::Role);
        }
        self.violated(question, sides).map(Cause::Constraint)
    }

    /// Why the parents that bound the types may not have it: a bounded type has no more than its parent has.
    fn withheld_from_parents(&self, question: Question<'_>, sides: Sides) -> Option<(Cause, (u32, u32))> {
        let bounds = |type_: u32| self.policy.types.get(type_ as usize).map_or(0, |known| known.bounds);
        let mut above = sides;
        for _ in 0..self.policy.types.len() {
            let (source, target) = (bounds(above.source), bounds(above.target));
            if source == 0 {
                return None;
            }
            above = Sides { source, target: if target == 0 { above.target } else { target }, ..above };
            if let Some(cause) = self.withheld(question, above) {
                return Some((cause, (above.source, above.target)));
            }
        }
        // The bounds form a circle.
        Some((Cause::Rule, (above.source, above.target)))
    }

    /// The number of a constraint that may not hold.
    fn violated(&self, question: Question<'_>, sides: Sides) -> Option<usize> {
        let constraints = &self.policy.classes.get(question.class as usize)?.constraints;
        constraints.iter().position(|it| it.permissions & question.bit != 0 && !always_holds(&it.expression, sides))
    }

    fn reason(&self, question: Question<'_>, found: Found) -> Reason {
        let (class, permission) = question.names;
        let name = |type_| cil::type_name(self.policy, type_);
        let (source, target) = (name(found.source), name(found.target));
        let access = format!("{permission} {target}:{class}");
        let bound = found.parents.map_or_else(String::new, |(source, target)| {
            format!(", as {} bounds it, which is checked on {}", name(source), name(target))
        });
        let (kind, text) = match found.cause {
            Cause::Rule => (Kind::Rule, format!("{source} may not {access}{bound}")),
            Cause::Audit => (Kind::Audit, format!("{source} may {access}, which is audited")),
            Cause::Role => (Kind::Constraint, format!("{source} may {access}, but not with every other role{bound}")),
            Cause::Constraint(number) => {
                let constraint = self.constraint(question, number);
                (Kind::Constraint, format!("{source} may {access} only where a constraint holds{bound}: {constraint}"))
            }
        };
        let example = Example { source, target, class: class.to_owned(), permission: permission.to_owned() };
        Reason { kind, text, example: Some(example) }
    }

    /// Where a constraint is written; itself, if that is not known.
    fn constraint(&self, question: Question<'_>, number: usize) -> String {
        let constraints = self.policy.classes.get(question.class as usize).map(|class| &class.constraints);
        let Some(constraint) = constraints.and_then(|all| all.get(number)) else { return String::new() };
        let places = (self.places)(question.class, question.bit, &constraint.expression);
        let itself = || cil::constraint(self.policy, question.class, constraint);
        if places.is_empty() { itself() } else { places.join(", ") }
    }
}

/// The types of the initial SIDs of processes. A process is unlabelled if the policy does not have its context.
fn initial(policy: &Policy) -> Bits {
    let of_processes = |sid: &&InitialSid| [SECINITSID_KERNEL, SECINITSID_UNLABELED].contains(&sid.sid);
    policy.initial_sids.iter().filter(of_processes).map(|sid| sid.context.type_).collect()
}

/// Types that a process may have besides those: those of roles other than objects', and those that processes enter by
/// executing a file, for in permissive mode the role need not have them. A role may become objects' if a rule says so.
fn processes(policy: &Policy) -> Bits {
    let of_objects = |role: u32| policy.roles.get(role as usize).is_some_and(|role| role.name == OBJECT_R);
    let mut ways =
        policy.role_allows.iter().map(|(_, to)| *to).chain(policy.role_transitions.iter().map(|it| it.result));
    if ways.any(of_objects) {
        return (1..policy.types.len() as u32).collect();
    }
    let of_roles = policy.roles.iter().filter(|role| role.name != OBJECT_R).flat_map(|role| role.types.iter());
    let process = policy.classes.iter().position(|class| class.name == "process");
    let enters = |rule: &&Rule| rule.kind == RuleKind::Transition && process == Some(rule.class as usize);
    of_roles.chain(policy.rules.iter().filter(enters).map(|rule| rule.data)).collect()
}
