//! A Debian system in a directory, installed by mmdebstrap from the mirrors of the private apt.

use std::{fs, path::Path, process::Command, time::Duration};

use nix::unistd::geteuid;

use super::{Packages, last_lines};
use crate::{
    Context, Error,
    process::{self, Limits},
};

/// mmdebstrap is a script. It is run from where it was unpacked.
const INSTALLER: &str = "mmdebstrap";
/// How long the installation may take: maintainer scripts are many, and wait for the disk.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// The disk space for a system with some services and its image, in MiB.
const SYSTEM_SIZE: u64 = 2048;

impl Packages<'_> {
    /// Installs a system of a release with these packages in a new directory. At the end `script` is run in the system
    /// by its shell. This needs root, because files have owners.
    pub fn install(&self, release: &str, names: &[&str], script: &str, into: &Path) -> Result<(), Error> {
        if !geteuid().is_root() {
            return Err(Error::Apt {
                program: INSTALLER.into(),
                detail: "only root can install a system, because its files have owners: run it with sudo".into(),
            });
        }
        self.update(false)?;
        self.cache.needs_room(SYSTEM_SIZE)?;
        let tools = tempfile::tempdir_in(self.cache.root()).context("make a folder for mmdebstrap in the cache")?;
        self.unpack(&[&format!("{INSTALLER}/{release}")], tools.path())?;
        let write = |name: &str, text: &str| {
            let path = tools.path().join(name);
            fs::write(&path, text).context(format!("write {}", path.display())).map(|()| path.display().to_string())
        };
        let read = |name: &str| fs::read_to_string(self.home().join(name)).context(format!("read {name}"));
        let sources = write("sources.list", &of_release(&read("etc/sources.list")?, release))?;
        let network = write("network", &super::network_settings(&read("apt.conf")?))?;
        let script = write("script", script)?;
        let mut command = Command::new("perl");
        command.arg(tools.path().join("usr/bin").join(INSTALLER));
        command.args(["--quiet", "--mode=root", "--variant=minbase", "--format=directory"]);
        command.arg(format!("--include={}", names.join(",")));
        // mmdebstrap would write this machine's network settings there.
        command.arg(format!("--aptopt={network}")).arg("--customize-hook=rm -f \"$1\"/etc/apt/apt.conf.d/99mmdebstrap");
        command.arg(format!(
            "--customize-hook=cp {script} \"$1\"/script && chroot \"$1\" sh -e /script && rm \"$1\"/script"
        ));
        command.arg(release).arg(into).arg(sources).env("LC_ALL", "C").env_remove("APT_CONFIG");
        let limits = Limits { timeout: TIMEOUT, ..self.cache.limits() };
        let output = process::output(&mut command, limits)?;
        if output.status.success() {
            return Ok(());
        }
        Err(match super::missing(&String::from_utf8_lossy(&output.stderr)) {
            Some(name) => Error::NoPackage { name: name.into(), suites: release.into() },
            None => Error::Apt { program: INSTALLER.into(), detail: last_lines(&output.stderr, 6) },
        })
    }
}

/// The sources of one release, with its security updates.
fn of_release(sources: &str, release: &str) -> String {
    let security = format!("{release}-security");
    let wanted = |line: &&str| line.split_whitespace().any(|word| word == release || word == security);
    sources.lines().filter(wanted).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_sources_of_one_release_and_its_security_updates() {
        let sources = "deb [signed-by=/k] http://m/debian bookworm main\n\
                       deb [signed-by=/k] http://m/debian bookworm-backports main\n\
                       deb [signed-by=/k] http://s/debian-security bookworm-security main\n\
                       deb [signed-by=/k] http://m/debian trixie main\n";
        let taken = of_release(sources, "bookworm");
        let suites: Vec<&str> = taken.lines().map(|line| line.split(' ').nth(3).unwrap()).collect();
        assert_eq!(suites, ["bookworm", "bookworm-security"]);
    }
}
