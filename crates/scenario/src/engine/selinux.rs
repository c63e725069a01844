//! The kernel's SELinux: selinuxfs, /proc/self/attr, security.selinux.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use nix::mount::{MsFlags, mount};

use crate::kernel::{
    Argument::{Number, Room, Text},
    call, set_attribute, text,
};

const SELINUXFS: &str = "/sys/fs/selinux";
const ATTRIBUTE: &str = "security.selinux";

/// Loads a binary policy, in one write as the kernel requires.
pub(super) fn load(policy: &Path) -> io::Result<()> {
    mount(Some("none"), SELINUXFS, Some("selinuxfs"), MsFlags::empty(), None::<&str>)?;
    let policy = fs::read(policy)?;
    put(&format!("{SELINUXFS}/load"), &policy)
}

pub(super) fn enforce(enforcing: bool) -> io::Result<()> {
    put(&format!("{SELINUXFS}/enforce"), if enforcing { b"1" } else { b"0" })
}

pub(super) fn relabel(path: &str, context: &str) -> io::Result<()> {
    set_attribute(path, ATTRIBUTE, context.as_bytes())
}

pub(super) fn label(path: &str) -> io::Result<String> {
    let mut room = [0; 4096];
    let (path, name) = (text(path), text(ATTRIBUTE));
    let length = call(libc::SYS_lgetxattr, &mut [Text(&path), Text(&name), Room(&mut room), Number(4096)])?;
    Ok(readable(&room[..usize::try_from(length).unwrap_or(0)]))
}

pub(super) fn current() -> io::Result<String> {
    fs::read("/proc/self/attr/current").map(|context| readable(&context))
}

/// Writes one of the caller's attributes.
pub(super) fn set(attribute: &str, context: &str) -> io::Result<()> {
    put(&format!("/proc/self/attr/{attribute}"), context.as_bytes())
}

fn put(path: &str, bytes: &[u8]) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path)?.write(bytes)? {
        written if written == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

fn readable(context: &[u8]) -> String {
    String::from_utf8_lossy(context).trim_end_matches(['\0', '\n']).to_owned()
}
