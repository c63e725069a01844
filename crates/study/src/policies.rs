//! Policies and tools that the modules under test load, built from Debian's packages and kept in the cache.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tollgate_debian::{self as debian, DebianError, Flavour, Modules, SUITE};
use tollgate_host::{Cache, Package, Packages};
use tollgate_policy::{
    built::Built,
    sepol::{CilFile, Options},
    sources::{SourceError, Sources},
};

/// The sources of Tollgate's own policy, and domains for the workloads. The first ones are [`BASE`].
const OWN: [(&str, &str); 12] = [
    ("10-classes.cil", include_str!("../../../policies/tollgate/10-classes.cil")),
    ("20-levels.cil", include_str!("../../../policies/tollgate/20-levels.cil")),
    ("30-base.cil", include_str!("../../../policies/tollgate/30-base.cil")),
    ("40-unconfined.cil", include_str!("../../../policies/tollgate/40-unconfined.cil")),
    ("50-mls.cil", include_str!("../../../policies/tollgate/50-mls.cil")),
    ("60-network.cil", include_str!("../../../policies/tollgate/60-network.cil")),
    ("65-abstractions.cil", include_str!("../../../policies/tollgate/65-abstractions.cil")),
    ("70-services.cil", include_str!("../../../policies/tollgate/70-services.cil")),
    ("75-containers.cil", include_str!("../../../policies/tollgate/75-containers.cil")),
    ("80-guards.cil", include_str!("../../../policies/tollgate/80-guards.cil")),
    ("90-goals.cil", include_str!("../../../policies/tollgate/90-goals.cil")),
    ("bench.cil", include_str!("bench.cil")),
];

/// How many of the sources are the base of the network's policy: all that names no service.
const BASE: usize = 5;
/// The policy of labelled networks, beside the base.
const NETWORK: (&str, &str) = ("network.cil", include_str!("network.cil"));

/// What a study needs of Debian's MLS policy besides. When it changes, give the folder another number.
const MLS: &str = include_str!("mls.cil");
const MLS_FOLDER: &str = "policies/4/mls-bookworm-study-2";

/// The programs of NetLabel.
const NETLABEL: [&str; 3] = ["netlabel-tools", "libnl-3-200", "libnl-genl-3-200"];

/// The cache's records of the packages from which each was built.
pub(crate) const SELINUX_RECORD: &str = "policies/4/default-bookworm-shipped/packages.json";
pub(crate) const MLS_RECORD: &str = "policies/4/mls-bookworm-study-2/packages.json";
pub(crate) const APPARMOR_RECORD: &str = "apparmor/bookworm/packages.json";
pub(crate) const NETLABEL_RECORD: &str = "netlabel/bookworm/packages.json";

