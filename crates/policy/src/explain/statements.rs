//! The statements that a policy was compiled from, and which of them apply to a question.

use std::collections::HashMap;

use super::{
    Place, Question,
    attributes::{Attributes, Membership, Supposed, merge},
    statement::{Sexp, token},
};
use crate::{
    lines::{Lines, Statement},
    model::{Bits, NameKind, Policy, Term},
};

/// How deep permission sets may refer to each other.
const MAX_DEPTH: usize = 32;

/// The statements of a policy, sorted by kind.
#[derive(Debug)]
pub(super) struct Statements<'a> {
    policy: &'a Policy,
    lines: &'a Lines,
    /// The attributes that they define.
    pub(super) attributes: Attributes<'a>,
    rules: Vec<&'a Statement>,
    neverallows: Vec<&'a Statement>,
    constraints: Vec<&'a Statement>,
    maps: HashMap<&'a str, Vec<Sexp<'a>>>,
    mappings: HashMap<(&'a str, &'a str), Vec<Sexp<'a>>>,
    permission_sets: HashMap<&'a str, Vec<Sexp<'a>>>,
}

/// A statement of a rule that applies to a question.
#[derive(Debug)]
pub(super) struct RuleStatement<'a> {
    /// Its source: a type or an attribute.
    pub(super) source: &'a str,
    /// Its target: a type, an attribute or `self`.
    pub(super) target: &'a str,
    /// The expression of booleans on which it depends, and the value that it needs.
    pub(super) when: Option<(Sexp<'a>, bool)>,
    /// Where it was written.
    pub(super) place: Place,
}

/// A neverallow statement.
#[derive(Debug)]
pub(super) struct Neverallow {
    sources: Bits,
    targets: Targets,
    /// The permissions, by class.
    permissions: Vec<u32>,
    /// Where it was written.
    pub(super) place: Place,
}

/// The targets of a neverallow statement.
#[derive(Debug)]
enum Targets {
    /// The source itself.
    Itself,
    /// Anything but the source.
    Others,
    /// These types, by number.
    Types(Bits),
}

impl Neverallow {
    /// The permissions of a class that it forbids to one of `sources` on one of `targets`.
    pub(super) fn forbids(&self, sources: &Bits, targets: &Bits, class: u32) -> u32 {
        let vector = self.permissions.get(class as usize).copied().unwrap_or(0);
        if vector == 0 || !meet(&self.sources, sources) {
            return 0;
        }
        let sources = merge(&self.sources, sources, |a, b| a & b);
        let forbidden = match &self.targets {
            Targets::Itself => meet(&sources, targets),
            Targets::Others => sources.iter().any(|source| targets.iter().any(|target| target != source)),
            Targets::Types(types) => meet(types, targets),
        };
        if forbidden { vector } else { 0 }
    }
}

fn meet(first: &Bits, second: &Bits) -> bool {
    first.0.iter().zip(&second.0).any(|(a, b)| a & b != 0)
}

impl<'a> Statements<'a> {
    /// Sorts the statements in `lines`, from which `policy` was compiled.
    pub(super) fn of(policy: &'a Policy, lines: &'a Lines) -> Self {
        let mut all = Self {
            policy,
            lines,
            attributes: Attributes::of(policy),
            rules: Vec::new(),
            neverallows: Vec::new(),
            constraints: Vec::new(),
            maps: HashMap::new(),
            mappings: HashMap::new(),
            permission_sets: HashMap::new(),
        };
        lines.statements.iter().for_each(|statement| all.sort(statement));
        all
    }

    fn sort(&mut self, statement: &'a Statement) {
        let text = statement.text.as_str();
        let keyword = token(text).and_then(|(_, rest)| token(rest)).map_or("", |(keyword, _)| keyword);
        match keyword {
            "allow" | "auditallow" | "dontaudit" | "booleanif" | "tunableif" => self.rules.push(statement),
            "neverallow" => self.neverallows.push(statement),
            "constrain" | "mlsconstrain" => self.constraints.push(statement),
            "typeattributeset" | "classmap" | "classmapping" | "classpermissionset" => self.define(text),
            _ => {}
        }
    }

