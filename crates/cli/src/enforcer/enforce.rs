//! `tollgate enforce`: starts enforcement, and is the daemon.

use std::{
    env, fs,
    io::ErrorKind,
    num::NonZeroUsize,
    os::{
        fd::AsFd,
        unix::{net::UnixDatagram, process::CommandExt},
    },
    path::{self, Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use nix::sys::prctl::set_thp_disable;
use tollgate_audit::sink;
use tollgate_client::{after_gap::AfterGap, descriptors::Descriptors};
use tollgate_enforcer::{
    daemon::{
        Daemon, End,
        devices::Devices,
        doing::Doing,
        enforced::{Enforced, First},
        extension::Extension,
        fleet::{self, Files, Fleet},
        machine::{Beside, Database},
        notify,
        signals::Signals,
    },
    datapath::{Networks, Source, table},
    enforcer::{Enforcer, Options},
    labels::checkpoint::AfterCrash,
    programs::{self, Pins},
    progress::{Progress, Took},
    requirements::{self, Places},
    shares::Size,
};
use tollgate_policy::built::Built;
use tracing::{error, info, warn};

use crate::{guard, output, policies};

/// How often to check whether the daemon has started.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Environment variable of the process that stays in the background.
const BACKGROUND: &str = "TOLLGATE_BACKGROUND";

/// What to enforce, and how.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    #[arg(required_unless_present = "guard")]
    policy: Option<PathBuf>,
    /// Start the guard, too; without a policy, the guard alone
    #[arg(long, conflicts_with = "once")]
    guard: bool,
    /// Grant what is denied, and audit it
    #[arg(long)]
    permissive: bool,
    /// Leave this domain unconfined; without this option, the domains of the machine's processes and of the kernel are
    #[arg(long, value_name = "TYPE")]
    unconfined: Vec<String>,
    /// The context of processes without a label; without, the policy's unconfined_t, else the kernel's
    #[arg(long, value_name = "CONTEXT")]
    machine: Option<String>,
    /// Enforce a policy even if this kernel cannot enforce all of it
    #[arg(long)]
    accept_missing: bool,
    /// Log at most this many denials per second [default: 1000]; the rest is counted
    #[arg(long, value_name = "NUMBER")]
    audit_limit: Option<u32>,
    /// Make room for this many credentials, labels, objects or owners, of which each user may use an eighth; lasts until
    /// `tollgate stop`
    #[arg(long, value_name = "ROOM=PLACES")]
    room: Vec<Size>,
    /// When to check descriptors: when they change hands (check), or at each use as SELinux does (use), which costs more;
    /// lasts until `tollgate stop`
    #[arg(long, value_name = "check|use")]
    descriptors: Option<Descriptors>,
    /// What to do with processes that may have escaped from confinement while hooks did not run: confine, kill, or only
    /// report (tell)
    #[arg(long, value_name = "confine|kill|tell", default_value_t)]
    after_gap: AfterGap,
    /// What to do with files that were created or moved in the last seconds before a crash, because their labels may be lost:
    /// make them unlabelled and list them in `tollgate label lost` (unlabel), or give them their directory's label (keep)
    #[arg(long, value_name = "unlabel|keep", default_value_t)]
    after_crash: AfterCrash,
    /// The folder for messages, and for denials that the kernel's audit does not take
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER)]
    log: PathBuf,
    /// The file that says which networks' packets have labels [default: /etc/tollgate/network.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    /// The folder for notes of labels that cannot be written to their files
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/tollgate")]
    notes: PathBuf,
    /// Stay in the foreground, for service managers
    #[arg(long)]
    foreground: bool,
    /// Say whether enforcement can start or be taken over with this policy, and do nothing
    #[arg(long)]
    check: bool,
    /// Start enforcement and end: no daemon stays, and denials are not logged
    #[arg(long, conflicts_with = "foreground")]
    once: bool,
    /// Give a context a SID, so that processes can enter it while no daemon runs
    #[arg(long, value_name = "CONTEXT", requires = "once")]
    intern: Vec<String>,
    /// Attach only to these hooks, to measure what each costs; the policy is then not fully enforced
    #[arg(long, value_name = "HOOK", requires = "once", hide = true)]
    hook: Vec<String>,
    /// Say how long each part of the start took
    #[arg(long, requires = "once")]
    timing: bool,
    /// How many threads load programs, to measure what that saves
    #[arg(long, value_name = "NUMBER", requires = "once", hide = true)]
    threads: Option<NonZeroUsize>,
    /// Count the checks of each object manager, and record them; each decision takes longer then
    #[arg(long, requires = "once", hide = true)]
    count: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    requirements::root()?;
    requirements::kernel(&Places::default())?;
    let foreground = arguments.foreground || env::var_os(BACKGROUND).is_some();
    let Some(policy) = &arguments.policy else {
        let background = env::var_os(BACKGROUND).is_some();
        return if foreground { guard::run::alone(&arguments.log, background) } else { in_background() };
    };
    if arguments.check {
        return check(policy, arguments);
    }
    if !arguments.foreground && !arguments.once && env::var_os(BACKGROUND).is_none() {
        return in_background();
    }
    // Otherwise the kernel looks for huge pages again and again in the memory of a daemon that needs none (khugepaged).
    let _small = set_thp_disable(true);
    let progress = Progress::default();
    progress.begin("reading the policy");
    let options = Options {
        permissive: arguments.permissive,
        machine: arguments.machine.clone(),
        unconfined: arguments.unconfined.clone(),
        audit_limit: arguments.audit_limit,
        accept_missing: arguments.accept_missing,
        after_gap: arguments.after_gap,
        after_crash: arguments.after_crash,
        descriptors: arguments.descriptors,
        sizes: arguments.room.clone(),
        hooks: arguments.hook.clone(),
        count: arguments.count,
        threads: arguments.threads,
        network: network(arguments)?,
        notes: path::absolute(&arguments.notes).context("cannot find the folder of notes")?.into(),
        progress,
        ..Options::default()
    };
    if arguments.once {
        return once(policy, arguments, options);
    }
    // If the pins are unmounted, programs stay attached by the descriptor that the service manager has kept.
    let kept = notify::kept().filter(|_| !programs::pinned(&options.pins));
    let options = match &kept {
        Some(kept) => Options { pins: Pins::of(kept.as_fd()), ..options },
        None => options,
    };
    let signals = Signals::take().context("cannot wait for signals")?;
    let mut daemon = Daemon::listen(options.folder.path())?;
    // Block signals before threads start: a signal would otherwise end them.
    let doing = Doing::of(options.folder.path());
    doing.say("starting");
    let telling = options.progress.tell(move |text| {
        told(text);
        doing.say(text);
    });
    let extension = Extension::begin();
    // The daemon changes its working directory, so relative paths must be resolved first.
    let [policy, log] = [policy, &arguments.log].map(path::absolute);
    let (policy, log) = (policy.context("cannot find the policy")?, log.context("cannot find the folder of logs")?);
    join(&mut daemon);
    let guard = first(&policy).beside.guard;
    let (mut enforced, changed) = begin(policy, &log, options)?;
    let mut database = Database::Present;
    // What an earlier daemon has started goes on.
    if arguments.guard || programs::pinned(&Pins::of_guard()) {
        let begun = guard::run::begin(&log, guard.clone(), changed.is_some())?;
        enforced.watch_guard(begun.log);
        if begun.waits {
            database = Database::of(guard.as_deref());
        }
    }
    if let Some(built) = changed {
        enforced.put_in_force(built, database, arguments.accept_missing, &[])?;
    }
    drop((extension, telling));
    enforced.failures().iter().for_each(|failure| warn!("not labelled: {failure}"));
    info!("{}", enforced.summary());
    serve(&log, &mut daemon, enforced, &signals)
}

