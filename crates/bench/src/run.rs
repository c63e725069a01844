//! Executes a job.

pub mod logged;
pub mod settle;
mod sources;
mod spool;

use std::{hint::black_box, sync::Arc, thread::sleep, time::Duration};

use nix::sys::utsname::uname;

use self::{logged::Logging, spool::Spool};

use crate::{
    Error,
    confine::{Confined, Confinement, active_modules, confine, latency::Delays},
    counter::Meter,
    error::Context,
    job::{ActOutcome, Delayed, Job, Measured, Report},
    labels::{self, Label},
    measure::measure,
    network::Link,
    oracle::try_act,
    place::Network,
    places::Places,
    selection::Selection,
    workloads::contexts,
};

/// How long to wait after a progress line, until the work that it causes (a serial port, a terminal) is over.
const AFTER_PROGRESS: Duration = Duration::from_millis(10);

/// How far one step of [`Job::padding`] moves the stack, in bytes: no power of two, so that the position within a page and a
/// cache line changes at each step, and a multiple of the ABI's alignment.
const STACK_STEP: usize = 1040;

/// How far one step of [`Job::padding`] moves the start against the timer tick, which is 4 ms on Debian's kernels.
const TICK_STEP: Duration = Duration::from_micros(437);

/// Confines this process, tries the acts, waits for a quiet kernel and measures every selection.
///
/// `progress` is called with `NUMBER/TOTAL NAME` before each selection. If a selection cannot be measured, its entry has the
/// reason. An error concerns the whole job: nothing was measured then. Some modules confine this process for good; run the
/// job in a process of its own if that matters.
pub fn run(job: &Job, progress: &mut dyn FnMut(&str)) -> Result<Report, Error> {
    let commands: Vec<_> = job.commands.iter().cloned().map(Arc::new).collect();
    let selections =
        job.workloads.iter().map(|name| Selection::of(name, &commands)).collect::<Result<Vec<Selection>, _>>()?;
    let release = uname().context("uname")?.release().to_string_lossy().into_owned();
    // A confined process may not mount, nor open the files that the meter reads.
    let mut meter = Meter::open(job.counter)?;
    let places = Places::open(job.work.as_deref(), &selections)?;
    // Before anything is confined, which may lose packets until labels flow.
    if job.tunnel {
        Link::open_tunnel()?;
    } else if !job.labels.is_empty() {
        Link::open(Network::Veth)?;
    }
    let mut spool = Spool::open(selections.len() * (1 + job.delays.len()))?;
    let logging = job.logged.map(Logging::open).transpose()?;
    let lsm = active_modules();

    let mut confined = confine(&job.confinement, &contexts(&job.workloads), places.root(), job.counter)?;
    if confined.learns() {
        progress("learning");
        learn(&selections, &places, &mut meter)?;
        confined.enforce_learnt()?;
    }
    meter.decisions = confined.decisions.take();
    let labels = flowing(job, &mut confined, progress)?;
    let acts = job.acts.iter().map(|act| ActOutcome { act: *act, errno: try_act(act) }).collect();
    let settled = if job.settle {
        progress("settling");
        Some(settle::settle(job.counter)?)
    } else {
        None
    };
    let latency = confined.latency();
    if latency.is_none() && !job.delays.is_empty() {
        return Err(Error::Unavailable("delays are only set under bpf-latency and latency".to_owned()));
    }
    // The kernel may lack some hooks of the default set.
    let delays: Vec<Delays> = match (&job.confinement, latency) {
        (Confinement::BpfLatency { hooks }, Some((latency, _))) if hooks.is_empty() => {
            job.delays.iter().map(|delays| latency.of_attached(delays)).collect()
        }
        (Confinement::Latency, Some((latency, _))) => {
            job.delays.iter().map(|delays| latency.of_attached(delays)).collect()
        }
        _ => job.delays.clone(),
    };
    let mut all = below(job.padding as usize, &mut || {
        sleep(TICK_STEP * job.padding);
        let mut all = measure_all(&selections, &places, &mut meter, &mut spool, job.samples, progress)?;
        for (delays, (latency, _)) in delays.iter().zip(latency.iter().cycle()) {
            latency.set(delays)?;
            all.extend(measure_all(&selections, &places, &mut meter, &mut spool, job.samples, progress)?);
        }
        Ok::<_, Error>(all)
    })?;
    let logged = logging.map(|logging| logging.run(&selections, &places, &meter)).transpose()?;
    spool.give_back(&mut all)?;
    let mut runs = all.chunks(selections.len().max(1)).map(<[Measured]>::to_vec);
    let workloads = runs.next().unwrap_or_default();
    let delayed = delays.into_iter().zip(runs).map(|(delays, workloads)| Delayed { delays, workloads });
    Ok(Report {
        release,
        lsm,
        confinement: confined.verified.clone(),
        acts,
        labels: labels.into_iter().chain(labels::look(&job.labels)?).collect(),
        settled,
        workloads,
        delayed: delayed.collect(),
        calibration: latency.map(|(_, calibration)| calibration.clone()),
        logged,
    })
}