    fn define(&mut self, text: &'a str) {
        let Some(Sexp::List(items)) = Sexp::read(text) else { return };
        match <[Sexp<'_>; 3]>::try_from(items) {
            Ok([Sexp::Word("typeattributeset"), Sexp::Word(name), expression]) => {
                self.attributes.define(name, expression);
            }
            Ok([Sexp::Word("classmap"), Sexp::Word(name), permissions]) => {
                self.maps.entry(plain(name)).or_default().push(permissions);
            }
            Ok([Sexp::Word("classpermissionset"), Sexp::Word(name), permissions]) => {
                self.permission_sets.entry(plain(name)).or_default().push(permissions);
            }
            Err(items) => {
                let parts = <[Sexp<'_>; 4]>::try_from(items);
                if let Ok([Sexp::Word("classmapping"), Sexp::Word(map), Sexp::Word(permission), set]) = parts {
                    self.mappings.entry((plain(map), permission)).or_default().push(set);
                }
            }
            Ok(_) => {}
        }
    }

    /// A place as people write it.
    fn place(&self, statement: &Statement, text: &str) -> Place {
        let file = self.lines.files.get(statement.file as usize).cloned().unwrap_or_default();
        Place { file, line: statement.line, cil: text.to_owned() }
    }

    /// The statements of a kind (`allow`, `auditallow`, `dontaudit`) that apply to a question.
    pub(super) fn rules(&self, keyword: &str, question: &Question) -> Vec<RuleStatement<'a>> {
        let mut found = Vec::new();
        let mut as_is = self.attributes.supposing(&[]);
        for statement in &self.rules {
            let text = statement.text.as_str();
            let mut words = std::iter::successors(token(text), |(_, rest)| token(rest)).map(|(word, _)| word).skip(1);
            match words.next() {
                Some(word @ ("booleanif" | "tunableif")) => {
                    let Some(all) = Sexp::read(text) else { continue };
                    let [_, expression, branches @ ..] = all.items() else { continue };
                    for (rule, value) in branches.iter().flat_map(|branch| rules_of(branch, keyword)) {
                        let [_, Sexp::Word(source), Sexp::Word(target), _] = rule.items() else { continue };
                        if is_about(&mut as_is, source, target, question) {
                            let when = (word == "booleanif").then(|| (expression.clone(), value));
                            found.extend(self.rule(rule, when, question, statement));
                        }
                    }
                }
                Some(word) if word == keyword => {
                    // Most statements are about other types. Only the rest is parsed.
                    let (Some(source), Some(target)) = (words.next(), words.next()) else { continue };
                    if is_about(&mut as_is, source, target, question)
                        && let Some(rule) = Sexp::read(text)
                    {
                        found.extend(self.rule(&rule, None, question, statement));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// A rule for the question's types, if it has the permission.
    fn rule(
        &self,
        rule: &Sexp<'a>,
        when: Option<(Sexp<'a>, bool)>,
        question: &Question,
        statement: &Statement,
    ) -> Option<RuleStatement<'a>> {
        let [_, Sexp::Word(source), Sexp::Word(target), permissions] = rule.items() else { return None };
        let about = self.permissions(permissions, question.class) & question.permission != 0;
        let place = || self.place(statement, &statement.text);
        about.then(|| RuleStatement { source, target, when, place: place() })
    }

    /// The permissions of a class in a class and permission set, as an access vector: `(file (read))`, `(files (r w))`
    /// of a class map, `(file (not (write)))`, or the name of a set.
    pub(super) fn permissions(&self, set: &Sexp<'a>, class: u32) -> u32 {
        self.permissions_within(set, class, MAX_DEPTH)
    }

    fn permissions_within(&self, set: &Sexp<'a>, class: u32, depth: usize) -> u32 {
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        let Some(known) = self.policy.classes.get(class as usize) else { return 0 };
        match set.items() {
            [Sexp::Word(name)] => {
                let sets = self.permission_sets.get(plain(name)).into_iter().flatten();
                sets.fold(0, |vector, set| vector | self.permissions_within(set, class, depth))
            }
            [Sexp::Word(name), permissions] if *name == known.name => {
                let all = u32::MAX.checked_shr(32 - known.permissions.len().min(32) as u32).unwrap_or(0);
                selected(permissions, all, &|word| {
                    known.permissions.iter().position(|p| p == word).map_or(0, |number| 1 << number)
                })
            }
            [Sexp::Word(map), permissions] => self.mapped(plain(map), permissions, class, depth),
            several => several
                .iter()
                .filter(|set| set.word().is_none())
                .fold(0, |vector, set| vector | self.permissions_within(set, class, depth)),
        }
    }

    fn mapped(&self, map: &'a str, permissions: &Sexp<'a>, class: u32, depth: usize) -> u32 {
        let names: Vec<&str> = self
            .maps
            .get(map)
            .into_iter()
            .flatten()
            .flat_map(|set| set.items())
            .filter_map(Sexp::word)
            .take(64)
            .collect();
        let all = u64::MAX.checked_shr(64 - names.len() as u32).unwrap_or(0);
        let number = |word: &str| names.iter().position(|name| *name == word).map_or(0, |number| 1 << number);
        let chosen = selected(permissions, all, &number);
        let chosen = names.iter().enumerate().filter(|(number, _)| chosen >> number & 1 == 1);
        let sets = chosen.filter_map(|(_, name)| self.mappings.get(&(map, *name))).flatten();
        sets.fold(0, |vector, set| vector | self.permissions_within(set, class, depth))
    }

    /// The constraint statements of a class with exactly this expression and a permission.
    pub(super) fn constraints(&self, class: u32, permission: u32, expression: &[Term]) -> Vec<Place> {
        let same = |statement: &&&Statement| {
            let Some(Sexp::List(items)) = Sexp::read(&statement.text) else { return false };
            let [_, permissions, written] = &items[..] else { return false };
            self.permissions(permissions, class) & permission != 0 && self.is_expression(written, expression)
        };
        self.constraints.iter().filter(same).map(|statement| self.place(statement, &statement.text)).collect()
    }

    /// Whether a written expression of a constraint is the one that the policy has.
    fn is_expression(&self, written: &Sexp<'a>, expression: &[Term]) -> bool {
        let mut rest = expression;
        self.ends_with(written, &mut rest) && rest.is_empty()
    }

    /// Compares a written expression with the end of a postfix one, and removes it from there.
    fn ends_with(&self, written: &Sexp<'a>, rest: &mut &[Term]) -> bool {
        let Some((last, before)) = rest.split_last() else { return false };
        let items = written.items();
        *rest = before;
        match (items, last) {
            ([Sexp::Word("not"), only], Term::Not) => self.ends_with(only, rest),
            ([Sexp::Word("and"), first, second], Term::And) | ([Sexp::Word("or"), first, second], Term::Or) => {
                self.ends_with(second, rest) && self.ends_with(first, rest)
            }
            ([Sexp::Word(word), Sexp::Word(first), second], Term::Compare(pair, comparison)) => {
                *word == crate::cil::comparison_keyword(*comparison)
                    && second.word().is_some_and(|second| crate::cil::sides(*pair) == (*first, second))
            }
            ([Sexp::Word(word), Sexp::Word(side), names], Term::In { party, kind, comparison, names: set, .. }) => {
                let sides = ["1", "2", "3"][*party as usize];
                *word == crate::cil::comparison_keyword(*comparison)
                    && side.strip_prefix(["u", "r", "t"][*kind as usize]) == Some(sides)
                    && self.is_set(*kind, names, set)
            }
            _ => false,
        }
    }

    fn is_set(&self, kind: NameKind, names: &Sexp<'a>, set: &Bits) -> bool {
        let words = names.items().iter().filter_map(Sexp::word);
        match kind {
            NameKind::Type => {
                let mut as_is = self.attributes.supposing(&[]);
                let types = words.fold(Bits::default(), |all, name| merge(&all, &as_is.types(name), |a, b| a | b));
                types.iter().eq(set.iter())
            }
            NameKind::User => same(words, set, self.policy.users.iter().map(|user| user.name.as_str())),
            NameKind::Role => same(words, set, self.policy.roles.iter().map(|role| role.name.as_str())),
        }
    }

    /// The neverallow statements, if some types were put in attributes.
    pub(super) fn neverallows(&self, put: &[Membership]) -> Vec<Neverallow> {
        let read: Vec<_> = self.neverallows.iter().filter_map(|s| Some((*s, Sexp::read(&s.text)?))).collect();
        let mut supposed = self.attributes.supposing(put);
        let mut all = Vec::new();
        for (statement, written) in &read {
            let [_, Sexp::Word(source), Sexp::Word(target), permissions] = written.items() else { continue };
            all.push(Neverallow {
                sources: supposed.types(source),
                targets: match *target {
                    "self" => Targets::Itself,
                    "notself" => Targets::Others,
                    target => Targets::Types(supposed.types(target)),
                },
                permissions: (0..self.policy.classes.len() as u32)
                    .map(|class| self.permissions(permissions, class))
                    .collect(),
                place: self.place(statement, &statement.text),
            });
        }
        all
    }
}

/// Whether words name the numbers of a set. A word that is not a name is an attribute of roles or users, which a binary
/// policy does not have. Then it is possible.
fn same<'w>(words: impl Iterator<Item = &'w str>, set: &Bits, names: impl Iterator<Item = &'w str>) -> bool {
    let names: Vec<&str> = names.collect();
    let number = |word: &str| names.iter().position(|name| *name == plain(word)).map(|number| number as u32);
    let numbers: Option<Bits> = words.map(number).collect();
    numbers.is_none_or(|numbers| numbers.iter().eq(set.iter()))
}

/// A name without the dot that says that it is not of the block in which it is written.
fn plain(name: &str) -> &str {
    name.trim_start_matches('.')
}

/// Whether a rule's names stand for the types of a question.
fn is_about<'n>(as_is: &mut Supposed<'n, '_>, source: &'n str, target: &'n str, question: &Question) -> bool {
    let (s, t) = (question.source.type_, question.target.type_);
    as_is.names(source, s)
        && match target {
            "self" => s == t,
            "notself" => s != t,
            target => as_is.names(target, t),
        }
}

/// The rules of a kind in a branch of a `booleanif`, and the branch's value.
fn rules_of<'s, 'a>(branch: &'s Sexp<'a>, keyword: &str) -> Vec<(&'s Sexp<'a>, bool)> {
    let Some((Sexp::Word(value @ ("true" | "false")), rules)) = branch.items().split_first() else { return Vec::new() };
    let of_kind = rules.iter().filter(|rule| rule.items().first().and_then(Sexp::word) == Some(keyword));
    of_kind.map(|rule| (rule, *value == "true")).collect()
}

/// What an expression of permissions selects: words, `(all)`, `(not ...)`, `(and ...)`, `(or ...)`, `(xor ...)`, lists.
fn selected<T>(expression: &Sexp<'_>, all: T, number: &dyn Fn(&str) -> T) -> T
where
    T: Copy + Default + std::ops::BitOr<Output = T> + std::ops::BitAnd<Output = T> + std::ops::BitXor<Output = T>,
{
    let items = match expression {
        Sexp::Word("all") => return all,
        Sexp::Word(word) => return number(word),
        Sexp::List(items) => items,
    };
    let each = |items: &[Sexp<'_>], start: T, with: fn(T, T) -> T| {
        items.iter().fold(start, |sum, item| with(sum, selected(item, all, number)))
    };
    let any = |items: &[Sexp<'_>]| each(items, T::default(), |a, b| a | b);
    match items.split_first() {
        Some((Sexp::Word("not"), rest)) => all ^ (any(rest) & all),
        Some((Sexp::Word("and"), rest)) => each(rest, all, |a, b| a & b),
        Some((Sexp::Word("xor"), rest)) => each(rest, T::default(), |a, b| a ^ b),
        Some((Sexp::Word("or"), rest)) => any(rest),
        _ => any(items),
    }
}