/// Why a policy could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A package could not be fetched, or the cache could not be written.
    #[error(transparent)]
    Packages(#[from] tollgate_host::Error),
    /// A file could not be put into the guest.
    #[error(transparent)]
    Image(#[from] tollgate_vm::Error),
    /// Debian's SELinux policy could not be built.
    #[error(transparent)]
    Debian(#[from] DebianError),
    /// Tollgate's own policy could not be built.
    #[error("cannot build Tollgate's own policy: {0}")]
    Own(#[from] SourceError),
    /// A file could not be read or written.
    #[error("{what}: {cause}")]
    Io {
        /// The attempted operation.
        what: String,
        /// The operating system's error.
        cause: std::io::Error,
    },
}

/// A program that was unpacked and not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The path of the program.
    pub program: PathBuf,
    /// Folders of its libraries.
    pub libraries: Vec<PathBuf>,
}

/// Debian's SELinux policy with every module that its package ships, as one binary policy.
pub fn selinux(cache: &Cache) -> Result<PathBuf, PolicyError> {
    Ok(debian::build(cache, Flavour::Default, Modules::Shipped)?.join(debian::IMAGE))
}

/// The same policy, with decision tables.
pub fn debian(cache: &Cache) -> Result<PathBuf, PolicyError> {
    Ok(debian::build(cache, Flavour::Default, Modules::Shipped)?.join(debian::BUILT))
}

/// Debian's SELinux policy with 16 levels, as an installation has it, and what a study needs besides: with decision tables, and
/// as one binary policy.
pub fn mls(cache: &Cache) -> Result<(PathBuf, PathBuf), PolicyError> {
    let folder = cache.folder(MLS_FOLDER, |fresh| {
        let with = fresh.join("mls.cil");
        fs::write(&with, MLS).map_err(io("write what a study needs besides"))?;
        let (built, fetched) = debian::compile(cache, Flavour::Mls, Modules::Enabled, &[with], fresh)?;
        built.write(&fresh.join(debian::BUILT)).map_err(DebianError::from)?;
        fs::write(fresh.join(debian::IMAGE), &built.image).map_err(io("write the binary policy"))?;
        write_record(fresh, &fetched)
    })?;
    Ok((folder.join(debian::BUILT), folder.join(debian::IMAGE)))
}

/// The labels of files by [`debian`].
pub fn file_contexts(cache: &Cache) -> Result<PathBuf, PolicyError> {
    Ok(debian::build(cache, Flavour::Default, Modules::Shipped)?.join(debian::FILE_CONTEXTS))
}

/// Tollgate's own policy with domains for the workloads, built.
pub fn own() -> Result<Vec<u8>, PolicyError> {
    Ok(compile(&OWN)?.to_bytes())
}

/// The policy of labelled networks, built, and as the kernel's SELinux loads it.
pub fn network() -> Result<(Vec<u8>, Vec<u8>), PolicyError> {
    let built = compile(&[&OWN[..BASE], &[NETWORK]].concat())?;
    Ok((built.to_bytes(), built.image))
}

fn compile(sources: &[(&str, &str)]) -> Result<Built, PolicyError> {
    let file = |(name, text): &(&str, &str)| CilFile { name: (*name).into(), text: (*text).into() };
    let sources = Sources::Cil { files: sources.iter().map(file).collect(), modules: false };
    Ok(sources.build(&Options::default())?)
}

/// `netlabelctl` of Debian.
pub fn netlabel(cache: &Cache) -> Result<Unpacked, PolicyError> {
    let folder = unpacked(cache, &format!("netlabel/{SUITE}"), &NETLABEL)?;
    Ok(Unpacked { program: folder.join("usr/sbin/netlabelctl"), libraries: library_folders(&folder) })
}

/// The folder of unpacked packages, with a record of them.
pub(crate) fn unpacked(cache: &Cache, folder: &str, packages: &[&str]) -> Result<PathBuf, PolicyError> {
    cache.folder(folder, |fresh| {
        let names: Vec<String> = packages.iter().map(|name| format!("{name}/{SUITE}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let fetched = Packages::new(cache).unpack(&names, fresh)?;
        write_record(fresh, &fetched)
    })
}

/// Debian's AppArmor parser.
pub fn apparmor_parser(cache: &Cache) -> Result<Unpacked, PolicyError> {
    let folder = unpacked(cache, &format!("apparmor/{SUITE}"), &["apparmor"])?;
    let program = ["usr/sbin/apparmor_parser", "sbin/apparmor_parser"].map(|path| folder.join(path));
    let program = program.into_iter().find(|path| path.exists()).unwrap_or_else(|| folder.join("sbin"));
    Ok(Unpacked { program, libraries: library_folders(&folder) })
}

pub(crate) fn library_folders(root: &Path) -> Vec<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_the_packages_where_the_policies_are() {
        let folder = |flavour: Flavour, modules| format!("{}/{}", flavour.folder(modules), debian::PACKAGES);
        assert_eq!(SELINUX_RECORD, folder(Flavour::Default, Modules::Shipped));
        assert_eq!(MLS_RECORD, format!("{MLS_FOLDER}/{}", debian::PACKAGES));
    }

    #[test]
    fn measures_in_a_domain_that_keeps_what_the_policy_promises() {
        let built = Built::from_bytes(&own().unwrap()).unwrap();
        for name in ["bench_t", "nothing_t"] {
            assert!(built.policy.types.iter().any(|type_| type_.name == name), "{name}");
        }
    }
}
