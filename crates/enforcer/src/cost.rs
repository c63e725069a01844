//! What a decision costs on this machine, by the wall clock.
//!
//! `bpf/cost.bpf.c` calls the functions that hooks call, and the kernel runs it by BPF_PROG_RUN. It has maps of its own, with
//! a policy in them: what is in force is neither asked nor changed. Beside it, this process evaluates the same tables.

mod questions;

use std::{
    hint::black_box,
    io,
    os::fd::{AsFd, AsRawFd},
    time::{Duration, Instant},
};

use libbpf_rs::{ErrorKind, MapCore, MapHandle, Object, ObjectBuilder, ProgramInput, libbpf_sys};
use tollgate_abi::{
    enforcer::{TG_COST_QUESTIONS, tg_cost},
    tables::tg_question,
};
use tollgate_policy::built::Built;

use self::questions::{Asked, Maker};
use crate::{
    generation::{Generation, GenerationError},
    mapping::Mapping,
    programs::{self, ProgramsError, refused},
    state::State,
};

/// `bpf/cost.bpf.c`.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cost.bpf.o"));

/// The maps of `bpf/maps.h` that its programs use. The others are not made.
const MAPS: [&str; 8] =
    ["generation_template", "generations", "sids", "tasks", "credentials", "differences", "events", "checks"];

/// How many batches of questions are made at most, to find enough that are granted.
const BATCHES: usize = 10;

/// Why nothing was timed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// This process may not load BPF programs.
    #[error(
        "this process may not load BPF programs: run it as root, outside of containers and of a lockdown that refuse bpf(2); \
         or in a guest: `tollgate vm run --kernel 6.1 -- tollgate bench decisions`"
    )]
    NotPermitted,
    /// The kernel refused the programs.
    #[error("{0}\nthey need Linux 6.1 or later, with its types (CONFIG_DEBUG_INFO_BTF)")]
    Refused(ProgramsError),
    /// The policy cannot be put into a map.
    #[error(transparent)]
    Generation(#[from] GenerationError),
    /// A program could not be run, or its map not be used.
    #[error("cannot {what}: {cause}")]
    Kernel {
        /// The operation, as an infinitive.
        what: &'static str,
        /// What the kernel returned.
        cause: io::Error,
    },
    /// There is nothing to ask.
    #[error("the policy grants nothing that could be asked: name one with allow rules")]
    NothingGranted,
    /// Something else was timed than what should be.
    #[error("{program}: {granted} of {asked} questions were answered as they should be, so its time means nothing")]
    NotAsExpected {
        /// The program of `bpf/cost.bpf.c`.
        program: &'static str,
        /// How many questions it was asked.
        asked: usize,
        /// How many of them it answered so.
        granted: usize,
    },
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A BPF program that decides nothing: what the loop takes, which all in BPF have.
    Nothing,
    /// A hit in the caches of a hook of files: the task's SID, and what it may do with an inode.
    HitFile,
    /// A hit in the access vector cache.
    Hit,
    /// A miss: the access vector cache is asked, the tables answer, and the answer is cached.
    Miss,
    /// The evaluator of the tables alone, in BPF.
    Tables,
    /// A loop in user space that decides nothing.
    NothingInUserSpace,
    /// The same evaluator of the same tables in user space.
    TablesInUserSpace,
}

impl Part {
    /// All, in the order in which they are timed.
    pub const ALL: [Self; 7] = [
        Self::Nothing,
        Self::HitFile,
        Self::Hit,
        Self::Miss,
        Self::Tables,
        Self::NothingInUserSpace,
        Self::TablesInUserSpace,
    ];

    /// The part that decides nothing, and takes what this one takes beside its decision.
    #[must_use]
    pub fn floor(self) -> Self {
        match self {
            Self::NothingInUserSpace | Self::TablesInUserSpace => Self::NothingInUserSpace,
            _ => Self::Nothing,
        }
    }
}

/// The times of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// What was timed.
    pub part: Part,
    /// Nanoseconds per question, by run: all questions together.
    pub runs: Vec<f64>,
    /// Nanoseconds of each question alone, by run, with one reading of the clock.
    pub each: Vec<Vec<f64>>,
}

/// What a program has written to a question.
struct Answer {
    av: u32,
    took: u64,
}

/// The programs in the kernel, with a policy and questions.
#[derive(Debug)]
pub struct Bench {
    object: Object,
    state: State,
    cost: Mapping<tg_cost>,
    generation: Generation,
    questions: Vec<Asked>,
}

