//! Reading, writing and copying.
//!
//! `read-N` and `write-N` move the file's offset, which is reset outside the clock: on the instruction counter each sample is
//! at offset 0. `pread` and `pwrite` have the offset as an argument.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::FileExt,
};

use super::{file_of, on_file};
use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{Operation, Prepared, Workload},
};

const KIB: usize = 1024;

/// Size of the file that is read and written.
const FILE: usize = 64 * KIB;

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_file("read-1", "read 1 byte, the file's offset set back outside the clock", |place| read(place, 1)),
    on_file("read-1k", "read 1 KB, the file's offset set back outside the clock", |place| read(place, KIB)),
    on_file("read-4k", "read 4 KB, the file's offset set back outside the clock", |place| read(place, 4 * KIB)),
    on_file("read-64k", "read 64 KB, the file's offset set back outside the clock", |place| read(place, 64 * KIB)),
    on_file("write-1", "write 1 byte, the file's offset set back outside the clock", |place| write(place, 1)),
    on_file("write-1k", "write 1 KB, the file's offset set back outside the clock", |place| write(place, KIB)),
    on_file("write-4k", "write 4 KB, the file's offset set back outside the clock", |place| write(place, 4 * KIB)),
    on_file("write-64k", "write 64 KB, the file's offset set back outside the clock", |place| write(place, 64 * KIB)),
    on_file("pread-1", "pread 1 byte at the file's beginning", pread_1),
    on_file("pwrite-1", "pwrite 1 byte at the file's beginning", pwrite_1),
    on_file("pread", "pread 1 KB, 1 KB further each time, round and round in 64 KB", pread),
    on_file("copy", "pread 64 KB from one file, pwrite them to another", copy),
];

/// The workload's file, 64 KB long, open for reading and writing.
fn open(place: &Place) -> Result<File, Error> {
    file_of(place, FILE)?;
    let path = place.dir.join("file");
    OpenOptions::new().read(true).write(true).open(&path).context(format!("open {}", path.display()))
}

/// A short read or write is an error, because the sample would contain less work.
fn whole(moved: usize, wanted: usize) -> io::Result<()> {
    if moved == wanted {
        return Ok(());
    }
    Err(io::Error::other(format!("moved {moved} of {wanted} bytes; free some space on the file system")))
}

/// One `read` or `write` of the whole buffer at the file's offset.
struct Transfer {
    file: File,
    buffer: Vec<u8>,
    /// Moves the buffer; returns the number of bytes.
    act: fn(&mut File, &mut [u8]) -> io::Result<usize>,
}

impl Operation for Transfer {
    fn before(&mut self) -> io::Result<()> {
        self.file.rewind()
    }

    /// Runs up to the file's end: no read is short, and no write makes the file longer.
    fn reach(&self) -> u32 {
        (FILE / self.buffer.len()) as u32
    }

    fn run(&mut self) -> io::Result<()> {
        whole((self.act)(&mut self.file, &mut self.buffer)?, self.buffer.len())
    }
}

fn read(place: &Place, bytes: usize) -> Prepared {
    Ok(Box::new(Transfer { file: open(place)?, buffer: vec![1; bytes], act: |file, buffer| file.read(buffer) }))
}

fn write(place: &Place, bytes: usize) -> Prepared {
    Ok(Box::new(Transfer { file: open(place)?, buffer: vec![0x5a; bytes], act: |file, buffer| file.write(buffer) }))
}

fn pread_1(place: &Place) -> Prepared {
    let file = open(place)?;
    Ok(Box::new(move || whole(file.read_at(&mut [0], 0)?, 1)))
}

fn pwrite_1(place: &Place) -> Prepared {
    let file = open(place)?;
    Ok(Box::new(move || whole(file.write_at(&[1], 0)?, 1)))
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
