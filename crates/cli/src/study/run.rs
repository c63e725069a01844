//! `tollgate study run`: runs a study.

use std::{
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_bench::counter::Counter;
use tollgate_host::Cache;
use tollgate_study::{
    environment, export,
    laboratory::{Boot, Finished, Laboratory},
    model::Observations,
    record::{BootRecord, Outcome},
    results::{self, Head},
    schedule::{self, Event},
    store::Store,
    study::{HOST, Study},
};
use tollgate_vm::{Accelerator, accelerator, built, kernels};

use super::{applications, pace::Pace, progress::Progress};
use crate::{
    interrupt,
    vm::{self, AcceleratorName},
};

/// Seconds that a boot may take.
const TIMEOUT: u64 = 900;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The name of a study (see `tollgate study list`) or the path of a study file
    study: String,
    /// The folder for results, samples and consoles
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Continue an interrupted run: measured boots are kept, failed ones are measured again
    #[arg(long)]
    resume: bool,
    /// Measure only on this kernel of the study; may be repeated, and --resume needs the same
    #[arg(long, value_name = "KERNEL")]
    kernel: Vec<String>,
    /// Build kernels of the study that are built from source and are missing, which may take an hour
    #[arg(long)]
    build_kernels: bool,
    /// Guests at a time on the instruction clock, instead of one per processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    guests: Option<u16>,
    /// Wall clock only: run guests on this accelerator instead of trying KVM. Wall times under emulation measure the
    /// emulator; use them only to try a study
    #[arg(long, value_enum)]
    accelerator: Option<AcceleratorName>,
    /// Kill a guest after this many seconds, instead of 900, or of those that a study of applications names
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

impl Run {
    /// A study of applications is one boot, of the kernel that it names.
    fn of_applications(&self) -> anyhow::Result<applications::Options<'_>> {
        if self.resume || !self.kernel.is_empty() || self.guests.is_some() || self.build_kernels {
            bail!("a study of applications is one boot: leave --resume, --kernel, --guests and --build-kernels out");
        }
        let timeout = self.timeout.map(Duration::from_secs);
        Ok(applications::Options { out: &self.out, accelerator: self.accelerator, timeout })
    }
}

pub(crate) fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag()?;
    if let Some(study) = super::find_applications(&arguments.study)? {
        return applications::run(&study, &arguments.of_applications()?);
    }
    let mut study = super::find(&arguments.study)?;
    let text = study.text.clone();
    let cache = Cache::of_user()?.interruptible(interrupted);
    study = if arguments.kernel.is_empty() {
        study.with_built(|name| arguments.build_kernels || built::recipe(name).is_some_and(|r| r.is_built(&cache)))
    } else {
        study.on(&arguments.kernel).map_err(anyhow::Error::msg)?
    };
    if !study.kernels_if_built.is_empty() {
        let absent = study.kernels_if_built.join(", ");
        eprintln!("tollgate: left out because it is not built (`tollgate vm build`, or --build-kernels): {absent}");
    }
    if arguments.build_kernels {
        vm::build::missing(&cache, &study.kernels)?;
    }
    // Missing kernels are reported before a folder is created for results.
    let names = study.kernels.iter().filter(|name| built::recipe(name).is_some());
    let kernels = names
        .map(|name| kernels::find(&cache, name).context("this study needs it (or run it with --build-kernels)"))
        .collect::<anyhow::Result<Vec<_>>>()?;
    built::of_one_source(&kernels)?;
    let store =
        if arguments.resume { Store::resume(&arguments.out, &text)? } else { Store::create(&arguments.out, &text)? };
    let chosen = choose_machine(&mut study, &cache, arguments.accelerator)?;
    let preparing = Progress::new(0, 1);
    let timeout = Duration::from_secs(arguments.timeout.unwrap_or(TIMEOUT));
    let laboratory = Laboratory::prepare(&cache, &study, chosen.accelerator, timeout, interrupted, &mut |step| {
        preparing.preparing(step)
    })?;
    let environment = environment::describe(&cache, &study, &laboratory, option_env!("TOLLGATE_REVISION"))?;
    let mut head = Head {
        clock: study.clock,
        accelerator: chosen.name.into(),
        accelerator_reason: chosen.reason,
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        study: study.header(),
        environment,
    };
    store.go_on(&mut head)?;
    let mut records = Records::open(&store, head)?;
    let boots: Vec<Boot> = schedule::boots(&study).into_iter().filter(|boot| !records.hold(boot)).collect();
    let workers = workers(arguments, &study);
    let mut progress = Progress::new(boots.len(), workers);
    let mut pace = Pace::new(workers);
    let outcome = schedule::run(&laboratory, boots, workers, &mut |event| -> anyhow::Result<()> {
        match event {
            Event::Started(boot) => {
                pace.started(&boot.kernel);
                progress.step(boot, "booting");
            }
            Event::Step(boot, step) => progress.step(boot, &step),
            Event::Finished(boot, finished) => {
                if let Outcome::Failed(reason) = &finished.record.outcome {
                    let first = reason.lines().next().unwrap_or_default();
                    progress.note(&format!("{} {}: {first}", boot.kernel, boot.configuration));
                }
                pace.finished(&boot.kernel);
                let seconds = finished.record.seconds;
                records.keep(*finished)?;
                progress.finished(&boot, seconds);
            }
        }
        Ok(())
    });
    progress.clear();
    // Measured boots are kept, however the run ended.
    let results = records.close()?;
    let place = arguments.out.display();
    outcome.with_context(|| format!("stopped; what was measured is kept in {place}: go on with --resume"))?;
    super::print_table(&results)?;
    eprintln!();
    pace.lines().iter().for_each(|line| eprintln!("{line}"));
    eprintln!("results, samples and consoles: {place}");
    let failed = results.configurations.iter().all(|configuration| configuration.workloads.is_empty());
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// What the boots run on.
struct Chosen {
    accelerator: Accelerator,
    /// Its name in the results.
    name: &'static str,
    reason: String,
}

