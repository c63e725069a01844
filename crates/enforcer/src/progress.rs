//! Shows how far a long operation is. A start may label millions of files, and the kernel takes its time to verify
//! programs.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::time::{ClockId, clock_gettime};

/// How often the progress is shown.
const INTERVAL: Duration = Duration::from_secs(4);

/// What is being done, and how much of it is done.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    operations: Arc<Mutex<Vec<Operation>>>,
    done: Arc<AtomicU64>,
}

/// An operation that was begun, with the times of that moment.
#[derive(Debug)]
struct Operation {
    what: &'static str,
    elapsed: Instant,
    processors: Duration,
    threads: Vec<Duration>,
}

/// What an operation took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Took {
    /// The operation.
    pub what: &'static str,
    /// The time that passed.
    pub elapsed: Duration,
    /// The time that processors worked for this process.
    pub processors: Duration,
    /// Of that, what each of the threads took that shared the work.
    pub threads: Vec<Duration>,
}

impl Took {
    /// The time that would have passed if each thread had a processor of its own, and nothing else ran.
    #[must_use]
    pub fn apart(&self) -> Duration {
        let longest = self.threads.iter().max().copied().unwrap_or_default();
        self.processors.saturating_sub(self.threads.iter().sum()) + longest
    }
}

impl Progress {
    /// Begins an operation, of which nothing is done.
    pub fn begin(&self, what: &'static str) {
        let (elapsed, processors) = (Instant::now(), processors());
        self.operations().push(Operation { what, elapsed, processors, threads: Vec::new() });
        self.done.store(0, Ordering::Relaxed);
    }

    /// Counts what one of several threads took for its part.
    pub fn thread(&self, took: Duration) {
        if let Some(operation) = self.operations().last_mut() {
            operation.threads.push(took);
        }
    }

    /// What each operation took so far.
    #[must_use]
    pub fn took(&self) -> Vec<Took> {
        let (now, operations) = ((Instant::now(), processors()), self.operations());
        let ends = operations.iter().skip(1).map(|next| (next.elapsed, next.processors)).chain([now]);
        let took = operations.iter().zip(ends).map(|(operation, (elapsed, processors))| Took {
            what: operation.what,
            elapsed: elapsed - operation.elapsed,
            processors: processors.saturating_sub(operation.processors),
            threads: operation.threads.clone(),
        });
        took.collect()
    }

    fn operations(&self) -> MutexGuard<'_, Vec<Operation>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more item as done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// For example `labelling files: 1200 so far`; `None`: nothing was begun.
    fn text(&self) -> Option<String> {
        let doing = self.operations().last()?.what;
        Some(match self.done.load(Ordering::Relaxed) {
            0 => doing.to_owned(),
            done => format!("{doing}: {done} so far"),
        })
    }

    /// Passes what is being done to `each`, every few seconds until the result is dropped.
    #[must_use]
    pub fn tell(&self, each: impl FnMut(&str) + Send + 'static) -> Telling {
        self.tell_every(INTERVAL, each)
    }

    fn tell_every(&self, beat: Duration, mut each: impl FnMut(&str) + Send + 'static) -> Telling {
        let (ends, ended) = channel();
        let (progress, began) = (self.clone(), Instant::now());
        let thread = thread::spawn(move || {
            while ended.recv_timeout(beat) == Err(RecvTimeoutError::Timeout) {
                if let Some(text) = progress.text() {
                    each(&format!("{text} ({} s)", began.elapsed().as_secs()));
                }
            }
        });
        Telling { ends: Some(ends), thread: Some(thread) }
    }
}

/// The time that processors have worked for this process.
fn processors() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// Shows the progress until it is dropped.
#[derive(Debug)]
pub struct Telling {
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_is_being_done_as_long_as_somebody_waits() {
        let progress = Progress::default();
        let (sender, told) = channel();
        let telling = progress.tell_every(Duration::from_millis(1), move |text| drop(sender.send(text.to_owned())));
        progress.begin("labelling files");
        assert_eq!(told.recv().unwrap(), "labelling files (0 s)");
        (0..3).for_each(|_| progress.step());
        let counted = told.iter().find(|text| text.contains("so far")).unwrap();
        assert!(counted.starts_with("labelling files: ") && counted.ends_with(" so far (0 s)"), "{counted}");
        drop(telling);
        assert!(told.iter().count() < 10_000, "the end is the end");
    }

    #[test]
    fn tells_what_each_operation_took_as_if_its_threads_had_processors_of_their_own() {
        let progress = Progress::default();
        progress.thread(Duration::from_secs(9));
        progress.begin("reading");
        progress.begin("loading");
        [3, 5].into_iter().for_each(|seconds| progress.thread(Duration::from_secs(seconds)));
        let took = progress.took();
        assert_eq!(
            took.iter().map(|took| (took.what, took.threads.len())).collect::<Vec<_>>(),
            [("reading", 0), ("loading", 2)]
        );
        let loading = Took { processors: Duration::from_secs(10), ..took[1].clone() };
        assert_eq!(loading.apart(), Duration::from_secs(10 - 3));
        assert_eq!(took[0].apart(), took[0].processors);
    }

    #[test]
    fn says_nothing_before_something_is_begun() {
        let progress = Progress::default();
        assert_eq!(progress.text(), None);
    }
}
