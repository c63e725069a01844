//! The boots of a study, their order, and the workers that run them.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use tollgate_bench::counter::Counter;

use crate::{
    laboratory::{Boot, Finished, Laboratory, LaboratoryError},
    stats::random::Random,
    study::Study,
};

/// Messages of the workers, in the order of events.
#[derive(Debug)]
pub enum Event {
    /// A worker has begun a boot.
    Started(Boot),
    /// A boot has reached its next step, such as `3/26 stat`.
    Step(Boot, String),
    /// A boot is over.
    Finished(Boot, Box<Finished>),
}

/// All boots in their order.
///
/// On the instruction clock: each configuration once, then each with the next padding, so that an interrupted run has a whole
/// table. On the wall clock: round after round, each in a random order, which is the same in every run of the study.
#[must_use]
pub fn boots(study: &Study) -> Vec<Boot> {
    let mut all = Vec::new();
    for kernel in &study.kernels {
        for index in 0..study.boots() {
            let mut configurations: Vec<&String> = study.configurations.iter().collect();
            if study.clock == Counter::Wall {
                Random::new(u64::from(index)).shuffle(&mut configurations);
            }
            all.extend(configurations.into_iter().map(|configuration| Boot {
                kernel: kernel.clone(),
                configuration: configuration.clone(),
                index,
            }));
        }
    }
    all
}

/// Runs boots on `workers` guests at a time. `on_event` is called on this thread; an error of it, or of a worker, stops all.
pub fn run<E: From<LaboratoryError>>(
    laboratory: &Laboratory<'_>,
    boots: Vec<Boot>,
    workers: usize,
    on_event: &mut dyn FnMut(Event) -> Result<(), E>,
) -> Result<(), E> {
    let queue = Mutex::new(VecDeque::from(boots));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let clear = || queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
    thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        for _ in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(boot) = next() {
                    let result = run_one(laboratory, &boot, &sender);
                    let failed = result.is_err();
                    // The receiver is gone only after another failure has ended the study.
                    if sender.send(result.map(|finished| Event::Finished(boot, Box::new(finished)))).is_err() || failed
                    {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut outcome = Ok(());
        for event in events {
            let handled = event.map_err(E::from).and_then(&mut *on_event);
            if handled.is_err() && outcome.is_ok() {
                // Running boots end by themselves, or at once if interrupted; no new one starts.
                clear();
                outcome = handled;
            }
        }
        outcome
    })
}

fn run_one(
    laboratory: &Laboratory<'_>,
    boot: &Boot,
    sender: &mpsc::Sender<Result<Event, LaboratoryError>>,
) -> Result<Finished, LaboratoryError> {
    // A send fails only after the study has ended; the caller then notices the end of the boot.
    let _ = sender.send(Ok(Event::Started(boot.clone())));
    laboratory.run(boot, &mut |step| {
        let _ = sender.send(Ok(Event::Step(boot.clone(), step.to_string())));
    })
}
