//! Opening and creating.

use std::{
    ffi::CStr,
    io,
    os::fd::{IntoRawFd, OwnedFd},
};

use nix::{
    fcntl::{OFlag, open},
    sys::stat::Mode,
    unistd::unlink,
};

use super::{
    file_of, on_path, path,
    pool::{Start, pool},
};
use crate::{
    place::Place,
    workload::{Prepared, Workload},
};

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_path("open+close", "open a file for reading, close it", open_close),
    on_path("creat", "open a new name with O_CREAT|O_TRUNC, close it", creat),
    on_path("creat+unlink", "open a new name with O_CREAT|O_TRUNC, close it, remove it", creat_unlink),
];

/// `creat`, with the descriptor as result.
pub(super) fn create(name: &CStr) -> io::Result<OwnedFd> {
    Ok(open(name, OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_WRONLY, Mode::from_bits_truncate(0o644))?)
}

/// Closes, and returns an error, which dropping does not.
pub(super) fn close(fd: OwnedFd) -> io::Result<()> {
    Ok(nix::unistd::close(fd.into_raw_fd())?)
}

fn open_close(place: &Place) -> Prepared {
    let file = file_of(place, 1)?;
    Ok(Box::new(move || close(open(file.as_c_str(), OFlag::O_RDONLY, Mode::empty())?)))
}

fn creat(place: &Place) -> Prepared {
    pool(place, Start::Full, 0, |item| close(create(&item.name)?), |item| Ok(unlink(item.name.as_c_str())?))
}

fn creat_unlink(place: &Place) -> Prepared {
    let file = path(place, "file")?;
    Ok(Box::new(move || {
        close(create(&file)?)?;
        Ok(unlink(file.as_c_str())?)
    }))
}
