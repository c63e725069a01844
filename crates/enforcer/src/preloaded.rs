//! Hooks' programs that were loaded before enforcement starts, pinned and not attached: the verifier has read them.
//!
//! A virtual machine that is saved while it runs can have them, so that a start in it has only to attach programs.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsFd, OwnedFd},
};

use libbpf_rs::{Object, Program};

use crate::{
    programs::{self, Loading, Pins, ProgramsError, is_inquiry, refused},
    survival,
};

/// Programs by the names of their hooks, held by descriptors.
#[derive(Debug, Default)]
pub struct Preloaded(BTreeMap<String, OwnedFd>);

impl Preloaded {
    /// The programs of this build that are pinned, whose pins are removed. So a start that is killed leaves none, and the
    /// next one does not take maps that were written to for new ones.
    pub fn take(pins: &Pins) -> Result<Self, ProgramsError> {
        let path = pins.root().join("programs");
        let error = |cause| ProgramsError::Pins { path: path.clone(), cause };
        let entries = match fs::read_dir(&path) {
            Ok(entries) if pins.build().exists() => entries,
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(error(cause)),
            _ => return Ok(Self::default()),
        };
        let mut programs = BTreeMap::new();
        for entry in entries {
            let entry = entry.map_err(error)?;
            let hook = entry.file_name().to_string_lossy().into_owned();
            let program = Program::fd_from_pinned_path(entry.path());
            programs.insert(hook.clone(), program.map_err(refused(format!("open the program of the hook {hook}")))?);
        }
        fs::remove_dir_all(&path).map_err(error)?;
        Ok(Self(programs))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Loads those of `hooks` that are not among them.
    pub fn complete(&self, pins: &Pins, hooks: &[String], loading: &Loading) -> Result<Vec<Object>, ProgramsError> {
        let others: Vec<String> = hooks.iter().filter(|hook| !self.0.contains_key(*hook)).cloned().collect();
        if others.is_empty() && !hooks.is_empty() {
            return Ok(Vec::new());
        }
        survival::load(pins, &others, loading)
    }

    /// Attaches those of `hooks` and pins their links.
    pub fn attach(&self, pins: &Pins, hooks: &[String]) -> Result<(), ProgramsError> {
        for (hook, program) in self.0.iter().filter(|(hook, _)| hooks.contains(hook)) {
            programs::link(pins, hook, program.as_fd())?;
        }
        Ok(())
    }
}

/// Loads the programs of all hooks, those for most policies, and pins them. The maps are as they are when a start begins.
pub fn preload(pins: &Pins) -> Result<usize, ProgramsError> {
    programs::unpin(pins)?;
    let objects = survival::load(pins, &programs::hooks()?, &Loading::default())?;
    let path = pins.root().join("programs");
    fs::create_dir_all(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
    let mut pinned = 0;
    let all = objects.iter().flat_map(Object::progs_mut);
    for mut program in all.filter(|program| program.autoload() && !is_inquiry(program.section())) {
        let pin = pins.program(&program.name().to_string_lossy());
        program.pin(&pin).map_err(refused(format!("pin a program as {}", pin.display())))?;
        pinned += 1;
    }
    Ok(pinned)
}
