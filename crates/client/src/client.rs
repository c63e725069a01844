//! The daemon's clients.

mod attribute;
mod containers;
mod fleet;
mod halted;
mod network;
mod peers;

use std::{
    io::{self, BufRead, BufReader, Read},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::{Duration, Instant},
};

use attribute::set;
pub use attribute::{be_permissive, clear_context};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, poll},
    sys::socket::{MsgFlags, getsockopt, sockopt::PeerCredentials},
    unistd::{getpid, gettid},
};
pub use peers::Acted;
use tollgate_abi::enforcer::SECINITSID_UNLABELED;

use crate::{
    pidfd,
    protocol::{Attribute, MAX_REPLY_LENGTH, Mode, ProtocolError, Refusal, Request, SOCKET, hello, parse_reply},
    services::Service,
    shadow::Report,
    status::{Manager, Status},
    units::Unit,
    why::Why,
    wire,
};

/// How long the daemon may take to answer. It puts large policies in force within seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// After how many milliseconds without a greeting this client checks whether the daemon is stopped or frozen.
const HALTED_CHECK_INTERVAL_MS: u16 = 2000;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No daemon listens on the socket: nothing is enforced, or the daemon has ended.
    #[error("no daemon answers on {socket} ({cause}): start it with `tollgate enforce POLICY`")]
    NoDaemon {
        /// Path of the socket.
        socket: String,
        /// What connect(2) returned.
        cause: io::Error,
    },
    /// A daemon may be listening, but this process cannot reach it.
    #[error("cannot connect to the daemon on {socket}: {cause}")]
    Unreachable {
        /// Path of the socket.
        socket: String,
        /// What connect(2) returned, for example EACCES.
        cause: io::Error,
    },
    /// The daemon listens but does not run. Enforcement goes on without it.
    #[error("the daemon, process {process}, does not answer: {why}; enforcement goes on")]
    Halted {
        /// The daemon's process number.
        process: i32,
        /// The reason, and the command that lets the daemon continue.
        why: String,
    },
    /// The connection broke while the request was under way.
    #[error("the connection to the daemon broke: {0}")]
    Broken(#[from] io::Error),
    /// The answer is not of this version of the protocol.
    #[error("the daemon's answer is not of this version of the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// The daemon refused the request; the refusal has an errno and a reason.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The kernel refused to set the context of the calling thread.
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

/// A connection to the daemon. It serves one request at a time.
#[derive(Debug)]
pub struct Client {
    socket: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the daemon on [`SOCKET`].
    ///
    /// # Errors
    ///
    /// [`ClientError::NoDaemon`] if no daemon listens: start it, or go on without enforcement.
    /// [`ClientError::Unreachable`] if this process may not connect, and [`ClientError::Halted`] if the daemon is
    /// stopped or frozen.
    pub fn connect() -> Result<Self, ClientError> {
        Self::connect_to(Path::new(SOCKET))
    }

    /// Connects to a daemon that listens on another socket. The errors are those of [`Client::connect`].
    pub fn connect_to(path: &Path) -> Result<Self, ClientError> {
        let socket = UnixStream::connect(path).map_err(|cause| unconnected(path, cause))?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        socket.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        await_greeting(&socket)?;
        let mut client = Self { socket: BufReader::new(socket) };
        let greeting = client.line()?;
        // A daemon that turns this client away sends a refusal in place of the greeting.
        if let Ok(Err(refusal)) = parse_reply(&greeting) {
            return Err(refusal.into());
        }
        client.send(&hello(&greeting)?, &[])?;
        Ok(client)
    }

    /// Sends a request with its descriptors, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] if the daemon does not do it; its `errno` says why, as docs/library.md lists.
    /// Any other error ends the connection: connect again.
    pub fn request(&mut self, request: &Request, with: &[BorrowedFd<'_>]) -> Result<Vec<String>, ClientError> {
        self.send(&request.line(), with)?;
        let line = self.line()?;
        Ok(parse_reply(&line)??)
    }

    /// What is enforced, since when, and what failed.
    pub fn status(&mut self) -> Result<Status, ClientError> {
        let json = self.word(&Request::Status, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("a status", json))
    }

    /// Why hooks have programs, or have none: one hook, or all that have a program in the daemon's version.
    pub fn why(&mut self, hook: Option<&str>) -> Result<Vec<Why>, ClientError> {
        let json = self.word(&Request::Why(hook.map(str::to_owned)), &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("reasons", json))
    }

    /// The mode of all domains that have none of their own.
    pub fn mode(&mut self) -> Result<Mode, ClientError> {
        let name = self.word(&Request::Mode, &[])?;
        name.parse().map_err(|_| unexpected("a mode", name))
    }

    /// Sets the mode, of all domains or of the one with the type `domain`.
    pub fn set_mode(&mut self, mode: Mode, domain: Option<&str>) -> Result<(), ClientError> {
        self.request(&Request::SetMode { mode, domain: domain.map(str::to_owned) }, &[]).map(drop)
    }

    /// Puts a built policy in force and returns the number of its generation.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] if the policy cannot be put in force, or a sanity question fails. The policy before
    /// stays in force.
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

    /// Makes a built policy the candidate: it is checked beside the policy in force. Returns the contexts in use that
    /// it does not permit.
    pub fn start_shadow(&mut self, policy: BorrowedFd<'_>) -> Result<Vec<String>, ClientError> {
        self.request(&Request::StartShadow, &[policy])
    }

    /// Stops checking the candidate.
    pub fn stop_shadow(&mut self) -> Result<(), ClientError> {
        self.request(&Request::StopShadow, &[]).map(drop)
    }

    /// What the candidate would have decided otherwise; `None` when there is no candidate.
    pub fn shadow(&mut self) -> Result<Option<Report>, ClientError> {
        let json = self.word(&Request::Shadow, &[])?;
        if json.is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&json).map(Some).map_err(|_| unexpected("differences", json))
    }

    /// The units that have a context, as their unit files are now.
    pub fn units(&mut self) -> Result<Vec<Unit>, ClientError> {
        let json = self.word(&Request::Units, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("units", json))
    }

    /// Each service with the domain that is expected of it and the domains that it runs in.
    pub fn services(&mut self) -> Result<Vec<Service>, ClientError> {
        let json = self.word(&Request::Services, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("services", json))
    }

    /// Makes what runs now what is expected of each service.
    pub fn accept_services(&mut self) -> Result<(), ClientError> {
        self.request(&Request::AcceptServices, &[]).map(drop)
    }

    /// Checks whether a context is valid in the policy in force.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] with the reason if it is not.
    pub fn is_context(&mut self, context: &str) -> Result<(), ClientError> {
        self.request(&Request::Sid { attribute: Attribute::Exec, context: context.to_owned() }, &[]).map(drop)
    }

    /// Ends enforcement. All processes are unconfined afterwards.
    pub fn stop(&mut self) -> Result<(), ClientError> {
        self.request(&Request::Stop, &[]).map(drop)
    }

    /// A context of this thread, or of the process of a pidfd; `None` when that attribute is not set.
    pub fn context(
        &mut self,
        attribute: Attribute,
        process: Option<BorrowedFd<'_>>,
    ) -> Result<Option<String>, ClientError> {
        // The daemon sees the calling process, which means its first thread.
        let thread = if process.is_none() { other_thread()? } else { None };
        let with: Vec<BorrowedFd<'_>> = process.or(thread.as_ref().map(AsFd::as_fd)).into_iter().collect();
        let context = self.word(&Request::Get(attribute), &with)?;
        Ok(Some(context).filter(|context| !context.is_empty()))
    }

    /// Sets a context of the calling thread.
    ///
    /// This ends the connection: the socket is a descriptor, and a thread that enters another domain would need
    /// permission to use it there.
    ///
    /// # Errors
    ///
    /// [`ClientError::Kernel`] if the policy does not allow it (EACCES), if the process has several threads (EPERM), or
    /// if nothing is enforced (EINVAL).
    pub fn set_context(mut self, attribute: Attribute, context: &str) -> Result<(), ClientError> {
        let sid = self.word(&Request::Sid { attribute, context: context.to_owned() }, &[])?;
        drop(self);
        set(attribute, sid.parse().map_err(|_| unexpected("a SID", sid))?).map_err(ClientError::Kernel)
    }

    /// The context that a SID stands for.
    pub fn text(&mut self, sid: u32) -> Result<String, ClientError> {
        self.word(&Request::Text(sid), &[])
    }

    /// The context of objects that have no label of their own.
    pub fn unlabelled(&mut self) -> Result<String, ClientError> {
        self.text(SECINITSID_UNLABELED)
    }

    /// The names of the permissions that context `source` has on objects with context `target`.
    pub fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, ClientError> {
        let [source, target, class] = [source, target, class].map(str::to_owned);
        self.request(&Request::Access { source, target, class }, &[])
    }

    /// The label of an object that is open.
    pub fn label(&mut self, object: BorrowedFd<'_>) -> Result<String, ClientError> {
        self.word(&Request::Label, &[object])
    }

    /// Sets the label of an object and returns the label that it had before.
    pub fn set_label(&mut self, object: BorrowedFd<'_>, context: &str) -> Result<String, ClientError> {
        self.word(&Request::SetLabel(context.to_owned()), &[object])
    }

    /// The label that the policy's `file_contexts` give to an object; `None` when they name none.
    pub fn default_label(&mut self, object: BorrowedFd<'_>) -> Result<Option<String>, ClientError> {
        let context = self.word(&Request::DefaultLabel, &[object])?;
        Ok(Some(context).filter(|context| !context.is_empty()))
    }

    /// How often each object manager checked something. All numbers are 0 until they count ([`Client::count`]).
    pub fn statistics(&mut self) -> Result<Vec<Manager>, ClientError> {
        let json = self.word(&Request::Statistics, &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("statistics", json))
    }

    /// Switches the counters of the object managers on or off.
    pub fn count(&mut self, on: bool) -> Result<(), ClientError> {
        self.request(&Request::Count(on), &[]).map(drop)
    }

    /// The one word of an answer.
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

    /// The refusal that the daemon sent before it closed the connection, if it sent one; else `cause`.
    fn why_closed(&mut self, cause: io::Error) -> ClientError {
        match self.line().map(|line| parse_reply(&line)) {
            Ok(Ok(Err(refusal))) => refusal.into(),
            _ => cause.into(),
        }
    }

    fn line(&mut self) -> Result<Vec<u8>, ClientError> {
        let mut line = Vec::new();
        self.socket.by_ref().take(MAX_REPLY_LENGTH as u64 + 1).read_until(b'\n', &mut line)?;
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

/// Waits for the daemon's greeting. Returns an error early if the daemon is stopped or frozen.
fn await_greeting(socket: &UnixStream) -> Result<(), ClientError> {
    let until = Instant::now() + ANSWER_TIMEOUT;
    while Instant::now() < until {
        let mut greeted = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut greeted, HALTED_CHECK_INTERVAL_MS) {
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

/// The calling thread, unless it is the first of the process. Kernels before 6.9 have no pidfd for a thread.
fn other_thread() -> io::Result<Option<OwnedFd>> {
    let thread = gettid();
    if thread == getpid() { Ok(None) } else { pidfd::open_thread(thread.as_raw()).map(Some) }
}

/// Opens a process by its number, for [`Client::context`].
pub fn process(pid: i32) -> io::Result<OwnedFd> {
    pidfd::open(pid)
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
