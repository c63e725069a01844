//! `tollgate study run` for a study of applications: one boot of a Debian system.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use serde_json::json;
use tollgate_bench::counter::Counter;
use tollgate_host::{Cache, process::Limits};
use tollgate_study::applications::{Applications, Report};
use tollgate_vm::{
    Accelerator, Clock, Disk, Error, Image, Machine, accelerator,
    agent::System as Service,
    guest::{self, GuestCommand, Outcome, Stream},
    image::RUNNING,
    kernels, modules,
    system::{DRIVERS, System},
};

use crate::{interrupt, output, vm::AcceleratorName};

/// The files in the folder of results.
const RESULTS: &str = "results.json";
const SCRIPT: &str = "script";
const OUTPUT: &str = "output";
const ERRORS: &str = "errors";
const TABLE: &str = "table.md";
const CONSOLE: &str = "console";
/// The guest's memory in MiB: what the applications write is kept there.
const MEMORY: u32 = 2048;
/// Modules that the guard needs: BPF.
const LSM: &str = "yama,bpf";

/// Where and how a study is run.
pub(super) struct Options<'o> {
    pub(super) out: &'o Path,
    pub(super) accelerator: Option<AcceleratorName>,
    /// Instead of the study's.
    pub(super) timeout: Option<Duration>,
}

/// What the guest has printed.
#[derive(Default)]
struct Printed {
    output: Vec<u8>,
    errors: Vec<u8>,
}

pub(super) fn run(study: &Applications, options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
    fs::create_dir(options.out).with_context(|| format!("make the folder {}", options.out.display()))?;
    let keep = |name: &str, content: &[u8]| {
        let path = options.out.join(name);
        fs::write(&path, content).with_context(|| format!("write {}", path.display())).map(|()| path)
    };
    let script = keep(SCRIPT, study.script().as_bytes())?;
    let system = System::find(&cache, &study.recipe())?;
    let mut printed = Printed::default();
    let booted = boot(study, &cache, &system, script, options, &mut printed);
    // Kept of a guest that has not come to its end, too.
    keep(OUTPUT, &printed.output)?;
    keep(ERRORS, &printed.errors)?;
    let (outcome, reason) = booted?;
    keep(CONSOLE, outcome.console.as_bytes())?;
    let report = Report::of(study, &String::from_utf8_lossy(&printed.output))
        .with_context(|| format!("{} has what the guest has printed", options.out.display()))?;
    let packages = fs::read_to_string(system.packages()).context("read the system's packages")?;
    let table = format!("{}\n\n{}", heading(study, &outcome, &reason), report.table(study));
    let results = json!({
        "study": study.name, "title": study.title, "kernel": outcome.release, "clock": study.clock,
        "accelerator": outcome.accelerator.name(), "accelerator-reason": reason, "margin": study.margin,
        "packages": packages.lines().collect::<Vec<_>>(), "report": report,
    });
    keep(RESULTS, &serde_json::to_vec_pretty(&results)?)?;
    keep(TABLE, table.as_bytes())?;
    output::write(&table)?;
    report.denied.iter().try_for_each(|line| output::line(line))?;
    Ok(if report.denied.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn heading(study: &Applications, outcome: &Outcome, reason: &str) -> String {
    let clock = match study.clock {
        Counter::Instructions => "instruction clock: a second is 1,000,000,000 instructions of the guest, or idle",
        Counter::Wall => "wall clock",
    };
    format!(
        "{}: {}. Kernel {}, {} ({reason}), {clock}; {} runs without the guard and with it, in pairs.",
        study.name,
        study.title,
        outcome.release,
        outcome.accelerator.name(),
        study.runs
    )
}

fn boot(
    study: &Applications,
    cache: &Cache,
    system: &System,
    script: PathBuf,
    options: &Options<'_>,
    printed: &mut Printed,
) -> anyhow::Result<(Outcome, String)> {
    let kernel = kernels::find(cache, &study.kernel)?;
    let (clock, accelerator, reason) = match (study.clock, options.accelerator) {
        (Counter::Instructions, Some(AcceleratorName::Kvm)) => bail!("KVM cannot count instructions"),
        (Counter::Instructions, _) => {
            (Clock::Instructions, Accelerator::Emulation, "the instruction clock needs it".to_owned())
        }
        (Counter::Wall, Some(AcceleratorName::Kvm)) => (Clock::Wall, Accelerator::Kvm, "as requested".to_owned()),
        (Counter::Wall, Some(AcceleratorName::Emulation)) => {
            (Clock::Wall, Accelerator::Emulation, "as requested; its wall times measure the emulator".to_owned())
        }
        (Counter::Wall, None) => {
            let verdict = accelerator::choose(cache, &kernel.image, interrupt::flag()?)?;
            (Clock::Wall, verdict.accelerator, verdict.reason)
        }
    };
    let machine = Machine {
        kernel: kernel.image.clone(),
        clock,
        accelerator,
        lsm: Some(LSM.to_owned()),
        append: Vec::new(),
        memory_mib: MEMORY,
        cpus: 1,
        // What a guest writes is lost: the next study finds the same system.
        disk: Some(Disk { image: system.image(), kept: false }),
        volumes: Vec::new(),
        wire: None,
    };
    let mut image = Image::with_agent()?;
    if let Some(folder) = &kernel.modules {
        image.kernel_modules(modules::with_dependencies(folder, &DRIVERS)?);
    }
    image.disk_file(Path::new(RUNNING), "/usr/bin/tollgate")?;
    image.disk_file(&script, "/script")?;
    let command = GuestCommand {
        argv: ["bash", "/script"].map(str::to_owned).to_vec(),
        settle: clock == Clock::Instructions,
        system: Some(Service::default()),
        ..GuestCommand::default()
    };
    let timeout = options.timeout.unwrap_or(Duration::from_secs(study.timeout));
    let limits = Limits { timeout, interrupted: interrupt::flag()? };
    let all = study.applications.len() * 2 * study.runs as usize;
    let outcome = guest::run(&machine, &image, &command, limits, &mut |stream, bytes| {
        match stream {
            Stream::Stdout => printed.output.extend(bytes),
            Stream::Stderr => printed.errors.extend(bytes),
        }
        let done = printed.output.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"sample ")).count();
        eprint!("\r{done} of {all} runs");
    });
    eprintln!();
    Ok((outcome.map_err(Error::from)?, reason))
}
