//! Hooks' programs that were loaded before enforcement starts, pinned and not attached: the verifier has read them.
//!
//! A virtual machine that is saved while it runs can have them, so that a start in it has only to attach programs.

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
};

use libbpf_rs::{Object, Program, libbpf_sys};

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

    /// Loads those of `hooks` that are not among them; `None`: all are.
    pub fn complete(&self, pins: &Pins, hooks: &[String], sizes: &[Size]) -> Result<Option<Object>, ProgramsError> {
        let others: Vec<String> = hooks.iter().filter(|hook| !self.0.contains_key(*hook)).cloned().collect();
        if others.is_empty() && !hooks.is_empty() {
            return Ok(None);
        }
        survival::load(pins, &others, sizes).map(Some)
    }

    /// Attaches those of `hooks` and pins their links.
    pub fn attach(&self, pins: &Pins, hooks: &[String]) -> Result<(), ProgramsError> {
        for (hook, program) in self.0.iter().filter(|(hook, _)| hooks.contains(hook)) {
            let link = attach(program.as_fd()).map_err(refused(format!("attach to the hook {hook}")))?;
            pin(link.as_fd(), &pins.link(hook)).map_err(refused(format!("pin the program of the hook {hook}")))?;
        }
        Ok(())
    }
}

/// Loads the programs of all hooks, and pins them. The maps are as they are when a start begins.
pub fn preload(pins: &Pins) -> Result<usize, ProgramsError> {
    programs::unpin(pins)?;
    let object = survival::load(pins, &programs::hooks()?, &[])?;
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

/// The link of a program to the hook that it was loaded for (bpf_raw_tp_link_attach in kernel/bpf/syscall.c).
fn attach(program: BorrowedFd<'_>) -> libbpf_rs::Result<OwnedFd> {
    // SAFETY: the descriptor is open; programs of hooks have no name of a tracepoint.
    let link = checked(unsafe { libbpf_sys::bpf_raw_tracepoint_open(ptr::null(), program.as_raw_fd()) })?;
    // SAFETY: the kernel made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

fn pin(link: BorrowedFd<'_>, path: &Path) -> libbpf_rs::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)?;
    // SAFETY: the descriptor is open, and the path ends with a zero byte.
    checked(unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) }).map(drop)
}

/// What libbpf returned: a descriptor or 0, or an error number below 0.
fn checked(returned: i32) -> libbpf_rs::Result<i32> {
    if returned < 0 { Err(libbpf_rs::Error::from_raw_os_error(-returned)) } else { Ok(returned) }
}
