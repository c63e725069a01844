//! The note of labels that could not be written to their files. It survives a restart of the machine.
//!
//! A note is a journal of lines `+ UUID SUBVOLUME INODE GENERATION CONTEXT` and `- UUID SUBVOLUME INODE GENERATION`.
//! Anything after the last newline was cut off by a crash, and is ignored.

use std::{collections::BTreeMap, fmt::Write};

use crate::labels::identity::Identity;

/// UUID of a file system, wherever it is mounted; zeros: it has none.
pub type Uuid = [u8; 16];

/// The maximum number of labels in a note: as many as the map of durable labels has.
pub const MAX_LABELS: usize = 1 << 20;
/// The maximum length of a context, in bytes. SELinux's limit is a page.
const MAX_CONTEXT_LENGTH: usize = 4096;

/// What identifies a file wherever its file system is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file system.
    pub uuid: Uuid,
    /// On btrfs the number of the subvolume; else 0.
    pub subvolume: u64,
    /// Inode number.
    pub inode: u64,
    /// Generation of the inode number, which differs between the files that have had this number.
    pub generation: u32,
}

impl Place {
    /// The place of a file on a file system.
    #[must_use]
    pub fn of(uuid: Uuid, file: Identity) -> Self {
        let Identity { device: _, inode, subvolume, generation } = file;
        Self { uuid, subvolume, inode, generation }
    }

    /// The identity of the file while its file system is mounted as `device`.
    #[must_use]
    pub fn at(self, device: u32) -> Identity {
        let Self { uuid: _, subvolume, inode, generation } = self;
        Identity { device, inode, subvolume, generation }
    }

    fn text(self) -> String {
        let uuid = self.uuid.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        format!("{uuid} {} {} {}", self.subvolume, self.inode, self.generation)
    }

    fn parse<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Self> {
        let uuid = words.next().filter(|text| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        Some(Self {
            uuid: u128::from_str_radix(uuid, 16).ok()?.to_be_bytes(),
            subvolume: words.next()?.parse().ok()?,
            inode: words.next()?.parse().ok()?,
            generation: words.next()?.parse().ok()?,
        })
    }
}

/// The labels that are noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    labels: BTreeMap<Place, String>,
    /// Number of lines of the journal, including those that are out of date.
    lines: usize,
}

impl Notes {
    /// Reads a journal. Returns the notes, and how many lines cannot be read.
    #[must_use]
    pub fn parse(journal: &[u8]) -> (Self, usize) {
        let (mut notes, mut refused) = (Self::default(), 0);
        let whole = journal.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in journal[..whole].split_inclusive(|byte| *byte == b'\n') {
            notes.lines += 1;
            let line = std::str::from_utf8(&line[..line.len() - 1]).ok();
            refused += usize::from(line.and_then(|line| notes.read(line)).is_none());
        }
        (notes, refused)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let sign = words.next()?;
        let place = Place::parse(&mut words)?;
        match (sign, words.next(), words.next()) {
            ("-", None, None) => drop(self.labels.remove(&place)),
            ("+", Some(context), None) if is_context(context) => {
                if self.is_full_for(place) {
                    return None;
                }
                self.labels.insert(place, context.to_owned());
            }
            _ => return None,
        }
        Some(())
    }

    fn is_full_for(&self, place: Place) -> bool {
        self.labels.len() >= MAX_LABELS && !self.labels.contains_key(&place)
    }

    /// Notes a label, and returns the line to add to the journal; `None`: there is no room, or it is not a context.
    pub fn add(&mut self, place: Place, context: &str) -> Option<String> {
        if !is_context(context) || self.is_full_for(place) {
            return None;
        }
        self.labels.insert(place, context.to_owned());
        self.lines += 1;
        Some(added(place, context))
    }

    /// Removes a label, and returns the line to add to the journal; `None`: it is not noted.
    pub fn remove(&mut self, place: Place) -> Option<String> {
        self.labels.remove(&place)?;
        self.lines += 1;
        Some(format!("- {}\n", place.text()))
    }

    /// Whether a label is noted for a place.
    #[must_use]
    pub fn has(&self, place: Place) -> bool {
        self.labels.contains_key(&place)
    }

    /// All labels that are noted.
    pub fn all(&self) -> impl Iterator<Item = (Place, &str)> {
        self.labels.iter().map(|(place, context)| (*place, context.as_str()))
    }

