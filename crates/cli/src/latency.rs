//! `tollgate latency`: delays LSM hooks on this machine.

use std::{
    fs::{self, File},
    io::Write,
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{self, ExitCode, ExitStatus},
};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use tollgate_bench::{
    confine::latency::{Calibration, Delay, Delays, Latency, Waited, cost},
    counter::{Counter, Meter},
};

use crate::{bench::CounterName, interrupt, output};

/// Where control groups (version 2) may be mounted.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command with delayed hooks, for it and the processes that it starts only
    Run(Run),
    /// Delay hooks from now on, for all processes or for a control group
    Start(Start),
    /// Set other delays while programs are attached; a hook that is not named has no delay afterwards
    Set(Set),
    /// Print the delays; exit status 1 if no programs are attached and the kernel's module has no delays
    Status(Status),
    /// Detach the programs
    Stop,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    measured: Measured,
    /// The delays: HOOK=UNITS, in turns of a loop, or HOOK=NUMBERns
    #[arg(required = true, value_name = "HOOK=DELAY", value_parser = hook_and_delay)]
    delays: Vec<(String, Delay)>,
    /// The command to run, with its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    #[command(flatten)]
    measured: Measured,
    /// Delay only the tasks of this control group (version 2) and those below it
    #[arg(long, value_name = "FOLDER")]
    group: Option<PathBuf>,
    /// The delays: HOOK=UNITS, in turns of a loop, or HOOK=NUMBERns; HOOK=0 attaches to a hook that gets a delay later
    #[arg(required = true, value_name = "HOOK=DELAY", value_parser = hook_and_delay)]
    delays: Vec<(String, Delay)>,
}

#[derive(Debug, Args)]
struct Measured {
    /// The unit of the calibration; instructions need a guest on the instruction clock
    #[arg(long, value_enum, default_value_t = CounterName::Wall)]
    counter: CounterName,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The delays: HOOK=UNITS, or HOOK=NUMBERns
    #[arg(value_name = "HOOK=DELAY", value_parser = hook_and_delay)]
    delays: Vec<(String, Delay)>,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn hook_and_delay(text: &str) -> Result<(String, Delay), String> {
    let Some((hook, delay)) = text.split_once('=') else {
        return Err(format!("{text:?} is not HOOK=DELAY, such as file_open=100 or file_open=250ns"));
    };
    let delay = delay.parse().map_err(|error: tollgate_bench::Error| error.to_string())?;
    Ok((hook.to_owned(), delay))
}

/// Runs the command; the exit code of `run` is the command's own.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(run) => return run_command(&run),
        Command::Start(start) => begin(&start)?,
        Command::Set(set) => Latency::open()?.set(&named(&set.delays)?)?,
        Command::Status(status) => return tell(&status),
        Command::Stop => Latency::open()?.detach(),
    }
    Ok(ExitCode::SUCCESS)
}

fn begin(start: &Start) -> anyhow::Result<()> {
    let delays = named(&start.delays)?;
    let latency = attach(&delays, &start.measured)?;
    if let Some(group) = &start.group {
        latency.limit(open_group(group)?.as_fd())?;
    }
    latency.set(&delays)?;
    latency.keep();
    Ok(())
}

/// Attaches programs to the named hooks, and prints on standard error what delays cost, in units and by the clock.
fn attach(delays: &Delays, measured: &Measured) -> anyhow::Result<Latency> {
    let counter: Counter = measured.counter.into();
    // Refuses an instruction clock that does not count instructions.
    Meter::open(counter)?;
    let detached = cost(counter);
    let hooks: Vec<String> = delays.keys().cloned().collect();
    let (attached, latency) = if Latency::has_module() { Latency::module()? } else { Latency::attach(&hooks)? };
    let calibration = latency.calibrate(counter, detached)?;
    eprintln!("tollgate: {attached}; {}", describe(&calibration));
    eprintln!("tollgate: {}", describe_waits(&latency.wait()?, counter));
    Ok(latency)
}

fn describe(calibration: &Calibration) -> String {
    let (unit, floor) = (&calibration.unit, calibration.floor());
    let (first, further) = (calibration.first(), calibration.further());
    format!("without a delay one adds {floor:.0} {unit}, the first unit {first:.1}, each further one {further:.3}")
}

