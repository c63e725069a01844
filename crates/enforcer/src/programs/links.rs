//! Links of programs to hooks, and their pins: enforcement is on while there are some.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
};

use libbpf_rs::{Link, Object, libbpf_sys};

use super::{Pins, ProgramsError, cgroup, checked, is_inquiry, refused};

/// Attaches the loaded programs and pins their links.
pub fn attach(pins: &Pins, object: &Object) -> Result<(), ProgramsError> {
    for program in object.progs_mut().filter(|program| program.autoload() && !is_inquiry(program.section())) {
        link(pins, &program.name().to_string_lossy(), program.as_fd())?;
    }
    Ok(())
}

/// Attaches a hook's program and pins its link.
pub(crate) fn link(pins: &Pins, hook: &str, program: BorrowedFd<'_>) -> Result<(), ProgramsError> {
    let link = if hook == cgroup::HOOK { cgroup::attach(program) } else { attach_to_hook(program).map(Some) };
    let Some(link) = link.map_err(refused(format!("attach to the hook {hook}")))? else { return Ok(()) };
    pin(link.as_fd(), &pins.link(hook)).map_err(refused(format!("pin the program of the hook {hook}")))
}

/// The link of a program to the hook that it was loaded for (bpf_raw_tp_link_attach in kernel/bpf/syscall.c).
fn attach_to_hook(program: BorrowedFd<'_>) -> libbpf_rs::Result<OwnedFd> {
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

/// Whether an earlier daemon has started enforcement. Maps alone are left of a start that was killed.
#[must_use]
pub fn pinned(pins: &Pins) -> bool {
    attached(pins).is_ok_and(|hooks| !hooks.is_empty())
}

/// Refuses enforcement that another build of the programs has started.
pub(crate) fn of_this_build(pins: &Pins) -> Result<(), ProgramsError> {
    if pinned(pins) && !pins.build().exists() { Err(ProgramsError::AnotherVersion) } else { Ok(()) }
}

/// Whether the pins are left of a start of another build that was killed.
pub(crate) fn left_by_another_build(pins: &Pins) -> bool {
    !pinned(pins) && pins.0.join("build").exists() && !pins.build().exists()
}

/// Whether a hook's program is attached.
pub fn is_attached(pins: &Pins, hook: &str) -> bool {
    pins.link(hook).symlink_metadata().is_ok()
}

/// The hooks whose programs are attached, sorted.
pub fn attached(pins: &Pins) -> Result<Vec<String>, ProgramsError> {
    let path = pins.0.join("links");
    let error = |cause| ProgramsError::Pins { path: path.clone(), cause };
    let links = fs::read_dir(&path).map_err(error)?;
    let names = links.map(|link| link.map(|link| link.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_, _>>().map_err(error)?;
    names.sort_unstable();
    Ok(names)
}

/// A link, which is closed once its pin is gone. If a pin was all that held it, the kernel detaches the program later
/// (bpf_link_put, since 6.5), and cannot attach it again until then (bpf_trampoline_link_prog). If the last descriptor
/// is closed, it detaches it at once.
fn hold(pins: &Pins, hook: &str) -> Option<Link> {
    Link::open(pins.link(hook)).ok()
}

/// Detaches a hook's program. From then on it does not run.
pub fn detach(pins: &Pins, hook: &str) -> Result<(), ProgramsError> {
    let (path, link) = (pins.link(hook), hold(pins, hook));
    fs::remove_file(&path).map_err(|cause| ProgramsError::Pins { path, cause })?;
    drop(link);
    Ok(())
}

/// Removes all pins, and with them programs and maps that nobody has open. No program runs any more afterwards: the
/// kernel waits for those that run, for a grace period per hook, one after another (ftrace_shutdown).
pub fn unpin(pins: &Pins) -> Result<(), ProgramsError> {
    let links: Vec<Link> = attached(pins).unwrap_or_default().iter().filter_map(|hook| hold(pins, hook)).collect();
    for path in [pins.0.join("links"), pins.0.clone()] {
        match fs::remove_dir_all(&path) {
            // A directory of a descriptor has no name that could be removed.
            Err(cause) if !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                return Err(ProgramsError::Pins { path, cause });
            }
            _ => {}
        }
    }
    drop(links);
    Ok(())
}
