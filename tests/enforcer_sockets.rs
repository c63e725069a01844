//! Labels of sockets in guests: of plain ones, of those that have no place among them, and of accepted ones.
//!
//! The part in the guest is this program again: it starts the enforcer in its own process. Kernels are needed, from the cache
//! or a network.

use std::{
    io,
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsRawFd, IntoRawFd, RawFd},
        unix::net::UnixDatagram,
    },
    sync::OnceLock,
};

use tollgate_abi::enforcer::{TG_ATTRIBUTE_SOCKCREATE, TG_PLAIN_SOCKETS, TG_PLAIN_WAYS, TG_PRCTL};
use tollgate_client::descriptors::Descriptors;
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, Options},
};

use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{Confined, Guests, Played, enforcer, is_guest, name, policy, sh},
};

/// So many pairs of sockets that hardly a row has a free place: ten sockets per row.
const PAIRS: usize = 5 * (TG_PLAIN_SOCKETS / TG_PLAIN_WAYS) as usize;

/// Fails unless a test has passed in guests, which all tests of this file share.
fn played(test: impl Fn()) {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    let play = || {
        let guests = Guests {
            kernels: KERNELS,
            policies: &[(&[policy("cache.cil")], "/built")],
            files: &[],
            processors: 2,
            timeout: 300,
            share_srv: false,
            tests: &[
                name(judges_sockets_by_their_own_labels_when_all_places_are_taken),
                name(gives_no_socket_the_label_of_one_that_is_closed),
            ],
        };
        guests.play(&Scratch::new())
    };
    PLAYED.get_or_init(play).assert_passed(test);
}

/// Enforcement in which a process may bring along what it may not use, and two domains.
fn start() -> (Enforcer, [Sid; 2]) {
    sh("ifconfig lo up");
    let mut enforcer = enforcer(Options::default(), "/built");
    enforcer.state().set_descriptors(Descriptors::Use);
    let domains = ["reader_t", "late_t"].map(|type_| enforcer.intern(&format!("u:r:{type_}:s0")).unwrap());
    (enforcer, domains)
}

/// Sets the label of the sockets that the calling thread makes.
fn set_socket_label(sid: Sid) {
    // SAFETY: this prctl takes numbers only.
    let result = unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_SOCKCREATE, sid, 0, 0) };
    let error = io::Error::last_os_error();
    assert!(result == -1 && error.raw_os_error() == Some(libc::EALREADY), "{result} {error}");
}

fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).unwrap()
}

/// A connection to itself: the accepted socket, and the one that has connected.
fn connection(listener: &TcpListener) -> [RawFd; 2] {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    [accepted.into_raw_fd(), client.into_raw_fd()]
}

/// Two unix sockets that are connected to each other.
fn pair() -> [RawFd; 2] {
    let (one, other) = UnixDatagram::pair().unwrap();
    [one.into_raw_fd(), other.into_raw_fd()]
}

/// What sending a byte by a socket comes to: 0, or the errno.
fn sends(socket: RawFd) -> u32 {
    // SAFETY: one byte is read.
    let length = unsafe { libc::send(socket, c"x".as_ptr().cast(), 1, libc::MSG_DONTWAIT) };
    if length == 1 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or(-1).cast_unsigned() }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn judges_sockets_by_their_own_labels_when_all_places_are_taken() {
    if !is_guest() {
        return played(judges_sockets_by_their_own_labels_when_all_places_are_taken);
    }
    sh("echo 200000 > /proc/sys/fs/file-max");
    let (enforcer, [reader, late]) = start();
    let limit = libc::rlimit { rlim_cur: 4 * PAIRS as u64, rlim_max: 4 * PAIRS as u64 };
    // SAFETY: the limit is only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    // Readers use their own sockets, and nobody else does.
    let [own, denied] = Confined::start(reader, |_| {
        // One that has a place, of which most that it accepts later find none.
        let listener = listener();
        let mut sockets = Vec::from(connection(&listener));
        sockets.extend((0..PAIRS).flat_map(|_| pair()));
        (0..20).for_each(|_| sockets.extend(connection(&listener)));
        let own = sockets.iter().filter(|socket| sends(**socket) == 0).count();
        let denied = Confined::start(late, |_| {
            [sockets.iter().filter(|socket| sends(**socket) == libc::EACCES.cast_unsigned()).count() as u32]
        });
        [own as u32, denied.numbers::<1>()[0]]
    })
    .numbers();
    let all = 2 * PAIRS as u32 + 42;
    println!("of {all} sockets, their own domain uses {own}, and another is denied {denied}");
    enforcer.state().set_descriptors(Descriptors::Check);
    assert_eq!([own, denied], [all; 2]);
}

#[test]
fn gives_no_socket_the_label_of_one_that_is_closed() {
    if !is_guest() {
        return played(gives_no_socket_the_label_of_one_that_is_closed);
    }
    const SOCKETS: usize = 400;
    let (enforcer, [reader, late]) = start();
    // Everybody uses those of late ones, and nobody those of the machine.
    let made = Confined::start(reader, |_| {
        set_socket_label(late);
        let pairs: Vec<[RawFd; 2]> = (0..SOCKETS / 2).map(|_| pair()).chain([connection(&listener())]).collect();
        [pairs.iter().flatten().map(|socket| sends(*socket)).sum::<u32>()]
    });
    assert_eq!(made.numbers::<1>(), [0]);
    let pairs: Vec<_> = (0..SOCKETS / 2).map(|_| UnixDatagram::pair().unwrap()).collect();
    let connection = connection(&listener());
    let denied = Confined::start(reader, |_| {
        let sockets = pairs.iter().flat_map(|(one, other)| [one.as_raw_fd(), other.as_raw_fd()]);
        let all = sockets.chain(connection);
        [all.filter(|socket| sends(*socket) == libc::EACCES.cast_unsigned()).count() as u32]
    });
    let denied = denied.numbers::<1>()[0];
    enforcer.state().set_descriptors(Descriptors::Check);
    assert_eq!(denied as usize, SOCKETS + 2);
}
