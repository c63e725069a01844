//! Reads the JSON log while the daemon writes and renames it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    Entry,
    rotated::numbered,
    sink::{JSON, MAX_RENAMED},
};

/// The maximum length of a line of the log, in bytes.
const MAX_LINE_LENGTH: u64 = 1 << 16;

/// How much later than its time an entry may be written, in milliseconds.
/// An entry that stands for all those of a second is written when the second is over.
const MAX_DELAY_MS: u64 = 5000;

/// Sorts entries by time. Entries that stand for others are written late.
#[derive(Debug, Default)]
pub struct InOrder {
    /// The waiting entries, by time and then by the order in which they came.
    waiting: BTreeMap<(u64, u64), Entry>,
    came: u64,
    newest: u64,
}

impl InOrder {
    /// Takes an entry, and passes to `each` those entries that none can precede any more. Returns whether `each` wants
    /// more.
    pub fn push(&mut self, entry: Entry, mut each: impl FnMut(Entry) -> bool) -> bool {
        self.newest = self.newest.max(entry.time());
        self.came += 1;
        self.waiting.insert((entry.time(), self.came), entry);
        let settled = self.newest.saturating_sub(MAX_DELAY_MS);
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 < settled) {
            if !each(first.remove()) {
                return false;
            }
        }
        true
    }

    /// Passes the rest to `each`.
    pub fn finish(self, mut each: impl FnMut(Entry) -> bool) {
        let _ = self.waiting.into_values().all(&mut each);
    }
}

/// Which entries of the log are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those with this domain, which is the type in the process's context.
    pub domain: Option<String>,
    /// Only those that are not older, in milliseconds since 1970.
    pub since: Option<u64>,
}

impl Filter {
    /// Whether the entry is wanted. Lost events always are, because they may have been of any domain.
    #[must_use]
    pub fn takes(&self, entry: &Entry) -> bool {
        let domain = match (&self.domain, entry) {
            (Some(domain), Entry::Avc(denial)) => denial.domain() == Some(domain),
            _ => true,
        };
        domain && self.since.is_none_or(|since| entry.time() >= since)
    }
}

/// A position in the log, from which reading goes on.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    /// The file that was read last, and how far. It stays open so that its inode number is not used again.
    last: Option<(File, u64)>,
}

impl Log {
    /// Opens the log in `folder` at its oldest entry. Returns an error if there is none.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(JSON);
        File::open(&path)?;
        Ok(Self { path, last: None })
    }

    /// Moves to the end of the log.
    pub fn skip(&mut self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        self.last = Some((file, length));
        Ok(())
    }

    /// Whether the log has been renamed so often that its oldest entries may be gone.
    #[must_use]
    pub fn is_full(&self) -> bool {
        numbered(&self.path, MAX_RENAMED).exists()
    }

    /// Passes each new entry to `each`, oldest first, until it returns false. Returns the number of lines that are not
    /// entries.
    pub fn read(&mut self, mut each: impl FnMut(Entry) -> bool) -> io::Result<u64> {
        let mut garbled = 0;
        for (mut file, from) in self.unread()? {
            let end = lines(&mut file, from, |line| match serde_json::from_slice(line) {
                Ok(entry) => each(entry),
                Err(_) => {
                    garbled += 1;
                    true
                }
            })?;
            self.last = Some((file, end));
        }
        Ok(garbled)
    }

    /// The files with new lines, oldest first, and where the new lines begin in each.
    fn unread(&mut self) -> io::Result<Vec<(File, u64)>> {
        let mut files = Vec::new();
        let last = self.last.take();
        let inode = last.as_ref().map(|(file, _)| Ok::<_, io::Error>(file.metadata()?.ino())).transpose()?;
        for path in
            std::iter::once(self.path.clone()).chain((1..=MAX_RENAMED).map(|number| numbered(&self.path, number)))
        {
            let file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            if Some(file.metadata()?.ino()) == inode {
                break;
            }
            files.push((file, 0));
        }
        files.extend(last);
        files.reverse();
        Ok(files)
    }
}

