//! What a starting daemon is doing before it answers: a line in its directory, for `tollgate status --wait`.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Name of the file in the daemon's directory.
const NAME: &str = "doing";
/// An older file was left behind by a daemon that was killed.
const MAX_AGE: Duration = Duration::from_secs(30);

/// The file with the line. It is removed when this is dropped.
#[derive(Debug)]
pub struct Doing(PathBuf);

impl Doing {
    /// The file of the daemon of a directory.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self(folder.join(NAME))
    }

    /// Writes what the daemon is doing. Failures are ignored, because nothing depends on it.
    pub fn say(&self, text: &str) {
        let beside = self.0.with_extension("new");
        let _ = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &self.0));
    }

    /// What the daemon of a directory is doing; `None`: it answers, or there is none.
    #[must_use]
    pub fn read(folder: &Path) -> Option<String> {
        let path = folder.join(NAME);
        // If the clock was set back, the age of the file is not known.
        let age = fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok()?;
        (age < MAX_AGE).then(|| fs::read_to_string(path).ok()).flatten()
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::SystemTime};

    use super::*;

    #[test]
    fn is_read_as_long_as_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Doing::read(folder.path()), None);
        let doing = Doing::of(folder.path());
        doing.say("labelling files");
        assert_eq!(Doing::read(folder.path()).as_deref(), Some("labelling files"));
        let killed = File::options().write(true).open(folder.path().join(NAME)).unwrap();
        killed.set_modified(SystemTime::now() - MAX_AGE * 2).unwrap();
        assert_eq!(Doing::read(folder.path()), None);
        killed.set_modified(SystemTime::now() + MAX_AGE * 2).unwrap();
        assert_eq!(Doing::read(folder.path()), None);
        doing.say("attaching programs");
        drop(doing);
        assert_eq!(Doing::read(folder.path()), None);
    }
}
