//! Asks the tables everything about one source type after the other, and compares with what the rules say.

use std::{cmp::Reverse, collections::HashMap, rc::Rc};

use tollgate_abi::tables::{
    TG_ASK_CHANGE, TG_ASK_MEMBER, TG_ASK_TRANSITION, TG_NO_LEVEL, tg_context, tg_decision, tg_extended, tg_label,
    tg_level, tg_name, tg_question,
};

use super::{
    super::{peers::Answer, random::Random},
    combinations::{Combinations, Parts, parties},
    labels::{Labels, New},
    plain::{Parties, Plain},
    report::{Decision, Report},
    rules::{Cell, Row, Rules},
};
use crate::{
    context,
    decide::{self, Levels, Tables},
    model::{Context, ExtendedRule, Extension, Policy, Range, RuleKind},
    server::Ask,
};

/// What a comparison reads.
pub(super) struct Subject<'a, 'p> {
    pub(super) policy: &'p Policy,
    pub(super) tables: &'a Tables,
    pub(super) levels: &'a Levels,
    pub(super) plain: Plain<'p>,
    pub(super) rules: Rules<'p>,
    pub(super) labels: Labels<'p>,
    pub(super) parts: Parts,
    /// By class.
    pub(super) constraints: Vec<Combinations>,
    /// How often each combination is asked of a pair of types, with other alternatives each time: where there are few types,
    /// there are few pairs.
    pub(super) turns: usize,
    /// By class; `None`: it has no validatetrans.
    pub(super) changes: Vec<Option<Combinations>>,
}

/// What constraints leave.
struct Left {
    /// By combination.
    of_each: Vec<u32>,
    /// At least one combination, and those that together leave whatever any of them leaves.
    telling: Vec<usize>,
}

impl Left {
    fn new(of_each: Vec<u32>) -> Self {
        let mut by_size: Vec<usize> = (0..of_each.len()).collect();
        by_size.sort_by_key(|number| Reverse(of_each[*number].count_ones()));
        let mut seen = 0;
        let mut telling: Vec<usize> = by_size
            .iter()
            .copied()
            .filter(|number| {
                let more = of_each[*number] & !seen != 0;
                seen |= of_each[*number];
                more
            })
            .collect();
        if telling.is_empty() {
            telling.extend(by_size.first());
        }
        Self { of_each, telling }
    }
}

/// The comparison of some source types. The alternatives with which combinations are asked are chosen at random, the same for
/// the same source.
pub(super) struct Comparison<'a, 'p> {
    subject: &'a Subject<'a, 'p>,
    source: u32,
    /// The source and the types above it, with what rules say of each.
    rows: Vec<(u32, Row<'p>)>,
    /// By class and kinds of types, and whether they are one type: what constraints leave of each combination.
    left: HashMap<(u32, u32, u32, bool), Rc<Left>>,
    random: Random,
    /// The last context of a new object. It is large, and made anew for each question it would take much of the time.
    label: tg_label,
    report: Report,
}

impl<'a, 'p> Comparison<'a, 'p> {
    pub(super) fn new(subject: &'a Subject<'a, 'p>) -> Self {
        let (rows, left) = (Vec::new(), HashMap::new());
        Self {
            subject,
            source: 0,
            rows,
            left,
            random: Random::new(0),
            label: tg_label::default(),
            report: Report::default(),
        }
    }

    pub(super) fn finish(self) -> Report {
        self.report
    }

    /// Compares all decisions about a source type.
    pub(super) fn compare(&mut self, source: u32) {
        let subject = self.subject;
        self.source = source;
        self.random = Random::new(source.into());
        self.fill();
        let classes = 1..subject.policy.classes.len() as u32;
        for target in &subject.parts.types {
            let pair = self.pair(*target);
            for class in classes.clone() {
                let cell = *self.rows[0].1.at(*target, class);
                self.access(&pair, class, &cell);
                for ask in [Ask::Transition, Ask::Member, Ask::Change] {
                    self.label(&New { ask, source: pair[0], target: pair[1], class, name: None }, None, &cell);
                }
            }
        }
        self.names();
        self.contexts();
        self.validatetrans();
    }

    /// The rows of the source and of its parents.
    fn fill(&mut self) {
        let subject = self.subject;
        let (mut type_, mut used) = (self.source, 0);
        while type_ != 0 {
            if self.rows.len() == used {
                self.rows.push((0, Row::new(subject.policy)));
            }
            let (of, row) = &mut self.rows[used];
            *of = type_;
            subject.rules.fill(type_, row);
            used += 1;
            type_ = subject.policy.types[type_ as usize].bounds;
        }
        self.rows.truncate(used);
    }

    /// Contexts of the source and a target. Roles take turns.
    fn pair(&mut self, target: u32) -> Parties {
        let Parts { users, roles, ranges, .. } = &self.subject.parts;
        let role = roles[(self.source + target) as usize % roles.len()];
        let pick = |random: &mut Random, all: &[u16]| all[random.below(all.len())];
        let other = pick(&mut self.random, roles);
        let users = [pick(&mut self.random, users), pick(&mut self.random, users), 0];
        let ranges = ranges[self.random.below(ranges.len())];
        parties(users, [role, other, 0], ranges, [self.source, target])
    }