/// What delays by the clock really add; the first one is the shortest possible.
fn describe_waits(waits: &[Waited], counter: Counter) -> String {
    let one = |Waited { asked, low, median, high }: &Waited| {
        format!("one of {asked} ns adds {median:.0} ({low:.0} to {high:.0})")
    };
    let waits: Vec<String> = waits.iter().map(one).collect();
    let clock = match counter {
        Counter::Instructions => "; a nanosecond of this clock is an instruction",
        Counter::Wall => "",
    };
    format!("delays by the clock, median and middle half: {}{clock}", waits.join(", "))
}

fn named(delays: &[(String, Delay)]) -> anyhow::Result<Delays> {
    let mut all = Delays::new();
    for (hook, delay) in delays {
        if all.insert(hook.clone(), *delay).is_some() {
            bail!("the hook {hook} is named twice; give it once");
        }
    }
    Ok(all)
}

fn run_command(run: &Run) -> anyhow::Result<ExitCode> {
    let Some((program, words)) = run.command.split_first() else { return Ok(ExitCode::from(2)) };
    let delays = named(&run.delays)?;
    // A signal ends the command, and the command is waited for, so that the programs are detached.
    interrupt::flag()?;
    let group = Group::make()?;
    let latency = attach(&delays, &run.measured)?;
    latency.limit(File::open(&group.0)?.as_fd())?;
    latency.set(&delays)?;
    let members = File::options().write(true).open(group.0.join("cgroup.procs"))?;
    let mut command = process::Command::new(program);
    command.args(words);
    // SAFETY: between fork and exec only a write to an open descriptor is done; 0 stands for the writing process.
    unsafe { command.pre_exec(move || (&members).write_all(b"0")) };
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    latency.detach();
    Ok(exit_code(status))
}

/// The exit code of a shell: the command's own, or 128 + the signal that ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(2);
    ExitCode::from(u8::try_from(code).unwrap_or(2))
}

/// A control group for this process's command. Dropping it removes it.
struct Group(PathBuf);

impl Group {
    fn make() -> anyhow::Result<Self> {
        let Some(root) = GROUPS.into_iter().find(|path| is_group(Path::new(path))) else {
            bail!("no control groups of version 2 are mounted: mount -t cgroup2 cgroup2 {}", GROUPS[0]);
        };
        let path = Path::new(root).join(format!("tollgate-latency-{}", process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {} (are you root?)", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // If the command has left processes running, they keep the group, and removing it fails.
        let _ = fs::remove_dir(&self.0);
    }
}

fn is_group(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC)
}

fn open_group(path: &Path) -> anyhow::Result<File> {
    let group = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if !is_group(path) {
        bail!("{} is no control group of version 2: name a folder below {}", path.display(), GROUPS[0]);
    }
    Ok(group)
}

fn tell(status: &Status) -> anyhow::Result<ExitCode> {
    let Ok(latency) = Latency::open() else {
        eprintln!("tollgate: no programs of tunable latency are attached");
        return Ok(ExitCode::from(1));
    };
    if !latency.is_on()? {
        eprintln!("tollgate: the kernel's own module has no delays");
        return Ok(ExitCode::from(1));
    }
    let delays = latency.delays()?;
    if status.json {
        output::json(&delays)?;
    } else {
        for (hook, delay) in delays {
            output::line(&format!("{hook}={delay}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_hook_with_its_delay() {
        assert_eq!(
            hook_and_delay("file_open=7").unwrap(),
            ("file_open".to_owned(), Delay { units: 7, nanoseconds: 0 })
        );
        assert!(hook_and_delay("file_open").unwrap_err().contains("is not HOOK=DELAY"));
        assert!(hook_and_delay("file_open=1s").is_err());
    }

    #[test]
    fn tells_how_long_delays_by_the_clock_are() {
        let waited = |asked, median| Waited { asked, low: median - 2.0, median, high: median + 30.0 };
        let told = |counter| describe_waits(&[waited(1, 170.0), waited(1000, 1180.0)], counter);
        assert_eq!(
            told(Counter::Wall),
            "delays by the clock, median and middle half: one of 1 ns adds 170 (168 to 200), one of 1000 ns adds 1180 (1178 to 1210)"
        );
        assert!(told(Counter::Instructions).ends_with("a nanosecond of this clock is an instruction"));
    }

    #[test]
    fn refuses_a_hook_that_is_named_twice() {
        let delay = |text| hook_and_delay(text).unwrap();
        assert!(named(&[delay("capable=1"), delay("capable=2")]).unwrap_err().to_string().contains("named twice"));
    }
}
