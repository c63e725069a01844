//! The programs' global variables (`struct tg_state`), which the daemon maps.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use nix::unistd::gettid;
use tollgate_abi::enforcer::{
    TG_ACCESS_ROWS, TG_ACCESS_SID, TG_ACCESS_WAYS, TG_AVC_ENTRIES, TG_CHANGED, TG_FAILED_SHADOW, TG_FAILURES,
    TG_INODE_INTERVAL_MAX, TG_INODE_INTERVAL_MIN, TG_ITSELF, TG_LABELS_OF_PACKETS, TG_LIVE, TG_LIVE_COMING,
    TG_MANAGERS, TG_STATISTICS_COUNTED, TG_STATISTICS_RECORDED, TG_TASK_ENTRIES, TG_TRANSITION_ENTRIES, tg_btrfs,
    tg_failure, tg_fullness, tg_state, tg_statistics, tg_unlabelled,
};
use tollgate_client::descriptors::Descriptors;

use crate::{contexts::Sid, mapping::Mapping, shares::Shares};

/// `TG_ANY_WAY` entries begin with this count.
const FIRST_ANY: u64 = 0x8001 << TG_ACCESS_SID;
/// After this many changes, an old entry could be taken for a new one. There are no such entries any more then.
const LAST_ANY: u64 = 0xffff << TG_ACCESS_SID;
/// The value of one change.
const NEXT_ANY: u64 = 1 << TG_ACCESS_SID;

/// Held by the thread that is named in `settles`.
static SETTLING: Mutex<()> = Mutex::new(());

/// The mapped global variables.
#[derive(Debug, Clone)]
pub struct State(Arc<Mapping<tg_state>>);

macro_rules! word {
    ($state:expr, $($member:ident).+, $atomic:ident) => {{
        let pointer = $state.0.get();
        // SAFETY: the member lies in the mapping and is aligned; programs and daemon use it by single accesses only.
        unsafe { $atomic::from_ptr(&raw mut (*pointer).$($member).+) }
    }};
}

impl State {
    /// Maps the programs' global variables. `map` is the pinned `bss`.
    pub fn new(map: impl AsFd) -> io::Result<Self> {
        Mapping::new(map).map(|mapping| Self(mapping.into()))
    }

    /// The shares of limited resources.
    #[must_use]
    pub fn shares(&self) -> Shares {
        Shares::new(Arc::clone(&self.0))
    }

    /// The initial values: nothing cached, no subject, permissive until the mode is set.
    pub fn initialise(&self, audit_limit: u32, last_sid: Sid) {
        word!(self, enforcing, AtomicU32).store(0, Ordering::SeqCst);
        word!(self, audit_limit, AtomicU32).store(audit_limit, Ordering::SeqCst);
        word!(self, last_sid, AtomicU32).store(last_sid, Ordering::SeqCst);
        word!(self, epoch, AtomicU64).store(1, Ordering::SeqCst);
        word!(self, any, AtomicU64).store(FIRST_ANY, Ordering::SeqCst);
        self.next_interval();
    }

    /// Sets how many denials per second are audited.
    pub fn set_audit_limit(&self, limit: u32) {
        word!(self, audit_limit, AtomicU32).store(limit, Ordering::SeqCst);
    }

    /// What the canary found: when hooks ran for the last time, and since when something was granted to it; 0: never.
    #[must_use]
    pub fn canary(&self) -> (u64, u64) {
        let denied = word!(self, canary_denied, AtomicU64).load(Ordering::SeqCst);
        (denied, word!(self, canary_granted, AtomicU64).load(Ordering::SeqCst))
    }

    /// Records when the canary was denied what must be denied, in nanoseconds since boot.
    pub fn set_canary_denied(&self, time: u64) {
        word!(self, canary_denied, AtomicU64).store(time, Ordering::SeqCst);
    }

    /// Records when the canary was granted something, in nanoseconds since boot; 0: the consequences are dealt with.
    pub fn set_canary_granted(&self, time: u64) {
        word!(self, canary_granted, AtomicU64).store(time, Ordering::SeqCst);
    }

