//! What is asked of other machines at present, and what is not asked for a while. Everything in it is bounded.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use tollgate_netlabel::question::Question;

/// How many questions may be without an answer, in all and to one node.
const MAX_PENDING: usize = 64;
const MAX_PENDING_OF_NODE: usize = 16;
/// When a question is repeated, after the first, the second, ... time; then it is not asked again for [`REST`].
const PAUSES: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
const REST: Duration = Duration::from_secs(8);
/// How many are remembered that are not asked for a while. While there are more, no new one is asked.
const MAX_RESTING: usize = 1024;
/// How many contexts may be learned of one node, until the daemon ends.
const MAX_LEARNED_OF_NODE: u32 = 256;

/// An identifier, and the node that has sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    pub(super) node: u16,
    pub(super) identifier: u32,
}

#[derive(Debug)]
struct Pending {
    question: Question,
    address: IpAddr,
    sent: usize,
    due: Instant,
}

/// A question that is to be sent now, for the first time (0) or again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) question: Question,
    pub(super) address: IpAddr,
    pub(super) sent: usize,
}

/// The questions.
#[derive(Debug, Default)]
pub(super) struct Table {
    pending: BTreeMap<Asked, Pending>,
    resting: BTreeMap<Asked, Instant>,
    learned: BTreeMap<u16, u32>,
}

impl Table {
    /// Whether something is to be asked now: it is not asked yet, there is room, and the node may teach more contexts.
    pub(super) fn may_ask(&mut self, asked: Asked, now: Instant) -> bool {
        self.resting.retain(|_, until| *until > now);
        let of_node = self.pending.keys().filter(|other| other.node == asked.node).count();
        !self.pending.contains_key(&asked)
            && !self.resting.contains_key(&asked)
            && self.pending.len() < MAX_PENDING
            && of_node < MAX_PENDING_OF_NODE
            && self.resting.len() < MAX_RESTING
            && self.learned.get(&asked.node).is_none_or(|count| *count < MAX_LEARNED_OF_NODE)
    }

    /// Asks from now on.
    pub(super) fn ask(&mut self, question: Question, address: IpAddr, now: Instant) {
        let asked = Asked { node: question.to, identifier: question.identifier };
        self.pending.insert(asked, Pending { question, address, sent: 0, due: now });
    }

    /// The questions that are to be sent now, and those that nobody has answered in time.
    pub(super) fn due(&mut self, now: Instant) -> (Vec<Due>, Vec<Asked>) {
        let (mut due, mut unanswered) = (Vec::new(), Vec::new());
        for (asked, pending) in self.pending.iter_mut().filter(|(_, pending)| pending.due <= now) {
            let Some(pause) = PAUSES.get(pending.sent) else {
                unanswered.push(*asked);
                continue;
            };
            due.push(Due { question: pending.question, address: pending.address, sent: pending.sent });
            pending.sent += 1;
            pending.due = now + *pause;
        }
        unanswered.iter().for_each(|asked| self.rest(*asked, now));
        (due, unanswered)
    }

    /// When the next question is to be sent.
    pub(super) fn next(&self) -> Option<Instant> {
        self.pending.values().map(|pending| pending.due).min()
    }

    /// Whether an answer is that of a question, which is not asked any more then. A second one is refused.
    pub(super) fn answered(&mut self, question: &Question) -> bool {
        let asked = Asked { node: question.to, identifier: question.identifier };
        let is_its = self.pending.get(&asked).is_some_and(|pending| pending.question == *question);
        if is_its {
            self.pending.remove(&asked);
        }
        is_its
    }

    /// Asks it no more for a while.
    pub(super) fn rest(&mut self, asked: Asked, now: Instant) {
        self.pending.remove(&asked);
        self.resting.insert(asked, now + REST);
    }

    /// Counts a context that was learned of a node.
    pub(super) fn learned(&mut self, node: u16) {
        *self.learned.entry(node).or_default() += 1;
    }

    /// Asks nothing any more, and remembers how much was learned of whom.
    pub(super) fn forget(&mut self) {
        self.pending.clear();
        self.resting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn question(node: u16, identifier: u32) -> Question {
        Question { nonce: [identifier as u8; 16], generation: 1, window: 2, identifier, from: 1, to: node }
    }

    fn asked(node: u16, identifier: u32) -> Asked {
        Asked { node, identifier }
    }

    /// Asks if it may.
    fn ask(table: &mut Table, node: u16, identifier: u32, now: Instant) -> bool {
        let may = table.may_ask(asked(node, identifier), now);
        if may {
            table.ask(question(node, identifier), ADDRESS, now);
        }
        may
    }

    #[test]
    fn asks_once_again_and_then_rests() {
        let (mut table, began) = (Table::default(), Instant::now());
        assert!(ask(&mut table, 2, 7, began) && !ask(&mut table, 2, 7, began));
        let mut sent = Vec::new();
        for millisecond in 0..6000 {
            let now = began + Duration::from_millis(millisecond);
            let (due, unanswered) = table.due(now);
            sent.extend(due.iter().map(|due| (due.sent, millisecond)));
            if !unanswered.is_empty() {
                assert_eq!((unanswered, millisecond), (vec![asked(2, 7)], 3750));
            }
            assert!(!ask(&mut table, 2, 7, now));
        }
        assert_eq!(sent, [(0, 0), (1, 250), (2, 750), (3, 1750)]);
        assert_eq!(table.next(), None);
        assert!(ask(&mut table, 2, 7, began + Duration::from_secs(12)));
    }

    #[test]
    fn accepts_the_answer_of_its_question_once() {
        let (mut table, now) = (Table::default(), Instant::now());
        assert!(ask(&mut table, 2, 7, now));
        let right = question(2, 7);
        for wrong in [
            question(3, 7),
            question(2, 8),
            Question { nonce: [0; 16], ..right },
            Question { from: 5, ..right },
            Question { generation: 9, ..right },
            Question { window: 1, ..right },
        ] {
            assert!(!table.answered(&wrong), "{wrong:?}");
        }
        assert!(table.answered(&right) && !table.answered(&right));
    }

    #[test]
    fn stays_small_in_a_flood_and_leaves_room_to_other_nodes() {
        let (mut table, now) = (Table::default(), Instant::now());
        let of_one = (0..100_000).filter(|identifier| ask(&mut table, 1, *identifier, now)).count();
        assert_eq!(of_one, MAX_PENDING_OF_NODE);
        assert!(ask(&mut table, 2, 7, now));
        let of_all = (3..60_000).filter(|node| ask(&mut table, *node, 7, now)).count();
        assert_eq!(of_all + of_one + 1, MAX_PENDING);
        // Whoever answers each question wrongly is not asked for more than are remembered.
        let mut refused = 0;
        for identifier in 100_000..200_000 {
            table.pending.clear();
            if ask(&mut table, 1, identifier, now) {
                table.rest(asked(1, identifier), now);
                refused += 1;
            }
        }
        assert_eq!((refused, table.resting.len()), (MAX_RESTING, MAX_RESTING));
        assert!(ask(&mut table, 1, 7, now + REST));
    }

    #[test]
    fn learns_no_more_than_its_share_of_a_node() {
        let (mut table, now) = (Table::default(), Instant::now());
        for identifier in 0..MAX_LEARNED_OF_NODE {
            assert!(ask(&mut table, 1, identifier, now) && table.answered(&question(1, identifier)));
            table.learned(1);
        }
        assert!(!ask(&mut table, 1, u32::MAX, now) && ask(&mut table, 2, 0, now));
        table.forget();
        assert!(!ask(&mut table, 1, u32::MAX, now));
    }
}
