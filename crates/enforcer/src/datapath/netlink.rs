//! Netlink messages, written and read as bytes, and a socket for them. What a message has beside the attributes that are
//! understood here is kept as it is, so that a route can be written again with nothing lost.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, IoSliceMut},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvmsg, send, socket,
};

/// Length of the header of a message (struct nlmsghdr), and of an attribute (struct nlattr).
const MESSAGE_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// Both begin at multiples of this (NLMSG_ALIGNTO).
const ALIGNMENT: usize = 4;
/// The kernel writes parts of a list of this length at most (netlink_dump).
const MAX_LENGTH: usize = 64 << 10;
/// Beside the number of an attribute: it is nested, or in network byte order.
const FLAGS: u16 = 0xc000;
/// How often a list is requested that changes while it is read.
const TRIES: u32 = 10;

/// Flags of requests that change something (NLM_F_...).
pub const CREATE: u16 = libc::NLM_F_CREATE as u16;
/// Likewise: refuses what is there already.
pub const EXCLUSIVE: u16 = libc::NLM_F_EXCL as u16;
/// Likewise: replaces what is there already.
pub const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
/// Requests what is asked for as an answer: of a queueing discipline, the kernel tells it only its listeners without (tc_get_qdisc).
pub const ECHO: u16 = libc::NLM_F_ECHO as u16;
/// Requests a list.
pub const DUMP: u16 = libc::NLM_F_DUMP as u16;

/// A request that is being written.
#[derive(Debug)]
pub struct Request(Vec<u8>);

impl Request {
    /// A request of a kind (RTM_...), with the fixed part of its kind.
    #[must_use]
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; MESSAGE_HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = flags | libc::NLM_F_REQUEST as u16 | libc::NLM_F_ACK as u16;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(fixed);
        Self(bytes).aligned()
    }

    fn aligned(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        // No value here comes near 64 KiB.
        let length = (ATTRIBUTE_HEADER + value.len()) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.aligned()
    }

    /// Adds an attribute that is a number in the machine's byte order.
    #[must_use]
    pub fn number(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that is a string.
    #[must_use]
    pub fn string(self, kind: u16, value: &str) -> Self {
        self.with(kind, &[value.as_bytes(), b"\0"].concat())
    }

    /// Adds an attribute that consists of attributes.
    #[must_use]
    pub fn nested(mut self, kind: u16, inner: impl FnOnce(Self) -> Self) -> Self {
        let at = self.0.len();
        self.0.extend([0; ATTRIBUTE_HEADER]);
        let mut whole = inner(self);
        let length = (whole.0.len() - at) as u16;
        whole.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        whole.0[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        whole
    }

    /// The message, with its length and this number.
    pub(super) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// A message from the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// RTM_...
    pub kind: u16,
    flags: u16,
    sequence: u32,
    /// The fixed part of its kind, then attributes.
    pub body: Vec<u8>,
}

impl Message {
    /// The fixed part, and the attributes behind it. `None`: it is shorter.
    #[must_use]
    pub fn split(&self, fixed: usize) -> Option<(&[u8], &[u8])> {
        let (head, rest) = self.body.split_at_checked(fixed)?;
        Some((head, rest.get(fixed.next_multiple_of(ALIGNMENT) - fixed..).unwrap_or_default()))
    }
}

/// The messages in what was received at once. What is cut off at the end is left out.
#[must_use]
pub fn messages(bytes: &[u8]) -> Vec<Message> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some(header) = rest.first_chunk::<MESSAGE_HEADER>() {
        let length = u32_at(header, 0).unwrap_or_default() as usize;
        let Some(body) = rest.get(MESSAGE_HEADER..length) else { break };
        let [kind, flags] = [4, 6].map(|at| u16_at(header, at).unwrap_or_default());
        found.push(Message { kind, flags, sequence: u32_at(header, 8).unwrap_or_default(), body: body.to_owned() });
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
    }
    found
}

/// The attributes in these bytes: number and value. It ends where they are malformed.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(rest, 0)?), u16_at(rest, 2)?);
        let value = rest.get(ATTRIBUTE_HEADER..length)?;
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((kind & !FLAGS, value))
    })
}

/// Attributes as bytes, as they are nested in another.
#[must_use]
pub fn write(attributes: &BTreeMap<u16, Vec<u8>>) -> Vec<u8> {
    let whole = attributes.iter().fold(Request(Vec::new()), |whole, (kind, value)| whole.with(*kind, value));
    whole.0
}

/// The value of an attribute.
#[must_use]
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(own, _)| *own == kind).map(|(_, value)| value)
}

/// The number that is an attribute's value.
#[must_use]
pub fn number(bytes: &[u8], kind: u16) -> Option<u32> {
    u32_at(attribute(bytes, kind)?, 0)
}

