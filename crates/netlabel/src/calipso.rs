//! CALIPSO (RFC 5570): a level in a hop-by-hop option of IPv6, as Linux has it (net/ipv6/calipso.c).
//!
//! ```text
//!  0        1        2                                   6        7        8                 10
//! +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+----------
//! | type 7 | length |     domain of interpretation      | words  | sensi- |     CRC-16      | bitmap
//! |        | of data|            (big endian)           |        | tivity | (little endian) |
//! +--------+--------+--------+--------+--------+--------+--------+--------+--------+--------+----------
//! ```
//!
//! The bitmap has `words` words of 32 bits; category 0 is the most significant bit of its first byte. The option begins at
//! byte 4n + 2 of its header.
//!
//! Options that `ipv6_hop_calipso` and `calipso_validate` take are taken, but for these: domain 0, which no machine can
//! configure; and bytes behind the bitmap, which nobody would read.

use crate::{
    categories::Categories,
    error::{ReadError, WriteError},
    ipv6::{self, CALIPSO},
    level::{Doi, Level},
};

/// Bytes of data before the bitmap.
const HEADER: usize = 8;
/// The most words of the bitmap: 252 bytes of data, `CALIPSO_OPT_LEN_MAX` with type and length.
const WORDS: u16 = 61;
const HIGHEST: u16 = WORDS * 32 - 1;

/// A CALIPSO option.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Calipso {
    /// Whose numbers the level has.
    pub doi: Doi,
    /// The level. The highest category of this format is 1951.
    pub level: Level,
}

impl Calipso {
    /// Reads exactly one option, with its type and length.
    ///
    /// # Errors
    ///
    /// What the module's documentation says, with what is wrong.
    pub fn read(option: &[u8]) -> Result<Self, ReadError> {
        let (length, data) = ipv6::data(option, CALIPSO)?;
        let bad = ReadError::OptionLength { kind: CALIPSO, length };
        let (head, bitmap) = data.split_first_chunk::<HEADER>().ok_or(bad)?;
        let [a, b, c, d, words, sensitivity, low, high] = *head;
        if bitmap.len() != usize::from(words) * 4 {
            return Err(ReadError::Compartments { words, length });
        }
        let (found, computed) = (u16::from_le_bytes([low, high]), checksum(option));
        if found != computed {
            return Err(ReadError::Checksum { found, computed });
        }
        let doi = Doi::new(u32::from_be_bytes([a, b, c, d]))?;
        Ok(Self { doi, level: Level { sensitivity, categories: Categories::from_bitmap(bitmap) } })
    }

    /// The option with the shortest bitmap of whole words, as NetLabel sends it (`calipso_genopt`).
    /// [`ipv6::header`] makes a header of it.
    ///
    /// # Errors
    ///
    /// If a category is above 1951.
    pub fn write(&self) -> Result<Vec<u8>, WriteError> {
        if let Some(category) = self.level.categories.highest().filter(|category| *category > HIGHEST) {
            return Err(WriteError::Category { category, highest: HIGHEST });
        }
        let mut bitmap = self.level.categories.to_bitmap();
        bitmap.resize(bitmap.len().next_multiple_of(4), 0);
        let mut option = vec![CALIPSO, (HEADER + bitmap.len()) as u8];
        option.extend(self.doi.number().to_be_bytes());
        option.extend([(bitmap.len() / 4) as u8, self.level.sensitivity, 0, 0]);
        option.extend(bitmap);
        let checksum = checksum(&option).to_le_bytes();
        option[HEADER..HEADER + 2].copy_from_slice(&checksum);
        Ok(option)
    }
}

/// The CRC-16 of RFC 1662 (`crc_ccitt` of the kernel, complemented) over the option, its own two bytes taken as 0.
fn checksum(option: &[u8]) -> u16 {
    let bytes = option.iter().enumerate();
    crc(bytes.map(|(at, byte)| if (HEADER..HEADER + 2).contains(&at) { 0 } else { *byte }))
}

