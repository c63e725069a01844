//! Writes the `newc` archive that a kernel unpacks as its first root file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! The same entries give the same bytes: inode numbers count up, times are 0, owners are root.

use std::io::{self, Write};

const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;
const S_IFCHR: u32 = 0o020_000;

/// Writes entries one after the other; [`Writer::finish`] closes the archive.
pub(crate) struct Writer<W: Write> {
    out: W,
    next_inode: u32,
}

impl<W: Write> Writer<W> {
    /// An empty archive on `out`.
    pub(crate) fn new(out: W) -> Self {
        Self { out, next_inode: 1 }
    }

    /// A directory; its parents must have been written before it.
    pub(crate) fn directory(&mut self, path: &str) -> io::Result<()> {
        self.entry(path, S_IFDIR | 0o755, (0, 0), &[])
    }

    /// A regular file with its permission bits.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(path, S_IFREG | (mode & 0o7777), (0, 0), content)
    }

    /// A symbolic link.
    pub(crate) fn symlink(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.entry(path, S_IFLNK | 0o777, (0, 0), target.as_bytes())
    }

    /// A character device.
    pub(crate) fn device(&mut self, path: &str, mode: u32, major: u32, minor: u32) -> io::Result<()> {
        self.entry(path, S_IFCHR | mode, (major, minor), &[])
    }

    /// Writes the trailer and gives the output back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        Ok(self.out)
    }

    fn entry(&mut self, path: &str, mode: u32, rdev: (u32, u32), content: &[u8]) -> io::Result<()> {
        let name = path.trim_start_matches('/');
        let size = u32::try_from(content.len())
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, format!("{path} is larger than 4 GiB")))?;
        let links = if mode & S_IFDIR == S_IFDIR { 2 } else { 1 };
        let fields = [self.next_inode, mode, 0, 0, links, 0, size, 0, 0, rdev.0, rdev.1, len32(name) + 1, 0];
        self.next_inode += 1;
        self.out.write_all(b"070701")?;
        for field in fields {
            write!(self.out, "{field:08X}")?;
        }
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(b"\0")?;
        self.pad(110 + name.len() + 1)?;
        self.out.write_all(content)?;
        self.pad(content.len())
    }

    fn pad(&mut self, written: usize) -> io::Result<()> {
        let missing = (4 - written % 4) % 4;
        self.out.write_all(&[0; 3][..missing])
    }
}

/// Path names are limited to PATH_MAX, far below 4 GiB.
fn len32(name: &str) -> u32 {
    u32::try_from(name.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn sample() -> Vec<u8> {
        let mut archive = Writer::new(Vec::new());
        archive.directory("/bin").unwrap();
        archive.file("/bin/a", 0o755, b"hello").unwrap();
        archive.symlink("/init", "bin/a").unwrap();
        archive.device("/console", 0o600, 5, 1).unwrap();
        archive.finish().unwrap()
    }

    #[test]
    fn writes_what_the_format_says() {
        let bytes = sample();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("000081ED"), "mode 0100755 in hexadecimal: {text}");
        assert!(text.contains("hello"));
        assert!(text.contains("TRAILER!!!"));
    }

    #[test]
    fn gives_the_same_bytes_for_the_same_entries() {
        assert_eq!(sample(), sample());
    }

    /// The oracle is another implementation of the format.
    #[test]
    fn is_read_by_busybox() {
        let mut child = Command::new("busybox")
            .args(["cpio", "-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("busybox is installed by make");
        child.stdin.take().unwrap().write_all(&sample()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "bin\nbin/a\ninit\nconsole\n");
    }
}
