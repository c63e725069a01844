//! The peers of sockets, and what a server does for them.

use std::{net::SocketAddr, os::fd::BorrowedFd};

use nix::errno::Errno;

use super::{Client, ClientError, set, unexpected};
use crate::protocol::{Acting, Attribute, Request};

/// A thread that acts for a peer. It goes on acting until [`Acted::back`] is called.
#[derive(Debug)]
#[must_use = "the thread acts for the peer until it goes back"]
pub struct Acted {
    /// The SID that the thread had before.
    before: u32,
}

impl Acted {
    /// Gives the calling thread, which must be the one that acts, the context back that it had before.
    ///
    /// # Errors
    ///
    /// [`ClientError::Kernel`] if the policy does not allow it: then the thread goes on acting for the peer.
    pub fn back(self) -> Result<(), ClientError> {
        set(Attribute::Current, self.before).map_err(ClientError::Kernel)
    }
}

impl Client {
    /// The context of the peer of a connected socket; for datagrams, of the sender that the socket has received
    /// something from last. `None`: it is not known.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] if the policy denies the caller `getopt` on the socket.
    pub fn peer(&mut self, socket: BorrowedFd<'_>) -> Result<Option<String>, ClientError> {
        self.peer_from(socket, None)
    }

    /// The context with which a datagram socket has received something last from this address and port. `None`: nothing
    /// was heard of it, or too long ago.
    ///
    /// # Errors
    ///
    /// As [`Client::peer`].
    pub fn heard(&mut self, socket: BorrowedFd<'_>, sender: SocketAddr) -> Result<Option<String>, ClientError> {
        self.peer_from(socket, Some(sender))
    }

    fn peer_from(&mut self, socket: BorrowedFd<'_>, from: Option<SocketAddr>) -> Result<Option<String>, ClientError> {
        match self.word(&Request::Peer { from }, &[socket]) {
            Ok(context) => Ok(Some(context)),
            Err(ClientError::Refused(refusal)) if refusal.errno == Errno::ENOPROTOOPT as i32 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the calling thread act for the peer of a connected socket, for a while: what the thread does now is decided
    /// by the peer's range, or by its whole context.
    ///
    /// This ends the connection to the daemon, as [`Client::set_context`] does. Going back needs none.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] if the peer is not known (ENOPROTOOPT), or its range is not one that this domain can have
    /// (EINVAL).
    /// [`ClientError::Kernel`] if the policy does not allow it (EACCES).
    pub fn act_for(mut self, socket: BorrowedFd<'_>, acting: Acting) -> Result<Acted, ClientError> {
        let words = self.request(&Request::Act(acting), &[socket])?;
        drop(self);
        let sids: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let [before, sid] = sids[..] else { return Err(unexpected("two SIDs", words.join(" "))) };
        set(Attribute::Current, sid).map_err(ClientError::Kernel)?;
        Ok(Acted { before })
    }
}
