//! Learning: reads denials and writes rules that would have allowed exactly these.
//!
//! Pure. A rule covers the types of its denials and no others. Denials that a rule cannot prevent are listed apart.

pub mod abstraction;
mod apart;
mod evidence;
#[cfg(test)]
mod tests;
mod text;
mod wide;

use std::collections::{BTreeMap, BTreeSet};

use tollgate_policy::{
    cil,
    context::{ContextError, Kind, Names},
    explain::{Explainer, Lack, Question},
    model::Policy,
};

pub use self::{abstraction::Call, apart::Apart, evidence::Evidence};
use crate::{
    Denial, Entry, Reason,
    avc::{ENDS_ENFORCEMENT, Object, Verdict},
};

/// Name of the initial SID of objects that have no label of their own.
pub(crate) const UNLABELLED: &str = "unlabeled";

/// What was denied, in the terms of a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    source: String,
    target: String,
    class: String,
    permission: String,
    /// The command, if the permission is `ioctl`.
    command: Option<u16>,
}

/// A learnt rule: what one type may do to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The permissions, each with the denials that it would have allowed.
    pub permissions: BTreeMap<String, Evidence>,
    /// The commands of `ioctl` that the rule must name, because the policy restricts them for this class.
    pub commands: BTreeMap<u16, Evidence>,
    /// What to consider before adding the rule.
    pub notes: BTreeSet<String>,
    /// What the rule allows beyond what its reader may expect.
    pub wide: Vec<String>,
}

/// A rule's source type, target type and class.
pub type Subject = (String, String, String);

/// The result of reading a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// All of the denials.
    pub evidence: Evidence,
    /// How many of them were enforced. What the process would have done next is in no log.
    pub enforced: u64,
    /// Macros of the policy that are called in place of rules.
    pub calls: Vec<Call>,
    /// The learnt rules.
    pub rules: BTreeMap<Subject, Rule>,
    /// Denials that no allow rule can prevent.
    pub apart: Vec<Apart>,
    /// How many denials the policy now allows.
    pub allowed: u64,
    /// How many denials the policy suppresses on purpose (dontaudit).
    pub silent: u64,
    /// Number of dontaudit rules for each domain. What they hide is in no log and was not learnt.
    pub hiding: BTreeMap<String, usize>,
    /// Number of events that are missing from the log, by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

/// Learns from log entries what the policy of `explainer` lacks.
#[must_use]
pub fn learn(explainer: &Explainer<'_>, entries: impl IntoIterator<Item = Entry>) -> Learnt {
    let mut learnt = Learnt::default();
    let mut asked: BTreeMap<Asked, Evidence> = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::Avc(denial) if denial.verdict == Verdict::Denied => {
                learnt.note(&denial);
                let evidence = Evidence::of(&denial);
                each(&denial).for_each(|question| asked.entry(question).or_default().add(&evidence));
            }
            Entry::Avc(_) | Entry::Load(_) => {}
            Entry::Lost(lost) => learnt.lose(lost.reason, lost.count),
        }
    }
    let mut pupil = Pupil { explainer, names: Names::of(explainer.policy()), learnt };
    for (asked, evidence) in &asked {
        pupil.take(asked, evidence);
    }
    apart::join(&mut pupil.learnt.apart);
    for (subject, rule) in &mut pupil.learnt.rules {
        rule.wide = wide::in_words(explainer.policy(), subject, rule);
    }
    pupil.learnt
}

/// The permissions that one denial denied.
pub(crate) fn each(denial: &Denial) -> impl Iterator<Item = Asked> + '_ {
    let context = |text: &Option<String>, sid: u32| text.clone().unwrap_or_else(|| format!("SID {sid}"));
    denial.permissions.iter().map(move |permission| Asked {
        source: context(&denial.scontext, denial.ssid),
        target: context(&denial.tcontext, denial.tsid),
        class: denial.tclass.clone(),
        permission: permission.clone(),
        command: match &denial.object {
            Object::Ioctl { ioctlcmd, .. } if permission == "ioctl" => Some(*ioctlcmd),
            _ => None,
        },
    })
}

