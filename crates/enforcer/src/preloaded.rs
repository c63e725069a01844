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
    programs::{self, Pins, ProgramsError, is_inquiry, refused},
    shares::Size,
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

    /// Loads those of `hooks` that are not among them, for so many bytes of `tables`; `None`: all are.
    pub fn complete(
        &self,
        pins: &Pins,
        hooks: &[String],
        sizes: &[Size],
        tables: usize,
    ) -> Result<Option<Object>, ProgramsError> {
        let others: Vec<String> = hooks.iter().filter(|hook| !self.0.contains_key(*hook)).cloned().collect();
        if others.is_empty() && !hooks.is_empty() {
            return Ok(None);
        }
        survival::load(pins, &others, sizes, tables).map(Some)
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
    let object = survival::load(pins, &programs::hooks()?, &[], 0)?;
    let path = pins.root().join("programs");
    fs::create_dir_all(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
    let mut pinned = 0;
    for mut program in object.progs_mut().filter(|program| program.autoload() && !is_inquiry(program.section())) {
        let pin = pins.program(&program.name().to_string_lossy());
        program.pin(&pin).map_err(refused(format!("pin a program as {}", pin.display())))?;
        pinned += 1;
    }
    Ok(pinned)
}
