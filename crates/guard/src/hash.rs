//! Hashes of paths, by which the kernel finds rules. They have a key that no attacker knows: a path that is made to have the
//! hash of another one would be allowed what that one is.

/// The key of the hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u64; 2]);

impl Secret {
    fn mix(self, hash: u64, word: u64) -> u64 {
        let hash = (hash ^ word).wrapping_mul(self.0[1] | 1);
        hash ^ hash >> 32
    }

    fn component(self, name: &[u8]) -> u64 {
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
}
