//! Runs one boot of a study: in a guest, or on the host itself.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use tollgate_bench::{confine::Confinement, counter::Counter, job::Job, labels::Label, oracle::Act, place::Network};
use tollgate_host::{
    Cache, Error as HostError,
    process::{self, Limits},
};
use tollgate_vm::{
    Accelerator, Clock, Disk, Error as VmError, Image, Kernel, Machine, agent,
    guest::{self, GuestCommand, LoggingListener, Stream},
    image::on_path,
    kernels,
    machine::Wiring,
    modules,
    system::{DRIVERS, System},
};

use crate::{
    configuration::{self, Known},
    policies::{self, PolicyError},
    programs,
    record::{BootRecord, Denial, Outcome, SCHEMA},
    study::{HOST, Study},
};

/// The path of the job in the guest.
const JOB: &str = "/job.json";
/// The guest's work directory.
const WORK: &str = "/work";
/// The guest's memory in MiB: enough for every workload, and the same for all, because its size changes what the kernel does.
const MEMORY_MIB: u32 = 1024;
/// Kernel modules: the RAM disk of the ext4 places, and the pair of network devices. Configurations may need more.
const MODULES: [&str; 2] = ["brd", "veth"];

/// Why a study cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaboratoryError {
    /// A kernel, a package or the emulator is missing, or the disk is full.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// A program of this machine failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A policy could not be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A process or a file on the host failed.
    #[error("{what}: {cause}")]
    Io {
        /// The attempted operation.
        what: String,
        /// The operating system's error.
        cause: std::io::Error,
    },
}

/// One boot of one configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boot {
    /// The kernel, as the study names it.
    pub kernel: String,
    /// The configuration's name.
    pub configuration: String,
    /// The padding's index, or the round.
    pub index: u32,
}

/// Everything that boots need, prepared before the first one.
#[derive(Debug)]
pub struct Laboratory<'a> {
    study: &'a Study,
    kernels: BTreeMap<String, (Kernel, Image)>,
    /// The image of the system in which the study's commands run.
    disk: Option<PathBuf>,
    accelerator: Accelerator,
    timeout: Duration,
    interrupted: &'a AtomicBool,
}

/// The result of a boot.
#[derive(Debug)]
pub struct Finished {
    /// The raw record.
    pub record: BootRecord,
    /// The guest's console; empty on the host.
    pub console: String,
}

impl<'a> Laboratory<'a> {
    /// Fetches kernels, builds policies and collects the guests' files. `progress` is called before each long step.
    pub fn prepare(
        cache: &Cache,
        study: &'a Study,
        accelerator: Accelerator,
        timeout: Duration,
        interrupted: &'a AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, LaboratoryError> {
        let disk = disk(cache, study, progress)?;
        let mut kernels = BTreeMap::new();
        for spec in study.kernels.iter().filter(|spec| *spec != HOST) {
            // QEMU must be installed; checked before anything is fetched.
            guest::emulator_version()?;
            progress(&format!("kernel {spec}"));
            let kernel = kernels::find(cache, spec)?;
            let mut image = Image::default();
            // One image for all configurations, because its files move the guest's memory.
            for known in study.configurations.iter().filter_map(|name| known(study, name)) {
                progress(&format!("what {} needs", known.name));
                known.provide(cache, &mut image)?;
            }
            programs::provide(cache, &study.workloads, &mut image, progress)?;
            if let Some(mke2fs) = on_path("mke2fs") {
                image.program(&mke2fs, "/sbin/mkfs.ext4", &[])?;
                let settings = std::path::Path::new("/etc/mke2fs.conf");
                if settings.exists() {
                    image.host_file(settings, "/etc/mke2fs.conf")?;
                }
            }
            study
                .commands
                .iter()
                .flat_map(|command| &command.files)
                .try_for_each(|(to, from)| image.host_file(from, to))?;
            if disk.is_some() {
                image = image.on_disk();
            }
            image = Image::with_agent()?.with(image);
            if let Some(folder) = &kernel.modules {
                let known = study.configurations.iter().filter_map(|name| known(study, name));
                let more = known.flat_map(Known::modules).copied();
                let drivers = disk.iter().flat_map(|_| DRIVERS);
                let wanted: Vec<&str> = MODULES.into_iter().chain(more).chain(drivers).collect();
                image.kernel_modules(modules::with_dependencies(folder, &wanted)?);
            }
            kernels.insert(spec.clone(), (kernel, image));
        }
        Ok(Self { study, kernels, disk, accelerator, timeout, interrupted })
    }

    /// The found kernels, with the study's names for them.
    pub fn kernels(&self) -> impl Iterator<Item = (&str, &Kernel)> {
        self.kernels.iter().map(|(spec, (kernel, _))| (spec.as_str(), kernel))
    }

