//! Extended attributes.
//!
//! The name is in `trusted.`, for which every file system here has a handler on every kernel; tmpfs has `user.` only since
//! 6.6. It needs root (CAP_SYS_ADMIN), so the hook `capable` is part of the figure.

use std::{
    ffi::{CStr, CString},
    io,
};

use super::{done, file_of, on_path};
use crate::{Error, place::Place, workload::Workload};

const NAME: &CStr = c"trusted.tollgate";

const VALUE: &[u8; 16] = b"a label of 16 by";

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_path("setxattr", "set a trusted.* attribute of 16 bytes to the value it has", |place| {
        let file = with_attribute(place)?;
        Ok(Box::new(move || set(&file)))
    }),
    on_path("getxattr", "get a trusted.* attribute of 16 bytes", |place| {
        let file = with_attribute(place)?;
        Ok(Box::new(move || get(&file)))
    }),
];

fn with_attribute(place: &Place) -> Result<CString, Error> {
    let file = file_of(place, 1)?;
    set(&file).map_err(|e| {
        Error::Unavailable(format!(
            "cannot set {NAME:?} in {}: {e}; run it as root, on :tmpfs or :ext4",
            place.dir.display()
        ))
    })?;
    Ok(file)
}

fn set(file: &CStr) -> io::Result<()> {
    // SAFETY: both strings end in a zero byte; the value is readable for the length that is passed.
    done(unsafe { libc::setxattr(file.as_ptr(), NAME.as_ptr(), VALUE.as_ptr().cast(), VALUE.len(), 0) })
}

fn get(file: &CStr) -> io::Result<()> {
    let mut value = [0_u8; VALUE.len()];
    // SAFETY: both strings end in a zero byte; the buffer is writable for the length that is passed.
    let length = unsafe { libc::getxattr(file.as_ptr(), NAME.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    done(length as i64)
}
