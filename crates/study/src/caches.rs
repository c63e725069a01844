//! Caches of other sizes than the programs' own, asked what the programs were asked: the analysis that Flask's authors left to
//! be done (Spencer et al., USENIX Security 1999, "optimal size, sensitivity of the hit ratio to policy change").
//!
//! The checks of one subject were recorded in a guest. Several domains are that subject again and again, each with contexts and
//! files of its own, in turns: nothing that one domain has cached serves another, so that real ones do better.

use serde::{Deserialize, Serialize};
use tollgate_abi::enforcer::{TG_ACCESS_ROWS, TG_AVC_ENTRIES, TG_FIRST_SID};
use tollgate_bench::asked::{Asked, Question};

/// Rows of the caches of files that are tried; 0: there is none.
pub const ROWS: [u32; 5] = [0, 1024, 4096, TG_ACCESS_ROWS, 4 * TG_ACCESS_ROWS];
/// Entries of the access vector cache that are tried.
pub const VECTORS: [u32; 7] = [256, 512, 1024, 2048, 4096, TG_AVC_ENTRIES, 2 * TG_AVC_ENTRIES];
/// Numbers of domains that are tried.
pub const DOMAINS: [u32; 6] = [1, 4, 16, 64, 256, 1000];
/// A domain makes so many checks before the next one's turn, and all together so many, if not each has made all of its own.
const TURN: usize = 100;
const CHECKS: usize = 1_000_000;
/// Nanoseconds of a check, by what answers it: a cache of files, the access vector cache, the tables of Debian's policy
/// (docs/measuring.md, "hit-file", "hit", "miss").
const PRICES: [f64; 3] = [3.0, 15.0, 400.0];
/// Ways of a row that are for single subjects, and the distance between the files of two domains.
const WAYS: usize = 3;
const APART: u64 = 0x0123_4540;

/// What the caches of one size answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Rows of the caches of files.
    pub rows: u32,
    /// Entries of the access vector cache.
    pub vectors: u32,
    /// The number of domains.
    pub domains: u32,
    /// The number of contexts that their checks name.
    pub contexts: u32,
    /// All checks.
    pub asked: u64,
    /// Checks that the caches of files answer,
    pub by_files: u64,
    /// and the access vector cache.
    pub by_vectors: u64,
    /// Checks that come to the tables when the caches have just been emptied, as by a new policy. They are not among the others.
    pub after_reload: u64,
}

impl Point {
    /// Checks that come to the tables, in percent.
    #[must_use]
    pub fn to_tables(&self) -> f64 {
        100.0 * self.tables() as f64 / self.asked as f64
    }

    /// The mean check in nanoseconds, by [`PRICES`].
    #[must_use]
    pub fn mean(&self) -> f64 {
        let answered = [self.by_files, self.by_vectors, self.tables()];
        answered.iter().zip(PRICES).map(|(checks, price)| *checks as f64 * price).sum::<f64>() / self.asked as f64
    }

    /// How many more checks come to the tables for a reload.
    #[must_use]
    pub fn for_reload(&self) -> u64 {
        self.after_reload.saturating_sub(self.tables())
    }

    fn tables(&self) -> u64 {
        self.asked - self.by_files - self.by_vectors
    }
}

/// What caches of all sizes answer: each size of the access vector cache with and without the caches of files, and each size
/// of these with the access vector cache as it is.
#[must_use]
pub fn curves(asked: &Asked) -> Vec<Point> {
    if asked.order.is_empty() {
        return Vec::new();
    }
    let sizes = ROWS.iter().flat_map(|rows| VECTORS.map(|vectors| (*rows, vectors)));
    let tried = |(rows, vectors): &(u32, u32)| [0, TG_ACCESS_ROWS].contains(rows) || *vectors == TG_AVC_ENTRIES;
    let sizes: Vec<_> = sizes.filter(tried).collect();
    let mut points = Vec::new();
    for domains in DOMAINS {
        let machine = Machine::of(asked, domains);
        points.extend(sizes.iter().map(|(rows, vectors)| machine.run(*rows, *vectors)));
    }
    points
}

/// Domains that make the same checks in turns.
struct Machine<'a> {
    asked: &'a Asked,
    /// By domain, the questions with its own contexts.
    questions: Vec<Vec<Question>>,
    contexts: u32,
}

impl<'a> Machine<'a> {
    fn of(asked: &'a Asked, domains: u32) -> Self {
        let mut sids: Vec<u32> = asked.questions.iter().flat_map(|asked| [asked.source, asked.target]).collect();
        sids.sort_unstable();
        sids.dedup();
        let is_subject = |sid: u32| asked.questions.iter().any(|asked| asked.source == sid);
        let mut next = TG_FIRST_SID;
        let mut own = |sid: u32| {
            // As the daemon gives them.
            next += if is_subject(sid) && next % 4 == 3 { 2 } else { 1 };
            next - 1
        };
        let domain = |number: u32| {
            let own: Vec<u32> = sids.iter().map(|sid| own(*sid)).collect();
            let renamed = |sid: u32| sids.binary_search(&sid).map_or(sid, |place| own[place]);
            let question = |asked: &Question| Question {
                inode: if asked.inode == 0 { 0 } else { asked.inode.wrapping_add(u64::from(number) * APART) },
                source: renamed(asked.source),
                target: renamed(asked.target),
                class: asked.class,
            };
            asked.questions.iter().map(question).collect()
        };
        let questions = (0..domains).map(domain).collect();
        Machine { asked, questions, contexts: domains * sids.len() as u32 }
    }