fn crc(bytes: impl Iterator<Item = u8>) -> u16 {
    const POLYNOMIAL: u16 = 0x8408;
    let register = bytes.fold(0xffff_u16, |register, byte| {
        (0..8).fold(register ^ u16::from(byte), |register, _| {
            (register >> 1) ^ if register & 1 == 1 { POLYNOMIAL } else { 0 }
        })
    });
    !register
}

#[cfg(test)]
mod tests {
    use super::{Calipso, crc};
    use crate::{Doi, Level, ReadError, WriteError};

    fn calipso(level: Level) -> Calipso {
        Calipso { doi: Doi::new(1).unwrap(), level }
    }

    #[test]
    fn computes_the_published_check_value_of_the_crc() {
        // CRC-16/IBM-SDLC of the catalogue of parametrised CRC algorithms.
        assert_eq!(crc(b"123456789".iter().copied()), 0x906e);
    }

    #[test]
    fn writes_whole_words_and_only_those_that_are_needed() {
        assert_eq!(calipso(Level::new(3, [0, 1])).write().unwrap()[..8], [7, 12, 0, 0, 0, 1, 1, 3]);
        assert_eq!(calipso(Level::new(3, [0, 1])).write().unwrap()[10..], [0xc0, 0, 0, 0]);
        assert_eq!(calipso(Level::new(9, [])).write().unwrap()[..8], [7, 8, 0, 0, 0, 1, 0, 9]);
        assert_eq!(calipso(Level::new(0, [32])).write().unwrap()[10..], [0, 0, 0, 0, 0x80, 0, 0, 0]);
    }

    #[test]
    fn reads_the_highest_category_and_refuses_to_write_a_higher_one() {
        let highest = calipso(Level::new(255, [1951]));
        let option = highest.write().unwrap();
        assert_eq!((option.len(), Calipso::read(&option)), (254, Ok(highest)));
        let error = WriteError::Category { category: 1952, highest: 1951 };
        assert_eq!(calipso(Level::new(0, [1952])).write(), Err(error));
    }

    #[test]
    fn reads_trailing_words_that_are_zero() {
        // The checksum is recomputed by the kernel's rule: over the option with 0 in its place.
        let mut option = vec![7, 16, 0, 0, 0, 1, 2, 3, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0];
        let checksum = crc(option.iter().copied()).to_le_bytes();
        option[8..10].copy_from_slice(&checksum);
        assert_eq!(Calipso::read(&option), Ok(calipso(Level::new(3, [0, 1]))));
    }

    #[test]
    fn refuses_wrong_lengths_bitmaps_checksums_and_domain_0() {
        let good = calipso(Level::new(3, [0, 1])).write().unwrap();
        let with = |at: usize, value: u8| {
            let mut option = good.clone();
            option[at] = value;
            Calipso::read(&option)
        };
        assert_eq!(with(0, 5), Err(ReadError::OptionType { found: 5, expected: 7 }));
        assert_eq!(with(1, 13), Err(ReadError::Truncated { needed: 15, have: 14 }));
        assert_eq!(with(1, 11), Err(ReadError::OptionLength { kind: 7, length: 11 }));
        assert_eq!(with(6, 0), Err(ReadError::Compartments { words: 0, length: 12 }));
        assert_eq!(with(6, 2), Err(ReadError::Compartments { words: 2, length: 12 }));
        assert!(matches!(with(7, 4), Err(ReadError::Checksum { .. })));
        assert!(matches!(with(8, !good[8]), Err(ReadError::Checksum { .. })));
        assert_eq!(Calipso::read(&[7, 7, 0, 0, 0, 1, 0, 3, 0]), Err(ReadError::OptionLength { kind: 7, length: 7 }));
        let mut reserved = vec![7, 8, 0, 0, 0, 0, 0, 3, 0, 0];
        let checksum = crc(reserved.iter().copied()).to_le_bytes();
        reserved[8..].copy_from_slice(&checksum);
        assert_eq!(Calipso::read(&reserved), Err(ReadError::ReservedDoi));
    }
}
