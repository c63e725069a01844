//! Threads that may hang without harm. A file system that is frozen, or that a program serves, need not answer. A
//! thread that makes a request to it has descriptors of its own; otherwise a hanging thread would keep the daemon's
//! lock and socket after that was killed.

use std::{
    io,
    mem::ManuallyDrop,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use nix::sys::{
    signal::{SigSet, SigmaskHow},
    socket::MsgFlags,
};
use tollgate_client::wire;

/// How long labelling waits for an answer.
pub(crate) const LABELLING_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a client's request waits for an answer.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_millis(200);
/// The maximum number of threads that hang. After that no request is made until one of them has an answer.
const MAX_HANGING: usize = 16;

/// The first descriptor that is not a standard one.
const FIRST_OTHER: u32 = 3;

/// Number of threads that wait for an answer.
static ASKING: AtomicUsize = AtomicUsize::new(0);

/// Starts a thread that has only these descriptors, and that no signal interrupts. `act` gets an error if that failed.
pub(crate) fn spawn(name: &str, kept: Vec<RawFd>, act: impl FnOnce(io::Result<()>) + Send + 'static) -> io::Result<()> {
    let mut before = SigSet::empty();
    // Signals must reach a thread that handles them, and this one closes its descriptors.
    SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).map(|mask| before = mask)?;
    let started = thread::Builder::new().name(name.to_owned()).spawn(move || act(stand_alone(kept)));
    before.thread_set_mask()?;
    started.map(drop)
}

fn stand_alone(mut kept: Vec<RawFd>) -> io::Result<()> {
    kept.sort_unstable();
    let kept: Vec<u32> = kept.into_iter().map(i32::cast_unsigned).collect();
    let last = kept.last().map_or(FIRST_OTHER, |last| (last + 1).max(FIRST_OTHER));
    // The kernel copies only those before: the daemon has hundreds.
    close(last, u32::MAX, libc::CLOSE_RANGE_UNSHARE)?;
    let mut first = FIRST_OTHER;
    for file in kept {
        if first < file {
            close(first, file - 1, 0)?;
        }
        first = first.max(file + 1);
    }
    Ok(())
}

fn close(first: u32, last: u32, flags: u32) -> io::Result<()> {
    // SAFETY: nothing of this thread uses the descriptors that it closes.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Counts a request until there is an answer.
struct Asking;

impl Asking {
    fn begin() -> io::Result<Self> {
        let begun = ASKING
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |asking| (asking < MAX_HANGING).then_some(asking + 1));
        begun.map(|_| Self).map_err(|_| hangs())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.fetch_sub(1, Ordering::SeqCst);
    }
}

fn hangs() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "a file system does not answer")
}

/// Runs `act` on a file, if its file system answers in time.
pub(crate) fn ask<T: Send + 'static>(
    file: BorrowedFd<'_>,
    patience: Duration,
    act: impl FnOnce(BorrowedFd<'_>) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (asking, given) = (Asking::begin()?, file.try_clone_to_owned()?);
    let raw = given.as_raw_fd();
    let ((answer, answered), (ready, began)) = (channel(), channel::<()>());
    spawn("asks", vec![raw], move |alone| {
        let _asking = asking;
        let _ = ready.send(());
        // SAFETY: its own copy of it is closed by nobody.
        let file = unsafe { BorrowedFd::borrow_raw(raw) };
        let _ = answer.send(alone.and_then(|()| act(file)));
    })?;
    // It has its copy by then.
    let _ = began.recv();
    drop(given);
    match answered.recv_timeout(patience) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => Err(hangs()),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread that was to ask failed")),
    }
}

