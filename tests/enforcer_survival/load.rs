//! A load of acts whose verdicts are known, in processes that share their counts.

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io,
    os::fd::AsRawFd,
    path::Path,
    process,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    thread::sleep,
    time::{Duration, Instant},
};

use tollgate_client::{
    Client, ClientError,
    protocol::{Attribute, Mode},
};

use super::TIMEOUT;
use crate::program::inside::{errno, opened};

pub(crate) const WORKER: &str = "u:r:worker_t:s0";
const DENIED: u32 = libc::EACCES.cast_unsigned();
/// A regular file has no such ioctl: it was permitted.
const NO_COMMAND: u32 = libc::ENOTTY.cast_unsigned();

/// Memory that the processes of a load share.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shared {
    pub(crate) granted: AtomicU64,
    pub(crate) denied: AtomicU64,
    /// Acts with another result than the policy says.
    pub(crate) wrong: AtomicU64,
    /// New files whose checks were made under two policies.
    pub(crate) torn: AtomicU64,
    /// New files that stayed since the last change of policies.
    pub(crate) kept: AtomicU64,
    /// Answers from the daemon.
    pub(crate) answers: AtomicU64,
    /// Which policy is in force: an even number stands for policy one, an odd one for policy two, of `number / 2`;
    /// [`SWITCHING`].
    pub(crate) stamp: AtomicU64,
    /// The daemon's process, while it certainly exists.
    pub(crate) daemon: AtomicU32,
    pub(crate) ended: AtomicU32,
}

/// How many new files stay under a policy, and during its change: ext4 has numbers for 8,000 files.
const MAX_KEPT: u64 = 3;

/// One policy is replacing the other.
pub(crate) const SWITCHING: u64 = u64::MAX;

impl Shared {
    /// Memory that children share, to the program's end.
    pub(crate) fn new() -> &'static Self {
        let (length, all) = (size_of::<Self>(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping, chosen by the kernel.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), length, all, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: the memory is long enough, aligned to a page, never unmapped, and zeros are a value.
        unsafe { &*memory.cast::<Self>() }
    }

    /// Notes the result of an act: `found`, where `expected` is right.
    fn note(&self, what: &str, found: u32, expected: u32) {
        if found != expected {
            eprintln!("WRONG: {what}: errno {found}, not {expected}");
            self.wrong.fetch_add(1, SeqCst);
        }
        if expected == DENIED { &self.denied } else { &self.granted }.fetch_add(1, SeqCst);
    }

    pub(crate) fn counts(&self) -> [u64; 3] {
        [&self.granted, &self.denied, &self.wrong].map(|count| count.load(SeqCst))
    }
}

/// A process that repeats an act until the load ends; unconfined without a context.
pub(crate) fn start(shared: &'static Shared, context: Option<&str>, mut act: impl FnMut(u64)) -> libc::pid_t {
    // SAFETY: the child, of one thread, leaves by _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let entered = context.map_or(Ok(()), enter);
        if let Err(error) = entered {
            eprintln!("WRONG: {error}");
            shared.wrong.fetch_add(1, SeqCst);
        } else {
            (0..).take_while(|_| shared.ended.load(SeqCst) == 0).for_each(&mut act);
        }
        // SAFETY: nothing is to be done at the end.
        unsafe { libc::_exit(0) };
    }
    child
}

/// Enters a domain. The daemon may have been killed: another one starts soon.
fn enter(context: &str) -> Result<(), ClientError> {
    let started = Instant::now();
    loop {
        match Client::connect().and_then(|daemon| daemon.set_context(Attribute::Current, context)) {
            Err(refused @ ClientError::Refused(_)) => return Err(refused),
            Err(_) if started.elapsed() < TIMEOUT => sleep(Duration::from_millis(20)),
            entered => return entered,
        }
    }
}

/// Ends a load.
pub(crate) fn end(shared: &Shared, processes: &[libc::pid_t]) {
    shared.ended.store(1, SeqCst);
    for process in processes {
        let mut status = 0;
        // SAFETY: the child is ours, the status is written before the call returns.
        assert_eq!(unsafe { libc::waitpid(*process, &raw mut status, 0) }, *process);
        assert_eq!(status, 0, "a process of the load");
    }
}

/// Sends an ioctl to a file.
fn command(path: &str, number: libc::Ioctl) -> u32 {
    let Ok(file) = File::open(path) else { return DENIED };
    // SAFETY: no file system takes these commands, so nothing is read or written.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), number, 0) };
    errno(if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) })
}

/// The result of executing a program: 0, or the errno.
fn executed(program: &str) -> u32 {
    let words = [program, "true"].map(|word| CString::new(word).unwrap());
    let words = [words[0].as_ptr(), words[1].as_ptr(), std::ptr::null()];
    let none = [std::ptr::null()];
    // SAFETY: the child executes a program, or leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: words and environment end in NUL pointers, and the words in NULs.
        unsafe {
            libc::execve(words[0], words.as_ptr(), none.as_ptr());
            libc::_exit(*libc::__errno_location());
        }
    }
    let mut status = 0;
    // SAFETY: the child is ours, the status is written before the call returns.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status).cast_unsigned() } else { u32::MAX }
}

