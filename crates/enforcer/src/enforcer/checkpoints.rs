//! Moves the file systems' checkpoints on: the labels that were noted before are in the files' attributes.

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

/// How often checkpoints move on at most.
const BEAT: Duration = Duration::from_secs(1);
/// For so many beats after the last change they do: then nothing is younger than they are.
const BEATS: usize = 4;
/// A clock that differs by less was not set.
const STEADY: Moment = 100_000_000;
/// A hook that has begun has noted its label by then.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a daemon that ends waits for checkpoints.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it looks.
const MOMENT: Duration = Duration::from_millis(10);
/// How often it has labels written that are not yet.
const TRIES: u32 = 20;
/// Directories of a file system that wait for their labels to be written down, while that is frozen.
const MOST_ACTIVE: usize = 4096;

/// Which file systems have changed, a bit each, by [`bit`].
type Bits = u64;

/// When checkpoints moved on, and what has changed since.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// In the last beats, the newest first.
    changed: [Bits; BEATS],
    moved: Option<Instant>,
    /// Where the clock is from that which nobody sets.
    clock: Option<Moment>,
    writing: Writing,
    /// Directories whose labels are to be written down, by device.
    active: HashMap<u32, Vec<(Identity, String)>>,
    /// Hooks do not run: nobody notes what is made.
    held: bool,
    /// What failed is told once.
    told: Vec<String>,
}

impl Checkpoints {
    /// Something was made, moved or labelled in a file system.
    pub(super) fn changed(&mut self, device: Option<u32>) {
        self.changed[0] |= device.map_or(!0, bit);
    }

    /// The next beat begins.
    fn next(&mut self) {
        self.changed.rotate_right(1);
        self.changed[0] = 0;
    }

    fn all(&self) -> Bits {
        self.changed.iter().fold(0, |all, bits| all | bits)
    }
}

/// As the programs mark what has changed.
fn bit(device: u32) -> Bits {
    1 << (device % TG_CHANGED)
}

