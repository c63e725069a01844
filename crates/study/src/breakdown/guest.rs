//! Runs a boot in which the instructions of operations are logged.

use tollgate_bench::{
    job::Report,
    run::logged::{OVER, READY},
    tracing::Symbols,
};
use tollgate_vm::{Error as VmError, InstructionLog, guest::Stream};

use super::{Breakdown, Code, break_down, log};
use crate::laboratory::{Boot, Laboratory, LaboratoryError};

/// A boot's measurements, and the operations that were logged.
#[derive(Debug)]
pub struct Logged {
    /// The job's report, with the samples of each workload.
    pub report: Report,
    /// Operations by workload.
    pub operations: Vec<Vec<Breakdown>>,
}

/// Runs a boot, and breaks this many operations of each workload down.
pub fn log_operations(
    laboratory: &Laboratory<'_>,
    boot: &Boot,
    operations: u32,
    progress: &mut dyn FnMut(&str),
) -> Result<Logged, LaboratoryError> {
    let mut session = Session::default();
    let outcome = laboratory.run_logged(boot, operations, &mut |log, stream, bytes| {
        if stream == Stream::Stdout { Ok(Vec::new()) } else { session.hear(log, bytes, progress) }
    })?;
    let wrong = |reason: String| LaboratoryError::Vm(VmError::Agent { reason });
    let report: Report = serde_json::from_slice(&outcome.stdout).map_err(|_| wrong(session.other.trim().to_owned()))?;
    let logged = report.logged.as_ref().ok_or_else(|| wrong("the job logged nothing".into()))?;
    let symbols = Symbols::parse(&logged.symbols);
    let code = Code { symbols: &symbols, sources: &logged.sources };
    let mut executed = session.executed.iter();
    let mut one = |counted: &u64| {
        let addresses = executed.next().map_or(&[][..], Vec::as_slice);
        Breakdown { counted: *counted, ..break_down(addresses, code) }
    };
    let operations = logged.counted.iter().map(|counted| counted.iter().map(&mut one).collect()).collect();
    Ok(Logged { report, operations })
}

/// The host's side of a job that is logged.
#[derive(Default)]
struct Session {
    pending: String,
    /// What the job said of errors.
    other: String,
    mark: u64,
    /// The instructions of each operation.
    executed: Vec<Vec<u64>>,
}

impl Session {
    /// Hears a piece of standard error, and returns the answer.
    fn hear(
        &mut self,
        log: &mut InstructionLog,
        bytes: &[u8],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<u8>, VmError> {
        self.pending.push_str(&String::from_utf8_lossy(bytes));
        let mut answer = Vec::new();
        while let Some(end) = self.pending.find('\n') {
            let line: String = self.pending.drain(..=end).collect();
            let line = line.trim_end();
            if let Some(mark) = line.strip_prefix(READY) {
                self.mark = u64::from_str_radix(mark, 16).unwrap_or_default();
                log.begin()?;
                answer.push(b'\n');
            } else if line == OVER {
                let found = log.end(|lines| log::between_marks(lines, self.mark))?;
                let whole =
                    found.ok_or_else(|| VmError::Garbled("the log of instructions has no whole operation".into()));
                self.executed.push(whole?);
                answer.push(b'\n');
            } else if let Some(step) = line.strip_prefix("progress ") {
                progress(step);
            } else {
                self.other.push_str(line);
                self.other.push('\n');
            }
        }
        Ok(answer)
    }
}
