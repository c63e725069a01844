//! `tollgate enforce`: the daemon.

use std::{
    env, fs,
    io::ErrorKind,
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
use tollgate_audit::sink;
use tollgate_client::{after_gap::AfterGap, descriptors::Descriptors};
use tollgate_enforcer::{
    daemon::{
        Daemon, End, devices::Devices, doing::Doing, enforced::Enforced, extension::Extension, notify, signals::Signals,
    },
    enforcer::{Enforcer, Options},
    labels::checkpoint::AfterCrash,
    programs::{self, Pins},
    progress::Progress,
    requirements::{self, Places},
    shares::Size,
};
use tollgate_policy::built::Built;
use tracing::{info, warn};

use crate::{output, policies};

/// How often to check whether the daemon has started.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Set for the process that stays in the background.
const BACKGROUND: &str = "TOLLGATE_BACKGROUND";

/// What to enforce, and how.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// Grant what is denied, and audit it
    #[arg(long)]
    permissive: bool,
    /// Leave this domain unconfined; without this option, the domains of the machine's processes and of the kernel
    #[arg(long, value_name = "TYPE")]
    unconfined: Vec<String>,
    /// The context of processes without a label; without, the policy's unconfined_t, else the kernel's
    #[arg(long, value_name = "CONTEXT")]
    machine: Option<String>,
    /// Enforce a policy also if this kernel cannot enforce all of it
    #[arg(long)]
    accept_missing: bool,
    /// Log at most so many denials per second; 1000 without this option; the rest is counted
    #[arg(long, value_name = "NUMBER")]
    audit_limit: Option<u32>,
    /// Make room for so many credentials, labels, objects or owners, of which each user may take an eighth; it lasts until
    /// `tollgate stop`
    #[arg(long, value_name = "ROOM=PLACES")]
    room: Vec<Size>,
    /// When to check descriptors: when they change hands (check), or, as SELinux does, at each use (use), which costs
    /// more; once chosen it holds until `tollgate stop`
    #[arg(long, value_name = "check|use")]
    descriptors: Option<Descriptors>,
    /// What becomes of processes that may have slipped out of confinement while hooks did not run: confine, kill or tell
    #[arg(long, value_name = "confine|kill|tell", default_value_t)]
    after_gap: AfterGap,
    /// What becomes of files whose labels a crash may have taken, for they were made or moved in the last seconds before it:
    /// they are unlabelled (unlabel), and listed by `tollgate label lost`, or have their directory's label (keep)
    #[arg(long, value_name = "unlabel|keep", default_value_t)]
    after_crash: AfterCrash,
    /// Write denials that the kernel's audit does not take, and messages, below this folder
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER)]
    log: PathBuf,
    /// Note labels that cannot be written to their files below this folder
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/tollgate")]
    notes: PathBuf,
    /// Stay in the foreground, for service managers
    #[arg(long)]
    foreground: bool,
    /// Look whether enforcement can start or be taken over with this policy, say so, and do nothing
    #[arg(long)]
    check: bool,
    /// Start enforcement and end: no daemon stays, and nothing writes denials down
    #[arg(long, conflicts_with = "foreground")]
    once: bool,
    /// Give a context a SID, for who enters it while no daemon runs
    #[arg(long, value_name = "CONTEXT", requires = "once")]
    intern: Vec<String>,
    /// Attach to these hooks only, to measure what each costs; that enforces nothing whole
    #[arg(long, value_name = "HOOK", requires = "once", hide = true)]
    hook: Vec<String>,
    /// Count what each object manager is asked, for who reads the programs' counts; each decision takes longer then
    #[arg(long, requires = "once", hide = true)]
    count: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    requirements::root()?;
    requirements::kernel(&Places::default())?;
    if arguments.check {
        return check(&arguments.policy);
    }
    if !arguments.foreground && !arguments.once && env::var_os(BACKGROUND).is_none() {
        return in_background();
    }
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
        notes: path::absolute(&arguments.notes).context("cannot find the folder of notes")?.into(),
        progress,
        ..Options::default()
    };
    if arguments.once {
        return once(arguments, options);
    }
    // Where nothing is mounted any more that programs are pinned in, they live by what the service manager has kept.
    let kept = notify::kept().filter(|_| !programs::pinned(&options.pins));
    let options = match &kept {
        Some(kept) => Options { pins: Pins::of(kept.as_fd()), ..options },
        None => options,
    };
    let signals = Signals::take().context("cannot wait for signals")?;
    let mut daemon = Daemon::listen(options.folder.path())?;
    // Threads begin when signals wait, or they would be ended by them.
    let doing = Doing::of(options.folder.path());
    doing.say("starting");
    let telling = options.progress.tell(move |text| {
        told(text);
        doing.say(text);
    });
    let extension = Extension::begin();
    // The daemon leaves the directory that they may begin at.
    let [policy, log] = [&arguments.policy, &arguments.log].map(path::absolute);
    let (policy, log) = (policy.context("cannot find the policy")?, log.context("cannot find the folder of logs")?);
    let enforced = begin(policy, &log, arguments.accept_missing, options)?;
    drop((extension, telling));
    enforced.failures().iter().for_each(|failure| warn!("not labelled: {failure}"));
    info!("{}", enforced.summary());
    serve(&log, &mut daemon, enforced, &signals)
}

