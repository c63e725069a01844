//! Plays scenarios enforced, and plays denied ones again in permissive mode; prints a line of JSON for each.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs::{self, File},
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
    sys::{
        prctl::set_child_subreaper,
        signal::{Signal, kill, killpg},
        socket::{AddressFamily, SockFlag, SockType, socketpair},
        stat::{Mode, SFlag, makedev, mknod},
        wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid},
    },
    unistd::{ForkResult, Pid, alarm, chdir, fork, setpgid},
};

use crate::{
    Engine,
    actor::{self, Actor},
    acts::{
        self,
        capabilities::interface_up,
        processes::{OWN_SOCKET, execute},
    },
    context::whole,
    kernel::{Argument::Number, call},
    objects,
    outcome::{Outcome, Played},
    scenario::{Family, Kind, Place, Scenario},
};

/// The directory of everything that scenarios create.
const ROOT: &str = "/scenarios";
/// The file of a subject's program.
const PROGRAM: &str = "/scenarios/subject";
/// The standard streams of a subject.
const NULL: &str = "/scenarios/null";
/// A block device in memory, for ext4.
const DEVICE: &str = "/dev/ram0";
/// A subject that takes longer than this many seconds hangs.
const SECONDS: u32 = 20;

/// Why nothing could be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The command line is wrong.
    #[error("usage: tollgate-scenario ENGINE POLICY SCENARIOS")]
    Usage,
    /// A step before the first scenario failed.
    #[error("{what}: {cause}")]
    Begin {
        /// The attempted operation.
        what: String,
        /// The operating system's error.
        cause: io::Error,
    },
}

/// The arguments: engine, policy and scenarios.
#[derive(Debug)]
pub(crate) struct Order {
    engine: Engine,
    policy: PathBuf,
    scenarios: PathBuf,
}

impl Order {
    /// Parses ENGINE POLICY SCENARIOS.
    pub(crate) fn from_words(words: &[String]) -> Result<Self, RunError> {
        let [_, engine, policy, scenarios] = words else { return Err(RunError::Usage) };
        let engine = Engine::from_name(engine).ok_or(RunError::Usage)?;
        Ok(Self { engine, policy: policy.into(), scenarios: scenarios.into() })
    }
}

/// Plays all scenarios, and prints the results.
pub(crate) fn run(order: &Order) -> Result<(), RunError> {
    let tried = |what: &str| {
        let what = what.to_owned();
        move |cause: io::Error| RunError::Begin { what, cause }
    };
    let engine = order.engine;
    let text = fs::read(&order.scenarios).map_err(tried("read the scenarios"))?;
    let families: Vec<Family> =
        serde_json::from_slice(&text).map_err(|e| e.into()).map_err(tried("read the scenarios"))?;
    engine.load(&order.policy).map_err(tried("put the policy in force"))?;
    engine.enforce(false).map_err(tried("be permissive"))?;
    engine.set_current(&whole("unconfined_t", "system_r")).map_err(tried("become unconfined_t"))?;
    prepare(engine).map_err(tried("make the places"))?;
    let mut scenarios: Vec<(&Family, &Scenario)> =
        families.iter().flat_map(|family| family.scenarios.iter().map(move |scenario| (family, scenario))).collect();
    for enforcing in [true, false] {
        engine.enforce(enforcing).map_err(tried("change the mode"))?;
        let mut denied = Vec::new();
        for (family, scenario) in scenarios {
            let (outcome, contexts) = Stage { engine, scenario }.play();
            if !outcome.is_granted() {
                denied.push((family, scenario));
            }
            let (family, name) = (family.name.clone(), scenario.name.clone());
            let played = Played { family, name, enforcing, outcome, contexts };
            println!("{}", serde_json::to_string(&played).map_err(|e| e.into()).map_err(tried("print"))?);
        }
        scenarios = denied;
    }
    Ok(())
}

/// Mounts the places and creates the files that all subjects need.
fn prepare(engine: Engine) -> io::Result<()> {
    set_child_subreaper(true)?;
    interface_up()?;
    fs::create_dir_all(ROOT)?;
    mount(Some("none"), ROOT, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    fs::copy(objects::PROGRAM, PROGRAM)?;
    mknod(NULL, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 3))?;
    for place in [Place::Tmpfs, Place::Ext4] {
        fs::create_dir(place.path())?;
    }
    mount(Some(DEVICE), Place::Ext4.path(), Some("ext4"), MsFlags::empty(), None::<&str>)?;
    for (path, kind) in [(ROOT, "place"), (PROGRAM, "subject_exec"), (NULL, "null_device_t")] {
        engine.relabel(path, &whole(kind, "object_r"))?;
    }
    for place in [Place::Tmpfs, Place::Ext4] {
        engine.relabel(place.path(), &whole("place", "object_r"))?;
    }
    Ok(())
}

