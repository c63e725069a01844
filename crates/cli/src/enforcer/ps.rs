//! `tollgate ps`: processes and their contexts.

use std::{
    collections::HashMap,
    fs,
    os::fd::{AsFd, BorrowedFd},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tollgate_audit::untrusted::for_people;
use tollgate_client::{
    Client, ClientError, process,
    protocol::{Attribute, Mode},
    status::Status,
};
use tollgate_enforcer::{enforcer::Folder, programs::Pins, shares::users, without_daemon::Kernel};

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only processes in this domain
    #[arg(long, value_name = "TYPE")]
    domain: Option<String>,
    /// Only confined processes: those for which the policy is checked
    #[arg(long)]
    confined: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A process as `ps` lists it.
#[derive(Debug, Serialize)]
struct Process {
    pid: i32,
    /// The effective user.
    uid: u32,
    context: String,
    /// The mode of its domain; none: no daemon answers.
    mode: Option<&'static str>,
    command: String,
}

/// The mode of processes for which the policy is not checked.
const UNCONFINED: &str = "unconfined";

/// Modes of domains.
struct Modes {
    permissive: bool,
    permissive_domains: Vec<String>,
    unconfined: Vec<String>,
}

impl Modes {
    fn of(status: Status) -> Self {
        let Status { mode, permissive, unconfined, .. } = status;
        Self { permissive: mode == Mode::Permissive, permissive_domains: permissive, unconfined }
    }

    /// The mode of a process by its context.
    fn mode(&self, context: &str) -> &'static str {
        let domain = context.split(':').nth(2).unwrap_or_default();
        let is_in = |names: &[String]| names.iter().any(|name| name == domain);
        if is_in(&self.unconfined) {
            UNCONFINED
        } else if self.permissive || is_in(&self.permissive_domains) {
            "permissive"
        } else {
            "enforcing"
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut source = Source::open()?;
    let modes = source.modes()?;
    if arguments.confined && modes.is_none() {
        bail!("no daemon answers, and the kernel does not say which domains are unconfined: leave --confined out");
    }
    let mut processes = Vec::new();
    for pid in pids()? {
        // Processes that have ended meanwhile, and those that this user may not look at, are left out.
        let Ok(process) = process(pid) else { continue };
        let Some(context) = source.context(process.as_fd())? else { continue };
        let (Some(command), Some(uid)) = (command(pid), uid(pid)) else { continue };
        let mode = modes.as_ref().map(|modes| modes.mode(&context));
        let wanted = arguments.domain.as_deref().is_none_or(|domain| context.split(':').nth(2) == Some(domain));
        if wanted && !(arguments.confined && mode == Some(UNCONFINED)) {
            processes.push(Process { pid, uid, context, mode, command });
        }
    }
    if arguments.json {
        output::json(&processes)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::write(&table(&processes, &users(&fs::read_to_string("/etc/passwd").unwrap_or_default())))?;
    Ok(ExitCode::SUCCESS)
}

/// The columns of `ps -eZ`, and the mode.
fn table(processes: &[Process], users: &HashMap<u32, String>) -> String {
    let user = |uid: u32| users.get(&uid).map_or_else(|| uid.to_string(), for_people);
    let widest = |all: &mut dyn Iterator<Item = usize>, name: &str| all.max().unwrap_or(0).max(name.len());
    let width = widest(&mut processes.iter().map(|process| process.context.len()), "CONTEXT");
    let names = widest(&mut processes.iter().map(|process| user(process.uid).len()), "USER");
    let mut text = format!("{:<width$} {:<10} {:<names$} {:>7} COMMAND\n", "CONTEXT", "MODE", "USER", "PID");
    for Process { pid, uid, context, mode, command } in processes {
        let (mode, user, command) = (mode.unwrap_or("?"), user(*uid), for_people(command));
        text.push_str(&format!("{context:<width$} {mode:<10} {user:<names$} {pid:>7} {command}\n"));
    }
    text
}

/// Where contexts come from.
enum Source {
    Daemon(Client),
    Kernel(Kernel),
}

impl Source {
    fn open() -> anyhow::Result<Self> {
        let cause = match Client::connect() {
            Ok(client) => return Ok(Self::Daemon(client)),
            Err(cause) => cause,
        };
        // Only root may read the map.
        let kernel = matches!(cause, ClientError::NoDaemon { .. })
            .then(|| Kernel::open(&Pins::default(), &Folder::default()).ok())
            .flatten();
        let Some(kernel) = kernel else { return Err(cause.into()) };
        eprintln!("tollgate: {cause}; contexts are as the kernel has them");
        Ok(Self::Kernel(kernel))
    }

    /// Modes of domains, if a daemon answers.
    fn modes(&mut self) -> anyhow::Result<Option<Modes>> {
        match self {
            Self::Daemon(client) => Ok(Some(Modes::of(client.status()?))),
            Self::Kernel(_) => Ok(None),
        }
    }

    /// The context of a process; `None` if it is not available.
    fn context(&mut self, process: BorrowedFd<'_>) -> anyhow::Result<Option<String>> {
        match self {
            Self::Daemon(client) => match client.context(Attribute::Current, Some(process)) {
                Ok(context) => Ok(Some(context.unwrap_or_default())),
                Err(ClientError::Refused(_)) => Ok(None),
                Err(cause) => Err(cause.into()),
            },
            Self::Kernel(kernel) => Ok(kernel.context(process)),
        }
    }
}

fn pids() -> anyhow::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc").context("cannot list processes")?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut pids: Vec<i32> = names.filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// A process's command line, or its name in brackets where it has none.
fn command(pid: i32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
    if !line.is_empty() {
        return Some(line);
    }
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("[{}]", String::from_utf8_lossy(&name).trim_end()))
}

/// The effective user of a process.
fn uid(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_processes_in_columns() {
        let process = |pid, uid, context: &str, command: &str| Process {
            pid,
            uid,
            context: context.to_owned(),
            mode: Some("enforcing"),
            command: command.to_owned(),
        };
        let processes = [process(1, 0, "u:r:init_t:s0", "init"), process(70, 33, "u:r:web_server_t:s0", "web -d")];
        let text = table(&processes, &HashMap::from([(0, "root".to_owned())]));
        let expected = "CONTEXT             MODE       USER     PID COMMAND\n\
                        u:r:init_t:s0       enforcing  root       1 init\n\
                        u:r:web_server_t:s0 enforcing  33        70 web -d\n";
        assert_eq!(text, expected);
        assert_eq!(uid(i32::try_from(std::process::id()).unwrap()), Some(nix::unistd::geteuid().as_raw()));
    }

    #[test]
    fn tells_what_becomes_of_what_is_denied_to_each_process() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let modes = Modes { permissive: false, permissive_domains: names(&["new_t"]), unconfined: names(&["free_t"]) };
        let of = |modes: &Modes, domain: &str| modes.mode(&format!("u:r:{domain}:s0"));
        assert_eq!(["new_t", "free_t", "old_t"].map(|it| of(&modes, it)), ["permissive", "unconfined", "enforcing"]);
        let all = Modes { permissive: true, ..modes };
        assert_eq!(["free_t", "old_t"].map(|it| of(&all, it)), ["unconfined", "permissive"]);
    }
}
