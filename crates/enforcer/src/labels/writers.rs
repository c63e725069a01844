//! The threads that write attributes, one per file system at a time. A file system that is frozen or hangs blocks only
//! its own thread.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use nix::unistd::gettid;

use crate::labels::{
    alone,
    durable::{self, Dirty, Outcome},
    object::Object,
};

/// The maximum number of threads. What would need another one is tried again later.
const MAX_THREADS: usize = 32;

/// What a thread has done.
#[derive(Debug)]
pub enum Done {
    /// It has written noted labels.
    Labels(Vec<(Dirty, Outcome)>),
    /// It has written one label that a client waits for; with the number of the order.
    One(u64, io::Result<()>),
}

/// What a thread must do.
enum Task {
    Labels {
        labels: Vec<Dirty>,
        mountinfo: Vec<u8>,
        all: bool,
    },
    /// The file is the number of a descriptor that stays open meanwhile.
    One {
        number: u64,
        file: RawFd,
        context: String,
        /// Whether everything written before must be on disk first.
        sync: bool,
        begin: Receiver<()>,
    },
}

#[derive(Debug)]
struct Running {
    since: Instant,
    /// The file that the thread works on.
    _file: Option<OwnedFd>,
}

/// The threads that write.
#[derive(Debug)]
pub struct Writers {
    tell: Sender<(u32, Done)>,
    done: Receiver<(u32, Done)>,
    running: HashMap<u32, Running>,
    wakes: UnixStream,
    wake: Arc<UnixStream>,
    /// How often the pipe may be written to still.
    awaited: usize,
    numbers: u64,
}

impl Writers {
    /// Starts none yet.
    pub fn new() -> io::Result<Self> {
        let (tell, done) = channel();
        let (wakes, wake) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        Ok(Self { tell, done, running: HashMap::new(), wakes, wake: Arc::new(wake), awaited: 0, numbers: 0 })
    }

