//! What routes of others were like before their MTU was changed. It is kept in a file, for the next daemon.

use std::collections::BTreeMap;

use super::route::{Key, Route};

/// A changed MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// The one before; `None`: there was none.
    pub before: Option<u32>,
    /// The one instead.
    pub set: u32,
}

/// The changed routes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory(BTreeMap<Key, Changed>);

impl Memory {
    /// Remembers a change.
    pub fn insert(&mut self, key: Key, changed: Changed) {
        self.0.insert(key, changed);
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A route as it was. If it has another MTU than was set, somebody has renewed it, and it is as it was.
    #[must_use]
    pub fn original(&self, route: &Route) -> Route {
        match self.0.get(&route.key()) {
            Some(changed) if route.mtu() == Some(changed.set) => route.clone().with_mtu(changed.before),
            _ => route.clone(),
        }
    }

    /// Lines `TABLE PREFIX TOS PRIORITY DEVICE BEFORE SET`, where 0 is no MTU.
    #[must_use]
    pub fn to_lines(&self) -> String {
        let line = |(key, changed): (&Key, &Changed)| {
            let Key { table, prefix, tos, priority, device, source } = key;
            let before = changed.before.unwrap_or_default();
            let source: String = source.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{table} {prefix} {tos} {priority} {device} {source} {before} {}\n", changed.set)
        };
        self.0.iter().map(line).collect()
    }

    /// The changes in these lines. What is malformed is left out.
    #[must_use]
    pub fn from_lines(text: &str) -> Self {
        Self(text.lines().filter_map(read).collect())
    }
}

fn read(line: &str) -> Option<(Key, Changed)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [table, prefix, tos, priority, device, source, before, set] = words.try_into().ok()?;
    let byte = |at: usize| u8::from_str_radix(source.get(at..at + 2)?, 16).ok();
    let key = Key {
        table: table.parse().ok()?,
        prefix: prefix.parse().ok()?,
        tos: tos.parse().ok()?,
        priority: priority.parse().ok()?,
        device: device.parse().ok()?,
        source: (0..source.len()).step_by(2).map(byte).collect::<Option<_>>()?,
    };
    let before = before.parse().ok().filter(|before| *before != 0);
    Some((key, Changed { before, set: set.parse().ok()? }))
}
