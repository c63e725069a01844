//! The rules that apply to a question, and how they apply.

use super::{
    Place, Question,
    statement::Sexp,
    statements::{RuleStatement, Statements},
    world::World,
};
use crate::{
    cil,
    model::{Condition, ExtendedRule, Extension, Logic, Policy, Rule, RuleKind},
};

/// How many booleans of a condition are tried. libsepol allows only five terms.
const MAX_BOOLEANS: usize = 10;

/// How a name in a rule stands for a type.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Match {
    /// It is the type's own name.
    Name,
    /// It is an attribute of the type.
    #[expect(missing_docs, reason = "the names say it")]
    Attribute { name: String },
    /// The target is `self`, which is the source.
    #[serde(rename = "self")]
    Itself,
}

/// A value that a boolean would need.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Flip {
    /// The boolean's name.
    pub boolean: String,
    /// The value that it would need.
    pub value: bool,
}

/// The condition of a rule.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReportedCondition {
    /// The expression of booleans, as CIL.
    pub expression: String,
    /// Whether it holds.
    pub holds: bool,
    /// The booleans in it and their values.
    pub booleans: Vec<Flip>,
    /// The fewest booleans that would make it hold.
    pub flips: Vec<Flip>,
}

/// A rule in a report.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReportedRule {
    /// The rule as the binary policy has it, as CIL.
    pub cil: String,
    /// How the rule's source stands for the question's.
    pub source: Match,
    /// How the rule's target stands for the question's.
    pub target: Match,
    /// The condition; `None`: the rule always holds.
    pub condition: Option<ReportedCondition>,
    /// The statements from which it comes.
    pub places: Vec<Place>,
}

impl ReportedRule {
    /// Whether it holds with the present values of booleans.
    pub fn holds(&self) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition.holds)
    }
}

/// The allowed commands of `ioctl`, if rules name commands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Extended {
    /// The commands that are allowed, as CIL. Empty: none.
    pub allowed: Vec<String>,
    /// The rules that name commands, as CIL.
    pub rules: Vec<String>,
}

/// The rules of one kind that name a question's types, class and permission.
pub(super) fn matching(
    world: &World<'_>,
    statements: &Statements<'_>,
    kind: RuleKind,
    question: &Question,
) -> Vec<ReportedRule> {
    let policy = world.policy;
    let keyword = match kind {
        RuleKind::AuditAllow => "auditallow",
        RuleKind::DontAudit => "dontaudit",
        _ => "allow",
    };
    let mut rules: Vec<&Rule> = world.rules(kind, question).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    // The most specific first.
    let breadth =
        |name: u32| policy.types.get(name as usize).map_or(0, |t| if t.attribute { t.set.iter().count() } else { 1 });
    rules.sort_by_key(|rule| breadth(rule.source) + breadth(rule.target));
    let written = statements.rules(keyword, question);
    let attribute = |number: u32| policy.types.get(number as usize).is_some_and(|t| t.attribute);
    let by = |number: u32| match attribute(number) {
        true => Match::Attribute { name: cil::type_name(policy, number) },
        false => Match::Name,
    };
    let mut all = Vec::new();
    for rule in rules {
        let places = |is_of: &dyn Fn(&str, u32, u32) -> bool| -> Vec<&RuleStatement<'_>> {
            let (s, t) = (question.source.type_, question.target.type_);
            let of_rule = |statement: &&RuleStatement<'_>| {
                is_when(policy, statement.when.as_ref(), rule.condition)
                    && if statement.target == "self" {
                        (rule.source, rule.target) == (s, t)
                    } else {
                        is_of(statement.source, rule.source, s) && is_of(statement.target, rule.target, t)
                    }
            };
            written.iter().filter(of_rule).collect()
        };
        let number = |name: &str| statements.attributes.number(name);
        let mut own = places(&|name, number_of_rule, type_| match number(name) {
            Some(named) => named == number_of_rule,
            None => number_of_rule == type_,
        });
        if own.is_empty() {
            // libsepol may have replaced an attribute with few types by the types, and still know the attribute.
            own = places(&|_, number_of_rule, type_| number_of_rule == type_);
        }
        let mut reported = ReportedRule {
            cil: cil::rule(policy, rule),
            source: by(rule.source),
            target: by(rule.target),
            condition: rule.condition.map(|condition| report_condition(policy, condition)),
            places: own.iter().map(|statement| statement.place.clone()).collect(),
        };
        if let Some(statement) = own.iter().find(|statement| statement.target == "self") {
            reported.target = Match::Itself;
            reported.source = statements.attributes.number(statement.source).map_or(Match::Name, by);
        }
        all.push(reported);
    }
    all
}