impl Bench {
    /// Loads the programs, and finds questions of a policy that it grants and that the caches can hold all at a time.
    pub fn load(built: Built) -> Result<Self, CostError> {
        let object = load_programs()?;
        let map = |name: &str| find_map(&object, name);
        let generation = Generation::prepare(1, built, &[], &map("generation_template")?)?;
        generation.put_in_force(&map("generations")?, None, |place| place.put())?;
        let state = State::new(map("bss")?).map_err(kernel("map the programs' variables"))?;
        let cost = Mapping::new(map("cost")?).map_err(kernel("map the questions"))?;
        state.initialise(0, 0);
        state.set_enforcing(true);
        let mut bench = Self { object, state, cost, generation, questions: Vec::new() };
        bench.find_granted()?;
        bench.keep_those_that_caches_hold()?;
        Ok(bench)
    }

    /// How many questions are asked.
    #[must_use]
    pub fn questions(&self) -> usize {
        self.questions.len()
    }

    /// Whether the kernel has compiled the programs to the processor's own instructions (JIT).
    pub fn is_compiled(&self) -> Result<bool, CostError> {
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut length = size_of_val(&info) as u32;
        let program = self.object.progs().next().ok_or(io::ErrorKind::NotFound).map_err(io::Error::from);
        let program = program.map_err(kernel("find a program"))?;
        let descriptor = program.as_fd().as_raw_fd();
        // SAFETY: the descriptor is open, and the kernel writes `length` bytes at most.
        match unsafe { libbpf_sys::bpf_prog_get_info_by_fd(descriptor, &raw mut info, &raw mut length) } {
            0 => Ok(info.jited_prog_len != 0),
            error => Err(kernel("ask about a program")(io::Error::from_raw_os_error(-error))),
        }
    }

    /// Times all parts, in turn, this many times.
    pub fn run(&mut self, runs: u32) -> Result<Vec<Times>, CostError> {
        let none = |part| Times { part, runs: Vec::new(), each: vec![Vec::new(); self.questions.len()] };
        let mut all = Part::ALL.map(none);
        for _ in 0..runs {
            for times in &mut all {
                times.runs.push(self.time(times.part, false)? / self.questions.len() as f64);
                self.time(times.part, true)?;
                for (runs, answer) in times.each.iter_mut().zip(self.answers()) {
                    runs.push(answer.took as f64);
                }
            }
        }
        Ok(all.into())
    }

    /// Times one part once, and returns the nanoseconds of all questions; those of each alone are in the questions.
    fn time(&mut self, part: Part, each: bool) -> Result<f64, CostError> {
        match part {
            Part::Nothing => self.ask_all("nothing", each),
            Part::HitFile => {
                self.ask_all("fill", false)?;
                self.ask_all("hit_file", each)
            }
            Part::Hit => {
                self.ask_all("ask", false)?;
                self.ask_all("ask", each)
            }
            Part::Miss => {
                self.state.forget();
                self.ask_all("ask", each)
            }
            Part::Tables => self.ask_all("evaluate", each),
            Part::NothingInUserSpace => Ok(self.in_user_space(each, |_, question| {
                black_box(question);
            })),
            Part::TablesInUserSpace => Ok(self.in_user_space(each, |generation, question| {
                black_box(generation.decide(question));
            })),
        }
    }

    /// Runs a program, which must grant all questions.
    fn ask_all(&self, program: &'static str, each: bool) -> Result<f64, CostError> {
        self.set_each(each);
        let granted = self.put(program)?;
        if granted != self.questions.len() {
            return Err(CostError::NotAsExpected { program, asked: self.questions.len(), granted });
        }
        // SAFETY: the member lies in the mapping, and the program has ended.
        Ok(unsafe { (&raw const (*self.cost.get()).took).read_volatile() } as f64)
    }

    /// Evaluates the tables in this process.
    fn in_user_space(&self, each: bool, work: impl Fn(&Generation, &tg_question)) -> f64 {
        let asked = self.cost.get();
        let since = Instant::now();
        for (place, question) in self.questions.iter().enumerate() {
            let began = each.then(Instant::now);
            work(&self.generation, &question.question);
            if let Some(began) = began {
                // SAFETY: there are as many places as questions, and no program runs.
                unsafe { (&raw mut (*asked).question[place].took).write_volatile(nanoseconds(began.elapsed())) };
            }
        }
        nanoseconds(since.elapsed()) as f64
    }

    /// Runs a program on all questions that are in the mapping; returns how many were granted.
    fn put(&self, program: &'static str) -> Result<usize, CostError> {
        let found = self.object.progs_mut().find(|own| own.name() == program);
        let found = found.ok_or(io::ErrorKind::NotFound).map_err(|kind| kernel("find a program")(kind.into()))?;
        let run = found.test_run(ProgramInput::default());
        run.map_err(|cause| kernel("run a program")(io::Error::other(cause)))?;
        // SAFETY: the member lies in the mapping, and the program has ended.
        Ok(unsafe { (&raw const (*self.cost.get()).granted).read_volatile() } as usize)
    }