    /// Fills caches of this size by the checks that are then counted.
    fn run(&self, rows: u32, vectors: u32) -> Point {
        let mut caches = Caches::of(rows, vectors);
        let [[.., after_reload], [by_files, by_vectors, by_tables]] = [(), ()].map(|()| self.pass(&mut caches));
        Point {
            rows,
            vectors,
            domains: self.questions.len() as u32,
            contexts: self.contexts,
            asked: by_files + by_vectors + by_tables,
            by_files,
            by_vectors,
            after_reload,
        }
    }

    /// Each domain's checks, or the first of them, in turns: how many each cache has answered, and the tables.
    fn pass(&self, caches: &mut Caches) -> [u64; 3] {
        let each = self.asked.order.len().min((CHECKS / self.questions.len()).max(TURN));
        let mut answered = [0; 3];
        for turn in self.asked.order[..each].chunks(TURN) {
            for domain in &self.questions {
                turn.iter().for_each(|question| answered[caches.ask(&domain[*question as usize]) as usize] += 1);
            }
        }
        answered
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Files,
    Vectors,
    Tables,
}

/// The caches, as `bpf/cache.h` has them, but with whole tags: smaller ones would need longer tags than their words have room
/// for.
struct Caches {
    rows: Vec<[(u64, u32); WAYS]>,
    vectors: Vec<u64>,
}

impl Caches {
    fn of(rows: u32, vectors: u32) -> Self {
        Caches { rows: vec![[(0, 0); WAYS]; rows as usize], vectors: vec![u64::MAX; vectors as usize] }
    }

    /// What answers a check; afterwards both caches do.
    fn ask(&mut self, asked: &Question) -> By {
        if asked.inode != 0 && !self.rows.is_empty() {
            let row = row(asked.inode, self.rows.len());
            let way = &mut self.rows[row][asked.source as usize % 4 % WAYS];
            let tag = (asked.inode, asked.source);
            if std::mem::replace(way, tag) == tag {
                return By::Files;
            }
        }
        let tag = u64::from(asked.target) << 23 | u64::from(asked.source) << 7 | u64::from(asked.class);
        let entry = entry(tag, self.vectors.len());
        if std::mem::replace(&mut self.vectors[entry], tag) == tag { By::Vectors } else { By::Tables }
    }
}

/// `tg_avc_entry`, with as many of the 39 bits as there are entries.
fn entry(tag: u64, entries: usize) -> usize {
    let key = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (key >> (39 - entries.trailing_zeros())) as usize & (entries - 1)
}

/// `tg_address_key`, with as many of its high bits as there are rows.
fn row(address: u64, rows: usize) -> usize {
    let key = (address << 18).wrapping_mul(0x61c8_8647);
    (key >> (64 - rows.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// `files` files, each checked `times` times, by a subject with one context for all.
    fn asked(files: u32, times: u32) -> Asked {
        let question = |file: u32| Question {
            inode: 0xffff_8880_0000_0000 + u64::from(file) * 0x440,
            source: 32,
            target: 33,
            class: 6,
        };
        let order = (0..times).flat_map(|_| 0..files).collect();
        Asked { questions: (0..files).map(question).collect(), order }
    }

    #[test]
    fn finds_each_check_in_caches_with_room_for_all() {
        let asked = asked(100, 50);
        let point = Machine::of(&asked, 1).run(TG_ACCESS_ROWS, TG_AVC_ENTRIES);
        assert_eq!((point.asked, point.by_files, point.by_vectors, point.after_reload), (5000, 5000, 0, 1));
        assert_eq!(point.for_reload(), 1);
        // Without caches of files, the access vector cache answers all.
        let point = Machine::of(&asked, 1).run(0, TG_AVC_ENTRIES);
        assert_eq!((point.by_files, point.by_vectors), (0, 5000));
        assert!((point.mean() - PRICES[1]).abs() < 1e-9);
    }

    #[test]
    fn loses_answers_when_the_checks_outgrow_a_cache() {
        let mut asked = asked(1000, 10);
        for (number, question) in asked.questions.iter_mut().enumerate() {
            question.target = 33 + number as u32;
        }
        let machine = Machine::of(&asked, 1);
        let [small, large] = [256, 4096].map(|vectors| machine.run(0, vectors).to_tables());
        assert!(small > 70.0 && large < 40.0, "{small} {large}");
        // Two domains with files of their own have no answer in common.
        let both = Machine::of(&asked, 2);
        assert_eq!(both.contexts, 2 * 1001);
        assert!(both.run(0, 1024).to_tables() > machine.run(0, 1024).to_tables());
    }

    #[test]
    fn gives_no_subject_a_sid_that_the_programs_do_not_have_and_no_domain_the_files_of_another() {
        let mut asked = asked(3, 1);
        asked.questions[0].target = 34;
        let domains = Machine::of(&asked, 64).questions;
        for question in domains.iter().flatten() {
            assert!(question.source % 4 != 3 && question.source != question.target, "{question:?}");
        }
        let inodes: BTreeSet<u64> = domains.iter().flatten().map(|question| question.inode).collect();
        assert_eq!(inodes.len(), 64 * 3);
    }

    #[test]
    fn tries_every_size_for_every_number_of_domains() {
        let points = curves(&asked(10, 200));
        assert_eq!(points.len(), DOMAINS.len() * (2 * VECTORS.len() + ROWS.len() - 2));
        for point in points {
            let each = 2000.min(CHECKS as u64 / u64::from(point.domains));
            assert_eq!(point.asked, each * u64::from(point.domains), "{point:?}");
        }
    }
}