    /// Number of labels that are noted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether no label is noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// A new journal with the current labels only.
    pub fn journal(&mut self) -> String {
        self.lines = self.labels.len();
        self.labels.iter().map(|(place, context)| added(*place, context)).collect()
    }

    /// A shorter journal with the same labels, if most lines of the present one are out of date.
    pub fn compacted(&mut self) -> Option<String> {
        const MIN_LINES: usize = 1024;
        if self.lines < MIN_LINES || self.lines / 2 < self.labels.len() {
            return None;
        }
        Some(self.journal())
    }
}

fn added(place: Place, context: &str) -> String {
    format!("+ {} {context}\n", place.text())
}

/// Whether a text may be a context, and is one word.
fn is_context(text: &str) -> bool {
    text.len() <= MAX_CONTEXT_LENGTH
        && text.matches(':').count() >= 2
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: &str = "u:object_r:made_t:s0:c1,c2";

    fn place(uuid: u8, inode: u64) -> Place {
        Place { uuid: [uuid; 16], subvolume: 0, inode, generation: 7 }
    }

    #[test]
    fn reads_back_what_it_notes_and_what_it_forgets() {
        let mut notes = Notes::default();
        let mut journal = String::new();
        journal.extend(notes.add(place(0xab, 12), MADE));
        journal.extend(notes.add(place(0xab, 13), "u:object_r:other_t:s0"));
        journal.extend(notes.add(place(0xcd, 12), MADE));
        journal.extend(notes.remove(place(0xab, 13)));
        assert_eq!(notes.remove(place(0xab, 13)), None, "it is forgotten once");
        let (read, refused) = Notes::parse(journal.as_bytes());
        assert_eq!((&read, refused), (&notes, 0));
        assert_eq!(read.all().collect::<Vec<_>>(), [(place(0xab, 12), MADE), (place(0xcd, 12), MADE)]);
        assert!(read.has(place(0xcd, 12)) && !read.has(place(0xcd, 13)));
    }

    #[test]
    fn ignores_a_line_that_was_torn() {
        let mut notes = Notes::default();
        let mut journal = notes.add(place(1, 1), MADE).unwrap();
        journal += &notes.add(place(1, 2), MADE).unwrap();
        for cut in journal.len() / 2..journal.len() {
            let (read, refused) = Notes::parse(&journal.as_bytes()[..cut]);
            assert_eq!((read.len(), refused), (1, 0), "{cut}");
        }
    }

    #[test]
    fn refuses_lines_that_are_no_notes() {
        let good = added(place(1, 1), MADE);
        for line in [
            "",
            "+",
            "x 01010101010101010101010101010101 0 1 7",
            "+ 01010101010101010101010101010101 0 1 7",
            "+ 01010101010101010101010101010101 0 1 7 made_t",
            "+ 01010101010101010101010101010101 0 1 7 u:r:t more",
            "+ 01010101010101010101010101010101 0 1 7 u:r:t\tmore",
            "+ 0101 0 1 7 u:r:t",
            "+ +1010101010101010101010101010101 0 1 7 u:r:t",
            "+ 01010101010101010101010101010101 0 99999999999999999999 7 u:r:t",
            "- 01010101010101010101010101010101 0 1 7 u:r:t",
        ] {
            let (read, refused) = Notes::parse(format!("{line}\n{good}").as_bytes());
            assert_eq!((read.len(), refused), (1, 1), "{line}");
        }
        let long = format!("u:object_r:{}", "x".repeat(MAX_CONTEXT_LENGTH));
        assert_eq!(Notes::default().add(place(1, 1), &long), None);
        assert_eq!(Notes::parse(b"\xff\xfe\n"), (Notes { lines: 1, ..Notes::default() }, 1));
    }

    #[test]
    fn writes_a_journal_anew_when_most_of_it_no_longer_holds() {
        let mut notes = Notes::default();
        for inode in 0..2000 {
            notes.add(place(1, inode), MADE);
        }
        assert_eq!(notes.compacted(), None);
        for inode in 1..2000 {
            notes.remove(place(1, inode));
        }
        let compacted = notes.compacted().unwrap();
        assert_eq!(compacted, added(place(1, 0), MADE));
        assert_eq!((Notes::parse(compacted.as_bytes()).0, notes.compacted()), (notes, None));
    }
}
