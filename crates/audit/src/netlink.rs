//! The kernel's audit socket, which takes records from user space.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use nix::sys::{
    socket::{MsgFlags, NetlinkAddr, recv, sendto, setsockopt, sockopt},
    time::TimeVal,
};

/// The maximum length of a record, in bytes (AUDIT_MESSAGE_TEXT_MAX). The kernel cuts longer ones.
const MAX_MESSAGE_LENGTH: usize = 8560;
const HEADER: usize = size_of::<libc::nlmsghdr>();
/// How many seconds to wait for the acknowledgement. The kernel answers within the system call, or when its queue has room.
const RECEIVE_TIMEOUT_SECONDS: i64 = 2;

/// A NETLINK_AUDIT socket. Sending may take long: a kernel whose audit queue is full makes senders wait.
#[derive(Debug)]
pub(super) struct AuditSocket {
    socket: OwnedFd,
    sequence: u32,
}

impl AuditSocket {
    /// Opens the socket. Only the first record shows whether the kernel takes any.
    pub(super) fn open() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let raw = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_AUDIT) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(RECEIVE_TIMEOUT_SECONDS, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a record of this type (AUDIT_* of linux/audit.h), and waits until the kernel has it.
    pub(super) fn send(&mut self, kind: u16, text: &str) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let request = request(kind, text, self.sequence);
        sendto(self.socket.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = [0; 1024];
        loop {
            let length = match recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty()) {
                Err(nix::errno::Errno::EINTR) => continue,
                other => other?,
            };
            // The acknowledgement of an earlier record may arrive only now.
            if let Some(errno) = errno(answer.get(..length).unwrap_or_default(), self.sequence) {
                return if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) };
            }
        }
    }

    /// Whether this error means that the kernel has no audit, or takes no records from this process.
    pub(super) fn is_refusal(error: &io::Error) -> bool {
        let refusals = [libc::EPERM, libc::EACCES, libc::ECONNREFUSED, libc::EPROTONOSUPPORT, libc::EINVAL];
        error.raw_os_error().is_some_and(|errno| refusals.contains(&errno))
    }
}

/// A `struct nlmsghdr` and the text, which ends in NUL as libaudit sends it.
fn request(kind: u16, text: &str, sequence: u32) -> Vec<u8> {
    let text = text.as_bytes();
    let text = text.get(..MAX_MESSAGE_LENGTH).unwrap_or(text);
    let length = HEADER + text.len() + 1;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let mut request = Vec::with_capacity(length + 3);
    request.extend((length as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend(sequence.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(text);
    request.resize(length.next_multiple_of(4), 0);
    request
}

/// The errno in an acknowledgement (NLMSG_ERROR); `None` if it is not the one of this record.
fn errno(answer: &[u8], sequence: u32) -> Option<i32> {
    let word = |at: usize| answer.get(at..)?.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes));
    let kind = answer.get(4..)?.first_chunk::<2>().map(|bytes| u16::from_ne_bytes(*bytes))?;
    let is_ours = i32::from(kind) == libc::NLMSG_ERROR && word(8)? == sequence;
    is_ours.then(|| word(HEADER).map(|errno| errno.cast_signed().wrapping_neg()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_a_request_of_whole_words_with_nul() {
        let request = request(1107, "avc:", 7);
        assert_eq!(request.len(), 24);
        assert_eq!(request[..4], 21u32.to_ne_bytes());
        assert_eq!(request[4..6], 1107u16.to_ne_bytes());
        assert_eq!(request[6..8], 5u16.to_ne_bytes());
        assert_eq!(request[8..12], 7u32.to_ne_bytes());
        assert_eq!(&request[16..], b"avc:\0\0\0\0");
    }

    #[test]
    fn cuts_what_the_kernel_would_cut() {
        assert_eq!(request(1107, &"x".repeat(20_000), 1).len(), (HEADER + MAX_MESSAGE_LENGTH + 1).next_multiple_of(4));
    }

    #[test]
    fn reads_the_acknowledgement_of_this_request_only() {
        let answer = |kind: u16, sequence: u32, errno: i32| {
            let mut bytes = vec![36, 0, 0, 0];
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 2]);
            bytes.extend(sequence.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes.extend(errno.to_ne_bytes());
            bytes
        };
        assert_eq!(errno(&answer(2, 9, 0), 9), Some(0));
        assert_eq!(errno(&answer(2, 9, -libc::EPERM), 9), Some(libc::EPERM));
        assert_eq!(errno(&answer(2, 8, 0), 9), None);
        assert_eq!(errno(&answer(3, 9, 0), 9), None);
        assert_eq!(errno(&answer(2, 9, i32::MIN), 9), Some(i32::MIN));
        for cut in 0..20 {
            assert_eq!(errno(&answer(2, 9, 0)[..cut], 9), None, "{cut}");
        }
    }
}
