//! The daemon's face: it answers callers on a socket until it is told to end. Enforcement goes on without it.

mod connection;
pub mod devices;
pub mod doing;
pub mod enforced;
pub mod extension;
mod gaps;
mod lock;
pub mod machine;
pub mod notify;
mod object;
mod orders;
mod peer;
mod places;
pub mod signals;
#[cfg(test)]
mod tests;
mod told;

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
use tollgate_client::wire;
use tracing::error;

use self::{
    connection::{Come, Connection},
    machine::Machine,
    places::{MOST, Place},
};
use crate::shares::Holder;

/// How often is looked after what wakes nobody.
const BEAT: Duration = Duration::from_secs(1);

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Another one does.
    #[error(
        "a daemon runs already (process {}): `tollgate status` asks it, `tollgate reload POLICY` gives it another policy",
        .0.as_deref().unwrap_or("unknown")
    )]
    Second(Option<String>),
    /// Somebody else has locked its file.
    #[error(
        "{} is locked by {}, which is no daemon: end it with `kill`, or remove the file",
        .path.display(), if .holders.is_empty() { "a process that cannot be found" } else { .holders }
    )]
    Held {
        /// The file.
        path: PathBuf,
        /// By whom.
        holders: String,
    },
    /// The socket or the lock could not be made.
    #[error("cannot {what} {}: {cause}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// Waiting failed.
    #[error("cannot wait for callers: {0}")]
    Wait(#[from] io::Error),
}

/// Why the daemon has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was told to; enforcement goes on.
    Signal,
    /// Nothing is enforced any more.
    Stopped,
}

/// What signals say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The daemon is to end (SIGTERM, SIGINT).
    End,
    /// The policy is to be read again (SIGHUP).
    Reread,
}

/// The daemon, listening. Only one has the folder's lock.
#[derive(Debug)]
pub struct Daemon {
    listener: UnixListener,
    socket: PathBuf,
    connections: Vec<Connection>,
    _lock: Flock<File>,
}

impl Daemon {
    /// Becomes the daemon of a folder, which is made if need be: takes its lock and listens on its socket.
    pub fn listen(folder: &Path) -> Result<Self, DaemonError> {
        let error = |what, path: &Path| {
            let path = path.to_owned();
            move |cause| DaemonError::Io { what, path, cause }
        };
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(error("make", folder))?;
        let lock = lock::take(&folder.join("lock"))?;
        let socket = folder.join("socket");
        // That of a daemon that was killed; with the lock it is nobody's.
        match fs::remove_file(&socket) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(error("remove", &socket)(cause)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(error("listen on", &socket))?;
        // Everybody may ask; who may have what is decided for each request.
        fs::set_permissions(&socket, Permissions::from_mode(0o666)).map_err(error("open to all", &socket))?;
        listener.set_nonblocking(true).map_err(error("listen on", &socket))?;
        Ok(Self { listener, socket, connections: Vec::new(), _lock: lock })
    }

    /// Tells the service manager, if there is one, that callers are answered, and has it keep the pins' directory.
    pub fn ready(&self, pins: Option<BorrowedFd<'_>>) -> io::Result<()> {
        notify::ready(pins)
    }

    /// Leaves the terminal that it was started on: what it says goes to a file from now on.
    pub fn leave_terminal(log: &Path) -> Result<(), DaemonError> {
        let error = |cause| DaemonError::Io { what: "write", path: log.to_owned(), cause };
        let file = File::options().append(true).create(true).mode(0o600).open(log).map_err(error)?;
        dup2_stdout(&file).and_then(|()| dup2_stderr(&file)).map_err(|cause| error(cause.into()))
    }

    /// Answers until the end. `signals` can be read from when a signal has come; `wishes` says what it was.
    pub fn run(
        &mut self,
        machine: &mut dyn Machine,
        signals: &UnixStream,
        mut wishes: impl FnMut() -> Option<Wish>,
    ) -> Result<End, DaemonError> {
        loop {
            self.wait(machine, signals)?;
            match wishes() {
                Some(Wish::End) => {
                    machine.end();
                    return Ok(End::Signal);
                }
                Some(Wish::Reread) => {
                    if let Err(refusal) = machine.reread() {
                        error!(%refusal, "the policy stays as it is: {refusal}");
                    }
                }
                None => {}
            }
            machine.wake();
            self.accept(machine);
            if self.serve(machine) {
                return Ok(End::Stopped);
            }
            // Also when who wanted it has gone.
            machine.count(self.connections.iter().any(|connection| connection.counts));
        }
    }

    /// Waits until something can be done.
    fn wait(&self, machine: &dyn Machine, signals: &UnixStream) -> io::Result<()> {
        let wakes = machine.wakes();
        // SAFETY: the machine, which is borrowed for as long, keeps them open.
        let wakes: Vec<BorrowedFd<'_>> = wakes.iter().map(|raw| unsafe { BorrowedFd::borrow_raw(*raw) }).collect();
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
        let timeout =
            PollTimeout::try_from(soonest.map_or(BEAT, |soonest| soonest.min(BEAT))).unwrap_or(PollTimeout::MAX);
        match poll(&mut waited, timeout) {
            Err(nix::errno::Errno::EINTR) => {}
            other => drop(other?),
        }
        let mut buffer = [0; 64];
        while wire::receive(signals, &mut buffer, MsgFlags::MSG_DONTWAIT)?.is_some_and(|came| came.length > 0) {}
        Ok(())
    }

    /// Takes who waits at the door; those who are here are served before more than a few are.
    fn accept(&mut self, machine: &mut dyn Machine) {
        for _ in 0..MOST {
            let Ok((socket, _)) = self.listener.accept() else { return };
            // Who has gone already is no loss.
            let Ok(mut connection) = Connection::new(socket, Instant::now()) else { continue };
            let Ok(task) = machine.task(connection.peer.process()) else { continue };
            connection.peer.sid = orders::sid_of(task);
            connection.confined = !machine.is_unconfined(connection.peer.sid);
            // The user that the daemon runs as is root, where there is something to enforce with.
            let uid = if connection.peer.is_root() { 0 } else { machine.main_user(connection.peer.uid) };
            connection.holder = Holder::of(uid, connection.peer.sid, !connection.confined);
            if self.make_place(&connection) {
                self.connections.push(connection);
            } else {
                connection.turn_away();
            }
        }
    }

    /// Whether there is a place for a caller, that of another perhaps, who is told.
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

    /// Whether nothing is enforced any more.
    fn serve(&mut self, machine: &mut dyn Machine) -> bool {
        let mut stopped = false;
        self.connections.retain_mut(|connection| {
            let now = Instant::now();
            match connection.advance(now) {
                Come::End => false,
                Come::Nothing => true,
                Come::Request(request, descriptors) => {
                    let answer = orders::answer(machine, &connection.peer, request, descriptors);
                    stopped |= answer.stopped;
                    connection.counts = answer.counts.unwrap_or(connection.counts);
                    // The answer may have taken long.
                    let now = Instant::now();
                    connection.reply(&answer.reply, now);
                    // A short reply goes at once, also the last one of a daemon that ends.
                    connection.write(now).is_ok()
                }
            }
        });
        stopped
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A socket that stays is told from a daemon by the connection that it refuses.
        let _ = fs::remove_file(&self.socket);
    }
}
