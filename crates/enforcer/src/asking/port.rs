//! The UDP port on which machines ask one another. A thread of its own reads it, so that whoever sends much to it keeps the
//! daemon from nothing: what the key has not sealed goes no further.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket},
    num::NonZeroU16,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{SystemTime, UNIX_EPOCH},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, setsockopt, socket, sockopt::Ipv6V6Only,
    },
};
use tollgate_netlabel::{
    question::{LENGTH, Message, Question},
    sealed::{Key, window},
};
use tracing::warn;

use crate::datapath::Networks;

/// How many messages of either kind are passed on per second, and how many wait for the daemon.
const MAX_PER_SECOND: u32 = 256;
const MAX_WAITING: usize = 64;

/// A message that a machine with the key has sent just now.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) message: Message,
    /// The key that sealed it.
    pub(super) key: Key,
    pub(super) from: SocketAddr,
}

/// The port, open.
#[derive(Debug)]
pub(super) struct Port {
    socket: Arc<UdpSocket>,
    came: Receiver<Came>,
    /// Readable when something has come. When it is dropped, the thread ends.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Port {
    /// Binds the port, and reads it from now on.
    pub(super) fn open(port: NonZeroU16, networks: Arc<Networks>) -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::from(bound(port.get())?));
        let (wake, other) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        let (sender, came) = mpsc::sync_channel(MAX_WAITING);
        let reader = Reader { socket: Arc::clone(&socket), wake: other, sender, gate: Gate::new(networks) };
        let thread = thread::Builder::new().name("contexts".to_owned()).spawn(move || reader.run())?;
        Ok(Self { socket, came, wake: Some(wake), thread: Some(thread) })
    }

    /// The next message that has come.
    pub(super) fn next(&self) -> Option<Came> {
        let mut buffer = [0; MAX_WAITING];
        // Before it looks, so that nothing that comes meanwhile is left.
        let _ = self.wake.as_ref().map(|mut wake| wake.read(&mut buffer));
        self.came.try_recv().ok()
    }

    /// Sends a message. What is lost is asked for again.
    pub(super) fn send(&self, message: &Message, key: &Key, to: SocketAddr) -> io::Result<()> {
        // A socket of IPv6 sends to IPv4 by mapped addresses.
        let is_six = self.socket.local_addr()?.is_ipv6();
        let to = match to.ip() {
            IpAddr::V4(address) if is_six => SocketAddr::new(address.to_ipv6_mapped().into(), to.port()),
            _ => to,
        };
        self.socket.send_to(&message.seal(key), to).map(drop)
    }

    /// The socket, whose packets have its label.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What wakes the daemon.
    pub(super) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.wake.take();
        // It ends at once, and the port is free then.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A socket of both families, or of IPv4 if the kernel has no IPv6.
fn bound(port: u16) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let open = |family| socket(family, SockType::Datagram, flags, None);
    if let Ok(six) = open(AddressFamily::Inet6) {
        setsockopt(&six, Ipv6V6Only, &false)?;
        let any = std::net::SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0);
        bind(six.as_raw_fd(), &SockaddrIn6::from(any))?;
        return Ok(six);
    }
    let four = open(AddressFamily::Inet)?;
    bind(four.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, port))?;
    Ok(four)
}

/// What the thread has.
struct Reader {
    socket: Arc<UdpSocket>,
    wake: UnixStream,
    sender: SyncSender<Came>,
    gate: Gate,
}

impl Reader {
    /// Reads until the daemon drops the other end.
    fn run(mut self) {
        let mut buffer = [0; LENGTH + 1];
        loop {
            let (mut end, read) = ([0; 1], self.socket.recv_from(&mut buffer));
            match read {
                Ok((length, from)) => self.take(&buffer[..length], from),
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
                    let mut waited =
                        [self.socket.as_fd(), self.wake.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
                    let _ = poll(&mut waited, PollTimeout::NONE);
                }
                // An error that an earlier message has met.
                Err(_) => {}
            }
            if matches!(self.wake.read(&mut end), Ok(0)) {
                return;
            }
        }
    }

    fn take(&mut self, bytes: &[u8], from: SocketAddr) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let Some((message, key)) = self.gate.passes(bytes, from.ip(), now()) else { return };
        if self.sender.try_send(Came { message, key, from }).is_ok() {
            // If there is no room, it will be readable all the same.
            let _ = self.wake.write(&[0]);
        }
    }
}

/// The time, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// What may go on to the daemon.
#[derive(Debug)]
struct Gate {
    networks: Arc<Networks>,
    keys: Vec<Key>,
    second: u64,
    /// Questions and answers of this second.
    passed: [u32; 2],
}

impl Gate {
    fn new(networks: Arc<Networks>) -> Self {
        let keys = keys(&networks);
        Self { networks, keys, second: 0, passed: [0; 2] }
    }

