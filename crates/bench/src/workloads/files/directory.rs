//! Reading a directory, and locking a file.

use std::{
    fs::File,
    io::{self, Seek},
    os::fd::AsRawFd,
};

use nix::fcntl::{FcntlArg, fcntl};

use super::{done, file_of, on_file};
use crate::{
    error::Context,
    place::Place,
    workload::{Prepared, Workload},
};

/// Entries of the directory that is read.
const ENTRIES: usize = 32;

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_file("getdents", "rewind a directory of 32 files and read it to its end (lseek, 2 getdents64)", getdents),
    on_file("fcntl-lock", "take a record lock on a whole file and give it back", lock),
];

fn getdents(place: &Place) -> Prepared {
    for number in 0..ENTRIES {
        let path = place.dir.join(format!("f{number:02}"));
        File::create(&path).context(format!("create {}", path.display()))?;
    }
    let mut directory = File::open(&place.dir).context(format!("open {}", place.dir.display()))?;
    let mut buffer = vec![0_u8; 1 << 15];
    Ok(Box::new(move || {
        directory.rewind()?;
        loop {
            // SAFETY: the buffer is writable for the length that is passed; the kernel checks the descriptor.
            let read = unsafe {
                libc::syscall(libc::SYS_getdents64, directory.as_raw_fd(), buffer.as_mut_ptr(), buffer.len())
            };
            done(read)?;
            if read == 0 {
                return io::Result::Ok(());
            }
        }
    }))
}

fn lock(place: &Place) -> Prepared {
    file_of(place, 1)?;
    let path = place.dir.join("file");
    let file = File::options().write(true).open(&path).context(format!("open {}", path.display()))?;
    let whole_file = |kind: i32| libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let (take, give) = (whole_file(libc::F_WRLCK), whole_file(libc::F_UNLCK));
    Ok(Box::new(move || {
        fcntl(&file, FcntlArg::F_SETLK(&take))?;
        fcntl(&file, FcntlArg::F_SETLK(&give))?;
        io::Result::Ok(())
    }))
}
