//! What clients ask about their sockets: who is at the other end, and what they need in order to act for it.

use std::{
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
};

use tollgate_abi::enforcer::SECINITSID_UNLABELED;
use tollgate_client::protocol::{Acting, Refusal, Reply};

use super::{super::machine::Labels, Order};
use crate::contexts::{self, Sid};

impl Order<'_> {
    /// selinux_socket_getpeersec_stream, and selinux_socket_getpeersec_dgram for what was received last.
    pub(super) fn peer_of(&mut self, socket: BorrowedFd<'_>, from: Option<SocketAddr>) -> Reply {
        let (label, class) = self.look_at(socket)?;
        self.may(label, class, "getopt")?;
        let sid = match from {
            Some(sender) => self.machine.heard(socket, sender)?,
            None => self.machine.socket(socket)?.map(|found| found.peer),
        };
        Ok(vec![self.known_peer(sid)?])
    }

    /// The caller's SID, and the one that it acts with for a peer. The hook task_prctl decides whether it may. The
    /// threads of a server may have different contexts because they act for clients: the server's own is then that of its
    /// first thread.
    pub(super) fn act(&mut self, socket: BorrowedFd<'_>, acting: Acting) -> Reply {
        let (label, class) = self.look_at(socket)?;
        if !self.unconfined {
            self.ask(self.sid, label, class, "getopt")?;
            self.ask(self.sid, self.sid, "process", "setcurrent")?;
        }
        let peer = self.machine.socket(socket)?.map(|found| found.peer);
        let peer = self.known_peer(peer)?;
        let own = self.machine.text(self.sid).unwrap_or_default();
        let wanted = match acting {
            Acting::Range => contexts::with_range(&own, &peer),
            Acting::Context => peer,
        };
        Ok(vec![self.sid.to_string(), self.intern(&wanted)?.to_string()])
    }

    /// A socket's label and class.
    fn look_at(&mut self, socket: BorrowedFd<'_>) -> Result<(Sid, &'static str), Refusal> {
        let Labels { object, class, .. } = self.machine.labels(socket.as_fd())?;
        let class = class.filter(|class| class.ends_with("socket"));
        Ok((object, class.ok_or_else(|| Refusal::new(libc::ENOTSOCK, "the descriptor is not of a socket"))?))
    }

    /// The context of a peer. Packets without a label tell none.
    fn known_peer(&mut self, sid: Option<Sid>) -> Result<String, Refusal> {
        let sid = sid.filter(|sid| ![0, SECINITSID_UNLABELED].contains(sid));
        let unknown = || Refusal::new(libc::ENOPROTOOPT, "no label of that peer is known");
        sid.and_then(|sid| self.machine.text(sid)).ok_or_else(unknown)
    }
}
