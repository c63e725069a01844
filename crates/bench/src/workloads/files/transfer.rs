//! Reading, writing and copying.
//!
//! `read-N` and `write-N` are `pread` and `pwrite` at offset 0: the same hooks and the same file system code as `read`
//! and `write`, in one system call that leaves the file's offset alone. `pread` moves through the file.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
};

use super::{file_of, on_file};
use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{Prepared, Workload},
};

const KIB: usize = 1024;

/// Size of the file that is read and written.
const FILE: usize = 64 * KIB;

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_file("read-1", "pread 1 byte at offset 0", |place| read(place, 1)),
    on_file("read-1k", "pread 1 KB at offset 0", |place| read(place, KIB)),
    on_file("read-4k", "pread 4 KB at offset 0", |place| read(place, 4 * KIB)),
    on_file("read-64k", "pread 64 KB at offset 0", |place| read(place, 64 * KIB)),
    on_file("write-1", "pwrite 1 byte at offset 0", |place| write(place, 1)),
    on_file("write-1k", "pwrite 1 KB at offset 0", |place| write(place, KIB)),
    on_file("write-4k", "pwrite 4 KB at offset 0", |place| write(place, 4 * KIB)),
    on_file("write-64k", "pwrite 64 KB at offset 0", |place| write(place, 64 * KIB)),
    on_file("pread", "pread 1 KB, 1 KB further each time, round and round in 64 KB", pread),
    on_file("copy", "pread 64 KB from one file, pwrite them to another", copy),
];

/// The workload's file, 64 KB long, open for reading and writing.
fn open(place: &Place) -> Result<File, Error> {
    file_of(place, FILE)?;
    let path = place.dir.join("file");
    OpenOptions::new().read(true).write(true).open(&path).context(format!("open {}", path.display()))
}

/// A short read or write is an error: the sample would be of less work.
fn whole(moved: usize, wanted: usize) -> io::Result<()> {
    if moved == wanted {
        return Ok(());
    }
    Err(io::Error::other(format!("moved {moved} of {wanted} bytes; free some space on the file system")))
}

fn read(place: &Place, bytes: usize) -> Prepared {
    let file = open(place)?;
    let mut buffer = vec![1; bytes];
    Ok(Box::new(move || whole(file.read_at(&mut buffer, 0)?, bytes)))
}

fn write(place: &Place, bytes: usize) -> Prepared {
    let file = open(place)?;
    let buffer = vec![0x5a; bytes];
    Ok(Box::new(move || whole(file.write_at(&buffer, 0)?, bytes)))
}

fn pread(place: &Place) -> Prepared {
    let file = open(place)?;
    let mut buffer = vec![1; KIB];
    let mut offset = 0;
    Ok(Box::new(move || {
        whole(file.read_at(&mut buffer, offset as u64)?, KIB)?;
        offset = (offset + KIB) % FILE;
        Ok(())
    }))
}

fn copy(place: &Place) -> Prepared {
    let from = open(place)?;
    let path = place.dir.join("copy");
    let to = File::create(&path).context(format!("create {}", path.display()))?;
    let mut buffer = vec![0x5a; FILE];
    // Written once before, so that the first sample allocates no blocks either.
    to.write_at(&buffer, 0).context(format!("write {}", path.display()))?;
    Ok(Box::new(move || {
        whole(from.read_at(&mut buffer, 0)?, FILE)?;
        whole(to.write_at(&buffer, 0)?, FILE)
    }))
}
