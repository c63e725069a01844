//! From a policy to the pieces of a generation, and back.

use std::{collections::BTreeMap, io, io::Read};

use ruzstd::decoding::StreamingDecoder;
use tollgate_policy::built::{self, BuiltError};

use crate::{
    hash::Hash,
    manifest::{self, Entry, MAX_PART},
    part::Part,
    store::{Store, StoreError},
};

/// What a generation consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    parts: Vec<(Part, Vec<u8>)>,
}

/// Compressed contents by their hash.
pub type Pieces = BTreeMap<Hash, Vec<u8>>;

/// Why something is no generation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// The policy is none.
    #[error(transparent)]
    Policy(#[from] BuiltError),
    /// A part is longer than it may be.
    #[error("the part {0} is longer than {MAX_PART} bytes, which no node takes: make it smaller")]
    Long(Part),
    /// It could not be compressed.
    #[error("cannot compress the part {part}: {cause}")]
    Compress {
        /// Which part.
        part: Part,
        /// Why.
        cause: io::Error,
    },
    /// A piece could not be fetched.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A piece is another one than the manifest names.
    #[error("the piece of the part {0} is not the one that the manifest names: look who has written into the store")]
    Piece(Part),
    /// A piece has not the content that the manifest names.
    #[error("the part {0} is not the one that the manifest names: publish again")]
    Content(Part),
}

impl Generation {
    /// The generation of a built policy, and of what comes with it.
    pub fn new(policy: &[u8], others: Vec<(Part, Vec<u8>)>) -> Result<Self, GenerationError> {
        let sections = built::split(policy)?.into_iter();
        let mut parts: Vec<_> = sections.map(|(section, content)| (Part::Policy(section), content.to_vec())).collect();
        parts.extend(Part::all().filter_map(|part| others.iter().find(|(other, _)| *other == part).cloned()));
        match parts.iter().find(|(_, content)| content.len() as u64 > MAX_PART) {
            Some((part, _)) => Err(GenerationError::Long(*part)),
            None => Ok(Self { parts }),
        }
    }

    /// The file of the built policy.
    #[must_use]
    pub fn policy(&self) -> Vec<u8> {
        let is_section = |(part, _): &&(Part, Vec<u8>)| matches!(part, Part::Policy(_));
        let contents: Vec<&[u8]> = self.parts.iter().filter(is_section).map(|(_, content)| &content[..]).collect();
        built::join(&contents)
    }

    /// A part.
    #[must_use]
    pub fn part(&self, part: Part) -> Option<&[u8]> {
        self.parts.iter().find(|(own, _)| *own == part).map(|(_, content)| &content[..])
    }

    /// Its hash, as a manifest has it ([`crate::Manifest::generation`]).
    #[must_use]
    pub fn hash(&self) -> Hash {
        manifest::generation(self.parts.iter().map(|(part, content)| (*part, Hash::of(content), content.len() as u64)))
    }

    /// Its parts as a manifest names them, and its pieces. `compress` writes a frame of zstd.
    pub fn pack(
        &self,
        compress: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<(Vec<Entry>, Pieces), GenerationError> {
        let (mut entries, mut pieces) = (Vec::new(), Pieces::new());
        for (part, content) in &self.parts {
            let part = *part;
            let bytes = compress(content).map_err(|cause| GenerationError::Compress { part, cause })?;
            let (hash, length, piece) = (Hash::of(content), content.len() as u64, Hash::of(&bytes));
            entries.push(Entry { part, hash, length, piece, piece_length: bytes.len() as u64 });
            pieces.insert(piece, bytes);
        }
        Ok((entries, pieces))
    }

    /// Fetches these parts, but for those that another generation has: all of them, or an error.
    pub async fn fetch(store: &impl Store, entries: &[Entry], other: Option<&Self>) -> Result<Self, GenerationError> {
        let mut parts = Vec::new();
        for entry in entries {
            let own = other.and_then(|other| other.part(entry.part)).filter(|content| Hash::of(content) == entry.hash);
            let content = match own {
                Some(content) => content.to_vec(),
                None => unpack(entry, &store.piece(&entry.piece, entry.piece_length).await?)?,
            };
            parts.push((entry.part, content));
        }
        Ok(Self { parts })
    }

    /// Whether these parts are what a manifest names, and nothing else.
    #[must_use]
    pub fn is(&self, entries: &[Entry]) -> bool {
        let named = entries.iter().map(|entry| (entry.part, entry.hash));
        self.parts.iter().map(|(part, content)| (*part, Hash::of(content))).eq(named)
    }
}

/// The content of a piece, which may be anyone's bytes. No decoder sees them unless they are those that the manifest
/// names, and it writes no more than the manifest says.
fn unpack(entry: &Entry, piece: &[u8]) -> Result<Vec<u8>, GenerationError> {
    if piece.len() as u64 != entry.piece_length || Hash::of(piece) != entry.piece {
        return Err(GenerationError::Piece(entry.part));
    }
    let wrong = || GenerationError::Content(entry.part);
    let mut content = Vec::new();
    let decoder = StreamingDecoder::new(piece).map_err(|_| wrong())?;
    decoder.take(entry.length + 1).read_to_end(&mut content).map_err(|_| wrong())?;
    if content.len() as u64 == entry.length && Hash::of(&content) == entry.hash { Ok(content) } else { Err(wrong()) }
}

#[cfg(test)]
pub(crate) mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use tollgate_policy::{
        built::Built,
        sepol::{self, CilFile, Options},
    };

