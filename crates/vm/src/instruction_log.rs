//! A log of the instructions that a guest executes.

use std::{
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use crate::{Error, error::Context, monitor::Monitor};

/// Executes each instruction by itself, and logs it: a line per block of instructions, which has one instruction then.
const ON: [&str; 2] = ["singlestep on", "log exec,nochain"];
const OFF: [&str; 2] = ["log none", "singlestep off"];

/// The log, which is off at first. While it is on, the guest is slower by some hundred times; what it executes is the same.
pub struct InstructionLog {
    monitor: Monitor,
    folder: PathBuf,
    begun: u32,
}

impl InstructionLog {
    pub(crate) fn new(monitor: Monitor, folder: &Path) -> Self {
        Self { monitor, folder: folder.to_path_buf(), begun: 0 }
    }

    /// Switches it on, with a new file.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`] if this emulator cannot log instructions.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.begun += 1;
        let file = format!("logfile \"{}\"", self.file().display());
        self.monitor.command(&[&file])?;
        self.monitor.command(&ON)
    }

    /// Switches it off, and gives its lines to `read`.
    ///
    /// # Errors
    ///
    /// Those of [`InstructionLog::begin`], and of reading the file.
    pub fn end<T>(&mut self, read: impl FnOnce(BufReader<File>) -> io::Result<T>) -> Result<T, Error> {
        self.monitor.command(&OFF)?;
        let path = self.file();
        let what = || format!("read {}", path.display());
        let told = read(BufReader::new(File::open(&path).context(what())?)).context(what())?;
        fs::remove_file(&path).context(what())?;
        Ok(told)
    }

    fn file(&self) -> PathBuf {
        self.folder.join(format!("instructions-{}", self.begun))
    }
}
