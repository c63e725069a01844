//! Creates the objects of a scenario: files with their labels, mounts, processes in their domains.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{PermissionsExt, lchown, symlink},
    path::Path,
};

use nix::{
    mount::{MsFlags, mount},
    sys::stat::{Mode, SFlag, makedev, mknod},
    unistd::mkfifo,
};

use crate::{
    Engine,
    context::whole,
    scenario::{Kind, Object},
};

/// The program that objects of kind program are copies of.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// Creates an object in the current directory, and labels it. The runner creates processes.
pub(crate) fn make(engine: Engine, object: &Object, content: Option<&str>) -> io::Result<()> {
    let path = Path::new(&object.path);
    match object.kind {
        Kind::File => write(path, content.unwrap_or("content"), 0o644)?,
        Kind::Script => write(path, &format!("#!{}\n", content.unwrap_or_default()), 0o755)?,
        Kind::Dir => fs::create_dir(path)?,
        Kind::Link => symlink(content.unwrap_or_default(), path)?,
        Kind::Fifo => mkfifo(path, Mode::from_bits_truncate(0o644))?,
        Kind::Chr => mknod(path, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 3))?,
        Kind::Program => drop(fs::copy(PROGRAM, path)?),
        Kind::Tmpfs => mounted(path, "tmpfs", content)?,
        Kind::Overlay => mounted(path, "overlay", content)?,
        Kind::Process => return Ok(()),
    }
    if let Some(mode) = &object.mode {
        let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    if object.owner.is_some() {
        lchown(path, object.owner, object.owner)?;
    }
    // The label is set last; until then the object has the label that the policy gives it.
    match &object.context {
        Some(context) => engine.relabel(&object.path, &whole(context, "object_r")),
        None => Ok(()),
    }
}

fn write(path: &Path, content: &str, mode: u32) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content.as_bytes())?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Mounts a file system on a new directory; `content` is its options, of which nosuid is a flag.
fn mounted(path: &Path, filesystem: &str, options: Option<&str>) -> io::Result<()> {
    fs::create_dir(path)?;
    let options = options.unwrap_or_default();
    let words: Vec<&str> = options.split(',').filter(|word| !["", "nosuid"].contains(word)).collect();
    let flags = if options.contains("nosuid") { MsFlags::MS_NOSUID } else { MsFlags::empty() };
    Ok(mount(Some("none"), path, Some(filesystem), flags, Some(words.join(",").as_str()))?)
}
