//! A new policy takes permissions away that are in use: open files are denied at their next use, mapped memory is found.
//!
//! The part in the guest is this program again. Kernels are needed, from the cache or a network, and mke2fs.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            fs::{FileExt, OpenOptionsExt},
            net::UnixDatagram,
        },
    },
    path::Path,
    process::{Child, Command},
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use tollgate_abi::enforcer::{TG_ATTRIBUTE_FSCREATE, TG_PRCTL};
use tollgate_client::{
    self, Client,
    protocol::Attribute,
    status::{Revoked, Status},
};

use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{Guests, Played, is_guest, name, policy, sh},
};

const HOLDER: &str = "u:r:holder_t:s0";
const KILLED: &str = "u:r:killed_t:s0";
const TIMEOUT: Duration = Duration::from_secs(300);
/// How many descriptors are held when a policy takes them away (Flask's Table 4 has 1 to 16), and by how many processes.
const HELD: [(usize, usize); 7] = [(1, 1), (2, 1), (4, 2), (8, 2), (16, 4), (1000, 10), (10_000, 100)];
/// Milliseconds that Flask took to revoke this many connections (Table 4), on a 200 MHz processor and Fluke.
const FLASK: [(usize, f64); 5] = [(1, 1.55), (2, 1.56), (4, 1.57), (8, 1.60), (16, 1.65)];

/// Fails unless a test has passed in guests, which all tests of this file share.
fn played(test: impl Fn()) {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    let play = || {
        let [after, before] = ["", "-before"].map(|part| policy(&format!("revocation{part}.cil")));
        let scratch = Scratch::new();
        let program = scratch.program();
        let guests = Guests {
            kernels: KERNELS,
            policies: &[(&[after.clone(), before], "/before"), (&[after], "/after")],
            files: &[
                (program.as_path(), "/bin/tollgate"),
                (Path::new(env!("CARGO_BIN_EXE_tollgate-scenario")), "/subject"),
            ],
            processors: 2,
            timeout: if cfg!(feature = "long") { 1200 } else { 400 },
            share_srv: true,
            tests: &[
                name(finds_memory_that_was_taken_away_and_kills_whom_the_policy_wants_killed),
                name(kills_no_process_that_is_permissive_and_counts_none_as_holding_what_was_taken_away),
                name(denies_what_was_opened_while_a_policy_was_in_force_that_is_taken_back),
                name(denies_reading_by_a_ring_what_it_alone_holds),
                #[cfg(feature = "long")]
                name(denies_what_was_opened_before_it_was_taken_away),
                // It stops enforcement.
                name(detaches_its_programs_before_it_says_that_it_has_stopped),
            ],
        };
        guests.play(&scratch)
    };
    PLAYED.get_or_init(play).assert_passed(test);
}

/// Enforcement by the policy that grants, with a daemon of this test.
fn enforce() -> Child {
    sh("mountpoint -q /srv && exit 0
        mount -o loop /image /srv; mkdir -p /srv/lost /var/log; \
        for i in $(seq 0 99); do echo text > /srv/lost/$i; done; echo text > /srv/kept; \
        echo text > /srv/unmapped");
    let daemon = Command::new("/bin/tollgate").args(["enforce", "--foreground", "/before"]).spawn().unwrap();
    let started = Instant::now();
    while Client::connect().and_then(|mut client| client.status()).is_err() {
        assert!(started.elapsed() < TIMEOUT, "no daemon");
        sleep(Duration::from_millis(50));
    }
    daemon
}

fn reload(path: &str) {
    let file = File::open(path).unwrap();
    Client::connect().unwrap().reload(file.as_fd(), false, None).unwrap();
}

fn status() -> Status {
    Client::connect().unwrap().status().unwrap()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// Memory that holders and the test share.
#[repr(C)]
struct Shared {
    /// How many holders have opened everything.
    ready: AtomicU32,
    ended: AtomicU32,
    /// The start of the last act that was allowed (microseconds of the monotonic clock).
    last_allowed: AtomicU64,
    allowed: AtomicU64,
    denied: AtomicU64,
    /// Acts with other errors, or denied acts on files that stay allowed.
    wrong: AtomicU64,
}

impl Shared {
    /// Memory that children share, to the program's end.
    fn new() -> &'static Self {
        let (length, all) = (size_of::<Self>(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping, chosen by the kernel.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), length, all, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: the memory is long enough, aligned to a page, never unmapped, and zeros are a value.
        unsafe { &*memory.cast::<Self>() }
    }

    /// Notes an act, with the time of its start.
    fn note(&self, began: u64, result: io::Result<usize>) {
        match result {
            Ok(_) => {
                self.last_allowed.fetch_max(began, SeqCst);
                self.allowed.fetch_add(1, SeqCst);
            }
            Err(cause) if cause.raw_os_error() == Some(libc::EACCES) => drop(self.denied.fetch_add(1, SeqCst)),
            Err(_) => drop(self.wrong.fetch_add(1, SeqCst)),
        }
    }
}

/// Microseconds of the clock that all processes share.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1000
}

/// A process that does an act, then ends.
fn fork(act: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child, of one thread, leaves by _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        act();
        // SAFETY: nothing is to be done at the end.
        unsafe { libc::_exit(0) };
    }
    child
}