    use super::*;
    use crate::{folder::Folder, suite::now};

    /// A built policy, which differs by the name of its source.
    pub(crate) fn policy(name: &str) -> Vec<u8> {
        let text = include_bytes!("../../policy/src/dump/everything.cil").to_vec();
        let file = CilFile { name: name.into(), text };
        Built::from_compiled(sepol::compile(&[file], &Options::default()).unwrap()).unwrap().to_bytes()
    }

    pub(crate) fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
        Ok(compress_to_vec(content, CompressionLevel::Fastest))
    }

    fn generation() -> Generation {
        let others = vec![(Part::Sanity, b"a\tb\tc\td\n".to_vec()), (Part::Guard, b"TGGUARD\0".to_vec())];
        Generation::new(&policy("one.cil"), others).unwrap()
    }

    /// Packs it into a store.
    fn stored(generation: &Generation) -> (tempfile::TempDir, Folder, Vec<Entry>) {
        let scratch = tempfile::tempdir().unwrap();
        let store = Folder::new(scratch.path());
        let (entries, pieces) = generation.pack(compress).unwrap();
        pieces.iter().for_each(|(hash, bytes)| now(store.put_piece(hash, bytes)).unwrap());
        (scratch, store, entries)
    }

    #[test]
    fn gives_back_a_policy_byte_by_byte_and_what_came_with_it() {
        let generation = generation();
        let (_scratch, store, entries) = stored(&generation);
        let names: Vec<String> = entries.iter().map(|entry| entry.part.to_string()).collect();
        assert_eq!(names[6..], ["origin", "guard", "sanity"], "in their order");
        let fetched = now(Generation::fetch(&store, &entries, None)).unwrap();
        assert!(fetched.policy() == policy("one.cil") && fetched == generation && fetched.is(&entries));
        assert_eq!(fetched.part(Part::Guard), Some(&b"TGGUARD\0"[..]));
        assert!(!fetched.is(&entries[1..]));
    }

    #[test]
    fn fetches_only_what_another_generation_lacks() {
        let next = Generation::new(&policy("two.cil"), Vec::new()).unwrap();
        let (scratch, store, entries) = stored(&next);
        let same = |entry: &&Entry| generation().part(entry.part).is_some_and(|own| Hash::of(own) == entry.hash);
        let shared: Vec<&Entry> = entries.iter().filter(same).collect();
        assert!(shared.len() >= 3 && shared.len() < entries.len(), "{shared:?}");
        shared
            .iter()
            .for_each(|entry| drop(std::fs::remove_file(scratch.path().join(format!("pieces/{}", entry.piece)))));
        assert!(matches!(now(Generation::fetch(&store, &entries, None)), Err(GenerationError::Store(_))));
        assert_eq!(now(Generation::fetch(&store, &entries, Some(&generation()))).unwrap(), next);
    }

    #[test]
    fn refuses_a_piece_that_was_swapped_cut_or_changed() {
        let (scratch, store, entries) = stored(&generation());
        let path = |entry: &Entry| scratch.path().join(format!("pieces/{}", entry.piece));
        let good = std::fs::read(path(&entries[1])).unwrap();
        let other = std::fs::read(path(&entries[2])).unwrap();
        let mut flipped = good.clone();
        flipped[good.len() / 2] ^= 1;
        for bad in [&other[..], &good[..good.len() - 1], &[], &flipped, &[&good[..], b"x"].concat()] {
            std::fs::write(path(&entries[1]), bad).unwrap();
            let error = now(Generation::fetch(&store, &entries, None)).unwrap_err();
            assert!(
                matches!(error, GenerationError::Piece(_) | GenerationError::Store(StoreError::Long { .. })),
                "{error}"
            );
        }
    }

    #[test]
    fn refuses_a_piece_that_unpacks_to_more_or_to_something_else() {
        let bomb = vec![0; 4 << 20];
        let piece = compress(&bomb).unwrap();
        let entry = |content: &[u8], length: usize| Entry {
            part: Part::Guard,
            hash: Hash::of(content),
            length: length as u64,
            piece: Hash::of(&piece),
            piece_length: piece.len() as u64,
        };
        assert!(unpack(&entry(&bomb, bomb.len()), &piece).unwrap() == bomb);
        for wrong in
            [entry(&bomb, 100), entry(&bomb[..100], 100), entry(&bomb, bomb.len() + 1), entry(b"x", bomb.len())]
        {
            assert!(matches!(unpack(&wrong, &piece), Err(GenerationError::Content(Part::Guard))));
        }
        let junk = Entry { piece: Hash::of(b"no zstd"), piece_length: 7, ..entry(&bomb, 100) };
        assert!(matches!(unpack(&junk, b"no zstd"), Err(GenerationError::Content(Part::Guard))));
    }
}