    /// Whether denials take effect (enforcing mode).
    #[must_use]
    pub fn enforcing(&self) -> bool {
        word!(self, enforcing, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Sets enforcing or permissive mode. Cached answers are dropped, because some were granted because of the mode.
    pub fn set_enforcing(&self, enforcing: bool) {
        word!(self, enforcing, AtomicU32).store(enforcing.into(), Ordering::SeqCst);
        self.forget();
    }

    /// Sets how many units have a context. If there are none, programs do not look.
    pub fn set_units(&self, units: u32) {
        word!(self, units, AtomicU32).store(units, Ordering::SeqCst);
    }

    /// How many containers have a context.
    #[must_use]
    pub fn containers(&self) -> u32 {
        word!(self, containers, AtomicU32).load(Ordering::SeqCst)
    }

    /// Sets how many containers have a context. If there are none, programs do not look.
    pub fn set_containers(&self, containers: u32) {
        word!(self, containers, AtomicU32).store(containers, Ordering::SeqCst);
    }

    /// Whether a candidate is checked beside the policy in force.
    #[must_use]
    pub fn shadow(&self) -> bool {
        word!(self, shadow, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// How often the candidate could not be checked, or a difference not counted.
    #[must_use]
    pub fn shadow_failures(&self) -> u64 {
        self.failures()[TG_FAILED_SHADOW as usize]
    }

    /// Sets whether a candidate is checked. Answers that were cached without it are dropped.
    pub fn set_shadow(&self, on: bool) {
        word!(self, shadow, AtomicU32).store(on.into(), Ordering::SeqCst);
        self.forget();
    }

    /// Sets the daemon's process number (0: none), and when it began, because another process may get its number later.
    /// A confined process needs a permission to signal or trace the daemon.
    pub fn set_daemon(&self, process: u32, began: u64) {
        // No process has the last daemon's number together with this time.
        word!(self, daemon_began, AtomicU64).store(began, Ordering::SeqCst);
        word!(self, daemon, AtomicU32).store(process, Ordering::SeqCst);
        // What was granted on its tasks before, when they were anybody's (bpf/task_access.h).
        self.forget();
    }

    /// Whether a process that began at this time is the daemon.
    #[must_use]
    pub fn is_daemon(&self, process: u32, began: u64) -> bool {
        word!(self, daemon, AtomicU32).load(Ordering::SeqCst) == process
            && word!(self, daemon_began, AtomicU64).load(Ordering::SeqCst) == began
    }

    /// When descriptors are checked.
    #[must_use]
    pub fn descriptors(&self) -> Descriptors {
        match word!(self, inherit, AtomicU32).load(Ordering::SeqCst) {
            0 => Descriptors::Check,
            _ => Descriptors::Use,
        }
    }

    /// Sets when descriptors are checked. This comes before any process is confined.
    pub fn set_descriptors(&self, descriptors: Descriptors) {
        word!(self, inherit, AtomicU32).store((descriptors == Descriptors::Use).into(), Ordering::SeqCst);
    }

    /// The label and the SECCLASS that a program reports while this thread requests an attribute by `ask`, which fails; 0: none
    /// was reported.
    pub fn reported_label(&self, ask: impl FnOnce()) -> (Sid, u32) {
        word!(self, reported_label, AtomicU32).store(0, Ordering::SeqCst);
        word!(self, asks_label, AtomicU32).store(gettid().as_raw().cast_unsigned(), Ordering::SeqCst);
        ask();
        word!(self, asks_label, AtomicU32).store(0, Ordering::SeqCst);
        let reported = |word: &AtomicU32| word.load(Ordering::SeqCst);
        (reported(word!(self, reported_label, AtomicU32)), reported(word!(self, reported_class, AtomicU32)))
    }

    /// Makes the inode that is asked about by `ask`, a statfs(2) that fails, one whose label is in its storage.
    pub fn settle(&self, ask: impl FnOnce()) {
        let _one = SETTLING.lock().unwrap_or_else(PoisonError::into_inner);
        word!(self, settles, AtomicU32).store(gettid().as_raw().cast_unsigned(), Ordering::SeqCst);
        ask();
        word!(self, settles, AtomicU32).store(0, Ordering::SeqCst);
    }

    /// Sets the label that a thread of this process is writing to an attribute through overlayfs; 0: none.
    pub fn set_new_label(&self, sid: Sid, thread: u32) {
        word!(self, labeller, AtomicU32).store(thread, Ordering::SeqCst);
        word!(self, new_label, AtomicU32).store(sid, Ordering::SeqCst);
    }

    /// Sets by how many nanoseconds the clock of the day is ahead of that of the kernel's boot time.
    pub fn set_clock(&self, ahead: u64) {
        word!(self, clock, AtomicU64).store(ahead, Ordering::SeqCst);
    }

    /// Sets whether packets can be labelled in other network namespaces.
    pub fn set_namespaces_full(&self, full: tg_fullness) {
        word!(self, namespaces_full, AtomicU32).store(full, Ordering::SeqCst);
    }

    /// Tells programs that packets are labelled in a network namespace of which a user is root.
    pub fn set_users_namespaces(&self) {
        word!(self, users_namespaces, AtomicU32).store(1, Ordering::SeqCst);
    }

    /// Makes the secret that proves what packets carry between network namespaces, unless there is one.
    pub fn make_secret(&self) -> io::Result<()> {
        let mut bytes = [[0; 8]; 2];
        File::open("/dev/urandom")?.read_exact(bytes.as_flattened_mut())?;
        let [first, second] = bytes.map(u64::from_ne_bytes);
        let secret = word!(self, secret, AtomicU64);
        if secret.load(Ordering::SeqCst) == 0 {
            word!(self, secret_rest, AtomicU64).store(second, Ordering::SeqCst);
            secret.store(first.max(1), Ordering::SeqCst);
        }
        Ok(())
    }

    /// Has sockets looked up again whether packets in their network namespaces have labels.
    pub fn forget_labelled(&self) {
        word!(self, namespaces_epoch, AtomicU32).fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a context that packets have brought. Returns whether there was room for it.
    #[must_use]
    pub fn take_packet_label(&self) -> bool {
        let count = word!(self, packet_labels, AtomicU32);
        let more = |count| Some(count + 1).filter(|more| *more <= TG_LABELS_OF_PACKETS);
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Sets the device of the file system with the pins.
    pub fn set_pins(&self, device: u32) {
        word!(self, pins, AtomicU32).store(device, Ordering::SeqCst);
    }

    /// Sets whether other hooks check what inode_permission would if it had a program.
    pub fn set_no_lookups(&self, none: bool) {
        word!(self, no_lookups, AtomicU32).store(none.into(), Ordering::SeqCst);
    }

    /// Marks the first labelling as complete. From now on, an inode without a label is a failure.
    pub fn set_labelling_complete(&self) {
        word!(self, labelling_complete, AtomicU32).store(1, Ordering::SeqCst);
    }

    /// Whether a program has sent an event about labels that no daemon has handled.
    #[must_use]
    pub fn label_rings(&self) -> bool {
        word!(self, label_rings, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Tells the writer, as programs do, that a label is to be written; `missed`: there was no room to tell which.
    pub fn ring_labels(&self, missed: bool) {
        if missed {
            word!(self, labels_missed, AtomicU32).store(1, Ordering::SeqCst);
        }
        word!(self, label_rings, AtomicU32).store(1, Ordering::SeqCst);
    }

    /// Lets programs send events about labels again. This comes before the writer reads which labels there are.
    pub fn answer_label_rings(&self) {
        word!(self, label_rings, AtomicU32).store(0, Ordering::SeqCst);
    }

    /// Whether programs have entered directories in the map `active` since the last call. This comes before the map is
    /// read.
    pub fn take_activated(&self) -> bool {
        word!(self, activated, AtomicU32).swap(0, Ordering::SeqCst) != 0
    }

    /// Begins the next interval between two moves of checkpoints. Directories made before are told of from now on.
    pub fn next_interval(&self) {
        let word = word!(self, interval, AtomicU32);
        let before = word.load(Ordering::SeqCst);
        let is_last = !(TG_INODE_INTERVAL_MIN..TG_INODE_INTERVAL_MAX).contains(&before);
        word.store(if is_last { TG_INODE_INTERVAL_MIN } else { before + 1 }, Ordering::SeqCst);
    }

    /// The file systems on which something was made, moved or linked since the last call, one bit each.
    pub fn take_changed(&self) -> u64 {
        let changed = self.0.get();
        (0..TG_CHANGED as usize).fold(0, |bits, index| {
            // SAFETY: the member lies in the mapping and is aligned; programs and daemon use it by single accesses only.
            let word = unsafe { AtomicU32::from_ptr(&raw mut (*changed).changed[index]) };
            bits | u64::from(word.swap(0, Ordering::SeqCst) != 0) << index
        })
    }

    /// Counts failures that the daemon has noticed.
    pub fn count_failures(&self, failure: tg_failure, count: u64) {
        let failures = self.0.get();
        // SAFETY: as above.
        let word =
            unsafe { AtomicU64::from_ptr(&raw mut (*failures).failures[failure as usize % TG_FAILURES as usize]) };
        word.fetch_add(count, Ordering::SeqCst);
    }

    /// Sets the offsets of an inode's subvolume on btrfs, and at last that they are known.
    pub fn set_subvolumes(&self, layout: tg_btrfs) {
        let tg_btrfs { inode, root, number, known } = layout;
        word!(self, btrfs.inode, AtomicU32).store(inode, Ordering::SeqCst);
        word!(self, btrfs.root, AtomicU32).store(root, Ordering::SeqCst);
        word!(self, btrfs.number, AtomicU32).store(number, Ordering::SeqCst);
        word!(self, btrfs.known, AtomicU32).store(known, Ordering::SeqCst);
    }

    /// Whether the programs know these offsets.
    #[must_use]
    pub fn knows_subvolumes(&self) -> bool {
        word!(self, btrfs.known, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Whether labels have become dirty since the last call without an entry in `unwritten`.
    pub fn take_labels_missed(&self) -> bool {
        word!(self, labels_missed, AtomicU32).swap(0, Ordering::SeqCst) != 0
    }

    /// Whether the first labelling is complete.
    #[must_use]
    pub fn labelling_complete(&self) -> bool {
        word!(self, labelling_complete, AtomicU32).load(Ordering::SeqCst) != 0
    }

    /// Switches the programs' counters on or off.
    pub fn set_statistics(&self, on: bool) {
        self.set_statistics_to(if on { TG_STATISTICS_COUNTED } else { 0 });
    }

    /// Counts checks and records them.
    pub fn record(&self) {
        self.set_statistics_to(TG_STATISTICS_COUNTED | TG_STATISTICS_RECORDED);
    }

    fn set_statistics_to(&self, what: u32) {
        if word!(self, statistics, AtomicU32).swap(what, Ordering::SeqCst) != what {
            self.forget();
        }
    }

    /// The highest SID given so far. A new one is taken by an atomic addition.
    #[must_use]
    pub fn last_sid(&self) -> &AtomicU32 {
        word!(self, last_sid, AtomicU32)
    }

    /// Registers a SID as a subject before it runs (`tg_make_live`).
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
                    // If this fails, a program has just changed it.
                    let _changed = any.compare_exchange(now, next, Ordering::SeqCst, Ordering::SeqCst);
                    place.store(sid, Ordering::SeqCst);
                    return;
                }
            }
        }
        any.store(0, Ordering::SeqCst);
    }

    /// Makes a change to what caches are filled from, and clears them. The caches of questions and transitions are not
    /// used meanwhile: otherwise a new object could be labelled by the old state and checked by the new one.
    pub fn switch<T>(&self, change: impl FnOnce() -> T) -> T {
        let switching = word!(self, switching, AtomicU32);
        switching.store(1, Ordering::SeqCst);
        let changed = change();
        self.forget();
        switching.store(0, Ordering::SeqCst);
        changed
    }

    /// Undoes what an earlier daemon had begun when it was killed: a label that it was writing or requesting, and
    /// caches that it had not cleared.
    pub fn recover(&self) {
        word!(self, new_label, AtomicU32).store(0, Ordering::SeqCst);
        word!(self, asks_label, AtomicU32).store(0, Ordering::SeqCst);
        word!(self, settles, AtomicU32).store(0, Ordering::SeqCst);
        self.switch(|| ());
    }

    /// Clears all caches, after what they were filled from has changed. Code that fills an entry sees that the epoch
    /// has changed, and removes its entry.
    pub fn forget(&self) {
        word!(self, epoch, AtomicU64).fetch_add(1, Ordering::SeqCst);
        let pointer = self.0.get();
        // SAFETY: the arrays lie in the mapping.
        let arrays = unsafe {
            [
                (&raw mut (*pointer).task_cache[0], TG_TASK_ENTRIES),
                (&raw mut (*pointer).access_cache[0], TG_ACCESS_ROWS * TG_ACCESS_WAYS),
                (&raw mut (*pointer).make_cache[0], TG_ACCESS_ROWS * 2),
                (&raw mut (*pointer).avc[0], TG_AVC_ENTRIES),
                (&raw mut (*pointer).transitions[0], TG_TRANSITION_ENTRIES),
                (&raw mut (*pointer).to_itself[0], TG_ITSELF),
            ]
        };
        for (first, count) in arrays {
            for index in 0..count as usize {
                // SAFETY: `index` is below the number of words of the array that begins at `first`.
                unsafe { AtomicU64::from_ptr(first.add(index)) }.store(0, Ordering::SeqCst);
            }
        }
    }

    /// How often each kind of failure occurred (`enum tg_failure`).
    #[must_use]
    pub fn failures(&self) -> [u64; TG_FAILURES as usize] {
        // SAFETY: the array lies in the mapping; a count that is read while it grows is an older or a newer one.
        unsafe { (&raw const (*self.0.get()).failures).read_volatile() }
    }

    /// How often a kind of failure occurred since any daemon last reported it.
    pub fn unreported(&self, failure: tg_failure) -> u64 {
        let pointer = self.0.get();
        let index = failure as usize % TG_FAILURES as usize;
        // SAFETY: both words lie in the mapping and are aligned; programs and daemon use them by single accesses only.
        let [count, reported] = unsafe {
            [
                AtomicU64::from_ptr(&raw mut (*pointer).failures[index]),
                AtomicU64::from_ptr(&raw mut (*pointer).reported[index]),
            ]
        };
        let count = count.load(Ordering::SeqCst);
        count.saturating_sub(reported.swap(count, Ordering::SeqCst))
    }

    /// The last object without a label that a confined process met, and that process.
    pub fn unlabelled(&self) -> tg_unlabelled {
        // SAFETY: the member lies in the mapping; what programs write meanwhile may be mixed with it, and all of it is a value.
        unsafe { (&raw const (*self.0.get()).unlabelled).read_volatile() }
    }

    /// The number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        word!(self, events, AtomicU64).load(Ordering::SeqCst)
    }

    /// The counters of each object manager (`enum tg_manager`).
    #[must_use]
    pub fn statistics(&self) -> [tg_statistics; TG_MANAGERS as usize] {
        // SAFETY: as above.
        unsafe { (&raw const (*self.0.get()).statistic).read_volatile() }
    }

    /// The confined subjects that at least one task has or had.
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
    fn numbers_intervals_anew_after_the_last() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size_of::<tg_state>().next_multiple_of(4096) as u64).unwrap();
        let state = State::new(&file).unwrap();
        let next = || {
            state.next_interval();
            word!(state, interval, AtomicU32).load(Ordering::SeqCst)
        };
        let numbers: Vec<u32> = (0..=TG_INODE_INTERVAL_MAX - TG_INODE_INTERVAL_MIN).map(|_| next()).collect();
        assert_eq!(numbers, (TG_INODE_INTERVAL_MIN..=TG_INODE_INTERVAL_MAX).collect::<Vec<_>>());
        assert_eq!(next(), TG_INODE_INTERVAL_MIN);
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
        assert_eq!(first.unreported(TG_FAILED_EVENT_LOST), 0);
        fail(7);
        assert_eq!(first.unreported(TG_FAILED_EVENT_LIMIT), 0);
        assert_eq!(first.unreported(TG_FAILED_EVENT_LOST), 7);
        fail(2);
        assert_eq!(second.unreported(TG_FAILED_EVENT_LOST), 2);
        assert_eq!(first.unreported(TG_FAILED_EVENT_LOST), 0);
    }
}