/// Makes a file.
pub(crate) fn make(path: &str) -> u32 {
    errno(OpenOptions::new().write(true).create_new(true).open(path))
}

fn write(path: &str) -> u32 {
    errno(OpenOptions::new().write(true).open(path))
}

/// Acts for which both policies give the same verdict.
pub(crate) fn steady(shared: &Shared, round: u64) {
    let note = |what: &str, found, expected| shared.note(what, found, expected);
    note("read open", opened("/srv/open"), 0);
    note("write open", write("/srv/open"), 0);
    note("read closed", opened("/srv/closed/file"), DENIED);
    note("write closed", write("/srv/closed/file"), DENIED);
    note("read and write split", errno(OpenOptions::new().read(true).write(true).open("/srv/split")), DENIED);
    note("the command of both", command("/srv/open", 0x1111), NO_COMMAND);
    note("the command of neither", command("/srv/open", 0x4444), DENIED);
    note("make in closed", make("/srv/closed/new"), DENIED);
    if round.is_multiple_of(8) {
        files(shared, round);
        note("execute", executed("/bin/busybox"), 0);
        note("execute closed", executed("/srv/closed/program"), DENIED);
    }
    let daemon = shared.daemon.load(SeqCst);
    if daemon != 0 {
        // SAFETY: the call takes numbers only.
        let done = unsafe { libc::kill(daemon.cast_signed(), libc::SIGCONT) };
        let found = errno(if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) });
        if shared.daemon.load(SeqCst) == daemon {
            note("signal the daemon", found, DENIED);
        }
    }
}

/// Acts of Debian's web server with the same verdict, whatever modules are installed.
#[cfg(feature = "long")]
pub(crate) fn serve(shared: &Shared, round: u64) {
    let note = |what: &str, found, expected| shared.note(what, found, expected);
    let new = format!("/srv/tmp/{}-{round}", process::id());
    note("read a page", opened("/srv/page"), 0);
    note("write a page", write("/srv/page"), DENIED);
    note("read passwords", opened("/srv/shadow"), DENIED);
    note("make a temporary file", make(&new), 0);
    note("remove it", errno(fs::remove_file(&new)), 0);
}

/// Makes, moves and removes a file.
fn files(shared: &Shared, round: u64) {
    let [one, two] = ["one", "two"].map(|name| format!("/srv/{name}-{}-{round}", process::id()));
    shared.note("make", make(&one), 0);
    shared.note("rename", errno(fs::rename(&one, &two)), 0);
    shared.note("read what was made", opened(&two), 0);
    shared.note("remove", errno(fs::remove_file(&two)), 0);
}

/// Sends the daemon a request that is allowed and one that is denied, if there is a daemon.
pub(crate) fn ask(shared: &Shared, _: u64) {
    let Ok(mut daemon) = Client::connect() else { return };
    let Ok(context) = daemon.context(Attribute::Current, None) else { return };
    shared.answers.fetch_add(1, SeqCst);
    let right = context.as_deref() == Some(WORKER);
    if !right || daemon.set_mode(Mode::Permissive, None).is_ok() || daemon.stop().is_ok() {
        eprintln!("WRONG: the daemon answers {context:?}, or obeys");
        shared.wrong.fetch_add(1, SeqCst);
    }
}

/// Acts for which the policies give different verdicts.
pub(crate) fn turning(shared: &Shared, round: u64) {
    let before = shared.stamp.load(SeqCst);
    let reads = opened("/srv/split");
    let writes = write("/srv/split");
    let commands = [0x2222, 0x3333].map(|number| command("/srv/open", number));
    let new = format!("/srv/turn/{}-{round}", process::id());
    let made = make(&new);
    let settled = before != SWITCHING && shared.stamp.load(SeqCst) == before;
    if settled {
        let (yes, no) = if before.is_multiple_of(2) { (0, 1) } else { (1, 0) };
        shared.note("read split", reads, [0, DENIED][yes]);
        shared.note("write split", writes, [0, DENIED][no]);
        shared.note("the first command", commands[0], [NO_COMMAND, DENIED][yes]);
        shared.note("the second command", commands[1], [NO_COMMAND, DENIED][no]);
        shared.note("make in turn", made, 0);
    } else if made == DENIED {
        shared.torn.fetch_add(1, SeqCst);
    } else {
        shared.note("make in turn at a switch", made, 0);
    }
    if made == 0 {
        keep(shared, Path::new(&new), settled.then_some(before), round);
    }
}

/// Some new files stay, named after the type that they must have.
fn keep(shared: &Shared, new: &Path, stamp: Option<u64>, round: u64) {
    let type_ = match stamp {
        Some(stamp) if stamp.is_multiple_of(2) => "made_one_t",
        Some(_) => "made_two_t",
        None => "either",
    };
    if shared.kept.fetch_add(1, SeqCst) < MAX_KEPT {
        let kept = new.with_file_name(format!("{type_}.{}-{round}", process::id()));
        assert_eq!(errno(fs::rename(new, kept)), 0);
    } else {
        assert_eq!(errno(fs::remove_file(new)), 0);
    }
}
