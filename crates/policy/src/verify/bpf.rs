//! The evaluator as BPF in the running kernel.

use std::{io, mem::offset_of, time::Duration};

use libbpf_rs::{Map, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use tollgate_abi::tables::{
    TG_ASK_CHANGE, TG_ASK_MEMBER, TG_ASK_TRANSITION, TG_CAPACITY, tg_context, tg_decision, tg_extended, tg_label,
    tg_name, tg_question,
};

use super::{
    peers::{Answer, Difference, Peer, PeerError, Subject},
    questions::{Kind, Question},
};
use crate::{
    context, decide, libbpf,
    model::{Context, Policy, Range},
};

/// The compiled `bpf/decide.bpf.c`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decide.bpf.o"));
/// `JOBS` of `bpf/jobs.h`.
const JOBS: usize = 1024;
// `enum job_kind`
const JOB_ACCESS: u32 = 0;
const JOB_EXTENDED: u32 = 1;
const JOB_LABEL: u32 = 2;
const JOB_VALIDATE: u32 = 3;

/// `struct job` of `bpf/jobs.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Job {
    kind: u32,
    driver: u32,
    result: u32,
    reserved: u32,
    question: tg_question,
    name: tg_name,
    reserved_too: u32,
    decision: tg_decision,
    label: tg_label,
    extended: tg_extended,
}

// There is no padding between the members, because a job is read and written as bytes.
const _: () = assert!(offset_of!(Job, decision) == 16 + size_of::<tg_question>() + size_of::<tg_name>() + 4);
const _: () = assert!(offset_of!(Job, label) == offset_of!(Job, decision) + size_of::<tg_decision>());
const _: () = assert!(size_of::<Job>() == offset_of!(Job, extended) + size_of::<tg_extended>());

impl Job {
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: a job is made of integers without gaps, each byte of which may be read.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut job = Self::default();
        // SAFETY: as above, and any bytes are integers.
        let own = unsafe { std::slice::from_raw_parts_mut((&raw mut job).cast::<u8>(), size_of::<Self>()) };
        own.iter_mut().zip(bytes).for_each(|(own, byte)| *own = *byte);
        job
    }
}

/// The evaluator, loaded as a BPF program.
#[derive(Debug)]
pub struct Bpf<'a> {
    policy: &'a Policy,
    object: Object,
    contexts: Vec<tg_context>,
}

impl<'a> Bpf<'a> {
    /// Loads the program with the tables of `policy`.
    pub fn new(policy: &'a Policy, tables: &[u8]) -> Result<Self, PeerError> {
        let load = || ObjectBuilder::default().open_memory(OBJECT).and_then(libbpf_rs::OpenObject::load);
        let (object, said) = libbpf::listen(load);
        let object = object.map_err(|cause| match cause.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => PeerError::NotPermitted,
            _ => PeerError::Refused { said, cause },
        })?;
        let bpf = Self { policy, object, contexts: Vec::new() };
        let mut whole = tables.to_vec();
        whole.resize(TG_CAPACITY as usize, 0);
        bpf.put("tables", 0, &whole)?;
        Ok(bpf)
    }

    fn map(&self, name: &str) -> Result<Map<'_>, PeerError> {
        let missing = || libbpf_rs::Error::from(io::Error::from(io::ErrorKind::NotFound));
        self.object
            .maps()
            .find(|map| map.name() == name)
            .ok_or_else(|| PeerError::Bpf { what: "find a map of the evaluator", cause: missing() })
    }

    fn put(&self, map: &str, index: u32, value: &[u8]) -> Result<(), PeerError> {
        let put = self.map(map)?.update(&index.to_ne_bytes(), value, MapFlags::ANY);
        put.map_err(|cause| PeerError::Bpf { what: "fill a map of the evaluator", cause })
    }

    /// Lets the program do the first `count` jobs. Returns how long it took.
    fn work(&self, count: usize) -> Result<Duration, PeerError> {
        // struct order
        let mut order = [0; 16];
        order[..8].copy_from_slice(&(count as u64).to_ne_bytes());
        let input = ProgramInput { context_in: Some(&mut order), ..ProgramInput::default() };
        if let Some(program) = self.object.progs_mut().next() {
            program.test_run(input).map_err(|cause| PeerError::Bpf { what: "run the evaluator", cause })?;
        }
        let (_, nanoseconds) = order.split_at(8);
        Ok(Duration::from_nanos(nanoseconds.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))))
    }

    fn job(&self, kind: Kind, question: &Question) -> Job {
        let (job, ask) = match kind {
            Kind::Access => (JOB_ACCESS, 0),
            Kind::Extended => (JOB_EXTENDED, 0),
            Kind::Transition => (JOB_LABEL, TG_ASK_TRANSITION),
            Kind::Member => (JOB_LABEL, TG_ASK_MEMBER),
            Kind::Change => (JOB_LABEL, TG_ASK_CHANGE),
            Kind::Validate => (JOB_VALIDATE, 0),
        };
        let name = question.name.as_deref().filter(|_| kind == Kind::Transition).and_then(decide::name);
        Job {
            kind: job,
            driver: question.driver.into(),
            question: tg_question {
                source: self.contexts[question.source],
                target: self.contexts[question.target],
                task: self.contexts[question.task],
                class: question.class,
                ask,
            },
            name: name.unwrap_or_default(),
            ..Job::default()
        }
    }

    fn answer(&self, kind: Kind, job: &Job) -> Answer {
        match kind {
            Kind::Access => Answer::Access {
                allowed: job.decision.allowed,
                auditallow: job.decision.auditallow,
                auditdeny: job.decision.auditdeny,
                permissive: Some(job.decision.permissive != 0),
            },
            Kind::Extended => Answer::Extended((job.result != 0).then_some(Box::new(job.extended))),
            Kind::Validate => Answer::Validated(job.result != 0),
            Kind::Transition | Kind::Member | Kind::Change => {
                let [low, high] = job.label.level.each_ref().map(decide::from_raw);
                let tg_context { user, role, type_, .. } = job.label.context;
                let context = Context { user: user.into(), role: role.into(), type_, range: Range { low, high } };
                Answer::Label((job.result != 0).then(|| context::text(self.policy, &context).into()))
            }
        }
    }
}

impl Peer for Bpf<'_> {
    fn begin(&mut self, subject: &Subject<'_>) -> Result<(), PeerError> {
        subject.contexts.clone_into(&mut self.contexts);
        self.put("levels", 0, subject.levels.as_bytes())
    }

    fn answers(&mut self, kind: Kind, questions: &[Question]) -> Result<(Vec<Answer>, Duration), PeerError> {
        let (mut answers, mut took) = (Vec::with_capacity(questions.len()), Duration::ZERO);
        let jobs = self.map("jobs")?;
        for some in questions.chunks(JOBS) {
            for (question, index) in some.iter().zip(0u32..) {
                self.put("jobs", index, self.job(kind, question).as_bytes())?;
            }
            took += self.work(some.len())?;
            for (_, index) in some.iter().zip(0u32..) {
                let done = jobs.lookup(&index.to_ne_bytes(), MapFlags::ANY);
                let done = done.map_err(|cause| PeerError::Bpf { what: "read a map of the evaluator", cause })?;
                answers.push(self.answer(kind, &Job::from_bytes(&done.unwrap_or_default())));
            }
        }
        Ok((answers, took))
    }

    fn knows(&self, _: Kind) -> bool {
        true
    }

    fn difference(&self, _: &Policy, _: Kind, _: &[Context], _: &Question) -> Option<Difference> {
        None
    }

    fn makes_invalid_contexts(&self) -> bool {
        false
    }
}
