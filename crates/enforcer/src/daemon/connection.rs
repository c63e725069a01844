//! A connection: bytes in, requests out, replies back. Nothing ever waits for the client.

use std::{
    fmt::Write,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use nix::{
    poll::PollFlags,
    sys::socket::{MsgFlags, setsockopt, sockopt::PassCred},
};
use tollgate_client::{
    protocol::{MAX_REPLY_LENGTH, MAX_REQUEST_LENGTH, Refusal, Reply, Request, greeting, hello, reply_line},
    wire::{MAX_DESCRIPTORS, receive, send},
};

use super::{peer::Peer, places::Seat};
use crate::shares::Holder;

/// How long a connection may be idle.
/// The limit need not be short, because an idle connection is closed earlier when others need its place.
/// A client that gets no processor for a while must not lose its connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// How long the greeting, a request that has begun, or a reply may take: as long as a client waits for the daemon.
const BUSY_TIMEOUT: Duration = Duration::from_secs(120);

/// A connection, with the bytes that have come and those that are still to be sent.
#[derive(Debug)]
pub(super) struct Connection {
    socket: UnixStream,
    pub(super) peer: Peer,
    /// The line that the client must send first; `None`: it has.
    hello: Option<String>,
    input: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    output: Vec<u8>,
    deadline: Instant,
    /// When the last bytes came.
    heard: Instant,
    /// Whether the client's domain is confined.
    pub(super) confined: bool,
    /// The holder in whose share the connection counts.
    pub(super) holder: Holder,
    /// Whether the connection ends when its output has been sent.
    closing: bool,
    /// Whether this client has requested that statistics be counted.
    pub(super) counts: bool,
}

/// What a connection yields when it is looked at.
#[derive(Debug)]
pub(super) enum Come {
    /// Nothing yet.
    Nothing,
    /// A request with its descriptors.
    Request(Request, Vec<OwnedFd>),
    /// The client is gone, or does not follow the protocol.
    End,
}

impl Connection {
    /// Takes a new connection and greets the client.
    pub(super) fn new(socket: UnixStream, now: Instant) -> io::Result<Self> {
        setsockopt(&socket, PassCred, &true)?;
        let peer = Peer::of(&socket)?;
        let greeting = greeting(&nonce()?);
        let hello = hello(greeting.trim_end().as_bytes()).map_err(io::Error::other)?;
        Ok(Self {
            socket,
            peer,
            hello: Some(hello),
            input: Vec::new(),
            descriptors: Vec::new(),
            output: greeting.into_bytes(),
            deadline: now + BUSY_TIMEOUT,
            heard: now,
            confined: true,
            holder: Holder::Machine,
            closing: false,
            counts: false,
        })
    }

    /// The descriptor to wait for, and the events on it.
    pub(super) fn interest(&self) -> (BorrowedFd<'_>, PollFlags) {
        // Nothing more is read until the reply has been sent.
        let flags = if self.output.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLOUT };
        (self.socket.as_fd(), flags)
    }

    /// After what time the connection must be looked at again even if nothing comes.
    pub(super) fn due(&self, now: Instant) -> Duration {
        if self.output.is_empty() && self.has_line() {
            Duration::ZERO
        } else {
            self.deadline.saturating_duration_since(now)
        }
    }

    /// The connection as it counts for its place.
    pub(super) fn seat(&self) -> Seat {
        Seat { holder: self.holder, confined: self.confined, heard: self.heard }
    }

    /// Tells the client that there are too many connections, if that can be sent at once and nothing else is being
    /// sent.
    pub(super) fn turn_away(&mut self) {
        // Before the client's hello, the output is the greeting.
        if self.output.is_empty() || self.hello.is_some() {
            let refusal = Refusal::new(libc::EAGAIN, "too many connections to the daemon: try again later");
            self.output = reply_line(&Err(refusal)).into_bytes();
            let _ = self.write(Instant::now());
        }
    }

    fn has_line(&self) -> bool {
        self.input.contains(&b'\n')
    }

    /// Queues a reply.
    pub(super) fn reply(&mut self, reply: &Reply, now: Instant) {
        let mut line = reply_line(reply);
        if line.len() > MAX_REPLY_LENGTH {
            line = reply_line(&Err(Refusal::new(libc::EMSGSIZE, "the reply is too long")));
        }
        self.output.extend(line.into_bytes());
        self.deadline = now + BUSY_TIMEOUT;
    }

    /// Does what can be done without waiting.
    pub(super) fn advance(&mut self, now: Instant) -> Come {
        self.step(now).unwrap_or(Come::End)
    }

    fn step(&mut self, now: Instant) -> io::Result<Come> {
        self.write(now)?;
        if !self.output.is_empty() {
            return Ok(self.nothing(now));
        }
        if self.closing {
            return Ok(Come::End);
        }
        if !self.has_line() && !self.read(now)? {
            return Ok(Come::End);
        }
        let Some(end) = self.input.iter().position(|byte| *byte == b'\n') else {
            if self.input.len() > MAX_REQUEST_LENGTH {
                self.refuse(libc::EMSGSIZE, "the request is longer than 16384 bytes", now);
                return Ok(Come::Nothing);
            }
            return Ok(self.nothing(now));
        };
        let line: Vec<u8> = self.input.drain(..=end).collect();
        self.deadline = now + IDLE_TIMEOUT;
        if let Some(expected) = self.hello.take() {
            if line != expected.as_bytes() {
                self.refuse(libc::EPROTO, "the first line is not hello and the nonce of the greeting", now);
            }
            return Ok(Come::Nothing);
        }
        match Request::parse(&line[..end]) {
            Ok(request) => Ok(Come::Request(request, std::mem::take(&mut self.descriptors))),
            Err(cause) => {
                self.refuse(libc::EPROTO, &cause.to_string(), now);
                Ok(Come::Nothing)
            }
        }
    }

    /// Nothing has come. A time-out counts only now, after a look: what the client sent in time may have waited for the
    /// daemon, which was busy with a reload, for example.
    fn nothing(&self, now: Instant) -> Come {
        if now >= self.deadline { Come::End } else { Come::Nothing }
    }

    fn refuse(&mut self, errno: i32, text: &str, now: Instant) {
        self.reply(&Err(Refusal::new(errno, text)), now);
        self.closing = true;
    }

    /// Sends what can be sent without waiting.
    pub(super) fn write(&mut self, now: Instant) -> io::Result<()> {
        while !self.output.is_empty() {
            match send(&self.socket, &self.output, &[], MsgFlags::MSG_DONTWAIT) {
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(cause) => return Err(cause),
                Ok(sent) => {
                    self.output.drain(..sent);
                }
            }
            self.deadline = now + if self.hello.is_some() { BUSY_TIMEOUT } else { IDLE_TIMEOUT };
        }
        Ok(())
    }

    /// Receives what has come. Returns whether the client is still there and is still the same process.
    fn read(&mut self, now: Instant) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let Some(received) = receive(&self.socket, &mut buffer, MsgFlags::MSG_DONTWAIT)? else { return Ok(true) };
        // A socket can be passed to other processes. Only the one that connected may use it.
        if received.length == 0 || !self.peer.sent(received.sender) {
            return Ok(false);
        }
        self.heard = now;
        if self.input.is_empty() {
            self.deadline = now + BUSY_TIMEOUT;
        }
        self.input.extend_from_slice(&buffer[..received.length]);
        self.descriptors.extend(received.descriptors);
        Ok(self.descriptors.len() <= MAX_DESCRIPTORS)
    }
}

