//! Answers many questions about one policy. What they have in common is computed once.

use std::{cell::OnceCell, collections::BTreeSet};

use super::{
    Admitted, Explanation, Place, Question, admitted,
    attributes::only,
    explained, rules,
    statements::{Neverallow, Statements},
    validity,
    world::{Missing, World},
};
use crate::{
    cil,
    lines::Lines,
    model::{Policy, Rule, RuleKind, Term},
};

/// What a question lacks to be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Nothing, because it is allowed.
    Nothing,
    /// One allow rule for its own types and class, which nothing prevents.
    Rule,
    /// More than that, or something else: see [`Explainer::explain`].
    Other,
}

/// A policy, prepared for explanations of its decisions.
#[derive(Debug)]
pub struct Explainer<'a> {
    world: World<'a>,
    statements: Statements<'a>,
    lines: &'a Lines,
    neverallows: OnceCell<Vec<Neverallow>>,
}

impl<'a> Explainer<'a> {
    /// Prepares `policy`; `lines` are its statements.
    pub fn new(policy: &'a Policy, lines: &'a Lines) -> Self {
        let (world, statements) = (World::of(policy), Statements::of(policy, lines));
        Self { world, statements, lines, neverallows: OnceCell::new() }
    }

    /// The policy whose decisions are explained.
    pub fn policy(&self) -> &'a Policy {
        self.world.policy
    }

    /// Why the answer is as it is.
    pub fn explain(&self, question: &Question) -> Explanation {
        explained(&self.world, &self.statements, self.lines, question)
    }

    /// Where a constraint is written that concerns a permission of a class; empty if the policy no longer says.
    pub fn constraint(&self, class: u32, permission: u32, expression: &[Term]) -> Vec<Place> {
        self.statements.constraints(class, permission, expression)
    }

    /// What a question about one permission lacks.
    pub fn lack(&self, question: &Question) -> Lack {
        if !validity::invalid(self.policy(), question).is_empty() {
            return Lack::Other;
        }
        let steps = self.world.steps(question);
        let (own, parents) = (self.world.missing(question), &steps[1..]);
        if parents.iter().any(|step| !self.world.missing(step).is_empty()) {
            return Lack::Other;
        }
        match own[..] {
            [] => Lack::Nothing,
            [Missing::Rule] if !self.is_forbidden(question) => Lack::Rule,
            _ => Lack::Other,
        }
    }

    /// Whether a rule suppresses the audit of its denials.
    pub fn is_silent(&self, question: &Question) -> bool {
        let mut rules = self.world.rules(RuleKind::DontAudit, question);
        rules.any(|rule| self.policy().holds(rule.condition))
    }

    /// The conditions, as CIL, under which rules that are switched off would allow it.
    pub fn switched_off(&self, question: &Question) -> BTreeSet<String> {
        let rules = self.world.rules(RuleKind::Allow, question);
        let conditions = rules.filter_map(|rule| rule.condition).filter(|it| !self.policy().holds(Some(*it)));
        conditions.map(|condition| cil::when(self.policy(), condition)).collect()
    }

    /// How many rules suppress the audit of a domain's denials.
    pub fn silencing(&self, domain: u32) -> usize {
        let names = self.world.set(domain);
        let silent = |rule: &&Rule| rule.kind == RuleKind::DontAudit && names.has(rule.source);
        self.policy().rules.iter().filter(silent).filter(|rule| self.policy().holds(rule.condition)).count()
    }

    /// Whether rules name this command of `ioctl`; `None`: they name no commands, and `ioctl` alone decides.
    pub fn names_command(&self, question: &Question, command: u16) -> Option<bool> {
        rules::names_command(&self.world, question, command)
    }

    /// The domains that a rule for the question's types would let in.
    pub fn admitted(&self, question: &Question) -> Admitted {
        admitted::by(&self.world, question)
    }

    fn is_forbidden(&self, question: &Question) -> bool {
        let (sources, targets) = (only(question.source.type_), only(question.target.type_));
        let neverallows = self.neverallows.get_or_init(|| self.statements.neverallows(&[]));
        neverallows.iter().any(|never| never.forbids(&sources, &targets, question.class) & question.permission != 0)
    }
}
