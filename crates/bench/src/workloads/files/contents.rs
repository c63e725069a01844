//! Creating and deleting files of a given size, as LMBench's lat_fs does.

use std::{ffi::CStr, io};

use nix::unistd::{unlink, write};

use super::{
    on_path,
    open::{close, create},
    pool::{Start, pool},
};
use crate::{
    place::Place,
    workload::{Prepared, Workload},
};

const KIB: usize = 1024;

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_path("create-0k", "open a new name, close it", |place| creation(place, 0)),
    on_path("create-1k", "open a new name, write 1 KB, close it", |place| creation(place, KIB)),
    on_path("create-4k", "open a new name, write 4 KB, close it", |place| creation(place, 4 * KIB)),
    on_path("create-10k", "open a new name, write 10 KB, close it", |place| creation(place, 10 * KIB)),
    on_path("delete-0k", "remove an empty file", |place| deletion(place, 0)),
    on_path("delete-1k", "remove a file of 1 KB", |place| deletion(place, KIB)),
    on_path("delete-4k", "remove a file of 4 KB", |place| deletion(place, 4 * KIB)),
    on_path("delete-10k", "remove a file of 10 KB", |place| deletion(place, 10 * KIB)),
];

/// The content of the files; as long as the largest size in the table.
static CONTENTS: [u8; 10 * KIB] = [0x5a; 10 * KIB];

/// Creates a file of this size, with one `write` if it is not empty.
pub(super) fn create_with(name: &CStr, bytes: usize) -> io::Result<()> {
    let file = create(name)?;
    if bytes > 0 && write(&file, &CONTENTS[..bytes])? != bytes {
        return Err(io::Error::other("short write; free some space on the file system"));
    }
    close(file)
}

fn creation(place: &Place, bytes: usize) -> Prepared {
    pool(
        place,
        Start::Full,
        bytes,
        |item| create_with(&item.name, item.bytes),
        |item| Ok(unlink(item.name.as_c_str())?),
    )
}

fn deletion(place: &Place, bytes: usize) -> Prepared {
    pool(
        place,
        Start::Empty,
        bytes,
        |item| Ok(unlink(item.name.as_c_str())?),
        |item| create_with(&item.name, item.bytes),
    )
}
