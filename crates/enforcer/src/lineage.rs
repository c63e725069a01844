//! Finds the origin of tasks that were made while hooks did not run. A child that no hook has seen has no label, and
//! counts as the machine's.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    io::{self, Read},
    num::NonZeroU32,
    ops::RangeInclusive,
    os::fd::AsFd,
    path::Path,
};

use libbpf_rs::{Program, libbpf_sys};
use tollgate_abi::enforcer::{TG_SID_MACHINE, tg_lineage, tg_thread};

use crate::{
    contexts::Sid,
    iterator::{self, records},
    programs::{Pins, ProgramsError, THREADS},
};

/// The iterator over all tasks in `bpf/programs/lineage.h`.
const ITERATOR: &str = "lineage";
/// The iterator that labels tasks.
const LABELS: &str = "relabel_slipped";

/// The origin of a task without a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It comes from tasks with this label.
    Of(Sid),
    /// It comes from tasks of the machine.
    Machine,
    /// It is not known, because the task that made it is gone.
    Unknown,
}

/// All tasks at one moment.
#[derive(Debug)]
pub struct Tasks {
    all: Vec<tg_lineage>,
    /// Indices by task number.
    places: HashMap<u32, usize>,
}

impl Tasks {
    /// Reads all tasks from the kernel.
    pub fn look(pins: &Pins) -> Result<Self, ProgramsError> {
        Ok(Self::of(records(&read(pins, ITERATOR)?)))
    }

    fn of(all: Vec<tg_lineage>) -> Self {
        let places = all.iter().enumerate().map(|(place, task)| (task.task, place)).collect();
        Self { all, places }
    }

    /// Tasks without a label that were made in a window, and the origin of each. If hooks were `off`, the label of a
    /// plain task may be that of an earlier one.
    pub fn unlabelled(&self, window: &RangeInclusive<u64>, off: bool) -> Vec<(&tg_lineage, Origin)> {
        let mut search = Search { tasks: self, window, off, known: HashMap::new() };
        let suspects = self.all.iter().filter(|task| search.is_suspect(task)).collect::<Vec<_>>();
        suspects.into_iter().map(|task| (task, search.origin(task))).collect()
    }

    /// All tasks.
    pub fn all(&self) -> impl Iterator<Item = &tg_lineage> {
        self.all.iter()
    }

    fn find(&self, number: u32) -> Option<&tg_lineage> {
        self.places.get(&number).map(|place| &self.all[*place])
    }
}

/// Threads whose storage may be lost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Threads {
    /// All threads of the process with this number.
    Of(NonZeroU32),
    /// The one thread with this number.
    One(NonZeroU32),
}

/// These threads, each with its SID even if it has lost its storage by a fork that failed.
pub(crate) fn threads(pins: &Pins, which: Threads) -> Result<Vec<tg_thread>, ProgramsError> {
    let path = pins.inquiry(THREADS);
    let threads = iterate(&path, which).map_err(|cause| ProgramsError::Pins { path, cause })?;
    Ok(records(&threads))
}

/// Runs a pinned iterator over some tasks.
fn iterate(program: &Path, threads: Threads) -> io::Result<Vec<u8>> {
    let program = Program::fd_from_pinned_path(program).map_err(io::Error::other)?;
    let mut which = libbpf_sys::bpf_iter_link_info::default();
    match threads {
        Threads::Of(process) => which.task.pid = process.get(),
        Threads::One(thread) => which.task.tid = thread.get(),
    }
    iterator::run(program.as_fd(), which)
}

/// Labels the tasks in the map `slipped`, and assigns the SIDs of credentials again.
pub(crate) fn relabel(pins: &Pins) -> Result<(), ProgramsError> {
    read(pins, LABELS).map(drop)
}

fn read(pins: &Pins, iterator: &str) -> Result<Vec<u8>, ProgramsError> {
    let path = pins.inquiry(iterator);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|mut iterator| iterator.read_to_end(&mut bytes));
    read.map_err(|cause: io::Error| ProgramsError::Pins { path, cause })?;
    Ok(bytes)
}

fn label(task: &tg_lineage) -> Option<Sid> {
    Some(task.sid).filter(|sid| *sid != 0 && *sid != TG_SID_MACHINE)
}

/// A search for the origins of tasks.
struct Search<'t> {
    tasks: &'t Tasks,
    window: &'t RangeInclusive<u64>,
    off: bool,
    known: HashMap<u32, Origin>,
}