impl Asked {
    /// The same question in the numbers of a policy.
    pub(crate) fn question(&self, policy: &Policy, names: &Names) -> Result<Question, ContextError> {
        let class = names.find(Kind::Class, &self.class)?;
        Ok(Question {
            source: names.context(policy, &self.source)?,
            target: names.context(policy, &self.target)?,
            class,
            permission: names.permission(class, &self.permission)?,
        })
    }
}

impl Learnt {
    fn note(&mut self, denial: &Denial) {
        let evidence = Evidence::of(denial);
        self.enforced += if denial.permissive { 0 } else { evidence.count };
        self.evidence.add(&evidence);
    }

    fn lose(&mut self, reason: Reason, count: u64) {
        let sum = self.lost.entry(reason.text()).or_default();
        *sum = sum.saturating_add(count);
    }

    /// How many permissions the rules grant, including commands of `ioctl`.
    #[must_use]
    pub fn granted(&self) -> usize {
        let by_rules: usize = self.rules.values().map(|rule| rule.permissions.len() + rule.commands.len()).sum();
        by_rules + self.calls.iter().map(|call| call.permissions).sum::<usize>()
    }

    /// What the rules allow beyond what their reader may expect, one line each.
    #[must_use]
    pub fn wide(&self) -> Vec<String> {
        let all = self.rules.iter().flat_map(|((source, ..), rule)| rule.wide.iter().map(move |text| (source, text)));
        all.map(|(source, text)| format!("{source} is allowed {text}")).collect()
    }

    /// Whether the rules would have allowed everything in the log, and nothing is missing from the log.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.apart.is_empty() && self.lost.is_empty() && self.enforced == 0
    }
}

/// The state while a log is read.
struct Pupil<'e, 'p> {
    explainer: &'e Explainer<'p>,
    names: Names,
    learnt: Learnt,
}

impl Pupil<'_, '_> {
    fn take(&mut self, asked: &Asked, evidence: &Evidence) {
        let question = match asked.question(self.explainer.policy(), &self.names) {
            Ok(question) => question,
            Err(cause) => return self.learnt.apart.push(Apart::unknown(asked, evidence, &cause)),
        };
        let (lack, command) = (self.explainer.lack(&question), self.unnamed_command(&question, asked));
        if lack == Lack::Nothing && command.is_none() {
            self.learnt.allowed += evidence.count;
            return;
        }
        if self.explainer.is_silent(&question) {
            self.learnt.silent += evidence.count;
            return;
        }
        if lack == Lack::Other {
            let apart =
                Apart::explained(asked, evidence, || self.explainer.explain(&question), self.learnt.apart.len());
            return self.learnt.apart.push(apart);
        }
        self.grant(&question, asked, evidence, lack, command);
    }

    /// The command of `ioctl`, if rules restrict the commands and do not name this one.
    fn unnamed_command(&self, question: &Question, asked: &Asked) -> Option<u16> {
        asked.command.filter(|command| self.explainer.names_command(question, *command) == Some(false))
    }

    fn grant(&mut self, question: &Question, asked: &Asked, evidence: &Evidence, lack: Lack, command: Option<u16>) {
        let policy = self.explainer.policy();
        let (source, target) = (question.source.type_, question.target.type_);
        let domain = cil::type_name(policy, source);
        let subject = (domain.clone(), cil::type_name(policy, target), asked.class.clone());
        let rule = self.learnt.rules.entry(subject).or_default();
        if lack == Lack::Rule {
            rule.permissions.entry(asked.permission.clone()).or_default().add(evidence);
        }
        if let Some(command) = command {
            rule.commands.entry(command).or_default().add(evidence);
        }
        let conditions = self.explainer.switched_off(question);
        rule.notes.extend(conditions.into_iter().map(|when| {
            format!("{} is allowed without this rule when {when} (tollgate policy bool)", asked.permission)
        }));
        if (asked.class.as_str(), asked.permission.as_str()) == ENDS_ENFORCEMENT {
            rule.notes.insert("a domain with this permission can end enforcement: do it unconfined instead".to_owned());
        }
        if policy.initial_sids.iter().any(|sid| sid.name == UNLABELLED && sid.context.type_ == target) {
            let note = "the object has no label of its own: give it one instead (tollgate label)";
            rule.notes.insert(note.to_owned());
        }
        let hiding = self.learnt.hiding.entry(domain);
        hiding.or_insert_with(|| self.explainer.silencing(source));
    }
}