/// Where labelled networks are configured. The daemon changes its working directory.
fn network(arguments: &Arguments) -> anyhow::Result<Source> {
    let Some(file) = &arguments.network else { return Ok(Source::default()) };
    Ok(Source::named(path::absolute(file).context("cannot find the file of labelled networks")?))
}

/// Joins the fleet of this machine, if it has one. What is wrong with its files keeps nothing from being enforced.
fn join(daemon: &mut Daemon) {
    let fleet = Fleet::open(Path::new(fleet::SETTINGS), Path::new(fleet::KEPT));
    if let Err(cause) = &fleet {
        error!(%cause, "the daemon takes nothing of this machine's fleet: {cause}");
    }
    fleet.transpose().into_iter().for_each(|fleet| daemon.join(fleet));
}

/// What to begin with: the last good generation of this machine's fleet, which needs neither store nor network, or else
/// the named policy.
fn first(named: &Path) -> Files {
    let good = fleet::first(Path::new(fleet::SETTINGS), Path::new(fleet::KEPT));
    good.unwrap_or_else(|| Files { policy: named.to_owned(), beside: Beside::default() })
}

/// Reads that policy. `network` is where the machine's own labelled networks are configured.
fn read(Files { policy, beside }: &Files, network: &Source) -> anyhow::Result<First> {
    let name = fs::canonicalize(policy).unwrap_or_else(|_| policy.clone()).display().to_string();
    let network = beside.network.clone().map_or_else(|| network.clone(), Source::named);
    Ok(First { built: policies::open_to_enforce(policy)?, name, network })
}

fn told(progress: &str) {
    info!("{progress}");
}

/// Says what `enforce` would do. An error here is the error that it would have.
fn check(policy: &Path, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let built = policies::open_to_enforce(policy)?;
    let networks = Networks::read(&network(arguments)?)?;
    table::check(&networks, &built.policy, &mut built.server()?)?;
    let adopted = requirements::pins(&Pins::default())?;
    let verdict = if adopted { "enforcement can be taken over" } else { "enforcement can start" };
    output::line(verdict).map(|()| ExitCode::SUCCESS)
}

