//! Differences between two policies outside of their access rules, as sets of CIL statements.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::{
    cil, context,
    model::{Condition, HandleUnknown, Logic, Policy, RuleKind, Term, WhoseDefault},
};

/// Statements of one kind that only one of the policies has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statements {
    /// The kind, for example `constraints` or `users`.
    pub kind: &'static str,
    /// Statements that only the first policy has.
    pub removed: Vec<String>,
    /// Statements that only the second policy has.
    pub added: Vec<String>,
}

type Set = BTreeSet<String>;
type Tell = fn(&Policy) -> Set;

/// The kinds of statements, in the order of reports.
const KINDS: [(&str, Tell); 19] = [
    ("settings", settings),
    ("policy capabilities", |policy| policy.capabilities.iter().cloned().collect()),
    ("classes", classes),
    ("permissive types", permissive),
    ("bounds", bounds),
    ("users", users),
    ("roles", roles),
    ("role allows", |policy| policy.role_allows.iter().map(|pair| cil::role_allow(policy, *pair)).collect()),
    ("role transitions", |policy| {
        policy.role_transitions.iter().map(|transition| cil::role_transition(policy, transition)).collect()
    }),
    ("sensitivities and categories", levels),
    ("booleans", |policy| policy.booleans.iter().map(|b| format!("(boolean {} {})", b.name, b.value)).collect()),
    ("constraints", constraints),
    ("attributes that constraints name", memberships),
    ("type transitions, members and changes", labelling),
    ("type transitions by name", |policy| {
        policy.name_transitions.iter().flat_map(|transition| cil::name_transitions(policy, transition)).collect()
    }),
    ("range transitions", |policy| {
        policy.range_transitions.iter().map(|transition| cil::range_transition(policy, transition)).collect()
    }),
    ("extended permissions", extended),
    ("initial SIDs", initial_sids),
    ("labels of file systems and the network", contexts),
];

/// All differences except those of access rules, by kind.
pub(super) fn compare(before: &Policy, after: &Policy) -> Vec<Statements> {
    KINDS
        .iter()
        .map(|(kind, tell)| {
            let (before, after) = (tell(before), tell(after));
            Statements {
                kind,
                removed: before.difference(&after).cloned().collect(),
                added: after.difference(&before).cloned().collect(),
            }
        })
        .filter(|statements| !(statements.removed.is_empty() && statements.added.is_empty()))
        .collect()
}

/// Booleans whose conditional rules differ, as written.
pub(super) fn booleans(before: &Policy, after: &Policy) -> Vec<String> {
    let (before, after) = (conditional(before), conditional(after));
    let nothing = Set::new();
    let differ = |name: &&String| before.get(*name).unwrap_or(&nothing) != after.get(*name).unwrap_or(&nothing);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names.into_iter().filter(differ).cloned().collect()
}

/// By boolean: the rules whose condition contains it, with their conditions.
fn conditional(policy: &Policy) -> HashMap<String, Set> {
    let mut all: HashMap<String, Set> = HashMap::new();
    let mut texts: HashMap<Condition, String> = HashMap::new();
    let mut tell = |condition: Condition, text: String| {
        let when = texts.entry(condition).or_insert_with(|| cil::when(policy, condition));
        let statement = format!("{when} {text}");
        for number in switches(policy, condition) {
            if let Some(boolean) = policy.booleans.get(number as usize) {
                all.entry(boolean.name.clone()).or_default().insert(statement.clone());
            }
        }
    };
    for rule in &policy.rules {
        if let Some(condition) = rule.condition {
            tell(condition, cil::rule(policy, rule));
        }
    }
    for rule in &policy.extended_rules {
        if let Some(condition) = rule.condition {
            tell(condition, cil::extended_rule(policy, rule));
        }
    }
    all
}

/// The booleans of a condition, each once.
pub(crate) fn switches(policy: &Policy, condition: Condition) -> BTreeSet<u32> {
    let terms = policy.conditions.get(condition.condition as usize).into_iter().flatten();
    terms.filter_map(|term| if let Logic::Boolean(number) = term { Some(*number) } else { None }).collect()
}

