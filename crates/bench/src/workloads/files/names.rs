//! Creating, changing and removing names.

use nix::{
    fcntl::{AT_FDCWD, AtFlags, renameat},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, linkat, mkdir, symlinkat, unlink, unlinkat},
};

use super::{
    contents::create_with,
    done, file_of, on_path, path,
    pool::{Act, Start, pool},
};
use crate::{
    place::Place,
    workload::{Prepared, Workload},
};

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_path("rename", "rename a file within its directory, there and back in turn", rename),
    on_path("link", "make a hard link", link),
    on_path("symlink", "make a symbolic link", |place| pool(place, Start::Full, 0, MAKE_SYMLINK, REMOVE)),
    on_path("readlink", "read a symbolic link", readlink),
    on_path("unlink", "remove an empty file", |place| {
        pool(place, Start::Empty, 0, REMOVE, |item| create_with(&item.name, item.bytes))
    }),
    on_path("link+unlink", "make a hard link, remove it", link_unlink),
    on_path("symlink+unlink", "make a symbolic link, remove it", symlink_unlink),
    on_path("mkdir", "make a directory", |place| pool(place, Start::Full, 0, MAKE_DIRECTORY, REMOVE_DIRECTORY)),
    on_path("rmdir", "remove an empty directory", |place| {
        pool(place, Start::Empty, 0, REMOVE_DIRECTORY, MAKE_DIRECTORY)
    }),
    on_path("mkdir+rmdir", "make a directory, remove it", mkdir_rmdir),
];

const REMOVE: Act = |item| Ok(unlink(item.name.as_c_str())?);

const MAKE_LINK: Act =
    |item| Ok(linkat(AT_FDCWD, item.target.as_c_str(), AT_FDCWD, item.name.as_c_str(), AtFlags::empty())?);

const MAKE_SYMLINK: Act = |item| Ok(symlinkat(item.target.as_c_str(), AT_FDCWD, item.name.as_c_str())?);

const MAKE_DIRECTORY: Act = |item| Ok(mkdir(item.name.as_c_str(), Mode::from_bits_truncate(0o755))?);

const REMOVE_DIRECTORY: Act = |item| Ok(unlinkat(AT_FDCWD, item.name.as_c_str(), UnlinkatFlags::RemoveDir)?);

fn rename(place: &Place) -> Prepared {
    // Names of one length, so that both directions hash as many characters.
    let (mut from, mut to) = (file_of(place, 1)?, path(place, "elif")?);
    Ok(Box::new(move || {
        renameat(AT_FDCWD, from.as_c_str(), AT_FDCWD, to.as_c_str())?;
        std::mem::swap(&mut from, &mut to);
        Ok(())
    }))
}

fn link(place: &Place) -> Prepared {
    file_of(place, 1)?;
    pool(place, Start::Full, 0, MAKE_LINK, REMOVE)
}

fn link_unlink(place: &Place) -> Prepared {
    let (file, name) = (file_of(place, 1)?, path(place, "name")?);
    Ok(Box::new(move || {
        linkat(AT_FDCWD, file.as_c_str(), AT_FDCWD, name.as_c_str(), AtFlags::empty())?;
        Ok(unlink(name.as_c_str())?)
    }))
}

fn symlink_unlink(place: &Place) -> Prepared {
    let (target, name) = (path(place, "file")?, path(place, "name")?);
    Ok(Box::new(move || {
        symlinkat(target.as_c_str(), AT_FDCWD, name.as_c_str())?;
        Ok(unlink(name.as_c_str())?)
    }))
}

fn mkdir_rmdir(place: &Place) -> Prepared {
    let name = path(place, "name")?;
    Ok(Box::new(move || {
        mkdir(name.as_c_str(), Mode::from_bits_truncate(0o755))?;
        Ok(unlinkat(AT_FDCWD, name.as_c_str(), UnlinkatFlags::RemoveDir)?)
    }))
}

fn readlink(place: &Place) -> Prepared {
    let (target, name) = (path(place, "file")?, path(place, "name")?);
    symlinkat(target.as_c_str(), AT_FDCWD, name.as_c_str()).map_err(|e| crate::Error::Io {
        what: format!("make a symbolic link in {}", place.dir.display()),
        cause: e.into(),
    })?;
    let mut buffer = vec![0_u8; libc::PATH_MAX as usize];
    Ok(Box::new(move || {
        // SAFETY: the name ends in a zero byte; the buffer is writable for the length that is passed.
        let length = unsafe { libc::readlink(name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
        done(length as i64)
    }))
}
