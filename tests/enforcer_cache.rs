//! The caches never answer about another object.
//!
//! Their entries are found by addresses, which are reused, and contain what held for the subjects of that time
//! (docs/adr/0009). The part in the guest is this program again: it starts the enforcer in its own process. Kernels are
//! needed, from the cache or a network.

use std::{
    ffi::CStr,
    fs::{self, File},
    io,
    os::fd::AsFd,
    ptr,
    sync::OnceLock,
};

use tollgate_abi::enforcer::{TG_ATTRIBUTE_CURRENT, TG_ATTRIBUTE_EXEC, TG_LIVE, TG_PRCTL, tg_attribute};
use tollgate_client::descriptors::Descriptors;
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, Options},
};

use crate::program::{
    Scratch,
    guests::KERNELS,
    inside::{Guests, Played, enforcer, is_enforced, is_guest, is_held, name, policy, sh},
};

const OPEN: &CStr = c"/t/open/file";
const CLOSED: &CStr = c"/t/closed/file";
/// How often an object is created at the address of another.
const REPETITIONS: usize = 60;

/// Fails unless a test has passed in guests of two processors, which all tests of this file share.
fn played(test: impl Fn()) {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    let play = || {
        let guests = Guests {
            kernels: KERNELS,
            policies: &[(&[policy("cache.cil")], "/built")],
            files: &[],
            processors: 2,
            timeout: 120,
            share_srv: false,
            tests: &[
                // Others leave a subject behind that may do nothing to itself, so that nothing is remembered any more.
                name(denies_a_subject_that_comes_to_life_what_all_might_do_to_themselves),
                name(denies_a_signal_to_a_task_that_has_become_another_subject),
                name(denies_a_signal_to_a_task_that_has_the_address_of_another),
                name(denies_a_socket_that_has_the_address_of_another),
                name(denies_what_has_the_address_of_an_inode_that_was_allowed),
                name(denies_a_task_that_has_the_address_of_an_unconfined_one),
                name(denies_subjects_that_come_to_life_after_everybody_was_granted),
                name(tells_once_each_what_a_permissive_machine_grants),
                name(denies_a_subject_what_another_was_granted_on_the_same_socket),
            ],
        };
        guests.play(&Scratch::new())
    };
    PLAYED.get_or_init(play).assert_passed(test);
}

/// Enforcement in the guest, with two directories whose files have types of the same names.
struct Enforced(Enforcer);

impl Enforced {
    fn new() -> Self {
        let is_new = !is_enforced();
        if is_new {
            sh("mkdir /t; mount -t tmpfs none /t; mkdir /t/open /t/closed");
        }
        let mut enforced = Self(enforcer(Options::default(), "/built"));
        for name in if is_new { &["open", "closed"][..] } else { &[] } {
            enforced.label(&format!("/t/{name}"), &format!("{name}_t"));
        }
        enforced
    }

    fn label(&mut self, path: &str, type_: &str) {
        let sid = self.0.intern(&format!("u:object_r:{type_}:s0")).unwrap();
        self.0.set_label(File::open(path).unwrap().as_fd(), sid).unwrap();
    }

    fn subject(&mut self, type_: &str, category: usize) -> Sid {
        self.0.intern(&format!("u:r:{type_}:s0-s0:c{category}")).unwrap()
    }
}

/// Opens and closes a file: 0 or the errno.
fn opens(path: &CStr, flags: i32) -> i32 {
    // SAFETY: the path ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    if file < 0 {
        return io::Error::last_os_error().raw_os_error().unwrap_or(-1);
    }
    // SAFETY: the kernel has just given it to us.
    unsafe { libc::close(file) };
    0
}

/// The exit status of a child that does `act`. It makes system calls only, because other threads may hold locks.
fn child(act: impl FnOnce() -> i32) -> i32 {
    let process = start_child(act);
    let mut status = 0;
    // SAFETY: the place for the status is ours.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    assert!(libc::WIFEXITED(status), "{status:x}");
    libc::WEXITSTATUS(status)
}

