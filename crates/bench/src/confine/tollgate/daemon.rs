//! The daemon, which attaches programs to network devices and makes room in routes. These stay when it ends.

use std::{
    env,
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use nix::{
    fcntl::OFlag,
    sys::{
        signal::{Signal, kill},
        wait::waitpid,
    },
    unistd::{ForkResult, Pid, fork, pipe2, read, write},
};

use super::{Start, run};
use crate::{Error, error::Context};

/// How often it is asked whether the daemon is ready.
const INTERVAL: Duration = Duration::from_millis(200);

/// A daemon that runs beside the set-up.
#[derive(Debug)]
pub(in crate::confine) struct Daemon {
    process: Child,
    ender: Ender,
}

impl Daemon {
    /// Starts it, waits until it serves, and gives the context a SID.
    pub(super) fn start(start: &Start<'_>, network: Option<&Path>) -> Result<Daemon, Error> {
        let program = env::current_exe().context("find this program")?;
        let mut command = Command::new(&program);
        command.args(start.common()).arg("--foreground");
        if let Some(network) = network {
            command.arg("--network").arg(network);
        }
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("start the daemon")?;
        let ender = Ender::of(&process)?;
        let mut daemon = Daemon { process, ender };
        let own = program.display().to_string();
        let arguments = match start.context {
            Some(context) => ["run", "--context", context, "--", &own, "--version"].map(str::to_owned).to_vec(),
            None => vec!["status".to_owned()],
        };
        while let Err(cause) = run(&arguments) {
            if daemon.process.try_wait().context("wait for the daemon")?.is_some() {
                return Err(cause);
            }
            sleep(INTERVAL);
        }
        Ok(daemon)
    }

    /// Ends it; enforcement goes on.
    pub(in crate::confine) fn end(mut self) -> Result<(), Error> {
        self.ender.act()?;
        let status = self.process.wait().context("wait for the daemon's end")?;
        if status.success() { Ok(()) } else { Err(Error::Unavailable(format!("the daemon ended with {status}"))) }
    }
}

/// A process outside of the context that the caller enters: no confined process may end the daemon.
#[derive(Debug)]
struct Ender {
    process: Pid,
    wake: OwnedFd,
}

impl Ender {
    fn of(daemon: &Child) -> Result<Ender, Error> {
        let daemon = Pid::from_raw(daemon.id().cast_signed());
        let (wait, wake) = pipe2(OFlag::O_CLOEXEC).context("make a pipe")?;
        // SAFETY: the child makes system calls only, and never returns.
        match unsafe { fork() }.context("fork a process that ends the daemon")? {
            ForkResult::Parent { child } => Ok(Ender { process: child, wake }),
            ForkResult::Child => {
                drop(wake);
                let woken = read(&wait, &mut [0]).and_then(|_| kill(daemon, Signal::SIGTERM));
                // SAFETY: `_exit` has no preconditions.
                unsafe { libc::_exit(woken.is_err().into()) }
            }
        }
    }

    fn act(self) -> Result<(), Error> {
        write(&self.wake, &[0]).context("wake the process that ends the daemon")?;
        waitpid(self.process, None).context("wait for the process that ends the daemon").map(drop)
    }
}