impl Chosen {
    fn guests(accelerator: Accelerator, reason: impl Into<String>) -> Self {
        Self { accelerator, name: accelerator.name(), reason: reason.into() }
    }

    fn host(reason: impl Into<String>) -> Self {
        Self { accelerator: Accelerator::Emulation, name: HOST, reason: reason.into() }
    }
}

/// Under emulation, wall times measure the emulator: without KVM the study becomes the host's own A/A pair.
fn choose_machine(study: &mut Study, cache: &Cache, asked: Option<AcceleratorName>) -> anyhow::Result<Chosen> {
    let guests = study.kernels.iter().find(|kernel| *kernel != HOST).cloned();
    Ok(match (study.clock, guests, asked) {
        (Counter::Instructions, _, Some(AcceleratorName::Kvm)) => {
            bail!("KVM cannot count instructions: say clock = \"wall\" in the study, or leave --accelerator out")
        }
        (Counter::Instructions, _, _) => Chosen::guests(Accelerator::Emulation, "the instruction clock needs it"),
        (Counter::Wall, None, _) => Chosen::host("the study needs no guest; KVM was not tried"),
        (Counter::Wall, Some(_), Some(AcceleratorName::Kvm)) => Chosen::guests(Accelerator::Kvm, "as requested"),
        (Counter::Wall, Some(_), Some(AcceleratorName::Emulation)) => {
            Chosen::guests(Accelerator::Emulation, "as requested; its wall times measure the emulator")
        }
        (Counter::Wall, Some(spec), None) => {
            let kernel = kernels::find(cache, &spec)?;
            let verdict = accelerator::choose(cache, &kernel.image, interrupt::flag()?)?;
            if verdict.accelerator == Accelerator::Kvm {
                Chosen::guests(Accelerator::Kvm, verdict.reason)
            } else {
                study.only_the_host();
                Chosen::host(format!("an A/A pair; no guest was measured under KVM: {}", verdict.reason))
            }
        }
    })
}

/// Emulated guests do not disturb one another's instruction counts; on the wall clock there is one at a time.
fn workers(arguments: &Run, study: &Study) -> usize {
    match study.clock {
        Counter::Wall => 1,
        Counter::Instructions => {
            arguments.guests.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
        }
    }
}

/// The largest share of the time that rewriting the results may take: a twentieth.
const WRITING_SHARE: u32 = 20;

/// The raw records of a run and the results made of them.
struct Records<'s> {
    store: &'s Store,
    head: Head,
    boots: Vec<BootRecord>,
    written: Option<(Instant, Duration)>,
}

impl<'s> Records<'s> {
    /// Opens the records of an earlier run, if any; failed boots are measured again.
    fn open(store: &'s Store, head: Head) -> anyhow::Result<Self> {
        let mut boots = store.read_boots()?;
        boots.retain(|boot| boot.report().is_some());
        let mut records = Self { store, head, boots, written: None };
        // The environment is written before the first record, so that no record is without it.
        records.write()?;
        Ok(records)
    }

    fn hold(&self, boot: &Boot) -> bool {
        self.boots.iter().any(|record| {
            record.kernel == boot.kernel && record.configuration == boot.configuration && record.boot == boot.index
        })
    }

    fn keep(&mut self, finished: Finished) -> anyhow::Result<()> {
        let Finished { record, console } = finished;
        self.store.write_boot(&record)?;
        if !console.is_empty() {
            let path = self.store.console(&record.kernel, &record.configuration, record.clock, record.boot)?;
            std::fs::write(&path, console).with_context(|| format!("write {}", path.display()))?;
        }
        self.boots.push(record);
        let due = self.written.is_none_or(|(at, took)| at.elapsed() > took * WRITING_SHARE);
        if due { self.write().map(drop) } else { Ok(()) }
    }

    fn write(&mut self) -> anyhow::Result<results::Results> {
        let started = Instant::now();
        let results = results::build(self.head.clone(), &self.boots);
        self.store.write_results(&results)?;
        self.store.write_observations(&Observations::of_records(&self.boots, results.study.figure))?;
        self.written = Some((Instant::now(), started.elapsed()));
        Ok(results)
    }

    fn close(&mut self) -> anyhow::Result<results::Results> {
        let results = self.write()?;
        self.store.write_table(&export::markdown(&results))?;
        Ok(results)
    }
}
