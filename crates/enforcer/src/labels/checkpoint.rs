//! Checkpoints: up to when labels are known to be written, and so which labels a crash may have taken.
//!
//! A hook notes a label, and the daemon writes it to the file's attribute within a second. A crash in between leaves
//! the file but loses the note: nothing says any more that its label was not its directory's. Therefore each file
//! system has a checkpoint, an attribute of its root: labels noted before it are in the files' attributes. A file
//! without an attribute that was made after the checkpoint may have had a label of its own. It is doubtful, and
//! unlabelled from then on. Moving or linking a file changes both the file and its directory, so a file that changed
//! after the checkpoint is doubtful as well if its directory did, too.
//!
//! A directory in which something was made has also changed. So that it does not become doubtful, its label is written
//! to its attribute when that first happens, even if it is the label of its parent directory ([`anchor`]).
//!
//! The policy does not narrow this down, because a rename may have brought any label there.

use std::{ffi::CStr, fmt, io, os::fd::AsFd, str::FromStr};

use crate::labels::{
    handle::Opener,
    identity::Identity,
    object::{Changed, Moment, Object},
    roots,
};

/// The attribute of a file system's root.
const ATTRIBUTE: &CStr = c"security.bpf.tollgate.checkpoint";

/// What happens to a file whose label may have been lost in a crash. The default is `Unlabel`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterCrash {
    /// It gets its directory's label, as any file without an attribute does.
    Keep,
    /// It is unlabelled, and denied to confined domains.
    #[default]
    Unlabel,
}

impl fmt::Display for AfterCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Keep => "keep",
            Self::Unlabel => "unlabel",
        })
    }
}

impl FromStr for AfterCrash {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "keep" => Ok(Self::Keep),
            "unlabel" => Ok(Self::Unlabel),
            _ => Err(format!("what a crash may have taken the label of is not {name:?}: keep or unlabel")),
        }
    }
}

/// Which files without an attribute may have had a label of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubts {
    /// None.
    Nothing,
    /// Files that were made or moved after the file system's checkpoint.
    SinceCheckpoint,
    /// Files that were made or moved after this moment, because no hook noted it.
    Since(Moment),
}

impl From<AfterCrash> for Doubts {
    fn from(chosen: AfterCrash) -> Self {
        match chosen {
            AfterCrash::Keep => Self::Nothing,
            AfterCrash::Unlabel => Self::SinceCheckpoint,
        }
    }
}

const SECOND: Moment = 1_000_000_000;
/// A file gets its time before a hook notes its label. This is the longest time in between.
pub const MARGIN: Moment = 2 * SECOND;
/// How far the clock may have been set back before the next checkpoint.
const DAY: Moment = 86_400 * SECOND;

/// Labels noted before `from` are written. A clock that was set back gives times to new files that older files have
/// already. Files with times up to `settled` are older than the checkpoint, except for those within a day after `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    from: Moment,
    settled: Moment,
}

impl Checkpoint {
    /// A checkpoint, given the one before.
    #[must_use]
    pub fn new(from: Moment, before: Option<Self>) -> Self {
        Self { from, settled: before.map_or(from, |before| before.settled.max(from)) }
    }

    /// Whether its moment is this one.
    #[must_use]
    pub fn is_from(self, moment: Moment) -> bool {
        self.from == moment
    }

    /// Whether labels noted at a moment are written.
    #[must_use]
    pub fn covers(self, moment: Moment) -> bool {
        moment < self.from || (moment < self.settled && moment >= self.from.saturating_add(DAY))
    }

    /// Whether a file without an attribute may have had a label that was noted and not written. `root`: its directory
    /// is the root, which each checkpoint changes. The owner of a file can set the time of its last change, but not the
    /// time when it was made. If that time is not known, everything that has changed in the root is doubtful.
    #[must_use]
    pub fn doubts(self, file: Changed, directory: Changed, root: bool) -> bool {
        let made = file.born.is_some_and(|born| !self.covers(born));
        let in_changed = !self.covers(directory.at) || (root && file.born.is_none());
        made || (!self.covers(file.at) && in_changed)
    }

