//! Questions: half of them follow a rule of the policy, so that something is granted. The others are random or at a
//! limit.

use super::{contexts::Contexts, random::Random};
use crate::model::{Bits, Context, ExtendedRule, Extension, NameKind, Policy, RuleKind, Term};

/// The kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The access vectors of a source, a target and a class.
    Access,
    /// The permitted functions of an ioctl driver.
    Extended,
    /// The context of a new object.
    Transition,
    /// The context of a member of a polyinstantiated object.
    Member,
    /// The context to relabel to.
    Change,
    /// Whether an object may be relabelled.
    Validate,
}

/// A question. Contexts are given by their index in [`Batch::contexts`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Question {
    /// The context that acts (`Validate`: the old context).
    pub source: usize,
    /// The context that is acted on (`Validate`: the new context).
    pub target: usize,
    pub class: u32,
    /// The name of the new object.
    pub name: Option<String>,
    /// `Validate`: the context of the process that relabels.
    pub task: usize,
    /// `Extended`: the driver, the second byte of the commands.
    pub driver: u8,
}

/// Questions of one kind.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Batch {
    /// What is asked for.
    pub kind: Kind,
    /// The contexts in the questions.
    pub contexts: Vec<Context>,
    pub questions: Vec<Question>,
}

/// What a rule is about; `0` for what it leaves open.
struct Hint {
    role: u32,
    source: u32,
    target: u32,
    class: u32,
    name: Option<String>,
    driver: u8,
}

/// A hint turned into contexts.
struct Pair {
    source: usize,
    target: usize,
    class: u32,
    name: Option<String>,
    driver: u8,
}

/// Pairs of contexts in a batch that follow a rule, and contexts with any type.
const PAIRS: usize = 320;
const OTHERS: usize = 128;

impl Batch {
    /// `count` questions of a kind. There are fewer only if the policy has no type or no class.
    pub fn new(policy: &Policy, kind: Kind, count: usize, random: &mut Random) -> Self {
        let makes = Contexts::new(policy, random);
        let mut contexts = Vec::new();
        let hints = hints(policy, kind);
        let mut pairs = Vec::new();
        for _ in 0..PAIRS.min(hints.len() * 4) {
            let Some(hint) = random.pick(&hints) else { break };
            let source = makes.type_of(hint.source, random);
            let same = hint.target == hint.source && random.once_in(2);
            let target = if same { source } else { makes.type_of(hint.target, random) };
            let role = (hint.role != 0).then_some(hint.role);
            let source = source.and_then(|type_| makes.of_type(type_, role, random));
            let target = target.and_then(|type_| makes.of_type(type_, None, random));
            if let (Some(source), Some(target)) = (source, target) {
                let at = contexts.len();
                contexts.extend([source, target]);
                pairs.push(Pair {
                    source: at,
                    target: at + 1,
                    class: hint.class,
                    name: hint.name.clone(),
                    driver: hint.driver,
                });
            }
        }
        let special = special_types(policy);
        for _ in 0..OTHERS {
            let type_ = if random.once_in(2) { random.pick(&special).copied() } else { None };
            let type_ = type_.or_else(|| makes.any_type(random));
            contexts.extend(type_.and_then(|type_| makes.of_type(type_, None, random)));
        }
        let classes: Vec<u32> =
            (0u32..).zip(&policy.classes).filter(|(_, class)| !class.name.is_empty()).map(|(n, _)| n).collect();
        let asks = Asks { contexts: &contexts, pairs: &pairs, classes: &classes };
        let questions = if contexts.is_empty() || classes.is_empty() {
            Vec::new()
        } else {
            (0..count).map(|index| asks.question(index, random)).collect()
        };
        Self { kind, contexts, questions }
    }
}

/// What questions are made of.
struct Asks<'a> {
    contexts: &'a [Context],
    pairs: &'a [Pair],
    classes: &'a [u32],
}

impl Asks<'_> {
    fn question(&self, index: usize, random: &mut Random) -> Question {
        let in_turn = self.classes[index % self.classes.len()];
        let any = |random: &mut Random| random.below(self.contexts.len());
        let task = any(random);
        let pair = random.pick(self.pairs);
        let named = random.pick(self.pairs).filter(|_| !random.once_in(4)).map(|pair| pair.driver);
        let driver = named.unwrap_or((random.number() & 0xff) as u8);
        let question = |source, target, class, name| Question { source, target, class, name, task, driver };
        match (random.below(8), pair) {
            (0..4, Some(pair)) => {
                let name = pair.name.as_deref().map(|name| near(name, random));
                question(pair.source, pair.target, pair.class, name)
            }
            (4, Some(pair)) => question(pair.source, pair.target, in_turn, pair.name.clone()),
            (5, Some(pair)) => {
                let other = random.pick(self.pairs).unwrap_or(pair);
                let target = if random.once_in(2) { other.target } else { any(random) };
                question(pair.source, target, pair.class, other.name.clone())
            }
            (6, _) => {
                // The same type on both sides, and every other time everything else as well.
                let source = any(random);
                let same = |at: &usize| self.contexts[*at].type_ == self.contexts[source].type_ && *at != source;
                let twins: Vec<usize> = (0..self.contexts.len()).filter(same).collect();
                let target = if random.once_in(2) { source } else { random.pick(&twins).copied().unwrap_or(source) };
                question(source, target, in_turn, None)
            }
            _ => question(any(random), any(random), in_turn, None),
        }
    }
}

