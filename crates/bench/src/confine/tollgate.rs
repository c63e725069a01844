//! Tollgate: enforces a built policy, and enters a domain of it.
//!
//! A child starts enforcement, which is pinned and continues without it. A daemon beside the workloads would run whenever the
//! kernel notifies it, and loading programs would change the measuring process (docs/adr/0003).

mod daemon;

use std::{env, fs, path::Path, process::Command};

use tollgate_abi::{
    enforcer::{TG_ATTRIBUTE_CURRENT, TG_ATTRIBUTE_SOCKCREATE, TG_PRCTL},
    paths::CONTEXTS,
};

pub(super) use self::daemon::Daemon;
use super::securityfs::require;
use crate::{Error, decisions::Counts, error::Context};

/// The arguments of enforcement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    /// The built policy.
    pub(super) policy: &'a Path,
    /// The context that the calling thread enters.
    pub(super) context: Option<&'a str>,
    /// Other contexts that get numbers, unless a daemon starts.
    pub(super) contexts: &'a [String],
    /// Whether denials are granted.
    pub(super) permissive: bool,
    /// Domains for which the policy is not checked.
    pub(super) unconfined: &'a [String],
    /// The hooks to attach to; empty: those that the policy needs.
    pub(super) hooks: &'a [String],
    /// Whether descriptors are checked at each use.
    pub(super) at_use: bool,
    /// Whether the programs count decisions.
    pub(super) counted: bool,
}

impl Start<'_> {
    /// What both a daemon and a start without one take.
    fn common(&self) -> Vec<String> {
        let mut arguments =
            vec!["enforce".to_owned(), self.policy.display().to_string(), "--accept-missing".to_owned()];
        if self.permissive {
            arguments.push("--permissive".to_owned());
        }
        if self.at_use {
            arguments.extend(["--descriptors".to_owned(), "use".to_owned()]);
        }
        for domain in self.unconfined {
            arguments.extend(["--unconfined".to_owned(), domain.clone()]);
        }
        arguments
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = self.common();
        arguments.push("--once".to_owned());
        if self.counted {
            arguments.push("--count".to_owned());
        }
        let contexts = self.context.into_iter().chain(self.contexts.iter().map(String::as_str));
        let contexts = contexts.map(|context| ("--intern", context.to_owned()));
        let hooks = self.hooks.iter().map(|hook| ("--hook", hook.clone()));
        for (option, value) in contexts.chain(hooks) {
            arguments.extend([option.to_owned(), value]);
        }
        arguments
    }
}

/// Enforces the policy and, if there is a context, moves the calling thread into it for good. Returns a description, and the
/// counts of decisions if they are requested.
pub(super) fn enforce(start: Start<'_>) -> Result<(String, Option<Counts>), Error> {
    require("bpf")?;
    let started = run(&start.arguments())?;
    let counts = start.counted.then(Counts::open).transpose()?;
    let verified = match start.context {
        None => format!("tollgate: this process unconfined, {started}"),
        Some(context) => format!("tollgate: {context} (SID {}), {started}", enter(context)?),
    };
    Ok((verified, counts))
}

/// Enforces the policy by a daemon, which labels packets of the networks in a file if there is one, and moves the calling thread
/// into the context. Returns a description, and the daemon, which ends when it is dropped.
pub(super) fn begin(start: Start<'_>, network: Option<&Path>) -> Result<(String, Daemon), Error> {
    require("bpf")?;
    let daemon = Daemon::start(&start, network)?;
    let verified = match start.context {
        None => "tollgate: this process unconfined".to_owned(),
        Some(context) => format!("tollgate: {context} (SID {})", enter(context)?),
    };
    let with = network.map_or("a daemon".to_owned(), |file| format!("labelled networks of {}", file.display()));
    Ok((format!("{verified}, {with}"), daemon))
}

/// Runs this program again; returns its standard output.
fn run(arguments: &[String]) -> Result<String, Error> {
    let program = env::current_exe().context("find this program")?;
    let output = Command::new(&program).args(arguments).output().context(format!("run {}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Unavailable(format!("tollgate {}: {}: {}", arguments.join(" "), output.status, said.trim())))
}

/// Does setcon; returns the SID of the calling thread from now on.
fn enter(context: &str) -> Result<u32, Error> {
    let sid = find(context)?;
    // With credentials of its own, the same as before: the kernel knows by them who opened files.
    // SAFETY: this option takes integers only.
    nix::Error::result(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 0u64, 0u64, 0u64, 0u64) })
        .context("get credentials of its own".to_owned())?;
    set(TG_ATTRIBUTE_CURRENT, sid, &format!("enter the context {context}"))?;
    Ok(sid)
}

pub(super) fn is_in_force() -> bool {
    Path::new(CONTEXTS).exists()
}

/// Does setsockcreatecon.
pub(super) fn label_new_sockets(context: Option<&str>) -> Result<(), Error> {
    let sid = context.map_or(Ok(0), find)?;
    set(TG_ATTRIBUTE_SOCKCREATE, sid, &format!("make sockets {}", context.unwrap_or("without a context of their own")))
}

/// Sets an attribute of the calling thread.
fn set(attribute: u32, sid: u32, what: &str) -> Result<(), Error> {
    // SAFETY: an option that no kernel knows takes integers only.
    let done = unsafe { libc::prctl(TG_PRCTL as i32, u64::from(attribute), u64::from(sid), 0u64, 0u64) };
    match nix::Error::result(done) {
        // The hook's errno for success: if a hook returns 0, the kernel continues and rejects the unknown option.
        Err(nix::Error::EALREADY) => Ok(()),
        Err(errno) => Err(errno).context(what),
        Ok(_) => {
            Err(Error::Unavailable("tollgate: the kernel has an option of prctl that we took for ours".to_owned()))
        }
    }
}

/// The number of a context that the set-up has asked for.
fn find(context: &str) -> Result<u32, Error> {
    let contexts = fs::read_to_string(CONTEXTS).context(format!("read {CONTEXTS}"))?;
    sid(&contexts, context).ok_or_else(|| Error::Unavailable(format!("tollgate: {CONTEXTS} has no context {context}")))
}

fn sid(contexts: &str, context: &str) -> Option<u32> {
    let (sid, _) = contexts.lines().filter_map(|line| line.split_once(' ')).find(|(_, text)| *text == context)?;
    sid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_sid_of_a_whole_context() {
        let contexts = "1 u:r:kernel_t:s0\n32 u:r:kernel_t:s0-s1\nno line\n";
        assert_eq!(sid(contexts, "u:r:kernel_t:s0-s1"), Some(32));
        assert_eq!(sid(contexts, "u:r:kernel_t"), None);
    }

    #[test]
    fn starts_what_the_job_says_and_no_daemon() {
        let domains = ["unconfined_t".to_owned()];
        let start = Start {
            policy: Path::new("/p"),
            context: Some("u:r:t"),
            contexts: &["u:r:s".to_owned()],
            permissive: true,
            unconfined: &domains,
            hooks: &[],
            at_use: true,
            counted: true,
        };
        let words = "enforce /p --accept-missing --permissive --descriptors use --unconfined unconfined_t --once --count --intern u:r:t --intern u:r:s";
        assert_eq!(start.arguments().join(" "), words);
    }
}
