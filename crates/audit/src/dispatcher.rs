//! Writes the daemon's audit log in a thread of its own, because the kernel's audit may make a sender wait and a disk
//! may be slow.

use std::{
    io, mem,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::time::{ClockId, clock_gettime};
use tollgate_abi::enforcer::tg_event;

use super::{
    Denial, Load, Reason,
    auditor::Auditor,
    sink::{Errors, Sink},
    storm::Limits,
};

/// How many denials may wait to be written. Further ones are counted as lost.
const MAX_QUEUED: usize = 4096;
/// How often the thread writes the counts of merged denials, if there are any.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// Takes events from the daemon. The daemon never waits for them to be written.
#[derive(Debug)]
pub struct Dispatcher {
    /// `None` only while the dispatcher is dropped.
    sender: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    health: Arc<Mutex<Health>>,
    /// Number of denials for which the queue had no room.
    over: u64,
}

/// The state of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Whether the kernel's audit takes the records; `false`: a file does.
    pub kernel: bool,
    /// Writes that failed.
    pub errors: Errors,
}

#[derive(Debug)]
enum Message {
    Denial(Box<Denial>),
    Lost(Reason, u64),
    Load(Load),
}

impl Dispatcher {
    /// Starts writing to the files in `folder`, and to the kernel's audit if there is one.
    pub fn start(folder: &Path) -> io::Result<Self> {
        Self::with(Sink::open(folder)?)
    }

    /// Starts writing to the files in `folder` only.
    pub fn files(folder: &Path) -> io::Result<Self> {
        Self::with(Sink::files(folder)?)
    }

    fn with(sink: Sink) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(MAX_QUEUED);
        let health = Arc::new(Mutex::new(Health { kernel: sink.is_kernel(), errors: Errors::default() }));
        let (auditor, shared) = (Auditor::new(sink, Limits::default()), Arc::clone(&health));
        let thread = thread::Builder::new().name("audit".into()).spawn(move || write(auditor, &receiver, &shared))?;
        Ok(Self { sender: Some(sender), thread: Some(thread), health, over: 0 })
    }

    /// Takes an event of kind TG_EVENT_AVC. `context` returns the text of a SID in the event's generation.
    pub fn event(&mut self, event: &tg_event, context: impl FnMut(u32) -> Option<String>) {
        let denial = Denial::new(event, booted(), context);
        if !self.send(Message::Denial(Box::new(denial))) {
            self.over += 1;
        }
    }

    /// Records that `count` events were lost for this reason.
    pub fn lost(&mut self, reason: Reason, count: u64) {
        if count > 0 && !self.send(Message::Lost(reason, count)) {
            self.over += count;
        }
    }

    /// Records what became of a fleet's generation. The time is now, whatever it says.
    pub fn load(&mut self, load: Load) {
        if !self.send(Message::Load(load)) {
            self.over += 1;
        }
    }

    /// The state of the audit log.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a message. If denials found no room before, their number goes first.
    fn send(&mut self, message: Message) -> bool {
        let Some(sender) = &self.sender else { return false };
        if self.over > 0 {
            match sender.try_send(Message::Lost(Reason::DaemonLimit, self.over)) {
                Ok(()) => self.over = 0,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return false,
            }
        }
        sender.try_send(message).is_ok()
    }
}

impl Drop for Dispatcher {
    /// Waits until everything is written.
    fn drop(&mut self) {
        let over = mem::take(&mut self.over);
        if let Some(sender) = self.sender.take()
            && over > 0
        {
            // If this fails, the thread has ended, and nobody is left to report it to.
            let _ = sender.send(Message::Lost(Reason::DaemonLimit, over));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread: writes until the daemon drops its end of the queue.
fn write(mut auditor: Auditor, receiver: &Receiver<Message>, health: &Mutex<Health>) {
    loop {
        let come = match auditor.is_calm() {
            // An idle machine is not woken.
            true => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => receiver.recv_timeout(FLUSH_INTERVAL),
        };
        match come {
            Ok(Message::Denial(denial)) => auditor.denial(*denial),
            Ok(Message::Lost(reason, count)) => auditor.lost(reason, count),
            Ok(Message::Load(load)) => auditor.load(load),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        auditor.tick();
        let now = Health { kernel: auditor.sink().is_kernel(), errors: auditor.sink().errors().clone() };
        *health.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// When the machine started, in nanoseconds since 1970, by the clock as it is set now.
#[must_use]
pub fn booted() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let up = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default();
    u64::try_from(since.saturating_sub(up).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Entry, sink::JSON};

    fn entries(folder: &Path) -> Vec<Entry> {
        let text = fs::read_to_string(folder.join(JSON)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn writes_all_before_it_ends_with_the_time_of_the_event() {
        let folder = tempfile::tempdir().unwrap();
        let up = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap());
        let mut dispatcher = Dispatcher::files(folder.path()).unwrap();
        for tgid in 0..10 {
            let time = up.as_nanos() as u64;
            let event = tg_event { time, tgid, source: tgid, denied: 1, class: 8, ..tg_event::default() };
            dispatcher.event(&event, |sid| Some(sid.to_string()));
        }
        dispatcher.lost(Reason::RingBuffer, 3);
        drop(dispatcher);
        let entries = entries(folder.path());
        assert_eq!(entries.len(), 11);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        assert!(entries.iter().all(|entry| entry.time().abs_diff(now) < 60_000), "{entries:?}");
    }

    #[test]
    fn never_waits_for_a_writer_that_is_stuck_and_counts_what_it_could_not_take() {
        let (sender, receiver) = sync_channel(2);
        let mut dispatcher = Dispatcher { sender: Some(sender), thread: None, health: Arc::default(), over: 0 };
        // Dropped before the dispatcher, which would wait for it where this test fails.
        let receiver = receiver;
        (0..5).for_each(|_| dispatcher.event(&tg_event::default(), |_| None));
        dispatcher.lost(Reason::KernelLimit, 10);
        assert_eq!(dispatcher.over, 13);
        assert_eq!(receiver.try_iter().count(), 2);
        dispatcher.event(&tg_event::default(), |_| None);
        let kinds: Vec<Message> = receiver.try_iter().collect();
        assert!(matches!(kinds[..], [Message::Lost(Reason::DaemonLimit, 13), Message::Denial(_)]), "{kinds:?}");
        assert_eq!(dispatcher.over, 0);
    }

    #[test]
    fn tells_its_health() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(crate::sink::TEXT)).unwrap();
        let mut dispatcher = Dispatcher::files(folder.path()).unwrap();
        dispatcher.event(&tg_event::default(), |_| None);
        let started = std::time::Instant::now();
        while dispatcher.health().errors.count == 0 {
            assert!(started.elapsed() < Duration::from_secs(30));
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!dispatcher.health().kernel);
    }
}
