//! The denials that a rule is learnt from.

use std::{collections::BTreeSet, fmt};

use crate::{Denial, avc, follow};

/// How many different names are kept. A log may hold any number of them.
const MAX_KEPT: usize = 64;
/// How many names are printed.
const MAX_SHOWN: usize = 3;

/// Denials of the same act: how often, when, by which commands, on which objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Number of denials.
    pub count: u64,
    /// Time of the first, in milliseconds since 1970; `None`: the log has no times.
    pub first: Option<u64>,
    /// Time of the last, likewise.
    pub last: Option<u64>,
    /// Names of the commands that were denied.
    pub commands: BTreeSet<String>,
    /// The objects, in words.
    pub objects: BTreeSet<String>,
}

impl Evidence {
    /// The evidence of one denial.
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

    /// Adds more evidence of the same act.
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        for (own, more) in [(&mut self.commands, &other.commands), (&mut self.objects, &other.objects)] {
            let room = MAX_KEPT.saturating_sub(own.len());
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
    let shown: Vec<&str> = names.iter().take(MAX_SHOWN).map(String::as_str).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        more if names.len() >= MAX_KEPT => format!("{shown} and at least {more} more"),
        more => format!("{shown} and {more} more"),
    }
}
