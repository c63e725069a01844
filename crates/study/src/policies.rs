//! What the modules under test load, built from Debian's packages and kept in the cache.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tollgate_policy::debian::{self, DebianError, Flavour, Modules, SUITE};
use tollgate_vm::{Cache, Package, Packages};

/// Where the cache records the packages that each of these was built from.
pub const RECORDS: [&str; 2] = ["policies/1/default-bookworm-shipped/packages.json", "apparmor/bookworm/packages.json"];

/// Why a policy could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A package could not be had, or the cache could not be written.
    #[error(transparent)]
    Packages(#[from] tollgate_vm::Error),
    /// Debian's SELinux policy could not be built.
    #[error(transparent)]
    Debian(#[from] DebianError),
    /// A file could not be read or written.
    #[error("{what}: {cause}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: std::io::Error,
    },
}

/// A program that is unpacked, not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The program.
    pub program: PathBuf,
    /// Folders that hold its libraries.
    pub libraries: Vec<PathBuf>,
}

/// Debian's SELinux policy with every module that its package ships, as one binary policy.
pub fn selinux(cache: &Cache) -> Result<PathBuf, PolicyError> {
    Ok(debian::build(cache, Flavour::Default, Modules::Shipped)?.join(debian::IMAGE))
}

/// Debian's AppArmor parser.
pub fn apparmor_parser(cache: &Cache) -> Result<Unpacked, PolicyError> {
    let folder = cache.folder(&format!("apparmor/{SUITE}"), |fresh| -> Result<(), PolicyError> {
        let fetched = Packages::new(cache).unpack(&[&format!("apparmor/{SUITE}")], fresh)?;
        write_record(fresh, &fetched)
    })?;
    let program = ["usr/sbin/apparmor_parser", "sbin/apparmor_parser"].map(|path| folder.join(path));
    let program = program.into_iter().find(|path| path.exists()).unwrap_or_else(|| folder.join("sbin"));
    Ok(Unpacked { program, libraries: library_folders(&folder) })
}

fn library_folders(root: &Path) -> Vec<PathBuf> {
    ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|folder| root.join(folder)).to_vec()
}

fn write_record(folder: &Path, packages: &[Package]) -> Result<(), PolicyError> {
    let text = serde_json::to_vec_pretty(packages).map_err(std::io::Error::from);
    text.and_then(|text| fs::write(folder.join("packages.json"), text)).map_err(io("write the record"))
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> PolicyError {
    let what = what.into();
    move |cause| PolicyError::Io { what, cause }
}