    /// One class of one target: each combination of contexts; if rules allow nothing, those in which tables that allow something
    /// would show it.
    fn access(&mut self, pair: &Parties, class: u32, cell: &Cell) {
        let [source, target] = [pair[0].type_, pair[1].type_];
        let denied = cell.allow == 0 && self.rows.len() == 1;
        if denied && self.subject.constraints[class as usize].count() == 1 {
            let decided = self.decide(pair, class, cell, 0);
            self.ioctls(pair, class, &decided);
        } else if denied {
            for (place, number) in self.left(source, target, class).telling.iter().enumerate() {
                self.combination(*number, pair, class, cell, 0, place == 0);
            }
        } else {
            for (number, allowed) in self.allowed(target, class).into_iter().enumerate() {
                self.combination(number, pair, class, cell, allowed, number == 0);
            }
        }
    }

    fn combination(&mut self, number: usize, pair: &Parties, class: u32, cell: &Cell, allowed: u32, first: bool) {
        let combinations = &self.subject.constraints[class as usize];
        for turn in 0..self.subject.turns {
            let mut parties = combinations.parties(number, |count| self.random.below(count));
            (parties[0].type_, parties[1].type_) = (pair[0].type_, pair[1].type_);
            let decided = self.decide(&parties, class, cell, allowed);
            if first && turn == 0 {
                self.ioctls(&parties, class, &decided);
            }
        }
    }

    /// What is allowed by each combination: what rules allow, less what constraints forbid, and no more than the source's
    /// parent may do to the target's parent.
    fn allowed(&mut self, target: u32, class: u32) -> Vec<u32> {
        let subject = self.subject;
        let mut allowed = vec![u32::MAX; subject.constraints[class as usize].count()];
        let mut target = target;
        for place in 0..self.rows.len() {
            let above = subject.policy.types[target as usize].bounds;
            target = if place == 0 || above == 0 { target } else { above };
            let (source, rules) = (self.rows[place].0, self.rows[place].1.at(target, class).allow);
            let left = self.left(source, target, class);
            allowed.iter_mut().zip(&left.of_each).for_each(|(allowed, left)| *allowed &= rules & *left);
        }
        allowed
    }

    fn left(&mut self, source: u32, target: u32, class: u32) -> Rc<Left> {
        let subject = self.subject;
        let combinations = &subject.constraints[class as usize];
        let kinds = (class, combinations.kind(0, source), combinations.kind(1, target), source == target);
        let left = |number| {
            let mut parties = combinations.parties(number, |_| 0);
            (parties[0].type_, parties[1].type_) = (source, target);
            subject.plain.left(&subject.policy.classes[class as usize], &parties)
        };
        let all = || Rc::new(Left::new((0..combinations.count()).map(left).collect()));
        Rc::clone(self.left.entry(kinds).or_insert_with(all))
    }

    fn decide(&mut self, parties: &Parties, class: u32, cell: &Cell, allowed: u32) -> tg_decision {
        let Subject { policy, tables, levels, .. } = *self.subject;
        let question = tg_question { source: parties[0], target: parties[1], class, ..tg_question::default() };
        let decided = tables.decide(levels, &question).unwrap_or_default();
        let permissive = policy.types[self.source as usize].permissive;
        let expected = (allowed, cell.auditallow, !cell.dontaudit, permissive);
        let found = (decided.allowed, decided.auditallow, decided.auditdeny, decided.permissive != 0);
        self.report.count(self.source, Decision::Access, decided.allowed != 0, found == expected, || {
            let words = |(allowed, auditallow, auditdeny, permissive)| {
                let permissive = Some(permissive);
                Answer::Access { allowed, auditallow, auditdeny, permissive }.to_string()
            };
            [in_words(self.subject, parties, class), words(found), words(expected)]
        });
        decided
    }

    /// All functions of all drivers, if rules or tables name any.
    fn ioctls(&mut self, parties: &Parties, class: u32, decided: &tg_decision) {
        let rules = self.rows[0].1.extended.get(&(parties[1].type_, class));
        if rules.is_none() && decided.extended | decided.extended_self == 0 {
            return;
        }
        for driver in 0..=u8::MAX {
            let found = self.subject.tables.extend(decided, driver);
            let expected = rules.map(|rules| functions(rules, driver));
            self.report.count(self.source, Decision::Ioctl, found.is_some(), found == expected, || {
                let words = |extended: Option<tg_extended>| Answer::Extended(extended.map(Box::new)).to_string();
                let question = format!("{} driver {driver:#x}", in_words(self.subject, parties, class));
                [question, words(found), words(expected)]
            });
        }
    }

