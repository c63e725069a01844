//! The option of DSM, the Distributed Security Module of Ericsson Research (2002): a free-form tag of FIPS-188.
//!
//! ```text
//!  0        1        2                                   6        7
//! +--------+--------+--------+--------+--------+--------+--------+--------+
//! |  134   |   20   |          domain 0x10001000        | tag 7  |   14   |
//! +--------+--------+--------+--------+--------+--------+--------+--------+
//!  8        9        10                                  14       15       16
//! +--------+--------+--------+--------+--------+--------+--------+--------+----------
//! | par. 3 |   6    |     security context (ScID)       | par. 6 |   6    | node ...
//! +--------+--------+--------+--------+--------+--------+--------+--------+----------
//! ```
//!
//! Numbers are big endian. The option has no protection: whoever can send packets can claim any context.

use crate::{envelope, error::ReadError, level::Doi};

pub(crate) const FREE_FORM: u8 = 7;

/// DSM's domain of interpretation.
const DOMAIN: Doi = match Doi::new(0x1000_1000) {
    Ok(doi) => doi,
    Err(_) => panic!("this is not 0"),
};
const CONTEXT: u8 = 3;
const NODE: u8 = 6;
/// A parameter's type, its length, and 32 bits.
const PARAMETER: u8 = 6;

/// DSM's label: two numbers that a cluster's security server has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dsm {
    /// The sender's security context (ScID).
    pub context: u32,
    /// The sender's node (SnID).
    pub node: u32,
}

impl Dsm {
    /// Reads exactly one option, with its type and length. Only what DSM sends is taken: the context, then the node.
    ///
    /// # Errors
    ///
    /// Another domain, tag or length; other parameters, or in another order.
    pub fn read(option: &[u8]) -> Result<Self, ReadError> {
        let (doi, tag) = envelope::open(option)?;
        Self::read_tag(doi, tag)
    }

    pub(crate) fn read_tag(doi: Doi, tag: &[u8]) -> Result<Self, ReadError> {
        let &[kind, length, ref body @ ..] = tag else {
            return Err(ReadError::Truncated { needed: 2, have: tag.len() });
        };
        if kind != FREE_FORM {
            return Err(ReadError::TagType { tag: kind });
        }
        if doi != DOMAIN {
            return Err(ReadError::WrongDoi { found: doi.number() });
        }
        match body.as_chunks() {
            ([context, node], []) => Ok(Self { context: parameter(context, CONTEXT)?, node: parameter(node, NODE)? }),
            _ => Err(ReadError::TagLength { tag: kind, length }),
        }
    }

    /// The option: 20 bytes, whole words.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(2 * usize::from(PARAMETER));
        for (kind, value) in [(CONTEXT, self.context), (NODE, self.node)] {
            body.extend([kind, PARAMETER]);
            body.extend(value.to_be_bytes());
        }
        envelope::wrap(DOMAIN, FREE_FORM, &body)
    }
}

fn parameter(&[found, length, a, b, c, d]: &[u8; PARAMETER as usize], expected: u8) -> Result<u32, ReadError> {
    if (found, length) == (expected, PARAMETER) {
        Ok(u32::from_be_bytes([a, b, c, d]))
    } else {
        Err(ReadError::Parameter { found, length, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::Dsm;
    use crate::ReadError;

    /// What dsi_options_fill of DSM's source writes for a socket of context 2 on node 7.
    const KNOWN: [u8; 20] = [134, 20, 0x10, 0, 0x10, 0, 7, 14, 3, 6, 0, 0, 0, 2, 6, 6, 0, 0, 0, 7];

    #[test]
    fn reads_and_writes_the_option_of_dsm() {
        let label = Dsm { context: 2, node: 7 };
        assert_eq!(Dsm::read(&KNOWN), Ok(label));
        assert_eq!(label.write(), KNOWN);
        let highest = Dsm { context: u32::MAX, node: 0x1234_1234 };
        assert_eq!(Dsm::read(&highest.write()), Ok(highest));
    }

    #[test]
    fn refuses_other_domains_tags_and_parameters() {
        let with = |at: usize, value: u8| {
            let mut option = KNOWN;
            option[at] = value;
            Dsm::read(&option)
        };
        assert_eq!(with(0, 130), Err(ReadError::OptionType { found: 130, expected: 134 }));
        assert_eq!(with(1, 21), Err(ReadError::Truncated { needed: 21, have: 20 }));
        assert_eq!(with(2, 0), Err(ReadError::WrongDoi { found: 0x1000 }));
        assert_eq!(with(6, 1), Err(ReadError::TagType { tag: 1 }));
        assert_eq!(with(7, 15), Err(ReadError::TagLength { tag: 7, length: 15 }));
        assert_eq!(with(8, 6), Err(ReadError::Parameter { found: 6, length: 6, expected: 3 }));
        assert_eq!(with(14, 3), Err(ReadError::Parameter { found: 3, length: 6, expected: 6 }));
        assert_eq!(with(15, 2), Err(ReadError::Parameter { found: 6, length: 2, expected: 6 }));
        let short = [134, 14, 0x10, 0, 0x10, 0, 7, 8, 3, 6, 0, 0, 0, 2];
        assert_eq!(Dsm::read(&short), Err(ReadError::TagLength { tag: 7, length: 8 }));
    }
}
