//! The daemon's server: it answers clients on a socket until it is to end. Enforcement goes on without it.

mod connection;
pub mod devices;
pub mod doing;
pub mod enforced;
pub mod extension;
pub mod fleet;
mod gaps;
mod lock;
pub mod machine;
mod messages;
pub mod notify;
mod object;
mod orders;
mod peer;
mod places;
pub mod signals;
#[cfg(test)]
mod tests;
mod trace;

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::{
    fcntl::Flock,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::MsgFlags,
    unistd::{dup2_stderr, dup2_stdout},
};
use tollgate_client::{protocol::Refusal, wire};
use tracing::error;

use self::{
    connection::{Come, Connection},
    fleet::{Fleet, FleetError},
    machine::{Database, Machine, Ready},
    places::{MAX_CONNECTIONS, Place},
};
use crate::shares::Holder;

/// How often the daemon looks for changes that no descriptor announces.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Another daemon is listening.
    #[error(
        "a daemon runs already (process {}): `tollgate status` asks it, `tollgate reload POLICY` gives it another policy",
        .0.as_deref().unwrap_or("unknown")
    )]
    Second(Option<String>),
    /// A process that is not a daemon has locked the daemon's file.
    #[error(
        "{} is locked by {}, which is no daemon: end it with `kill`, or remove the file",
        .path.display(), if .holders.is_empty() { "a process that cannot be found" } else { .holders }
    )]
    Held {
        /// Path of the lock.
        path: PathBuf,
        /// The processes that hold it, in words.
        holders: String,
    },
    /// The socket or the lock could not be created.
    #[error("cannot {what} {}: {cause}", .path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// Waiting for events failed.
    #[error("cannot wait for clients: {0}")]
    Wait(#[from] io::Error),
}

/// Why the daemon has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A signal requested it. Enforcement goes on.
    Signal,
    /// Enforcement was ended.
    Stopped,
}

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To end the daemon (SIGTERM, SIGINT).
    End,
    /// To read the policy again (SIGHUP).
    Reread,
}

/// The daemon's listening socket, and the lock of its directory, which only one daemon can have.
#[derive(Debug)]
pub struct Daemon {
    listener: UnixListener,
    socket: PathBuf,
    connections: Vec<Connection>,
    /// The fleet of this node, or why there is none.
    fleet: Result<Fleet, Refusal>,
    _lock: Flock<File>,
}

