//! Runs operations while the host logs each instruction that the guest executes.
//!
//! The job says when an operation is ready ([`READY`]) and when it is over ([`OVER`]), each by a line on standard error. It
//! then waits for a line on standard input, because the host switches its log on and off meanwhile.

use std::{
    fs::File,
    io::{self, Read, Seek},
    thread::sleep,
    time::Duration,
};

use super::sources::sources;
use crate::{
    Error,
    counter::{Meter, ticks},
    error::Context,
    job::Logged,
    measure::{rest::rest, taking_turns, warm_up},
    places::Places,
    selection::Selection,
    workload::Operation,
};

/// The beginning of the line that says that an operation is ready; the address of [`mark`] follows, in hexadecimal.
pub const READY: &str = "log ready ";
/// The line that says that it is over.
pub const OVER: &str = "log over";

const SYMBOLS: &str = "/proc/kallsyms";
/// How long to wait after the host's answer, until what passed it on has nothing more to do.
const AFTER_ANSWER: Duration = Duration::from_millis(10);
/// The runs before the first one that is logged, in the number of samples that have as many.
const WARM_UPS: usize = 16;
/// The runs before each one that is logged.
const REPEATED: u32 = 4;
/// Longer operations are not logged: a line of some 80 bytes is written for each instruction.
const MAX_INSTRUCTIONS: u64 = 3_000_000;

/// What was opened before anything is confined.
pub(super) struct Logging {
    operations: u32,
    symbols: File,
}

impl Logging {
    pub(super) fn open(operations: u32) -> Result<Self, Error> {
        Ok(Self { operations, symbols: File::open(SYMBOLS).context(format!("open {SYMBOLS}"))? })
    }

    /// Runs the operations of each selection. An error is that of the first that cannot be run.
    pub(super) fn run(mut self, selections: &[Selection], places: &Places, meter: &Meter) -> Result<Logged, Error> {
        let each = selections.iter().map(|selection| self.operations(selection, places, meter));
        let counted = each.collect::<Result<_, _>>()?;
        Ok(Logged { symbols: self.symbols()?, sources: sources(), counted })
    }

    fn operations(&self, selection: &Selection, places: &Places, meter: &Meter) -> Result<Vec<u64>, Error> {
        let failed = |cause| Error::Io { what: selection.to_string(), cause };
        let _taking_turns = taking_turns(selection, meter)?;
        let place = places.place(selection)?;
        let mut operation = selection.set_up(&place)?;
        warm_up(operation.as_mut(), WARM_UPS).map_err(failed)?;
        operation.before().map_err(failed)?;
        let start = mark();
        operation.run().map_err(failed)?;
        is_short(selection, mark() - start)?;
        let mut counted = Vec::new();
        for _ in 0..self.operations {
            operation.before().map_err(failed)?;
            if operation.leaves_work() {
                rest();
            }
            ask(&format!("{READY}{:x}", mark as *const () as u64))?;
            if !operation.leaves_work() {
                repeat(operation.as_mut()).map_err(failed)?;
            }
            let start = mark();
            let outcome = operation.run();
            let end = mark();
            ask(OVER)?;
            outcome.map_err(failed)?;
            counted.push(end - start);
        }
        Ok(counted)
    }

    /// Functions only: the list with data is twice as long, and travels through a serial port.
    fn symbols(&mut self) -> Result<String, Error> {
        let mut text = String::new();
        self.symbols.rewind().context(format!("rewind {SYMBOLS}"))?;
        self.symbols.read_to_string(&mut text).context(format!("read {SYMBOLS}"))?;
        let is_text = |line: &&str| line.split(' ').nth(1).is_some_and(|kind| "tTwW".contains(kind));
        Ok(text.lines().filter(is_text).map(|line| format!("{line}\n")).collect())
    }
}

/// Runs the operation as the samples do, one after another, because the kernel has worked meanwhile: what it keeps for each
/// processor is as it is between two samples then.
fn repeat(operation: &mut dyn Operation) -> io::Result<()> {
    for _ in 0..REPEATED {
        operation.run()?;
        operation.before()?;
    }
    Ok(())
}

fn is_short(selection: &Selection, instructions: u64) -> Result<(), Error> {
    if instructions <= MAX_INSTRUCTIONS {
        return Ok(());
    }
    Err(Error::Unavailable(format!(
        "{selection}: an operation has {instructions} instructions, and at most {MAX_INSTRUCTIONS} are logged; take a workload \
         that is a single operation, as `tollgate bench list` has them"
    )))
}

/// The counter. In the log, an operation is what is between two calls of this function.
#[inline(never)]
extern "C" fn mark() -> u64 {
    ticks()
}

/// Says something to the host and waits for its answer.
#[allow(clippy::print_stderr, reason = "the host reads it")]
fn ask(what: &str) -> Result<(), Error> {
    eprintln!("{what}");
    io::stdin().read_line(&mut String::new()).context("wait for the host's log of instructions")?;
    sleep(AFTER_ANSWER);
    Ok(())
}
