//! What was compared, and what differs.

/// How many differences a report keeps completely.
const MAX_DIFFERENCES: usize = 20;

/// The kind of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The access vectors of a source, a target and a class.
    Access,
    /// The permitted functions of an ioctl driver.
    Ioctl,
    /// The context of a new object.
    Transition,
    /// The context of a new object with a file name that rules have.
    Named,
    /// The context of a member of a polyinstantiated object.
    Member,
    /// The context to relabel to.
    Change,
    /// Whether a context is valid.
    Context,
    /// Whether an object may be relabelled.
    Validatetrans,
}

impl Decision {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Access,
        Self::Ioctl,
        Self::Transition,
        Self::Named,
        Self::Member,
        Self::Change,
        Self::Context,
        Self::Validatetrans,
    ];
}

/// How many decisions of one kind there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// How many were compared.
    pub compared: u64,
    /// How many granted something, gave a valid context or permitted.
    pub granted: u64,
    /// How many differed.
    pub different: u64,
}

/// A decision that the tables and the rules make differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The kind of decision.
    pub decision: Decision,
    /// The source, target and class, in words.
    pub question: String,
    /// What the tables decide.
    pub tables: String,
    /// What the rules say.
    pub rules: String,
}

/// The result of a comparison of all decisions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    counts: [Count; Decision::ALL.len()],
    /// The first differences, by source type.
    differences: Vec<(u32, Difference)>,
}

impl Report {
    /// How many decisions of a kind there were.
    pub fn of(&self, decision: Decision) -> Count {
        self.counts[decision as usize]
    }

    /// How many decisions there were of all kinds.
    pub fn total(&self) -> Count {
        self.counts.iter().fold(Count::default(), |sum, count| sum.and(count))
    }

    /// The first differences.
    pub fn differences(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().map(|(_, difference)| difference)
    }

    /// Counts a decision. If it differs, `words` says how.
    pub(super) fn count(
        &mut self,
        source: u32,
        decision: Decision,
        granted: bool,
        same: bool,
        words: impl FnOnce() -> [String; 3],
    ) {
        let count = &mut self.counts[decision as usize];
        count.compared += 1;
        count.granted += u64::from(granted);
        if same {
            return;
        }
        count.different += 1;
        if self.differences.len() < MAX_DIFFERENCES {
            let [question, tables, rules] = words();
            self.differences.push((source, Difference { decision, question, tables, rules }));
        }
    }

    /// Both reports together.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.and(more);
        }
        self.differences.extend(other.differences);
        self.differences.sort_by_key(|(source, _)| *source);
        self.differences.truncate(MAX_DIFFERENCES);
        self
    }
}

impl Count {
    fn and(self, other: &Self) -> Self {
        Self {
            compared: self.compared + other.compared,
            granted: self.granted + other.granted,
            different: self.different + other.different,
        }
    }
}
