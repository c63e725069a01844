use super::*;

const OPENAT: u32 = 257;
const CLOSE: u32 = 3;
const WAIT4: u32 = 61;
const EXIT: u32 = 231;
const SENDTO: u32 = 44;
/// Our command, its child, and two tasks that are not counted.
const ROOT: i32 = 100;
const CHILD: i32 = 101;
const IDLE: i32 = 0;
const OTHER: i32 = 50;

const OPEN: Hook = 1;
const FREE: Hook = 2;
const COMMIT: Hook = 3;

/// How often calls called hooks.
type Told = Vec<(Call, Hook, u64)>;

struct Story {
    attribution: Attribution,
    time: u64,
}

impl Story {
    fn of(extent: Extent) -> Self {
        Self { attribution: Attribution::new(extent, COMMIT), time: 0 }
    }

    /// A command that has begun.
    fn command() -> Self {
        Self::of(Extent::Command(ROOT)).at(ROOT, &[What::Enter(59), What::Exit(Some(59))])
    }

    fn on(mut self, task: i32, interrupt: bool, happens: &[What]) -> Self {
        for what in happens {
            self.time += 1;
            self.attribution.take(&Event { time: self.time, processor: 0, task, interrupt, what: *what });
        }
        self
    }

    fn at(self, task: i32, happens: &[What]) -> Self {
        self.on(task, false, happens)
    }

    /// How often each system call called each hook, and what was deferred.
    fn told(self) -> (Told, Vec<(Hook, u64)>) {
        let counts = self.attribution.counts();
        let calls = counts.calls.iter().flat_map(|(call, counts)| {
            counts.hooks.iter().map(|(hook, callers)| (*call, *hook, callers.values().sum()))
        });
        (calls.collect(), counts.deferred.into_iter().collect())
    }
}

fn ask(hook: Hook) -> What {
    What::Asked { hook, caller: 7 }
}

fn free(object: u64) -> What {
    What::Freed { hook: FREE, object, caller: 8 }
}

fn system(number: u32, hook: Hook, times: u64) -> (Call, Hook, u64) {
    (Call::System(number), hook, times)
}

#[test]
fn counts_for_the_call_that_is_open_and_for_the_one_that_has_just_ended() {
    let story = Story::command()
        .at(ROOT, &[What::Enter(OPENAT), ask(OPEN), ask(OPEN), What::Exit(Some(OPENAT))])
        .at(ROOT, &[What::Enter(CLOSE), What::Exit(Some(CLOSE)), free(0x10)]);
    assert_eq!(story.told(), (vec![system(CLOSE, FREE, 1), system(OPENAT, OPEN, 2)], vec![]));
}

#[test]
fn counts_nothing_before_the_command_is_executed() {
    let before = [What::Exit(Some(1)), ask(OPEN), What::Enter(OPENAT), ask(OPEN)];
    assert_eq!(Story::of(Extent::Command(ROOT)).at(ROOT, &before).told(), (vec![], vec![]));
}

#[test]
fn counts_what_a_page_fault_asks_apart() {
    let story = Story::command()
        .at(ROOT, &[What::PageFault, ask(OPEN), What::Enter(OPENAT), What::PageFault, ask(OPEN)])
        .at(ROOT, &[What::Exit(Some(OPENAT))]);
    assert_eq!(story.told(), (vec![system(OPENAT, OPEN, 1), (Call::PageFault, OPEN, 1)], vec![]));
}

#[test]
fn counts_for_a_new_task_the_call_that_made_it_until_it_calls() {
    let story = Story::command().at(CHILD, &[What::Exit(Some(56)), ask(OPEN), What::Enter(EXIT), ask(OPEN)]);
    assert_eq!(story.told().0, [system(56, OPEN, 1), system(EXIT, OPEN, 1)]);
}

#[test]
fn counts_an_objects_end_for_the_call_that_released_it() {
    let (credential, task) = (0x20, 0x30);
    let story = Story::command()
        .at(ROOT, &[What::Enter(WAIT4), What::Released { object: task }, What::Exit(Some(WAIT4))])
        .at(ROOT, &[What::Enter(OPENAT)])
        // A grace period later, in any task: the task's end releases its credential.
        .on(IDLE, true, &[free(task), What::Ends { object: task, releases: 2 }])
        .on(IDLE, true, &[What::Released { object: credential }])
        .on(ROOT, true, &[free(credential)]);
    assert_eq!(story.attribution.pending(), 0);
    assert_eq!(story.told(), (vec![system(WAIT4, FREE, 2)], vec![]));
}

#[test]
fn counts_no_release_of_others_for_an_end() {
    let story = Story::command()
        .at(ROOT, &[What::Enter(WAIT4), What::Released { object: 0x30 }])
        .on(IDLE, true, &[free(0x30), What::Ends { object: 0x30, releases: 1 }])
        .on(IDLE, true, &[What::Released { object: 0x40 }, What::Released { object: 0x50 }])
        .at(OTHER, &[What::Released { object: 0x60 }])
        .on(IDLE, true, &[free(0x40), free(0x50), free(0x60)]);
    assert_eq!(story.told(), (vec![system(WAIT4, FREE, 2)], vec![]));
}

