//! The daemon's callers.

mod halted;

use std::{
    io::{self, BufRead, BufReader, Read},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, poll},
    sys::socket::{MsgFlags, getsockopt, sockopt::PeerCredentials},
    unistd::{getpid, gettid},
};
use tollgate_abi::enforcer::{
    SECINITSID_UNLABELED, TG_ATTRIBUTE_CURRENT, TG_ATTRIBUTE_EXEC, TG_ATTRIBUTE_FSCREATE, TG_ATTRIBUTE_KEYCREATE,
    TG_ATTRIBUTE_PERMISSIVE, TG_ATTRIBUTE_SOCKCREATE, TG_PRCTL,
};

use crate::{
    pidfd,
    protocol::{Attribute, LONGEST_REPLY, Mode, ProtocolError, Refusal, Request, SOCKET, hello, parse_reply},
    services::Service,
    shadow::Report,
    status::{Manager, Status},
    units::Unit,
    wire,
};

/// How long the daemon may take: it puts large policies in force within seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long the daemon is silent before it is looked what it does, in milliseconds.
const LOOK: u16 = 2000;

/// How often the kernel is asked again for what it could not tell.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens.
    #[error("no daemon answers on {socket} ({cause}): start it with `tollgate enforce POLICY`")]
    NoDaemon {
        /// Where it should.
        socket: String,
        /// Why not.
        cause: io::Error,
    },
    /// Somebody may listen, but not to this process.
    #[error("cannot ask the daemon on {socket}: {cause}")]
    Unreachable {
        /// Where it listens.
        socket: String,
        /// Why it cannot be asked.
        cause: io::Error,
    },
    /// Somebody listens, and does nothing.
    #[error("the daemon, process {process}, does not answer: {why}; enforcement goes on")]
    Halted {
        /// Its number.
        process: i32,
        /// Why, and what lets it go on.
        why: String,
    },
    /// The connection broke.
    #[error("the connection to the daemon broke: {0}")]
    Broken(#[from] io::Error),
    /// It speaks otherwise.
    #[error("the daemon says what this program does not know: {0}")]
    Protocol(#[from] ProtocolError),
    /// It says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The kernel says no.
    #[error("cannot set the context: {}{}", .0.desc(), remedy(*.0))]
    Kernel(Errno),
}

fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::EINVAL => " (nothing is enforced here: start it with `tollgate enforce POLICY`)",
        Errno::EACCES => {
            " (the policy does not allow it, or not with a descriptor that is open: `tollgate audit` has the denial)"
        }
        Errno::EPERM => " (the process has several threads, and the context is not bounded by its own)",
        _ => "",
    }
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    socket: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the daemon.
    pub fn connect() -> Result<Self, ClientError> {
        Self::connect_to(Path::new(SOCKET))
    }

    /// Connects to the daemon of another socket.
    pub fn connect_to(path: &Path) -> Result<Self, ClientError> {
        let socket = UnixStream::connect(path).map_err(|cause| unconnected(path, cause))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        await_greeting(&socket)?;
        let mut client = Self { socket: BufReader::new(socket) };
        let greeting = client.line()?;
        // One that turns callers away says so in place of a greeting.
        if let Ok(Err(refusal)) = parse_reply(&greeting) {
            return Err(refusal.into());
        }
        client.send(&hello(&greeting)?, &[])?;
        Ok(client)
    }

    /// Asks for something and waits for the answer.
    pub fn request(&mut self, request: &Request, with: &[BorrowedFd<'_>]) -> Result<Vec<String>, ClientError> {
        self.send(&request.line(), with)?;
        let line = self.line()?;
        Ok(parse_reply(&line)??)
    }

    /// What is enforced.
    pub fn status(&mut self) -> Result<Status, ClientError> {
        let json = self.word(&Request::Status, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("a status", json))
    }

    /// The mode.
    pub fn mode(&mut self) -> Result<Mode, ClientError> {
        let name = self.word(&Request::Mode, &[])?;
        name.parse().map_err(|_| unexpected("a mode", name))
    }

    /// Sets the mode, of all or of a domain.
    pub fn set_mode(&mut self, mode: Mode, domain: Option<&str>) -> Result<(), ClientError> {
        self.request(&Request::SetMode { mode, domain: domain.map(str::to_owned) }, &[]).map(drop)
    }

    /// Puts a built policy in force and gives the number of its generation.
    pub fn reload(
        &mut self,
        policy: BorrowedFd<'_>,
        accept_missing: bool,
        sanity: Option<BorrowedFd<'_>>,
    ) -> Result<u32, ClientError> {
        let with: Vec<BorrowedFd<'_>> = [policy].into_iter().chain(sanity).collect();
        let number = self.word(&Request::Reload { accept_missing }, &with)?;
        number.parse().map_err(|_| unexpected("a number", number))
    }

    /// Has a built policy asked beside the one in force; the contexts in use that it does not permit.
    pub fn start_shadow(&mut self, policy: BorrowedFd<'_>) -> Result<Vec<String>, ClientError> {
        self.request(&Request::StartShadow, &[policy])
    }

    /// Asks it no longer.
    pub fn stop_shadow(&mut self) -> Result<(), ClientError> {
        self.request(&Request::StopShadow, &[]).map(drop)
    }

    /// What it would have decided otherwise; `None` when no policy is asked beside the one in force.
    pub fn shadow(&mut self) -> Result<Option<Report>, ClientError> {
        let json = self.word(&Request::Shadow, &[])?;
        if json.is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&json).map(Some).map_err(|_| unexpected("differences", json))
    }

    /// The units that have a context, as unit files are now.
    pub fn units(&mut self) -> Result<Vec<Unit>, ClientError> {
        let json = self.word(&Request::Units, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("units", json))
    }

    /// Services as they should be and as they are.
    pub fn services(&mut self) -> Result<Vec<Service>, ClientError> {
        let json = self.word(&Request::Services, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("services", json))
    }

    /// Takes what runs for what should.
    pub fn accept_services(&mut self) -> Result<(), ClientError> {
        self.request(&Request::AcceptServices, &[]).map(drop)
    }

    /// Whether a context is one of the policy in force, and why not.
    pub fn is_context(&mut self, context: &str) -> Result<(), ClientError> {
        self.request(&Request::Sid { attribute: Attribute::Exec, context: context.to_owned() }, &[]).map(drop)
    }

    /// Ends enforcement.
    pub fn stop(&mut self) -> Result<(), ClientError> {
        self.request(&Request::Stop, &[]).map(drop)
    }

    /// A context of this thread, or of the process of a pidfd; `None` where none is set.
    pub fn context(
        &mut self,
        attribute: Attribute,
        process: Option<BorrowedFd<'_>>,
    ) -> Result<Option<String>, ClientError> {
        // What asks is the process, which is its first thread.
        let thread = if process.is_none() { other_thread()? } else { None };
        let with: Vec<BorrowedFd<'_>> = process.or(thread.as_ref().map(AsFd::as_fd)).into_iter().collect();
        let context = self.word(&Request::Get(attribute), &with)?;
        Ok(Some(context).filter(|context| !context.is_empty()))
    }

    /// Sets a context of the calling thread. The connection ends: it is a descriptor, which a thread that enters another
    /// domain would have to be allowed to use there.
    pub fn set_context(mut self, attribute: Attribute, context: &str) -> Result<(), ClientError> {
        let sid = self.word(&Request::Sid { attribute, context: context.to_owned() }, &[])?;
        drop(self);
        set(attribute, sid.parse().map_err(|_| unexpected("a SID", sid))?).map_err(ClientError::Kernel)
    }

    /// What a SID stands for.
    pub fn text(&mut self, sid: u32) -> Result<String, ClientError> {
        self.word(&Request::Text(sid), &[])
    }

    /// What has no label of its own is labelled.
    pub fn unlabelled(&mut self) -> Result<String, ClientError> {
        self.text(SECINITSID_UNLABELED)
    }

    /// What a context may do to another.
    pub fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, ClientError> {
        let [source, target, class] = [source, target, class].map(str::to_owned);
        self.request(&Request::Access { source, target, class }, &[])
    }

    /// An object's label.
    pub fn label(&mut self, object: BorrowedFd<'_>) -> Result<String, ClientError> {
        self.word(&Request::Label, &[object])
    }

    /// Sets an object's label and gives the one before.
    pub fn set_label(&mut self, object: BorrowedFd<'_>, context: &str) -> Result<String, ClientError> {
        self.word(&Request::SetLabel(context.to_owned()), &[object])
    }

    /// The label that the policy's file_contexts give to an object.
    pub fn default_label(&mut self, object: BorrowedFd<'_>) -> Result<Option<String>, ClientError> {
        let context = self.word(&Request::DefaultLabel, &[object])?;
        Ok(Some(context).filter(|context| !context.is_empty()))
    }

    /// How often object managers were asked.
    pub fn statistics(&mut self) -> Result<Vec<Manager>, ClientError> {
        let json = self.word(&Request::Statistics, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("statistics", json))
    }

    /// Whether they count.
    pub fn count(&mut self, on: bool) -> Result<(), ClientError> {
        self.request(&Request::Count(on), &[]).map(drop)
    }

    /// The answer of one word.
    fn word(&mut self, request: &Request, with: &[BorrowedFd<'_>]) -> Result<String, ClientError> {
        let mut words = self.request(request, with)?;
        match words.pop() {
            Some(word) if words.is_empty() => Ok(word),
            _ => Err(unexpected("one word", format!("{} words", words.len()))),
        }
    }

    fn send(&mut self, line: &str, with: &[BorrowedFd<'_>]) -> Result<(), ClientError> {
        let (mut bytes, mut with) = (line.as_bytes(), with);
        while !bytes.is_empty() {
            let sent = match wire::send(self.socket.get_ref(), bytes, with, MsgFlags::empty()) {
                Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => return Err(self.why_closed(cause)),
                other => other?,
            };
            (bytes, with) = (&bytes[sent..], &[]);
        }
        Ok(())
    }

    /// What the daemon said before it closed the connection, if it did.
    fn why_closed(&mut self, cause: io::Error) -> ClientError {
        match self.line().map(|line| parse_reply(&line)) {
            Ok(Ok(Err(refusal))) => refusal.into(),
            _ => cause.into(),
        }
    }

    fn line(&mut self) -> Result<Vec<u8>, ClientError> {
        let mut line = Vec::new();
        self.socket.by_ref().take(LONGEST_REPLY as u64 + 1).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(line)
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

/// Waits for the daemon's greeting, unless the daemon is stopped or frozen.
fn await_greeting(socket: &UnixStream) -> Result<(), ClientError> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let mut greeted = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut greeted, LOOK) {
            Err(Errno::EINTR) | Ok(0) => {}
            Err(cause) => return Err(io::Error::from(cause).into()),
            Ok(_) => return Ok(()),
        }
        let process = getsockopt(socket, PeerCredentials).map_err(io::Error::from)?.pid();
        if let Some(why) = halted::halted(process) {
            return Err(ClientError::Halted { process, why });
        }
    }
    Ok(())
}

