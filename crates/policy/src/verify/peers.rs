//! The peers with which decisions are compared, and where they are known to decide otherwise.

use std::{
    fmt,
    time::{Duration, Instant},
};

use tollgate_abi::tables::{tg_context, tg_extended};

use super::questions::{Kind, Question};
use crate::{
    decide::Levels,
    kernel::{self, KernelError},
    model::{Context, Policy},
    oracle::{Oracle, OracleError},
    server::Ask,
    tables::SOCKETS,
};

/// A peer's answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The access vectors of a source, a target and a class.
    Access {
        /// Permissions that are granted.
        allowed: u32,
        /// Permissions whose grants are audited.
        auditallow: u32,
        /// Permissions whose denials are audited.
        auditdeny: u32,
        /// Whether the source is permissive; `None`: not known.
        permissive: Option<bool>,
    },
    /// A context; `None`: it would not be valid.
    Label(Option<Label>),
    /// Whether an object may be relabelled.
    Validated(bool),
    /// The functions of an ioctl driver; `None`: no rule names any.
    Extended(Option<Box<tg_extended>>),
}

/// A context in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The context as text.
    pub text: String,
    /// The peer's own number for it, if it has one.
    pub sid: Option<u32>,
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self { text, sid: None }
    }
}

impl Answer {
    /// Whether it grants something, gives a context or permits.
    pub(super) fn is_granted(&self) -> bool {
        match self {
            Self::Access { allowed, .. } => *allowed != 0,
            Self::Label(label) => label.is_some(),
            Self::Validated(permitted) => *permitted,
            Self::Extended(extended) => extended.is_some(),
        }
    }
}

/// 256 bits as hexadecimal digits, the highest first.
fn digits(bits: [u64; 4]) -> String {
    bits.iter().rev().map(|word| format!("{word:016x}")).collect()
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access { allowed, auditallow, auditdeny, permissive } => {
                write!(f, "allowed {allowed:#x}, auditallow {auditallow:#x}, auditdeny {auditdeny:#x}")?;
                if *permissive == Some(true) { f.write_str(", permissive") } else { Ok(()) }
            }
            Self::Label(Some(label)) => f.write_str(&label.text),
            Self::Label(None) => f.write_str("no valid context"),
            Self::Validated(permitted) => f.write_str(if *permitted { "permitted" } else { "not permitted" }),
            Self::Extended(None) => f.write_str("no extended permissions"),
            Self::Extended(Some(extended)) => {
                let tg_extended { allow, auditallow, dontaudit, .. } = **extended;
                let [allow, auditallow, dontaudit] = [allow, auditallow, dontaudit].map(digits);
                write!(f, "allow {allow}, auditallow {auditallow}, dontaudit {dontaudit}")
            }
        }
    }
}

/// Where peers are known to decide otherwise than the tables: libsepol 3.4 differs from the kernel, which is right and
/// which the tables follow, and newer kernels differ from older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// libsepol: a rule names the new object's file name.
    Name,
    /// libsepol: the class is a socket.
    Socket,
    /// Newer kernels: they no longer have this class of sockets.
    GoneSocket,
}

/// Socket classes of the policy that newer kernels no longer have. DCCP was removed in Linux 6.16.
const REMOVED_CLASSES: &[&str] = &["dccp_socket"];

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "libsepol's transitions do not look at file names (the kernel's filename_compute_type)",
            Self::Socket => {
                "libsepol labels sockets like files, the kernel like their creator (security_is_socket_class)"
            }
            Self::GoneSocket => "from Linux 6.16 on there is no dccp_socket, and SELinux does not take it for a socket",
        })
    }
}

/// Why a peer cannot answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// libsepol does not accept the policy.
    #[error(transparent)]
    Load(#[from] OracleError),
    /// A context that is valid in the tables is not valid for the peer.
    #[error("{peer} does not take the context `{context}`, which is valid by the decision tables")]
    #[expect(missing_docs, reason = "the names say it")]
    Context {
        /// Name of the peer.
        peer: &'static str,
        context: String,
    },
    /// The kernel cannot be asked.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// This process may not load BPF programs.
    #[error("may not load the evaluator in BPF: run it as root, outside of containers that refuse bpf(2)")]
    NotPermitted,
    /// The kernel refused the evaluator.
    #[error("the kernel refused the evaluator in BPF, which takes Linux 5.17 or later: {cause}\n{said}")]
    Refused {
        /// libbpf's messages, with the verifier's log.
        said: String,
        /// What the kernel returned.
        cause: libbpf_rs::Error,
    },
    /// The evaluator cannot be run in BPF.
    #[error("cannot {what} in BPF: {cause}")]
    Bpf {
        /// What was attempted.
        what: &'static str,
        /// What the kernel returned.
        cause: libbpf_rs::Error,
    },
}