fn start_child(act: impl FnOnce() -> i32) -> i32 {
    let held: Vec<i32> = (3..256).filter(|number| is_held(*number)).collect();
    // SAFETY: the child makes system calls only, and ends.
    let process = unsafe { libc::fork() };
    assert!(process >= 0, "{}", io::Error::last_os_error());
    if process == 0 {
        for number in held {
            // SAFETY: the child, which may enter a domain, uses none of them.
            unsafe { libc::close(number) };
        }
        let code = act();
        // SAFETY: nothing of the child's is needed any more.
        unsafe { libc::_exit(code) };
    }
    process
}

/// Gives the calling thread an attribute.
fn set(attribute: tg_attribute, sid: Sid) {
    // SAFETY: an option that no kernel knows takes integers only.
    let done = unsafe { libc::prctl(TG_PRCTL as i32, u64::from(attribute), u64::from(sid), 0u64, 0u64) };
    if done != -1 || io::Error::last_os_error().raw_os_error() != Some(libc::EALREADY) {
        // SAFETY: as above; no test waits for this code.
        unsafe { libc::_exit(255) };
    }
}

/// The exit status of a child in another domain.
fn within(sid: Sid, act: impl FnOnce() -> i32) -> i32 {
    child(|| {
        set(TG_ATTRIBUTE_CURRENT, sid);
        act()
    })
}

#[test]
fn denies_what_has_the_address_of_an_inode_that_was_allowed() {
    if !is_guest() {
        return played(denies_what_has_the_address_of_an_inode_that_was_allowed);
    }
    let mut enforced = Enforced::new();
    let reader = enforced.subject("reader_t", 0);
    for _ in 0..REPETITIONS {
        fs::write("/t/open/file", "").unwrap();
        assert_eq!(within(reader, || opens(OPEN, libc::O_RDONLY)), 0);
        fs::remove_file("/t/open/file").unwrap();
        fs::write("/t/closed/file", "").unwrap();
        assert_eq!(within(reader, || opens(CLOSED, libc::O_RDONLY)), libc::EACCES);
        fs::remove_file("/t/closed/file").unwrap();
    }
}

#[test]
fn denies_a_task_that_has_the_address_of_an_unconfined_one() {
    if !is_guest() {
        return played(denies_a_task_that_has_the_address_of_an_unconfined_one);
    }
    let mut enforced = Enforced::new();
    let reader = enforced.subject("reader_t", 0);
    fs::write("/t/closed/file", "").unwrap();
    let mut denied = 0;
    for _ in 0..REPETITIONS {
        assert_eq!(child(|| opens(CLOSED, libc::O_RDONLY)), 0);
        denied += usize::from(within(reader, || child(|| opens(CLOSED, libc::O_RDONLY))) == libc::EACCES);
    }
    assert_eq!(denied, REPETITIONS);
}

#[test]
fn denies_subjects_that_come_to_life_after_everybody_was_granted() {
    if !is_guest() {
        return played(denies_subjects_that_come_to_life_after_everybody_was_granted);
    }
    let mut enforced = Enforced::new();
    let reader = enforced.subject("reader_t", 0);
    fs::write("/t/open/file", "").unwrap();
    for category in 0..TG_LIVE as usize + 4 {
        let late = enforced.subject("late_t", category);
        (0..3).for_each(|_| assert_eq!(within(reader, || opens(OPEN, libc::O_RDONLY)), 0));
        let came = if category % 2 == 0 { within(late, || opens(OPEN, libc::O_RDONLY)) } else { executed(late) };
        assert_eq!(came, if category % 2 == 0 { libc::EACCES } else { 1 }, "subject {category}");
    }
}

/// The exit status of a shell that is executed in a domain and reads the file.
fn executed(sid: Sid) -> i32 {
    let words = [c"sh", c"-c", c"exec 2>/dev/null; exec 3< /t/open/file"];
    let words = [words[0].as_ptr(), words[1].as_ptr(), words[2].as_ptr(), ptr::null()];
    child(|| {
        set(TG_ATTRIBUTE_EXEC, sid);
        // SAFETY: the words end in NUL, and their list in NULL.
        unsafe { libc::execv(c"/bin/sh".as_ptr(), words.as_ptr()) };
        254
    })
}

