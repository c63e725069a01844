//! The process in which libsepol runs, and the pipe for its answer.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::OFlag,
    poll::{PollFd, PollFlags, PollTimeout},
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid},
};

use super::{SepolError, confine, shim};

/// How long to wait for the child at most. It may compute for 600 s, together with others.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1800);
/// How long a child may take to free its memory and end after it has answered, or closed its pipe.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The size of the child's stack. libsepol's parsers recurse, and unused pages cost nothing.
const STACK_SIZE: usize = 64 << 20;
/// The maximum size of a section, in bytes: several times what Debian's policies need.
const MAX_SECTION_SIZE: u64 = 256 << 20;

/// The child's answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) messages: Vec<u8>,
    pub(super) image: Option<Vec<u8>>,
    pub(super) model: Option<Vec<u8>>,
    pub(super) file_contexts: Option<Vec<u8>>,
    pub(super) cil: Option<Vec<u8>>,
    refused_step: Option<Vec<u8>>,
}

/// What the child does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    /// For error messages, for example "compile the policy".
    pub(super) name: &'static str,
    /// The processor time that it may use, in seconds.
    pub(super) seconds: u64,
}

/// Runs `work` in a confined child of this process. It answers in sections on the descriptor that it is given, and
/// returns 0, or -1 if libsepol refused.
pub(super) fn run(task: Task, work: impl FnOnce(RawFd) -> i32 + Send) -> Result<Answer, SepolError> {
    // The child continues on the stack of the thread that forks it, and dies when that thread ends.
    let stack = || thread::Builder::new().name("libsepol".into()).stack_size(STACK_SIZE);
    thread::scope(|scope| match stack().spawn_scoped(scope, || fork(task, work)) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(cause) => Err(SepolError::Start { task: task.name, cause }),
    })
}

fn fork(task: Task, work: impl FnOnce(RawFd) -> i32) -> Result<Answer, SepolError> {
    let start = |errno: Errno| SepolError::Start { task: task.name, cause: errno.into() };
    let (input, out) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(start)?;
    let parent = nix::unistd::getpid();
    // SAFETY: the child runs libsepol and allocates, which glibc's fork prepares malloc and stdio for; it takes no lock
    // that another thread of the parent may have held: libsepol's compiler is called in such children only. It never
    // returns from here.
    match unsafe { nix::unistd::fork() }.map_err(start)? {
        ForkResult::Child => {
            let status = catch_unwind(AssertUnwindSafe(|| be_child(task, out.as_raw_fd(), parent, work)));
            // SAFETY: _exit runs nothing of the parent's.
            unsafe { libc::_exit(status.unwrap_or(3)) }
        }
        ForkResult::Parent { child } => {
            drop(out);
            attend(task.name, child, input)
        }
    }
}

/// The code of the child. Returns its exit status.
fn be_child(task: Task, out: RawFd, parent: Pid, work: impl FnOnce(RawFd) -> i32) -> i32 {
    match confine::confine(out, parent.as_raw(), task.seconds) {
        Ok(()) => i32::from(work(confine::OUT) != 0),
        Err(refused) => {
            let message = format!("{}: {}", refused.step, refused.cause);
            // The pipe is where it was, or has been moved.
            for out in [confine::OUT, out] {
                if shim::section(out, shim::REFUSED_STEP, message.as_bytes()) && shim::section(out, shim::END, &[]) {
                    break;
                }
            }
            2
        }
    }
}

/// Reads the child's answer to its end, and waits for the child.
fn attend(task: &'static str, child: Pid, input: OwnedFd) -> Result<Answer, SepolError> {
    let mut pipe = Pipe { file: File::from(input), deadline: Instant::now() + ANSWER_TIMEOUT };
    let answer = read_answer(&mut pipe);
    drop(pipe);
    if answer.as_ref().is_err_and(|cause| cause.kind() != io::ErrorKind::UnexpectedEof) {
        // It has ended or is about to. What it writes after this is not read.
        let _ = kill(child, Signal::SIGKILL);
    }
    let status = reap(child).map_err(|errno| SepolError::Start { task, cause: errno.into() })?;
    judge(task, answer, status)
}

/// Waits for a child that has nothing more to say. One that does not end is killed, because it may be under an
/// attacker's control.
fn reap(child: Pid) -> Result<WaitStatus, Errno> {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::EINTR) => {}
            Ok(WaitStatus::StillAlive) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            Ok(WaitStatus::StillAlive) => {
                kill(child, Signal::SIGKILL)?;
                thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}

/// The result of an answer and of the way in which the child ended.
fn judge(task: &'static str, answer: io::Result<Answer>, status: WaitStatus) -> Result<Answer, SepolError> {
    match (answer, status) {
        (Err(cause), _) if cause.kind() == io::ErrorKind::TimedOut => {
            Err(SepolError::TimedOut { task, seconds: ANSWER_TIMEOUT.as_secs() })
        }
        (Err(cause), _) if cause.kind() == io::ErrorKind::InvalidData => Err(SepolError::Garbled { task, cause }),
        (_, WaitStatus::Signaled(_, signal, _)) => Err(SepolError::Died { task, signal: signal.as_str() }),
        (Ok(Answer { refused_step: Some(step), .. }), _) => {
            Err(SepolError::Confine { task, step: String::from_utf8_lossy(&step).into_owned() })
        }
        (Ok(answer), WaitStatus::Exited(_, 0)) => Ok(answer),
        (Ok(answer), WaitStatus::Exited(_, 1)) => {
            Err(SepolError::Refused { task, messages: super::messages(&answer.messages) })
        }
        (Ok(_), status) => {
            Err(SepolError::Garbled { task, cause: io::Error::other(format!("it ended with {status:?}")) })
        }
        (Err(cause), _) => Err(SepolError::Garbled { task, cause }),
    }
}

/// The sections of an answer up to its end. An attacker may have written them.
pub(super) fn read_answer(input: &mut impl Read) -> io::Result<Answer> {
    let garbled = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut answer = Answer::default();
    loop {
        let mut head = [0; 9];
        input.read_exact(&mut head)?;
        let [tag, length @ ..] = head;
        let length = u64::from_le_bytes(length);
        if length > MAX_SECTION_SIZE {
            return Err(garbled(format!("a section of {length} bytes")));
        }
        let mut content = Vec::new();
        // A section that is cut short is the last one, without an end after it.
        input.take(length).read_to_end(&mut content)?;
        match shim::Tag::from(tag) {
            shim::END if length == 0 => return Ok(answer),
            shim::MESSAGES => answer.messages = content,
            shim::IMAGE => answer.image = Some(content),
            shim::MODEL => answer.model = Some(content),
            shim::FILE_CONTEXTS => answer.file_contexts = Some(content),
            shim::CIL => answer.cil = Some(content),
            shim::REFUSED_STEP => answer.refused_step = Some(content),
            _ => return Err(garbled(format!("a section of kind {tag}"))),
        }
    }
}

/// The reading end of the pipe, which waits only until its deadline.
struct Pipe {
    file: File,
    deadline: Instant,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match nix::poll::poll(&mut [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return self.file.read(buffer),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
