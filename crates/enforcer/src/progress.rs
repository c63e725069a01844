//! Shows how far a long operation is. A start may label millions of files, and the kernel takes its time to verify
//! programs.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How often the progress is shown.
const INTERVAL: Duration = Duration::from_secs(4);

/// What is being done, and how much of it is done.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    doing: Arc<Mutex<Option<&'static str>>>,
    done: Arc<AtomicU64>,
}

impl Progress {
    /// Begins an operation, of which nothing is done.
    pub fn begin(&self, what: &'static str) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        self.done.store(0, Ordering::Relaxed);
    }

    /// Counts one more item as done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// For example `labelling files: 1200 so far`; `None`: nothing was begun.
    fn text(&self) -> Option<String> {
        let doing = (*self.doing.lock().unwrap_or_else(PoisonError::into_inner))?;
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
    fn says_nothing_before_something_is_begun() {
        let progress = Progress::default();
        assert_eq!(progress.text(), None);
    }
}
