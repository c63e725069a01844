//! Abstractions are macros of the policy for things that many programs do alike. If most of a macro was denied, a call
//! of it replaces the rules.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_policy::{lines::Lines, model::Policy};

use super::{Evidence, Learnt, Rule, Subject};

/// Tollgate's own abstractions, and the name of their file.
const SOURCE: &str = include_str!("../../../../policies/tollgate/65-abstractions.cil");
const FILE: &str = "65-abstractions.cil";

/// One thing that a macro allows to its domain: target (a type, an attribute or `self`), class, permission.
type Atom = (String, String, String);

/// A macro whose one parameter is a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abstraction {
    name: String,
    about: String,
    atoms: BTreeSet<Atom>,
}

/// A call of a macro that replaces rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Name of the macro.
    pub name: String,
    /// What the macro is for, in words.
    pub about: String,
    /// The domain for which it is called.
    pub domain: String,
    /// How many permissions of rules it replaces.
    pub permissions: usize,
    /// What it allows although it was not denied: target, class, permission.
    pub beside: Vec<Atom>,
    /// The denials that it would have allowed.
    pub evidence: Evidence,
}

/// The abstractions that a policy has. Empty if the policy was not built from sources that include them.
#[must_use]
pub fn of(lines: &Lines) -> Vec<Abstraction> {
    if lines.files.iter().any(|file| file.ends_with(FILE)) { read(SOURCE) } else { Vec::new() }
}

/// Reads the macros of a source. Each begins with `(macro NAME ((type D)) ; WORDS` and holds plain `allow` rules, one
/// per line.
fn read(source: &str) -> Vec<Abstraction> {
    let mut found: Vec<Abstraction> = Vec::new();
    for line in source.lines() {
        let (code, comment) = line.split_once(';').unwrap_or((line, ""));
        let words: Vec<&str> = code.split(['(', ')', ' ']).filter(|word| !word.is_empty()).collect();
        match (&words[..], found.last_mut()) {
            (["macro", name, "type", "D"], _) => {
                let about = comment.trim().to_owned();
                found.push(Abstraction { name: (*name).to_owned(), about, atoms: BTreeSet::new() });
            }
            (["allow", "D", target, class, permissions @ ..], Some(last)) => {
                let atom = |permission: &&str| [*target, *class, *permission].map(str::to_owned).into();
                last.atoms.extend(permissions.iter().map(atom));
            }
            _ => {}
        }
    }
    found
}

impl Learnt {
    /// Replaces rules by calls of the macros of which more than half was denied.
    pub fn group(&mut self, abstractions: &[Abstraction], policy: &Policy) {
        let domains: BTreeSet<String> = self.rules.keys().map(|(source, ..)| source.clone()).collect();
        let before = self.rules.clone();
        for domain in domains {
            for abstraction in abstractions {
                let call = self.call(abstraction, &domain, &before, policy);
                self.calls.extend(call);
            }
        }
        self.rules.retain(|_, rule| !rule.permissions.is_empty() || !rule.commands.is_empty());
    }

    /// The call of a macro, if it is worth one. If other calls allow some of it already, most of it must have been
    /// denied all the same.
    fn call(
        &mut self,
        abstraction: &Abstraction,
        domain: &str,
        before: &BTreeMap<Subject, Rule>,
        policy: &Policy,
    ) -> Option<Call> {
        let Abstraction { name, about, atoms } = abstraction;
        let met = |(target, class, permission): &Atom| {
            let is = |(source, own, of): &Subject| source == domain && of == class && has(policy, domain, target, own);
            before.iter().filter(|(subject, rule)| is(subject) && rule.permissions.contains_key(permission)).count() > 0
        };
        let beside: Vec<Atom> = atoms.iter().filter(|atom| !met(atom)).cloned().collect();
        if beside.len() * 2 >= atoms.len() {
            return None;
        }
        let (mut permissions, mut evidence) = (0, Evidence::default());
        for ((source, own, of), rule) in &mut self.rules {
            for (target, class, permission) in atoms {
                if source == domain && of == class && has(policy, domain, target, own) {
                    let Some(taken) = rule.permissions.remove(permission) else { continue };
                    evidence.add(&taken);
                    permissions += 1;
                }
            }
        }
        let (name, about, domain) = (name.clone(), about.clone(), domain.to_owned());
        (permissions > 0).then_some(Call { name, about, domain, permissions, beside, evidence })
    }
}

