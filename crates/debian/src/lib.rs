//! Debian's own policies, built from its packages without installing them.

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod paths;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tollgate_abi::tables::TG_VERSION;
use tollgate_host::{Cache, Package, Packages};
use tollgate_policy::{
    built::{self, Built, BuiltError},
    dump, lines,
    sepol::Options,
    sources::{self, SourceError},
};

/// The suite whose policies are built: one for all kernels, so that kernels can be compared.
pub const SUITE: &str = "bookworm";

// A built policy of another format is in another folder of the cache, so that this program does not find one that it cannot
// read. When a version changes, change the folders' number here and in tollgate-study's records.
const _: () = assert!(
    built::VERSION == 2 && dump::VERSION == 1 && lines::VERSION == 1 && TG_VERSION == 2,
    "a format has a new version: give the folders a new number"
);

/// The file name of the built policy, in the folder that [`build`] returns.
pub const BUILT: &str = "policy.tollgate";
/// The file name of the binary policy beside it.
pub const IMAGE: &str = "policy.33";
/// The file name of its `file_contexts`, with those of homes and aliases.
pub const FILE_CONTEXTS: &str = "file_contexts";
/// The file name of the list of packages from which it was built.
pub const PACKAGES: &str = "packages.json";

/// Paths that have the labels of other paths, below the policy's folder in `/etc/selinux`.
const ALIASES: &str = "contexts/files/file_contexts.subs_dist";

/// The modules that the packages' postinst installs disabled, "not needed on a debian system"; the same in both.
const NOT_DEFAULT: [&str; 17] = [
    "amtu",
    "bugzilla",
    "cobbler",
    "condor",
    "cyphesis",
    "git",
    "ksmtuned",
    "likewise",
    "livecd",
    "nessus",
    "numad",
    "oddjob",
    "openca",
    "soundserver",
    "thunderbird",
    "updfstab",
    "usernetctl",
];

/// Debian's policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// `selinux-policy-default`: type enforcement, one sensitivity.
    Default,
    /// `selinux-policy-mls`: 16 sensitivities.
    Mls,
}

/// The modules of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modules {
    /// The modules that an installation enables.
    Enabled,
    /// All modules of the package.
    Shipped,
}

/// Why a policy of Debian's could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DebianError {
    /// The package could not be fetched, or the cache could not be written.
    #[error(transparent)]
    Packages(#[from] tollgate_host::Error),
    /// Its modules could not be read or compiled.
    #[error("cannot compile the modules of {package}: {cause}")]
    #[expect(missing_docs, reason = "the names say it")]
    Sources {
        package: &'static str,
        /// The compiler's error.
        cause: SourceError,
    },
    /// The built policy could not be written.
    #[error(transparent)]
    Built(#[from] BuiltError),
    /// A file could not be read or written.
    #[error("cannot {what}: {cause}")]
    Io {
        /// The attempted operation.
        what: String,
        /// The operating system's error.
        cause: io::Error,
    },
}

impl Flavour {
    /// The policy's name, also that of its folder in `/etc/selinux`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Mls => "mls",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Default => "selinux-policy-default",
            Self::Mls => "selinux-policy-mls",
        }
    }

    /// Patterns of home directories, each with the SELinux user of its owner.
    fn homes(self) -> paths::Homes {
        match self {
            Self::Default => [("/root", "unconfined_u"), ("/home/[^/]+", "unconfined_u")],
            Self::Mls => [("/root", "root"), ("/home/[^/]+", "user_u")],
        }
    }

    /// The policy's folder in the cache, relative to its root.
    pub fn folder(self, modules: Modules) -> &'static str {
        match (self, modules) {
            (Self::Default, Modules::Enabled) => "policies/4/default-bookworm",
            (Self::Default, Modules::Shipped) => "policies/4/default-bookworm-shipped",
            (Self::Mls, Modules::Enabled) => "policies/4/mls-bookworm",
            (Self::Mls, Modules::Shipped) => "policies/4/mls-bookworm-shipped",
        }
    }
}

/// The folder of `cache` with [`BUILT`], [`IMAGE`], [`FILE_CONTEXTS`] and [`PACKAGES`] of one of Debian's policies, as
/// semodule would compile it on an installed system; it is built if it does not exist.
pub fn build(cache: &Cache, flavour: Flavour, modules: Modules) -> Result<PathBuf, DebianError> {
    cache.folder(flavour.folder(modules), |fresh| {
        let (built, fetched) = compile(cache, flavour, modules, &[], fresh)?;
        built.write(&fresh.join(BUILT))?;
        let write = |name: &str, bytes: &[u8]| fs::write(fresh.join(name), bytes).map_err(io(format!("write {name}")));
        write(IMAGE, &built.image)?;
        write(FILE_CONTEXTS, built.file_contexts.as_bytes())?;
        let record = serde_json::to_vec_pretty(&fetched).map_err(io::Error::from).map_err(io("write the record"))?;
        write(PACKAGES, &record)
    })
}

/// Compiles one of Debian's policies together with other CIL files; returns it with its packages, which are fetched.
/// `scratch` is a folder for temporary files.
pub fn compile(
    cache: &Cache,
    flavour: Flavour,
    modules: Modules,
    with: &[PathBuf],
    scratch: &Path,
) -> Result<(Built, Vec<Package>), DebianError> {
    let root = scratch.join("root");
    fs::create_dir_all(&root).map_err(io(format!("make {}", root.display())))?;
    let package = flavour.package();
    let fetched = Packages::new(cache).unpack(&[&format!("{package}/{SUITE}")], &root)?;
    let mut paths = packages_of(&root, flavour, modules)?;
    paths.extend_from_slice(with);
    let compiled =
        sources::read(&paths).and_then(|sources| in_short_names(sources, &root, flavour).build(&Options::default()));
    let mut built = compiled.map_err(|cause| DebianError::Sources { package, cause })?;
    let aliases = root.join("etc/selinux").join(flavour.name()).join(ALIASES);
    let aliases = fs::read_to_string(&aliases).map_err(io(format!("read {}", aliases.display())))?;
    built.file_contexts = paths::complete(&built.file_contexts, flavour.homes(), &aliases);
    fs::remove_dir_all(&root).map_err(io("tidy up"))?;
    Ok((built, fetched))
}

/// The selected module packages, sorted.
fn packages_of(root: &Path, flavour: Flavour, modules: Modules) -> Result<Vec<PathBuf>, DebianError> {
    let folder = shipped(root, flavour);
    let entries = fs::read_dir(&folder).map_err(io(format!("list {}", folder.display())))?;
    let mut packages: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    packages.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(".pp.bz2").is_some_and(|module| modules == Modules::Shipped || !NOT_DEFAULT.contains(&module))
    });
    packages.sort();
    Ok(packages)
}

fn shipped(root: &Path, flavour: Flavour) -> PathBuf {
    root.join("usr/share/selinux").join(flavour.name())
}

/// Names modules without the temporary folder in which they were.
fn in_short_names(sources: sources::Sources, root: &Path, flavour: Flavour) -> sources::Sources {
    let folder = format!("{}/", shipped(root, flavour).display());
    match sources {
        sources::Sources::Cil { mut files, modules } => {
            for file in &mut files {
                file.name = file.name.replace(&folder, "");
            }
            sources::Sources::Cil { files, modules }
        }
        other => other,
    }
}

fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> DebianError {
    let what = what.into();
    move |cause| DebianError::Io { what, cause }
}