/// A word that nobody can know before it is sent.
fn nonce() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: the pointer is to as many bytes as are said.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes.iter().fold(String::new(), |mut nonce, byte| {
        let _ = write!(nonce, "{byte:02x}");
        nonce
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;

    /// A connection that has greeted then, and its caller.
    fn greeted(then: Instant) -> (Connection, BufReader<UnixStream>, String) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours, then).unwrap();
        assert!(matches!(connection.advance(then), Come::Nothing));
        let mut theirs = BufReader::new(theirs);
        let mut greeting = String::new();
        theirs.read_line(&mut greeting).unwrap();
        (connection, theirs, hello(greeting.trim_end().as_bytes()).unwrap())
    }

    #[test]
    fn hears_what_was_said_while_nobody_listened() {
        let then = Instant::now();
        let (mut connection, mut caller, hello) = greeted(then);
        caller.get_mut().write_all(format!("{hello}{}", r#"{"request":"status"}"#).as_bytes()).unwrap();
        let later = then + 2 * IDLE_TIMEOUT;
        assert!(matches!(connection.advance(later), Come::Nothing));
        caller.get_mut().write_all(b"\n").unwrap();
        let latest = later + 2 * IDLE_TIMEOUT;
        assert!(!matches!(connection.advance(latest), Come::End));
    }

    #[test]
    fn waits_for_a_caller_who_gets_no_processor_for_a_while() {
        let then = Instant::now();
        let (mut connection, mut caller, hello) = greeted(then);
        let later = then + Duration::from_secs(60);
        assert!(matches!(connection.advance(later), Come::Nothing));
        caller.get_mut().write_all(hello.as_bytes()).unwrap();
        assert!(matches!(connection.advance(later), Come::Nothing));
        caller.get_mut().write_all(b"mode\n").unwrap();
        let later = later + Duration::from_secs(60);
        assert!(matches!(connection.advance(later), Come::Request(Request::Mode, _)));
    }

    #[test]
    fn leaves_who_says_nothing_or_only_half_of_it() {
        let then = Instant::now();
        let (mut silent, _caller, _) = greeted(then);
        assert!(matches!(silent.advance(then + BUSY_TIMEOUT), Come::End));
        let (mut slow, mut caller, hello) = greeted(then);
        for byte in hello.bytes().take(3) {
            caller.get_mut().write_all(&[byte]).unwrap();
            assert!(matches!(slow.advance(then + BUSY_TIMEOUT / 2), Come::Nothing));
        }
        caller.get_mut().write_all(b"x").unwrap();
        assert!(matches!(slow.advance(then + 2 * BUSY_TIMEOUT), Come::End));
    }
}
