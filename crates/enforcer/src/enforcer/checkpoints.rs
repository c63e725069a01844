//! Moves the checkpoints of file systems forward. Labels noted before a checkpoint are in the attributes of their
//! files.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    os::fd::AsFd,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::time::{ClockId, clock_gettime};
use tollgate_abi::enforcer::TG_CHANGED;
use tracing::warn;

use super::{
    Enforcer, EnforcerError,
    object::{labelling, mountinfo},
};
use crate::{
    labels::{
        alone,
        checkpoint::{AfterCrash, Checkpoint, MARGIN, anchor},
        durable,
        identity::Identity,
        machine::OVERLAY,
        maps::Maps,
        mounts::{self, Covered, Mount},
        note::Uuid,
        object::{Moment, Object},
        roots,
    },
    programs,
};

/// The interval at which checkpoints move forward, if anything has changed.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many intervals after a change they move: then no change of its interval is newer than they are.
const INTERVALS_AFTER_CHANGE: usize = 3;
/// If the clock jumps by more than this (in nanoseconds), it was set.
const CLOCK_TOLERANCE: Moment = 100_000_000;
/// A hook that is running has noted its label after this time.
const HOOK_DURATION: Duration = Duration::from_millis(100);

/// How long an ending daemon waits for checkpoints to be written.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// How often it checks whether they are.
const WAIT_INTERVAL: Duration = Duration::from_millis(10);
/// How often an ending daemon tries to write the labels that are not written yet.
const MAX_ATTEMPTS: u32 = 20;
/// The maximum number of directories per file system that wait to have their labels written while it is frozen.
const MAX_ACTIVE: usize = 4096;

/// Which file systems have changed: one bit each, given by [`bit`].
type Bits = u64;

/// When checkpoints moved, and what has changed since.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// What changed in the last intervals, the newest first.
    changed: [Bits; INTERVALS_AFTER_CHANGE],
    /// What changed before that, and has not been covered by a checkpoint yet.
    due: Bits,
    moved: Option<Instant>,
    /// The difference between the wall clock and the clock that nobody can set.
    clock: Option<Moment>,
    writing: Writing,
    /// Directories whose labels must be written to their attributes, by device.
    active: HashMap<u32, Vec<(Identity, String)>>,
    /// Whether this daemon has taken what an earlier one left in the map of such directories.
    taken_over: bool,
    /// Whether hooks do not run, so that nobody notes what is made.
    held: bool,
    /// Messages that have been reported. Each is reported once.
    reported: Vec<String>,
}

impl Checkpoints {
    /// Records that something was made, moved or labelled on a file system.
    pub(super) fn changed(&mut self, device: Option<u32>) {
        self.changed[0] |= device.map_or(!0, bit);
    }

    /// Begins the next interval.
    fn next(&mut self) {
        self.changed.rotate_right(1);
        self.due |= std::mem::take(&mut self.changed[0]);
    }

    fn all(&self) -> Bits {
        self.changed.iter().fold(self.due, |all, bits| all | bits)
    }
}

/// The bit of a device, as the programs mark changes.
fn bit(device: u32) -> Bits {
    1 << (device % TG_CHANGED)
}

