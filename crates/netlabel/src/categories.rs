//! Sets of MLS categories.

use std::{fmt, ops::RangeInclusive};

const WORD: usize = u64::BITS as usize;

/// A set of MLS categories, from c0 to c65535.
///
/// It takes one bit for each category up to the highest, 8 KiB at most. Which categories an option can hold is up to its
/// format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Categories {
    /// Bit n % 64 of word n / 64 is category n. The last word is not 0, so that equal sets are equal.
    words: Vec<u64>,
}

impl Categories {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a category.
    pub fn insert(&mut self, category: u16) {
        self.insert_range(category..=category);
    }

    /// Adds all categories of a range; an empty range adds none.
    pub fn insert_range(&mut self, range: RangeInclusive<u16>) {
        if range.is_empty() {
            return;
        }
        let (low, high) = (usize::from(*range.start()), usize::from(*range.end()));
        if self.words.len() <= high / WORD {
            self.words.resize(high / WORD + 1, 0);
        }
        for (at, word) in self.words.iter_mut().enumerate().take(high / WORD + 1).skip(low / WORD) {
            let from = low.saturating_sub(at * WORD);
            let to = (high - at * WORD).min(WORD - 1);
            *word |= u64::MAX << from & u64::MAX >> (WORD - 1 - to);
        }
    }

    /// Whether a category is in the set.
    #[must_use]
    pub fn contains(&self, category: u16) -> bool {
        let category = usize::from(category);
        self.words.get(category / WORD).is_some_and(|word| word >> (category % WORD) & 1 == 1)
    }

    /// Whether no category is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of categories in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The highest category, if there is any.
    #[must_use]
    pub fn highest(&self) -> Option<u16> {
        let last = self.words.last()?;
        let highest = self.words.len() * WORD - 1 - last.leading_zeros() as usize;
        u16::try_from(highest).ok()
    }

    /// The categories in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        let firsts = (0..=u16::MAX).step_by(WORD);
        self.words.iter().zip(firsts).flat_map(|(word, first)| {
            // Without its lowest bit, again and again.
            let rests = std::iter::successors(Some(*word), |rest| Some(rest & rest.checked_sub(1)?));
            rests.take_while(|rest| *rest != 0).map(move |rest| first + rest.trailing_zeros() as u16)
        })
    }

    /// The set as the fewest ranges, in ascending order. Between two of them at least one category is missing.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u16>> {
        let mut rest = self.iter().peekable();
        std::iter::from_fn(move || {
            let low = rest.next()?;
            let mut high = low;
            while let Some(next) = rest.next_if(|next| *next - 1 == high) {
                high = next;
            }
            Some(low..=high)
        })
    }

    /// Reads a bitmap in which category 0 is the most significant bit of the first byte, as CIPSO's tag 1 and CALIPSO
    /// have it. Categories above 65535 are left out, so callers limit its length.
    pub(crate) fn from_bitmap(bitmap: &[u8]) -> Self {
        let bits = (0..=u16::MAX).take(bitmap.len() * 8);
        bits.filter(|bit| bitmap[usize::from(bit / 8)] << (bit % 8) & 0x80 != 0).collect()
    }

    /// The shortest such bitmap; the empty set's has no bytes.
    pub(crate) fn to_bitmap(&self) -> Vec<u8> {
        let mut bitmap = vec![0; self.highest().map_or(0, |highest| usize::from(highest / 8) + 1)];
        for category in self.iter() {
            bitmap[usize::from(category / 8)] |= 0x80 >> (category % 8);
        }
        bitmap
    }
}

impl FromIterator<u16> for Categories {
    fn from_iter<I: IntoIterator<Item = u16>>(categories: I) -> Self {
        let mut set = Self::new();
        categories.into_iter().for_each(|category| set.insert(category));
        set
    }
}

/// As SELinux writes them: `c0,c2.c5`. The empty set is the empty text.
impl fmt::Display for Categories {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.ranges().enumerate() {
            let (low, high) = (range.start(), range.end());
            let comma = if at == 0 { "" } else { "," };
            match high - low {
                0 => write!(formatter, "{comma}c{low}")?,
                1 => write!(formatter, "{comma}c{low},c{high}")?,
                _ => write!(formatter, "{comma}c{low}.c{high}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Categories;

    #[test]
    fn fills_ranges_across_words_and_to_the_last_category() {
        for range in [0..=0, 63..=64, 5..=200, 64..=127, 65535..=65535, 65000..=65535, 0..=65535] {
            let mut set = Categories::new();
            set.insert_range(range.clone());
            assert!(set.iter().eq(range.clone()), "{range:?}");
            assert!(set.ranges().eq([range.clone()]));
            assert_eq!((set.len(), set.highest()), (range.clone().count(), Some(*range.end())));
        }
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    fn adds_nothing_of_an_empty_range() {
        let mut set = Categories::new();
        set.insert_range(5..=4);
        assert_eq!(set, Categories::new());
        assert_eq!((set.is_empty(), set.len(), set.highest(), set.iter().count()), (true, 0, None, 0));
    }

    #[test]
    fn writes_categories_as_selinux_does() {
        let text = |set: &[u16]| set.iter().copied().collect::<Categories>().to_string();
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[1, 0]), "c0,c1");
        assert_eq!(text(&[0, 1, 2, 3, 7, 9, 10]), "c0.c3,c7,c9,c10");
    }

    #[test]
    fn reads_the_most_significant_bit_first() {
        let set = Categories::from_bitmap(&[0xc0, 0, 1, 0]);
        assert!(set.iter().eq([0, 1, 23]));
        assert_eq!(set.to_bitmap(), [0xc0, 0, 1]);
        assert_eq!(Categories::from_bitmap(&[0; 30]), Categories::new());
        assert_eq!(Categories::new().to_bitmap(), [0_u8; 0]);
    }
}
