//! Writes a policy as CIL: names in place of the model's identifiers, prefix notation in place of postfix.
//!
//! libsepol accepts the text if the policy's own names are valid in CIL. Identifiers that the policy does not have are
//! written as `#N`.

use crate::model::{
    Bits, Comparison, Condition, Constraint, ExtendedRule, Extension, Level, Logic, NameKind, NameTransition, Pair,
    Party, Policy, Range, RangeTransition, RoleTransition, Rule, RuleKind, Term,
};

fn name(found: Option<&String>, number: u32) -> String {
    found.filter(|name| !name.is_empty()).map_or_else(|| format!("#{number}"), Clone::clone)
}

/// The name of a type or an attribute.
pub fn type_name(policy: &Policy, number: u32) -> String {
    name(policy.types.get(number as usize).map(|t| &t.name), number)
}

/// The name of a role.
pub fn role_name(policy: &Policy, number: u32) -> String {
    name(policy.roles.get(number as usize).map(|r| &r.name), number)
}

/// The name of a user.
pub fn user_name(policy: &Policy, number: u32) -> String {
    name(policy.users.get(number as usize).map(|u| &u.name), number)
}

/// The name of a class.
pub fn class_name(policy: &Policy, number: u32) -> String {
    name(policy.classes.get(number as usize).map(|c| &c.name), number)
}

/// The names of the permissions in an access vector, in the class's order.
pub fn permission_names(policy: &Policy, class: u32, vector: u32) -> Vec<String> {
    let names = policy.classes.get(class as usize).map_or(&[][..], |class| &class.permissions);
    let bits = (0..32).filter(|bit| vector >> bit & 1 == 1);
    bits.map(|bit| name(names.get(bit as usize), bit + 1)).collect()
}

/// A class and permissions of it: `(file (read write))`.
pub fn class_permissions(policy: &Policy, class: u32, vector: u32) -> String {
    format!("({} ({}))", class_name(policy, class), permission_names(policy, class, vector).join(" "))
}

fn rule_keyword(kind: RuleKind) -> &'static str {
    match kind {
        RuleKind::Allow => "allow",
        RuleKind::AuditAllow => "auditallow",
        RuleKind::DontAudit => "dontaudit",
        RuleKind::Transition => "typetransition",
        RuleKind::Member => "typemember",
        RuleKind::Change => "typechange",
    }
}

/// A rule, without its condition: `(allow sshd_t shadow_t (file (read)))`, `(typetransition S T process D)`.
pub fn rule(policy: &Policy, rule: &Rule) -> String {
    let (source, target) = (type_name(policy, rule.source), type_name(policy, rule.target));
    let keyword = rule_keyword(rule.kind);
    match rule.kind {
        RuleKind::Allow | RuleKind::AuditAllow | RuleKind::DontAudit => {
            format!("({keyword} {source} {target} {})", class_permissions(policy, rule.class, rule.data))
        }
        RuleKind::Transition | RuleKind::Member | RuleKind::Change => {
            let class = class_name(policy, rule.class);
            format!("({keyword} {source} {target} {class} {})", type_name(policy, rule.data))
        }
    }
}

/// A rule of extended permissions, without its condition: `(allowx S T (ioctl tcp_socket (0x8927)))`.
pub fn extended_rule(policy: &Policy, rule: &ExtendedRule) -> String {
    let keyword = match rule.kind {
        RuleKind::AuditAllow => "auditallowx",
        RuleKind::DontAudit => "dontauditx",
        _ => "allowx",
    };
    let (source, target) = (type_name(policy, rule.source), type_name(policy, rule.target));
    let class = class_name(policy, rule.class);
    format!("({keyword} {source} {target} (ioctl {class} ({})))", commands(rule.extension, &rule.bits))
}

/// The ioctl commands of a rule: `0x8927 (range 0x8930 0x893f)`.
pub fn commands(extension: Extension, bits: &[u64; 4]) -> String {
    let set = Bits(bits.to_vec());
    let mut text = Vec::new();
    for (first, last) in runs(&set) {
        let (first, last) = match extension {
            Extension::IoctlFunction { driver } => (u32::from(driver) << 8 | first, u32::from(driver) << 8 | last),
            Extension::IoctlDriver => (first << 8, last << 8 | 0xff),
        };
        text.push(if first == last { format!("{first:#06x}") } else { format!("(range {first:#06x} {last:#06x})") });
    }
    text.join(" ")
}

