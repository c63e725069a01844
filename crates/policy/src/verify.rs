//! Verifies a policy's decision tables: asks the tables and another implementation of SELinux's decisions (libsepol or
//! the running kernel) the same questions.

pub mod all;
mod bpf;
mod contexts;
mod peers;
mod questions;
mod random;

use std::time::{Duration, Instant};

use tollgate_abi::tables::tg_context;

pub use self::{
    bpf::Bpf,
    peers::{Answer, Difference, KernelPeer, Label, Libsepol, Peer, PeerError, Subject},
    questions::{Batch, Kind, Question},
    random::Random,
};
use crate::{
    context::{self, ContextError},
    model::Policy,
    server::{Ask, LabelError, SecurityServer, ServerError},
};

/// How many questions are asked, and from which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Number of access decisions. There are a quarter as many transitions, members and changes each, and a sixteenth
    /// as many validatetrans decisions and (if the peer has them) extended permissions each.
    pub decisions: usize,
    /// The seed. The same seed gives the same questions.
    pub seed: u64,
}

/// How many questions of one kind are asked, and timed, together.
const BATCH: usize = 20_000;
/// How many mismatches a report keeps completely.
const MAX_MISMATCHES: usize = 20;

/// The results for questions of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Number of questions.
    pub asked: usize,
    /// Number of answers that differed.
    pub mismatches: usize,
    /// Number of answers that granted something, gave a context or permitted.
    pub granted: usize,
    /// Nanoseconds per answer of the tables, one number per batch.
    pub ours_ns: Vec<f64>,
    /// Nanoseconds per answer of the peer, one number per batch.
    pub peers_ns: Vec<f64>,
}

/// A question with different answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The kind of question.
    pub kind: Kind,
    /// The question, in words.
    pub question: String,
    /// The answer of Tollgate's evaluator.
    pub ours: String,
    /// The peer's answer.
    pub peers: String,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// By kind of question, for those that were asked.
    pub tallies: Vec<(Kind, Tally)>,
    /// Questions to which the peer is known to give another answer, and which were not counted.
    pub differences: Vec<(Difference, usize)>,
    /// The first mismatches.
    pub mismatches: Vec<Mismatch>,
}

impl Report {
    /// The number of answers that differed.
    pub fn count(&self) -> usize {
        self.tallies.iter().map(|(_, tally)| tally.mismatches).sum()
    }

    /// The results for questions of a kind.
    pub fn of(&self, kind: Kind) -> Tally {
        self.tallies.iter().find(|(of, _)| *of == kind).map(|(_, tally)| tally.clone()).unwrap_or_default()
    }
}

/// Why a verification could not continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The peer could not answer.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The tables do not make a server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A context is not one of the policy's.
    #[error(transparent)]
    Context(#[from] ContextError),
}

/// Asks the tables and the peer the same questions. `server` makes a new server of the tables, because the levels in
/// answers would fill one up.
pub fn run<'a>(
    server: &dyn Fn() -> Result<SecurityServer<'a>, VerifyError>,
    peer: &mut dyn Peer,
    plan: Plan,
) -> Result<Report, VerifyError> {
    let mut random = Random::new(plan.seed);
    let mut report = Report::default();
    let kinds = [
        (Kind::Access, plan.decisions),
        (Kind::Extended, plan.decisions / 16),
        (Kind::Transition, plan.decisions / 4),
        (Kind::Member, plan.decisions / 4),
        (Kind::Change, plan.decisions / 4),
        (Kind::Validate, plan.decisions / 16),
    ];
    for (kind, count) in kinds {
        if !peer.knows(kind) {
            continue;
        }
        let mut tally = Tally::default();
        let mut left = count;
        while left > 0 {
            let mut server = server()?;
            let policy = server.policy();
            let mut batch = Batch::new(policy, kind, left.min(BATCH), &mut random);
            if batch.questions.is_empty() {
                break;
            }
            left -= batch.questions.len();
            set_apart(policy, peer, &mut batch, &mut report);
            ask(&mut server, peer, &batch, &mut tally, &mut report)?;
        }
        report.tallies.push((kind, tally));
    }
    Ok(report)
}

/// Removes questions from a batch to which the peer is known to give another answer, and counts them.
fn set_apart(policy: &Policy, peer: &dyn Peer, batch: &mut Batch, report: &mut Report) {
    let Batch { kind, contexts, questions } = batch;
    questions.retain(|question| {
        let Some(difference) = peer.difference(policy, *kind, contexts, question) else { return true };
        match report.differences.iter_mut().find(|(known, _)| *known == difference) {
            Some((_, count)) => *count += 1,
            None => report.differences.push((difference, 1)),
        }
        false
    });
}

