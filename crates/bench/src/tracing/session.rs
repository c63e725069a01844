//! A tracing session, from the set-up to the counts.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read, Write},
    thread::sleep,
    time::Duration,
};

use super::{
    attribution::{Attribution, Call, Counts, Extent},
    event::{Decoder, Event, Function, Kind, Layout, Merger, PROBES, Role},
    names::{hook_of, known, syscall},
    report::{CallReport, Tally},
    ring::{PAGE, records},
    symbols::Symbols,
    tracefs::{Instance, Probes, Tracefs},
};
use crate::{Error, error::Context};

/// The prefix of the framework's functions.
const PREFIX: &str = "security_";
/// Called when a task runs a softirq itself.
const DEFERRED: &str = "do_softirq";
/// The function, and the part of it that compilers split off.
const DEFERRED_ALL: &str = "do_softirq*";
/// The switch for all function tracing of the kernel.
const SWITCH: &str = "/proc/sys/kernel/ftrace_enabled";
/// Events of the tasks in addition to functions, with their kinds.
const EVENTS: [(&str, Kind); 3] = [
    ("events/raw_syscalls/sys_enter", Kind::Enter),
    ("events/raw_syscalls/sys_exit", Kind::Exit),
    ("events/exceptions/page_fault_user", Kind::PageFault),
];
/// The event of a task that is freed, traced for all tasks.
const PROCESS_FREE_EVENT: &str = "events/sched/sched_process_free";
/// A hook that each `execve` calls in its middle.
const COMMITS: &str = "bprm_committing_creds";
/// The tracer, and the options that make it follow child tasks.
const TRACER: &str = "function";
const FOLLOWING: [&str; 2] = ["options/function-fork", "options/event-fork"];
/// Files with the numbers of followed tasks: for functions, for events.
const TASKS: [&str; 2] = ["set_ftrace_pid", "set_event_pid"];
/// The buffer for events of all tasks is smaller than the other one by this factor.
const ALL_TASKS_DIVISOR: u32 = 4;
/// How often, and at which interval, to check whether the ends of all calls have arrived.
const MAX_DRAIN_POLLS: u32 = 100;
const DRAIN_INTERVAL: Duration = Duration::from_millis(10);
/// Checks in a row that must find nothing new: a file's credential is released a grace period after the file, some 20 ms.
const QUIET_POLLS: u32 = 10;

/// Active tracing of followed tasks. Dropping it restores the machine.
#[derive(Debug)]
pub(super) struct Session {
    // Dropped in this order: buffers keep instances, which keep probes.
    buffers: Vec<(u16, File)>,
    own: Instance,
    machine: Instance,
    probes: Probes,
    _tracefs: Tracefs,
    symbols: Symbols,
    decoder: Decoder,
    merger: Merger,
    attribution: Option<Attribution>,
    /// Hooks by their numbers.
    hooks: Vec<&'static str>,
    /// The kernel's hooks that no traceable function calls.
    untraceable: BTreeSet<String>,
    /// Pages that could not be read to their end.
    malformed: u64,
}

/// The files into which a followed task writes its number.
#[derive(Debug)]
pub(super) struct Tasks {
    named: [File; 2],
    on: File,
}

impl Tasks {
    /// Follows this task, and the tasks that it starts. Allocates nothing, because it is also called between fork and exec.
    pub(super) fn follow_me(&self) -> io::Result<()> {
        // SAFETY: takes nothing and cannot fail.
        let mut number = unsafe { libc::gettid() };
        let mut digits = [0_u8; 12];
        let mut at = digits.len();
        while number > 0 {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.named.iter().try_for_each(|mut file| file.write_all(&digits[at..]))?;
        (&self.on).write_all(b"1")
    }
}

impl Session {
    /// Sets everything up; nothing is traced before a task is followed. `kilobytes` is the size per processor.
    pub(super) fn open(kilobytes: u32) -> Result<Self, Error> {
        switched_on(fs::read_to_string(SWITCH).ok().as_deref())?;
        let tracefs = Tracefs::open()?;
        let symbols = Symbols::read()?;
        let own = Instance::make(&tracefs, "own", kilobytes)?;
        let machine = Instance::make(&tracefs, "machine", (kilobytes / ALL_TASKS_DIVISOR).max(64))?;
        let probes = Probes::make(&tracefs, PROBES)?;
        let mut session = Self {
            buffers: Vec::new(),
            own,
            machine,
            probes,
            _tracefs: tracefs,
            symbols,
            decoder: Decoder::default(),
            merger: Merger::default(),
            attribution: None,
            hooks: Vec::new(),
            untraceable: BTreeSet::new(),
            malformed: 0,
        };
        session.trace_functions()?;
        session.trace_events()?;
        session.watch_objects()?;
        // Nothing is recorded yet. Once its buffers are open, an instance keeps its tracer (EBUSY).
        session.own.write("current_tracer", TRACER)?;
        session.buffers = session.own.buffers()?;
        session.buffers.extend(session.machine.buffers()?);
        Ok(session)
    }