fn now(clock: ClockId) -> Moment {
    clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

/// What is done with the checkpoint of a file system.
#[derive(Debug)]
enum Order {
    /// To a moment; before, these directories' labels are written down.
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

/// File systems whose checkpoints are being written, each by a thread: one that is frozen, or hangs, stops nobody else.
#[derive(Debug, Clone, Default)]
struct Writing(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    devices: HashSet<u32>,
    /// Up to when this daemon has moved the checkpoints of file systems.
    moved: HashMap<Uuid, Moment>,
    failed: Vec<String>,
}

impl Writing {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an order is still being followed.
    fn has(&self, device: u32) -> bool {
        self.running().devices.contains(&device)
    }

    /// Has an order followed; the one before was.
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
        // Where nothing can be written nothing is made either; what has no checkpoint needs none to be removed.
        let harmless =
            |cause: &io::Error| matches!(cause.raw_os_error(), Some(libc::EROFS | libc::EOPNOTSUPP | libc::ENODATA));
        if let Some(cause) = done.err().filter(|cause| !harmless(cause)) {
            running.failed.push(format!("the checkpoint of device {device} stays behind: {cause}"));
        }
    }

    /// Waits until nothing is being written, but not for what hangs.
    fn wait(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.running().devices.is_empty() && Instant::now() < end {
            thread::sleep(MOMENT);
        }
    }
}

impl Enforcer {
    /// Checkpoints stay where they are, or no more: what is made while hooks do not run has no label that anybody notes.
    pub fn hold_checkpoints(&mut self, held: bool) {
        self.checkpoints.held = held;
    }

    /// Moves the checkpoints of file systems on in which something has changed. Tells what failed, once.
    pub fn checkpoint(&mut self) -> Vec<String> {
        let early = self.checkpoints.moved.is_some_and(|moved| moved.elapsed() < BEAT);
        if early || self.checkpoints.held || self.options.after_crash == AfterCrash::Keep {
            return Vec::new();
        }
        self.checkpoints.moved = Some(Instant::now());
        self.checkpoints.next();
        self.checkpoints.changed[0] |= self.state.take_changed();
        let clock = now(ClockId::CLOCK_REALTIME) - now(ClockId::CLOCK_BOOTTIME);
        // What is made from now on has times that checkpoints may cover.
        if self.checkpoints.clock.replace(clock).is_some_and(|before| (clock - before).abs() > STEADY) {
            self.checkpoints.changed(None);
        }
        if let Err(cause) = self.move_on(now(ClockId::CLOCK_REALTIME) - MARGIN, 1) {
            self.checkpoints.writing.running().failed.push(cause.to_string());
        }
        let failed = std::mem::take(&mut self.checkpoints.writing.running().failed);
        let new = failed.iter().filter(|failure| !self.checkpoints.told.contains(failure)).cloned().collect();
        self.checkpoints.told.extend(failed);
        self.checkpoints.told.sort_unstable();
        self.checkpoints.told.dedup();
        new
    }

    /// Moves checkpoints on as far as it goes, before this daemon ends: nothing is doubtful that is written.
    pub fn conclude(&mut self) {
        let held = self.checkpoints.held || self.options.after_crash == AfterCrash::Keep;
        if held || !programs::pinned(&self.options.pins) {
            return;
        }
        self.checkpoints.changed[0] |= self.state.take_changed();
        let from = now(ClockId::CLOCK_REALTIME);
        thread::sleep(PAUSE);
        self.checkpoints.writing.wait();
        if let Err(cause) = self.move_on(from, TRIES) {
            eprintln!("tollgate: labels: {cause}");
        }
        self.checkpoints.writing.wait();
    }

    /// What becomes of files of a file system that has been mounted whose labels may be lost. None is where the checkpoint is
    /// still the one that this daemon has written: it was unmounted, and what was not written by then is noted.
    pub(super) fn after_unmount(&self, device: u32) -> AfterCrash {
        let found = || {
            let uuid = self.kernel_maps().ok()?.uuid(device).ok()?.filter(|uuid| *uuid != Uuid::default())?;
            let moved = self.checkpoints.writing.running().moved.get(&uuid).copied()?;
            let root = roots::root(device).ok()?;
            let checkpoint = Checkpoint::of(&Object::new(root.as_fd(), device).ok()?)?;
            Some(checkpoint.is_from(moved))
        };
        if found() == Some(true) { AfterCrash::Keep } else { self.options.after_crash }
    }

    /// Says that labels are not kept any more.
    pub(super) fn forget_checkpoints(&self) -> Result<(), EnforcerError> {
        let writing = &self.checkpoints.writing;
        writing.wait();
        for device in self.kernel_maps()?.kept().map_err(labelling)? {
            if !writing.has(device) {
                writing.begin(device, Uuid::default(), Order::Remove);
            }
        }
        writing.wait();
        Ok(())
    }

    /// What was noted before `from` is written, or noted on disk: where it is not, after some tries, the checkpoint stays.
    fn move_on(&mut self, from: Moment, tries: u32) -> Result<(), EnforcerError> {
        let changed = self.checkpoints.all();
        if changed == 0 {
            return Ok(());
        }
        self.take_active()?;
        for device in self.kernel_maps()?.kept().map_err(labelling)? {
            if changed & bit(device) == 0 || self.checkpoints.writing.has(device) {
                continue;
            }
            let mut written = false;
            for _ in 0..tries {
                written = self.nothing_unwritten(device)?;
                if written {
                    break;
                }
            }
            if written {
                let active = self.checkpoints.active.remove(&device).unwrap_or_default();
                let uuid = self.kernel_maps()?.uuid(device).map_err(labelling)?.unwrap_or_default();
                self.checkpoints.writing.begin(device, uuid, Order::Move(from, active));
            }
        }
        Ok(())
    }

    /// Takes the directories in which something was made for the first time.
    fn take_active(&mut self) -> Result<(), EnforcerError> {
        for (directory, sid) in self.kernel_maps()?.take_active().map_err(labelling)? {
            if !self.contexts.has(sid) {
                self.learn();
            }
            let waiting = self.checkpoints.active.entry(directory.device).or_default();
            if self.contexts.has(sid) && waiting.len() < MOST_ACTIVE {
                waiting.push((directory, self.contexts.text(sid).to_owned()));
            }
        }
        Ok(())
    }
}

/// Does something with each part of a file system that is mounted and no other part holds.
fn each_root(device: u32, act: &mut dyn FnMut(&Object<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut all = mounts::read(&fs::read(mountinfo())?);
    all.retain(|mount| mount.device == device);
    mounts::widest_first(&mut all);
    // What is written to its root is that of another file system's directory.
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

/// What was written before a checkpoint is on the disk before it: ext4 with a journal and xfs write changes of names and
/// attributes in their order. btrfs writes what fsync(2) asks for ahead of the rest (its log tree); others may, too.
fn order(mount: &Mount) -> io::Result<()> {
    if is_ordered(mount) {
        return Ok(());
    }
    durable::sync(mounts::open(mount)?.as_fd())
}

/// Likewise of attributes, in the file system of a device.
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
    fn goes_on_until_nothing_is_younger_than_the_checkpoint() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.changed(Some(3));
        let margin = usize::try_from(MARGIN / 1_000_000_000).unwrap();
        for beat in 0..BEATS {
            assert_eq!(checkpoints.all(), 1 << 3, "{beat}");
            checkpoints.next();
        }
        assert!(checkpoints.all() == 0 && BEATS > margin + 1);
    }

    #[test]
    fn takes_every_file_system_for_changed_when_the_clock_was_set() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.changed(None);
        assert_eq!(checkpoints.all(), !0);
        assert_eq!(bit(64 + 5), 1 << 5);
    }
}
