//! The manifest: what a generation consists of, whom it is for, and how far its rollout has come.
//!
//! Each step of a rollout is a manifest with a higher number, so all that protects a generation protects the steps, too.

use std::{fmt, str::FromStr};

use tollgate_policy::built::Section;

use crate::{
    document::{Lines, Text, Wrong, parsed},
    hash::Hash,
    name::Name,
    part::Part,
    stage::{Nodes, Stage},
    time::Time,
};

/// The maximum length of a part, in bytes: that of a built policy's section.
pub const MAX_PART: u64 = 256 << 20;
/// The maximum number of stages.
const MAX_STAGES: usize = 32;

/// A part as a manifest names it: `NAME HASH LENGTH PIECE LENGTH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Which part.
    pub part: Part,
    /// The hash of its content.
    pub hash: Hash,
    /// The length of its content.
    pub length: u64,
    /// The hash of the compressed content, by which the store knows it.
    pub piece: Hash,
    /// The length of the compressed content.
    pub piece_length: u64,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, hash, length, piece, piece_length } = self;
        write!(f, "{part} {hash} {length} {piece} {piece_length}")
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let [part, hash, length, piece, piece_length] = words[..] else {
            return Err("a part has a name, a hash, a length, and hash and length of its piece".to_owned());
        };
        let is_hash = |text: &str| text.parse::<Hash>().map_err(|cause| cause.to_string());
        let is_length = |text: &str| match text.parse::<u64>() {
            Ok(length) if length <= MAX_PART => Ok(length),
            _ => Err(format!("no length of a part: it is at most {MAX_PART}")),
        };
        Ok(Self {
            part: part.parse().map_err(|cause: crate::part::NoPart| cause.to_string())?,
            hash: is_hash(hash)?,
            length: is_length(length)?,
            piece: is_hash(piece)?,
            piece_length: is_length(piece_length)?,
        })
    }
}

/// How far a rollout has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The first so many stages take the generation, 1 at least.
    Open(usize),
    /// Likewise, but a node that has not taken it yet does not.
    Paused(usize),
    /// All nodes take it at once, in the mode of the last stage.
    Emergency,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(stages) => write!(f, "open {stages}"),
            Self::Paused(stages) => write!(f, "paused {stages}"),
            Self::Emergency => f.write_str("emergency"),
        }
    }
}

/// A text that says no progress.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no progress of a rollout: it is `open STAGES`, `paused STAGES` or `emergency`")]
pub struct NoProgress;

impl FromStr for Progress {
    type Err = NoProgress;

    fn from_str(text: &str) -> Result<Self, NoProgress> {
        if text == "emergency" {
            return Ok(Self::Emergency);
        }
        let (word, stages) = text.split_once(' ').ok_or(NoProgress)?;
        let stages = stages.parse().map_err(|_| NoProgress)?;
        match word {
            "open" => Ok(Self::Open(stages)),
            "paused" => Ok(Self::Paused(stages)),
            _ => Err(NoProgress),
        }
    }
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The fleet.
    pub fleet: Name,
    /// The group of nodes that it is for.
    pub group: Name,
    /// The version of the root file whose keys have signed it.
    pub root: u64,
    /// Its number, which grows with each manifest of these keys.
    pub number: u64,
    /// The hash of the manifest before; `None`: there was none.
    pub before: Option<Hash>,
    /// The hash of the manifest whose generation all nodes had when this rollout began; `None`: there was none.
    pub base: Option<Hash>,
    /// When it was made.
    pub made: Time,
    /// Until when a node may take it for the newest. A node goes on afterwards, and says that it is stale.
    pub expires: Time,
    /// What the generation consists of, in the order of [`Part::all`].
    pub parts: Vec<Entry>,
    /// The stages of its rollout. The last is of all nodes.
    pub stages: Vec<Stage>,
    /// How far its rollout has come.
    pub progress: Progress,
}

impl Manifest {
    /// The generation's own hash: of what it consists of, however it was compressed, and wherever its rollout is.
    #[must_use]
    pub fn generation(&self) -> Hash {
        generation(self.parts.iter().map(|entry| (entry.part, entry.hash, entry.length)))
    }