#[test]
fn tells_once_each_what_a_permissive_machine_grants() {
    if !is_guest() {
        return played(tells_once_each_what_a_permissive_machine_grants);
    }
    let mut enforced = Enforced::new();
    let reader = enforced.subject("reader_t", 0);
    fs::write("/t/closed/file", "").unwrap();
    let state = enforced.0.state();
    state.set_enforcing(false);
    let before = state.events();
    for _ in 0..4 {
        for flags in [libc::O_RDONLY, libc::O_WRONLY] {
            assert_eq!(within(reader, || opens(CLOSED, flags)), 0);
        }
    }
    assert_eq!(state.events() - before, 2);
    state.set_enforcing(true);
    assert_eq!(within(reader, || opens(CLOSED, libc::O_RDONLY)), libc::EACCES);
}

/// What sending a byte to the other end, and receiving it there, come to: 0 or the errno of each.
fn talk([sender, receiver]: [libc::c_int; 2]) -> [i32; 2] {
    let mut byte = 0_u8;
    let outcome = |length: isize| if length == 1 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or(-1) };
    // SAFETY: there is room for one byte.
    let sent = outcome(unsafe { libc::send(sender, (&raw const byte).cast(), 1, libc::MSG_DONTWAIT) });
    // SAFETY: as above.
    [sent, outcome(unsafe { libc::recv(receiver, (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT) })]
}

#[test]
fn denies_a_subject_what_another_was_granted_on_the_same_socket() {
    if !is_guest() {
        return played(denies_a_subject_what_another_was_granted_on_the_same_socket);
    }
    let mut enforced = Enforced::new();
    let [reader, late] = ["reader_t", "late_t"].map(|type_| enforced.subject(type_, 0));
    // So that a process may bring along what it may not use.
    enforced.0.state().set_descriptors(Descriptors::Use);
    let shared = || {
        set(TG_ATTRIBUTE_CURRENT, reader);
        let mut pair = [0; 2];
        // SAFETY: there is room for two descriptors.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) };
        let others = || within(late, || i32::from((0..2).all(|_| talk(pair) == [libc::EACCES; 2])));
        let own = || (0..2).all(|_| talk(pair) == [0; 2]);
        i32::from(made == 0 && own() && others() == 1 && own() && others() == 1 && own())
    };
    let denied = (0..REPETITIONS).map(|_| child(shared)).sum::<i32>();
    enforced.0.state().set_descriptors(Descriptors::Check);
    assert_eq!(denied as usize, REPETITIONS);
}

/// What a signal that only looks for a process comes to: 0 or the errno.
fn finds(process: i32) -> i32 {
    // SAFETY: kill takes numbers only.
    if unsafe { libc::kill(process, 0) } == 0 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or(-1) }
}

