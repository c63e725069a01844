//! What processes hold and no walk finds: pipes, sockets, memory files, deleted files.

use std::{
    ffi::OsStr,
    fs, io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{OFlag, open},
    sys::stat::Mode,
};

/// Links to files in a process's directory.
const LINKS: [&str; 3] = ["cwd", "root", "exe"];

/// The numbers of all processes.
pub fn all(proc: &Path) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(proc)?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(names.collect())
}

/// The links to what a process holds. A process that is gone holds nothing.
pub fn links(proc: &Path, process: u32) -> Vec<PathBuf> {
    let folder = proc.join(process.to_string());
    let descriptors = fs::read_dir(folder.join("fd")).into_iter().flatten().filter_map(Result::ok);
    let links = LINKS.iter().map(|link| folder.join(link));
    links.chain(descriptors.map(|entry| entry.path())).collect()
}

/// Opens what a link leads to with O_PATH, so that no device is opened and no FIFO is waited for.
pub fn held(link: &Path) -> io::Result<OwnedFd> {
    Ok(open(link, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// Whether a link leads to an object of the kernel's own, on a file system that is never mounted: a pipe, an anonymous
/// inode. Objects on other file systems have a path.
pub fn is_of_kernel(link: &Path) -> bool {
    is_named(link, b"pipe:[") || is_named(link, b"anon_inode:")
}

/// Whether a link leads to a socket.
pub fn is_socket(link: &Path) -> bool {
    is_named(link, b"socket:[")
}

fn is_named(link: &Path, beginning: &[u8]) -> bool {
    fs::read_link(link).is_ok_and(|name| name.as_os_str().as_bytes().starts_with(beginning))
}

/// One process of each mount namespace other than the daemon's.
pub fn namespaces(proc: &Path) -> io::Result<Vec<u32>> {
    let namespace = |name: &OsStr| fs::read_link(proc.join(name).join("ns/mnt"));
    let mut known = vec![namespace(OsStr::from_bytes(b"self"))?];
    let mut found = Vec::new();
    for process in all(proc)? {
        if let Ok(namespace) = namespace(process.to_string().as_ref())
            && !known.contains(&namespace)
        {
            known.push(namespace);
            found.push(process);
        }
    }
    Ok(found)
}

/// Opens a mount namespace.
pub fn namespace(proc: &Path, process: u32) -> io::Result<OwnedFd> {
    Ok(fs::File::open(proc.join(process.to_string()).join("ns/mnt"))?.into())
}
