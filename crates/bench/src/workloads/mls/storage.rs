//! Files on a disk, cold and cached, and copies from memory to it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use nix::{
    sys::memfd::{MFdFlags, memfd_create},
    unistd::sync,
};

use crate::{
    error::Context,
    place::Place,
    workload::{Operation, Prepared},
    workloads::commands::{Repeated, require},
};

const MIB: usize = 1 << 20;
/// The length of the file that is read, or copied 1 MB at a time.
const FILE: usize = 4 * MIB;
/// Bytes that are copied one at a time.
const BYTES: usize = 10_000;
/// Direct reads go to memory at a multiple of the disk's blocks.
const ALIGNMENT: usize = 4096;

const DIRECTORIES: u32 = 50;
const FILES: u32 = 20;

/// Where the kernel is told to forget what it has cached.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

pub(super) fn find(place: &Place) -> Prepared {
    require("find", &["sh", "find"], "the package busybox or findutils")?;
    let tree = place.dir.join("tree");
    for directory in 0..DIRECTORIES {
        let path = tree.join(directory.to_string());
        fs::create_dir_all(&path).context(format!("make {}", path.display()))?;
        for file in 0..FILES {
            let path = path.join(file.to_string());
            File::create(&path).context(format!("create {}", path.display()))?;
        }
    }
    Ok(Box::new(Repeated {
        folder: place.dir.clone(),
        words: &["sh", "-ec", "find tree >/dev/null"],
        clean: |_| forget(),
        given: vec![tree],
    }))
}

/// Writes everything to the disk and forgets it: pages, names and inodes.
fn forget() -> io::Result<()> {
    sync();
    fs::write(DROP_CACHES, "3")
}

pub(super) fn read_direct(place: &Place) -> Prepared {
    read(place, libc::O_DIRECT)
}

pub(super) fn read_cached(place: &Place) -> Prepared {
    read(place, 0)
}

fn read(place: &Place, flags: i32) -> Prepared {
    let path = place.dir.join("file");
    fs::write(&path, vec![0x5a; FILE]).context(format!("write {}", path.display()))?;
    // Nothing that must be written first is left to a direct read.
    sync();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    let mut file = opened.context(format!("open {}", path.display()))?;
    let mut memory = vec![1; MIB + ALIGNMENT];
    let from = memory.as_ptr().align_offset(ALIGNMENT);
    Ok(Box::new(move || {
        file.rewind()?;
        for _ in 0..FILE / MIB {
            file.read_exact(&mut memory[from..from + MIB])?;
        }
        Ok(())
    }))
}

pub(super) fn copy_megabytes(place: &Place) -> Prepared {
    copy(place, FILE, MIB)
}

pub(super) fn copy_bytes(place: &Place) -> Prepared {
    copy(place, BYTES, 1)
}

/// Copies a file in memory as dd does: a read and a write for each block.
struct Copy {
    from: File,
    to: PathBuf,
    block: Vec<u8>,
    blocks: usize,
}

fn copy(place: &Place, length: usize, block: usize) -> Prepared {
    let from = memfd_create("smallfile", MFdFlags::MFD_CLOEXEC).context("make a file in memory")?;
    let mut from = File::from(from);
    from.write_all(&vec![0x5a; length]).context("fill a file in memory")?;
    let to = place.dir.join("copy");
    Ok(Box::new(Copy { from, to, block: vec![1; block], blocks: length / block }))
}

impl Operation for Copy {
    fn before(&mut self) -> io::Result<()> {
        remove(&self.to)?;
        sync();
        self.from.rewind()
    }

    fn reach(&self) -> u32 {
        1
    }

    fn leaves_work(&self) -> bool {
        true
    }

    fn run(&mut self) -> io::Result<()> {
        let mut to = OpenOptions::new().write(true).create_new(true).open(&self.to)?;
        for _ in 0..self.blocks {
            self.from.read_exact(&mut self.block)?;
            to.write_all(&self.block)?;
        }
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed is removed with the place.
        let _ = remove(&self.to);
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Network;

    fn place(folder: &Path) -> Place {
        Place::new(folder.to_owned(), Network::Loopback, folder.to_owned())
    }

    #[test]
    fn copies_the_whole_file_each_time() {
        let folder = tempfile::tempdir().unwrap();
        for (set_up, length) in [(copy_bytes as fn(&Place) -> Prepared, BYTES), (copy_megabytes, FILE)] {
            let mut operation = set_up(&place(folder.path())).unwrap();
            for _ in 0..2 {
                operation.before().unwrap();
                operation.run().unwrap();
                let copied = fs::read(folder.path().join("copy")).unwrap();
                assert!(copied.len() == length && copied.iter().all(|byte| *byte == 0x5a));
            }
        }
    }

    #[test]
    fn reads_the_whole_file_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let mut operation = read_cached(&place).unwrap();
        operation.run().unwrap();
        operation.run().unwrap();
        File::create(folder.path().join("file")).unwrap();
        assert_eq!(operation.run().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
