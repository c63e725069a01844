//! Operations that use names up: a pool of names, refilled outside the clock.

use std::{ffi::CString, io};

use super::path;
use crate::{
    Error,
    place::Place,
    workload::{Operation, Prepared},
};

/// Names in a pool: enough for a sample on the wall clock, few enough for one block of a directory.
const NAMES: usize = 64;

/// A name of the pool.
#[derive(Debug)]
pub(super) struct Item {
    /// The name that the operation creates or removes: `f00` to `f63` in the workload's directory.
    pub(super) name: CString,
    /// The target of a link: `file` in the same directory.
    pub(super) target: CString,
    /// The size of the file that is created.
    pub(super) bytes: usize,
}

/// The operation on one item.
pub(super) type Act = fn(&Item) -> io::Result<()>;

/// The state of a pool at the start.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// The names are free, as the operation needs them.
    Full,
    /// The names are free, and the operation needs them taken.
    Empty,
}

struct Pool {
    items: Vec<Item>,
    /// How many items, from the first, the operation has used.
    used: usize,
    act: Act,
    restore: Act,
}

/// The operation `act` on one item after another; `restore` undoes it outside the clock.
pub(super) fn pool(place: &Place, start: Start, bytes: usize, act: Act, restore: Act) -> Prepared {
    let item = |number| Ok(Item { name: path(place, &format!("f{number:02}"))?, target: path(place, "file")?, bytes });
    let items: Vec<Item> = (0..NAMES).map(item).collect::<Result<_, Error>>()?;
    let used = match start {
        Start::Full => 0,
        Start::Empty => items.len(),
    };
    Ok(Box::new(Pool { items, used, act, restore }))
}

impl Operation for Pool {
    fn before(&mut self) -> io::Result<()> {
        for item in &self.items[..self.used] {
            (self.restore)(item)?;
        }
        self.used = 0;
        Ok(())
    }

    fn reach(&self) -> u32 {
        NAMES as u32
    }

    fn run(&mut self) -> io::Result<()> {
        let item = self.items.get(self.used).ok_or_else(|| io::Error::other("the pool of names is used up"))?;
        (self.act)(item)?;
        self.used += 1;
        Ok(())
    }
}
