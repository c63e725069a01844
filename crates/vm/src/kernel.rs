//! A kernel on the disk, and its record.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tollgate_host::Package;

/// The file name of the record beside each kernel in the cache.
pub(crate) const RECORD: &str = "kernel.json";

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`, or the image's path if it was given by path.
    pub release: String,
    /// The series, such as `6.1`.
    pub series: String,
    /// The path of the bzImage.
    pub image: PathBuf,
    /// Its `lib/modules/RELEASE`, if there is one.
    pub modules: Option<PathBuf>,
    /// The packages of the kernel.
    pub packages: Vec<Package>,
    /// The hash of the recipe by which it was built; `None`: it was fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
}

impl Kernel {
    /// The record holds paths relative to its folder, so that a cache can be moved.
    pub(crate) fn below(mut self, folder: &Path) -> Self {
        self.image = folder.join(&self.image);
        self.modules = self.modules.map(|m| folder.join(m));
        self
    }
}