    /// A part.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<&Entry> {
        self.parts.iter().find(|entry| entry.part == part)
    }

    /// The stages that take the generation.
    #[must_use]
    pub fn open(&self) -> &[Stage] {
        match self.progress {
            Progress::Open(stages) | Progress::Paused(stages) => self.stages.get(..stages).unwrap_or(&self.stages),
            Progress::Emergency => self.stages.split_at(self.stages.len().saturating_sub(1)).1,
        }
    }

    /// What is wrong with it as a whole.
    pub fn fault(&self) -> Option<&'static str> {
        let order: Vec<Part> = Part::all().filter(|part| self.part(*part).is_some()).collect();
        let is_ordered = self.parts.iter().map(|entry| entry.part).eq(order);
        let sections = self.parts.iter().filter(|entry| matches!(entry.part, Part::Policy(_))).count();
        // Origin is the one that older formats lack.
        let wanted = if self.part(Part::Policy(Section::Origin)).is_some() { 7 } else { 6 };
        let ends = self.stages.iter().position(Stage::is_everybody) == self.stages.len().checked_sub(1);
        let counted = match self.progress {
            Progress::Open(stages) | Progress::Paused(stages) => (1..=self.stages.len()).contains(&stages),
            Progress::Emergency => true,
        };
        let is_known = |stage: &Stage| !matches!(&stage.nodes, Nodes::Group(name) if *name == self.group);
        match () {
            () if !is_ordered => Some("its parts are twice there, or not in their order"),
            () if sections != wanted => Some("it lacks a section of the policy"),
            () if !ends || self.stages.len() > MAX_STAGES => {
                Some("its last stage, and only the last, must be `share 100`, and there are 32 at most")
            }
            () if !self.stages.iter().all(is_known) => Some("a stage of the group that it is for is `share 100`"),
            () if !counted => Some("its rollout is at a stage that does not exist"),
            () if self.number == 0 || self.root == 0 => Some("numbers begin with 1"),
            () if self.expires <= self.made => Some("it expires before it was made"),
            () => None,
        }
    }
}

/// The hash of a generation of these parts, with their hashes and lengths.
pub(crate) fn generation(parts: impl Iterator<Item = (Part, Hash, u64)>) -> Hash {
    let lines: String = parts.map(|(part, hash, length)| format!("{part} {hash} {length}\n")).collect();
    Hash::of(lines.as_bytes())
}

/// A hash, or `none`.
pub(crate) fn optional(hash: Option<&Hash>) -> String {
    hash.map_or_else(|| "none".to_owned(), Hash::to_string)
}

/// Likewise, read.
pub(crate) fn read_optional(text: &str) -> Result<Option<Hash>, Wrong> {
    if text == "none" { Ok(None) } else { parsed(text).map(Some) }
}

impl Text for Manifest {
    const KIND: &'static str = "manifest";
    const LIMIT: u64 = 1 << 16;

    fn write(&self) -> String {
        let Self { fleet, group, root, number, before, base, made, expires, parts, stages, progress } = self;
        let (before, base) = (optional(before.as_ref()), optional(base.as_ref()));
        let mut text =
            format!("fleet {fleet}\ngroup {group}\nroot {root}\nnumber {number}\nbefore {before}\nbase {base}\n");
        text += &format!("made {made}\nexpires {expires}\n");
        text.extend(parts.iter().map(|entry| format!("part {entry}\n")));
        text.extend(stages.iter().map(|stage| format!("stage {stage}\n")));
        text + &format!("rollout {progress}\n")
    }

    fn read(lines: &mut Lines<'_>) -> Result<Self, Wrong> {
        let (fleet, group) = (lines.parsed("fleet")?, lines.parsed("group")?);
        let (root, number) = (lines.parsed("root")?, lines.parsed("number")?);
        let (before, base) = (read_optional(lines.value("before")?)?, read_optional(lines.value("base")?)?);
        let (made, expires) = (lines.parsed("made")?, lines.parsed("expires")?);
        let (mut parts, mut stages) = (Vec::new(), Vec::new());
        while let Some(entry) = lines.optional("part") {
            parts.push(parsed(entry)?);
        }
        while let Some(stage) = lines.optional("stage") {
            stages.push(parsed(stage)?);
        }
        let progress = lines.parsed("rollout")?;
        let manifest = Self { fleet, group, root, number, before, base, made, expires, parts, stages, progress };
        manifest.fault().map_or(Ok(manifest), |fault| Err(Wrong(fault.to_owned())))
    }
}