/// The contexts of a batch of questions.
pub struct Subject<'s> {
    /// The contexts, with identifiers for their levels.
    pub contexts: &'s [tg_context],
    /// The levels of these identifiers.
    pub levels: &'s Levels,
    /// The contexts as text.
    pub texts: &'s [String],
}

/// Another implementation of SELinux's decisions.
pub trait Peer {
    /// Prepares for questions about these contexts.
    fn begin(&mut self, subject: &Subject<'_>) -> Result<(), PeerError>;

    /// Answers questions about these contexts. Also returns how long that took.
    fn answers(&mut self, kind: Kind, questions: &[Question]) -> Result<(Vec<Answer>, Duration), PeerError>;

    /// Whether it can answer questions of that kind.
    fn knows(&self, kind: Kind) -> bool;

    /// Whether it is known to give another answer to a question.
    fn difference(&self, policy: &Policy, kind: Kind, contexts: &[Context], question: &Question) -> Option<Difference>;

    /// Whether it gives contexts that are not valid.
    fn makes_invalid_contexts(&self) -> bool;

    /// Whether `text` means the same context for it as `label`, even if that is written differently.
    fn means(&mut self, _text: &str, _label: &Label) -> bool {
        false
    }
}

/// Answers one question after the other.
fn timed(
    questions: &[Question],
    answer: impl FnMut(&Question) -> Result<Answer, PeerError>,
) -> Result<(Vec<Answer>, Duration), PeerError> {
    let since = Instant::now();
    let answers = questions.iter().map(answer).collect::<Result<_, _>>()?;
    Ok((answers, since.elapsed()))
}

/// libsepol's own evaluator as a peer.
#[derive(Debug)]
pub struct Libsepol<'a> {
    image: &'a [u8],
    oracle: Option<Oracle>,
    begun: usize,
    pub(super) sids: Vec<u32>,
}

/// How many batches are asked before the policy is loaded again: libsepol searches SIDs one by one, and keeps them all.
const BATCHES_PER_LOAD: usize = 4;

impl<'a> Libsepol<'a> {
    /// libsepol with a binary policy, which must be one that [`crate::sepol`] made or read.
    pub fn new(image: &'a [u8]) -> Self {
        Self { image, oracle: None, begun: 0, sids: Vec::new() }
    }

    fn oracle(&mut self) -> Result<&mut Oracle, OracleError> {
        match &mut self.oracle {
            Some(oracle) => Ok(oracle),
            none => Ok(none.insert(Oracle::load(self.image)?)),
        }
    }

    fn answer(&mut self, kind: Kind, question: &Question) -> Result<Answer, PeerError> {
        let sid = |place: usize| self.sids[place];
        let (source, target, task) = (sid(question.source), sid(question.target), sid(question.task));
        let class = question.class;
        let oracle = self.oracle()?;
        let label = match kind {
            Kind::Access => {
                let crate::oracle::Access { allowed, auditallow, auditdeny } = oracle.access(source, target, class);
                return Ok(Answer::Access { allowed, auditallow, auditdeny, permissive: None });
            }
            Kind::Validate => return Ok(Answer::Validated(oracle.validate(source, target, task, class))),
            Kind::Extended => return Ok(Answer::Extended(None)),
            Kind::Transition => oracle.transition(source, target, class),
            Kind::Member => oracle.member(source, target, class),
            Kind::Change => oracle.change(source, target, class),
        };
        let label_of = |sid| Some(Label { text: oracle.context(sid)?, sid: Some(sid) });
        Ok(Answer::Label(label.and_then(label_of)))
    }
}