impl Daemon {
    /// Becomes the daemon of a directory, which is created if necessary: takes its lock and listens on its socket.
    pub fn listen(folder: &Path) -> Result<Self, DaemonError> {
        let error = |what, path: &Path| {
            let path = path.to_owned();
            move |cause| DaemonError::Io { what, path, cause }
        };
        let lock = Self::lock(folder)?;
        let socket = folder.join("socket");
        // The socket of a daemon that was killed. Whoever has the lock may remove it.
        match fs::remove_file(&socket) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(error("remove", &socket)(cause)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(error("listen on", &socket))?;
        // Every process may connect. Each request is then checked by itself.
        fs::set_permissions(&socket, Permissions::from_mode(0o666)).map_err(error("open to all", &socket))?;
        listener.set_nonblocking(true).map_err(error("listen on", &socket))?;
        Ok(Self { listener, socket, connections: Vec::new(), fleet: Err(fleet::none()), _lock: lock })
    }

    /// Takes what the agent of this fleet offers from now on. If its files are wrong, the agent is told so.
    pub fn join(&mut self, fleet: Result<Fleet, FleetError>) {
        self.fleet = fleet.map_err(|cause| Refusal::new(libc::EIO, cause.to_string()));
    }

    /// Becomes the daemon of a directory, which is created if necessary, without listening: for a daemon that serves nobody.
    pub fn lock(folder: &Path) -> Result<Flock<File>, DaemonError> {
        let error = |cause| DaemonError::Io { what: "make", path: folder.to_owned(), cause };
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(error)?;
        lock::take(&folder.join("lock"))
    }

    /// Tells the service manager, if there is one, that the daemon answers, and gives it the pins' directory to keep.
    pub fn ready(&self, pins: Option<BorrowedFd<'_>>) -> io::Result<()> {
        notify::ready(pins)
    }

    /// Detaches from the terminal on which it was started. Its messages go to a file from now on.
    pub fn leave_terminal(log: &Path) -> Result<(), DaemonError> {
        let error = |cause| DaemonError::Io { what: "write", path: log.to_owned(), cause };
        let file = File::options().append(true).create(true).mode(0o600).open(log).map_err(error)?;
        dup2_stdout(&file).and_then(|()| dup2_stderr(&file)).map_err(|cause| error(cause.into()))
    }

    /// Answers clients until the end. `signals` becomes readable when a signal has come; `wishes` says which.
    pub fn run(
        &mut self,
        machine: &mut dyn Machine,
        signals: &UnixStream,
        mut wishes: impl FnMut() -> Option<Wish>,
    ) -> Result<End, DaemonError> {
        if let Ok(fleet) = &self.fleet
            && let Err(refusal) = fleet.begin(machine)
        {
            error!("the machine may be permissive from an earlier trial: {refusal}; see `tollgate mode`");
        }
        loop {
            let (called, ready) = self.wait(machine, signals)?;
            match wishes() {
                Some(Wish::End) => {
                    machine.end();
                    return Ok(End::Signal);
                }
                Some(Wish::Reread) => {
                    if let Err(refusal) = machine.reread(Database::Present) {
                        error!("the policy in force stays: {refusal}");
                    }
                }
                None => {}
            }
            machine.wake(&ready);
            if let Ok(fleet) = &mut self.fleet {
                fleet.wake(machine, Instant::now());
            }
            if called {
                self.accept(machine);
            }
            if self.serve(machine) {
                return Ok(End::Stopped);
            }
            // Also when the client that wanted the counts is gone.
            machine.count(self.connections.iter().any(|connection| connection.counts));
        }
    }

    /// Waits until something can be done. Returns whether clients wait to be accepted, and what the machine has to read.
    fn wait(&self, machine: &dyn Machine, signals: &UnixStream) -> io::Result<(bool, Ready)> {
        let own = machine.wakes();
        // SAFETY: the machine, which is borrowed for as long, keeps them open.
        let wakes: Vec<BorrowedFd<'_>> = own.iter().map(|raw| unsafe { BorrowedFd::borrow_raw(*raw) }).collect();
        let mut waited = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        waited.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        waited.extend(wakes.iter().map(|wake| PollFd::new(*wake, PollFlags::POLLIN)));
        waited.extend(self.connections.iter().map(|connection| {
            let (descriptor, flags) = connection.interest();
            PollFd::new(descriptor, flags)
        }));
        let now = Instant::now();
        let due = machine.due().map(|due| due.saturating_duration_since(now));
        let soonest = self.connections.iter().map(|connection| connection.due(now)).chain(due).min();
        let timeout = PollTimeout::try_from(soonest.map_or(POLL_INTERVAL, |soonest| soonest.min(POLL_INTERVAL)))
            .unwrap_or(PollTimeout::MAX);
        match poll(&mut waited, timeout) {
            Err(nix::errno::Errno::EINTR) => {}
            other => drop(other?),
        }
        let [signalled, called] = [&waited[0], &waited[1]].map(has_come);
        let ready =
            own.iter().zip(&waited[2..]).filter(|(_, waited)| has_come(waited)).map(|(wake, _)| *wake).collect();
        let mut buffer = [0; 64];
        if signalled {
            while wire::receive(signals, &mut buffer, MsgFlags::MSG_DONTWAIT)?.is_some_and(|came| came.length > 0) {}
        }
        Ok((called, Ready(ready)))
    }

    /// Accepts waiting clients, but only a few at a time, so that the connected ones are served as well.
    fn accept(&mut self, machine: &mut dyn Machine) {
        for _ in 0..MAX_CONNECTIONS {
            let Ok((socket, _)) = self.listener.accept() else { return };
            // A client that is gone already is no loss.
            let Ok(mut connection) = Connection::new(socket, Instant::now()) else { continue };
            let Ok(task) = machine.task(connection.peer.process()) else { continue };
            connection.peer.sid = orders::sid_of(task);
            connection.confined = !machine.is_unconfined(connection.peer.sid);
            // The user that the daemon runs as is root whenever something is enforced.
            let uid = if connection.peer.is_root() { 0 } else { machine.main_user(connection.peer.uid) };
            connection.holder = Holder::of(uid, connection.peer.sid, !connection.confined);
            if self.make_place(&connection) {
                self.connections.push(connection);
            } else {
                connection.turn_away();
            }
        }
    }

    /// Whether there is a place for a client. If the place is another client's, that client is told so and
    /// disconnected.
    fn make_place(&mut self, caller: &Connection) -> bool {
        let seats: Vec<_> = self.connections.iter().map(Connection::seat).collect();
        match places::place(caller.holder, caller.confined, &seats, Instant::now()) {
            Place::Free => true,
            Place::Of(number) => {
                self.connections.swap_remove(number).turn_away();
                true
            }
            Place::None => false,
        }
    }

    /// Serves the connections. Returns whether enforcement was ended.
    fn serve(&mut self, machine: &mut dyn Machine) -> bool {
        let mut stopped = false;
        let fleet = &mut self.fleet;
        self.connections.retain_mut(|connection| {
            let now = Instant::now();
            match connection.advance(now) {
                Come::End => false,
                Come::Nothing => true,
                Come::Request(request, descriptors) => {
                    let answer = orders::answer(machine, fleet, &connection.peer, request, descriptors);
                    stopped |= answer.stopped;
                    connection.counts = answer.counts.unwrap_or(connection.counts);
                    // The answer may have taken long.
                    let now = Instant::now();
                    connection.reply(&answer.reply, now);
                    // A short reply is sent at once, so that the last reply of an ending daemon is sent too.
                    connection.write(now).is_ok()
                }
            }
        });
        stopped
    }
}

/// Whether something came. What poll(2) says in words that nix does not know counts.
fn has_come(waited: &PollFd<'_>) -> bool {
    waited.any().unwrap_or(true)
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // If the socket cannot be removed, a client sees that no daemon listens by the refused connection.
        let _ = fs::remove_file(&self.socket);
    }
}
