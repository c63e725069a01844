//! The process at the other end of a connection.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{getsockopt, sockopt::PeerCredentials},
    unistd::geteuid,
};
use tollgate_abi::enforcer::TG_SID_MACHINE;
use tollgate_client::pidfd;

use crate::contexts::Sid;

/// The process that made a connection.
///
/// Its number alone could belong to another process by now, so its pidfd is kept. If the kernel gives no pidfd for
/// the peer (before 6.5), one is opened by number. The first line proves that it is the peer's own: it holds a nonce
/// that was sent after the pidfd was opened, and the kernel reports the number of its sender (SCM_CREDENTIALS). As long
/// as the process of the pidfd lives, no other process has that number.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its process number.
    pub(crate) pid: i32,
    /// Its effective uid when it connected.
    pub(crate) uid: u32,
    /// Its SID when it was greeted. Its requests are checked with that SID, even if it executes another program
    /// meanwhile.
    pub(crate) sid: Sid,
    process: Process,
}

/// A process, by its pidfd.
#[derive(Debug)]
pub(crate) struct Process(OwnedFd);

impl Process {
    /// The process that has this number now.
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        pidfd::open(pid).map(Self)
    }

    /// Whether it has not ended.
    pub(crate) fn lives(&self) -> bool {
        // A pidfd becomes readable when its process has ended.
        let mut ended = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut ended, PollTimeout::ZERO) {
                // An interrupted poll says nothing about the process.
                Err(Errno::EINTR) => {}
                other => return other == Ok(0),
            }
        }
    }
}

impl Peer {
    /// The process that connected `socket`.
    pub(crate) fn of(socket: &UnixStream) -> io::Result<Self> {
        let credentials = getsockopt(socket, PeerCredentials)?;
        let (pid, uid) = (credentials.pid(), credentials.uid());
        if pid <= 0 {
            // The process is in a PID namespace that is not below ours.
            return Err(io::ErrorKind::NotFound.into());
        }
        let process = match peer_pidfd(socket) {
            Err(Errno::ENOPROTOOPT) => Process::open(pid)?,
            other => Process(other?),
        };
        Ok(Self { pid, uid, sid: TG_SID_MACHINE, process })
    }

    /// Whether its user is the one that the daemon runs as, which is root whenever something is enforced.
    pub(crate) fn is_root(&self) -> bool {
        self.uid == geteuid().as_raw()
    }

    /// Whether it has CAP_MAC_ADMIN on the machine, not only in a user namespace of its own.
    pub(crate) fn has_mac_admin(&self) -> bool {
        const CAP_MAC_ADMIN: u32 = 33;
        let told = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let effective =
            told.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/user")).ok();
        let here = namespace(&self.pid.to_string()).is_some_and(|own| Some(own) == namespace("self"));
        here && effective.is_some_and(|effective| effective >> CAP_MAC_ADMIN & 1 == 1) && self.lives()
    }

    /// Its pidfd.
    pub(crate) fn process(&self) -> BorrowedFd<'_> {
        self.process.0.as_fd()
    }

    /// The process, for longer than its connection.
    pub(crate) fn kept(&self) -> io::Result<Process> {
        self.process.0.try_clone().map(Process)
    }

    /// Whether a pidfd belongs to one of its threads. The number in a pidfd's fdinfo belongs to that thread alone while
    /// it exists, and is -1 afterwards.
    pub(crate) fn has(&self, thread: BorrowedFd<'_>) -> bool {
        let Ok(fdinfo) = fs::read_to_string(format!("/proc/self/fdinfo/{}", thread.as_raw_fd())) else { return false };
        let number = fdinfo.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse::<u32>().ok());
        number.is_some_and(|number| Path::new(&format!("/proc/{}/task/{number}", self.pid)).exists()) && self.lives()
    }

    /// Whether it is the sender of a message, and still exists.
    pub(crate) fn sent(&self, sender: Option<i32>) -> bool {
        sender == Some(self.pid) && self.lives()
    }

    fn lives(&self) -> bool {
        self.process.lives()
    }
}

/// SO_PEERPIDFD, which kernels from 6.5 have.
fn peer_pidfd(socket: &UnixStream) -> Result<OwnedFd, Errno> {
    const SO_PEERPIDFD: i32 = 77;
    let (mut descriptor, mut length) = (-1i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: both pointers are to variables of the sizes that are given.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_PEERPIDFD, (&raw mut descriptor).cast(), &mut length)
    };
    Errno::result(done)?;
    // SAFETY: the kernel has just made the descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use tollgate_client::pidfd;

    use super::*;

    #[test]
    fn knows_who_made_a_connection_and_that_it_is_there() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.pid, std::process::id() as i32);
        assert!(peer.sent(Some(peer.pid)));
        assert!(!peer.sent(None));
        assert!(!peer.sent(Some(1)));
    }

    #[test]
    fn tells_its_own_threads_from_other_processes() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert!(peer.has(pidfd::open(peer.pid).unwrap().as_fd()));
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(!peer.has(pidfd::open(child.id() as i32).unwrap().as_fd()));
        assert!(!peer.has(one.as_fd()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn refuses_a_peer_that_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::open(child.id() as i32).unwrap();
        let peer = Peer { pid: child.id() as i32, uid: 0, sid: TG_SID_MACHINE, process };
        child.wait().unwrap();
        assert!(!peer.sent(Some(peer.pid)));
    }
}
