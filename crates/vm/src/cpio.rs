//! The `newc` archive that a kernel unpacks as its first root file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst): written, and read in a guest that was booted before.
//!
//! The same entries give the same bytes: inode numbers count up, times are 0, owners are root.

use std::io::{self, BufRead, Read, Write};

const MAGIC: &[u8; 6] = b"070701";
/// Bytes of a header: the magic, and 13 fields of 8 hexadecimal digits.
const HEADER: usize = 110;
const END: &str = "TRAILER!!!";
const S_IFMT: u32 = 0o170_000;
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
    /// Starts an empty archive on `out`.
    pub(crate) fn new(out: W) -> Self {
        Self { out, next_inode: 1 }
    }

    /// Writes a directory. Its parents must have been written before it.
    pub(crate) fn directory(&mut self, path: &str) -> io::Result<()> {
        self.entry(path, S_IFDIR | 0o755, (0, 0), &[])
    }

    /// Writes a regular file with its permission bits.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(path, S_IFREG | (mode & 0o7777), (0, 0), content)
    }

    /// Writes a symbolic link.
    pub(crate) fn symlink(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.entry(path, S_IFLNK | 0o777, (0, 0), target.as_bytes())
    }

    /// Writes a character device.
    pub(crate) fn device(&mut self, path: &str, mode: u32, major: u32, minor: u32) -> io::Result<()> {
        self.entry(path, S_IFCHR | mode, (major, minor), &[])
    }

    /// Writes the trailer and gives the output back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry(END, 0, (0, 0), &[])?;
        Ok(self.out)
    }

    fn entry(&mut self, path: &str, mode: u32, rdev: (u32, u32), content: &[u8]) -> io::Result<()> {
        let name = path.trim_start_matches('/');
        let size = u32::try_from(content.len())
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, format!("{path} is larger than 4 GiB")))?;
        let links = if mode & S_IFDIR == S_IFDIR { 2 } else { 1 };
        let fields = [self.next_inode, mode, 0, 0, links, 0, size, 0, 0, rdev.0, rdev.1, len32(name) + 1, 0];
        self.next_inode += 1;
        self.out.write_all(MAGIC)?;
        for field in fields {
            write!(self.out, "{field:08X}")?;
        }
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(b"\0")?;
        self.pad(HEADER + name.len() + 1)?;
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

/// The kinds of entry that a parcel can have.
pub(crate) enum Kind<'c> {
    Directory,
    /// Permission bits, and the content to be read to its end.
    File(u32, &'c mut dyn BufRead),
    /// A symbolic link, with its target.
    Symlink(String),
}

/// Reads an archive and gives each entry's path, from the root, and kind.
pub(crate) fn read(
    from: &mut impl BufRead,
    on_entry: &mut dyn FnMut(&str, Kind<'_>) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let mut header = [0; HEADER];
        from.read_exact(&mut header)?;
        if &header[..MAGIC.len()] != MAGIC {
            return Err(garbled("an entry does not begin with its magic number"));
        }
        let (mode, size, length) = (field(&header, 1)?, field(&header, 6)?, field(&header, 11)?);
        let name = text(from, length)?;
        let name = name.trim_end_matches('\0');
        skip_padding(from, HEADER + length as usize)?;
        if name == END {
            return Ok(());
        }
        let mut content = from.by_ref().take(size.into());
        let kind = match mode & S_IFMT {
            S_IFDIR => Kind::Directory,
            S_IFREG => Kind::File(mode & 0o7777, &mut content),
            S_IFLNK => Kind::Symlink(text(&mut content, size)?),
            _ => return Err(garbled(&format!("{name} has mode {mode:o}"))),
        };
        on_entry(&format!("/{name}"), kind)?;
        if content.limit() > 0 {
            return Err(garbled(&format!("{name} was not read to its end")));
        }
        skip_padding(from, size as usize)?;
    }
}

fn field(header: &[u8; HEADER], number: usize) -> io::Result<u32> {
    let at = MAGIC.len() + 8 * number;
    let digits = str::from_utf8(&header[at..at + 8]).map_err(|_| garbled("a number is no text"))?;
    u32::from_str_radix(digits, 16).map_err(|_| garbled(&format!("{digits:?} is no number")))
}

fn text(from: &mut impl BufRead, length: u32) -> io::Result<String> {
    let mut text = String::new();
    from.by_ref().take(length.into()).read_to_string(&mut text)?;
    Ok(text)
}

fn skip_padding(from: &mut impl BufRead, read: usize) -> io::Result<()> {
    let mut padding = [0; 3];
    from.read_exact(&mut padding[..(4 - read % 4) % 4])
}

fn garbled(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a garbled archive: {what}"))
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

    fn listed(archive: &[u8]) -> io::Result<Vec<String>> {
        let mut seen = Vec::new();
        read(&mut &archive[..], &mut |path, kind| {
            seen.push(match kind {
                Kind::Directory => format!("{path} directory"),
                Kind::File(mode, content) => {
                    let mut text = String::new();
                    content.read_to_string(&mut text)?;
                    format!("{path} {mode:o} {text}")
                }
                Kind::Symlink(target) => format!("{path} -> {target}"),
            });
            Ok(())
        })?;
        Ok(seen)
    }

    #[test]
    fn reads_what_was_written_and_refuses_what_is_cut_or_garbled() {
        let mut archive = Writer::new(Vec::new());
        archive.directory("/bin").unwrap();
        archive.file("/bin/a", 0o755, b"hello").unwrap();
        archive.symlink("/init", "bin/a").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(listed(&bytes).unwrap(), ["/bin directory", "/bin/a 755 hello", "/init -> bin/a"]);
        for length in [0, 50, 112, 240, bytes.len() - 5] {
            assert!(listed(&bytes[..length]).is_err(), "cut to {length} bytes");
        }
        assert!(listed(&bytes[1..]).is_err());
        assert!(listed(&sample()).unwrap_err().to_string().contains("console has mode 20600"));
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