/// Passes each complete line to `each`. Returns where the incomplete rest begins.
fn lines(file: &mut File, from: u64, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file);
    let (mut at, mut line) = (from, Vec::new());
    loop {
        line.clear();
        let length = reader.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut line)? as u64;
        if line.last() != Some(&b'\n') && length < MAX_LINE_LENGTH {
            return Ok(at);
        }
        at += length;
        if !each(line.strip_suffix(b"\n").unwrap_or(&line)) {
            return Ok(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;
    use crate::{Lost, Reason, rotated::Rotated};

    #[test]
    fn gives_entries_in_the_order_of_their_times() {
        let (mut order, mut given) = (InOrder::default(), Vec::new());
        for time in [1000, 1500, 2900, 1100, 9000, 8000, 8500] {
            order.push(entry(time), |entry| {
                given.push(entry.time());
                true
            });
        }
        assert_eq!(given, [1000, 1100, 1500, 2900]);
        order.finish(|entry| {
            given.push(entry.time());
            true
        });
        assert_eq!(given, [1000, 1100, 1500, 2900, 8000, 8500, 9000]);
        let mut wanted = 0;
        let mut order = InOrder::default();
        let mut one = |_| {
            wanted += 1;
            false
        };
        assert!(order.push(entry(1), &mut one) && order.push(entry(2), &mut one) && !order.push(entry(9000), &mut one));
        order.finish(one);
        assert_eq!(wanted, 2);
    }

    #[test]
    fn keeps_the_order_of_times_at_the_end_of_their_range() {
        let mut order = InOrder::default();
        let mut given = Vec::new();
        for time in [u64::MAX, u64::MAX - MAX_DELAY_MS, u64::MAX - MAX_DELAY_MS - 1] {
            order.push(entry(time), |entry| {
                given.push(u64::MAX - entry.time());
                true
            });
        }
        assert_eq!(given, [MAX_DELAY_MS + 1]);
    }

    fn entry(count: u64) -> Entry {
        Entry::Lost(Lost { time: count, count, reason: Reason::Malformed })
    }

    fn line(count: u64) -> Vec<u8> {
        let mut line = serde_json::to_vec(&entry(count)).unwrap();
        line.push(b'\n');
        line
    }

    fn counts(log: &mut Log) -> (Vec<u64>, u64) {
        let mut counts = Vec::new();
        let garbled = log
            .read(|entry| {
                counts.push(entry.time());
                true
            })
            .unwrap();
        (counts, garbled)
    }

    #[test]
    fn reads_all_files_oldest_first_and_each_line_once_while_they_are_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Rotated::open(folder.path().join(JSON), 3 * line(100).len() as u64, MAX_RENAMED).unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let (mut written, mut read) = (0..1000u64, Vec::new());
        for step in (0..10).cycle() {
            let some: Vec<u64> = written.by_ref().take(step).collect();
            some.iter().for_each(|&count| writer.append(&line(100 + count)).unwrap());
            let (counts, garbled) = counts(&mut log);
            assert_eq!(garbled, 0);
            read.extend(counts);
            if written.is_empty() {
                break;
            }
        }
        assert_eq!(read, (100..1100).collect::<Vec<_>>());
    }

    #[test]
    fn waits_for_the_end_of_a_line_and_skips_what_is_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = File::create(folder.path().join(JSON)).unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let whole = line(7);
        file.write_all(&whole[..10]).unwrap();
        assert_eq!(counts(&mut log), (vec![], 0));
        file.write_all(&whole[10..]).unwrap();
        file.write_all(b"{\"type\":\"avc\"}\n\xff\n").unwrap();
        file.write_all(&vec![b'x'; MAX_LINE_LENGTH as usize + 9]).unwrap();
        file.write_all(b"\n").unwrap();
        file.write_all(&line(8)).unwrap();
        assert_eq!(counts(&mut log), (vec![7, 8], 4));
        assert_eq!(counts(&mut log), (vec![], 0));
    }

    #[test]
    fn skips_to_the_end_and_stops_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(JSON);
        assert_eq!(Log::open(folder.path()).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, [line(1), line(2), line(3)].concat()).unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        let mut seen = Vec::new();
        log.read(|entry| {
            seen.push(entry.time());
            seen.len() < 2
        })
        .unwrap();
        assert_eq!(seen, [1, 2]);
        assert_eq!(counts(&mut log).0, [3]);
        log.skip().unwrap();
        assert_eq!(counts(&mut log).0, [0; 0]);
    }

    #[test]
    fn filters_by_domain_and_time() {
        let mut denial = crate::Denial::new(&Default::default(), 5_000_000, |_| Some("u:r:user_t:s0".into()));
        let filter = |domain: Option<&str>, since| Filter { domain: domain.map(Into::into), since };
        let takes = |filter: Filter, denial: &crate::Denial| filter.takes(&Entry::Avc(denial.clone()));
        assert!(takes(filter(None, None), &denial));
        assert!(takes(filter(Some("user_t"), Some(5)), &denial));
        assert!(!takes(filter(Some("user"), None), &denial));
        assert!(!takes(filter(None, Some(6)), &denial));
        denial.scontext = None;
        assert!(!takes(filter(Some("user_t"), None), &denial));
        assert!(filter(Some("user_t"), None).takes(&entry(1)));
    }
}
