//! The acts of the canary. They harm nobody, and each is checked by a hook of another kind. The canary is a fork of a
//! program with several threads, so it may only make system calls.

use std::{io, sync::atomic::Ordering, time::Duration};

use nix::unistd::Pid;

use super::page::{Acts, Page, wait, wake};

/// The hook that every policy attaches.
pub(super) const FORK: &str = "task_alloc";
/// The act that is checked whatever the policy says.
pub(super) const ALWAYS: Acts = 1;

type Act = fn() -> libc::c_long;

/// Each act, and the hooks of which any one denies it.
const ACTS: [(&[&str], Act); 4] = [
    (&[FORK], fork_one),
    (&["inode_permission", "file_open"], open),
    (&["task_kill"], signal),
    (&["socket_create"], socket),
];

/// The file that it opens: one of its own without a name, and each time a new one. If another process had looked at the
/// file, the access cache would answer for all subjects.
const OWN: &std::ffi::CStr = c"/proc/self/fd/0";
/// How often the canary looks whether its keeper still exists when it is asked for nothing.
const KEEPER_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The acts that attached hooks check.
pub(super) fn of_hooks(is_attached: impl Fn(&str) -> bool) -> Acts {
    let is_asked = |hooks: &[&str]| hooks.iter().any(|hook| is_attached(hook));
    let asked = ACTS.iter().enumerate().filter(|(_, (hooks, _))| is_asked(hooks));
    asked.fold(0, |acts, (place, _)| acts | 1 << place)
}

/// One of these acts: each has its turn.
pub(super) fn one_of(acts: Acts, turn: u32) -> Acts {
    let own = |place: &u32| acts >> place & 1 != 0;
    let turn = turn.checked_rem(acts.count_ones()).unwrap_or_default();
    (0..Acts::BITS).filter(own).nth(turn as usize).map_or(0, |place| 1 << place)
}

/// Forks the canary. It uses the page until its keeper is gone.
pub(super) fn fork(page: &Page) -> io::Result<Pid> {
    // SAFETY: the child does system calls only, in memory of its own and in the page, and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => live(page),
        process => Ok(Pid::from_raw(process)),
    }
}

fn live(page: &Page) -> ! {
    let words = page.words();
    // SAFETY: these calls take numbers, and strings that end in NUL.
    let keeper = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"canary".as_ptr());
        for signal in 1..32 {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
        libc::getppid()
    };
    let mut number = 0;
    // At first: the acts that it can do while nothing is enforced.
    let mut acts = of_hooks_all();
    loop {
        let (granted, denied) = attempt(acts);
        words.granted.store(granted, Ordering::SeqCst);
        words.denied.store(denied, Ordering::SeqCst);
        words.answered.store(number + 1, Ordering::SeqCst);
        wake(&words.answered);
        while words.asked.load(Ordering::SeqCst) == number {
            wait(&words.asked, number, KEEPER_CHECK_INTERVAL);
            // SAFETY: these calls take nothing, and end the process.
            unsafe {
                if libc::getppid() != keeper {
                    libc::_exit(0);
                }
            }
        }
        number = words.asked.load(Ordering::SeqCst);
        acts = words.acts.load(Ordering::SeqCst);
    }
}

const fn of_hooks_all() -> Acts {
    (1 << ACTS.len()) - 1
}

/// Tries these acts. Returns those that succeeded, and those that were denied.
fn attempt(acts: Acts) -> (Acts, Acts) {
    let (mut granted, mut denied) = (0, 0);
    for (place, (_, act)) in ACTS.iter().enumerate() {
        if acts >> place & 1 == 0 {
            continue;
        }
        if act() >= 0 {
            granted |= 1 << place;
        // SAFETY: the thread's own word.
        } else if matches!(unsafe { *libc::__errno_location() }, libc::EACCES | libc::EPERM) {
            denied |= 1 << place;
        }
    }
    (granted, denied)
}

/// Makes a child that ends at once. Uses the system call, because the C library's fork does more, for programs that go
/// on.
fn fork_one() -> libc::c_long {
    // SAFETY: the child ends with its first call; the calls take numbers.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
        if child == 0 {
            libc::syscall(libc::SYS_exit_group, 0);
        }
        if child > 0 {
            libc::waitpid(child as i32, std::ptr::null_mut(), 0);
        }
        child
    }
}

fn open() -> libc::c_long {
    // SAFETY: name and path end in NUL; the descriptors are closed again.
    unsafe {
        // It has no other file, so this one gets the lowest number, 0.
        let own = libc::memfd_create(c"canary".as_ptr(), libc::MFD_CLOEXEC);
        if own < 0 {
            return own.into();
        }
        let opened = closed(libc::open(OWN.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC));
        let cause = *libc::__errno_location();
        libc::close(own);
        *libc::__errno_location() = cause;
        opened
    }
}

fn signal() -> libc::c_long {
    // SAFETY: these calls take numbers. Signal 0 only asks.
    unsafe { libc::kill(libc::getpid(), 0).into() }
}

fn socket() -> libc::c_long {
    // SAFETY: these calls take numbers.
    unsafe { closed(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)) }
}

/// Closes a descriptor that a call returned. If the call failed, errno stays as it is.
unsafe fn closed(file: i32) -> libc::c_long {
    if file >= 0 {
        // SAFETY: the caller has just got it.
        unsafe { libc::close(file) };
    }
    file.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::sys::{
        signal::{Signal, kill},
        wait::waitpid,
    };

    use super::*;

    #[test]
    fn asks_for_what_hooks_are_there_to_deny() {
        let of = |attached: &[&str]| of_hooks(|hook| attached.contains(&hook));
        assert_eq!(of(&[FORK]), ALWAYS);
        assert_eq!(of(&["file_open", "capable"]), 2);
        assert_eq!(of(&["inode_permission", "task_kill", "socket_create", FORK]), 15);
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn gives_each_act_its_turn() {
        let turns: Vec<Acts> = (0..5).map(|turn| one_of(0b1101, turn)).collect();
        assert_eq!(turns, [1, 4, 8, 1, 4]);
        assert_eq!((one_of(0, 7), one_of(ALWAYS, 7)), (0, ALWAYS));
    }

    #[test]
    fn does_what_it_is_asked_and_says_what_nobody_denied() {
        let page = Page::new().unwrap();
        let bird = fork(&page).unwrap();
        let patience = Duration::from_secs(30);
        // The first answer is of all acts, where nothing is enforced.
        assert_eq!(page.answer(0, patience).map(|answer| (answer.granted, answer.denied)), Some((15, 0)));
        for acts in [1, 2, 15, 0] {
            let number = page.ask(acts).unwrap();
            assert_eq!(page.answer(number, patience).map(|answer| (answer.granted, answer.denied)), Some((acts, 0)));
        }
        kill(bird, Signal::SIGSTOP).unwrap();
        let number = page.ask(15).unwrap();
        assert_eq!(page.answer(number, Duration::from_millis(50)), None);
        kill(bird, Signal::SIGKILL).unwrap();
        waitpid(bird, None).unwrap();
    }
}