    /// Runs one boot. A failure of this boot alone (a panic, a module that the kernel lacks) is in its record; an error stops
    /// all boots.
    pub fn run(&self, boot: &Boot, progress: &mut dyn FnMut(&str)) -> Result<Finished, LaboratoryError> {
        let started = Instant::now();
        let job = self.job(boot);
        let mut record = self.record(boot, &job);
        let console;
        (record.outcome, console) = match self.kernels.get(&boot.kernel) {
            Some((_, image)) => self.run_guest(boot, image, &job, progress)?,
            None => (self.run_here(&job, progress)?, String::new()),
        };
        if let Some(reason) = record.report().and_then(|report| absent(&record.lsm, &report.lsm)) {
            record.outcome = Outcome::Failed(reason);
        }
        record.seconds = started.elapsed().as_secs_f64();
        Ok(Finished { record, console })
    }

    fn job(&self, boot: &Boot) -> Job {
        let guest = boot.kernel != HOST;
        Job {
            counter: self.study.clock,
            confinement: self.confinement(boot),
            acts: if guest { self.acts() } else { Vec::new() },
            workloads: self.study.workloads.clone(),
            commands: self.study.commands.iter().map(|command| (*command.line).clone()).collect(),
            samples: self.study.samples,
            work: guest.then(|| WORK.into()),
            padding: if self.study.clock == Counter::Instructions { boot.index } else { 0 },
            settle: guest,
            delays: self.study.delays(&boot.configuration),
            tunnel: known(self.study, &boot.configuration).is_some_and(Known::tunnels),
            labels: if guest { self.labels(boot) } else { Vec::new() },
            logged: None,
        }
    }

    /// The labels that receivers must see in the study's networks, in every boot if one of its configurations has some.
    fn labels(&self, boot: &Boot) -> Vec<Label> {
        let all = || self.study.configurations.iter().filter_map(|name| known(self.study, name));
        let Some(own) = known(self.study, &boot.configuration).filter(|_| all().any(Known::tells_labels)) else {
            return Vec::new();
        };
        let level = self.study.level(&boot.configuration);
        [Network::Loopback, Network::Veth].into_iter().filter_map(|network| own.label(level, network)).collect()
    }

    fn confinement(&self, boot: &Boot) -> Confinement {
        let hooks = self.study.hooks(&boot.configuration);
        let level = self.study.level(&boot.configuration);
        let mut confinement =
            known(self.study, &boot.configuration).map_or(Confinement::None, |known| known.confinement(&hooks, level));
        if let Confinement::Tollgate { daemon, .. } = &mut confinement {
            // Its work is part of what a command costs.
            *daemon = !self.study.commands.is_empty();
        }
        confinement
    }

    /// Every boot tries every act of the study. All acts must succeed under the baseline, and later measurements must not
    /// depend on which acts were tried.
    fn acts(&self) -> Vec<Act> {
        let of = |name: &String| known(self.study, name)?.confinement(&[], None).oracle().map(|(act, _)| act);
        let mut acts: Vec<Act> = self.study.configurations.iter().filter_map(of).collect();
        acts.sort();
        acts.dedup();
        acts
    }

    fn record(&self, boot: &Boot, job: &Job) -> BootRecord {
        let machine = self.machine(boot);
        let wiring = Wiring::boot("INITRD".into(), "AGENT".into());
        let words = |machine: &Machine| {
            let arguments = machine.arguments(&wiring);
            std::iter::once("qemu-system-x86_64".to_string())
                .chain(arguments.iter().map(|word| word.to_string_lossy().into_owned()))
                .collect()
        };
        let denials = job.confinement.oracle().into_iter().map(|(act, errno)| Denial { act, errno }).collect();
        BootRecord {
            schema: SCHEMA,
            tollgate: env!("CARGO_PKG_VERSION").into(),
            kernel: boot.kernel.clone(),
            configuration: boot.configuration.clone(),
            clock: self.study.clock,
            boot: boot.index,
            lsm: machine.as_ref().and_then(|m| m.lsm.clone()).unwrap_or_default(),
            command_line: machine.as_ref().map(Machine::command_line).unwrap_or_default(),
            machine: machine.as_ref().map(words).unwrap_or_default(),
            denials,
            labels: job.labels.clone(),
            seconds: 0.0,
            outcome: Outcome::Failed("it did not run".into()),
        }
    }

