//! Hashes of paths, by which the kernel finds rules. They have a key that no attacker knows: a path that is made to have the
//! hash of another one would be allowed what that one is.

use tollgate_abi::guard::TG_GUARD_RANDOM;

/// The key of the hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u64; 2]);

impl Secret {
    fn mix(self, hash: u64, word: u64) -> u64 {
        let hash = (hash ^ word).wrapping_mul(self.0[1] | 1);
        hash ^ hash >> 32
    }

    /// One hash for all numbers, as of an empty name.
    fn component(self, name: &[u8]) -> u64 {
        let name = if is_number(name) { &[] } else { name };
        let words = name.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let hash = words.fold(self.0[0], |hash, word| self.mix(hash, word));
        self.mix(hash, name.len() as u64)
    }

    /// The hashes of a path and of all directories above it, from the first one on (`tg_guard_hash_path`).
    pub(crate) fn path(self, path: &[u8]) -> Vec<u64> {
        let mut hash = self.0[0];
        let components = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        let step = |name| {
            hash = self.mix(hash, self.component(name));
            hash
        };
        components.map(step).collect()
    }

    /// The hash of a rule's path, in which [`ANY_NUMBER`] stands for each number.
    pub(crate) fn rule(self, path: &[u8]) -> u64 {
        let components = path.split(|byte| *byte == b'/');
        let numbered: Vec<&[u8]> = components.map(|name| if name == ANY_NUMBER { b"0" } else { name }).collect();
        self.path(&numbered.join(&b'/')).last().copied().unwrap_or_default()
    }
}

/// In a rule's path: any number.
pub(crate) const ANY_NUMBER: &[u8] = b"*";

/// Whether a component is a number, such as that of a process.
pub(crate) fn is_number(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(u8::is_ascii_digit)
}

/// A path without the end that mkstemp(3) makes; `None`: its name is too short, or it is below the root.
pub(crate) fn stem(path: &[u8]) -> Option<&[u8]> {
    let (folder, name) = split(path);
    let is_long = !folder.is_empty() && name.len() > TG_GUARD_RANDOM as usize;
    is_long.then(|| &path[..path.len() - TG_GUARD_RANDOM as usize])
}

/// The directory of an absolute path, and its name there. The root is an empty path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let at = path.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
    (&path[..at], path.get(at + 1..).unwrap_or_default())
}
