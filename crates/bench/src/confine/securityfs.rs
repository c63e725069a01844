//! securityfs: the active modules, and their files.

use std::{fs, io, path::Path};

use nix::mount::{MsFlags, mount};

use crate::{Error, error::Context};

/// The mount point of securityfs.
pub(super) const ROOT: &str = "/sys/kernel/security";

/// The active modules in the kernel's order, such as `lockdown,capability,selinux`; empty if securityfs cannot be read.
pub(crate) fn active_modules() -> String {
    read_active().unwrap_or_default()
}

fn read_active() -> Result<String, Error> {
    let list = Path::new(ROOT).join("lsm");
    if !list.exists() {
        mount_at(ROOT, "securityfs")?;
    }
    fs::read_to_string(&list).context(format!("read {}", list.display()))
}

/// Mounts a file system of the kernel on the directory that sysfs has for it.
pub(super) fn mount_at(directory: &str, kind: &str) -> Result<(), Error> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some(kind), directory, Some(kind), flags, None::<&str>)
        .context(format!("mount {kind} on {directory} (root is needed)"))
}

/// Refuses to continue if a module is not active.
pub(super) fn require(module: &str) -> Result<(), Error> {
    demand(module, &read_active()?)
}

fn demand(module: &str, active: &str) -> Result<(), Error> {
    if active.split(',').any(|name| name == module) {
        return Ok(());
    }
    let built = match module {
        "bpf" => "Linux 5.7 or newer with CONFIG_BPF_LSM",
        _ => "a kernel built with it",
    };
    Err(Error::Unavailable(format!(
        "{module} is not active on this kernel (active: {active}); boot with {module} in lsm=, on {built}"
    )))
}

/// Writes to a file of the kernel in one call, as policy interfaces require.
pub(super) fn write(path: &str, bytes: &[u8]) -> Result<(), Error> {
    use io::Write;
    let mut file = fs::OpenOptions::new().write(true).open(path).context(format!("open {path}"))?;
    let written = file.write(bytes).context(format!("write {} bytes to {path}", bytes.len()))?;
    if written == bytes.len() {
        return Ok(());
    }
    Err(Error::Unavailable(format!("{path} took only {written} of {} bytes", bytes.len())))
}

/// Reads a file of the kernel, without the line break at its end.
pub(super) fn read(path: &str) -> Result<String, Error> {
    let text = fs::read_to_string(path).context(format!("read {path}"))?;
    Ok(text.trim_end_matches(['\n', '\0']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_an_active_module() {
        assert!(demand("yama", "lockdown,capability,yama").is_ok());
    }

    #[test]
    fn reports_a_module_that_is_not_active_with_the_remedy() {
        let error = demand("bpf", "lockdown,capability,bpfx").unwrap_err().to_string();
        assert!(error.contains("bpf is not active"), "{error}");
        assert!(error.contains("boot with bpf in lsm="), "{error}");
    }
}