fn settings(policy: &Policy) -> Set {
    let unknown = match policy.handle_unknown {
        HandleUnknown::Deny => "deny",
        HandleUnknown::Reject => "reject",
        HandleUnknown::Allow => "allow",
    };
    Set::from([format!("(mls {})", policy.mls), format!("(handleunknown {unknown})")])
}

fn whose(default: WhoseDefault) -> Option<&'static str> {
    match default {
        WhoseDefault::None => None,
        WhoseDefault::Source => Some("source"),
        WhoseDefault::Target => Some("target"),
    }
}

fn classes(policy: &Policy) -> Set {
    const RANGES: [&str; 7] =
        ["source low", "source high", "source low-high", "target low", "target high", "target low-high", "glblub"];
    let mut all = Set::new();
    for class in policy.classes.iter().filter(|class| !class.name.is_empty()) {
        let permissions: BTreeSet<&str> = class.permissions.iter().map(String::as_str).collect();
        let permissions: Vec<&str> = permissions.into_iter().collect();
        all.insert(format!("(class {} ({}))", class.name, permissions.join(" ")));
        let defaults = [("user", class.default_user), ("role", class.default_role), ("type", class.default_type)];
        for (what, default) in defaults {
            all.extend(whose(default).map(|whose| format!("(default{what} {} {whose})", class.name)));
        }
        let range = class.default_range.checked_sub(1).and_then(|range| RANGES.get(range as usize));
        all.extend(range.map(|range| format!("(defaultrange {} {range})", class.name)));
    }
    all
}

fn permissive(policy: &Policy) -> Set {
    let types = policy.types.iter().filter(|t| t.permissive);
    types.map(|t| format!("(typepermissive {})", t.name)).collect()
}

fn bounds(policy: &Policy) -> Set {
    let bounded = policy.types.iter().filter(|t| t.bounds != 0);
    bounded.map(|t| format!("(typebounds {} {})", cil::type_name(policy, t.bounds), t.name)).collect()
}

fn users(policy: &Policy) -> Set {
    let mut all = Set::new();
    for user in policy.users.iter().filter(|user| !user.name.is_empty()) {
        all.insert(format!("(user {})", user.name));
        all.extend(user.roles.iter().map(|role| format!("(userrole {} {})", user.name, cil::role_name(policy, role))));
        if policy.mls {
            all.insert(format!("(userlevel {} {})", user.name, cil::level(policy, &user.default_level)));
            all.insert(format!("(userrange {} {})", user.name, cil::range(policy, &user.range)));
        }
    }
    all
}

fn roles(policy: &Policy) -> Set {
    let mut all = Set::new();
    for (number, role) in (0..).zip(&policy.roles).filter(|(_, role)| !role.name.is_empty()) {
        all.insert(format!("(role {})", role.name));
        // object_r is valid with every type, whatever the policy says.
        if number != tollgate_abi::tables::TG_OBJECT_R {
            all.extend(role.types.iter().map(|t| format!("(roletype {} {})", role.name, cil::type_name(policy, t))));
        }
        let others = role.dominates.iter().filter(|other| *other != number);
        all.extend(others.map(|other| format!("(dominance {} {})", role.name, cil::role_name(policy, other))));
    }
    all
}

fn levels(policy: &Policy) -> Set {
    let mut all = Set::new();
    for (number, sensitivity) in (0u32..).zip(&policy.sensitivities).filter(|(_, s)| !s.name.is_empty()) {
        all.insert(format!("(sensitivity {}) at {number}", sensitivity.name));
        let level = crate::model::Level { sensitivity: number, categories: sensitivity.categories.clone() };
        all.insert(format!("(sensitivitycategory {})", context::level_text(policy, &level)));
        all.extend(sensitivity.aliases.iter().map(|alias| format!("(sensitivityalias {alias} {})", sensitivity.name)));
    }
    for category in policy.categories.iter().filter(|category| !category.name.is_empty()) {
        all.insert(format!("(category {})", category.name));
        all.extend(category.aliases.iter().map(|alias| format!("(categoryalias {alias} {})", category.name)));
    }
    all
}

