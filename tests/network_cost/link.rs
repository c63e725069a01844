//! Two network namespaces joined by veth, and what is sent between them.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsFd, AsRawFd},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::{
        resource::{UsageWho, getrusage},
        socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt},
        time::TimeVal,
    },
    unistd::Pid,
};

use super::programs::Datapath;
use crate::program::namespace::Namespace;

/// Bytes that one call sends.
const PIECE: usize = 128 << 10;
const TIMEOUT: Duration = Duration::from_secs(10);

/// The two ends. Addresses are in 198.18.ZONE.0/24, those without programs in networks without zone.
pub(super) struct Link {
    ends: [Namespace; 2],
    addresses: [Ipv4Addr; 2],
    labelled: bool,
}

/// Microseconds per round trip.
pub(super) struct Took {
    pub(super) wall: f64,
    pub(super) processor: f64,
}

impl Link {
    pub(super) fn join(place: u8, zone: Option<u8>) -> Self {
        let network = zone.unwrap_or(100 + place);
        let addresses = [1, 2].map(|host| Ipv4Addr::new(198, 18, network, host));
        let ends = [(); 2].map(|()| Namespace::new());
        let link = Self { ends, addresses, labelled: zone.is_some() };
        link.ends[0].ip(&format!("link add end0 type veth peer name end1 netns {}", link.ends[1].path()));
        for (end, (namespace, address)) in link.ends.iter().zip(addresses).enumerate() {
            namespace.ip(&format!("addr add {address}/24 dev end{end}"));
            namespace.ip(&format!("link set end{end} up"));
            // As the daemon does, there is room for the longest label: here on all links alike.
            namespace.ip(&format!("route replace 198.18.{network}.0/24 dev end{end} src {address} mtu 1460"));
        }
        link
    }

    pub(super) fn is_labelled(&self) -> bool {
        self.labelled
    }

    /// The ends' devices, each in its namespace.
    pub(super) fn for_each_device(&self, act: impl Fn(i32) + Sync) {
        for end in 0..self.ends.len() {
            let name = format!("end{end}");
            self.within(end, || {
                let index = nix::net::if_::if_nametoindex(name.as_str()).unwrap();
                act(i32::try_from(index).unwrap());
            });
        }
    }

    /// Calls `act` in the namespace of an end. Sockets that it makes stay there.
    fn within<T: Send>(&self, end: usize, act: impl FnOnce() -> T + Send) -> T {
        self.ends[end].within(act)
    }

    /// Round trips of a datagram between two threads on one processor.
    pub(super) fn round_trips(&self, datapath: &Datapath, size: usize, count: usize) -> Took {
        let [near, far] = [0, 1].map(|end| self.within(end, || UdpSocket::bind((self.addresses[end], 0)).unwrap()));
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        for socket in [&near, &far] {
            socket.set_read_timeout(Some(TIMEOUT)).unwrap();
            self.label(datapath, socket);
        }
        let warm_up = count / 4;
        thread::scope(|scope| {
            scope.spawn(|| {
                on_one_processor();
                let mut buffer = [0; 2048];
                for _ in 0..warm_up + count {
                    let length = far.recv(&mut buffer).unwrap();
                    far.send(&buffer[..length]).unwrap();
                }
            });
            let near = scope.spawn(|| {
                on_one_processor();
                let (message, mut buffer) = (vec![1; size], [0; 2048]);
                let mut trip = || {
                    near.send(&message).unwrap();
                    assert_eq!(near.recv(&mut buffer).unwrap(), size);
                };
                (0..warm_up).for_each(|_| trip());
                let (began, before) = (Instant::now(), processor_seconds());
                (0..count).for_each(|_| trip());
                let per_trip = 1e6 / count as f64;
                Took {
                    wall: began.elapsed().as_secs_f64() * per_trip,
                    processor: (processor_seconds() - before) * per_trip,
                }
            });
            near.join().unwrap()
        })
    }

    /// Bytes per second of processor time that a stream brings, sent and received on one processor.
    pub(super) fn stream(&self, datapath: &Datapath, milliseconds: u64) -> f64 {
        let listener = self.within(1, || TcpListener::bind((self.addresses[1], 0)).unwrap());
        self.label(datapath, &listener);
        let SocketAddr::V4(to) = listener.local_addr().unwrap() else { panic!("not the address that it was bound to") };
        let mut near = self.within(0, || {
            let kind = (AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC);
            let made = socket(kind.0, kind.1, kind.2, None).unwrap();
            // Others may pace what they send, and then the clock decides, not the processor.
            setsockopt(&made, sockopt::TcpCongestion, &"reno".into()).unwrap();
            self.label(datapath, &made);
            connect(made.as_raw_fd(), &SockaddrIn::from(to)).unwrap();
            TcpStream::from(made)
        });
        let mut far = listener.accept().unwrap().0;
        far.set_read_timeout(Some(TIMEOUT)).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                on_one_processor();
                let (piece, began) = (vec![1; PIECE], Instant::now());
                while began.elapsed() < Duration::from_millis(milliseconds) {
                    near.write_all(&piece).unwrap();
                }
            });
            let far = scope.spawn(move || {
                on_one_processor();
                let (mut buffer, mut received) = (vec![0; PIECE], 0_u64);
                let before = processor_seconds();
                loop {
                    match far.read(&mut buffer).unwrap() {
                        0 => return received as f64 / (processor_seconds() - before),
                        length => received += length as u64,
                    }
                }
            });
            far.join().unwrap()
        })
    }

    fn label(&self, datapath: &Datapath, socket: &impl AsFd) {
        if self.labelled {
            datapath.label(socket.as_fd());
        }
    }
}

/// Both ends wait for one another on the first processor that this process may use: no wake-up of an idle one is in a figure.
fn on_one_processor() {
    let own = Pid::from_raw(0);
    let allowed = nix::sched::sched_getaffinity(own).unwrap();
    let first = (0..CpuSet::count()).find(|processor| allowed.is_set(*processor).unwrap()).unwrap();
    let mut one = CpuSet::new();
    one.set(first).unwrap();
    sched_setaffinity(own, &one).unwrap();
}

/// What this process has used, in the kernel and outside of it.
fn processor_seconds() -> f64 {
    let used = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(used.user_time()) + seconds(used.system_time())
}
