//! A log file that is renamed when it has become too long.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The files `NAME`, `NAME.1`, ... `NAME.kept`; the last is the oldest.
#[derive(Debug)]
pub struct Rotated {
    path: PathBuf,
    length: u64,
    kept: u32,
    open: Option<(File, u64)>,
}

impl Rotated {
    /// Does not open the file before the first line is written.
    pub fn new(path: PathBuf, length: u64, kept: u32) -> Self {
        Self { path, length, kept, open: None }
    }

    /// Opens the file at once.
    pub fn open(path: PathBuf, length: u64, kept: u32) -> io::Result<Self> {
        let mut this = Self::new(path, length, kept);
        this.open = Some(this.start()?);
        Ok(this)
    }

    /// Adds a line, as a whole or not at all.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let (mut file, mut length) = match self.open.take() {
            Some(open) => open,
            None => self.start()?,
        };
        let more = line.len() as u64;
        if length > 0 && length + more > self.length {
            self.rotate()?;
            (file, length) = self.start()?;
        }
        if let Err(cause) = file.write_all(line) {
            // A full disk takes half a line. The next line would be appended to that half.
            file.set_len(length).ok();
            return Err(cause);
        }
        self.open = Some((file, length + more));
        Ok(())
    }

    fn start(&self) -> io::Result<(File, u64)> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(&self.path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    }

    fn rotate(&self) -> io::Result<()> {
        for number in (1..self.kept).rev() {
            rename(&numbered(&self.path, number), &numbered(&self.path, number + 1))?;
        }
        rename(&self.path, &numbered(&self.path, 1))
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The path `NAME.number`.
pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn keeps_so_many_files_of_such_a_length_and_forgets_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/audit.log");
        let mut log = Rotated::open(path.clone(), 10, 2).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n", "longer than a file\n", "six\n"] {
            log.append(line.as_bytes()).unwrap();
        }
        assert_eq!(text(&path), "six\n");
        assert_eq!(text(&numbered(&path, 1)), "longer than a file\n");
        assert_eq!(text(&numbered(&path, 2)), "four\n");
        assert!(!numbered(&path, 3).exists());
    }

    #[test]
    fn goes_on_where_another_process_ended_and_lets_nobody_else_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/audit.log");
        for line in ["one\n", "two\n", "three\n"] {
            Rotated::new(path.clone(), 10, 2).append(line.as_bytes()).unwrap();
        }
        assert_eq!(text(&path), "three\n");
        assert_eq!(text(&numbered(&path, 1)), "one\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn refuses_a_symbolic_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(Rotated::open(path, 10, 2).is_err());
    }

    #[test]
    fn tells_a_full_disk_and_goes_on_when_there_is_room() {
        let mut log = Rotated::new("/dev/full".into(), 10, 2);
        assert_eq!(log.append(b"one\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
        let folder = tempfile::tempdir().unwrap();
        log.path = folder.path().join("audit.log");
        log.append(b"two\n").unwrap();
        assert_eq!(text(&log.path), "two\n");
    }
}