/// Whether a macro's target is the rule's target, or an attribute that contains it.
fn has(policy: &Policy, domain: &str, target: &str, own: &str) -> bool {
    if target == "self" {
        return own == domain;
    }
    let attribute = policy.types.iter().find(|type_| type_.attribute && type_.name == target);
    let Some(attribute) = attribute else { return own == target };
    attribute.set.iter().any(|member| policy.types.get(member as usize).is_some_and(|type_| type_.name == own))
}

#[cfg(test)]
mod tests {
    use tollgate_policy::model::Type;

    use super::*;

    #[test]
    fn reads_each_macro_of_the_policy_with_what_it_stands_for() {
        let all = read(SOURCE);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["program", "python", "name_service", "journal", "certificates", "logs"]);
        assert!(all.iter().all(|one| !one.about.is_empty() && one.atoms.len() > 4), "{all:?}");
        let rules = SOURCE.lines().filter(|line| line.trim_start().starts_with("(allow")).count();
        let read: BTreeSet<(&str, &str, &str)> = all
            .iter()
            .flat_map(|one| one.atoms.iter().map(|(target, class, _)| (&*one.name, &**target, &**class)))
            .collect();
        assert_eq!(read.len(), rules, "each rule was read, and no two are of one macro, target and class");
    }

    #[test]
    fn has_none_for_a_policy_that_was_not_built_with_them() {
        let with = |file: &str| of(&Lines { files: vec![file.to_owned()], ..Lines::default() }).len();
        assert_eq!(with("/usr/share/tollgate/policy/70-services.cil"), 0);
        assert!(with("/usr/share/tollgate/policy/65-abstractions.cil") > 3);
    }

    /// What was learnt of `web_t` where each of these was denied twice.
    fn learnt(atoms: &[(&str, &str, &str)]) -> Learnt {
        let mut learnt = Learnt::default();
        for (target, class, permission) in atoms {
            let subject = ("web_t".to_owned(), (*target).to_owned(), (*class).to_owned());
            let rule = learnt.rules.entry(subject).or_default();
            rule.permissions.insert((*permission).to_owned(), Evidence { count: 2, ..Evidence::default() });
        }
        learnt
    }

    fn policy() -> Policy {
        let type_ = |name: &str, members: &[u32]| Type {
            name: name.to_owned(),
            attribute: !members.is_empty(),
            set: members.iter().copied().collect(),
            ..Type::default()
        };
        Policy {
            types: vec![type_("", &[]), type_("init_t", &[]), type_("kernel_t", &[]), type_("free", &[1, 2])],
            ..Policy::default()
        }
    }

    const MACROS: &str = "(macro small ((type D)) ; a few things\n  (allow D free (fd (use)))\n  (allow D self (process (fork)))\n  \
                          (allow D lib_t (file (read open map)))) ; done";

    #[test]
    fn puts_a_call_in_the_place_of_rules_where_most_of_it_was_denied() {
        let mut most = learnt(&[
            ("init_t", "fd", "use"),
            ("web_t", "process", "fork"),
            ("lib_t", "file", "read"),
            ("lib_t", "file", "write"),
            ("etc_t", "file", "read"),
        ]);
        most.group(&read(MACROS), &policy());
        let [call] = &most.calls[..] else { panic!("{:?}", most.calls) };
        assert_eq!((&*call.domain, call.permissions, call.evidence.count, call.beside.len()), ("web_t", 3, 6, 2));
        assert_eq!(
            most.cil(),
            ["(call small (web_t))", "(allow web_t etc_t (file (read)))", "(allow web_t lib_t (file (write)))"]
        );
        assert_eq!(most.granted(), 5);
        let text = most.to_string();
        let expected = "; small: a few things\n; 3 permissions, denied 6 times";
        assert!(
            text.contains(expected) && text.contains("allowed by it: lib_t:file { map open }\n(call small (web_t))\n"),
            "{text}"
        );
    }

    #[test]
    fn leaves_rules_alone_where_half_of_a_macro_was_not_denied() {
        let rules = [("init_t", "fd", "use"), ("web_t", "process", "fork"), ("other_t", "file", "read")];
        let (mut few, before) = (learnt(&rules), learnt(&rules));
        few.group(&read(MACROS), &policy());
        assert_eq!(few, before);
    }
}