fn unconnected(path: &Path, cause: io::Error) -> ClientError {
    let socket = path.display().to_string();
    match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ClientError::NoDaemon { socket, cause },
        _ => ClientError::Unreachable { socket, cause },
    }
}

fn unexpected(expected: &'static str, got: String) -> ClientError {
    ProtocolError::Unexpected { expected, got: got.chars().take(80).collect() }.into()
}

/// Gives the calling thread a SID, or with 0 takes it away: the kernel decides (the hook task_prctl of `bpf/attribute.h`).
fn set(attribute: Attribute, sid: u32) -> Result<(), Errno> {
    let attribute = match attribute {
        Attribute::Current => TG_ATTRIBUTE_CURRENT,
        Attribute::Exec => TG_ATTRIBUTE_EXEC,
        Attribute::FsCreate => TG_ATTRIBUTE_FSCREATE,
        Attribute::KeyCreate => TG_ATTRIBUTE_KEYCREATE,
        Attribute::SockCreate => TG_ATTRIBUTE_SOCKCREATE,
        Attribute::Previous => return Err(Errno::EINVAL),
    };
    // A reader of /proc may hold the address space for a moment, and make the process look like one of several threads; or
    // the credentials, which are not the thread's own then.
    for _ in 0..TRIES {
        if attribute == TG_ATTRIBUTE_CURRENT {
            renew_credentials()?;
        }
        match order(attribute, sid) {
            Err(Errno::EAGAIN) => thread::sleep(PAUSE),
            other => return other,
        }
    }
    Err(Errno::EPERM)
}

