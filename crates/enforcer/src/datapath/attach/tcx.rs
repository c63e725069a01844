//! Links of programs to devices (tcx, since Linux 6.6).

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use libbpf_rs::{Link, libbpf_sys, query::LinkTypeInfo};

use super::super::programs::{Direction, Loaded};

/// The loopback device of every namespace.
const LOOPBACK: i32 = 1;

fn attach_type(direction: Direction) -> libbpf_sys::bpf_attach_type {
    match direction {
        Direction::Egress => libbpf_sys::BPF_TCX_EGRESS,
        Direction::Ingress => libbpf_sys::BPF_TCX_INGRESS,
    }
}

/// Whether this kernel has such links.
pub(super) fn is_known() -> bool {
    let mut options =
        libbpf_sys::bpf_prog_query_opts { sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as _, ..Default::default() };
    // SAFETY: the options live as long as the call, and name no buffer.
    let answer = unsafe { libbpf_sys::bpf_prog_query_opts(LOOPBACK, attach_type(Direction::Egress), &raw mut options) };
    answer == 0
}

/// Attaches a program and pins its link, unless the pin is that of the link. Returns whether it was attached.
pub(super) fn ensure(pin: &Path, index: u32, direction: Direction, program: &Loaded) -> io::Result<bool> {
    match attached_to(pin) {
        Ok(Some(found)) if found == (index, program.id) => return Ok(false),
        // What it was attached to is gone, or somebody has detached it.
        Ok(_) => remove(pin)?,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(cause),
    }
    let link = create(index, direction, program)?;
    let path = CString::new(pin.as_os_str().as_bytes())?;
    // SAFETY: the descriptor is open, and the path ends with a zero byte.
    checked(unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) })?;
    Ok(true)
}

/// Whether a pinned link has a device.
pub(super) fn is_attached(pin: &Path) -> bool {
    matches!(attached_to(pin), Ok(Some(_)))
}

/// Detaches a program, and removes the pin of its link. Without the first, the kernel detaches it some time later.
pub(super) fn remove(pin: &Path) -> io::Result<()> {
    fs::symlink_metadata(pin)?;
    if let Ok(link) = Link::open(pin) {
        // The device may be gone.
        let _ = link.detach();
    }
    fs::remove_file(pin)
}

/// The device and the program of a pinned link; `None`: it has none any more.
fn attached_to(pin: &Path) -> io::Result<Option<(u32, u32)>> {
    fs::symlink_metadata(pin)?;
    let info = Link::open(pin).and_then(|link| link.info()).map_err(io::Error::other)?;
    Ok(match info.info {
        LinkTypeInfo::Tcx(tcx) if tcx.ifindex != 0 => Some((tcx.ifindex, info.prog_id)),
        _ => None,
    })
}

/// Makes a link before those of others.
fn create(index: u32, direction: Direction, program: &Loaded) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        flags: libbpf_sys::BPF_F_BEFORE,
        ..Default::default()
    };
    let program = program.as_fd().as_raw_fd();
    let target = i32::try_from(index).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open, and the options live as long as the call.
    let link =
        checked(unsafe { libbpf_sys::bpf_link_create(program, target, attach_type(direction), &raw const options) })?;
    // SAFETY: the kernel made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// What libbpf returned: a descriptor or 0, or an error number below 0.
fn checked(returned: i32) -> io::Result<i32> {
    if returned < 0 { Err(io::Error::from_raw_os_error(-returned)) } else { Ok(returned) }
}
