//! Numbers of contexts in sealed labels: the same on all machines of a cluster, whichever of them met a context first.

use sha2::{Digest, Sha256};

/// The identifier of a context: the first four bytes of the SHA-256 of its text. It is never 0, which says that a context
/// has none. Two contexts with one identifier are so rare that the second one is refused a label.
#[must_use]
pub fn of(context: &str) -> u32 {
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(context).into();
    u32::from_be_bytes([a, b, c, d]).max(1)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn gives_the_same_number_on_each_machine() {
        // From sha256sum of coreutils.
        assert_eq!(of("u:r:t:s0"), SHA256_OF_IT);
        assert_ne!(of("u:r:t:s0"), of("u:r:t:s1"));
    }

    const SHA256_OF_IT: u32 = 0x8cddcdc8;
}