/// Starts enforcement, which goes on without this process.
fn once(policy: &Path, arguments: &Arguments, options: Options) -> anyhow::Result<ExitCode> {
    // Refuses pins of something else; the start itself refuses enforcement that is already on.
    requirements::pins(&options.pins)?;
    let built = policies::open_to_enforce(policy)?;
    let (progress, telling) = (options.progress.clone(), options.progress.tell(told));
    let mut enforcer = Enforcer::start(options, built)?;
    let took = progress.took();
    drop(telling);
    for context in &arguments.intern {
        enforcer.intern(context)?;
    }
    if arguments.count {
        enforcer.state().record();
    }
    let mode = if enforcer.state().enforcing() { "enforcing" } else { "permissive" };
    let (generation, hooks) = (enforcer.generation().number, enforcer.hooks()?);
    output::line(&format!("{mode}, generation {generation}, {} hooks: {}", hooks.len(), hooks.join(" ")))?;
    if arguments.timing {
        output::line(&timing(&took))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What each part of a start took, in milliseconds.
fn timing(took: &[Took]) -> String {
    let sum = |of: &dyn Fn(&Took) -> Duration| took.iter().map(of).sum();
    let all: [Duration; 3] = [sum(&|part| part.elapsed), sum(&|part| part.processors), sum(&Took::apart)];
    let parts = took.iter().map(|part| ([part.elapsed, part.processors, part.apart()], part.what));
    let line = |(times, what): ([Duration; 3], &str)| {
        let [elapsed, processors, apart] = times.map(|time| time.as_millis());
        format!("{elapsed:>8} {processors:>8} {apart:>8}  {what}")
    };
    let head = " elapsed   worked    apart  milliseconds".to_owned();
    [head].into_iter().chain(parts.chain([(all, "in all")]).map(line)).collect::<Vec<_>>().join("\n")
}

/// Starts enforcement, or takes over what an earlier daemon has left. Returns the policy that must be put in force still.
fn begin(named: PathBuf, log: &Path, options: Options) -> anyhow::Result<(Enforced, Option<Built>)> {
    let own = options.network.clone();
    let First { built, name, network } = read(&first(&named), &own)?;
    let options = Options { network, ..options };
    let adopted = requirements::pins(&options.pins)?;
    // Listening starts before files are labelled, so that no device is missed.
    let devices = Devices::listen();
    if let Err(cause) = &devices {
        warn!(%cause, "cannot listen for devices: {cause}; those that appear have their directory's label");
    }
    let (enforcer, changed) = if adopted {
        let enforcer = Enforcer::adopt_with(options, Some(&built))?;
        let changed = !enforcer.is(&built);
        (enforcer, changed.then_some(built))
    } else {
        (Enforcer::start(options, built)?, None)
    };
    let of_machine = own.clone();
    let reread = Box::new(move || read(&first(&named), &own).map_err(|cause| format!("{cause:#}")));
    Ok((Enforced::new(enforcer, devices.ok(), name, of_machine, reread, log)?, changed))
}

fn serve(log: &Path, daemon: &mut Daemon, mut enforced: Enforced, signals: &Signals) -> anyhow::Result<ExitCode> {
    // Enforcement is on. A dead parent, or a message that cannot be printed, must not end the logging of denials.
    if let Err(cause) = daemon.ready(enforced.pins()) {
        warn!(%cause, "cannot report that the daemon is ready: {cause}");
    }
    if env::var_os(BACKGROUND).is_some() {
        if let Err(cause) = Daemon::leave_terminal(&log.join("daemon.log")) {
            warn!("{cause}");
        }
        // A working directory elsewhere would keep its file system mounted.
        if let Err(cause) = env::set_current_dir("/") {
            warn!(%cause, "cannot change to the directory /: {cause}");
        }
    }
    match daemon.run(&mut enforced, signals.wakes(), || signals.wish())? {
        End::Signal => info!("the daemon ends; enforcement goes on (`tollgate stop` ends it)"),
        End::Stopped => info!("nothing is enforced any more"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts this program again as the daemon, and waits until it answers.
fn in_background() -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("cannot make a folder to wait for the daemon in")?;
    let path = folder.path().join("ready");
    let ready = UnixDatagram::bind(&path).context("cannot wait for the daemon")?;
    ready.set_read_timeout(Some(POLL_INTERVAL))?;
    let mut daemon = Command::new(env::current_exe().context("cannot find this program's file")?);
    daemon.args(env::args_os().skip(1)).env(BACKGROUND, "1").env("NOTIFY_SOCKET", &path);
    // Its messages go to its own file once it serves.
    daemon.env_remove("JOURNAL_STREAM").stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let mut daemon = daemon.spawn().context("cannot start the daemon")?;
    wait(&ready, &mut daemon)
}

fn wait(ready: &UnixDatagram, daemon: &mut Child) -> anyhow::Result<ExitCode> {
    let mut buffer = [0; 256];
    loop {
        match ready.recv(&mut buffer) {
            Ok(length) if buffer[..length].starts_with(b"READY=1") => return Ok(ExitCode::SUCCESS),
            Ok(_) => {}
            Err(cause)
                if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(cause) => bail!("cannot wait for the daemon: {cause}"),
        }
        if let Some(status) = daemon.try_wait().context("cannot wait for the daemon")? {
            // The daemon has printed the reason.
            return Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)));
        }
    }
}