/// Gives the calling thread credentials of its own, the same as before: by those that it has it is known who opened files
/// with them.
fn renew_credentials() -> Result<(), Errno> {
    // SAFETY: these options take integers only.
    let kept = Errno::result(unsafe { libc::prctl(libc::PR_GET_KEEPCAPS, 0u64, 0u64, 0u64, 0u64) })?;
    // SAFETY: as above.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, u64::from(kept != 0), 0u64, 0u64, 0u64) }).map(drop)
}

fn order(attribute: u32, value: u32) -> Result<(), Errno> {
    // SAFETY: an option that no kernel knows takes integers only.
    let done = unsafe { libc::prctl(TG_PRCTL as i32, u64::from(attribute), u64::from(value), 0u64, 0u64) };
    match Errno::result(done) {
        // A hook cannot say "done": where it returns 0 the kernel goes on, and knows no such option.
        Err(Errno::EALREADY) => Ok(()),
        Err(errno) => Err(errno),
        Ok(_) => Err(Errno::EINVAL),
    }
}

/// The calling thread, unless it is the process's first; kernels before 6.9 have no pidfd for it.
fn other_thread() -> io::Result<Option<OwnedFd>> {
    let thread = gettid();
    if thread == getpid() { Ok(None) } else { pidfd::open_thread(thread.as_raw()).map(Some) }
}

/// A process by its number, to ask for the context of.
pub fn process(pid: i32) -> io::Result<OwnedFd> {
    pidfd::open(pid)
}

/// Grants what is denied to the calling thread, and to what it starts, and audits it. Only unconfined root may.
pub fn be_permissive() -> Result<(), ClientError> {
    order(TG_ATTRIBUTE_PERMISSIVE, 1).map_err(ClientError::Kernel)
}

/// Takes an attribute of the calling thread away: the policy's rules hold again.
pub fn clear_context(attribute: Attribute) -> Result<(), ClientError> {
    set(attribute, 0).map_err(ClientError::Kernel)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn says_that_nobody_listens_only_where_that_is_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let failure = |path: &Path| Client::connect_to(path).unwrap_err();
        let none = folder.path().join("none");
        assert!(matches!(failure(&none), ClientError::NoDaemon { .. }));
        assert!(matches!(failure(&file), ClientError::NoDaemon { .. }));
        let other = failure(&file.join("socket"));
        assert!(matches!(other, ClientError::Unreachable { .. }), "{other}");
        assert!(other.to_string().contains("Not a directory"), "{other}");
    }
}
