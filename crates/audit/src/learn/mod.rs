//! Learning: denials in, rules out that would have allowed just these.
//!
//! Pure. A rule is for the types of its denials and no others; what a rule cannot mend is told apart.

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

/// The initial SID of what has no label of its own.
pub(crate) const UNLABELLED: &str = "unlabeled";

/// What was denied, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    source: String,
    target: String,
    class: String,
    permission: String,
    /// Of permission `ioctl`.
    command: Option<u16>,
}

/// A rule that was learnt: what one type may do to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its permissions.
    pub permissions: BTreeMap<String, Evidence>,
    /// Where the policy names the commands of `ioctl`: those that it is to name, too.
    pub commands: BTreeMap<u16, Evidence>,
    /// What should be thought of before it is added.
    pub notes: BTreeSet<String>,
    /// What it allows that is more than one may think.
    pub wide: Vec<String>,
}

/// Whose rule it is: source type, target type, class.
pub type Subject = (String, String, String);

/// What came of a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// All of the denials.
    pub evidence: Evidence,
    /// How many of them were enforced: what the process would have done next is in no log.
    pub enforced: u64,
    /// Macros of the policy that are called in place of rules.
    pub calls: Vec<Call>,
    /// The rules.
    pub rules: BTreeMap<Subject, Rule>,
    /// What no allow rule can mend.
    pub apart: Vec<Apart>,
    /// How many denials the policy allows by now.
    pub allowed: u64,
    /// How many the policy means to be denied silently (dontaudit).
    pub silent: u64,
    /// How many dontaudit rules the policy has for each domain: what those hide was not learnt.
    pub hiding: BTreeMap<String, usize>,
    /// Events that are in no log, by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

/// Learns from the entries of a log what `explainer`'s policy lacks.
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
            Entry::Avc(_) => {}
            Entry::Lost(lost) => learnt.lose(lost.reason, lost.count),
        }
    }
    let mut pupil = Pupil { explainer, names: Names::of(explainer.policy()), learnt };
    for (asked, evidence) in &asked {
        pupil.take(asked, evidence);
    }
    apart::join(&mut pupil.learnt.apart);
    for (subject, rule) in &mut pupil.learnt.rules {
        rule.wide = wide::told(explainer.policy(), subject, rule);
    }
    pupil.learnt
}

/// What a denial denied, permission by permission.
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
    /// The same in a policy's own numbers.
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

    /// How many permissions the rules grant, commands of `ioctl` among them.
    #[must_use]
    pub fn granted(&self) -> usize {
        let by_rules: usize = self.rules.values().map(|rule| rule.permissions.len() + rule.commands.len()).sum();
        by_rules + self.calls.iter().map(|call| call.permissions).sum::<usize>()
    }

    /// What the rules allow that is more than one may think, a line each.
    #[must_use]
    pub fn wide(&self) -> Vec<String> {
        let all = self.rules.iter().flat_map(|((source, ..), rule)| rule.wide.iter().map(move |text| (source, text)));
        all.map(|(source, text)| format!("{source} is allowed {text}")).collect()
    }

    /// Whether the rules let all happen that the log tells of, and that log is whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.apart.is_empty() && self.lost.is_empty() && self.enforced == 0
    }
}

/// Who learns, and what so far.
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

    /// The command of `ioctl`, where rules name commands and not this one.
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
            rule.notes.insert("whoever has this may end enforcement: rather do it unconfined".to_owned());
        }
        if policy.initial_sids.iter().any(|sid| sid.name == UNLABELLED && sid.context.type_ == target) {
            let note = "the object has no label of its own: rather give it one (tollgate label)";
            rule.notes.insert(note.to_owned());
        }
        let hiding = self.learnt.hiding.entry(domain);
        hiding.or_insert_with(|| self.explainer.silencing(source));
    }
}