fn enter(domain: &str) {
    Client::connect().and_then(|daemon| daemon.set_context(Attribute::Current, domain)).unwrap();
}

/// The same in a domain.
fn process(domain: &str, act: impl FnOnce()) -> libc::pid_t {
    fork(|| {
        enter(domain);
        act();
    })
}

fn open(path: &str) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// The exit status of a process.
fn end_of(process: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: the child is ours, the status is written before the call returns.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    status
}

/// An ioctl that no file system knows: ENOTTY means that it was permitted.
fn command(file: &File) -> io::Result<usize> {
    // SAFETY: the kernel knows no such command, and touches no memory for it.
    match unsafe { libc::ioctl(file.as_raw_fd(), 0x1111) } {
        0 => Ok(0),
        _ => Err(io::Error::last_os_error()).or_else(|cause| match cause.raw_os_error() {
            Some(libc::ENOTTY) => Ok(0),
            _ => Err(cause),
        }),
    }
}

/// Reads, writes, sends ioctls, sends and receives by many descriptors, repeatedly: of four descriptors, two are a pair of
/// sockets.
fn use_them(shared: &Shared, descriptors: usize) {
    let pairs: Vec<_> = (0..descriptors / 4).map(|_| UnixDatagram::pair().unwrap()).collect();
    let files = descriptors - 2 * pairs.len();
    let files: Vec<File> = (0..files).map(|number| open(&format!("/srv/lost/{}", number % 100))).collect();
    pairs.iter().for_each(|(_, receiver)| receiver.set_nonblocking(true).unwrap());
    let kept = open("/srv/kept");
    shared.ready.fetch_add(1, SeqCst);
    let mut buffer = [0; 1];
    while shared.ended.load(SeqCst) == 0 {
        for file in &files {
            shared.note(now(), file.read_at(&mut buffer, 0));
            shared.note(now(), file.write_at(b"T", 0));
            shared.note(now(), command(file));
        }
        for (sender, receiver) in &pairs {
            shared.note(now(), sender.send(b"T"));
            shared.note(now(), receiver.recv(&mut buffer));
        }
        if kept.read_at(&mut buffer, 0).is_err() {
            shared.wrong.fetch_add(1, SeqCst);
        }
    }
}

/// The times from the order to reload to its return, and to the last act that was allowed, in microseconds.
fn take_away(descriptors: usize, processes: usize) -> (u64, u64) {
    let shared = Shared::new();
    let holders: Vec<_> =
        (0..processes).map(|_| process(HOLDER, || use_them(shared, descriptors / processes))).collect();
    wait_for("holders", || shared.ready.load(SeqCst) as usize == processes && shared.allowed.load(SeqCst) > 0);
    assert_eq!(shared.denied.load(SeqCst), 0);
    let ordered = now();
    reload("/after");
    let returned = now();
    let revoked = status().revoked;
    let denied = shared.denied.load(SeqCst);
    wait_for("denials", || shared.denied.load(SeqCst) > denied + 3 * descriptors as u64);
    shared.ended.store(1, SeqCst);
    holders.into_iter().for_each(|holder| assert_eq!(end_of(holder), 0));
    let (last, wrong) = (shared.last_allowed.load(SeqCst), shared.wrong.load(SeqCst));
    assert_eq!(wrong, 0, "acts that came to something else");
    assert!(last <= returned, "an act was allowed that began {} us after reload had returned", last - returned);
    let expected = Revoked { descriptors: descriptors as u64, mappings: 0, processes: processes as u64 };
    assert_eq!(revoked, expected);
    reload("/before");
    (returned - ordered, last.saturating_sub(ordered))
}