/// Opens what `act` opens, if all file systems on the way answer in time. `given` is what it needs for that.
pub(crate) fn open(
    given: Option<&OwnedFd>,
    act: impl FnOnce(Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> + Send + 'static,
) -> io::Result<OwnedFd> {
    let (here, there) = UnixStream::pair()?;
    let given = given.map(AsFd::as_fd).map(|given| given.try_clone_to_owned()).transpose()?;
    let number = given.as_ref().map(AsRawFd::as_raw_fd);
    let asking = Asking::begin()?;
    let (ready, began) = channel::<()>();
    let far = there.as_raw_fd();
    let kept = number.into_iter().chain([far]).collect();
    spawn("opens", kept, move |alone| {
        let _asking = asking;
        let _ = ready.send(());
        // SAFETY: its own copies of them are closed by nobody.
        let given = number.map(|raw| unsafe { BorrowedFd::borrow_raw(raw) });
        // SAFETY: as above; nor by this.
        let socket = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(far) });
        // The requester may no longer be waiting.
        let _ = match alone.and_then(|()| act(given)) {
            Ok(file) => wire::send(&socket, &[0; 4], &[file.as_fd()], MsgFlags::empty()),
            Err(cause) => {
                let number = cause.raw_os_error().unwrap_or(libc::EIO);
                wire::send(&socket, &number.to_ne_bytes(), &[], MsgFlags::empty())
            }
        };
    })?;
    // It has its copies by then.
    let _ = began.recv();
    drop((there, given));
    hear(&here)
}

fn hear(from: &UnixStream) -> io::Result<OwnedFd> {
    let mut number = [0; 4];
    from.set_read_timeout(Some(LABELLING_TIMEOUT))?;
    let Some(mut heard) = wire::receive(from, &mut number, MsgFlags::empty())? else { return Err(hangs()) };
    match heard.descriptors.pop() {
        Some(file) => Ok(file),
        None if heard.length == number.len() => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number))),
        None => Err(io::Error::other("the thread that was to open it failed")),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, sync::Arc, time::Instant};

    use super::*;

    #[test]
    fn has_no_descriptors_but_the_standard_ones_and_those_that_it_is_given() {
        let files: Vec<File> = (0..9).map(|_| tempfile::tempfile().unwrap()).collect();
        let kept: Vec<RawFd> = [6, 2].map(|number: usize| files[number].as_raw_fd()).into();
        let (tell, told) = channel();
        spawn("alone", kept.clone(), move |alone| {
            let own = |number: i32| std::fs::symlink_metadata(format!("/proc/thread-self/fd/{number}")).is_ok();
            let others = (FIRST_OTHER.cast_signed()..1024).filter(|number| own(*number)).collect::<Vec<_>>();
            tell.send((alone.is_ok(), others)).unwrap();
        })
        .unwrap();
        assert_eq!(told.recv().unwrap(), (true, vec![kept[1], kept[0]]));
        assert!(files.iter().all(|file| nix::sys::stat::fstat(file).is_ok()));
    }

    #[test]
    fn waits_for_nobody_who_does_not_answer() {
        let file = tempfile::tempfile().unwrap();
        let length = |file: BorrowedFd<'_>| Ok(nix::sys::stat::fstat(file)?.st_size);
        assert_eq!(ask(file.as_fd(), LABELLING_TIMEOUT, length).unwrap(), 0);
        let opened = open(None, |_| Ok(File::open("/proc/self/status")?.into())).unwrap();
        assert!(nix::sys::stat::fstat(&opened).is_ok());
        let refused = open(None, |_| Ok(File::open("/proc/nothing")?.into())).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        let (end, ended) = channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        let begun = Instant::now();
        let mut hanging = 0;
        // Others may ask meanwhile.
        while hanging < MAX_HANGING {
            let Ok(asking) = Asking::begin() else {
                assert!(begun.elapsed() < Duration::from_secs(20));
                continue;
            };
            let ended = Arc::clone(&ended);
            spawn("hangs", Vec::new(), move |_| {
                let _asking = asking;
                let _ = ended.lock().map(|ended| ended.recv());
            })
            .unwrap();
            hanging += 1;
        }
        assert_eq!(ask(file.as_fd(), LABELLING_TIMEOUT, length).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(end);
        while ask(file.as_fd(), LABELLING_TIMEOUT, length).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(1));
        }
    }
}
