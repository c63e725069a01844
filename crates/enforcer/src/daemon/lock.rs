//! The lock that only one daemon can have. Any process that can open the file can lock it, so the holder is examined.

use std::{
    fs::{self, File},
    io::{self, Seek, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};
use tollgate_abi::enforcer::TG_SID_MACHINE;
use tollgate_audit::untrusted::for_people;
use tollgate_client::pidfd;
use tracing::warn;

use super::DaemonError;
use crate::{
    contexts::Sid,
    enforcer::{began, task_of},
    generation::Generation,
    labels::{object::Object, processes},
    programs::{self, Pins},
    state::State,
};

/// A process that has the lock file open.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    /// A daemon, or one that is starting.
    Daemon(i32),
    /// A confined process, which is not a daemon and must not keep one from starting.
    Confined(String),
    /// Another process of the machine.
    Other(String),
}

/// Takes the lock and writes this process's number to the file.
pub(super) fn take(path: &Path) -> Result<Flock<File>, DaemonError> {
    let error = |cause| DaemonError::Io { what: "lock", path: path.to_owned(), cause };
    let mut lock = match attempt(path).map_err(error)? {
        Ok(lock) => lock,
        Err(held) => {
            let holders = holders(&held).map_err(error)?;
            refuse(path, &holders)?;
            // The process that has the old file locked keeps a file that is no longer the lock.
            fs::remove_file(path).map_err(error)?;
            attempt(path).map_err(error)?.map_err(|_| DaemonError::Second(None))?
        }
    };
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut lock).map_err(error)?;
    Ok(lock)
}

/// The lock, or the file that another process has locked.
fn attempt(path: &Path) -> io::Result<Result<Flock<File>, File>> {
    let options = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).to_owned();
    match Flock::lock(options.open(path)?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Ok(lock)),
        Err((file, Errno::EWOULDBLOCK)) => Ok(Err(file)),
        Err((_, cause)) => Err(cause.into()),
    }
}

/// Whether the lock may be taken from the processes that have it; if not, why.
fn refuse(path: &Path, holders: &[Holder]) -> Result<(), DaemonError> {
    let daemon =
        holders.iter().find_map(|holder| if let Holder::Daemon(process) = holder { Some(process) } else { None });
    if let Some(process) = daemon {
        return Err(DaemonError::Second(Some(process.to_string())));
    }
    let names = |wanted: fn(&Holder) -> Option<&String>| holders.iter().filter_map(wanted).cloned().collect::<Vec<_>>();
    let others = names(|holder| if let Holder::Other(name) = holder { Some(name) } else { None });
    let confined = names(|holder| if let Holder::Confined(name) = holder { Some(name) } else { None });
    if !others.is_empty() || confined.is_empty() {
        return Err(DaemonError::Held { path: path.to_owned(), holders: others.join(", ") });
    }
    warn!("{} is locked by {}, which is no daemon: another lock replaces it", path.display(), confined.join(", "));
    Ok(())
}

/// The processes that have a file open.
fn holders(file: &File) -> io::Result<Vec<Holder>> {
    let wanted = file.metadata()?;
    // File systems that a user's program serves are left out, because that program need not answer.
    let same = |path: &Path| {
        let found = processes::held(path).and_then(|file| Object::anywhere(file.as_fd()).map(|object| object.place()));
        found.is_ok_and(|found| found == (wanted.dev(), wanted.ino()))
    };
    let mut holders = Vec::new();
    for process in fs::read_dir("/proc")?.flatten().map(|entry| entry.path()) {
        let Some(number) = process.file_name().and_then(|name| name.to_str()?.parse::<i32>().ok()) else { continue };
        let Ok(descriptors) = fs::read_dir(process.join("fd")) else { continue };
        let ours = if number == std::process::id().cast_signed() { 1 } else { 0 };
        // This process has it open once in order to look.
        if descriptors.flatten().filter(|descriptor| same(&descriptor.path())).count() > ours {
            holders.push(holder(number, &process));
        }
    }
    Ok(holders)
}

fn holder(number: i32, process: &Path) -> Holder {
    let program = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
    let name = for_people(format!("process {number} ({})", name.trim_end()));
    let pins = Pins::default();
    let found = pidfd::open(number).ok();
    let tasks = programs::map(&pins, "tasks").ok();
    let task = tasks.zip(found.as_ref()).and_then(|(tasks, found)| task_of(&pins, &tasks, found.as_fd()).ok()?);
    match task {
        _ if found.is_some_and(|found| is_daemon(&pins, number, found.as_fd())) => Holder::Daemon(number),
        // The policy may leave other domains than the machine's unconfined. Those may lock it just as well.
        Some(task) if task.sid != TG_SID_MACHINE && !is_unconfined(task.sid) => {
            Holder::Confined(format!("{name}, which is confined"))
        }
        // A daemon that is starting has no mark yet.
        _ if program(&process.join("exe")) == program(Path::new("/proc/self/exe")) => Holder::Daemon(number),
        _ => Holder::Other(name),
    }
}

fn is_daemon(pins: &Pins, number: i32, process: BorrowedFd<'_>) -> bool {
    let state = programs::map(pins, "bss").ok().and_then(|map| State::new(map.as_fd()).ok());
    state.zip(began(pins, process).ok()).is_some_and(|(state, began)| state.is_daemon(number.cast_unsigned(), began))
}

/// Whether a domain is unconfined in the generation in force. If there is none, nobody is confined.
fn is_unconfined(sid: Sid) -> bool {
    let Ok(generations) = programs::map(&Pins::default(), "generations") else { return true };
    programs::in_force(&generations).is_ok_and(|map| Generation::is_unconfined_in(&map, sid).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn names_who_holds_the_lock_and_is_no_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let mut holder = Command::new("flock");
        // What flock runs outlives it, until there is nothing more to read.
        holder.arg(&path).args(["sh", "-c", "echo; exec cat"]);
        let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let refused = take(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {} (flock)", holder.id())), "{refused}");
        assert!(refused.contains("kill"), "{refused}");
        holder.kill().unwrap();
        holder.wait().unwrap();
    }

    #[test]
    fn takes_the_place_of_confined_ones_only() {
        let path = Path::new("/lock");
        let [confined, other] = [|name: &str| Holder::Confined(name.into()), |name: &str| Holder::Other(name.into())];
        assert!(refuse(path, &[confined("a")]).is_ok());
        assert!(matches!(refuse(path, &[confined("a"), other("b")]), Err(DaemonError::Held { .. })));
        assert!(matches!(refuse(path, &[confined("a"), Holder::Daemon(7)]), Err(DaemonError::Second(_))));
        assert!(matches!(refuse(path, &[]), Err(DaemonError::Held { .. })));
    }
}
