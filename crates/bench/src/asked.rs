//! The checks that Tollgate's programs made, one by one, for studies of caches that would have answered them.
//!
//! The programs record them in a ring buffer, which is opened before this process is confined.

use std::{cell::RefCell, collections::HashMap, io, path::Path, rc::Rc};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use serde::{Deserialize, Serialize};
use tollgate_abi::{enforcer::tg_asked, paths};

use crate::{Error, error::Context};

/// The pin of the ring buffer.
const CHECKS: &str = paths::PINNED_CHECKS;

/// What is checked: two checks with the same are one entry of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Question {
    /// The address of the inode; 0 if the caches of files do not hold the answer.
    pub inode: u64,
    /// The subject's SID.
    pub source: u32,
    /// The object's SID.
    pub target: u32,
    /// The SECCLASS.
    pub class: u32,
}

/// The checks of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Each question once, in the order in which it was first asked.
    pub questions: Vec<Question>,
    /// The checks in their order: an index of `questions` each.
    pub order: Vec<u32>,
}

impl Asked {
    fn ask(&mut self, known: &mut HashMap<Question, u32>, question: Question) {
        let next = self.questions.len() as u32;
        let place = *known.entry(question).or_insert(next);
        if place == next {
            self.questions.push(question);
        }
        self.order.push(place);
    }
}

/// The ring buffer, mapped.
pub(crate) struct Record {
    ring: RingBuffer<'static>,
    taken: Rc<RefCell<Vec<Question>>>,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").finish_non_exhaustive()
    }
}

impl Record {
    /// Maps the ring buffer.
    pub(crate) fn open() -> Result<Record, Error> {
        let failed = |cause: libbpf_rs::Error| io::Error::other(cause.to_string());
        let map = MapHandle::from_pinned_path(Path::new(CHECKS)).map_err(failed);
        let map = map.context(format!("open {CHECKS}"))?;
        let taken = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&taken);
        let mut builder = RingBufferBuilder::new();
        let added = builder.add(&map, move |sample| {
            into.borrow_mut().extend(question(sample));
            0
        });
        added.map_err(failed).context(format!("map {CHECKS}"))?;
        let ring = builder.build().map_err(failed).context(format!("map {CHECKS}"))?;
        Ok(Record { ring, taken })
    }

    /// The checks since it was last emptied.
    pub(crate) fn take(&self) -> Result<Asked, Error> {
        self.ring.consume().map_err(|cause| io::Error::other(cause.to_string())).context(format!("read {CHECKS}"))?;
        let (mut asked, mut known) = (Asked::default(), HashMap::new());
        for question in self.taken.take() {
            asked.ask(&mut known, question);
        }
        Ok(asked)
    }
}

/// What the programs wrote (`struct tg_asked`).
fn question(sample: &[u8]) -> Option<Question> {
    let word = |at: usize| Some(u32::from_ne_bytes(sample.get(at..at + 4)?.try_into().ok()?));
    let inode = u64::from_ne_bytes(sample.get(..8)?.try_into().ok()?);
    let [source, target, class] = [
        std::mem::offset_of!(tg_asked, source),
        std::mem::offset_of!(tg_asked, target),
        std::mem::offset_of!(tg_asked, class),
    ];
    Some(Question { inode, source: word(source)?, target: word(target)?, class: word(class)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_of_checks_and_each_question_once() {
        let sample = |inode: u64| {
            let words = [32u32, 33, 6, 0].map(u32::to_ne_bytes).concat();
            [inode.to_ne_bytes().to_vec(), words].concat()
        };
        let [one, other] = [7, 9].map(sample);
        let (mut asked, mut known) = (Asked::default(), HashMap::new());
        for checked in [&one, &other, &one, &one] {
            asked.ask(&mut known, question(checked).unwrap());
        }
        let first = Question { inode: 7, source: 32, target: 33, class: 6 };
        assert_eq!(asked.questions, [first, Question { inode: 9, ..first }]);
        assert_eq!(asked.order, [0, 1, 0, 0]);
        assert_eq!(question(&[0; 12]), None);
    }
}
