//! What a rule is learnt from.

use std::{collections::BTreeSet, fmt};

use crate::{Denial, avc, follow};

/// So many different names are kept of what may be any number.
const KEPT: usize = 64;
/// So many are told.
const TOLD: usize = 3;

/// Denials of one thing: how often, when, of whom, on what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How many.
    pub count: u64,
    /// The first, in milliseconds since 1970; `None`: the log does not tell times.
    pub first: Option<u64>,
    /// The last.
    pub last: Option<u64>,
    /// Of which commands.
    pub commands: BTreeSet<String>,
    /// On which objects.
    pub objects: BTreeSet<String>,
}

impl Evidence {
    /// That of one denial.
    #[must_use]
    pub fn of(denial: &Denial) -> Self {
        let time = Some(denial.time).filter(|time| *time != 0);
        let names = |name: String| Some(name).filter(|name| !name.is_empty()).into_iter().collect();
        Self {
            count: denial.repeated.saturating_add(1),
            first: time,
            last: time,
            commands: names(denial.comm.for_people()),
            objects: names(follow::object(&denial.object)),
        }
    }

    /// Adds other evidence.
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        for (own, more) in [(&mut self.commands, &other.commands), (&mut self.objects, &other.objects)] {
            let room = KEPT.saturating_sub(own.len());
            let new: Vec<String> = more.iter().filter(|name| !own.contains(*name)).take(room).cloned().collect();
            own.extend(new);
        }
    }
}

/// `3 times, 2026-11-21T08:00:01.234Z to 2026-11-21T08:00:07.000Z, by httpd: /srv/www/index.html`.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => f.write_str("once")?,
            count => write!(f, "{count} times")?,
        }
        match (self.first, self.last) {
            (Some(first), Some(last)) if first == last => write!(f, ", {}", avc::time::text(first))?,
            (Some(first), Some(last)) => write!(f, ", {} to {}", avc::time::text(first), avc::time::text(last))?,
            _ => f.write_str(", at an unknown time")?,
        }
        if !self.commands.is_empty() {
            write!(f, ", by {}", some(&self.commands))?;
        }
        if self.objects.is_empty() { Ok(()) } else { write!(f, ": {}", some(&self.objects)) }
    }
}

/// The first names, and how many more there are.
fn some(names: &BTreeSet<String>) -> String {
    let told: Vec<&str> = names.iter().take(TOLD).map(String::as_str).collect();
    let told = told.join(", ");
    match names.len().saturating_sub(TOLD) {
        0 => told,
        more if names.len() >= KEPT => format!("{told} and {more} more at least"),
        more => format!("{told} and {more} more"),
    }
}
