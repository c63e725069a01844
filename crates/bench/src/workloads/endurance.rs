//! Tests of the process and communication workloads: each runs for long, and leaves nothing behind.

use std::{
    fs,
    io::{Read, pipe},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    sched::{CloneFlags, unshare},
    sys::wait::{WaitPidFlag, WaitStatus, waitpid},
    unistd::{ForkResult, Uid, alarm, fork, getegid, geteuid, setresuid},
};

use super::catalogue;
use crate::{
    place::{FileSystem, Network, Place},
    places::Places,
    selection::Selection,
    workload::{Group, Scope, Workload},
};

/// Runs after which nothing may have grown; fewer for workloads that create a task.
const RUNS: u32 = 2_000;
const RUNS_THAT_MAKE_TASKS: u32 = 200;
/// Pages that the allocator or the C library may still take after the first tenth of the runs.
const MAX_GROWTH_PAGES: u64 = 32;
/// Seconds after which a test that hangs is ended.
const TIMEOUT_SECONDS: u32 = 120;

/// Runs a test in a child, whose descriptors, mappings and children are then the test's own, whatever other tests do
/// meanwhile; and no peer of theirs has its program file open for writing.
pub(crate) fn in_a_process_of_its_own(test: impl FnOnce() -> Result<(), String>) {
    let (mut verdict, mut writer) = pipe().unwrap();
    // SAFETY: glibc keeps its allocator usable in the child of a process with threads; the child ends in _exit.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            drop(verdict);
            alarm::set(TIMEOUT_SECONDS);
            let failure = test().err().unwrap_or_default();
            let told = std::io::Write::write_all(&mut writer, failure.as_bytes()).is_ok();
            // SAFETY: _exit runs nothing of the copied program.
            unsafe { libc::_exit(i32::from(!told)) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let status = loop {
                match waitpid(child, None) {
                    Err(Errno::EINTR) => (),
                    done => break done.unwrap(),
                }
            };
            // Everything that it wrote is in the pipe. The pipe may not be at its end, because a peer that it left behind has
            // it open.
            fcntl(&verdict, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
            let mut text = [0; 4096];
            let length = verdict.read(&mut text).unwrap_or(0);
            let failure = String::from_utf8_lossy(&text[..length]);
            assert_eq!((failure.as_ref(), status), ("", WaitStatus::Exited(child, 0)));
        }
    }
}

/// The workloads of the two families that can run over this network.
fn workloads(network: Network) -> Vec<&'static Workload> {
    let here = |w: &&Workload| matches!(w.group, Group::Processes | Group::Communication);
    let sends = |w: &&Workload| network == Network::Loopback || w.scope == Scope::Network;
    catalogue().into_iter().filter(here).filter(sends).collect()
}

/// The numbers of open descriptors and of resident pages.
fn footprint() -> (usize, u64) {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    (open, pages.split(' ').nth(1).and_then(|field| field.parse().ok()).unwrap_or(0))
}

fn place(places: &Places, workload: &'static Workload, net: Network) -> Result<Place, String> {
    let selection = Selection { workload, command: None, fs: FileSystem::Rootfs, depth: 10, net };
    places.place(&selection).map_err(|e| e.to_string())
}

/// Sets a workload up, runs it and drops it; fails if anything is left, or grew on the way.
fn endure(workload: &'static Workload, network: Network, runs: u32) -> Result<(), String> {
    let places = Places::open(None, &[]).map_err(|e| e.to_string())?;
    let place = place(&places, workload, network)?;
    let (open_before, _) = footprint();
    let mut operation = (workload.setup)(&place).map_err(|e| e.to_string())?;
    let mut early = footprint();
    for number in 0..runs {
        if number % operation.reach() == 0 {
            operation.before().map_err(|e| e.to_string())?;
        }
        operation.run().map_err(|e| format!("run {number}: {e}"))?;
        if number == runs / 10 {
            early = footprint();
        }
    }
    let late = footprint();
    drop(operation);
    let (open_after, _) = footprint();
    if late.0 != early.0 || open_after != open_before {
        return Err(format!("descriptors: {open_before} before, {} to {}, {open_after} after", early.0, late.0));
    }
    if late.1 > early.1 + MAX_GROWTH_PAGES {
        return Err(format!("resident pages grew from {} to {}", early.1, late.1));
    }
    nothing_left(&place.dir)
}

fn nothing_left(directory: &Path) -> Result<(), String> {
    let files = fs::read_dir(directory).map_err(|e| e.to_string())?.count();
    let children = waitpid(None, Some(WaitPidFlag::WNOHANG));
    match (files, children) {
        (0, Err(Errno::ECHILD)) => Ok(()),
        left => Err(format!("left behind: {left:?} (files, children)")),
    }
}

/// Makes this process, which has one thread, root of its own namespaces, unless it is root already.
pub(crate) fn become_root() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(|errno| format!("unshare: {errno}"))?;
    for (file, line) in
        [("setgroups", "deny".to_owned()), ("uid_map", format!("0 {user} 1")), ("gid_map", format!("0 {group} 1"))]
    {
        fs::write(format!("/proc/self/{file}"), line).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// Makes this process the unprivileged user nobody.
pub(crate) fn become_nobody() -> Result<(), String> {
    let nobody = Uid::from_raw(65534);
    if geteuid().is_root() { setresuid(nobody, nobody, nobody).map_err(|errno| errno.to_string()) } else { Ok(()) }
}

fn endure_all(network: Network) {
    for workload in workloads(network) {
        let runs = match workload.name {
            "fork+exit" | "exec" | "sh" | "thread" => RUNS_THAT_MAKE_TASKS,
            _ => RUNS,
        };
        in_a_process_of_its_own(|| {
            if network == Network::Veth {
                become_root()?;
            }
            // Namespaces stay for the life of the process: they are no leak of the workload's.
            crate::network::Link::open(network).map_err(|e| e.to_string())?;
            endure(workload, network, runs).map_err(|e| format!("{}: {e}", workload.name))
        });
    }
}

#[test]
fn leaves_nothing_behind_and_grows_nothing_over_many_runs() {
    endure_all(Network::Loopback);
}

#[test]
fn leaves_nothing_behind_across_a_veth() {
    endure_all(Network::Veth);
}

#[test]
fn runs_twice_side_by_side_where_ports_are_taken() {
    let workload = super::find("tcp").unwrap();
    in_a_process_of_its_own(|| {
        let places = Places::open(None, &[]).map_err(|e| e.to_string())?;
        let place = place(&places, workload, Network::Loopback)?;
        let mut first = (workload.setup)(&place).map_err(|e| e.to_string())?;
        let mut second = (workload.setup)(&place).map_err(|e| e.to_string())?;
        first.run().and(second.run()).and(first.run()).map_err(|e| e.to_string())
    });
}
