//! System calls, one per workload, so that the tracer's counts of a call can be compared with the call's cost under delayed
//! hooks. Each is a line of [`table`].

mod table;
mod world;

use std::io;

use self::{table::ROWS, world::World};
use crate::{
    place::Place,
    workload::{Operation, Prepared},
};

pub(super) use self::table::WORKLOADS;

/// A word of a system call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Number(i64),
    /// The result of the first call before, or of the call itself if there is none before: a descriptor, an identifier, an
    /// address.
    Made,
    /// Paths in the workload's directory: a file of 4 KB, a symbolic link to it, the directory, an unused name.
    File,
    Link,
    Folder,
    Name,
    /// Open descriptors: the file, another one, the directory.
    Open,
    Second,
    OpenFolder,
    /// A UDP socket bound to loopback, and two sockets of a pair.
    Socket,
    Pair,
    Peer,
    /// This process's number.
    Process,
    /// Addresses: 8 KB of zeros, the same to be written to, a page of anonymous memory.
    Zeros,
    Buffer,
    Page,
    /// Addresses: of the UDP socket's name, of its length, of one `iovec`, of a System V message, of a semaphore's operation.
    Address,
    Length,
    Vector,
    Message,
    Increment,
}

/// A system call with its arguments.
type Step = (libc::c_long, &'static [Word]);

/// A workload: the call, and outside the clock the calls before it and those that undo it.
#[derive(Debug)]
struct Row {
    before: &'static [Step],
    act: Step,
    after: &'static [Step],
}

/// One row, ready.
struct Call {
    row: &'static Row,
    world: World,
    made: i64,
    /// Whether it was called, and is still to be undone.
    done: bool,
}

/// The set-up of the row of this number. Workloads have set-ups of their own, which are functions without data.
fn prepare(place: &Place, number: usize) -> Prepared {
    Ok(Box::new(Call { row: &ROWS[number], world: World::make(&place.dir)?, made: 0, done: false }))
}

impl Call {
    fn step(&self, (number, words): Step) -> io::Result<i64> {
        let mut arguments = [0_i64; 6];
        for (argument, word) in arguments.iter_mut().zip(words) {
            *argument = self.world.word(*word, self.made);
        }
        let [a, b, c, d, e, f] = arguments;
        // SAFETY: addresses are of memory that the world keeps, as large as the row's call reads or writes.
        match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
            result if result < 0 => Err(io::Error::last_os_error()),
            result => Ok(result),
        }
    }

    fn undo(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.done) {
            for step in self.row.after {
                self.step(*step)?;
            }
        }
        Ok(())
    }
}

impl Operation for Call {
    fn before(&mut self) -> io::Result<()> {
        self.undo()?;
        for (number, step) in self.row.before.iter().enumerate() {
            let result = self.step(*step)?;
            if number == 0 {
                self.made = result;
            }
        }
        Ok(())
    }

    fn reach(&self) -> u32 {
        1
    }

    fn run(&mut self) -> io::Result<()> {
        let result = self.step(self.row.act)?;
        if self.row.before.is_empty() {
            self.made = result;
        }
        self.done = true;
        Ok(())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // What is left ends with the place, or with the process.
        let _ = self.undo();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::Places;

    #[test]
    fn does_each_call_again_and_again_and_leaves_nothing() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let places = Places::open(None, &[]).unwrap();
        let before = open();
        for workload in WORKLOADS {
            let selection = format!("{}:rootfs:d10", workload.name).parse().unwrap();
            let place = places.place(&selection).unwrap();
            let mut operation = (workload.setup)(&place).unwrap();
            for _ in 0..3 {
                operation.before().unwrap_or_else(|error| panic!("{}: {error}", workload.name));
                operation.run().unwrap_or_else(|error| panic!("{}: {error}", workload.name));
            }
        }
        // Other tests open and close descriptors meanwhile, but a leak here would occur each time.
        assert!(open() < before + WORKLOADS.len(), "{before} to {}", open());
    }

    #[test]
    fn names_each_workload_by_its_call_once() {
        assert!(WORKLOADS.len() >= 40 && WORKLOADS.len() == ROWS.len());
        assert!(WORKLOADS.iter().all(|workload| workload.name.starts_with("sys-")));
    }
}