fn now(clock: ClockId) -> Moment {
    clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

/// What to do with the checkpoint of a file system.
#[derive(Debug)]
enum Order {
    /// Move it to a moment, after writing the labels of these directories.
    Move(Moment, Vec<(Identity, String)>),
    Remove,
}

impl Order {
    fn moment(&self) -> Option<Moment> {
        match self {
            Self::Move(from, _) => Some(*from),
            Self::Remove => None,
        }
    }

    fn follow(self, device: u32) -> io::Result<()> {
        match self {
            Self::Move(from, active) => {
                anchor(device, &active);
                each_root(device, &mut |root| Checkpoint::new(from, Checkpoint::of(root)).write(root))
            }
            Self::Remove => each_root(device, &mut Checkpoint::remove),
        }
    }
}

/// File systems whose checkpoints are being written, each by a thread of its own, so that a file system that is frozen
/// or hangs holds up no other.
#[derive(Debug, Clone, Default)]
struct Writing(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    devices: HashSet<u32>,
    /// Up to when this daemon has moved the checkpoint of each file system.
    moved: HashMap<Uuid, Moment>,
    /// File systems whose checkpoints could not be written, which move again as if something had changed.
    again: Bits,
    failed: Vec<String>,
}

impl Writing {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an order is still being carried out for this device.
    fn has(&self, device: u32) -> bool {
        self.running().devices.contains(&device)
    }

    /// Carries out an order. The one before must have ended.
    fn begin(&self, device: u32, uuid: Uuid, order: Order) {
        self.running().devices.insert(device);
        let writing = self.clone();
        let moved = order.moment();
        let followed = alone::spawn("checkpoint", Vec::new(), move |alone| {
            let done = alone.and_then(|()| order.follow(device));
            if let Some(from) = moved.filter(|_| done.is_ok()) {
                writing.running().moved.insert(uuid, from);
            }
            writing.end(device, done);
        });
        if let Err(cause) = followed {
            self.end(device, Err(cause));
        }
    }

    fn end(&self, device: u32, done: io::Result<()>) {
        let mut running = self.running();
        running.devices.remove(&device);
        // If nothing can be written to a file system, nothing is made there either. A missing checkpoint need not be
        // removed.
        let harmless =
            |cause: &io::Error| matches!(cause.raw_os_error(), Some(libc::EROFS | libc::EOPNOTSUPP | libc::ENODATA));
        if let Some(cause) = done.err().filter(|cause| !harmless(cause)) {
            running.again |= bit(device);
            running.failed.push(format!("the checkpoint of device {device} stays behind: {cause}"));
        }
    }

    /// Waits until nothing is being written, but not for a file system that hangs.
    fn wait(&self) {
        let end = Instant::now() + END_TIMEOUT;
        while !self.running().devices.is_empty() && Instant::now() < end {
            thread::sleep(WAIT_INTERVAL);
        }
    }
}

impl Enforcer {
    /// Stops or resumes the checkpoints: while hooks do not run, nobody notes the labels of what is made.
    pub fn hold_checkpoints(&mut self, held: bool) {
        self.checkpoints.held = held;
    }

    /// Moves the checkpoints of file systems on which something has changed. Returns new failures, each once.
    pub fn checkpoint(&mut self) -> Vec<String> {
        let early = self.checkpoints.moved.is_some_and(|moved| moved.elapsed() < INTERVAL);
        if early || self.checkpoints.held || self.options.after_crash == AfterCrash::Keep {
            return Vec::new();
        }
        self.checkpoints.moved = Some(Instant::now());
        self.checkpoints.next();
        let again = std::mem::take(&mut self.checkpoints.writing.running().again);
        self.checkpoints.changed[0] |= self.state.take_changed() | again;
        let clock = now(ClockId::CLOCK_REALTIME) - now(ClockId::CLOCK_BOOTTIME);
        // From now on, new files get times that checkpoints may cover.
        if self.checkpoints.clock.replace(clock).is_some_and(|before| (clock - before).abs() > CLOCK_TOLERANCE) {
            self.checkpoints.changed(None);
        }
        let due = self.checkpoints.due;
        match self.move_on(due, now(ClockId::CLOCK_REALTIME) - MARGIN, 1) {
            Ok(left) => self.checkpoints.due = left,
            Err(cause) => self.checkpoints.writing.running().failed.push(cause.to_string()),
        }
        let failed = std::mem::take(&mut self.checkpoints.writing.running().failed);
        let new = failed.iter().filter(|failure| !self.checkpoints.reported.contains(failure)).cloned().collect();
        self.checkpoints.reported.extend(failed);
        self.checkpoints.reported.sort_unstable();
        self.checkpoints.reported.dedup();
        new
    }

    /// Moves checkpoints as far as possible before this daemon ends, so that no written label is doubtful later.
    pub fn conclude(&mut self) {
        let held = self.checkpoints.held || self.options.after_crash == AfterCrash::Keep;
        if held || !programs::pinned(&self.options.pins) {
            return;
        }
        self.checkpoints.changed[0] |= self.state.take_changed();
        let from = now(ClockId::CLOCK_REALTIME);
        thread::sleep(HOOK_DURATION);
        self.checkpoints.writing.wait();
        if let Err(cause) = self.move_on(self.checkpoints.all(), from, MAX_ATTEMPTS) {
            warn!(%cause, "labels: {cause}");
        }
        self.checkpoints.writing.wait();
    }

    /// What happens to files with possibly lost labels on a file system that was mounted. If its checkpoint is the one
    /// that this daemon wrote last, no label was lost: the file system was unmounted, and labels that were not written
    /// by then are noted.
    pub(super) fn after_unmount(&self, device: u32) -> AfterCrash {
        let found = || {
            let uuid = self.kernel_maps().uuid(device).ok()?.filter(|uuid| *uuid != Uuid::default())?;
            let moved = self.checkpoints.writing.running().moved.get(&uuid).copied()?;
            let root = roots::root(device).ok()?;
            let checkpoint = Checkpoint::of(&Object::new(root.as_fd(), device).ok()?)?;
            Some(checkpoint.is_from(moved))
        };
        if found() == Some(true) { AfterCrash::Keep } else { self.options.after_crash }
    }

    /// Removes the checkpoints, because labels are no longer kept.
    pub(super) fn forget_checkpoints(&self) -> Result<(), EnforcerError> {
        let writing = &self.checkpoints.writing;
        writing.wait();
        for device in self.kernel_maps().kept(|_| true).map_err(labelling)? {
            if !writing.has(device) {
                writing.begin(device, Uuid::default(), Order::Remove);
            }
        }
        writing.wait();
        Ok(())
    }

    /// Moves the checkpoints of what has changed to `from`, once the labels noted before that are written or noted on
    /// disk. If they are not after some tries, the checkpoint stays where it is. Returns those that stay.
    fn move_on(&mut self, changed: Bits, from: Moment, tries: u32) -> Result<Bits, EnforcerError> {
        let mut left = 0;
        if changed == 0 {
            return Ok(left);
        }
        self.state.next_interval();
        self.take_active()?;
        for device in self.kernel_maps().kept(|device| changed & bit(device) != 0).map_err(labelling)? {
            let mut written = false;
            for _ in 0..tries {
                written = !self.checkpoints.writing.has(device) && self.nothing_unwritten(device)?;
                if written {
                    break;
                }
            }
            if !written {
                left |= bit(device);
            } else {
                let active = self.checkpoints.active.remove(&device).unwrap_or_default();
                let uuid = self.kernel_maps().uuid(device).map_err(labelling)?.unwrap_or_default();
                self.checkpoints.writing.begin(device, uuid, Order::Move(from, active));
            }
        }
        Ok(left)
    }

    /// Takes the directories in which something was made for the first time.
    fn take_active(&mut self) -> Result<(), EnforcerError> {
        if !self.state.take_activated() && std::mem::replace(&mut self.checkpoints.taken_over, true) {
            return Ok(());
        }
        for (directory, sid) in self.kernel_maps().take_active().map_err(labelling)? {
            if !self.contexts.has(sid) {
                self.learn();
            }
            let waiting = self.checkpoints.active.entry(directory.device).or_default();
            if self.contexts.has(sid) && waiting.len() < MAX_ACTIVE {
                waiting.push((directory, self.contexts.text(sid).to_owned()));
            }
        }
        Ok(())
    }
}

/// Calls `act` with the root of each part of a file system that is mounted, leaving out parts that another one
/// contains.
fn each_root(device: u32, act: &mut dyn FnMut(&Object<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut all = mounts::read(&fs::read(mountinfo())?);
    all.retain(|mount| mount.device == device);
    mounts::widest_first(&mut all);
    // A write to its root would go to a directory of another file system.
    if all.iter().any(|mount| mount.filesystem == OVERLAY) {
        return Ok(());
    }
    let mut covered = Covered::default();
    for mount in &all {
        if covered.has(mount) {
            continue;
        }
        let Ok(root) = mounts::open(mount) else { continue };
        covered.insert(mount);
        let root = Object::new(root.as_fd(), device)?;
        order(mount)?;
        act(&root)?;
    }
    match covered.is_empty() {
        true => act(&Object::new(roots::root(device)?.as_fd(), device)?),
        false => Ok(()),
    }
}

/// Makes sure that what was written before a checkpoint reaches the disk before it. ext4 with a journal and xfs write
/// changes of names and attributes in their order. btrfs writes the data of fsync(2) ahead of the rest (its log tree);
/// other file systems may do that as well.
fn order(mount: &Mount) -> io::Result<()> {
    if is_ordered(mount) {
        return Ok(());
    }
    durable::sync(mounts::open(mount)?.as_fd())
}

/// Whether attributes are written in order, on the file system of a device.
pub(super) fn is_ordered_there(device: u32) -> io::Result<bool> {
    let all = mounts::read(&fs::read(mountinfo())?);
    Ok(all.iter().any(|mount| mount.device == device && is_ordered(mount)))
}

fn is_ordered(mount: &Mount) -> bool {
    match mount.filesystem.as_str() {
        "xfs" => true,
        "ext4" => {
            let device = format!("/sys/dev/block/{}:{}", mount.device >> 20, mount.device & 0xf_ffff);
            let name = fs::canonicalize(device).ok();
            let name = name.as_deref().and_then(Path::file_name);
            name.is_some_and(|name| Path::new("/sys/fs/ext4").join(name).join("journal_task").exists())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_once_after_a_change_when_nothing_of_it_is_younger_than_the_checkpoint() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.changed(Some(3));
        for interval in 0..INTERVALS_AFTER_CHANGE {
            assert_eq!((checkpoints.due, checkpoints.all()), (0, 1 << 3), "{interval}");
            checkpoints.next();
        }
        assert_eq!(checkpoints.due, 1 << 3);
        let margin = usize::try_from(MARGIN / 1_000_000_000).unwrap();
        assert!(INTERVALS_AFTER_CHANGE > margin);
    }

    #[test]
    fn tries_again_where_a_disk_was_full_and_not_where_nothing_can_be_written() {
        let writing = Writing::default();
        for (device, errno) in [(3, libc::ENOSPC), (4, libc::EROFS)] {
            writing.end(device, Err(io::Error::from_raw_os_error(errno)));
        }
        writing.end(5, Ok(()));
        assert_eq!(writing.running().again, 1 << 3);
        assert_eq!(writing.running().failed.len(), 1);
    }

    #[test]
    fn takes_every_file_system_for_changed_when_the_clock_was_set() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.changed(None);
        assert_eq!(checkpoints.all(), !0);
        assert_eq!(bit(64 + 5), 1 << 5);
    }
}
