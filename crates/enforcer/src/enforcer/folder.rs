//! What outlives the daemon outside of the kernel.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use tollgate_abi::paths;

use super::EnforcerError;

/// The daemon's directory: the policy in force, the contexts of SIDs, since when domains are permissive.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Default for Folder {
    fn default() -> Self {
        Self(paths::FOLDER.into())
    }
}

impl Folder {
    /// Path of the policy of a generation.
    #[must_use]
    pub fn policy(&self, generation: u32) -> PathBuf {
        self.0.join(format!("generation-{generation}.policy"))
    }

    /// The only policy in the directory: the one in force, unless a daemon was killed while it put another one in
    /// force.
    #[must_use]
    pub fn only_policy(&self) -> Option<PathBuf> {
        let mut policies = self.policies();
        policies.next().filter(|_| policies.next().is_none())
    }

    fn policies(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let paths = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("generation-") && name.ends_with(".policy")
        })
    }

    /// Path of the contexts of SIDs: lines `SID CONTEXT`, which everybody may read.
    #[must_use]
    pub fn contexts(&self) -> PathBuf {
        self.0.join("contexts")
    }

    /// Path of the status page, which programs with a cache of decisions read.
    #[must_use]
    pub fn status(&self) -> PathBuf {
        self.0.join("status")
    }

    /// Path of the times since when domains are permissive: lines `GENERATION SECONDS TYPE`.
    #[must_use]
    pub fn permissive(&self) -> PathBuf {
        self.0.join("permissive")
    }

    /// Path of the candidate's policy.
    #[must_use]
    pub fn shadow(&self) -> PathBuf {
        self.0.join("shadow.policy")
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn make(&self) -> Result<(), EnforcerError> {
        let error = |cause| EnforcerError::Io { what: "make", path: self.0.clone(), cause };
        fs::create_dir_all(&self.0).map_err(error)
    }

    /// Adds lines to a file that exists.
    pub(super) fn append(&self, path: &Path, lines: &[u8]) -> Result<(), EnforcerError> {
        let error = |cause| EnforcerError::Io { what: "write", path: path.to_owned(), cause };
        let mut file = fs::File::options().append(true).open(path).map_err(error)?;
        io::Write::write_all(&mut file, lines).map_err(error)
    }

    /// Removes the policies of all generations but one.
    pub(super) fn keep_only(&self, generation: u32) {
        let kept = self.policy(generation);
        for path in self.policies().filter(|path| *path != kept) {
            // A file that stays only uses space.
            let _ = fs::remove_file(path);
        }
    }

    pub(super) fn replace(&self, path: &Path, content: &[u8]) -> Result<(), EnforcerError> {
        let error = |cause| EnforcerError::Io { what: "write", path: path.to_owned(), cause };
        let mut fresh = NamedTempFile::new_in(&self.0).map_err(error)?;
        io::Write::write_all(&mut fresh, content).map_err(error)?;
        fs::set_permissions(fresh.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(error)?;
        fresh.persist(path).map_err(|failure| error(failure.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_others_read_where_they_read_it() {
        let folder = Folder::default();
        assert_eq!(folder.contexts(), Path::new(paths::CONTEXTS));
        assert_eq!(folder.status(), Path::new(paths::STATUS));
        assert_eq!(folder.policy(7), PathBuf::from(paths::GENERATION.replace("%u", "7")));
    }
}