impl Search<'_> {
    /// Whether a task may have lost a label, or have that of an earlier task. A task that is ending executes nothing any
    /// more.
    fn is_suspect(&self, task: &tg_lineage) -> bool {
        (label(task).is_none() || (self.off && task.plain != 0))
            && self.window.contains(&task.began)
            && task.program != 0
    }

    fn origin(&mut self, task: &tg_lineage) -> Origin {
        if !self.is_suspect(task) {
            return label(task).map_or(Origin::Machine, Origin::Of);
        }
        if let Some(known) = self.known.get(&task.task) {
            return *known;
        }
        // If numbers lead back to where the search began, nothing is known.
        self.known.insert(task.task, Origin::Unknown);
        let found = self.by_maker(task).or_else(|| self.by_company(task)).unwrap_or(Origin::Unknown);
        self.known.insert(task.task, found);
        found
    }

    /// By the task's own process, and by the task that made that.
    fn by_maker(&mut self, task: &tg_lineage) -> Option<Origin> {
        let tasks = self.tasks;
        if task.task != task.process {
            return tasks.find(task.process).map(|leader| self.origin(leader));
        }
        let parent = tasks.find(task.parent)?;
        let origin = self.origin(parent);
        // A process that adopts orphans may not have made it. What it has executed shows that.
        let own = parent.adopts == 0 || origin != Origin::Machine || task.of_parent == parent.execs;
        own.then_some(origin).filter(|origin| *origin != Origin::Unknown)
    }

    /// By tasks that existed before and share something with it that only children share.
    fn by_company(&self, task: &tg_lineage) -> Option<Origin> {
        let same: [&dyn Fn(&tg_lineage) -> bool; 4] = [
            &|other| other.program == task.program,
            &|other| task.cgroup != 0 && other.cgroup == task.cgroup,
            &|other| task.session != 0 && other.session == task.session,
            &|other| task.user != 0 && other.user == task.user,
        ];
        same.into_iter().find_map(|same| self.of_all(same))
    }

    /// The label of all tasks that existed before the window and share that; `None`: they differ, or there are none.
    fn of_all(&self, same: &dyn Fn(&tg_lineage) -> bool) -> Option<Origin> {
        let before = self.tasks.all.iter().filter(|other| other.program != 0 && other.began < *self.window.start());
        let labels: BTreeSet<Option<Sid>> = before.filter(|other| same(other)).map(label).collect();
        let mut labels = labels.into_iter();
        let first = labels.next().filter(|_| labels.next().is_none())?;
        Some(first.map_or(Origin::Machine, Origin::Of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: Sid = 40;
    const OTHER: Sid = 41;

    /// A process made at that time by another, which executes the program of its number.
    fn task(task: u32, parent: u32, began: u64) -> tg_lineage {
        tg_lineage { task, process: task, parent, began, program: task.into(), ..tg_lineage::default() }
    }

    /// The machine's first process, a worker and a shell of the machine's, all from before.
    fn machine() -> Vec<tg_lineage> {
        let init = tg_lineage { adopts: 1, execs: 2, session: 1, ..task(1, 0, 1) };
        let worker = tg_lineage { sid: WORKER, execs: 5, session: 10, ..task(10, 1, 2) };
        let shell = tg_lineage { execs: 3, session: 20, ..task(20, 1, 3) };
        vec![init, worker, shell]
    }

    fn origins(more: &[tg_lineage]) -> Vec<(u32, Origin)> {
        let tasks = Tasks::of([machine(), more.to_vec()].concat());
        let found = tasks.unlabelled(&(100..=200), true);
        found.into_iter().map(|(task, origin)| (task.task, origin)).collect()
    }

    #[test]
    fn knows_children_by_who_made_them() {
        let thread = tg_lineage { process: 30, ..task(31, 10, 111) };
        let children = [task(30, 10, 110), thread, task(32, 30, 112), task(40, 20, 113), task(41, 40, 114)];
        let (worker, machine) = (Origin::Of(WORKER), Origin::Machine);
        assert_eq!(origins(&children), [(30, worker), (31, worker), (32, worker), (40, machine), (41, machine)]);
    }

    #[test]
    fn believes_no_label_of_a_plain_task_that_no_hook_has_seen() {
        let plain = |number, parent, began| tg_lineage { sid: OTHER, plain: 1, ..task(number, parent, began) };
        let seen = plain(30, 10, 99);
        let found = origins(&[seen, plain(31, 10, 110), plain(32, 20, 111), task(33, 30, 112)]);
        assert_eq!(found, [(31, Origin::Of(WORKER)), (32, Origin::Machine), (33, Origin::Of(OTHER))]);
    }

    #[test]
    fn leaves_alone_who_was_there_before_or_came_after() {
        assert_eq!(origins(&[task(30, 10, 99), task(31, 10, 201)]), []);
        // Nor one that ends.
        assert_eq!(origins(&[tg_lineage { program: 0, ..task(32, 10, 150) }]), []);
    }

    #[test]
    fn knows_orphans_by_what_they_execute() {
        let orphan = |number, program| tg_lineage { program, of_parent: 5, session: number, ..task(number, 1, 150) };
        assert_eq!(origins(&[orphan(30, 10)]), [(30, Origin::Of(WORKER))]);
        assert_eq!(origins(&[orphan(30, 20)]), [(30, Origin::Machine)]);
        assert_eq!(origins(&[orphan(30, 99)]), [(30, Origin::Unknown)]);
        // What the first process has made itself has not executed more than that.
        assert_eq!(origins(&[tg_lineage { of_parent: 2, ..orphan(30, 99) }]), [(30, Origin::Machine)]);
    }

    #[test]
    fn knows_orphans_by_their_company() {
        let orphan = tg_lineage { program: 99, of_parent: 5, ..task(30, 1, 150) };
        assert_eq!(origins(&[tg_lineage { session: 10, ..orphan }]), [(30, Origin::Of(WORKER))]);
        assert_eq!(origins(&[tg_lineage { session: 20, ..orphan }]), [(30, Origin::Machine)]);
        let (one, two) = (tg_lineage { cgroup: 7, sid: OTHER, ..task(50, 1, 5) }, tg_lineage { cgroup: 7, ..orphan });
        assert_eq!(origins(&[one, two]), [(30, Origin::Of(OTHER))]);
        // In company of both kinds nobody knows.
        let mixed = tg_lineage { cgroup: 7, ..task(51, 1, 6) };
        assert_eq!(origins(&[one, mixed, two]), [(30, Origin::Unknown)]);
        let (one, two) = (tg_lineage { user: 33, sid: OTHER, ..task(50, 1, 5) }, tg_lineage { user: 33, ..orphan });
        assert_eq!(origins(&[one, two]), [(30, Origin::Of(OTHER))]);
    }
}
