//! Prevents a confined domain from ending enforcement, whatever else the policy allows it. The kernel knows which maps
//! and programs are Tollgate's (`bpf/survival.h`), and their pins are labelled as SELinux labels its own files.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, Program, libbpf_sys};
use nix::sys::stat::{major, minor};
use tollgate_abi::{
    bytes_of,
    enforcer::{
        SECINITSID_SECURITY, TG_GUARDED_LINK as LINK, TG_GUARDED_MAP as MAP, TG_GUARDED_PROGRAM as PROGRAM,
        TG_SID_SURVIVAL, tg_guarded, tg_inode,
    },
};

use crate::programs::{self, Loading, Pins, ProgramsError};

fn pins_error(path: &Path) -> impl FnOnce(io::Error) -> ProgramsError {
    let path = path.to_owned();
    move |cause| ProgramsError::Pins { path, cause }
}

/// Registers a map as Tollgate's.
fn map(pins: &Pins, map: &impl MapCore) -> Result<(), ProgramsError> {
    let id = map.info().map_err(programs::refused("find the identifier of a map"))?.info.id;
    put(pins, MAP, id)
}

/// Loads programs ([`programs::load`]), and registers maps and programs as Tollgate's.
pub fn load(pins: &Pins, hooks: &[String], loading: &Loading) -> Result<Vec<Object>, ProgramsError> {
    let objects = programs::load(pins, hooks, loading)?;
    objects.iter().try_for_each(|object| protect(pins, object))?;
    Ok(objects)
}

/// Registers the maps and programs that were just loaded.
pub(crate) fn protect(pins: &Pins, object: &Object) -> Result<(), ProgramsError> {
    for own in object.maps() {
        map(pins, &own)?;
    }
    forget_programs(pins)?;
    for program in object.progs().filter(Program::autoload) {
        put(pins, PROGRAM, program_id(program.as_fd())?)?;
    }
    Ok(())
}

/// Removes programs that no longer exist. Hooks come and go with policies.
fn forget_programs(pins: &Pins) -> Result<(), ProgramsError> {
    let guarded = programs::map(pins, "guarded")?;
    for key in guarded.keys().collect::<Vec<_>>() {
        let Some((kind, id)) = key.split_first_chunk::<4>() else { continue };
        let (kind, id) = (u32::from_ne_bytes(*kind), u32::from_ne_bytes(id.try_into().unwrap_or_default()));
        if kind == PROGRAM && Program::fd_from_id(id).is_err() {
            // It may have been removed by somebody else already.
            let _ = guarded.delete(&key);
        }
    }
    Ok(())
}

/// Registers the link to a cgroup, which a descriptor of it can detach, as Tollgate's.
pub(crate) fn guard_link(pins: &Pins) -> Result<(), ProgramsError> {
    let path = pins.link(programs::PEERS);
    if !path.exists() {
        return Ok(());
    }
    let link = Link::open(&path).map_err(programs::refused(format!("open the link {}", path.display())))?;
    let info = link.info().map_err(programs::refused("find the identifier of a link"))?;
    put(pins, LINK, info.id)
}

fn put(pins: &Pins, kind: u32, id: u32) -> Result<(), ProgramsError> {
    let key = tg_guarded { kind, id };
    let put = programs::map(pins, "guarded")?.update(bytes_of(&key), &[0; 4], MapFlags::ANY);
    put.map_err(programs::refused("say what maps and programs are guarded"))
}

pub(crate) fn program_id(program: BorrowedFd<'_>) -> Result<u32, ProgramsError> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the descriptor is open, and the kernel writes `length` bytes at most.
    match unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length) } {
        0 => Ok(info.id),
        error => {
            let cause = libbpf_rs::Error::from_raw_os_error(-error);
            Err(programs::refused("find the identifier of a program")(cause))
        }
    }
}

/// Labels the pins like the policy itself. Returns the device number of their file system, as the kernel has it.
pub fn label(pins: &Pins, inodes: &MapHandle) -> Result<u32, ProgramsError> {
    let root = pins.root();
    let mut paths = vec![root.to_owned()];
    while let Some(path) = paths.pop() {
        label_one(inodes, &path)?;
        if path.is_dir() {
            for entry in fs::read_dir(&path).map_err(pins_error(&path))? {
                paths.push(entry.map_err(pins_error(&path))?.path());
            }
        }
    }
    let device = fs::metadata(root).map_err(pins_error(root))?.dev();
    Ok((major(device) as u32) << 20 | minor(device) as u32)
}

fn label_one(inodes: &MapHandle, path: &PathBuf) -> Result<(), ProgramsError> {
    let pin: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
        .open(path)
        .map_err(pins_error(path))?;
    let label = tg_inode { sid: SECINITSID_SECURITY | TG_SID_SURVIVAL, ..Default::default() };
    let put = inodes.update(&pin.as_raw_fd().to_ne_bytes(), bytes_of(&label), MapFlags::ANY);
    put.map_err(programs::refused(format!("label the pin {}", path.display())))
}