    /// Becomes readable when a thread has done something.
    pub fn wakes(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    /// Since when a file system is being written to; `None`: it is not.
    #[must_use]
    pub fn since(&self, device: u32) -> Option<Instant> {
        self.running.get(&device).map(|running| running.since)
    }

    /// File systems that have not answered for this time.
    #[must_use]
    pub fn hanging(&self, now: Instant, after: Duration) -> Vec<u32> {
        let hangs = |running: &Running| now.duration_since(running.since) >= after;
        self.running.iter().filter(|(_, running)| hangs(running)).map(|(device, _)| *device).collect()
    }

    /// How many threads run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Whether a thread runs that has not run for this time yet.
    #[must_use]
    pub fn is_awaited(&self, now: Instant, patience: Duration) -> bool {
        self.running.values().any(|running| now.duration_since(running.since) < patience)
    }

    /// Writes labels of a file system that is not being written to. Labels that cannot be started are returned.
    pub fn write(&mut self, device: u32, labels: Vec<Dirty>, mountinfo: Vec<u8>, all: bool) -> io::Result<()> {
        self.start(device, None, Task::Labels { labels, mountinfo, all }).map(drop)
    }

    /// Writes one label, after calling `before` with the number of the thread, and, with `sync`, after everything
    /// written before is on disk. Returns the number of the order.
    pub fn write_one(
        &mut self,
        device: u32,
        file: OwnedFd,
        context: &str,
        sync: bool,
        before: impl FnOnce(u32),
    ) -> io::Result<u64> {
        self.numbers += 1;
        let (go, begin) = channel();
        let (number, context) = (self.numbers, context.to_owned());
        let task = Task::One { number, file: file.as_raw_fd(), context, sync, begin };
        before(self.start(device, Some(file), task)?);
        // The thread has not ended, because it waits for this.
        let _ = go.send(());
        Ok(self.numbers)
    }

    /// Returns the number of the thread that was started.
    fn start(&mut self, device: u32, file: Option<OwnedFd>, task: Task) -> io::Result<u32> {
        if self.running.contains_key(&device) || self.running.len() >= MAX_THREADS {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let (tell, wake) = (self.tell.clone(), Arc::clone(&self.wake));
        let (name, named) = channel();
        let kept = [Some(wake.as_fd().as_raw_fd()), task.file()];
        alone::spawn("labels", kept.into_iter().flatten().collect(), move |alone| {
            let _ = name.send(gettid().as_raw().cast_unsigned());
            let done = task.run(device, alone);
            let _ = tell.send((device, done));
            // If the pipe is full, the reader is awake anyway.
            let _ = (&*wake).write(&[0]);
        })?;
        self.awaited += 1;
        self.running.insert(device, Running { since: Instant::now(), _file: file });
        named.recv().map_err(io::Error::other)
    }

    /// What was done since the last call, waiting until then; `None`: nothing.
    pub fn next(&mut self, until: Instant) -> Option<(u32, Done)> {
        if self.awaited == 0 && self.running.is_empty() {
            return None;
        }
        // The pipe is emptied first: a thread reports before it writes to the pipe, and a late write must not wake the
        // daemon again.
        let mut rung = MAX_THREADS;
        while rung == MAX_THREADS {
            rung = (&self.wakes).read(&mut [0; MAX_THREADS]).unwrap_or_default();
            self.awaited = self.awaited.saturating_sub(rung);
        }
        let left = until.saturating_duration_since(Instant::now());
        match self.done.recv_timeout(left) {
            Ok((device, done)) => {
                self.running.remove(&device);
                Some((device, done))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl Task {
    fn file(&self) -> Option<RawFd> {
        match self {
            Self::Labels { .. } => None,
            Self::One { file, .. } => Some(*file),
        }
    }

    fn run(self, device: u32, alone: io::Result<()>) -> Done {
        match self {
            Self::Labels { labels, mountinfo, all } => Done::Labels(durable::write(device, labels, &mountinfo, all)),
            Self::One { number, file, context, sync, begin } => {
                // SAFETY: who has started this thread keeps it open until this is done.
                let file = unsafe { BorrowedFd::borrow_raw(file) };
                let _ = begin.recv();
                let synced = alone.and_then(|()| if sync { durable::sync(file) } else { Ok(()) });
                let object = synced.and_then(|()| Object::new(file, device));
                Done::One(number, object.and_then(|object| object.set_attribute(&context)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;

    fn file_is_open(file: &impl AsFd) -> bool {
        nix::sys::stat::fstat(file).is_ok()
    }

    fn second() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn is_quiet_once_all_is_told_however_late_it_rang() {
        let mut writers = Writers { awaited: MAX_THREADS, ..Writers::new().unwrap() };
        (&*writers.wake).write_all(&[0; MAX_THREADS]).unwrap();
        assert!(writers.next(Instant::now()).is_none());
        assert!((&writers.wakes).read(&mut [0]).is_err_and(|cause| cause.kind() == io::ErrorKind::WouldBlock));
    }

    #[test]
    fn tells_what_became_of_each_order_and_writes_to_a_file_system_once_at_a_time() {
        let mut writers = Writers::new().unwrap();
        let file = tempfile::tempfile().unwrap();
        let copy = |file: &File| file.as_fd().try_clone_to_owned().unwrap();
        let mut thread = 0;
        let number = writers.write_one(7, copy(&file), "u:object_r:made_t:s0", true, |number| thread = number).unwrap();
        assert!(thread != 0 && thread != gettid().as_raw().cast_unsigned());
        assert!(
            writers.write_one(7, copy(&file), "u:object_r:made_t:s0", false, |_| ()).is_err(),
            "it is being written to"
        );
        let Some((7, Done::One(done, _))) = writers.next(second()) else { panic!("it was not told") };
        assert_eq!((done, writers.running(), writers.since(7)), (number, 0, None));
        let object = Object::anywhere(file.as_fd()).unwrap();
        let file = Dirty { file: object.identity(), sid: 40, context: "u:object_r:made_t:s0".into() };
        writers.write(u32::MAX, vec![file], Vec::new(), true).unwrap();
        let Some((_, Done::Labels(done))) = writers.next(second()) else { panic!("it was not told") };
        assert!(matches!(&done[..], [(_, Outcome::Failed(_))]), "{done:?}");
        // The descriptors that it has closed were its own.
        assert!(file_is_open(&writers.wakes) && file_is_open(&*writers.wake));
    }
}
