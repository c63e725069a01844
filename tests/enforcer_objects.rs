//! Labels of objects outside file systems, in guests: of the machine's System V objects, which are in no map, and of its
//! sockets; of objects that are gone; when a map is full.
//!
//! The part in the guest is this program again: it starts the enforcer in its own process. Kernels are needed, from the cache
//! or a network, and mke2fs.

use std::{
    io,
    net::UdpSocket,
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::OnceLock,
    thread::sleep,
    time::{Duration, Instant},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use tollgate_abi::enforcer::{TG_ATTRIBUTE_CURRENT, TG_FAILED_OBJECTS_FULL, TG_PRCTL};
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, Options},
    programs::{self, Pins},
};

use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{Confined, Guests, Played, enforcer, errno, is_enforced, is_guest, name, policy},
};

/// Calls that find or create a System V object: the number, and the argument between key and mode.
const KINDS: [(libc::c_long, Option<i64>); 3] =
    [(libc::SYS_semget, Some(1)), (libc::SYS_msgget, None), (libc::SYS_shmget, Some(4096))];
/// How long the kernel may take to free unused objects.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Fails unless a test has passed in guests, which all tests of this file share.
fn played(test: impl Fn()) {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    let play = || {
        let guests = Guests {
            kernels: KERNELS,
            policies: &[(&[policy("objects.cil")], "/built")],
            files: &[],
            processors: 2,
            timeout: 200,
            share_srv: false,
            tests: &[
                name(asks_of_sockets_older_than_enforcement_what_is_asked_of_sockets),
                name(knows_the_class_of_system_v_objects_that_the_machine_made),
                name(forgets_what_is_gone),
                // It leaves no room for other tests.
                name(makes_nothing_that_nobody_would_know_the_maker_of),
            ],
        };
        guests.play(&Scratch::new())
    };
    PLAYED.get_or_init(play).assert_passed(test);
}

/// Enforcement; the machine's processes are in no domain.
fn start() -> Enforcer {
    let unconfined = ["unconfined_t", "free_t"].map(str::to_owned).to_vec();
    let options = Options { unconfined, ..Options::default() };
    let enforcer = enforcer(options, "/built");
    enforcer.state().set_enforcing(true);
    enforcer
}

fn domain(enforcer: &mut Enforcer, type_: &str) -> Sid {
    enforcer.intern(&format!("u:r:{type_}:s0")).unwrap()
}