    fn machine(&self, boot: &Boot) -> Option<Machine> {
        let (kernel, _) = self.kernels.get(&boot.kernel)?;
        let own = self.study.own(&boot.configuration);
        let known = known(self.study, &boot.configuration);
        let lsm = own.and_then(|own| own.lsm.clone()).or_else(|| known.map(|known| known.lsm.to_string()));
        let mut append = known.map(Known::command_line).unwrap_or_default();
        append.extend(own.iter().flat_map(|own| own.command_line.split_whitespace().map(String::from)));
        let clock = match self.study.clock {
            Counter::Instructions => Clock::Instructions,
            Counter::Wall => Clock::Wall,
        };
        if clock == Clock::Instructions && boot.index > 0 {
            // A longer command line moves the kernel's allocation for it, and all later ones.
            append.push(format!("tollgate.padding={}", "x".repeat(61 * boot.index as usize)));
        }
        Some(Machine {
            kernel: kernel.image.clone(),
            clock,
            accelerator: self.accelerator,
            lsm,
            append,
            memory_mib: MEMORY_MIB,
            cpus: 1,
            // What a guest writes is lost: the next boot finds the same system.
            disk: self.disk.clone().map(|image| Disk { image, kept: false }),
            volumes: Vec::new(),
            wire: None,
        })
    }

    fn run_guest(
        &self,
        boot: &Boot,
        image: &Image,
        job: &Job,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(Outcome, String), LaboratoryError> {
        let Some(machine) = self.machine(boot) else {
            return Ok((Outcome::Failed("its kernel is not there".into()), String::new()));
        };
        let (image, command) = self.with_job(image, job)?;
        let mut errors = Lines::default();
        let outcome = guest::run(&machine, &image, &command, self.limits(), &mut |stream, bytes| {
            if stream == Stream::Stderr {
                errors.push(bytes, progress);
            }
        });
        match outcome {
            Ok(ended) => {
                let text = (ended.code == Some(0)).then_some(ended.stdout);
                Ok((outcome_of(text, &errors.other), ended.console))
            }
            Err(failure) if is_about_this_boot(&failure.error) => {
                Ok((Outcome::Failed(failure.error.to_string()), failure.console))
            }
            Err(failure) => Err(failure.error.into()),
        }
    }

    /// Runs one boot, and logs the instructions of this many operations of each workload after its samples were taken.
    /// `listener` hears what the job writes, and switches the log.
    pub fn run_logged(
        &self,
        boot: &Boot,
        operations: u32,
        listener: LoggingListener<'_>,
    ) -> Result<guest::Outcome, LaboratoryError> {
        let kernel = || LaboratoryError::Vm(VmError::NoSuchKernel { spec: boot.kernel.clone(), known: String::new() });
        let (_, image) = self.kernels.get(&boot.kernel).ok_or_else(kernel)?;
        let machine = self.machine(boot).ok_or_else(kernel)?;
        let (image, command) = self.with_job(image, &Job { logged: Some(operations), ..self.job(boot) })?;
        Ok(guest::run_logged(&machine, &image, &command, self.limits(), listener).map_err(VmError::from)?)
    }

    fn run_here(&self, job: &Job, progress: &mut dyn FnMut(&str)) -> Result<Outcome, LaboratoryError> {
        // Files that a killed measuring process leaves behind go away with this folder.
        let folder = tempfile::Builder::new().prefix("tollgate-").tempdir().map_err(io("make the job's folder"))?;
        let file = folder.path().join("job.json");
        std::fs::write(&file, job_text(job)?).map_err(io("write the job's file"))?;
        progress("measuring");
        // The running program, even if its file has been replaced since it was started.
        let mut command = Command::new("/proc/self/exe");
        command.args(["bench", "job"]).arg(&file).env("TMPDIR", folder.path());
        let ended = match process::output(&mut command, self.limits()) {
            Err(HostError::TooLong { seconds, .. }) => {
                return Ok(Outcome::Failed(format!("it did not end within {seconds} s; allow more with --timeout")));
            }
            other => other?,
        };
        let mut errors = Lines::default();
        errors.push(&ended.stderr, &mut |_| {});
        Ok(outcome_of(ended.status.success().then_some(ended.stdout), &errors.other))
    }

    /// The image with the job in it, and the command that does it.
    fn with_job(&self, image: &Image, job: &Job) -> Result<(Image, GuestCommand), LaboratoryError> {
        let mut own = Image::default();
        own.content(JOB, 0o600, &job_text(job)?);
        let (own, program) = match &self.disk {
            Some(_) => (own.on_disk(), agent::PROGRAM_ON_DISK),
            None => (own, agent::PROGRAM),
        };
        let argv = [program, "bench", "job", JOB].map(String::from).to_vec();
        let system = self.disk.as_ref().map(|_| agent::System { context: None, bare: true });
        Ok((image.clone().with(own), GuestCommand { argv, system, ..GuestCommand::default() }))
    }

    fn limits(&self) -> Limits<'a> {
        Limits { timeout: self.timeout, interrupted: self.interrupted }
    }
}