/// Whether a statement's expression of booleans is that of a rule. libsepol rewrites the expressions of a policy.
fn is_when(policy: &Policy, written: Option<&(Sexp<'_>, bool)>, condition: Option<Condition>) -> bool {
    let (Some((expression, branch)), Some(condition)) = (written, condition) else {
        return written.is_none() && condition.is_none();
    };
    let numbers = booleans(policy, condition);
    let mut supposed = only_condition(policy, condition);
    (0..1u32 << numbers.len().min(MAX_BOOLEANS)).all(|values| {
        for (place, number) in numbers.iter().enumerate() {
            if let Some(boolean) = supposed.booleans.get_mut(*number as usize) {
                boolean.value = values >> place & 1 == 1;
            }
        }
        let holds = supposed.holds(Some(Condition { condition: 0, ..condition }));
        value(&supposed, expression).map(|value| value == *branch) == Some(holds)
    })
}

/// The value of a written expression of booleans; `None`: it contains a name that the policy does not have.
fn value(policy: &Policy, expression: &Sexp<'_>) -> Option<bool> {
    match expression.items() {
        [Sexp::Word(name)] => policy.booleans.iter().find(|boolean| boolean.name == *name).map(|boolean| boolean.value),
        [only] => value(policy, only),
        [Sexp::Word("not"), only] => value(policy, only).map(|value| !value),
        [Sexp::Word(operator), first, second] => {
            let (first, second) = (value(policy, first)?, value(policy, second)?);
            match *operator {
                "and" => Some(first & second),
                "or" => Some(first | second),
                "xor" | "neq" => Some(first ^ second),
                "eq" => Some(first == second),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The booleans of a condition.
fn booleans(policy: &Policy, condition: Condition) -> Vec<u32> {
    let terms = policy.conditions.get(condition.condition as usize).into_iter().flatten();
    let mut numbers: Vec<u32> =
        terms.filter_map(|term| if let Logic::Boolean(number) = term { Some(*number) } else { None }).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The part of a policy that a condition needs. The condition is the first one there.
fn only_condition(policy: &Policy, condition: Condition) -> Policy {
    Policy {
        booleans: policy.booleans.clone(),
        conditions: vec![policy.conditions.get(condition.condition as usize).cloned().unwrap_or_default()],
        ..Policy::default()
    }
}

fn report_condition(policy: &Policy, condition: Condition) -> ReportedCondition {
    let numbers = booleans(policy, condition);
    let setting = |number: u32, flip: bool| {
        let boolean = policy.booleans.get(number as usize);
        Flip {
            boolean: boolean.map_or_else(|| format!("#{number}"), |b| b.name.clone()),
            value: boolean.is_some_and(|b| b.value) ^ flip,
        }
    };
    let holds = policy.holds(Some(condition));
    ReportedCondition {
        expression: cil::when(policy, condition),
        holds,
        booleans: numbers.iter().map(|number| setting(*number, false)).collect(),
        flips: if holds {
            Vec::new()
        } else {
            fewest(policy, condition, &numbers).into_iter().map(|number| setting(number, true)).collect()
        },
    }
}

/// The smallest number of booleans whose change makes a condition hold.
fn fewest(policy: &Policy, condition: Condition, numbers: &[u32]) -> Vec<u32> {
    let numbers = &numbers[..numbers.len().min(MAX_BOOLEANS)];
    let mut choices: Vec<u32> = (1..1 << numbers.len()).collect();
    choices.sort_by_key(|choice| choice.count_ones());
    let chosen = |choice: u32| {
        let at = (0..).zip(numbers).filter(move |(place, _)| choice >> place & 1 == 1);
        at.map(|(_, number)| *number).collect::<Vec<u32>>()
    };
    let mut supposed = only_condition(policy, condition);
    let asked = Condition { condition: 0, ..condition };
    for numbers in choices.into_iter().map(chosen) {
        let flip = |supposed: &mut Policy| {
            numbers.iter().filter_map(|n| supposed.booleans.get_mut(*n as usize).map(|b| b.value = !b.value)).count()
        };
        flip(&mut supposed);
        if supposed.holds(Some(asked)) {
            return numbers;
        }
        flip(&mut supposed);
    }
    Vec::new()
}

/// The rules that name commands of `ioctl` for a question's types and class.
fn naming_commands<'a>(world: &World<'a>, question: &Question) -> Vec<&'a ExtendedRule> {
    let policy = world.policy;
    let class = policy.classes.get(question.class as usize);
    let ioctl = class.and_then(|class| class.permissions.iter().position(|permission| permission == "ioctl"));
    if ioctl.is_none_or(|ioctl| question.permission >> ioctl & 1 == 0) {
        return Vec::new();
    }
    let (sources, targets) = (world.set(question.source.type_), world.set(question.target.type_));
    let about = policy.extended_rules.iter().filter(|rule| {
        rule.class == question.class
            && sources.has(rule.source)
            && targets.has(rule.target)
            && policy.holds(rule.condition)
    });
    about.collect()
}

/// Whether rules name this command of `ioctl`; `None`: they name no commands, and `ioctl` alone decides.
pub(super) fn names_command(world: &World<'_>, question: &Question, command: u16) -> Option<bool> {
    let about = naming_commands(world, question);
    let [driver, function] = command.to_be_bytes();
    let has = |bits: &[u64; 4], bit: u8| bits[usize::from(bit / 64)] >> (bit % 64) & 1 == 1;
    let names = |rule: &&ExtendedRule| match rule.extension {
        Extension::IoctlDriver => has(&rule.bits, driver),
        Extension::IoctlFunction { driver: own } => own == driver && has(&rule.bits, function),
    };
    (!about.is_empty()).then(|| about.iter().any(|rule| rule.kind == RuleKind::Allow && names(rule)))
}

/// What rules say about the commands of `ioctl`. As soon as one rule names commands, no others are allowed
/// (`security_compute_xperms_decision`).
pub(super) fn extended(world: &World<'_>, question: &Question) -> Option<Extended> {
    let policy = world.policy;
    let about = naming_commands(world, question);
    let mut drivers = [0u64; 4];
    let mut functions = std::collections::BTreeMap::<u8, [u64; 4]>::new();
    for rule in about.iter().filter(|rule| rule.kind == RuleKind::Allow) {
        let sum = match rule.extension {
            Extension::IoctlDriver => &mut drivers,
            Extension::IoctlFunction { driver } => functions.entry(driver).or_default(),
        };
        sum.iter_mut().zip(rule.bits).for_each(|(sum, bits)| *sum |= bits);
    }
    let mut allowed = vec![cil::commands(Extension::IoctlDriver, &drivers)];
    allowed.extend(
        functions.iter().map(|(driver, bits)| cil::commands(Extension::IoctlFunction { driver: *driver }, bits)),
    );
    allowed.retain(|text| !text.is_empty());
    allowed.sort_by(|one, other| one.trim_start_matches("(range ").cmp(other.trim_start_matches("(range ")));
    let rules: Vec<String> = about.iter().map(|rule| cil::extended_rule(policy, rule)).collect();
    (!rules.is_empty()).then_some(Extended { allowed, rules })
}
