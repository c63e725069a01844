//! The module `tollgate_latency` of kernels that a study builds, through two files in securityfs.
//! `crates/vm/kernel/tollgate_latency` is the module itself.

use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd},
    path::{Path, PathBuf},
};

use super::{Delay, Delays};
use crate::Error;

/// The module's folder in securityfs.
const FOLDER: &str = "/sys/kernel/security/tollgate_latency";

/// The active module. Dropping the value removes the delays, unless it is kept.
#[derive(Debug)]
pub(super) struct Module {
    folder: PathBuf,
    pub(super) kept: bool,
}

impl Module {
    /// The module, if it is active; dropping this value leaves the delays.
    pub(super) fn find() -> Option<Self> {
        Self::at(Path::new(FOLDER))
    }

    fn at(folder: &Path) -> Option<Self> {
        folder.is_dir().then(|| Self { folder: folder.into(), kept: true })
    }

    /// The module for the caller's own use: dropping it removes the delays, unless it is kept. Refused while the module has
    /// delays of another user.
    pub(super) fn taken(mut self) -> Result<Self, Error> {
        if self.is_on()? {
            return Err(Error::Unavailable(
                "latency: delays are set already; `tollgate latency stop` takes them away".to_owned(),
            ));
        }
        self.kept = false;
        Ok(self)
    }

    /// Whether a hook has a delay.
    pub(super) fn is_on(&self) -> Result<bool, Error> {
        Ok(!self.delays()?.is_empty())
    }

    /// Sets the delays of all hooks in one write.
    pub(super) fn set(&self, delays: &Delays) -> Result<(), Error> {
        let known = self.read()?;
        if let Some(hook) = delays.keys().find(|hook| !known.contains_key(*hook)) {
            return Err(Error::Unavailable(format!("latency: {hook:?} is no LSM hook of this kernel")));
        }
        self.write("delays", &lines(delays))
    }

    /// The present delays.
    pub(super) fn delays(&self) -> Result<Delays, Error> {
        Ok(self.read()?.into_iter().filter(|(_, delay)| *delay != Delay::default()).collect())
    }

    /// Delays only the tasks of a control group and those below it; `None` stands for all tasks.
    pub(super) fn limit(&self, group: Option<BorrowedFd<'_>>) -> Result<(), Error> {
        self.write("group", &group.map_or(-1, |group| group.as_raw_fd()).to_string())
    }

    /// Whether this kernel has the hook.
    pub(super) fn has(&self, hook: &str) -> bool {
        self.read().is_ok_and(|known| known.contains_key(hook))
    }

    /// How many hooks it has.
    pub(super) fn hooks(&self) -> Result<usize, Error> {
        Ok(self.read()?.len())
    }

    fn read(&self) -> Result<Delays, Error> {
        let path = self.folder.join("delays");
        let text = fs::read_to_string(&path).map_err(|cause| cannot("read", &path, &cause))?;
        let wrong = || Error::Unavailable(format!("latency: {} is of another version of the module", path.display()));
        parse(&text).ok_or_else(wrong)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|cause| cannot("write", &path, &cause))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if !self.kept {
            // An error cannot be reported in a drop; the delays remain visible in the file.
            let _ = self.set(&Delays::new()).and_then(|()| self.limit(None));
        }
    }
}

fn cannot(what: &str, path: &Path, cause: &io::Error) -> Error {
    Error::Unavailable(format!("latency: cannot {what} {}: {cause}", path.display()))
}

/// A line `HOOK UNITS NANOSECONDS` for each hook.
fn parse(text: &str) -> Option<Delays> {
    let line = |line: &str| {
        let [hook, units, nanoseconds] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        Some((hook.to_owned(), Delay { units: units.parse().ok()?, nanoseconds: nanoseconds.parse().ok()? }))
    };
    text.lines().map(line).collect()
}

/// The text to write: at least a line break, because an empty write does nothing.
fn lines(delays: &Delays) -> String {
    let line = |(hook, delay): (&String, &Delay)| format!("{hook} {} {}\n", delay.units, delay.nanoseconds);
    delays.iter().map(line).chain(["\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> (tempfile::TempDir, Module) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("delays"), text).unwrap();
        let module = Module::at(dir.path()).unwrap();
        (dir, module)
    }

    #[test]
    fn writes_a_line_for_each_hook_that_has_a_delay() {
        let (dir, module) = module("capable 0 0\nfile_open 7 0\n");
        let delay = Delay { units: 0, nanoseconds: 250 };
        assert_eq!(module.delays().unwrap()["file_open"], Delay { units: 7, nanoseconds: 0 });
        assert_eq!((module.delays().unwrap().len(), module.hooks().unwrap()), (1, 2));
        module.set(&Delays::from([("capable".to_owned(), delay)])).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("delays")).unwrap(), "capable 0 250\n\n");
    }

    #[test]
    fn refuses_a_hook_that_the_kernel_lacks_and_a_file_that_it_cannot_read() {
        let (_dir, known) = module("file_open 7 0\n");
        let delays = Delays::from([("file_opening".to_owned(), Delay::default())]);
        assert!(known.set(&delays).unwrap_err().to_string().contains("no LSM hook of this kernel"));
        let (_dir, other) = module("file_open 7\n");
        assert!(other.delays().unwrap_err().to_string().contains("another version"));
    }

    #[test]
    fn refuses_to_take_anothers_delays_away() {
        let (dir, set) = module("capable 0 0\nfile_open 7 0\n");
        assert!(set.is_on().unwrap());
        assert!(set.taken().unwrap_err().to_string().contains("`tollgate latency stop`"));
        assert!(fs::read_to_string(dir.path().join("delays")).unwrap().contains("file_open 7"));
    }

    #[test]
    fn takes_its_delays_away_unless_it_is_kept() {
        let (dir, set) = module("file_open 0 0\n");
        fs::write(dir.path().join("group"), "3").unwrap();
        drop(set.taken().unwrap());
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!((read("delays").as_str(), read("group").as_str()), ("\n", "-1"));
    }
}