    fn trace_functions(&mut self) -> Result<(), Error> {
        if !self.own.read("available_tracers")?.split_whitespace().any(|tracer| tracer == TRACER) {
            let why = "this kernel has no function tracer (CONFIG_FUNCTION_TRACER); --kernel counts under one that has";
            return Err(Error::Unavailable(why.to_owned()));
        }
        self.own.write("set_ftrace_filter", &format!("{PREFIX}*"))?;
        // Some kernels do not have it as a function; all softirqs are deferred work then.
        let _ = self.own.write("set_ftrace_filter", DEFERRED_ALL);
        for option in FOLLOWING {
            self.own.write(option, "1")?;
        }
        let format = self._tracefs.read("events/ftrace/function/format")?;
        self.decoder.add(Kind::Function, layout(Kind::Function, &format)?);
        let made: Vec<Role> = self.probes.made.iter().map(|(_, probe)| probe.role).collect();
        self.untraceable = untraceable(&self.symbols, &self.own.read("set_ftrace_filter")?, &made);
        Ok(())
    }

    fn trace_events(&mut self) -> Result<(), Error> {
        for (event, kind) in EVENTS {
            let format = self.own.read(&format!("{event}/format")).map_err(|error| {
                Error::Unavailable(format!(
                    "{error}: this kernel needs CONFIG_FTRACE_SYSCALLS, and to be one of x86-64"
                ))
            })?;
            self.decoder.add(kind, layout(kind, &format)?);
            self.own.write(&format!("{event}/enable"), "1")?;
        }
        Ok(())
    }

    fn watch_objects(&mut self) -> Result<(), Error> {
        self.decoder.add(Kind::Gone, layout(Kind::Gone, &self.machine.read(&format!("{PROCESS_FREE_EVENT}/format"))?)?);
        self.machine.write(&format!("{PROCESS_FREE_EVENT}/enable"), "1")?;
        for (name, probe) in &self.probes.made {
            let event = self.probes.event(name);
            let kind = Kind::Probe(probe.role);
            self.decoder.add(kind, layout(kind, &self.machine.read(&format!("{event}/format"))?)?);
            self.machine.write(&format!("{event}/enable"), "1")?;
            if let (Role::Freed(function), Some(hook)) = (probe.role, hook_of_freed(probe.role)) {
                self.decoder.counts(function, number(&mut self.hooks, hook));
            }
        }
        Ok(())
    }

    /// Starts tracing, with the first task that is followed.
    pub(super) fn begin(&self) -> Result<Tasks, Error> {
        self.machine.write("tracing_on", "1")?;
        let open = |file: &str| {
            let path = self.own.path(file);
            File::options().append(true).open(&path).context(format!("open {}", path.display()))
        };
        Ok(Tasks { named: [open(TASKS[0])?, open(TASKS[1])?], on: open("tracing_on")? })
    }

    /// Sets what is counted. Call it before the first [`Session::drain`].
    pub(super) fn count(&mut self, extent: Extent) {
        self.attribution = Some(Attribution::new(extent, number(&mut self.hooks, COMMITS)));
    }

    /// Reads the buffers, and assigns hooks to calls as far as the order is known.
    pub(super) fn drain(&mut self) -> Result<(), Error> {
        self.read_buffers()?;
        let ready = self.merger.ready();
        if let Some(attribution) = &mut self.attribution {
            ready.iter().for_each(|event| attribution.take(event));
        }
        Ok(())
    }