/// The string that is an attribute's value.
#[must_use]
pub fn string(bytes: &[u8], kind: u16) -> Option<String> {
    let value = attribute(bytes, kind)?;
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}

/// A number of 32 bits in the machine's byte order.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Likewise of 16 bits.
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A socket for requests. It belongs to the network namespace of the thread that has opened it.
#[derive(Debug)]
pub struct Socket {
    own: OwnedFd,
    sequence: Cell<u32>,
}

impl Socket {
    /// Opens one.
    pub fn open() -> io::Result<Self> {
        Ok(Self { own: open(SockFlag::empty())?, sequence: Cell::new(0) })
    }

    /// The cookie of its network namespace. No other namespace has had it since the machine started.
    pub fn cookie(&self) -> io::Result<u64> {
        let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
        let (value, descriptor) = ((&raw mut cookie).cast(), self.own.as_raw_fd());
        // SAFETY: the descriptor is open, and the kernel writes `length` bytes at most.
        let got =
            unsafe { libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, value, &raw mut length) };
        if got == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends a request, and returns what the kernel answers. An error of the kernel is one with its number.
    pub fn ask(&self, request: Request) -> io::Result<Vec<Message>> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        send(self.own.as_raw_fd(), &request.finish(sequence), MsgFlags::empty())?;
        let (mut buffer, mut answers, mut changed) = (vec![0; MAX_LENGTH], Vec::new(), false);
        loop {
            let length = receive(self.own.as_fd(), &mut buffer)?;
            for message in messages(&buffer[..length]).into_iter().filter(|own| own.sequence == sequence) {
                changed |= message.flags & libc::NLM_F_DUMP_INTR as u16 != 0;
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        let error = u32_at(&message.body, 0).unwrap_or_default().cast_signed();
                        let interrupted = changed.then(|| io::ErrorKind::Interrupted.into());
                        let refused = (error < 0).then(|| io::Error::from_raw_os_error(-error));
                        return refused.or(interrupted).map_or(Ok(answers), Err);
                    }
                    _ => answers.push(message),
                }
            }
        }
    }

    /// Requests a list, again if it changes while it is read.
    pub fn list(&self, kind: u16, fixed: &[u8], with: impl Fn(Request) -> Request) -> io::Result<Vec<Message>> {
        let ask = || self.ask(with(Request::new(kind, DUMP, fixed)));
        let mut tries = (1..TRIES).map(|_| ask());
        let answer = tries.find(|answer| !matches!(answer, Err(error) if error.kind() == io::ErrorKind::Interrupted));
        answer.unwrap_or_else(ask)
    }
}

/// Opens a socket of the routing family.
pub(super) fn open(flags: SockFlag) -> io::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    let own = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(own.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    Ok(own)
}

/// Sets an option of a socket that is a number.
pub(super) fn set(own: BorrowedFd<'_>, level: i32, option: i32, value: u32) -> io::Result<()> {
    let length = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value lives as long as the call.
    let set = unsafe { libc::setsockopt(own.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives what the kernel has sent. Messages of other processes are skipped.
fn receive(own: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut parts = [IoSliceMut::new(buffer)];
        match recvmsg::<NetlinkAddr>(own.as_raw_fd(), &mut parts, None, MsgFlags::empty()) {
            Ok(came) if came.address.is_some_and(|from| from.pid() == 0) => return Ok(came.bytes),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`messages`] and [`attributes`] read is what [`Request`] has written.
    #[test]
    fn reads_what_it_writes() {
        let request = Request::new(16, CREATE, &[1, 2, 3]).number(4, 1500).string(3, "lo");
        let request = request.nested(18, |inner| inner.string(1, "veth").with(2, &[9])).finish(7);
        let found = messages(&[&request[..], &request[..10]].concat());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].kind, found[0].sequence), (16, 7));
        let (fixed, rest) = found[0].split(3).unwrap();
        assert_eq!((fixed, number(rest, 4), string(rest, 3)), (&[1, 2, 3][..], Some(1500), Some("lo".to_owned())));
        let inner = attribute(rest, 18).unwrap();
        assert_eq!((string(inner, 1), attribute(inner, 2)), (Some("veth".to_owned()), Some(&[9][..])));
        assert_eq!(attribute(rest, 5), None);
    }

    #[test]
    fn ends_where_attributes_are_malformed() {
        for bytes in [&[3, 0, 1, 0][..], &[9, 0, 1, 0, 5], &[4, 0, 1], &[0; 8]] {
            assert_eq!(attributes(bytes).count(), 0, "{bytes:?}");
        }
        // A length of zero would never end.
        assert!(messages(&[0; 64]).is_empty());
    }

    #[test]
    fn reports_what_the_kernel_refuses() {
        let socket = Socket::open().unwrap();
        let nothing = Request::new(libc::RTM_GETLINK, 0, &[0; 16]).string(3, "no-such-device0");
        assert_eq!(socket.ask(nothing).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