    /// The checkpoint of a file system's root, if it has one.
    #[must_use]
    pub fn of(root: &Object<'_>) -> Option<Self> {
        Self::parse(&root.attribute_of(ATTRIBUTE).ok()??)
    }

    /// Writes the checkpoint to a file system's root.
    pub fn write(self, root: &Object<'_>) -> io::Result<()> {
        root.set_attribute_of(ATTRIBUTE, &self.text())
    }

    /// Removes the checkpoint: labels are not noted from now on.
    pub fn remove(root: &Object<'_>) -> io::Result<()> {
        root.remove_attribute_of(ATTRIBUTE)
    }

    fn text(self) -> String {
        format!("{} {}", self.from, self.settled)
    }

    fn parse(text: &str) -> Option<Self> {
        let (from, settled) = text.split_once(' ')?;
        Some(Self { from: from.parse().ok()?, settled: settled.parse().ok()? })
    }
}

/// Writes the labels of directories to their attributes, unless they have one. If one cannot be written, the directory
/// is doubtful after a crash; nothing worse happens.
pub fn anchor(device: u32, directories: &[(Identity, String)]) {
    if directories.is_empty() {
        return;
    }
    let Ok(root) = roots::root(device) else { return };
    let opener = Object::new(root.as_fd(), device).ok().and_then(|object| Opener::new(root.as_fd(), object.inode()));
    let Some(opener) = opener else { return };
    for (directory, context) in directories {
        let file = opener.open(*directory);
        let _ = file.and_then(|file| Object::new(file.as_fd(), device)?.set_first_attribute(context));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_becomes_of_lost_labels_as_it_writes_it() {
        for chosen in [AfterCrash::Keep, AfterCrash::Unlabel] {
            assert_eq!(chosen.to_string().parse(), Ok(chosen));
        }
        assert!("".parse::<AfterCrash>().is_err());
    }

    fn at(moment: Moment) -> Changed {
        Changed { at: moment, born: Some(moment) }
    }

    fn old(at: Moment) -> Changed {
        Changed { at, born: Some(0) }
    }

    #[test]
    fn doubts_what_was_made_or_moved_since() {
        let checkpoint = Checkpoint::new(100, None);
        for (file, directory, doubtful) in [
            (at(100), old(100), true),
            (at(99), old(100), false),
            (old(200), old(99), false),
            (old(200), old(150), true),
            // Whatever its directory says: that of a root may be set.
            (at(200), old(99), true),
            (Changed { at: 50, born: Some(200) }, old(99), true),
        ] {
            assert_eq!(checkpoint.doubts(file, directory, false), doubtful, "{file:?} {directory:?}");
        }
    }

    #[test]
    fn doubts_what_was_made_in_a_root_whose_time_was_set_back() {
        let checkpoint = Checkpoint::new(100, None);
        assert!(checkpoint.doubts(at(120), old(50), true));
        assert!(checkpoint.doubts(Changed { at: 120, born: None }, old(50), true));
        // Written to, as a log is.
        assert!(!checkpoint.doubts(old(120), old(50), true));
        assert!(checkpoint.doubts(old(120), old(120), true));
    }

    #[test]
    fn does_not_doubt_all_files_when_the_clock_was_set_back() {
        let before = Checkpoint::new(50 * 365 * DAY, None);
        let back = Checkpoint::new(1000, Some(before));
        assert!(back.covers(999) && !back.covers(1000) && !back.covers(1000 + DAY - 1));
        assert!(back.covers(40 * 365 * DAY));
        // What is made once the clock is right again, before the next checkpoint.
        assert!(!back.covers(50 * 365 * DAY) && !back.covers(51 * 365 * DAY));
        let right = Checkpoint::new(51 * 365 * DAY, Some(back));
        assert!(right.covers(51 * 365 * DAY - 1) && !right.covers(51 * 365 * DAY));
    }

    #[test]
    fn reads_what_it_writes() {
        let checkpoint = Checkpoint::new(-5, Some(Checkpoint::new(7, None)));
        assert_eq!(checkpoint.text(), "-5 7");
        assert_eq!(Checkpoint::parse("-5 7"), Some(checkpoint));
        for other in ["", "7", "a b", "1 2 3"] {
            assert_eq!(Checkpoint::parse(other), None);
        }
    }
}