fn call(number: libc::c_long, arguments: &[i64]) -> io::Result<i64> {
    let argument = |place: usize| arguments.get(place).copied().unwrap_or(0);
    // SAFETY: the calls of these tests take numbers, and addresses of what lives until they return.
    let result =
        unsafe { libc::syscall(number, argument(0), argument(1), argument(2), argument(3), argument(4), argument(5)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Finds a System V object for reading, or creates it.
fn get((number, size): (libc::c_long, Option<i64>), key: i64, make: bool) -> io::Result<i64> {
    let mode = if make { i64::from(libc::IPC_CREAT | libc::IPC_EXCL) | 0o666 } else { 0o444 };
    let arguments: Vec<i64> = [Some(key), size, Some(mode)].into_iter().flatten().collect();
    call(number, &arguments)
}

fn objects() -> MapHandle {
    programs::map(&Pins::default(), "objects").unwrap()
}

#[test]
fn knows_the_class_of_system_v_objects_that_the_machine_made() {
    if !is_guest() {
        return played(knows_the_class_of_system_v_objects_that_the_machine_made);
    }
    // Processes from before enforcement are the machine's: this one, too.
    assert!(!is_enforced());
    // Their tables have several levels then.
    for (kind, key) in KINDS.into_iter().flat_map(|kind| (1..=70).map(move |key| (kind, key))) {
        get(kind, key, true).unwrap();
    }
    let enforcer = &mut start();
    for kind in KINDS {
        get(kind, 71, true).unwrap();
    }
    for (own, type_) in ["sem_t", "msgq_t", "shm_t"].iter().enumerate() {
        let domain = domain(enforcer, type_);
        for key in [1, 2, 70, 71] {
            let found = Confined::start(domain, |_| KINDS.map(|kind| errno(get(kind, key, false)))).numbers::<3>();
            let mut expected = [libc::EACCES.cast_unsigned(); 3];
            expected[own] = 0;
            assert_eq!(found, expected, "{type_}, key {key}");
        }
    }
    assert_eq!(objects().keys().count(), 0);
}

/// Tries to enter a domain, with all descriptors.
fn try_domain(domain: Sid) -> u32 {
    // SAFETY: this prctl takes numbers only.
    let result = unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_CURRENT, domain, 0, 0) };
    assert_eq!(result, -1);
    io::Error::last_os_error().raw_os_error().unwrap().cast_unsigned()
}

#[test]
fn asks_of_sockets_older_than_enforcement_what_is_asked_of_sockets() {
    if !is_guest() {
        return played(asks_of_sockets_older_than_enforcement_what_is_asked_of_sockets);
    }
    assert!(!is_enforced());
    // The policy permits no domain a sock_file, every domain a unix_stream_socket, and one domain a udp_socket.
    let _streams = UnixStream::pair().unwrap();
    let datagrams = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let enforcer = &mut start();
    let [may, may_not] = ["sem_t", "shm_t"].map(|type_| domain(enforcer, type_));
    let [with, without] = [true, false].map(|open| {
        let act = |_: &mut UnixStream| {
            if !open {
                // SAFETY: the process ends without using it again.
                unsafe { libc::close(datagrams.as_raw_fd()) };
            }
            [try_domain(may_not)]
        };
        Confined::start(may, act).numbers::<1>()
    });
    assert_eq!((with, without), ([libc::EACCES.cast_unsigned()], [libc::EALREADY.cast_unsigned()]));
    enforcer.stop().unwrap();
}

/// Creates one of each: a queue with a message, semaphores, a segment, a ring with a key, an event, a map, a program.
fn make_all(round: i64) -> io::Result<()> {
    for kind in KINDS {
        get(kind, 1000 + round, true)?;
    }
    let queue = get(KINDS[1], 1000 + round, false)?;
    let message = [1_u64, 0];
    call(libc::SYS_msgsnd, &[queue, message.as_ptr() as i64, 1, i64::from(libc::IPC_NOWAIT)])?;
    call(libc::SYS_keyctl, &[1, 0])?;
    let (kind, name) = (c"user".as_ptr() as i64, c"name".as_ptr() as i64);
    call(libc::SYS_add_key, &[kind, name, name, 4, -3])?;
    let mut event = [0_u64; 14];
    event[0] = 112 << 32 | 1;
    event[1] = 9;
    call(libc::SYS_perf_event_open, &[event.as_ptr() as i64, 0, -1, -1, 0])?;
    let map = [2_u32, 4, 4, 1, 0];
    call(libc::SYS_bpf, &[0, map.as_ptr() as i64, 20])?;
    let code = [0xb7_u64, 0x95];
    let load = [2 << 32 | 1, code.as_ptr() as u64, c"GPL".as_ptr() as u64];
    call(libc::SYS_bpf, &[5, load.as_ptr() as i64, 24])?;
    Ok(())
}

/// Removes the System V objects that `make_all` has created.
fn remove_all(round: i64) -> io::Result<()> {
    let remove = [(libc::SYS_semctl, vec![0, 0]), (libc::SYS_msgctl, vec![0]), (libc::SYS_shmctl, vec![0])];
    for (kind, (number, command)) in KINDS.into_iter().zip(remove) {
        let object = get(kind, 1000 + round, false)?;
        call(number, &[&[object], command.as_slice()].concat())?;
    }
    Ok(())
}

#[test]
fn forgets_what_is_gone() {
    if !is_guest() {
        return played(forgets_what_is_gone);
    }
    let enforcer = &mut start();
    let maker = domain(enforcer, "maker_t");
    let objects = objects();
    for round in 0..20 {
        let made = Confined::start(maker, |_| [errno(make_all(round))]);
        assert_eq!(made.numbers::<1>(), [0]);
    }
    // Three System V objects stay, although everything else ended with its process. Their messages need no entry.
    assert!(objects.keys().count() >= 60, "{}", objects.keys().count());
    let removed = Confined::start(maker, |_| [errno((0..20).try_for_each(remove_all))]);
    assert_eq!(removed.numbers::<1>(), [0]);
    let begun = Instant::now();
    while objects.keys().count() > 0 && begun.elapsed() < TIMEOUT {
        sleep(Duration::from_millis(50));
    }
    assert_eq!(objects.keys().count(), 0, "after {:?}", begun.elapsed());
}

#[test]
fn makes_nothing_that_nobody_would_know_the_maker_of() {
    if !is_guest() {
        return played(makes_nothing_that_nobody_would_know_the_maker_of);
    }
    let enforcer = &mut start();
    let [maker, unconfined] = ["maker_t", "free_t"].map(|type_| domain(enforcer, type_));
    let objects = objects();
    let (room, batch) = (u64::from(objects.max_entries()), 1 << 16);
    for first in (0..room).step_by(batch) {
        let keys: Vec<u8> = (first..first + batch as u64).flat_map(u64::to_ne_bytes).collect();
        let values = vec![0; batch * objects.value_size() as usize];
        let _ = objects.update_batch(&keys, &values, batch as u32, MapFlags::ANY, MapFlags::ANY);
    }
    let full = libc::ENOMEM.cast_unsigned();
    let make = |domain| Confined::start(domain, |_| KINDS.map(|kind| errno(get(kind, 0, true)))).numbers::<3>();
    assert_eq!(make(maker), [full; 3]);
    let failures = enforcer.state().failures()[TG_FAILED_OBJECTS_FULL as usize];
    assert_eq!(failures, 3);
    // An unconfined process goes on.
    assert_eq!(make(unconfined), [0; 3]);
    assert_eq!(enforcer.state().failures()[TG_FAILED_OBJECTS_FULL as usize], failures + 3);
    for kind in KINDS {
        get(kind, 0, true).unwrap();
    }
    for key in 0..3_u64 {
        objects.delete(&key.to_ne_bytes()).unwrap();
    }
    assert_eq!(make(maker), [0; 3]);
}
