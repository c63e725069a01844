//! Programs that are replaced keep the labels that `file_contexts` give to their names.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use tracing::{info, warn};

use super::{Enforcer, EnforcerError};
use crate::{
    contexts::bare,
    contexts::domain,
    labels::replaced::{directories, is_harmless},
};

impl Enforcer {
    /// Becomes readable when a file has got a name in a directory of programs.
    pub fn replaced_wakes(&self) -> Option<BorrowedFd<'_>> {
        self.replaced.as_ref().map(AsFd::as_fd)
    }

    /// Labels programs that were replaced.
    pub fn follow_replaced(&mut self) {
        let Some(mut came) = self.replaced.as_ref().map(|replaced| replaced.take()) else { return };
        if came.directories {
            came.files.extend(self.watch_programs());
        }
        for file in came.files {
            match self.label_program(&file) {
                Ok(Some(label)) => {
                    let path = file.display();
                    info!(%path, %label, "{path} was replaced: it is {label} again");
                    self.began();
                }
                Ok(None) => {}
                Err(cause) => {
                    let path = file.display();
                    warn!(%path, %cause, "{path} was replaced, and is not labelled: {cause}");
                }
            }
        }
    }

    /// Watches the directories in which `file_contexts` name programs. Returns the files in directories that were not
    /// watched before.
    pub(super) fn watch_programs(&mut self) -> BTreeSet<PathBuf> {
        let entries = self.entries().clone();
        let wanted = directories(&self.generation.file_contexts, &entries);
        let new = self.replaced.as_mut().map_or(Ok(Vec::new()), |replaced| replaced.watch(&wanted));
        let new = new.unwrap_or_else(|cause| {
            warn!(%cause, "programs that are replaced lose their labels until `tollgate label restore`: {cause}");
            Vec::new()
        });
        let files = new
            .iter()
            .filter(|directory| wanted.contains(*directory))
            .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()));
        files.collect()
    }

    /// Gives a file the label that `file_contexts` give to the program, if it has another. Returns that label.
    fn label_program(&mut self, path: &Path) -> Result<Option<String>, EnforcerError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
        let open = |path: &Path| File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |cause| EnforcerError::Io { what: "open", path, cause }
        };
        let directory = open(parent).map_err(failed(parent))?;
        // In that directory, even if its path belongs to another one by now.
        let file = match open(&Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed(path))?,
        };
        let known = file.metadata().map_err(failed(path))?;
        if !known.is_file() {
            return Ok(None);
        }
        let Some(wanted) = self.default_label(path, known.mode())? else { return Ok(None) };
        let program = domain(&wanted);
        let is = self.contexts.text(bare(self.label(file.as_fd())?)).to_owned();
        if !self.entries().contains_key(program) || domain(&is) == program {
            return Ok(None);
        }
        let place = self.contexts.text(bare(self.label(directory.as_fd())?)).to_owned();
        if !is_harmless(&self.generation.policy, domain(&place), program, &self.generation.unconfined()) {
            let (path, place) = (path.display(), domain(&place));
            warn!(
                %path,
                label = %is,
                "{path} was replaced and is {is}: confined domains may make files in directories of {place}, so that it \
                 does not get the label of a program by its name: `tollgate label restore {path}`"
            );
            return Ok(None);
        }
        let sid = self.intern(&wanted)?;
        self.set_label(file.as_fd(), sid)?;
        Ok(Some(wanted))
    }
}