    /// The message, if a machine whose packets have sealed labels has sent it to this one just now, and this second has
    /// room for it.
    fn passes(&mut self, bytes: &[u8], from: IpAddr, now: u64) -> Option<(Message, Key)> {
        if bytes.len() != LENGTH || !self.networks.config.seals(from) {
            return None;
        }
        let (message, key) = Message::open(bytes, &self.keys).ok()?;
        let key = key.clone();
        let (kind, question) = match &message {
            Message::Question(question) => (0, question),
            Message::Answer(question, _) => (1, question),
        };
        (self.is_meant(kind == 0, question) && self.is_new(question, now)).then_some(())?;
        if self.second != now {
            (self.second, self.passed) = (now, [0; 2]);
        }
        self.passed[kind] += 1;
        if self.passed[kind] == MAX_PER_SECOND + 1 {
            warn!("more than {MAX_PER_SECOND} messages per second about contexts: the others are dropped");
        }
        (self.passed[kind] <= MAX_PER_SECOND).then_some((message, key))
    }

    /// Whether it is for this node, and not its own.
    fn is_meant(&self, is_question: bool, question: &Question) -> bool {
        let Some(own) = self.networks.config.seal.as_ref().map(|seal| seal.node) else { return false };
        let (us, them) = if is_question { (question.to, question.from) } else { (question.from, question.to) };
        us == own && them != own
    }

    fn is_new(&self, question: &Question, now: u64) -> bool {
        let tolerance = self.networks.config.seal.as_ref().map_or(0, |seal| seal.tolerance);
        question.window.abs_diff(window(now)) <= tolerance.into()
    }
}

/// The keys of these networks.
pub(super) fn keys(networks: &Networks) -> Vec<Key> {
    networks.keys.iter().map(|key| Key { number: key.number, secret: key.secret }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::datapath::{config::Config, keys::Keys};

    const NOW: u64 = 1_800_000_000;

    fn networks() -> Arc<Networks> {
        let text = "[sealed]\nnode = 2\n[[doi]]\nnumber = 5\ntag = \"sealed\"\n\
                    [[zone]]\naddresses = [\"10.0.0.0/8\"]\ndoi = 5\n";
        let config = Config::parse(Path::new("/n"), text).unwrap();
        let keys = Keys::of_text(Path::new("/k"), "3 0123456789abcdef0123456789abcdef").unwrap();
        Arc::new(Networks { file: "/n".into(), config, keys })
    }

    fn question() -> Question {
        Question { nonce: [1; 16], generation: 1, window: window(NOW), identifier: 7, from: 1, to: 2 }
    }

    fn passes(gate: &mut Gate, message: &Message, from: &str) -> bool {
        let key = gate.keys[0].clone();
        gate.passes(&message.seal(&key), from.parse().unwrap(), NOW).is_some()
    }

    #[test]
    fn passes_on_what_is_meant_for_this_node_now_and_from_a_sealed_zone() {
        let mut gate = Gate::new(networks());
        let right = question();
        assert!(passes(&mut gate, &Message::Question(right), "10.0.0.1"));
        assert!(!passes(&mut gate, &Message::Question(right), "11.0.0.1"));
        let answer = Message::Answer(Question { from: 2, to: 1, ..right }, None);
        assert!(passes(&mut gate, &answer, "10.0.0.1"));
        for wrong in [
            Question { to: 3, ..right },
            // Its own, sent back.
            Question { from: 2, to: 1, ..right },
            Question { from: 2, ..right },
            Question { window: right.window - 2, ..right },
            Question { window: right.window + 2, ..right },
        ] {
            assert!(!passes(&mut gate, &Message::Question(wrong), "10.0.0.1"), "{wrong:?}");
        }
        assert!(!passes(&mut gate, &Message::Answer(right, None), "10.0.0.1"));
        let stranger = Key { number: 3, secret: [0; 16] };
        let forged = Message::Question(right).seal(&stranger);
        assert!(gate.passes(&forged, "10.0.0.1".parse().unwrap(), NOW).is_none());
    }

    #[test]
    fn passes_on_no_more_than_there_is_room_for_in_a_second() {
        let mut gate = Gate::new(networks());
        let passed = (0..5000).filter(|_| passes(&mut gate, &Message::Question(question()), "10.0.0.1")).count();
        assert_eq!(passed, MAX_PER_SECOND as usize);
        // Repeated questions take no room from answers.
        assert!(passes(&mut gate, &Message::Answer(Question { from: 2, to: 1, ..question() }, None), "10.0.0.1"));
    }

    #[test]
    fn frees_the_port_when_it_is_dropped() {
        let free = UdpSocket::bind("[::]:0").unwrap();
        let port = NonZeroU16::new(free.local_addr().unwrap().port()).unwrap();
        drop(free);
        for _ in 0..3 {
            let open = Port::open(port, networks()).unwrap();
            assert!(Port::open(port, networks()).is_err());
            // Strangers wake nobody.
            UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0; LENGTH], ("127.0.0.1", port.get())).unwrap();
            assert!(open.next().is_none());
        }
    }
}
