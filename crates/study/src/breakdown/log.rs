//! The emulator's log of instructions (`-d exec`, accel/tcg/cpu-exec.c).

use std::io::{self, BufRead};

/// A block of instructions is about to be executed: here one instruction.
const EXECUTED: &str = "Trace ";
/// The last one was not executed after all, because an interrupt had to be looked at first.
const STOPPED: &str = "Stopped execution";

/// The addresses of the instructions that ran between the first two calls of the function at `mark`: from its first
/// instruction to the one before its first instruction again. `None` if it was not called twice.
pub(super) fn between_marks(log: impl BufRead, mark: u64) -> io::Result<Option<Vec<u64>>> {
    let mut found: Option<Vec<u64>> = None;
    for line in log.lines() {
        let line = line?;
        if line.starts_with(STOPPED)
            && let Some(addresses) = &mut found
        {
            addresses.pop();
        }
        let Some(address) = executed(&line) else { continue };
        match &mut found {
            Some(addresses) if address == mark => return Ok(Some(std::mem::take(addresses))),
            Some(addresses) => addresses.push(address),
            None if address == mark => found = Some(vec![address]),
            None => {}
        }
    }
    Ok(None)
}

/// `Trace 0: 0x7f2c04000100 [0000000000000000/ffffffff81e00000/00000033/ff000001] asm_exc_page_fault`: the second number.
fn executed(line: &str) -> Option<u64> {
    let (_, numbers) = line.strip_prefix(EXECUTED)?.split_once('[')?;
    u64::from_str_radix(numbers.split('/').nth(1)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
        Trace 0: 0x7f2c04000100 [0000000000000000/ffffffff81000000/00000033/ff000001] vfs_read\n\
        Trace 0: 0x7f2c04000200 [0000000000000000/00005555555a0010/00000033/ff000001] \n\
        Trace 0: 0x7f2c04000300 [0000000000000000/00005555555a0014/00000033/ff000001] \n\
        Trace 0: 0x7f2c04000400 [0000000000000000/ffffffff81000004/00000033/ff000001] \n\
        Stopped execution of TB chain before 0x7f2c04000400 [ffffffff81000004] \n\
        cpu_io_recompile: rewound execution of TB to ffffffff81000004\n\
        Trace 0: 0x7f2c04000400 [0000000000000000/ffffffff81000004/00000033/ff000001] \n\
        Trace 0: 0x7f2c04000200 [0000000000000000/00005555555a0010/00000033/ff000001] \n\
        Trace 0: 0x7f2c04000300 [0000000000000000/00005555555a0014/00000033/ff000001] \n";

    #[test]
    fn takes_what_is_between_two_calls_of_the_mark_and_was_executed() {
        let found = between_marks(LOG.as_bytes(), 0x5555_555a_0010).unwrap();
        assert_eq!(found.unwrap(), [0x5555_555a_0010, 0x5555_555a_0014, 0xffff_ffff_8100_0004]);
    }

    #[test]
    fn finds_no_operation_in_a_log_without_its_end() {
        assert_eq!(between_marks(LOG.as_bytes(), 0xffff_ffff_8100_0000).unwrap(), None);
    }
}