/// Types for which more than rules decides: bounded ones and their parents, and those in constraints.
fn special_types(policy: &Policy) -> Vec<u32> {
    let mut special = Bits::default();
    for (type_, number) in policy.types.iter().zip(0..).filter(|(type_, _)| type_.bounds != 0) {
        special.insert(number);
        special.insert(type_.bounds);
    }
    let constraints = policy.classes.iter().flat_map(|class| &class.constraints);
    let terms = constraints.flat_map(|constraint| &constraint.expression);
    let validated = policy.classes.iter().flat_map(|class| class.validatetrans.iter().flatten());
    for term in terms.chain(validated) {
        if let Term::In { kind: NameKind::Type, names, .. } = term {
            names.iter().for_each(|number| special.insert(number));
        }
    }
    let is_type = |number: &u32| policy.types.get(*number as usize).is_some_and(|type_| !type_.attribute);
    special.iter().filter(is_type).collect()
}

/// A name, or a similar one.
fn near(name: &str, random: &mut Random) -> String {
    let shorter: String = name.chars().skip(1).collect();
    match random.below(8) {
        0 => format!("{name}x"),
        1 if !shorter.is_empty() => shorter,
        2 => name.to_uppercase(),
        _ => name.to_owned(),
    }
}

/// What the policy's rules of a kind are about.
fn hints(policy: &Policy, kind: Kind) -> Vec<Hint> {
    let hint = |source, target, class| Hint { role: 0, source, target, class, name: None, driver: 0 };
    let of_rules = |kinds: &'static [RuleKind]| {
        let rules = policy.rules.iter().filter(move |rule| kinds.contains(&rule.kind));
        rules.map(move |rule| hint(rule.source, rule.target, rule.class))
    };
    match kind {
        Kind::Access => of_rules(&[RuleKind::Allow, RuleKind::AuditAllow, RuleKind::DontAudit]).collect(),
        Kind::Member => of_rules(&[RuleKind::Member]).collect(),
        Kind::Change => of_rules(&[RuleKind::Change]).collect(),
        Kind::Transition => {
            let mut hints: Vec<Hint> = of_rules(&[RuleKind::Transition]).collect();
            // There are few of these in a policy, and each should occur.
            for _ in 0..1 + hints.len() / 2000 {
                hints.extend(policy.name_transitions.iter().flat_map(|rule| {
                    rule.sources
                        .iter()
                        .take(8)
                        .map(|source| Hint { name: Some(rule.name.clone()), ..hint(source, rule.target, rule.class) })
                }));
                hints.extend(policy.range_transitions.iter().map(|rule| hint(rule.source, rule.target, rule.class)));
                hints.extend(
                    policy
                        .role_transitions
                        .iter()
                        .map(|rule| Hint { role: rule.role, ..hint(0, rule.target, rule.class) }),
                );
            }
            hints
        }
        Kind::Extended => {
            let drivers = |rule: &ExtendedRule| match rule.extension {
                Extension::IoctlFunction { driver } => vec![driver],
                Extension::IoctlDriver => {
                    (0..=255).filter(|bit: &u8| rule.bits[*bit as usize / 64] >> (bit % 64) & 1 == 1).collect()
                }
            };
            let rules = policy.extended_rules.iter();
            rules
                .flat_map(|rule| drivers(rule).into_iter().map(move |driver| (rule, driver)))
                .map(|(rule, driver)| Hint { driver, ..hint(rule.source, rule.target, rule.class) })
                .collect()
        }
        Kind::Validate => {
            let classes = (0u32..).zip(&policy.classes).filter(|(_, class)| !class.validatetrans.is_empty());
            let types = (0u32..).zip(&policy.types).filter(|(_, type_)| !type_.name.is_empty() && !type_.attribute);
            let types: Vec<u32> = types.map(|(number, _)| number).collect();
            classes
                .flat_map(|(class, _)| types.iter().map(move |type_| (class, *type_)))
                .map(|(class, type_)| hint(type_, 0, class))
                .collect()
        }
    }
}