#[test]
fn tells_as_deferred_what_has_no_cause() {
    let story = Story::command()
        .at(ROOT, &[What::Enter(OPENAT), What::Made { object: 0x70 }])
        .at(OTHER, &[What::Made { object: 0x80 }, free(0x70), free(0x80)])
        .on(ROOT, true, &[ask(OPEN)]);
    assert_eq!(story.told(), (vec![], vec![(OPEN, 1), (FREE, 1)]));
}

#[test]
fn counts_a_softirq_that_the_task_runs_itself() {
    let story = Story::command()
        .at(ROOT, &[What::Enter(SENDTO), What::Deferred])
        .on(ROOT, true, &[ask(OPEN)])
        .at(ROOT, &[ask(OPEN)])
        // Now a softirq on the way out of an interrupt.
        .on(ROOT, true, &[ask(OPEN)]);
    assert_eq!(story.told(), (vec![system(SENDTO, OPEN, 2)], vec![(OPEN, 1)]));
}

#[test]
fn counts_operations_between_their_marks_and_what_others_do_in_all() {
    let story = Story::of(Extent::Operations(ROOT))
        .at(ROOT, &[What::Enter(OPENAT), ask(OPEN), What::Exit(Some(OPENAT))])
        .at(CHILD, &[What::Enter(SENDTO), ask(OPEN)])
        .at(ROOT, &[What::Enter(BEGIN), What::Exit(None), What::Enter(OPENAT), ask(OPEN), What::Exit(Some(OPENAT))])
        // The other task's call began before.
        .at(CHILD, &[ask(OPEN)])
        .at(ROOT, &[What::Enter(END), What::Exit(None), What::Enter(OPENAT), ask(OPEN), What::Exit(Some(OPENAT))])
        .at(CHILD, &[ask(OPEN)])
        .at(ROOT, &[What::Enter(FINISHED), What::Exit(None)])
        .at(CHILD, &[ask(OPEN)]);
    assert_eq!(story.attribution.counts.calls[&Call::System(OPENAT)].calls, 1);
    assert_eq!(story.told(), (vec![system(SENDTO, OPEN, 2), system(OPENAT, OPEN, 1)], vec![]));
}

#[test]
fn waits_for_ends_of_what_operations_released_alone() {
    let story = Story::of(Extent::Operations(ROOT))
        .at(ROOT, &[What::Enter(CLOSE), What::Released { object: 1 }, What::Enter(BEGIN), What::Enter(CLOSE)])
        .at(ROOT, &[What::Released { object: 2 }]);
    assert_eq!(story.attribution.pending(), 1);
    let story = story.on(IDLE, true, &[free(1), free(2)]);
    assert_eq!(story.attribution.pending(), 0);
    assert_eq!(story.told().0, [system(CLOSE, FREE, 1)]);
}

#[test]
fn knows_no_task_by_a_number_that_is_free_again() {
    // A child that was waited for; the trace shows it in the middle of a call.
    let ended = || {
        Story::command()
            .at(CHILD, &[What::Exit(Some(56)), What::Enter(EXIT)])
            .at(ROOT, &[What::Enter(WAIT4), What::Released { object: 0x30 }])
            .on(IDLE, true, &[What::Gone { task: CHILD }, free(0x30)])
    };
    // Its number now belongs to a task that is not followed: objects that this one creates, releases and frees are not
    // counted.
    let other = [What::Made { object: 0x40 }, free(0x40), What::Released { object: 0x50 }];
    let story = ended().at(CHILD, &other).on(IDLE, true, &[free(0x50)]);
    assert_eq!(story.told(), (vec![system(WAIT4, FREE, 1)], vec![]));
    // Or to a new task that is followed: its first hooks belong to the call that created it.
    let story = ended().at(CHILD, &[What::Exit(Some(435)), ask(OPEN)]);
    assert_eq!(story.told(), (vec![system(WAIT4, FREE, 1), system(435, OPEN, 1)], vec![]));
}

#[test]
fn counts_for_execve_what_a_thread_asks_that_becomes_the_first() {
    const FUTEX: u32 = 202;
    let story = Story::command()
        // The first thread waits for another, which executes a program; the first is killed, and the other gets its number.
        .at(ROOT, &[What::Enter(FUTEX)])
        .at(CHILD, &[What::Exit(Some(56)), What::Enter(59), ask(OPEN)])
        .at(ROOT, &[What::Exit(Some(FUTEX)), ask(FREE)])
        .at(ROOT, &[ask(COMMIT), ask(OPEN), What::Exit(Some(59)), ask(OPEN)]);
    let told = vec![system(59, OPEN, 3), system(59, COMMIT, 1), system(FUTEX, FREE, 1)];
    assert_eq!(story.told(), (told, vec![]));
}