/// Asks both a batch of questions, measures the time of each, and compares the answers.
fn ask(
    server: &mut SecurityServer<'_>,
    peer: &mut dyn Peer,
    batch: &Batch,
    tally: &mut Tally,
    report: &mut Report,
) -> Result<(), VerifyError> {
    let policy = server.policy();
    let contexts: Vec<tg_context> =
        batch.contexts.iter().map(|context| server.intern(context)).collect::<Result<_, _>>()?;
    let texts: Vec<String> = batch.contexts.iter().map(|context| context::text(policy, context)).collect();
    peer.begin(&Subject { contexts: &contexts, levels: server.levels(), texts: &texts })?;
    let per_answer = |took: Duration| took.as_nanos() as f64 / batch.questions.len().max(1) as f64;

    let since = Instant::now();
    let answer = |question| answer(server, batch.kind, &contexts, question);
    let ours: Vec<Ours> = batch.questions.iter().map(answer).collect();
    tally.ours_ns.push(per_answer(since.elapsed()));
    let (peers, took) = peer.answers(batch.kind, &batch.questions)?;
    tally.peers_ns.push(per_answer(took));

    for ((question, ours), theirs) in batch.questions.iter().zip(ours).zip(peers) {
        let ours = expand(server, ours, peer.makes_invalid_contexts());
        tally.asked += 1;
        tally.granted += usize::from(ours.is_granted());
        if same(server, peer, &ours, &theirs) {
            continue;
        }
        tally.mismatches += 1;
        if report.mismatches.len() < MAX_MISMATCHES {
            report.mismatches.push(Mismatch {
                kind: batch.kind,
                question: in_words(policy, batch.kind, &texts, question),
                ours: ours.to_string(),
                peers: theirs.to_string(),
            });
        }
    }
    Ok(())
}

/// Our answer without text.
enum Ours {
    Answer(Answer),
    Label(Result<tg_context, LabelError>),
}

fn answer(server: &mut SecurityServer<'_>, kind: Kind, contexts: &[tg_context], question: &Question) -> Ours {
    let (source, target) = (contexts[question.source], contexts[question.target]);
    let ask = match kind {
        Kind::Access => {
            let decision = server.access(source, target, question.class);
            return Ours::Answer(Answer::Access {
                allowed: decision.allowed,
                auditallow: decision.auditallow,
                auditdeny: decision.auditdeny,
                permissive: Some(decision.permissive != 0),
            });
        }
        Kind::Extended => {
            let decision = server.access(source, target, question.class);
            let extended = server.tables().extend(&decision, question.driver);
            return Ours::Answer(Answer::Extended(extended.map(Box::new)));
        }
        Kind::Validate => {
            let permitted = server.validate(source, target, contexts[question.task], question.class);
            return Ours::Answer(Answer::Validated(permitted));
        }
        Kind::Transition => Ask::Transition,
        Kind::Member => Ask::Member,
        Kind::Change => Ask::Change,
    };
    Ours::Label(server.label(ask, source, target, question.class, question.name.as_deref()))
}

/// Our answer with contexts as text.
fn expand(server: &SecurityServer<'_>, ours: Ours, invalid_too: bool) -> Answer {
    match ours {
        Ours::Answer(answer) => answer,
        Ours::Label(Ok(context)) => Answer::Label(Some(server.text(&context).into())),
        Ours::Label(Err(LabelError::Invalid { text, .. })) if invalid_too => Answer::Label(Some(text.into())),
        Ours::Label(Err(_)) => Answer::Label(None),
    }
}

/// Whether two answers mean the same. Contexts may be written in more than one way.
fn same(server: &SecurityServer<'_>, peer: &mut dyn Peer, ours: &Answer, theirs: &Answer) -> bool {
    let parse = |label: &Label| server.names().context(server.policy(), &label.text).ok();
    match (ours, theirs) {
        (Answer::Label(Some(ours)), Answer::Label(Some(theirs))) => {
            ours.text == theirs.text
                || parse(theirs).is_some_and(|theirs| parse(ours) == Some(theirs))
                || peer.means(&ours.text, theirs)
        }
        (
            Answer::Access { allowed, auditallow, auditdeny, permissive },
            Answer::Access { allowed: a, auditallow: b, auditdeny: c, permissive: d },
        ) => {
            (allowed, auditallow, auditdeny) == (a, b, c)
                && permissive.zip(*d).is_none_or(|(ours, theirs)| ours == theirs)
        }
        _ => ours == theirs,
    }
}

/// A question as a person would ask it.
fn in_words(policy: &Policy, kind: Kind, texts: &[String], question: &Question) -> String {
    let class = policy.classes.get(question.class as usize).map_or("?", |class| class.name.as_str());
    let mut text = format!("{} {} {class}", texts[question.source], texts[question.target]);
    if let Some(name) = &question.name {
        text.push_str(&format!(" {name:?}"));
    }
    if kind == Kind::Extended {
        text.push_str(&format!(" driver {:#x}", question.driver));
    }
    if kind == Kind::Validate {
        text.push_str(&format!(" by {}", texts[question.task]));
    }
    text
}

#[cfg(test)]
mod tests;