impl Peer for Libsepol<'_> {
    fn begin(&mut self, subject: &Subject<'_>) -> Result<(), PeerError> {
        if self.begun.is_multiple_of(BATCHES_PER_LOAD) {
            // It is dropped before the next one is loaded, because there is only one at a time.
            self.oracle = None;
        }
        self.begun += 1;
        let oracle = self.oracle()?;
        let sid = |context: &String| {
            oracle.sid(context).ok_or_else(|| PeerError::Context { peer: "libsepol", context: context.clone() })
        };
        self.sids = subject.texts.iter().map(sid).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn answers(&mut self, kind: Kind, questions: &[Question]) -> Result<(Vec<Answer>, Duration), PeerError> {
        timed(questions, |question| self.answer(kind, question))
    }

    fn knows(&self, kind: Kind) -> bool {
        kind != Kind::Extended
    }

    fn difference(&self, policy: &Policy, kind: Kind, contexts: &[Context], question: &Question) -> Option<Difference> {
        let (source, target) = (contexts[question.source].type_, contexts[question.target].type_);
        match kind {
            Kind::Access | Kind::Extended | Kind::Validate => None,
            Kind::Transition | Kind::Member | Kind::Change => {
                let class = policy.classes.get(question.class as usize).map_or("", |class| class.name.as_str());
                if SOCKETS.contains(&class) {
                    return Some(Difference::Socket);
                }
                let name = question.name.as_deref().filter(|_| kind == Kind::Transition)?;
                let named = policy.name_transitions.iter().any(|rule| {
                    rule.name == name
                        && rule.class == question.class
                        && rule.target == target
                        && rule.sources.has(source)
                });
                named.then_some(Difference::Name)
            }
        }
    }

    fn makes_invalid_contexts(&self) -> bool {
        false
    }

    /// libsepol 3.4 writes `c574,c575,c1020` as `c574,c959,c1020`: if a run of categories ends with a word of the bit
    /// map and the next words are empty, it uses the bit before the next word that is not empty (`mls_sid_to_context`).
    fn means(&mut self, text: &str, label: &Label) -> bool {
        self.oracle().is_ok_and(|oracle| label.sid.is_some() && oracle.sid(text) == label.sid)
    }
}

/// The running kernel.
#[derive(Debug)]
pub struct KernelPeer {
    kernel: kernel::Kernel,
    contexts: Vec<String>,
}

impl KernelPeer {
    /// The kernel whose SELinux this is.
    pub fn new(kernel: kernel::Kernel) -> Self {
        Self { kernel, contexts: Vec::new() }
    }

    fn answer(&self, kind: Kind, question: &Question) -> Result<Answer, PeerError> {
        let (source, target) = (&self.contexts[question.source], &self.contexts[question.target]);
        let ask = match kind {
            Kind::Access => {
                let access = self.kernel.access(source, target, question.class)?;
                return Ok(Answer::Access {
                    allowed: access.allowed,
                    auditallow: access.auditallow,
                    auditdeny: access.auditdeny,
                    permissive: Some(access.permissive),
                });
            }
            Kind::Validate => {
                let task = &self.contexts[question.task];
                return Ok(Answer::Validated(self.kernel.validate(source, target, task, question.class)?));
            }
            Kind::Extended => return Ok(Answer::Extended(None)),
            Kind::Transition => Ask::Transition,
            Kind::Member => Ask::Member,
            Kind::Change => Ask::Change,
        };
        let label = self.kernel.label(ask, source, target, question.class, question.name.as_deref())?;
        Ok(Answer::Label(label.map(Label::from)))
    }
}

impl Peer for KernelPeer {
    fn begin(&mut self, subject: &Subject<'_>) -> Result<(), PeerError> {
        for context in subject.texts {
            if !self.kernel.is_valid(context)? {
                return Err(PeerError::Context { peer: "the kernel", context: context.clone() });
            }
        }
        subject.texts.clone_into(&mut self.contexts);
        Ok(())
    }

    fn answers(&mut self, kind: Kind, questions: &[Question]) -> Result<(Vec<Answer>, Duration), PeerError> {
        timed(questions, |question| self.answer(kind, question))
    }

    fn knows(&self, kind: Kind) -> bool {
        kind != Kind::Extended
    }

    fn difference(&self, policy: &Policy, kind: Kind, _: &[Context], question: &Question) -> Option<Difference> {
        let labels = matches!(kind, Kind::Transition | Kind::Member | Kind::Change);
        let class = policy.classes.get(question.class as usize)?;
        (labels && REMOVED_CLASSES.contains(&class.name.as_str())).then_some(Difference::GoneSocket)
    }

    fn makes_invalid_contexts(&self) -> bool {
        // compute_sid_handle_invalid_context
        !self.kernel.is_enforcing()
    }
}
