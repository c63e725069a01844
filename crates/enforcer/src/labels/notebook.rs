//! The file of labels that could not be written ([`Notes`]), and the thread that writes it, because the file system of
//! that file may be frozen as well.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
};

use nix::sys::statfs;
use tempfile::NamedTempFile;

use crate::labels::{
    alone,
    note::{MAX_LABELS, Notes},
};

/// The maximum size of the journal, in bytes: each label noted and removed.
const MAX_SIZE: u64 = MAX_LABELS as u64 * 512;

/// What to write.
#[derive(Debug)]
enum Order {
    Append(String),
    Replace(String),
}

/// The file. Orders are written one after the other.
#[derive(Debug)]
pub struct Notebook {
    orders: Sender<Order>,
    done: Receiver<io::Result<()>>,
    /// How many orders were given, and how many of them are done.
    given: u64,
    finished: u64,
    survives: bool,
}

impl Notebook {
    /// Opens the file in a directory, which is created if necessary. Returns the notes, and how many lines cannot be
    /// read.
    pub fn open(folder: &Path) -> io::Result<(Self, Notes, usize)> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join("unwritten");
        let options = File::options().read(true).append(true).create(true).mode(0o600).to_owned();
        let mut file = options.open(&path)?;
        let mut journal = Vec::new();
        Read::by_ref(&mut file).take(MAX_SIZE).read_to_end(&mut journal)?;
        let (notes, refused) = Notes::parse(&journal);
        if journal.last().is_some_and(|byte| *byte != b'\n') {
            // What is added next begins on a line of its own.
            file.write_all(b"\n")?;
        }
        // The file's name must survive a crash.
        let opened = File::open(folder)?;
        opened.sync_all()?;
        let survives = survives(&opened)?;
        let (orders, given) = channel();
        let (tell, done) = channel();
        let (number, (begin, begun)) = (file.as_raw_fd(), channel::<()>());
        alone::spawn("notes", vec![number], move |alone| {
            let _ = begin.send(());
            match alone {
                // SAFETY: it is this thread's copy, and nobody else's.
                Ok(()) => write(unsafe { File::from_raw_fd(number) }, &path, &given, &tell),
                Err(cause) => drop(tell.send(Err(cause))),
            }
        })?;
        // It has its copy by then.
        let _ = begun.recv();
        drop(file);
        Ok((Self { orders, done, given: 0, finished: 0, survives }, notes, refused))
    }

    /// Whether what is noted survives a restart of the machine.
    #[must_use]
    pub fn survives(&self) -> bool {
        self.survives
    }

    /// Adds lines. Returns the number of the order.
    pub fn append(&mut self, lines: String) -> u64 {
        self.order(Order::Append(lines))
    }

    /// Replaces the journal. Returns the number of the order.
    pub fn replace(&mut self, journal: String) -> u64 {
        self.order(Order::Replace(journal))
    }

    fn order(&mut self, order: Order) -> u64 {
        // If the thread has ended, it has reported so.
        let _ = self.orders.send(order);
        self.given += 1;
        self.given
    }

    /// What was done since the last call: the number of an order that is on disk together with all before it, or why it
    /// is not.
    pub fn done(&mut self) -> Option<(u64, io::Result<()>)> {
        let result = self.done.try_recv().ok()?;
        self.finished += 1;
        Some((self.finished, result))
    }

    /// Whether all orders are done or have failed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.given == self.finished
    }
}

/// Whether a directory is on disk, and not in memory only.
fn survives(folder: &File) -> io::Result<bool> {
    // RAMFS_MAGIC of linux/magic.h, which nix does not have.
    const RAMFS_MAGIC: libc::c_long = 0x8584_58f6;
    let kind = statfs::fstatfs(folder)?.filesystem_type();
    Ok(kind != statfs::TMPFS_MAGIC && kind.0 != RAMFS_MAGIC)
}

fn write(mut file: File, path: &Path, orders: &Receiver<Order>, done: &Sender<io::Result<()>>) {
    for order in orders {
        let result = match order {
            Order::Append(lines) => file.write_all(lines.as_bytes()).and_then(|()| file.sync_data()),
            Order::Replace(journal) => replace(path, &journal).map(|fresh| file = fresh),
        };
        if done.send(result).is_err() {
            return;
        }
    }
}

fn replace(path: &Path, journal: &str) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut fresh = NamedTempFile::new_in(folder)?;
    fresh.write_all(journal.as_bytes())?;
    fresh.as_file().sync_all()?;
    fresh.persist(path).map_err(|failure| failure.error)?;
    File::open(folder)?.sync_all()?;
    fs::File::options().append(true).open(path)
}

#[cfg(test)]
mod tests {
    use std::{
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::labels::note::Place;

    const PLACE: Place = Place { uuid: [1; 16], subvolume: 0, inode: 12, generation: 3 };

    #[test]
    fn tells_memory_from_other_file_systems() {
        let survives = |path| survives(&File::open(path).unwrap()).unwrap();
        assert!(!survives("/dev/shm") && survives("/proc"));
    }

    fn wait(notebook: &mut Notebook, number: u64) {
        let until = Instant::now() + Duration::from_secs(20);
        while notebook.finished < number {
            if let Some((_, result)) = notebook.done() {
                result.unwrap();
            }
            assert!(Instant::now() < until, "not written");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn keeps_notes_over_a_line_that_was_torn_and_a_journal_that_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("unwritten");
        fs::write(&path, "+ 0101").unwrap();
        let (mut notebook, mut notes, refused) = Notebook::open(folder.path()).unwrap();
        assert_eq!((notes.len(), refused), (0, 0));
        let line = notes.add(PLACE, "u:object_r:made_t:s0").unwrap();
        let number = notebook.append(line.clone());
        wait(&mut notebook, number);
        let (mut notebook, read, refused) = Notebook::open(folder.path()).unwrap();
        assert_eq!((read.has(PLACE), refused), (true, 1));
        notebook.replace(line);
        let number = notebook.append(notes.remove(PLACE).unwrap());
        wait(&mut notebook, number);
        assert!(notebook.is_idle());
        let (_, read, refused) = Notebook::open(folder.path()).unwrap();
        assert_eq!((read.len(), refused), (0, 0));
    }
}