/// Consecutive numbers, as first and last.
fn runs(set: &Bits) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in set.iter() {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

/// A type transition by file name, as one statement per source.
pub fn name_transitions(policy: &Policy, transition: &NameTransition) -> Vec<String> {
    let target = type_name(policy, transition.target);
    let class = class_name(policy, transition.class);
    let result = type_name(policy, transition.result);
    let statement = |source| {
        let source = type_name(policy, source);
        format!("(typetransition {source} {target} {class} \"{}\" {result})", transition.name)
    };
    transition.sources.iter().map(statement).collect()
}

/// A role transition.
pub fn role_transition(policy: &Policy, transition: &RoleTransition) -> String {
    let (role, result) = (role_name(policy, transition.role), role_name(policy, transition.result));
    let (target, class) = (type_name(policy, transition.target), class_name(policy, transition.class));
    format!("(roletransition {role} {target} {class} {result})")
}

/// Which role may change to which.
pub fn role_allow(policy: &Policy, (from, to): (u32, u32)) -> String {
    format!("(roleallow {} {})", role_name(policy, from), role_name(policy, to))
}

/// A range transition.
pub fn range_transition(policy: &Policy, transition: &RangeTransition) -> String {
    let (source, target) = (type_name(policy, transition.source), type_name(policy, transition.target));
    let class = class_name(policy, transition.class);
    format!("(rangetransition {source} {target} {class} {})", range(policy, &transition.range))
}

/// A level: `(s2 (c1 (range c3 c5)))`.
pub fn level(policy: &Policy, level: &Level) -> String {
    let sensitivity = name(policy.sensitivities.get(level.sensitivity as usize).map(|s| &s.name), level.sensitivity);
    let category = |number: u32| name(policy.categories.get(number as usize).map(|c| &c.name), number);
    let item = |(first, last): (u32, u32)| match last - first {
        0 => category(first),
        _ => format!("(range {} {})", category(first), category(last)),
    };
    let items: Vec<String> = runs(&level.categories).into_iter().map(item).collect();
    if items.is_empty() { format!("({sensitivity})") } else { format!("({sensitivity} ({}))", items.join(" ")) }
}

/// A range: `((s0) (s15 ((range c0 c1023))))`.
pub fn range(policy: &Policy, range: &Range) -> String {
    format!("({} {})", level(policy, &range.low), level(policy, &range.high))
}

/// A condition of rules: `(and httpd_enable_cgi (not secure_mode))`.
pub fn condition(policy: &Policy, number: u32) -> String {
    let mut stack: Vec<String> = Vec::new();
    for logic in policy.conditions.get(number as usize).into_iter().flatten() {
        let mut pop = || stack.pop().unwrap_or_else(|| "#".to_owned());
        let keyword = match logic {
            Logic::Boolean(number) => {
                stack.push(name(policy.booleans.get(*number as usize).map(|b| &b.name), *number));
                continue;
            }
            Logic::Not => {
                let only = format!("(not {})", pop());
                stack.push(only);
                continue;
            }
            Logic::And => "and",
            Logic::Or => "or",
            Logic::Xor => "xor",
            Logic::Eq => "eq",
            Logic::Neq => "neq",
        };
        let (second, first) = (pop(), pop());
        stack.push(format!("({keyword} {first} {second})"));
    }
    stack.pop().unwrap_or_default()
}

/// When a rule holds: the expression, negated for a rule of its `false` branch.
pub fn when(policy: &Policy, Condition { condition: number, value }: Condition) -> String {
    let expression = condition(policy, number);
    if value { expression } else { format!("(not {expression})") }
}

/// A constraint of a class: `(mlsconstrain (file (read)) (or (dom l1 l2) (eq t1 mlstrusted)))`.
pub fn constraint(policy: &Policy, class: u32, constraint: &Constraint) -> String {
    let keyword = if compares_levels(&constraint.expression) { "mlsconstrain" } else { "constrain" };
    let permissions = class_permissions(policy, class, constraint.permissions);
    format!("({keyword} {permissions} {})", expression(policy, &constraint.expression))
}

/// What relabelling an object of a class requires: `(mlsvalidatetrans file (dom l1 l2))`.
pub fn validatetrans(policy: &Policy, class: u32, terms: &[Term]) -> String {
    let keyword = if compares_levels(terms) { "mlsvalidatetrans" } else { "validatetrans" };
    format!("({keyword} {} {})", class_name(policy, class), expression(policy, terms))
}

fn compares_levels(terms: &[Term]) -> bool {
    let levels = |pair: &Pair| !matches!(pair, Pair::Users | Pair::Roles | Pair::Types);
    terms.iter().any(|term| matches!(term, Term::Compare(pair, _) if levels(pair)))
}

/// A constraint's expression in prefix notation.
pub fn expression(policy: &Policy, terms: &[Term]) -> String {
    let mut stack: Vec<String> = Vec::new();
    for term in terms {
        let mut pop = || stack.pop().unwrap_or_else(|| "#".to_owned());
        let text = match term {
            Term::Not => format!("(not {})", pop()),
            Term::And | Term::Or => {
                let (second, first) = (pop(), pop());
                format!("({} {first} {second})", if *term == Term::And { "and" } else { "or" })
            }
            leaf => self::leaf(policy, leaf),
        };
        stack.push(text);
    }
    stack.pop().unwrap_or_default()
}

/// A comparison: `(dom l1 l2)`, `(eq t1 (sshd_t mlstrusted))`.
pub fn leaf(policy: &Policy, term: &Term) -> String {
    match term {
        Term::Compare(pair, comparison) => {
            let (first, second) = sides(*pair);
            format!("({} {first} {second})", comparison_keyword(*comparison))
        }
        Term::In { party, kind, comparison, names, written } => {
            let letter = match kind {
                NameKind::User => 'u',
                NameKind::Role => 'r',
                NameKind::Type => 't',
            };
            let number = match party {
                Party::Source => 1,
                Party::Target => 2,
                Party::Task => 3,
            };
            let names = set_names(policy, *kind, names, written);
            let list = if let [only] = &names[..] { only.clone() } else { format!("({})", names.join(" ")) };
            format!("({} {letter}{number} {list})", comparison_keyword(*comparison))
        }
        Term::Not | Term::And | Term::Or => "#".to_owned(),
    }
}

/// CIL's names for the two sides of a comparison.
pub fn sides(pair: Pair) -> (&'static str, &'static str) {
    match pair {
        Pair::Users => ("u1", "u2"),
        Pair::Roles => ("r1", "r2"),
        Pair::Types => ("t1", "t2"),
        Pair::L1L2 => ("l1", "l2"),
        Pair::L1H2 => ("l1", "h2"),
        Pair::H1L2 => ("h1", "l2"),
        Pair::H1H2 => ("h1", "h2"),
        Pair::L1H1 => ("l1", "h1"),
        Pair::L2H2 => ("l2", "h2"),
    }
}

/// CIL's word for a comparison.
pub fn comparison_keyword(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "eq",
        Comparison::Neq => "neq",
        Comparison::Dom => "dom",
        Comparison::DomBy => "domby",
        Comparison::Incomp => "incomp",
    }
}

/// The names in a constraint's set: as they were written if the policy knows, else the attribute with exactly these
/// types, else one by one.
fn set_names(policy: &Policy, kind: NameKind, names: &Bits, written: &Bits) -> Vec<String> {
    match kind {
        NameKind::User => names.iter().map(|number| user_name(policy, number)).collect(),
        NameKind::Role => names.iter().map(|number| role_name(policy, number)).collect(),
        NameKind::Type => written_types(policy, names, written).iter().map(|n| type_name(policy, n)).collect(),
    }
}

/// The types and attributes by which a constraint names `names`.
pub fn written_types(policy: &Policy, names: &Bits, written: &Bits) -> Bits {
    if !written.is_empty() {
        return written.clone();
    }
    let same = |set: &Bits| set.iter().eq(names.iter());
    let attribute = (0..).zip(&policy.types).find(|(_, t)| t.attribute && !names.is_empty() && same(&t.set));
    attribute.map_or_else(|| names.clone(), |(number, _)| std::iter::once(number).collect())
}

#[cfg(test)]
mod tests;