/// Makes the image of the system in which the study's commands run, if it has some.
fn disk(cache: &Cache, study: &Study, progress: &mut dyn FnMut(&str)) -> Result<Option<PathBuf>, LaboratoryError> {
    if study.commands.is_empty() {
        return Ok(None);
    }
    progress("the system of the commands");
    let labels = policies::file_contexts(cache)?;
    let labels = fs::read_to_string(&labels).map_err(io(format!("read {}", labels.display())))?;
    let system = System::find(cache, &study.recipe(labels))?;
    Ok(Some(system.image()))
}

/// The known configuration of a name in the study: itself, or the base of the study's own.
fn known(study: &Study, name: &str) -> Option<&'static Known> {
    configuration::find(study.own(name).map_or(name, |own| own.base.as_str()))
}

fn job_text(job: &Job) -> Result<Vec<u8>, LaboratoryError> {
    serde_json::to_vec(job).map_err(std::io::Error::from).map_err(io("write the job"))
}

/// `text` is the standard output of a job that succeeded.
fn outcome_of(text: Option<Vec<u8>>, errors: &str) -> Outcome {
    match text.map(|text| serde_json::from_slice(&text)) {
        Some(Ok(report)) => Outcome::Report(Box::new(report)),
        Some(Err(e)) => Outcome::Failed(format!("the report cannot be read: {e}")),
        None => Outcome::Failed(errors.trim().trim_start_matches("tollgate: ").to_string()),
    }
}

/// Why figures would belong to another configuration: a requested module that the kernel does not have. Capabilities are in
/// every kernel, named or not.
fn absent(asked: &str, active: &str) -> Option<String> {
    let is_there =
        |module: &&str| ["", "capability"].contains(module) || active.split(',').any(|other| other == *module);
    let module = asked.split(',').find(|module| !is_there(module))?;
    let active = if active.is_empty() { "none" } else { active };
    Some(format!("this kernel does not have {module} (active: {active})"))
}

/// Whether other boots may still succeed after this error.
fn is_about_this_boot(error: &VmError) -> bool {
    matches!(
        error,
        VmError::Panic { .. }
            | VmError::OutOfMemory { .. }
            | VmError::Timeout { .. }
            | VmError::QemuDied { .. }
            | VmError::Agent { .. }
            | VmError::Garbled(_)
    )
}

/// Standard error of a job, line by line: progress, and everything else.
#[derive(Debug, Default)]
struct Lines {
    pending: String,
    other: String,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], progress: &mut dyn FnMut(&str)) {
        self.pending.push_str(&String::from_utf8_lossy(bytes));
        while let Some(end) = self.pending.find('\n') {
            let line: String = self.pending.drain(..=end).collect();
            match line.strip_prefix("progress ") {
                Some(step) => progress(step.trim_end()),
                None => self.other.push_str(&line),
            }
        }
    }
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> LaboratoryError {
    let what = what.into();
    move |cause| LaboratoryError::Io { what, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_progress_from_errors_in_pieces_of_any_size() {
        let mut lines = Lines::default();
        let mut steps = Vec::new();
        for piece in ["progress 1/2 nu", "ll\ntollgate: no\nprog", "ress 2/2 stat\n"] {
            lines.push(piece.as_bytes(), &mut |step| steps.push(step.to_string()));
        }
        assert_eq!(steps, ["1/2 null", "2/2 stat"]);
        assert_eq!(lines.other, "tollgate: no\n");
    }

    #[test]
    fn reports_a_failed_job_by_its_own_words() {
        let outcome = outcome_of(None, "tollgate: landlock is not active\n");
        assert_eq!(outcome, Outcome::Failed("landlock is not active".into()));
    }

    #[test]
    fn refuses_figures_of_a_module_that_is_not_there() {
        assert_eq!(absent("", "lockdown,capability"), None);
        assert_eq!(absent("capability", ""), None);
        assert_eq!(absent("capability,bpf", "lockdown,capability,bpf"), None);
        let reason = "this kernel does not have bpf (active: capability,bpfx)";
        assert_eq!(absent("capability,bpf", "capability,bpfx").unwrap(), reason);
        assert_eq!(absent("tomoyo", "").unwrap(), "this kernel does not have tomoyo (active: none)");
    }

    #[test]
    fn stops_the_study_for_what_no_other_boot_can_mend() {
        assert!(is_about_this_boot(&VmError::Garbled(String::new())));
        assert!(!is_about_this_boot(&HostError::Interrupted.into()));
        assert!(!is_about_this_boot(&VmError::QemuAbsent { program: String::new() }));
    }
}