fn told(progress: &str) {
    info!("{progress}");
}

/// Says what `enforce` would do; what forbids it is an error, as it would be then.
fn check(policy: &Path) -> anyhow::Result<ExitCode> {
    policies::open_to_enforce(policy)?;
    let adopted = requirements::pins(&Pins::default())?;
    let verdict = if adopted { "enforcement can be taken over" } else { "enforcement can start" };
    output::line(verdict).map(|()| ExitCode::SUCCESS)
}

/// Starts enforcement, which goes on without this process.
fn once(arguments: &Arguments, options: Options) -> anyhow::Result<ExitCode> {
    // Refuses what is none of ours; enforcement that is on is refused by the start.
    requirements::pins(&options.pins)?;
    let built = policies::open_to_enforce(&arguments.policy)?;
    let telling = options.progress.tell(told);
    let mut enforcer = Enforcer::start(options, built)?;
    drop(telling);
    for context in &arguments.intern {
        enforcer.intern(context)?;
    }
    if arguments.count {
        enforcer.state().set_statistics(true);
    }
    let mode = if enforcer.state().enforcing() { "enforcing" } else { "permissive" };
    let (generation, hooks) = (enforcer.generation().number, enforcer.hooks()?);
    output::line(&format!("{mode}, generation {generation}, {} hooks: {}", hooks.len(), hooks.join(" ")))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts enforcement, or takes over what an earlier daemon has left.
fn begin(path: PathBuf, log: &Path, accept_missing: bool, options: Options) -> anyhow::Result<Enforced> {
    let name = fs::canonicalize(&path).unwrap_or_else(|_| path.clone()).display().to_string();
    let built = policies::open_to_enforce(&path)?;
    let adopted = requirements::pins(&options.pins)?;
    // Before files are labelled: none is missed.
    let devices = Devices::listen();
    if let Err(cause) = &devices {
        warn!(%cause, "cannot listen for devices: {cause}; those that appear have their directory's label");
    }
    let enforcer =
        if adopted { Enforcer::adopt_with(options, Some(&built))? } else { Enforcer::start(options, again(&built)?)? };
    let reread = Box::new(move || policies::open_to_enforce(&path).map_err(|cause| format!("{cause:#}")));
    let changed = adopted && !enforcer.is(&built);
    let mut enforced = Enforced::new(enforcer, devices.ok(), name, reread, log)?;
    if changed {
        enforced.put_in_force(built, accept_missing, &[])?;
    }
    Ok(enforced)
}

fn serve(log: &Path, daemon: &mut Daemon, mut enforced: Enforced, signals: &Signals) -> anyhow::Result<ExitCode> {
    // Enforcement is on: who waits may have been killed, and what is said may be lost, but denials are to be written down.
    if let Err(cause) = daemon.ready(enforced.pins()) {
        warn!(%cause, "cannot tell who waits for the daemon that it is ready: {cause}");
    }
    if env::var_os(BACKGROUND).is_some() {
        if let Err(cause) = Daemon::leave_terminal(&log.join("daemon.log")) {
            warn!("{cause}");
        }
        // Else a file system could not be unmounted.
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
            // It has said why.
            return Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)));
        }
    }
}

/// The same policy, to keep one.
fn again(built: &Built) -> anyhow::Result<Built> {
    Ok(Built::from_bytes(&built.to_bytes())?)
}
