//! The programs' global variables (`struct tg_state`), which the daemon has mapped.

use std::{
    io,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use nix::unistd::gettid;
use tollgate_abi::enforcer::{
    TG_ACCESS_ROWS, TG_ACCESS_SID, TG_ACCESS_WAYS, TG_AVC_ENTRIES, TG_CHANGED, TG_FAILED_SHADOW, TG_FAILURES, TG_LIVE,
    TG_LIVE_COMING, TG_MANAGERS, TG_TASK_ENTRIES, TG_TRANSITION_ENTRIES, tg_btrfs, tg_failure, tg_state, tg_statistics,
    tg_unlabelled,
};
use tollgate_client::descriptors::Descriptors;

use crate::{contexts::Sid, mapping::Mapping, shares::Shares};

/// `TG_ANY_WAY` entries begin with this count.
const FIRST_ANY: u64 = 0x8001 << TG_ACCESS_SID;
/// After so many changes an old entry could be taken for a new one: there are none any more.
const LAST_ANY: u64 = 0xffff << TG_ACCESS_SID;
/// One change.
const NEXT_ANY: u64 = 1 << TG_ACCESS_SID;

/// The mapped globals.
#[derive(Debug)]
pub struct State(Arc<Mapping<tg_state>>);

macro_rules! word {
    ($state:expr, $($member:ident).+, $atomic:ident) => {{
        let pointer = $state.0.get();
        // SAFETY: the member lies in the mapping and is aligned; programs and daemon use it by single accesses only.
        unsafe { $atomic::from_ptr(&raw mut (*pointer).$($member).+) }
    }};
}

impl State {
    /// Maps the globals of the programs; `map` is the pinned `bss`.
    pub fn new(map: impl AsFd) -> io::Result<Self> {
        Mapping::new(map).map(|mapping| Self(mapping.into()))
    }

    /// Who holds what all need.
    #[must_use]
    pub fn shares(&self) -> Shares {
        Shares::new(Arc::clone(&self.0))
    }

    /// What the programs start with: nothing cached, no subject, permissive until someone says otherwise.
    pub fn initialise(&self, audit_limit: u32, last_sid: Sid) {
        word!(self, enforcing, AtomicU32).store(0, Ordering::SeqCst);
        word!(self, audit_limit, AtomicU32).store(audit_limit, Ordering::SeqCst);
        word!(self, last_sid, AtomicU32).store(last_sid, Ordering::SeqCst);
        word!(self, epoch, AtomicU64).store(1, Ordering::SeqCst);
        word!(self, any, AtomicU64).store(FIRST_ANY, Ordering::SeqCst);
    }

    /// Sets how many denials a second are told.
    pub fn set_audit_limit(&self, limit: u32) {
        word!(self, audit_limit, AtomicU32).store(limit, Ordering::SeqCst);
    }

    /// When hooks ran for the last time as the canary knows, and since when it was granted something; 0: never.
    #[must_use]
    pub fn canary(&self) -> (u64, u64) {
        let denied = word!(self, canary_denied, AtomicU64).load(Ordering::SeqCst);
        (denied, word!(self, canary_granted, AtomicU64).load(Ordering::SeqCst))
    }

    /// Notes when the canary was denied what must be denied, in nanoseconds since boot.
    pub fn set_canary_denied(&self, time: u64) {
        word!(self, canary_denied, AtomicU64).store(time, Ordering::SeqCst);
    }

    /// Notes that it was granted something; 0: what came of that is done.
    pub fn set_canary_granted(&self, time: u64) {
        word!(self, canary_granted, AtomicU64).store(time, Ordering::SeqCst);
    }

    /// Whether what is denied is denied.
    #[must_use]
    pub fn enforcing(&self) -> bool {
        word!(self, enforcing, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Sets enforcing or permissive mode. What was granted because of the mode is forgotten.
    pub fn set_enforcing(&self, enforcing: bool) {
        word!(self, enforcing, AtomicU32).store(enforcing.into(), Ordering::SeqCst);
        self.forget();
    }

    /// Says how many units have a context: where none has, programs do not look.
    pub fn set_units(&self, units: u32) {
        word!(self, units, AtomicU32).store(units, Ordering::SeqCst);
    }

    /// Whether a candidate is asked beside the policy in force.
    #[must_use]
    pub fn shadow(&self) -> bool {
        word!(self, shadow, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// How often the candidate could not be asked, or its difference not counted.
    #[must_use]
    pub fn shadow_failures(&self) -> u64 {
        self.failures()[TG_FAILED_SHADOW as usize]
    }

    /// Sets whether it is. What was cached without it is forgotten.
    pub fn set_shadow(&self, on: bool) {
        word!(self, shadow, AtomicU32).store(on.into(), Ordering::SeqCst);
        self.forget();
    }

    /// The number of the daemon's process, 0: none, and when it began: another may have its number later. Whatever is confined
    /// needs a permission to signal or trace it.
    pub fn set_daemon(&self, process: u32, began: u64) {
        // The last one's number is nobody's with this beginning.
        word!(self, daemon_began, AtomicU64).store(began, Ordering::SeqCst);
        word!(self, daemon, AtomicU32).store(process, Ordering::SeqCst);
    }

    /// Whether a process that began then is the daemon.
    #[must_use]
    pub fn is_daemon(&self, process: u32, began: u64) -> bool {
        word!(self, daemon, AtomicU32).load(Ordering::SeqCst) == process
            && word!(self, daemon_began, AtomicU64).load(Ordering::SeqCst) == began
    }

    /// When descriptors are asked about.
    #[must_use]
    pub fn descriptors(&self) -> Descriptors {
        match word!(self, inherit, AtomicU32).load(Ordering::SeqCst) {
            0 => Descriptors::Check,
            _ => Descriptors::Use,
        }
    }

    /// Sets when descriptors are asked about, before there is a confined process.
    pub fn set_descriptors(&self, descriptors: Descriptors) {
        word!(self, inherit, AtomicU32).store((descriptors == Descriptors::Use).into(), Ordering::SeqCst);
    }

    /// The label and the SECCLASS that a program tells while this thread asks for an attribute by `ask`, which fails; 0: none
    /// did.
    pub fn told_label(&self, ask: impl FnOnce()) -> (Sid, u32) {
        word!(self, told_label, AtomicU32).store(0, Ordering::SeqCst);
        word!(self, asks_label, AtomicU32).store(gettid().as_raw().cast_unsigned(), Ordering::SeqCst);
        ask();
        word!(self, asks_label, AtomicU32).store(0, Ordering::SeqCst);
        let told = |word: &AtomicU32| word.load(Ordering::SeqCst);
        (told(word!(self, told_label, AtomicU32)), told(word!(self, told_class, AtomicU32)))
    }

    /// The label that a thread of this process is writing to an attribute through overlayfs; 0: none.
    pub fn set_new_label(&self, sid: Sid, thread: u32) {
        word!(self, labeller, AtomicU32).store(thread, Ordering::SeqCst);
        word!(self, new_label, AtomicU32).store(sid, Ordering::SeqCst);
    }

    /// The device of the file system with the pins.
    pub fn set_pins(&self, device: u32) {
        word!(self, pins, AtomicU32).store(device, Ordering::SeqCst);
    }

    /// Whether other hooks ask what inode_permission would, were its program attached.
    pub fn set_no_lookups(&self, none: bool) {
        word!(self, no_lookups, AtomicU32).store(none.into(), Ordering::SeqCst);
    }

    /// Says that the first labelling is complete: an inode without a label is a failure from now on.
    pub fn set_labelling_complete(&self) {
        word!(self, labelling_complete, AtomicU32).store(1, Ordering::SeqCst);
    }

    /// Whether a program has rung for labels, and no daemon has answered.
    #[must_use]
    pub fn label_rings(&self) -> bool {
        word!(self, label_rings, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Lets programs ring for labels again; before who writes labels reads which there are.
    pub fn answer_label_rings(&self) {
        word!(self, label_rings, AtomicU32).store(0, Ordering::SeqCst);
    }

    /// The file systems in which something was made, moved or linked since this was asked last, a bit each.
    pub fn take_changed(&self) -> u64 {
        let changed = self.0.get();
        (0..TG_CHANGED as usize).fold(0, |bits, index| {
            // SAFETY: the member lies in the mapping and is aligned; programs and daemon use it by single accesses only.
            let word = unsafe { AtomicU32::from_ptr(&raw mut (*changed).changed[index]) };
            bits | u64::from(word.swap(0, Ordering::SeqCst) != 0) << index
        })
    }

    /// Counts failures that the daemon has seen.
    pub fn count_failures(&self, failure: tg_failure, count: u64) {
        let failures = self.0.get();
        // SAFETY: as above.
        let word =
            unsafe { AtomicU64::from_ptr(&raw mut (*failures).failures[failure as usize % TG_FAILURES as usize]) };
        word.fetch_add(count, Ordering::SeqCst);
    }

    /// Says where btrfs has an inode's subvolume: last that it is known.
    pub fn set_subvolumes(&self, layout: tg_btrfs) {
        let tg_btrfs { inode, root, number, known } = layout;
        word!(self, btrfs.inode, AtomicU32).store(inode, Ordering::SeqCst);
        word!(self, btrfs.root, AtomicU32).store(root, Ordering::SeqCst);
        word!(self, btrfs.number, AtomicU32).store(number, Ordering::SeqCst);
        word!(self, btrfs.known, AtomicU32).store(known, Ordering::SeqCst);
    }

    /// Whether the programs know where that is.
    #[must_use]
    pub fn knows_subvolumes(&self) -> bool {
        word!(self, btrfs.known, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Whether labels have become dirty that `unwritten` has no entry of, since this was last asked.
    pub fn take_labels_missed(&self) -> bool {
        word!(self, labels_missed, AtomicU32).swap(0, Ordering::SeqCst) != 0
    }

    /// Whether the first labelling is complete.
    #[must_use]
    pub fn labelling_complete(&self) -> bool {
        word!(self, labelling_complete, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Whether programs count what they are asked.
    pub fn set_statistics(&self, on: bool) {
        if word!(self, statistics, AtomicU32).swap(on.into(), Ordering::SeqCst) != u32::from(on) {
            self.forget();
        }
    }

    /// The highest SID given so far; a new one is taken by adding.
    #[must_use]
    pub fn last_sid(&self) -> &AtomicU32 {
        word!(self, last_sid, AtomicU32)
    }

    /// Makes a SID known as a subject that may run, before it does (`tg_make_live`).
    pub fn make_live(&self, sid: Sid) {
        let pointer = self.0.get();
        let any = word!(self, any, AtomicU64);
        for index in 0..TG_LIVE as usize {
            // SAFETY: the word lies in the mapping and is aligned; programs and daemon use it by single accesses only.
            let place = unsafe { AtomicU32::from_ptr(&raw mut (*pointer).live[index]) };
            let coming = sid | TG_LIVE_COMING;
            match place.compare_exchange(0, coming, Ordering::SeqCst, Ordering::SeqCst) {
                Err(there) if there == sid => return,
                Err(there) if there != coming => {}
                _ => {
                    let now = any.load(Ordering::SeqCst);
                    let next = if (FIRST_ANY..LAST_ANY).contains(&now) { now + NEXT_ANY } else { 0 };
                    // Where it fails a program has just changed it.
                    let _changed = any.compare_exchange(now, next, Ordering::SeqCst, Ordering::SeqCst);
                    place.store(sid, Ordering::SeqCst);
                    return;
                }
            }
        }
        any.store(0, Ordering::SeqCst);
    }

    /// Changes what caches are filled from, and empties them. Meanwhile those of questions and transitions are not used:
    /// else a new object could be labelled by what was, and asked about by what is.
    pub fn switch<T>(&self, change: impl FnOnce() -> T) -> T {
        let switching = word!(self, switching, AtomicU32);
        switching.store(1, Ordering::SeqCst);
        let changed = change();
        self.forget();
        switching.store(0, Ordering::SeqCst);
        changed
    }

    /// Undoes what an earlier daemon had begun when it was killed: a label that it was writing or asking for, and caches
    /// that it had not emptied.
    pub fn recover(&self) {
        word!(self, new_label, AtomicU32).store(0, Ordering::SeqCst);
        word!(self, asks_label, AtomicU32).store(0, Ordering::SeqCst);
        self.switch(|| ());
    }

    /// Empties all caches, after what they were filled from has changed: who fills one sees that the epoch is another
    /// and takes its entry back.
    pub fn forget(&self) {
        word!(self, epoch, AtomicU64).fetch_add(1, Ordering::SeqCst);
        let pointer = self.0.get();
        // SAFETY: the arrays lie in the mapping.
        let arrays = unsafe {
            [
                (&raw mut (*pointer).task_cache[0], TG_TASK_ENTRIES),
                (&raw mut (*pointer).access_cache[0], TG_ACCESS_ROWS * TG_ACCESS_WAYS),
                (&raw mut (*pointer).avc[0], TG_AVC_ENTRIES),
                (&raw mut (*pointer).transitions[0], TG_TRANSITION_ENTRIES),
            ]
        };
        for (first, count) in arrays {
            for index in 0..count as usize {
                // SAFETY: `index` is below the number of words of the array that begins at `first`.
                unsafe { AtomicU64::from_ptr(first.add(index)) }.store(0, Ordering::SeqCst);
            }
        }
    }

    /// How often each thing failed (`enum tg_failure`).
    #[must_use]
    pub fn failures(&self) -> [u64; TG_FAILURES as usize] {
        // SAFETY: the array lies in the mapping; a count that is read while it grows is an older or a newer one.
        unsafe { (&raw const (*self.0.get()).failures).read_volatile() }
    }

    /// How often a thing has failed since a daemon, this one or another, was last told so.
    pub fn untold(&self, failure: tg_failure) -> u64 {
        let pointer = self.0.get();
        let index = failure as usize % TG_FAILURES as usize;
        // SAFETY: both words lie in the mapping and are aligned; programs and daemon use them by single accesses only.
        let [count, told] = unsafe {
            [
                AtomicU64::from_ptr(&raw mut (*pointer).failures[index]),
                AtomicU64::from_ptr(&raw mut (*pointer).told[index]),
            ]
        };
        let count = count.load(Ordering::SeqCst);
        count.saturating_sub(told.swap(count, Ordering::SeqCst))
    }

    /// The last object without a label that a confined process has met, and the process.
    pub fn unlabelled(&self) -> tg_unlabelled {
        // SAFETY: the member lies in the mapping; what programs write meanwhile may be mixed with it, and all of it is a value.
        unsafe { (&raw const (*self.0.get()).unlabelled).read_volatile() }
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        word!(self, events, AtomicU64).load(Ordering::SeqCst)
    }

    /// The counts of each object manager (`enum tg_manager`).
    #[must_use]
    pub fn statistics(&self) -> [tg_statistics; TG_MANAGERS as usize] {
        // SAFETY: as above.
        unsafe { (&raw const (*self.0.get()).statistic).read_volatile() }
    }

    /// The confined subjects that a task has or had.
    #[must_use]
    pub fn live(&self) -> [Sid; TG_LIVE as usize] {
        // SAFETY: as above.
        let live = unsafe { (&raw const (*self.0.get()).live).read_volatile() };
        live.map(|subject| subject & !TG_LIVE_COMING)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_abi::enforcer::{TG_FAILED_EVENT_LIMIT, TG_FAILED_EVENT_LOST};

    use super::*;

    #[test]
    fn makes_a_subject_live_once_and_forgets_what_all_may() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size_of::<tg_state>().next_multiple_of(4096) as u64).unwrap();
        let state = State::new(&file).unwrap();
        state.initialise(0, 32);
        let any = || word!(state, any, AtomicU64).load(Ordering::SeqCst);
        state.make_live(40);
        assert_eq!((any(), state.live()[0]), (FIRST_ANY + NEXT_ANY, 40));
        state.make_live(40);
        assert_eq!((any(), state.live()[1]), (FIRST_ANY + NEXT_ANY, 0));
        // A task that is about to make one live has not changed it yet: who comes meanwhile does not go on as if it had.
        // SAFETY: as above.
        unsafe { (&raw mut (*state.0.get()).live[1]).write_volatile(41 | TG_LIVE_COMING) };
        assert_eq!(state.live()[1], 41);
        state.make_live(41);
        assert_eq!((any(), state.live()[1]), (FIRST_ANY + 2 * NEXT_ANY, 41));
        state.make_live(41);
        assert_eq!(any(), FIRST_ANY + 2 * NEXT_ANY);
        (42..40 + TG_LIVE).for_each(|sid| state.make_live(sid));
        assert_eq!(any(), FIRST_ANY + NEXT_ANY * u64::from(TG_LIVE));
        // There is no room for another: nothing holds for all.
        state.make_live(100);
        assert_eq!(any(), 0);
    }

    #[test]
    fn tells_each_failure_once_whichever_daemon_asks() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size_of::<tg_state>().next_multiple_of(4096) as u64).unwrap();
        let (first, second) = (State::new(&file).unwrap(), State::new(&file).unwrap());
        let fail = |times: u64| {
            let failures = first.0.get();
            // SAFETY: the member lies in the mapping, and nobody else has the file.
            unsafe { (*failures).failures[TG_FAILED_EVENT_LOST as usize] += times }
        };
        assert_eq!(first.untold(TG_FAILED_EVENT_LOST), 0);
        fail(7);
        assert_eq!(first.untold(TG_FAILED_EVENT_LIMIT), 0);
        assert_eq!(first.untold(TG_FAILED_EVENT_LOST), 7);
        fail(2);
        assert_eq!(second.untold(TG_FAILED_EVENT_LOST), 2);
        assert_eq!(first.untold(TG_FAILED_EVENT_LOST), 0);
    }
}