impl Place {
    fn path(self) -> &'static str {
        match self {
            Self::Tmpfs | Self::Ipc => "/scenarios/tmpfs",
            Self::Ext4 => "/scenarios/ext4",
        }
    }
}

/// A scenario during its play.
struct Stage<'s> {
    engine: Engine,
    scenario: &'s Scenario,
}

/// The values of a scenario's variables.
type Names = BTreeMap<String, String>;

impl Stage<'_> {
    fn play(&self) -> (Outcome, Vec<String>) {
        let place = format!("{}/{}", self.scenario.place.path(), "stage");
        let mut processes = Vec::new();
        let outcome = self.play_in(&place, &mut processes).unwrap_or_else(Outcome::Broken);
        let look = |path: &String| self.engine.label(path).unwrap_or_default();
        let contexts = self.scenario.look.iter().map(look).collect();
        for process in processes {
            // The process may have ended already.
            let _ = kill(process, Signal::SIGKILL);
            let _ = waitpid(process, None);
        }
        match clear(&place) {
            Ok(()) => (outcome, contexts),
            Err(error) => (Outcome::Broken(format!("clear the stage: {error}")), contexts),
        }
    }

    fn play_in(&self, place: &str, processes: &mut Vec<Pid>) -> Result<Outcome, String> {
        let failed = |what: String| move |error: io::Error| format!("{what}: {error}");
        if self.scenario.place == Place::Ipc {
            // Objects that the scenario before has left end with its namespace.
            unshare(CloneFlags::CLONE_NEWIPC).map_err(|error| format!("make an IPC namespace: {error}"))?;
        }
        fs::create_dir(place).and_then(|()| Ok(chdir(place)?)).map_err(failed("make the stage".into()))?;
        let label = whole("place", "object_r");
        self.engine.relabel(place, &label).map_err(failed("label the stage".into()))?;
        let mut names = Names::from([("$place".to_owned(), place.to_owned())]);
        let mut sockets: Vec<OwnedFd> = Vec::new();
        for object in &self.scenario.objects {
            let content = object.content.as_ref().map(|content| named(content, &names));
            objects::make(self.engine, object, content.as_deref()).map_err(failed(format!("make {}", object.path)))?;
            if object.kind == Kind::Process {
                let domain = object.context.as_deref().unwrap_or(&self.scenario.domain);
                let (own, other) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
                    .map_err(|error| format!("make a socket for {}: {error}", object.path))?;
                let acts: Vec<String> = object.acts.iter().map(|act| named(act, &names)).collect();
                let actor = Actor { stays: true, ..Actor::new(self.engine, &acts) };
                let process = self.start(domain, &[], actor, &[(own.as_raw_fd(), OWN_SOCKET)])?;
                processes.push(process);
                ready(process).map_err(|why| format!("the process {}: {why}", object.path))?;
                sockets.push(other);
                let number = OWN_SOCKET + i32::try_from(sockets.len()).unwrap_or(0);
                names.insert(format!("${}.socket", object.path), number.to_string());
                names.insert(format!("${}", object.path), process.to_string());
            }
        }
        let all = |acts: &[String]| acts.iter().map(|act| named(act, &names)).collect::<Vec<_>>();
        let ends: Vec<(i32, i32)> = sockets.iter().zip(OWN_SOCKET + 1..).map(|(fd, to)| (fd.as_raw_fd(), to)).collect();
        let actor = Actor::new(self.engine, &all(&self.scenario.acts));
        let subject = self.start(&self.scenario.domain, &all(&self.scenario.before), actor, &ends)?;
        outcome_of(subject, processes)
    }

    /// Starts a process that does `before` in its own domain, enters another domain, and does the actor's acts there.
    fn start(&self, domain: &str, before: &[String], actor: Actor, descriptors: &[(i32, i32)]) -> Result<Pid, String> {
        // SAFETY: the runner has one thread.
        match unsafe { fork() }.map_err(|error| format!("fork: {error}"))? {
            ForkResult::Parent { child } => Ok(child),
            ForkResult::Child => {
                let Err(why) = self.enter(domain, before, actor, descriptors);
                eprintln!("{}: {why}", self.scenario.name);
                actor::end("@begin", 2)
            }
        }
    }

    fn enter(
        &self,
        domain: &str,
        before: &[String],
        actor: Actor,
        descriptors: &[(i32, i32)],
    ) -> Result<Infallible, String> {
        setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(|error| format!("setpgid: {error}"))?;
        let null =
            File::options().read(true).write(true).open(NULL).map_err(|error| format!("open {NULL}: {error}"))?;
        let mut preparing = Actor::new(self.engine, before);
        acts::do_all(&mut preparing).map_err(|(act, errno)| format!("{errno} at act {act} before"))?;
        let program = Actor { fd: preparing.fd, kept: preparing.kept, ..actor };
        // The last one may replace standard error; later failures are visible only in the exit status.
        for (from, to) in descriptors.iter().copied().chain((0..3).map(|stream| (null.as_raw_fd(), stream))) {
            call(libc::SYS_dup2, &mut [Number(from.into()), Number(to.into())]).map_err(|e| format!("dup2: {e}"))?;
        }
        alarm::set(SECONDS);
        let entered = self
            .engine
            .set_exec(&whole(domain, "system_r"))
            .and_then(|()| execute(&program, PROGRAM, libc::AT_FDCWD, 0));
        // Act 0. An open descriptor may be the reason for a failure, which is a verdict.
        let errno = entered.err().and_then(|error| error.raw_os_error()).unwrap_or(libc::EIO);
        actor::end(&format!("@0:{errno}"), 1)
    }
}

