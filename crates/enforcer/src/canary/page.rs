//! A page of memory that the canary and its keeper share, for questions and answers.

use std::{
    io,
    num::NonZeroUsize,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

const LENGTH: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// A set of acts: one bit per act, by its place in `ACTS`.
pub(super) type Acts = u32;

/// The words of the page. Zeros mean: nothing was asked, and the canary has not started.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Words {
    /// Number of the last question. The canary waits for it to change.
    pub(super) asked: AtomicU32,
    /// The acts that the question requests.
    pub(super) acts: AtomicU32,
    /// One more than the number of the last question that was answered. The keeper waits for it to change.
    pub(super) answered: AtomicU32,
    pub(super) granted: AtomicU32,
    pub(super) denied: AtomicU32,
}

/// The result of the acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) granted: Acts,
    pub(super) denied: Acts,
}

/// The page, as it is mapped.
#[derive(Debug)]
pub(super) struct Page(NonNull<Words>);

// SAFETY: all words are atomic, and the mapping is the page's own.
unsafe impl Send for Page {}

impl Page {
    pub(super) fn new() -> io::Result<Self> {
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, chosen by the kernel, aliases no memory of this program.
        let memory = unsafe { mmap_anonymous(None, LENGTH, protection, MapFlags::MAP_SHARED) }?;
        Ok(Self(memory.cast()))
    }

    pub(super) fn words(&self) -> &Words {
        // SAFETY: the mapping is there as long as `self`, holds zeros at first, and its words are atomic.
        unsafe { self.0.as_ref() }
    }

    /// Requests acts, and returns the number of the question.
    pub(super) fn ask(&self, acts: Acts) -> Option<u32> {
        let words = self.words();
        words.acts.store(acts, Ordering::SeqCst);
        let number = words.asked.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        wake(&words.asked);
        Some(number)
    }

    /// Waits for the answer to a question. Number 0 belongs to no question: its answer says that the canary has
    /// started.
    pub(super) fn answer(&self, number: u32, patience: Duration) -> Option<Answer> {
        let (words, until) = (self.words(), Instant::now() + patience);
        loop {
            let answered = words.answered.load(Ordering::SeqCst);
            if answered == number.wrapping_add(1) {
                let [granted, denied] = [&words.granted, &words.denied].map(|word| word.load(Ordering::SeqCst));
                return Some(Answer { granted, denied });
            }
            let left = until.checked_duration_since(Instant::now())?;
            wait(&words.answered, answered, left);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nothing borrows from it.
        let _ = unsafe { munmap(self.0.cast(), LENGTH.get()) };
    }
}

/// Sleeps at most this long until a word that is `known` is woken. May return early for no reason.
pub(super) fn wait(word: &AtomicU32, known: u32, most: Duration) {
    let most = libc::timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: most.subsec_nanos().into() };
    // SAFETY: the kernel reads the word and the time, both of which live longer than the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, known, &raw const most) };
}

/// Wakes the process that sleeps at a word.
pub(super) fn wake(word: &AtomicU32) {
    // SAFETY: the kernel reads nothing but the word's address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
