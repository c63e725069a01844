//! The generations on a node's disk: a folder each, and a link to the one that shall be in force.
//!
//! The link is replaced at once, so whoever follows it finds all parts of one generation. The one before stays, with a link
//! of its own, for the way back.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{durable, generation::Generation, hash::Hash, part::Part};

/// The names of the links.
const LINK: &str = "current";
const BEFORE: &str = "before";

/// A folder of generations.
#[derive(Debug, Clone)]
pub struct Shelf(PathBuf);

impl Shelf {
    /// The shelf of what a node keeps in this folder.
    #[must_use]
    pub fn of(kept: &Path) -> Self {
        Self(kept.join("generations"))
    }

    /// The folder to which the link leads.
    #[must_use]
    pub fn current(&self) -> PathBuf {
        self.0.join(LINK)
    }

    /// Which generation this is; `None`: there is none yet.
    #[must_use]
    pub fn hash(&self) -> Option<Hash> {
        self.linked(LINK)
    }

    fn linked(&self, name: &str) -> Option<Hash> {
        fs::read_link(self.0.join(name)).ok()?.to_str()?.parse().ok()
    }

    /// The policy of the current generation, of which a next one may reuse parts.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        let policy = fs::read(self.current().join("policy")).ok()?;
        Generation::new(&policy, Vec::new()).ok()
    }

    /// The generation before the current one; `None`: there was none.
    #[must_use]
    pub fn before(&self) -> Option<Hash> {
        self.linked(BEFORE).filter(|before| self.hash() != Some(*before))
    }

    /// Whether a generation is what was written: a disk may have lost parts of it.
    #[must_use]
    pub fn is_whole(&self, hash: Hash) -> bool {
        let folder = self.folder(hash);
        let read = |part: Part| Some((part, fs::read(folder.join(part.to_string())).ok()?));
        let others = [Part::Guard, Part::Network, Part::Sanity].into_iter().filter_map(read).collect();
        let whole = fs::read(folder.join("policy")).ok().and_then(|policy| Generation::new(&policy, others).ok());
        whole.is_some_and(|whole| whole.hash() == hash)
    }

    /// Writes a generation, and makes it the current one.
    pub fn put(&self, hash: Hash, generation: &Generation) -> io::Result<()> {
        self.write(hash, generation)?;
        self.lead(hash)
    }

    /// The folder of a generation, which may not be there.
    #[must_use]
    pub fn folder(&self, hash: Hash) -> PathBuf {
        self.0.join(hash.to_string())
    }

    /// Writes a generation beside the current one.
    pub fn write(&self, hash: Hash, generation: &Generation) -> io::Result<()> {
        let folder = self.folder(hash);
        durable::write(&folder.join("policy"), 0o600, &generation.policy())?;
        for part in [Part::Guard, Part::Network, Part::Sanity] {
            if let Some(content) = generation.part(part) {
                durable::write(&folder.join(part.to_string()), 0o600, content)?;
            }
        }
        // Its folder's name is on the disk before anything leads there.
        self.sync()
    }

    /// Makes a generation that was written the current one.
    pub fn lead(&self, hash: Hash) -> io::Result<()> {
        if self.hash() == Some(hash) {
            return Ok(());
        }
        // In this order: if the power goes in between, both lead to the one before.
        if let Some(before) = self.hash() {
            self.link(BEFORE, before)?;
        }
        self.link(LINK, hash)?;
        self.clear([Some(hash), self.linked(BEFORE)])
    }

    /// Removes what was being written to the generations that are there when whoever wrote was killed, if it is that old.
    pub fn sweep(&self, age: Duration) -> io::Result<usize> {
        let folders = [self.hash(), self.linked(BEFORE)].into_iter().flatten().map(|hash| self.folder(hash));
        folders.map(|folder| durable::sweep(&folder, age)).sum()
    }

    /// Makes the generation before the current one again. If there was none, none is the current one.
    pub fn back(&self) -> io::Result<()> {
        match self.before() {
            Some(before) => self.link(LINK, before),
            None => {
                #[cfg(feature = "cut")]
                durable::cut::change()?;
                fs::remove_file(self.current())?;
                self.sync()
            }
        }
    }

    /// Replaces a link. It is on the disk when this returns.
    fn link(&self, name: &str, hash: Hash) -> io::Result<()> {
        let fresh = self.0.join(".link");
        match fs::remove_file(&fresh) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => symlink(hash.to_string(), &fresh)?,
        }
        #[cfg(feature = "cut")]
        durable::cut::change()?;
        fs::rename(&fresh, self.0.join(name))?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        fs::File::open(&self.0)?.sync_all()
    }

    /// Removes what is neither of these.
    fn clear(&self, stay: [Option<Hash>; 2]) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let hash = entry.file_name().to_str().and_then(|name| name.parse::<Hash>().ok());
            if hash.is_some() && !stay.contains(&hash) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::tests::policy;

    #[test]
    fn replaces_a_generation_as_a_whole_and_keeps_the_one_before() {
        let scratch = tempfile::tempdir().unwrap();
        let shelf = Shelf::of(scratch.path());
        assert_eq!(shelf.hash(), None);
        let generation = |name: &str| Generation::new(&policy(name), vec![(Part::Sanity, b"asked".to_vec())]).unwrap();
        let hashes = ["1", "2", "3"].map(|name| Hash::of(name.as_bytes()));
        for (hash, name) in hashes.into_iter().zip(["one.cil", "two.cil", "three.cil"]) {
            shelf.put(hash, &generation(name)).unwrap();
            assert_eq!(shelf.hash(), Some(hash));
            assert!(fs::read(shelf.current().join("policy")).unwrap() == policy(name));
            assert_eq!(fs::read(shelf.current().join("sanity")).unwrap(), b"asked");
        }
        assert_eq!(shelf.before(), Some(hashes[1]));
        let there = hashes.map(|hash| scratch.path().join(format!("generations/{hash}")).exists());
        assert_eq!(there, [false, true, true]);
        assert_eq!(shelf.generation().map(|generation| generation.policy() == policy("three.cil")), Some(true));
    }

    #[test]
    fn goes_back_once_and_knows_what_a_disk_has_damaged() {
        let scratch = tempfile::tempdir().unwrap();
        let shelf = Shelf::of(scratch.path());
        let generations = ["one.cil", "two.cil"].map(|name| Generation::new(&policy(name), Vec::new()).unwrap());
        let [one, two] = [generations[0].hash(), generations[1].hash()];
        generations.iter().for_each(|generation| shelf.put(generation.hash(), generation).unwrap());
        shelf.back().unwrap();
        assert_eq!((shelf.hash(), shelf.before(), shelf.is_whole(one)), (Some(one), None, true));
        shelf.lead(two).unwrap();
        assert_eq!(shelf.before(), Some(one));
        fs::write(shelf.folder(two).join("policy"), policy("one.cil")).unwrap();
        assert!(!shelf.is_whole(two));
        shelf.back().unwrap();
        shelf.back().unwrap();
        assert_eq!(shelf.hash(), None, "nothing was there before the first");
    }
}
