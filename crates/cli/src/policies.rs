//! Policies as commands get them: opened by a path, or the one in force.

use std::{ffi::CString, fs::File, io::Seek, os::unix::ffi::OsStringExt, path::Path};

use anyhow::Context;
use nix::sys::memfd::{MFdFlags, memfd_create};
use tollgate_client::{Client, ClientError};
use tollgate_enforcer::enforcer::Folder;
use tollgate_policy::{
    built::{Answering, Built, BuiltError},
    check::{self, Kernel, Severity},
    sepol::Options,
    sources,
};

/// The longest name of a file in memory (`MFD_NAME_MAX_LEN`).
const MAX_NAME: usize = 249;

/// Opens a policy to examine: a built one, or sources, which are built first.
pub(crate) fn open(path: &Path) -> anyhow::Result<Built> {
    let sources = sources::read(&[path.to_owned()])?;
    sources.build(&Options::default()).with_context(|| path.display().to_string())
}

/// Opens a policy for questions only; most of a built policy is then not read.
pub(crate) fn open_for_questions(path: &Path) -> anyhow::Result<Answering> {
    match Answering::open(path) {
        Err(BuiltError::NotBuilt(_)) => Ok(open(path)?.into()),
        // The error names the file itself.
        Err(cause @ BuiltError::Io { .. }) => Err(cause.into()),
        other => other.with_context(|| path.display().to_string()),
    }
}

/// Opens a policy to enforce, and builds it first if necessary; doubtful parts are reported.
pub(crate) fn open_to_enforce(path: &Path) -> anyhow::Result<Built> {
    let built = open(path)?;
    warn(&built, path)?;
    Ok(built)
}

/// Reports doubtful parts of a policy on standard error.
pub(crate) fn warn(built: &Built, path: &Path) -> anyhow::Result<()> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = Kernel::find(release.trim()).ok();
    let findings = check::check(&built.policy, built.server()?.tables(), built.levels.len(), kernel.as_ref());
    for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
        eprintln!("tollgate: {}: {}: {}", path.display(), finding.text, finding.names.join(" "));
    }
    Ok(())
}

/// The policy in force, and its name.
pub(crate) fn running() -> anyhow::Result<(Built, String)> {
    let folder = Folder::default();
    let (path, name) = match Client::connect() {
        Ok(mut client) => {
            let status = client.status()?;
            (folder.policy(status.generation), format!("{}, generation {}", status.policy, status.generation))
        }
        Err(cause @ ClientError::NoDaemon { .. }) => {
            let path = folder.only_policy().with_context(|| format!("no policy is known to be in force: {cause}"))?;
            let name = path.display().to_string();
            (path, name)
        }
        Err(cause) => return Err(cause.into()),
    };
    let built = Built::open(&path).context("cannot read the policy in force; name one with --policy")?;
    Ok((built, name))
}

/// A policy as a file in memory for the daemon, which names the policy like the file at `path`.
pub(crate) fn file_of(built: &Built, path: &Path) -> anyhow::Result<File> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.into_os_string().into_vec();
    name.truncate(MAX_NAME);
    let name = CString::new(name).context("the policy's name has a NUL")?;
    let file = memfd_create(name.as_c_str(), MFdFlags::MFD_CLOEXEC).context("cannot make a file for the policy")?;
    let mut file = File::from(file);
    std::io::Write::write_all(&mut file, &built.to_bytes()).context("cannot write the policy to a file")?;
    file.rewind().context("cannot write the policy to a file")?;
    Ok(file)
}