/// Waits until labels flow as the job says, and returns those that do.
fn flowing(job: &Job, confined: &mut Confined, progress: &mut dyn FnMut(&str)) -> Result<Vec<Label>, Error> {
    if job.labels.is_empty() {
        return Ok(Vec::new());
    }
    progress("labels");
    let seen = labels::wait_for(&job.labels)?;
    confined.end_daemon()?;
    Ok(seen)
}

/// Does once everything that the job will do, so that a learning module sees it.
fn learn(selections: &[Selection], places: &Places, meter: &mut Meter) -> Result<(), Error> {
    settle::look()?;
    for selection in selections {
        // An error here occurs again in the measurement, and is reported there.
        measure(selection, places, meter, Some(1));
    }
    Ok(())
}

fn measure_all(
    selections: &[Selection],
    places: &Places,
    meter: &mut Meter,
    spool: &mut Spool,
    samples: Option<u32>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Measured>, Error> {
    let total = selections.len();
    let numbered = selections.iter().zip(1..);
    numbered
        .map(|(selection, number)| {
            progress(&format!("{number}/{total} {selection}"));
            release_memory();
            sleep(AFTER_PROGRESS);
            let mut measured = measure(selection, places, meter, samples);
            spool.keep(&mut measured)?;
            Ok(measured)
        })
        .collect()
}

/// Returns memory that earlier steps (a learnt policy, another workload) have freed to the kernel, because a fork would copy
/// it.
fn release_memory() {
    // SAFETY: malloc_trim has no preconditions; glibc takes the locks it needs.
    unsafe { libc::malloc_trim(0) };
}

/// Calls `inner` with the stack moved down by this many steps.
#[inline(never)]
fn below<T>(steps: usize, inner: &mut dyn FnMut() -> T) -> T {
    if steps == 0 {
        return inner();
    }
    let frame = black_box([0_u8; STACK_STEP]);
    let result = below(steps - 1, inner);
    black_box(&frame);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Counter;

    fn job(workloads: &[&str]) -> Job {
        Job {
            counter: Counter::Wall,
            confinement: Confinement::None,
            acts: Vec::new(),
            workloads: workloads.iter().map(|&name| name.to_owned()).collect(),
            commands: Vec::new(),
            samples: Some(2),
            work: None,
            padding: 0,
            settle: false,
            delays: Vec::new(),
            tunnel: false,
            labels: Vec::new(),
            logged: None,
        }
    }

    #[test]
    fn rejects_an_unknown_workload_before_anything_is_set_up() {
        let mut lines = 0;
        let error = run(&job(&["null", "nul"]), &mut |_| lines += 1).unwrap_err();
        assert!(matches!(error, Error::UnknownWorkload { .. }), "{error}");
        assert_eq!(lines, 0);
    }

    #[test]
    fn reports_each_selection_in_order_after_saying_so() {
        let mut lines = Vec::new();
        let report = run(&job(&["loop", "null"]), &mut |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["1/2 loop", "2/2 null"]);
        let names: Vec<&str> = report.workloads.iter().map(|measured| measured.name.as_str()).collect();
        assert_eq!(names, ["loop", "null"]);
        assert_eq!(report.workloads[1].samples.len(), 2);
        assert_eq!(report.settled, None);
    }

    #[test]
    fn moves_the_stack_down_by_at_least_a_step_each() {
        let position = |steps| {
            below(steps, &mut || {
                let here = 0_u8;
                black_box(&raw const here).addr()
            })
        };
        assert!(position(0) >= position(1) + STACK_STEP);
        assert!(position(1) >= position(3) + 2 * STACK_STEP);
    }
}