    fn set_each(&self, each: bool) {
        // SAFETY: the member lies in the mapping, and no program runs.
        unsafe { (&raw mut (*self.cost.get()).each).write_volatile(each.into()) };
    }

    /// Writes the questions for programs; there are `TG_COST_QUESTIONS` at most.
    fn write(&self, questions: &[Asked]) {
        let cost = self.cost.get();
        for (place, question) in questions.iter().take(TG_COST_QUESTIONS as usize).enumerate() {
            // SAFETY: the place lies in the mapping, and no program runs.
            unsafe { (&raw mut (*cost).question[place]).write_volatile(question.raw()) };
        }
        // SAFETY: likewise.
        unsafe { (&raw mut (*cost).count).write_volatile(questions.len() as u32) };
    }

    /// What programs have written to each of the questions.
    fn answers(&self) -> Vec<Answer> {
        let cost = self.cost.get();
        // SAFETY: the members lie in the mapping, and no program runs.
        let count = unsafe { (&raw const (*cost).count).read_volatile() }.min(TG_COST_QUESTIONS) as usize;
        let answer = |place: usize| {
            // SAFETY: likewise.
            unsafe {
                let question = &raw const (*cost).question[place];
                Answer {
                    av: (&raw const (*question).av).read_volatile(),
                    took: (&raw const (*question).took).read_volatile(),
                }
            }
        };
        (0..count).map(answer).collect()
    }

    /// Finds questions that the policy grants something, and asks for one permission of each.
    fn find_granted(&mut self) -> Result<(), CostError> {
        let mut maker = Maker::new();
        for _ in 0..BATCHES {
            for some in maker.more(&mut self.generation).chunks(TG_COST_QUESTIONS as usize) {
                self.write(some);
                self.put("find_granted")?;
                let granted = some.iter().zip(self.answers()).filter(|(_, answer)| answer.av != 0);
                self.questions.extend(granted.map(|(asked, answer)| Asked { av: lowest(answer.av), ..*asked }));
            }
            if self.questions.len() >= TG_COST_QUESTIONS as usize {
                break;
            }
        }
        self.questions.truncate(TG_COST_QUESTIONS as usize);
        let Some(first) = self.questions.first() else { return Err(CostError::NothingGranted) };
        // SAFETY: the member lies in the mapping, and no program runs.
        unsafe { (&raw mut (*self.cost.get()).subject).write_volatile(first.source) };
        Ok(())
    }

    /// Leaves out questions that take one another's place in the access vector cache, until all are misses when they are
    /// asked first, and hits when they are asked again.
    fn keep_those_that_caches_hold(&mut self) -> Result<(), CostError> {
        self.set_each(false);
        self.state.set_statistics(true);
        loop {
            self.write(&self.questions);
            self.state.forget();
            let known = self.put("ask_cache")?;
            if known != 0 {
                let asked = self.questions.len();
                return Err(CostError::NotAsExpected { program: "ask_cache", asked, granted: asked - known });
            }
            let hits = self.put("ask_cache")?;
            if hits == self.questions.len() {
                break;
            }
            let mut answers = self.answers().into_iter();
            self.questions.retain(|_| answers.next().is_some_and(|answer| answer.took != 0));
        }
        self.state.set_statistics(false);
        if self.questions.is_empty() { Err(CostError::NothingGranted) } else { Ok(()) }
    }
}

/// The lowest of the permissions.
const fn lowest(av: u32) -> u32 {
    av & av.wrapping_neg()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn kernel(what: &'static str) -> impl FnOnce(io::Error) -> CostError {
    move |cause| CostError::Kernel { what, cause }
}

fn load_programs() -> Result<Object, CostError> {
    let open = || ObjectBuilder::default().name("tollgate")?.open_memory(OBJECT);
    let mut object = programs::listen("read the programs", open).map_err(CostError::Refused)?;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        // The name of a section of variables has a dot.
        map.set_autocreate(name.contains('.') || MAPS.contains(&&*name))
            .map_err(refused("leave a map out"))
            .map_err(CostError::Refused)?;
    }
    programs::listen("load the programs", || object.load()).map_err(|error| match &error {
        ProgramsError::Refused { cause, .. } if cause.kind() == ErrorKind::PermissionDenied => CostError::NotPermitted,
        _ => CostError::Refused(error),
    })
}

fn find_map(object: &Object, name: &str) -> Result<MapHandle, CostError> {
    let found = object.maps().find(|map| programs::map_name(&map.name().to_string_lossy()) == name);
    let found = found.ok_or_else(|| kernel("find a map")(io::ErrorKind::NotFound.into()))?;
    MapHandle::try_from(&found).map_err(refused("open a map")).map_err(CostError::Refused)
}
