//! Debian systems on disk images, which guests boot. They are made without mounting, and kept in the cache.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};
use tollgate_host::{Cache, Context as _, Error, Packages, process};

use crate::image::{hex, on_path};

/// What each system has: an init, and what the agent and an administrator need.
const BASE: [&str; 12] = [
    "dbus",
    "e2fsprogs",
    "init",
    "iproute2",
    "kmod",
    "libpam-systemd",
    "login",
    "netbase",
    "passwd",
    "procps",
    "udev",
    "util-linux",
];
/// The drivers that a disk with a system needs. One that is built in has no file. systemd needs autofs4.
pub const DRIVERS: [&str; 4] = ["virtio_pci", "virtio_blk", "ext4", "autofs4"];
/// Run in each system once its packages are installed.
const SCRIPT: &str = "\
echo tollgate >/etc/hostname
echo '127.0.0.1 localhost tollgate' >/etc/hosts
echo '/dev/vda / ext4 defaults 0 1' >/etc/fstab
: >/etc/machine-id
";
/// Change this number whenever equal recipes make other images.
const VERSION: u32 = 1;
const IMAGE: &str = "image";
const PACKAGES: &str = "packages";
const LABELS: &str = "file_contexts";
/// dpkg's record of what is installed.
const STATUS: &str = "var/lib/dpkg/status";

/// What a system is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The release's name, such as `bookworm`.
    pub release: String,
    /// Packages beside those that each system has. What they depend on comes by itself.
    pub packages: Vec<String>,
    /// A shell script that is run in the system as root when all packages are installed; no service runs then.
    pub script: String,
    /// The text of a `file_contexts`: files get SELinux's labels by it. The package policycoreutils must be among the others.
    pub labels: Option<String>,
    /// The image's size, in MiB. Empty space takes no room on the disk.
    pub size: u32,
}

/// A system in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    folder: PathBuf,
}

impl System {
    /// The system of a recipe, from the cache or made. Only root can make one, because its files have owners.
    ///
    /// # Errors
    ///
    /// If packages cannot be fetched or installed, or `mke2fs` fails.
    pub fn find(cache: &Cache, recipe: &Recipe) -> Result<Self, Error> {
        let name = format!("systems/{}-{}", recipe.release, recipe.digest());
        Ok(Self { folder: cache.folder(&name, |fresh| make(cache, recipe, fresh))? })
    }

    /// The image: raw, ext4. It serves many guests; one that keeps its changes needs a copy.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.folder.join(IMAGE)
    }

    /// A file with a line of each installed package: its name and version.
    #[must_use]
    pub fn packages(&self) -> PathBuf {
        self.folder.join(PACKAGES)
    }
}

impl Recipe {
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = BASE.into_iter().chain(self.packages.iter().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Equal recipes have equal ones, whatever the order of their packages.
    fn digest(&self) -> String {
        let mut text = format!("{VERSION}\n{}\n{}\n{SCRIPT}\n{}", self.size, self.names().join(" "), self.script);
        text.extend(self.labels.as_deref());
        hex(&Sha256::digest(text))[..16].to_owned()
    }
}

fn make(cache: &Cache, recipe: &Recipe, fresh: &Path) -> Result<(), Error> {
    let root = fresh.join("root");
    let script = format!("{SCRIPT}{}", recipe.script);
    Packages::new(cache).install(&recipe.release, &recipe.names(), &script, &root)?;
    let status = fs::read_to_string(root.join(STATUS)).context(format!("read {STATUS} of the new system"))?;
    let list = fresh.join(PACKAGES);
    fs::write(&list, installed(&status)).context(format!("write {}", list.display()))?;
    if let Some(labels) = &recipe.labels {
        label(cache, &root, labels, &fresh.join(LABELS))?;
    }
    let mut mke2fs = Command::new(on_path("mke2fs").unwrap_or_else(|| "mke2fs".into()));
    mke2fs.args(["-q", "-t", "ext4", "-E", "root_owner=0:0,lazy_itable_init=0", "-d"]).arg(&root);
    mke2fs.arg(fresh.join(IMAGE)).arg(format!("{}M", recipe.size));
    finish(cache, &mut mke2fs, "make the image's file system with mke2fs")?;
    fs::remove_dir_all(&root).context(format!("remove {}", root.display()))
}

/// Labels the files with the system's own setfiles, which runs here with its own libraries.
fn label(cache: &Cache, root: &Path, labels: &str, file: &Path) -> Result<(), Error> {
    fs::write(file, labels).context(format!("write {}", file.display()))?;
    let mut setfiles = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
    setfiles.arg("--library-path").arg(root.join("usr/lib/x86_64-linux-gnu")).arg(root.join("usr/sbin/setfiles"));
    finish(cache, setfiles.args(["-F", "-r"]).arg(root).arg(file).arg(root), "label the system's files with setfiles")
}

fn finish(cache: &Cache, command: &mut Command, what: &str) -> Result<(), Error> {
    let output = process::output(command, cache.limits())?;
    if output.status.success() {
        return Ok(());
    }
    Err(std::io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())).context(what)
}

/// `NAME VERSION` of each package in dpkg's status file.
fn installed(status: &str) -> String {
    let mut lines = String::new();
    for stanza in status.split("\n\n") {
        let field = |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if let (Some(name), Some(version)) = (field("Package:"), field("Version:")) {
            let _ = writeln!(lines, "{name} {version}");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(packages: &[&str]) -> Recipe {
        let packages = packages.iter().map(|name| (*name).to_owned()).collect();
        Recipe { release: "bookworm".into(), packages, script: String::new(), labels: None, size: 1024 }
    }

    #[test]
    fn makes_one_image_of_equal_recipes() {
        let digest = recipe(&["rsync", "sudo"]).digest();
        assert_eq!(recipe(&["sudo", "rsync", "udev"]).digest(), digest);
        assert_ne!(recipe(&["sudo"]).digest(), digest);
        assert_ne!(Recipe { script: "true\n".into(), ..recipe(&["rsync", "sudo"]) }.digest(), digest);
        let labels = Some("/.* u:r:t\n".to_owned());
        assert_ne!(Recipe { labels, ..recipe(&["rsync", "sudo"]) }.digest(), digest);
    }

    #[test]
    fn lists_what_dpkg_has_installed() {
        let status = "Package: a\nStatus: install ok installed\nVersion: 1.0-1\nDescription: one\n Version: no\n\nPackage: b\nVersion: 2\n";
        assert_eq!(installed(status), "a 1.0-1\nb 2\n");
    }
}
