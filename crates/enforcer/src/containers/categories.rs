//! Pairs of categories. Two containers whose pairs differ dominate each other in neither direction, so the policy keeps
//! them apart. There are 523,776 pairs of 1,024 categories.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// How many categories a policy has, as SELinux's policies do.
const CATEGORIES: u16 = 1024;
/// How many pairs there are.
const PAIRS: u32 = CATEGORIES as u32 * (CATEGORIES as u32 - 1) / 2;
/// From how many pairs the next one is taken. Each pair that was ever given keeps a SID and a level until enforcement
/// ends, of which there are few; but a pair that was just given back is given to nobody for a while.
const WINDOW: u32 = 1024;

/// Two categories of which the first is the lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    low: u16,
    high: u16,
}

impl Pair {
    /// The pairs in an order: (0, 1), (0, 2), (1, 2), (0, 3), ...
    fn numbered(number: u32) -> Self {
        let (mut high, mut rest) = (1, number);
        while rest >= high {
            rest -= high;
            high += 1;
        }
        Self { low: rest as u16, high: high as u16 }
    }

    fn number(self) -> u32 {
        let high = u32::from(self.high);
        high * (high - 1) / 2 + u32::from(self.low)
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{},c{}", self.low, self.high)
    }
}

/// A text that is not two categories.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not two categories, such as c1,c2")]
pub struct NotAPair;

impl FromStr for Pair {
    type Err = NotAPair;

    fn from_str(text: &str) -> Result<Self, NotAPair> {
        let number = |text: &str| text.strip_prefix('c').and_then(|number| number.parse::<u16>().ok());
        let (one, other) = text.split_once(',').ok_or(NotAPair)?;
        let (one, other) = number(one).zip(number(other)).ok_or(NotAPair)?;
        let (low, high) = (one.min(other), one.max(other));
        if low < high && high < CATEGORIES { Ok(Self { low, high }) } else { Err(NotAPair) }
    }
}

/// A pair that is not taken, the next one after that which was given last; `None`: all are taken.
#[must_use]
pub fn free(last: Option<Pair>, taken: &BTreeSet<Pair>) -> Option<Pair> {
    let window = WINDOW.max(taken.len() as u32 * 2).min(PAIRS);
    let begin = last.map_or(0, |last| last.number() + 1);
    (0..window).map(|step| Pair::numbered((begin + step) % window)).find(|pair| !taken.contains(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_each_pair_once() {
        let all: BTreeSet<Pair> = (0..PAIRS).step_by(7).map(Pair::numbered).collect();
        assert_eq!(all.len() as u32, PAIRS.div_ceil(7));
        assert!(all.iter().all(|pair| pair.low < pair.high && pair.high < CATEGORIES));
        assert!([0, 1, 1000, PAIRS - 1].iter().all(|number| Pair::numbered(*number).number() == *number));
        assert_eq!(Pair::numbered(PAIRS - 1).to_string(), "c1022,c1023");
    }

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        assert_eq!("c2,c1".parse::<Pair>().map(|pair| pair.to_string()), Ok("c1,c2".to_owned()));
        for wrong in ["c1", "c1,c1", "c1,c1024", "c1.c3", "c1,c2,c3", "1,2", ""] {
            assert_eq!(wrong.parse::<Pair>(), Err(NotAPair), "{wrong}");
        }
    }

    #[test]
    fn gives_no_pair_twice_and_each_again_only_after_the_others() {
        let (mut taken, mut last) = (BTreeSet::new(), None);
        for _ in 0..3000 {
            last = free(last, &taken);
            assert!(taken.insert(last.unwrap()));
        }
        let first = free(None, &BTreeSet::new());
        let after = (0..WINDOW).scan(first, |last, _| {
            *last = free(*last, &BTreeSet::new());
            *last
        });
        let after: Vec<Pair> = after.collect();
        assert_eq!(after.iter().position(|pair| Some(*pair) == first), Some(WINDOW as usize - 1));
    }

    #[test]
    fn gives_none_when_all_are_taken() {
        let mut taken: BTreeSet<Pair> = (0..PAIRS).map(Pair::numbered).collect();
        assert_eq!(free(None, &taken), None);
        let some = Pair::numbered(4711);
        taken.remove(&some);
        assert_eq!(free(Some(some), &taken), Some(some));
    }
}
