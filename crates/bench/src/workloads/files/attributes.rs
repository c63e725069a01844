//! Reading and changing the attributes of a file.

use std::{fs::File, io};

use nix::{
    fcntl::AT_FDCWD,
    sys::{
        stat::{FchmodatFlags, Mode, UtimensatFlags, fchmodat, fstat, lstat, stat, utimensat},
        time::TimeSpec,
    },
    unistd::{AccessFlags, access, chown, getgid, getuid, truncate},
};

use super::{
    contents::create_with,
    file_of, on_file, on_path,
    pool::{Start, pool},
};
use crate::{
    error::Context,
    place::Place,
    workload::{Prepared, Workload},
};

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_path("stat", "stat a file", |place| {
        let file = file_of(place, 1)?;
        Ok(Box::new(move || Ok(stat(file.as_c_str()).map(drop)?)))
    }),
    on_file("fstat", "fstat an open file", fstat_open),
    on_path("lstat", "lstat a file", |place| {
        let file = file_of(place, 1)?;
        Ok(Box::new(move || Ok(lstat(file.as_c_str()).map(drop)?)))
    }),
    on_path("access", "access: may the file be read?", |place| {
        let file = file_of(place, 1)?;
        Ok(Box::new(move || Ok(access(file.as_c_str(), AccessFlags::R_OK)?)))
    }),
    on_path("chmod", "chmod a file to the mode it has", |place| {
        let file = file_of(place, 1)?;
        let mode = Mode::from_bits_truncate(0o644);
        Ok(Box::new(move || Ok(fchmodat(AT_FDCWD, file.as_c_str(), mode, FchmodatFlags::FollowSymlink)?)))
    }),
    on_path("chown", "chown a file to the owner and group it has", |place| {
        let file = file_of(place, 1)?;
        let (owner, group) = (getuid(), getgid());
        Ok(Box::new(move || Ok(chown(file.as_c_str(), Some(owner), Some(group))?)))
    }),
    on_path("truncate", "truncate a file of 4 KB to nothing", |place| {
        pool(
            place,
            Start::Empty,
            4096,
            |item| Ok(truncate(item.name.as_c_str(), 0)?),
            |item| create_with(&item.name, item.bytes),
        )
    }),
    on_path("utimes", "set a file's times of access and change", |place| {
        let file = file_of(place, 1)?;
        let time = TimeSpec::new(1_600_000_000, 0);
        Ok(Box::new(move || Ok(utimensat(AT_FDCWD, file.as_c_str(), &time, &time, UtimensatFlags::FollowSymlink)?)))
    }),
];

fn fstat_open(place: &Place) -> Prepared {
    file_of(place, 1)?;
    let path = place.dir.join("file");
    let file = File::open(&path).context(format!("open {}", path.display()))?;
    Ok(Box::new(move || io::Result::Ok(fstat(&file).map(drop)?)))
}
