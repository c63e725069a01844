//! A system on a disk. Mostly the command is a service of it: the guest's init makes it ready, gives it the machine, and is
//! started again by its service manager. In a bare system the guest's init goes on with the disk as its root.

use std::{
    convert::Infallible,
    ffi::{CStr, CString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    unistd::{chdir, chroot, execv},
};

use super::{ORDER, PROGRAM_ON_DISK};

/// The machine's first disk, with the system's root file system.
const DISK: &str = "/dev/vda";
const ROOT: &str = "/root";
/// The folder of the image with the files that are copied to the disk.
pub(crate) const FILES: &str = "/disk";
const LABEL: &CStr = c"security.selinux";
/// The order and the unit, where the service manager finds them: it takes a /run over that is mounted.
const IN_RUN: &str = "/run/tollgate-agent.json";
const UNITS: &str = "run/systemd/system";
const UNIT: &str = "tollgate-agent.service";
const INIT: &CStr = c"/sbin/init";
/// Folders on which the agent mounts file systems itself.
const MOUNTED_BY_AGENT: [&str; 10] = [
    "/dev/pts",
    "/dev/shm",
    "/dev/mqueue",
    "/tmp",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
    "/sys/fs/bpf",
    "/sys/fs/cgroup",
    "/sys",
    "/proc",
];

/// Becomes the init of the system on the first disk, which starts the agent when it is up.
pub(super) fn enter(context: Option<&str>) -> Result<Infallible, String> {
    start_init(context).map_err(said)
}

/// Makes the first disk the root of this process. Nothing is mounted there but the disk itself.
pub(super) fn become_root() -> Result<(), String> {
    continue_in_disk().map_err(said)
}

fn said((what, cause): Failure) -> String {
    format!("{what}: {cause}")
}

type Failure = (String, io::Error);

fn start_init(context: Option<&str>) -> Result<Infallible, Failure> {
    let root = mount_disk(true)?;
    for folder in ["/dev", "/run"] {
        let to = format!("{ROOT}{folder}");
        fs::create_dir_all(&to).map_err(why(format!("make {folder} on {DISK}")))?;
        mount(Some(folder), to.as_str(), None::<&str>, MsFlags::MS_MOVE, None::<&str>)
            .map_err(why(format!("move {folder}")))?;
    }
    fs::copy(ORDER, root.join(IN_RUN.trim_start_matches('/'))).map_err(why(format!("write {IN_RUN}")))?;
    place_unit(root, context).map_err(why(format!("write {UNIT}")))?;
    move_to_root(root)?;
    execv(INIT, &[INIT]).map_err(why(format!("execute {}", INIT.to_string_lossy())))
}

fn continue_in_disk() -> Result<(), Failure> {
    let root = mount_disk(false)?;
    for folder in ["/run", "/dev"] {
        umount2(folder, MntFlags::MNT_DETACH).map_err(why(format!("unmount {folder}")))?;
    }
    move_to_root(root)
}

/// Mounts the disk, puts the agent and the image's files on it, and unmounts what hides its folders. If `replaces` is false,
/// files that the disk has already stay.
fn mount_disk(replaces: bool) -> Result<&'static Path, Failure> {
    super::wait_for_device(Path::new(DISK));
    mount(Some(DISK), ROOT, Some("ext4"), MsFlags::empty(), None::<&str>).map_err(why(format!("mount {DISK}")))?;
    let root = Path::new(ROOT);
    let agent = root.join(PROGRAM_ON_DISK.trim_start_matches('/'));
    place(Path::new(super::PROGRAM), &agent).map_err(why(format!("write {PROGRAM_ON_DISK} on {DISK}")))?;
    if Path::new(FILES).is_dir() {
        place_files(Path::new(FILES), root, replaces).map_err(why(format!("write files on {DISK}")))?;
    }
    for folder in MOUNTED_BY_AGENT {
        // Not every kernel has all of them.
        let _ = umount2(folder, MntFlags::MNT_DETACH);
    }
    Ok(root)
}

fn move_to_root(disk: &Path) -> Result<(), Failure> {
    chdir(disk).map_err(why(format!("change to {ROOT}")))?;
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>).map_err(why("move the root".into()))?;
    chroot(".").map_err(why("change the root".into()))
}

fn why<E: Into<io::Error>>(what: String) -> impl FnOnce(E) -> Failure {
    |cause| (what, cause.into())
}

/// Copies the files that the image has for the disk.
fn place_files(from: &Path, root: &Path, replaces: bool) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = root.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            place_files(&entry.path(), &to, replaces)?;
        } else if replaces || to.symlink_metadata().is_err() {
            place(&entry.path(), &to)?;
        }
    }
    Ok(())
}

/// Copies a file and gives it its folder's label, as SELinux does by default.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder)?;
    fs::copy(from, to)?;
    let path = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    let (folder, to) = (path(folder), path(to));
    let mut label = [0_u8; 4096];
    // SAFETY: the paths end in NUL, and the kernel writes at most as many bytes as the buffer holds.
    let length = unsafe { libc::getxattr(folder.as_ptr(), LABEL.as_ptr(), label.as_mut_ptr().cast(), label.len()) };
    let Ok(length) = usize::try_from(length) else {
        // A disk without labels.
        return Ok(());
    };
    // SAFETY: as above; it reads what has been written.
    match unsafe { libc::setxattr(to.as_ptr(), LABEL.as_ptr(), label.as_ptr().cast(), length, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn place_unit(root: &Path, context: Option<&str>) -> io::Result<()> {
    let folder = root.join(UNITS);
    let wants = folder.join("multi-user.target.wants");
    fs::create_dir_all(&wants)?;
    fs::write(folder.join(UNIT), unit(context))?;
    std::os::unix::fs::symlink(format!("../{UNIT}"), wants.join(UNIT))
}

/// The unit of the service, which starts after all others.
fn unit(context: Option<&str>) -> String {
    let context = context.map(|context| format!("SELinuxContext=-{context}\n")).unwrap_or_default();
    format!(
        "[Unit]\nDescription=The command that the host has ordered\nDefaultDependencies=no\nAfter=multi-user.target\n\n\
         [Service]\nExecStart={PROGRAM_ON_DISK} vm agent {IN_RUN}\n{context}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_service_in_the_context_that_is_named() {
        assert!(unit(None).ends_with("/usr/local/bin/tollgate-agent vm agent /run/tollgate-agent.json\n"));
        assert!(unit(Some("u:r:t:s0")).ends_with("\nSELinuxContext=-u:r:t:s0\n"));
    }
}