/// One statement per class and expression, with all permissions that need it, sorted by name.
fn constraints(policy: &Policy) -> Set {
    let mut all = Set::new();
    for (number, class) in (0..).zip(&policy.classes) {
        let mut by_expression: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for constraint in &class.constraints {
            let expression = cil::expression(policy, &constraint.expression);
            let permissions = cil::permission_names(policy, number, constraint.permissions);
            by_expression.entry(expression).or_default().extend(permissions);
        }
        for (expression, permissions) in by_expression {
            let permissions: Vec<String> = permissions.into_iter().collect();
            all.insert(format!("(constrain ({} ({})) {expression})", class.name, permissions.join(" ")));
        }
        all.extend(class.validatetrans.iter().map(|terms| cil::validatetrans(policy, number, terms)));
    }
    all
}

/// The types of the attributes that constraints name: the exempt ones.
fn memberships(policy: &Policy) -> Set {
    let constraints = policy.classes.iter().flat_map(|class| {
        class.constraints.iter().map(|constraint| &constraint.expression).chain(&class.validatetrans)
    });
    let mut named = BTreeSet::new();
    for term in constraints.flatten() {
        if let Term::In { written, .. } = term {
            named.extend(written.iter());
        }
    }
    let attributes = named.into_iter().filter_map(|number| policy.types.get(number as usize)).filter(|t| t.attribute);
    attributes
        .flat_map(|attribute| {
            attribute
                .set
                .iter()
                .map(|type_| format!("(typeattributeset {} ({}))", attribute.name, cil::type_name(policy, type_)))
        })
        .collect()
}

/// Labelling rules that hold.
fn labelling(policy: &Policy) -> Set {
    let kinds = [RuleKind::Transition, RuleKind::Member, RuleKind::Change];
    let rules = policy.rules.iter().filter(|rule| kinds.contains(&rule.kind) && policy.holds(rule.condition));
    rules.map(|rule| cil::rule(policy, rule)).collect()
}

fn extended(policy: &Policy) -> Set {
    let rules = policy.extended_rules.iter().filter(|rule| policy.holds(rule.condition));
    rules.map(|rule| cil::extended_rule(policy, rule)).collect()
}

fn initial_sids(policy: &Policy) -> Set {
    let sids = policy.initial_sids.iter();
    sids.map(|sid| format!("(sidcontext {} {})", sid.name, context::text(policy, &sid.context))).collect()
}

fn contexts(policy: &Policy) -> Set {
    let text = |context| context::text(policy, context);
    let mut all = Set::new();
    for fs in &policy.fs_uses {
        let behaviour = match fs.behaviour {
            1 => "xattr",
            2 => "trans",
            _ => "task",
        };
        all.insert(format!("(fsuse {behaviour} {} {})", fs.name, text(&fs.context)));
    }
    for fs in &policy.genfs {
        let class = if fs.class == 0 { String::new() } else { format!("{} ", cil::class_name(policy, fs.class)) };
        all.insert(format!("(genfscon {} {:?} {class}{})", fs.name, fs.path, text(&fs.context)));
    }
    for port in &policy.ports {
        let protocol = match port.protocol {
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            33 => "dccp".to_owned(),
            132 => "sctp".to_owned(),
            other => other.to_string(),
        };
        all.insert(format!("(portcon {protocol} ({} {}) {})", port.low, port.high, text(&port.context)));
    }
    for card in &policy.interfaces {
        all.insert(format!("(netifcon {} {} {})", card.name, text(&card.interface), text(&card.packet)));
    }
    for node in &policy.nodes {
        all.insert(format!("(nodecon ({}) ({}) {})", node.address, node.mask, text(&node.context)));
    }
    if policy.infiniband != 0 {
        all.insert(format!("{} ibpkeycon and ibendportcon statements, not compared", policy.infiniband));
    }
    all
}
