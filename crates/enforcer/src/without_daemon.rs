//! Contexts of processes if no daemon answers: read from the kernel's map, by processes that may read it.

use std::{fs, io, os::fd::BorrowedFd};

use libbpf_rs::MapHandle;
use tollgate_abi::enforcer::TG_SID_MACHINE;

use crate::{
    contexts::Contexts,
    enforcer::{Folder, task_of},
    programs::{self, Pins, ProgramsError},
};

/// Why they cannot be read either.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The map cannot be opened.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The contexts of SIDs cannot be read.
    #[error("cannot read the contexts of SIDs: {0}")]
    Contexts(io::Error),
}

/// The map of processes, and the contexts of SIDs that the last daemon wrote.
#[derive(Debug)]
pub struct Kernel {
    pins: Pins,
    tasks: MapHandle,
    contexts: Contexts,
}

impl Kernel {
    /// Opens both.
    pub fn open(pins: &Pins, folder: &Folder) -> Result<Self, KernelError> {
        let tasks = programs::map(pins, "tasks")?;
        let text = fs::read_to_string(folder.contexts()).map_err(KernelError::Contexts)?;
        Ok(Self { pins: pins.clone(), tasks, contexts: Contexts::from_lines(&text) })
    }

    /// The context of the process of a pidfd; `None`: it has ended, or entered a domain that no daemon has recorded.
    #[must_use]
    pub fn context(&self, process: BorrowedFd<'_>) -> Option<String> {
        let task = task_of(&self.pins, &self.tasks, process).ok()?;
        let sid = task.map_or(TG_SID_MACHINE, |task| task.sid);
        self.contexts.has(sid).then(|| self.contexts.text(sid).to_owned())
    }
}