/// Stops the calling process, until [`go_on`].
fn stop() {
    // SAFETY: raise takes a number only.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Waits until a child has stopped.
fn wait_until_stopped(process: i32) {
    let mut status = 0;
    // SAFETY: the place for the status is ours.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, libc::WUNTRACED) }, process);
    assert!(libc::WIFSTOPPED(status), "{status:x}");
}

fn go_on(process: i32) {
    // SAFETY: kill takes numbers only.
    assert_eq!(unsafe { libc::kill(process, libc::SIGCONT) }, 0);
}

fn end(process: i32) {
    // SAFETY: kill takes numbers only, and the status of the child is not wanted.
    unsafe { (libc::kill(process, libc::SIGKILL), libc::waitpid(process, ptr::null_mut(), 0)) };
}

#[test]
fn denies_a_signal_to_a_task_that_has_become_another_subject() {
    if !is_guest() {
        return played(denies_a_signal_to_a_task_that_has_become_another_subject);
    }
    let mut enforced = Enforced::new();
    let [reader, late] = ["reader_t", "late_t"].map(|type_| enforced.subject(type_, 0));
    let stops = [c"sh", c"-c", c"kill -STOP $$"];
    let stops = [stops[0].as_ptr(), stops[1].as_ptr(), stops[2].as_ptr(), ptr::null()];
    for executes in [false, true] {
        let other = start_child(|| {
            set(TG_ATTRIBUTE_CURRENT, reader);
            stop();
            if executes {
                set(TG_ATTRIBUTE_EXEC, late);
                // SAFETY: the words end in NUL, and their list in NULL.
                unsafe { libc::execv(c"/bin/sh".as_ptr(), stops.as_ptr()) };
                return 254;
            }
            set(TG_ATTRIBUTE_CURRENT, late);
            stop();
            0
        });
        wait_until_stopped(other);
        // The first may be answered by the policy. What it remembers answers the others.
        (0..3).for_each(|_| assert_eq!(within(reader, || finds(other)), 0));
        go_on(other);
        wait_until_stopped(other);
        (0..3).for_each(|_| assert_eq!(within(reader, || finds(other)), libc::EACCES, "executes: {executes}"));
        end(other);
    }
}

#[test]
fn denies_a_signal_to_a_task_that_has_the_address_of_another() {
    if !is_guest() {
        return played(denies_a_signal_to_a_task_that_has_the_address_of_another);
    }
    let mut enforced = Enforced::new();
    let reader = enforced.subject("reader_t", 0);
    let paused = |is_reader: bool| {
        let process = start_child(|| {
            if is_reader {
                set(TG_ATTRIBUTE_CURRENT, reader);
            }
            stop();
            0
        });
        wait_until_stopped(process);
        process
    };
    for _ in 0..REPETITIONS {
        for (is_reader, expected) in [(true, 0), (false, libc::EACCES)] {
            let other = paused(is_reader);
            assert_eq!([(); 2].map(|()| within(reader, || finds(other))), [expected; 2]);
            end(other);
        }
    }
}

/// A pair of connected sockets that the calling process makes in a domain.
fn pair_of(sid: Sid) -> [libc::c_int; 2] {
    set(TG_ATTRIBUTE_CURRENT, sid);
    let mut pair = [-1; 2];
    // SAFETY: there is room for two descriptors.
    unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) };
    pair
}

#[test]
fn denies_a_socket_that_has_the_address_of_another() {
    if !is_guest() {
        return played(denies_a_socket_that_has_the_address_of_another);
    }
    let mut enforced = Enforced::new();
    let [reader, late] = ["reader_t", "late_t"].map(|type_| enforced.subject(type_, 0));
    enforced.0.state().set_descriptors(Descriptors::Use);
    for _ in 0..REPETITIONS {
        // Those of late ones are everybody's, which is remembered.
        let everybodys = child(|| {
            let pair = pair_of(late);
            i32::from((0..3).all(|_| talk(pair) == [0; 2]))
        });
        let readers = child(|| {
            let pair = pair_of(reader);
            within(late, || i32::from((0..2).all(|_| talk(pair) == [libc::EACCES; 2])))
        });
        assert_eq!((everybodys, readers), (1, 1));
    }
    enforced.0.state().set_descriptors(Descriptors::Check);
}

#[test]
fn denies_a_subject_that_comes_to_life_what_all_might_do_to_themselves() {
    if !is_guest() {
        return played(denies_a_subject_that_comes_to_life_what_all_might_do_to_themselves);
    }
    let mut enforced = Enforced::new();
    let reader = enforced.subject("reader_t", 0);
    // SAFETY: the path ends in NUL.
    let chroots = || i32::from(unsafe { libc::chroot(c"/".as_ptr()) } == 0);
    // SAFETY: the child ends at once, and the parent waits for it.
    let forks = || match unsafe { libc::fork() } {
        // SAFETY: nothing of the child's is needed.
        0 => unsafe { libc::_exit(0) },
        // SAFETY: the status is not wanted.
        process if process > 0 => unsafe { i32::from(libc::waitpid(process, ptr::null_mut(), 0) == process) },
        _ => 0,
    };
    for category in [10, 11] {
        (0..3).for_each(|_| assert_eq!(within(reader, || chroots() + forks()), 2));
        let late = enforced.subject("late_t", category);
        assert_eq!(within(late, || chroots() + forks()), 0);
    }
}