/// Long: a hundred busy processes on two emulated processors take minutes where other guests run.
#[test]
#[cfg(feature = "long")]
fn denies_what_was_opened_before_it_was_taken_away() {
    if !is_guest() {
        return played(denies_what_was_opened_before_it_was_taken_away);
    }
    let mut daemon = enforce();
    sh("ulimit -n 4096");
    for (descriptors, processes) in HELD {
        let (reload, last) = take_away(descriptors, processes);
        let theirs = FLASK.iter().find(|(connections, _)| *connections == descriptors);
        let theirs = theirs.map_or(String::new(), |(_, time)| format!(" (Flask: {time} ms)"));
        let [reload, last] = [reload, last].map(|time| time as f64 / 1000.0);
        let figure = format!("{reload:.1} ms to reload, last allowed act began after {last:.1} ms{theirs}");
        // That no act is allowed after `reload` has returned is asserted above.
        crate::program::report_time(
            &format!("{descriptors} descriptors of {processes} processes taken away"),
            &figure,
            "Flask's",
        );
    }
    // No process holds anything any more: reads are no longer checked.
    wait_for("the end of asking", || !status().hooks.attached.iter().any(|hook| hook == "file_permission"));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

/// A process that has mapped a file, and waits.
fn map(domain: &str, path: &str, shared: &Shared) -> libc::pid_t {
    process(domain, || wait_with(path, false, shared))
}

/// Maps a file, and waits until the test ends; also with the file open.
fn wait_with(path: &str, is_open: bool, shared: &Shared) {
    let file = open(path);
    let all = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, chosen by the kernel.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), 4096, all, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    let _file = is_open.then_some(file);
    shared.ready.fetch_add(1, SeqCst);
    while shared.ended.load(SeqCst) == 0 {
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn finds_memory_that_was_taken_away_and_kills_whom_the_policy_wants_killed() {
    if !is_guest() {
        return played(finds_memory_that_was_taken_away_and_kills_whom_the_policy_wants_killed);
    }
    let mut daemon = enforce();
    let shared = Shared::new();
    let holder = map(HOLDER, "/srv/lost/1", shared);
    let killed = map(KILLED, "/srv/lost/2", shared);
    let keeper = map(KILLED, "/srv/kept", shared);
    // A file that may still be read and written, and no longer mapped.
    let mapper = map(HOLDER, "/srv/unmapped", shared);
    wait_for("mappings", || shared.ready.load(SeqCst) == 4);
    reload("/after");
    let found = status();
    assert_eq!((found.revoked, found.killed), (Revoked { descriptors: 0, mappings: 3, processes: 3 }, 1));
    assert_eq!(libc::WTERMSIG(end_of(killed)), libc::SIGKILL);
    // Mappings are reported as long as they exist.
    wait_for("another look", || status().revoked == Revoked { descriptors: 0, mappings: 2, processes: 2 });
    shared.ended.store(1, SeqCst);
    assert_eq!((end_of(holder), end_of(keeper), end_of(mapper)), (0, 0, 0));
    wait_for("the end", || status().revoked == Revoked::default());
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

/// `tollgate run --permissive`: denials are granted, so nothing counts as held.
#[test]
fn kills_no_process_that_is_permissive_and_counts_none_as_holding_what_was_taken_away() {
    if !is_guest() {
        return played(kills_no_process_that_is_permissive_and_counts_none_as_holding_what_was_taken_away);
    }
    let mut daemon = enforce();
    let shared = Shared::new();
    let permissive = fork(|| {
        tollgate_client::be_permissive().unwrap();
        enter(KILLED);
        wait_with("/srv/lost/1", true, shared);
    });
    let killed = map(KILLED, "/srv/lost/2", shared);
    wait_for("mappings", || shared.ready.load(SeqCst) == 2);
    reload("/after");
    let found = status();
    assert_eq!((found.revoked, found.killed), (Revoked { descriptors: 0, mappings: 1, processes: 1 }, 1));
    assert_eq!(libc::WTERMSIG(end_of(killed)), libc::SIGKILL);
    wait_for("another look", || status().revoked == Revoked::default());
    shared.ended.store(1, SeqCst);
    assert_eq!((end_of(permissive), status().killed), (0, 1));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

/// Since 6.5 the kernel itself detaches the program of a removed pin, some time later.
#[test]
fn detaches_its_programs_before_it_says_that_it_has_stopped() {
    if !is_guest() {
        return played(detaches_its_programs_before_it_says_that_it_has_stopped);
    }
    let mut daemon = enforce();
    let set = || {
        // SAFETY: this prctl takes numbers only.
        let done = unsafe { libc::prctl(TG_PRCTL.cast_signed(), TG_ATTRIBUTE_FSCREATE, 0, 0, 0) };
        (done, io::Error::last_os_error().raw_os_error())
    };
    assert_eq!(set(), (-1, Some(libc::EALREADY)));
    Client::connect().unwrap().stop().unwrap();
    assert_eq!(set(), (-1, Some(libc::EINVAL)), "a program answers");
    assert!(daemon.wait().unwrap().success());
}

/// Many questions that the policy that grants answers as expected, and one that it does not.
fn insane() -> File {
    let question = "u:r:holder_t:s0\tu:object_r:lost_t:s0\tfile\t";
    let path = "/run/insane";
    std::fs::write(path, format!("{question}read\n").repeat(10_000) + &format!("{question}-read\n")).unwrap();
    File::open(path).unwrap()
}

#[test]
fn denies_what_was_opened_while_a_policy_was_in_force_that_is_taken_back() {
    if !is_guest() {
        return played(denies_what_was_opened_while_a_policy_was_in_force_that_is_taken_back);
    }
    let mut daemon = enforce();
    reload("/after");
    let shared = Shared::new();
    let holder = process(HOLDER, || {
        let opened = || std::iter::repeat_with(|| File::open("/srv/lost/1")).find_map(Result::ok).unwrap();
        let (file, mut buffer) = (opened(), [0; 1]);
        shared.ready.store(1, SeqCst);
        while shared.ended.load(SeqCst) == 0 {
            shared.note(now(), file.read_at(&mut buffer, 0));
        }
    });
    wait_for("a file that was opened meanwhile", || {
        let before = File::open("/before").unwrap();
        let refusal = Client::connect().unwrap().reload(before.as_fd(), false, Some(insane().as_fd())).unwrap_err();
        assert!(refusal.to_string().contains("file read is allowed"), "{refusal}");
        shared.ready.load(SeqCst) == 1
    });
    let returned = now();
    wait_for("denials", || shared.denied.load(SeqCst) > 0);
    assert_eq!(status().revoked, Revoked { descriptors: 1, mappings: 0, processes: 1 });
    shared.ended.store(1, SeqCst);
    assert_eq!(end_of(holder), 0);
    let last = shared.last_allowed.load(SeqCst);
    assert!(last <= returned, "an act was allowed that began {} us later", last.saturating_sub(returned));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn denies_reading_by_a_ring_what_it_alone_holds() {
    if !is_guest() {
        return played(denies_reading_by_a_ring_what_it_alone_holds);
    }
    let mut daemon = enforce();
    sh("mkfifo /srv/go");
    let read = |file: &str, meanwhile: &dyn Fn()| {
        let acts = [format!("open {file} r"), "ring-read-later /srv/ready /srv/go".to_owned()];
        let run = ["run", "--context", HOLDER, "--", "/subject", "--subject", "tollgate", "0", "-1", "-1", "ends"];
        let mut subject = Command::new("/bin/tollgate").args(run).args(acts).spawn().unwrap();
        wait_for("a ring", || std::fs::remove_dir("/srv/ready").is_ok());
        meanwhile();
        let go = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open("/srv/go");
        wait_for("a reader", || go().is_ok());
        subject.wait().unwrap().code()
    };
    assert_eq!(read("/srv/lost/1", &|| {}), Some(0));
    assert_eq!(read("/srv/kept", &|| reload("/after")), Some(0));
    reload("/before");
    assert_eq!(read("/srv/lost/1", &|| reload("/after")), Some(1));
    wait_for("the end of asking", || !status().hooks.attached.iter().any(|hook| hook == "file_permission"));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}
