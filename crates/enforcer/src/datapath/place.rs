//! One network namespace: its devices have programs, and its routes leave room for labels.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use tracing::warn;

use super::{
    attach::{Attached, Looked, Way, Wrong},
    links::{self, Device},
    netlink::Socket,
    programs::Programs,
    routes::{self, Labelled, Plan, apply, memory::Memory},
};
use crate::programs::Pins;

/// What is done in every namespace.
#[derive(Debug)]
pub struct Task<'t> {
    /// What devices run.
    pub programs: &'t Programs,
    /// The networks whose packets have labels.
    pub networks: &'t [Labelled],
}

/// A network namespace.
#[derive(Debug)]
pub struct Place {
    attached: Attached,
    memory: Memory,
    /// Where [`Memory`] is kept.
    file: PathBuf,
    /// What had no effect on routes when it was tried.
    vain: Option<Plan>,
}

/// Where it is kept what routes of a namespace were.
#[must_use]
pub fn memory_of(folder: &Path, cookie: u64) -> PathBuf {
    folder.join(format!("routes-{cookie}"))
}

impl Place {
    /// The namespace with this cookie, as the last daemon has left it.
    pub fn open(pins: &Pins, folder: &Path, way: Way, cookie: u64) -> io::Result<Self> {
        let file = memory_of(folder, cookie);
        let memory = Memory::from_lines(&fs::read_to_string(&file).unwrap_or_default());
        Ok(Self { attached: Attached::new(pins, way, cookie)?, memory, file, vain: None })
    }

    /// How many programs are attached.
    #[must_use]
    pub fn count(&self) -> usize {
        self.attached.count()
    }

    /// Whether nobody has detached a program. Filters are left out: their removal is announced.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.attached.is_whole()
    }

    /// What is wrong with its devices.
    pub fn wrong(&self) -> impl Iterator<Item = &Wrong> {
        self.attached.wrong()
    }

    /// Attaches programs to devices that have none, and leaves room on routes. The calling thread is in the namespace.
    pub fn look(&mut self, task: &Task<'_>) -> io::Result<Looked> {
        let socket = Socket::open()?;
        let devices = links::devices(&socket)?;
        let looked = self.attached.look(task.programs, &socket, &devices);
        self.route(&socket, devices, task.networks)?;
        Ok(looked)
    }

    /// Detaches the programs, and restores the routes. The calling thread is in the namespace.
    pub fn leave(&mut self) -> io::Result<()> {
        let socket = Socket::open()?;
        let devices = links::devices(&socket)?;
        self.attached.detach(&socket, &devices);
        self.route(&socket, devices, &[])
    }

    fn route(&mut self, socket: &Socket, devices: Vec<Device>, networks: &[Labelled]) -> io::Result<()> {
        let plan = routes::plan(networks, &apply::read(socket, devices.clone())?, &self.memory);
        if plan.is_empty() || self.vain.as_ref() == Some(&plan) {
            return Ok(());
        }
        // Before routes change: a daemon that is killed in between must know what they were.
        self.remember(&plan.memory)?;
        for failure in apply::apply(socket, &plan) {
            warn!("{failure}: packets that are too large for a label are lost on it");
        }
        // Announcements of its own changes must not lead to the same changes again.
        let rest = routes::plan(networks, &apply::read(socket, devices)?, &self.memory);
        self.vain = Some(rest).filter(|rest| !rest.is_empty());
        Ok(())
    }

    fn remember(&mut self, memory: &Memory) -> io::Result<()> {
        if memory.is_empty() {
            let _ = fs::remove_file(&self.file);
        } else {
            let folder = self.file.parent().ok_or(io::ErrorKind::NotFound)?;
            let mut fresh = NamedTempFile::new_in(folder)?;
            fresh.write_all(memory.to_lines().as_bytes())?;
            fresh.persist(&self.file)?;
        }
        self.memory = memory.clone();
        Ok(())
    }
}