    fn read_buffers(&mut self) -> Result<(), Error> {
        let Self { buffers, decoder, merger, symbols, hooks, malformed, .. } = self;
        let mut page = [0; PAGE];
        for (processor, file) in buffers {
            loop {
                match file.read(&mut page) {
                    Ok(0) => break,
                    Ok(length) => {
                        let whole = records(&page[..length], |time, record| {
                            let event: Option<Event> =
                                decoder.decode(time, *processor, record, |address| function(symbols, hooks, address));
                            if let Some(event) = event {
                                merger.add(event);
                            }
                        });
                        *malformed += u64::from(!whole);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                    Err(error) => return Err(error).context("read the tracer's buffer"),
                }
            }
        }
        Ok(())
    }

    /// Waits at most a second for the ends of released objects, and returns the counts of this many runs.
    pub(super) fn finish(mut self, runs: u64) -> Result<Tally, Error> {
        let mut calm = 0;
        for _ in 0..MAX_DRAIN_POLLS {
            grace_period();
            sleep(DRAIN_INTERVAL);
            self.drain()?;
            calm = if self.attribution.as_ref().is_some_and(|own| own.pending() > 0) { 0 } else { calm + 1 };
            if calm == QUIET_POLLS {
                break;
            }
        }
        let running = running(&self.own.read(TASKS[1])?);
        self.own.write("tracing_on", "0")?;
        self.machine.write("tracing_on", "0")?;
        // The second reading returns events that the first one held back.
        self.drain()?;
        self.drain()?;
        let lost = self.own.lost()? + self.machine.lost()? + self.malformed;
        let missed = self.probes.missed()?;
        let Some(attribution) = self.attribution.take() else { return Ok(Tally::default()) };
        let pending = attribution.pending() as u64;
        let untraceable = std::mem::take(&mut self.untraceable).into_iter().collect();
        let tally = Tally { lost, missed, pending, running, untraceable, ..Tally::default() };
        Ok(self.tally(attribution.counts(), runs, tally))
    }

    /// Replaces addresses and numbers by names.
    fn tally(&mut self, counts: Counts, runs: u64, mut tally: Tally) -> Tally {
        let share = |count: u64| count as f64 / runs as f64;
        for (call, counts) in counts.calls {
            let name = match call {
                Call::System(number) => syscall(number),
                Call::PageFault => "page fault".to_owned(),
            };
            let mut report = CallReport { call: name, count: share(counts.calls), ..CallReport::default() };
            for (hook, callers) in counts.hooks {
                let hook = self.hooks[usize::from(hook)].to_owned();
                let asked = share(callers.values().sum());
                *tally.hooks.entry(hook.clone()).or_default() += asked;
                report.hooks.insert(hook.clone(), asked);
                let named = report.callers.entry(hook).or_default();
                for (address, count) in callers {
                    *named.entry(self.symbols.name(address).to_owned()).or_default() += share(count);
                }
            }
            tally.calls.push(report);
        }
        tally.calls.sort_by(|one, other| one.call.cmp(&other.call));
        for (hook, count) in counts.deferred {
            let hook = self.hooks[usize::from(hook)].to_owned();
            *tally.hooks.entry(hook.clone()).or_default() += share(count);
            tally.deferred.insert(hook, share(count));
        }
        tally
    }
}

fn layout(kind: Kind, format: &str) -> Result<Layout, Error> {
    Layout::parse(kind, format).ok_or_else(|| Error::Unavailable(format!("no event format that is known: {format}")))
}

/// Whether function tracing is switched on. A kernel without the switch has no function tracer either.
fn switched_on(text: Option<&str>) -> Result<(), Error> {
    if text.is_none_or(|text| text.trim() == "1") {
        return Ok(());
    }
    let why =
        "function tracing is switched off in this kernel, and no hook would be seen: sysctl kernel.ftrace_enabled=1";
    Err(Error::Unavailable(why.to_owned()))
}

/// Hooks that cannot be counted: their functions are not in the filter, or their probe could not be created.
fn untraceable(symbols: &Symbols, filter: &str, made: &[Role]) -> BTreeSet<String> {
    let functions = filter.lines().filter_map(|line| line.split_whitespace().next()?.strip_prefix(PREFIX));
    let (uncounted, counted): (Vec<&str>, Vec<&str>) = functions.partition(|function| {
        let theirs = |role: &Role| matches!(role, Role::Freed(own) if own == function);
        PROBES.iter().any(|probe| theirs(&probe.role)) && !made.iter().any(theirs)
    });
    let hooks = |functions: &[&str]| -> BTreeSet<&str> {
        functions.iter().filter_map(|function| symbols.hook_of(function)).collect()
    };
    let (uncounted, counted) = (hooks(&uncounted), hooks(&counted));
    let missing = symbols.hooks().filter(|hook| known(hook).is_some() && !counted.contains(hook));
    missing.chain(uncounted.iter().copied()).map(str::to_owned).collect()
}

/// How many followed tasks still run, from a list of their numbers, which contains dead tasks until a grace period is over.
fn running(tasks: &str) -> u64 {
    let stat = |task: &str| fs::read_to_string(format!("/proc/{task}/stat")).ok();
    tasks.split_whitespace().filter_map(stat).filter(|stat| is_alive(stat)).count() as u64
}

/// Parses a task's `stat`: the state follows the name, which may contain any character.
fn is_alive(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X', 'x']))
}

/// The hook that a probe counts.
fn hook_of_freed(role: Role) -> Option<&'static str> {
    match role {
        Role::Freed(function) => hook_of(function),
        _ => None,
    }
}

/// The meaning of a traced function.
fn function(symbols: &mut Symbols, hooks: &mut Vec<&'static str>, address: u64) -> Function {
    let name = symbols.name(address);
    if name == DEFERRED {
        return Function::Deferred;
    }
    let Some(name) = name.strip_prefix(PREFIX) else { return Function::Other };
    let counted = PROBES.iter().any(|probe| matches!(probe.role, Role::Freed(own) if own == name));
    let name = name.to_owned();
    match symbols.hook_of(&name) {
        Some(hook) if !counted => Function::Hook(number(hooks, hook)),
        _ => Function::Other,
    }
}

/// A hook's number in the list.
fn number(hooks: &mut Vec<&'static str>, hook: &'static str) -> u16 {
    let index = hooks.iter().position(|own| *own == hook).unwrap_or_else(|| {
        hooks.push(hook);
        hooks.len() - 1
    });
    index as u16
}

/// Waits for an RCU grace period of the whole machine, after which released credentials and tasks are freed.
fn grace_period() {
    // SAFETY: takes numbers only. On a kernel without it, the sleeps must be enough.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000100 T bpf_lsm_file_open\nffffffff81000200 T bpf_lsm_task_free\n\
        ffffffff81000300 T bpf_lsm_sk_free_security\nffffffff81000400 T bpf_lsm_path_chmod\n";
    const FILTER: &str = "security_file_open\nsecurity_task_free\nsecurity_sk_free\ndo_softirq\n";

    #[test]
    fn tells_hooks_that_no_function_and_no_probe_counts() {
        let untraceable = |made: &[Role], symbols: &str| {
            untraceable(&Symbols::parse(symbols), FILTER, made).into_iter().collect::<Vec<_>>()
        };
        let (task, socket) = (Role::Freed("task_free"), Role::Freed("sk_free"));
        assert_eq!(untraceable(&[task, socket], SYMBOLS), ["path_chmod"]);
        assert_eq!(untraceable(&[Role::Made, socket], SYMBOLS), ["path_chmod", "task_free"]);
        // A kernel without BPF LSM.
        assert_eq!(untraceable(&[task], ""), ["sk_free_security"]);
    }

    #[test]
    fn refuses_a_kernel_whose_tracing_is_switched_off() {
        assert!(switched_on(Some("1\n")).is_ok() && switched_on(None).is_ok());
        assert!(switched_on(Some("0\n")).unwrap_err().to_string().contains("sysctl kernel.ftrace_enabled=1"));
    }

    #[test]
    fn tells_the_dead_from_those_that_run() {
        assert!(is_alive("7 (a) Z) S 1 7"));
        assert!(!is_alive("7 (a) S) Z 1 7"));
        assert_eq!(running(&format!("{}\n999999999\n", std::process::id())), 1);
    }
}
