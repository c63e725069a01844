//! A unix stream socket as the protocol uses it: bytes, the descriptors that come with them, and the sender.

use std::{
    io::{self, IoSlice},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
};

use nix::{
    errno::Errno,
    sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg},
};

/// The maximum number of descriptors with one request: a fleet's manifest, the policy, and the three parts beside it.
pub const MAX_DESCRIPTORS: usize = 5;

/// What one call of recvmsg(2) received.
#[derive(Debug, Default)]
pub struct Received {
    /// Number of bytes; 0: the other side has closed the connection.
    pub length: usize,
    /// Descriptors that came with these bytes.
    pub descriptors: Vec<OwnedFd>,
    /// Number of the sending process, if the socket passes credentials.
    pub sender: Option<i32>,
}

/// Receives what there is. `None`: nothing has come yet.
pub fn receive(socket: &UnixStream, buffer: &mut [u8], flags: MsgFlags) -> io::Result<Option<Received>> {
    // An array of words, because control messages are aligned to words.
    let mut control = [0u64; 16];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all of its members may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
    // SAFETY: the message's pointers are to buffers of the lengths that stand beside them.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags.bits()) };
    let length = match Errno::result(length) {
        Err(Errno::EAGAIN) => return Ok(None),
        other => other?,
    };
    let mut received = Received { length: length as usize, ..Received::default() };
    // All descriptors are taken, even if they are too many: one that is not taken stays open for ever.
    take_control(&message, &mut received);
    if received.descriptors.len() > MAX_DESCRIPTORS || message.msg_flags & libc::MSG_CTRUNC != 0 {
        let text = format!("more than {MAX_DESCRIPTORS} descriptors came with a request");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(Some(received))
}

fn take_control(message: &libc::msghdr, received: &mut Received) {
    // SAFETY: the kernel has filled in the message, so the macros find headers within the control buffer only.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: as above.
    while let Some(header) = unsafe { next.as_ref() } {
        // SAFETY: as above.
        let data = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: computes a length, and reads nothing.
        let length = header.cmsg_len.saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize);
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                for index in 0..length / size_of::<RawFd>() {
                    // SAFETY: the message holds so many descriptors, which the kernel has made for this process only.
                    let own = unsafe { OwnedFd::from_raw_fd(data.cast::<RawFd>().add(index).read_unaligned()) };
                    received.descriptors.push(own);
                }
            }
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if length >= size_of::<libc::ucred>() => {
                // SAFETY: the message holds the whole structure.
                received.sender = Some(unsafe { data.cast::<libc::ucred>().read_unaligned() }.pid);
            }
            _ => {}
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
}

/// Sends bytes, with the descriptors beside the first of them. Returns how many bytes were sent.
pub fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>], flags: MsgFlags) -> io::Result<usize> {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &[][..] } else { &rights };
    let flags = flags | MsgFlags::MSG_NOSIGNAL;
    Ok(sendmsg::<UnixAddr>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, flags, None)?)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;

    /// How many descriptors of this process are open on the scratch file of a test.
    fn open_on(file: &File) -> usize {
        let name = |path: std::path::PathBuf| std::fs::read_link(path).unwrap_or_default();
        let own = name(format!("/proc/self/fd/{}", file.as_raw_fd()).into());
        let all = std::fs::read_dir("/proc/self/fd").unwrap();
        all.filter(|entry| name(entry.as_ref().unwrap().path()) == own).count()
    }

    #[test]
    fn hands_bytes_and_descriptors_over() {
        let (one, other) = UnixStream::pair().unwrap();
        nix::sys::socket::setsockopt(&other, nix::sys::socket::sockopt::PassCred, &true).unwrap();
        let file = tempfile::tempfile().unwrap();
        send(&one, b"here\n", &[file.as_fd(), file.as_fd()], MsgFlags::empty()).unwrap();
        let mut buffer = [0; 64];
        let received = receive(&other, &mut buffer, MsgFlags::empty()).unwrap().unwrap();
        assert_eq!((received.length, received.descriptors.len()), (5, 2));
        assert_eq!(received.sender, Some(std::process::id() as i32));
        assert_eq!(open_on(&file), 3);
        drop(received);
        assert!(receive(&other, &mut buffer, MsgFlags::MSG_DONTWAIT).unwrap().is_none());
    }

    #[test]
    fn refuses_many_descriptors_and_keeps_none_of_them() {
        let file = tempfile::tempfile().unwrap();
        for count in [MAX_DESCRIPTORS + 1, 30, 200] {
            let (one, other) = UnixStream::pair().unwrap();
            nix::sys::socket::setsockopt(&other, nix::sys::socket::sockopt::PassCred, &true).unwrap();
            send(&one, b"x", &vec![file.as_fd(); count], MsgFlags::empty()).unwrap();
            assert!(receive(&other, &mut [0; 64], MsgFlags::empty()).is_err(), "{count}");
            assert_eq!(open_on(&file), 1, "{count}");
        }
    }
}