/// A scenario's text with values for variables; the longest names first, because `$p.socket` begins with `$p`.
fn named(text: &str, names: &Names) -> String {
    names.iter().rev().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

fn name_of(process: Pid) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).map(|name| name.trim_end().to_owned()).unwrap_or_default()
}

/// Waits until a process that is an object has done its first acts.
fn ready(process: Pid) -> Result<(), String> {
    let started = Instant::now();
    loop {
        match name_of(process).as_str() {
            actor::READY => return Ok(()),
            name if started.elapsed() > Duration::from_secs(SECONDS.into()) => return Err(format!("hangs as {name}")),
            _ => {}
        }
        let ended = waitid(Id::Pid(process), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT);
        if !matches!(ended, Ok(WaitStatus::StillAlive)) {
            return Err(format!("ended as {}", name_of(process)));
        }
        sleep(Duration::from_millis(2));
    }
}

/// Waits for the subject, or for the last of the children that continued in its place.
fn outcome_of(subject: Pid, processes: &mut Vec<Pid>) -> Result<Outcome, String> {
    loop {
        let status = waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
            .map_err(|error| format!("wait for the subject: {error}"))?;
        let ended = status.pid().ok_or("a subject without a number")?;
        let name = name_of(ended);
        waitpid(ended, None).map_err(|error| format!("wait for the subject: {error}"))?;
        if processes.contains(&ended) {
            processes.retain(|process| *process != ended);
            continue;
        }
        if name == actor::CHILD {
            continue;
        }
        // Ends processes that it forked and left.
        let _ = killpg(subject, Signal::SIGKILL);
        while waitpid(Pid::from_raw(-subject.as_raw()), None).is_ok() {}
        return match status {
            WaitStatus::Signaled(_, signal, _) => Ok(Outcome::Killed { signal: signal.to_string() }),
            _ => outcome(&name),
        };
    }
}

/// The result in a subject's process name.
fn outcome(name: &str) -> Result<Outcome, String> {
    if name == actor::DONE {
        return Ok(Outcome::Granted);
    }
    let told = name.strip_prefix('@').and_then(|told| told.split_once(':'));
    let told = told.and_then(|(act, errno)| Some((act.parse().ok()?, errno.parse().ok()?)));
    match told {
        Some((act, errno)) => Ok(Outcome::Denied { act, errno: format!("{:?}", Errno::from_raw(errno)) }),
        None => Err(format!("the subject ended as {name}")),
    }
}

/// Removes a stage, with everything that was mounted on it.
fn clear(stage: &str) -> io::Result<()> {
    chdir("/")?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let on_it = mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|target| target.starts_with(stage));
    for target in on_it.collect::<Vec<_>>().into_iter().rev() {
        umount2(target, MntFlags::MNT_DETACH)?;
    }
    fs::remove_dir_all(stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_came_of_a_subject_from_its_name() {
        assert_eq!(outcome("@done"), Ok(Outcome::Granted));
        assert_eq!(outcome("@2:13"), Ok(Outcome::Denied { act: 2, errno: "EACCES".into() }));
        assert!(outcome("subject").is_err() && outcome("@begin").is_err());
    }

    #[test]
    fn puts_process_numbers_in_the_place_of_names() {
        let names = Names::from([("$p".into(), "17".into()), ("$p.socket".into(), "101".into())]);
        assert_eq!(named("kill $p 9, receive $p.socket", &names), "kill 17 9, receive 101");
    }
}