    fn label(&mut self, new: &New<'_>, name: Option<&tg_name>, cell: &Cell) {
        let Subject { tables, levels, plain, labels, .. } = self.subject;
        let (ask, decision) = match new.ask {
            Ask::Transition if name.is_some() => (TG_ASK_TRANSITION, Decision::Named),
            Ask::Transition => (TG_ASK_TRANSITION, Decision::Transition),
            Ask::Member => (TG_ASK_MEMBER, Decision::Member),
            Ask::Change => (TG_ASK_CHANGE, Decision::Change),
        };
        let New { source, target, class, .. } = *new;
        let question = tg_question { source, target, class, ask, ..tg_question::default() };
        let valid = tables.raw_label(levels, &question, name, &mut self.label);
        let label = &self.label;
        let mut context = label.context;
        let identifier = |known, level: &tg_level| {
            if known == TG_NO_LEVEL { plain.order.find(&decide::from_raw(level)) } else { known }
        };
        (context.low, context.high) =
            (identifier(context.low, &label.level[0]), identifier(context.high, &label.level[1]));
        let (found, expected) = ((context, valid), labels.of(plain, new, cell));
        self.report.count(self.source, decision, valid, found == expected, || {
            let words = |(context, valid)| {
                let text = text(self.subject, &context);
                if valid { text } else { format!("{text}, which is not valid") }
            };
            let name = new.name.map(|name| format!(" {name:?}")).unwrap_or_default();
            let question = in_words(self.subject, &[source, target, tg_context::default()], class) + &name;
            [question, words(found), words(expected)]
        });
    }

    /// Each file name that rules have, at each target and class that such rules have.
    fn names(&mut self) {
        let Labels { names, places, .. } = &self.subject.labels;
        for name in names {
            let raw = decide::name(name);
            for (target, class) in places.iter().cycle().take(places.len() * self.subject.turns) {
                let [source, target, _] = self.pair(*target);
                let cell = *self.rows[0].1.at(target.type_, *class);
                let new = New { ask: Ask::Transition, source, target, class: *class, name: Some(name) };
                self.label(&new, raw.as_ref(), &cell);
            }
        }
    }

    /// The type with each user and role: with the user's own range, and with another.
    fn contexts(&mut self) {
        let Subject { tables, levels, plain, parts, .. } = self.subject;
        for user in &parts.users {
            for role in &parts.roles {
                let [low, high, ..] = parts.ranges[self.random.below(parts.ranges.len())];
                for (low, high) in [plain.range_of(*user), (low, high)] {
                    let context = tg_context { user: *user, role: *role, type_: self.source, low, high };
                    let (found, expected) = (tables.valid(levels, &context), plain.is_valid(&context));
                    self.report.count(self.source, Decision::Context, found, found == expected, || {
                        let words = |valid| String::from(if valid { "valid" } else { "not valid" });
                        [text(self.subject, &context), words(found), words(expected)]
                    });
                }
            }
        }
    }

    /// The source as the task that relabels, with each combination of old and new contexts.
    fn validatetrans(&mut self) {
        let Subject { policy, tables, levels, plain, changes, .. } = self.subject;
        for ((class, combinations), number) in policy.classes.iter().zip(changes).zip(0..) {
            let Some(combinations) = combinations else { continue };
            for combination in 0..combinations.count() {
                let mut parties = combinations.parties(combination, |count| self.random.below(count));
                parties[2].type_ = self.source;
                let [source, target, task] = parties;
                let question = tg_question { source, target, task, class: number, ..tg_question::default() };
                let (found, expected) = (tables.validate(levels, &question), plain.may_relabel(class, &parties));
                self.report.count(self.source, Decision::Validatetrans, found, found == expected, || {
                    let words = |permitted| Answer::Validated(permitted).to_string();
                    let by = text(self.subject, &parties[2]);
                    [format!("{} by {by}", in_words(self.subject, &parties, number)), words(found), words(expected)]
                });
            }
        }
    }
}

/// The functions of a driver that rules name together (`services_compute_xperms_decision`).
fn functions(rules: &[&ExtendedRule], driver: u8) -> tg_extended {
    let mut sum = tg_extended::default();
    for rule in rules {
        let functions = match rule.extension {
            Extension::IoctlFunction { driver: of } if of == driver => rule.bits,
            Extension::IoctlDriver if rule.bits[usize::from(driver / 64)] >> (driver % 64) & 1 == 1 => [u64::MAX; 4],
            _ => continue,
        };
        let words = match rule.kind {
            RuleKind::Allow => &mut sum.allow,
            RuleKind::AuditAllow => &mut sum.auditallow,
            _ => &mut sum.dontaudit,
        };
        words.iter_mut().zip(functions).for_each(|(word, bits)| *word |= bits);
    }
    sum
}

/// A context in words. A level without identifier is left out.
fn text(subject: &Subject<'_, '_>, context: &tg_context) -> String {
    let level = |identifier| subject.plain.order.levels.get(identifier as usize).cloned().unwrap_or_default();
    let tg_context { user, role, type_, low, high } = *context;
    let range = Range { low: level(low), high: level(high) };
    context::text(subject.policy, &Context { user: user.into(), role: role.into(), type_, range })
}

fn in_words(subject: &Subject<'_, '_>, [source, target, _]: &Parties, class: u32) -> String {
    format!("{} {} {}", text(subject, source), text(subject, target), subject.policy.classes[class as usize].name)
}
