//! The stop list: functions at which a search stops, because every function reaches them.
//!
//! The list is data: one name per line, with `*` at its end for a prefix, and the reason. `FROM -> TO` adds an edge: a call
//! that is made later on behalf of the caller.

use crate::Error;

/// The built-in list.
const OWN: &str = include_str!("stop.txt");

/// Functions that are not entered, each with a reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopList {
    names: Vec<String>,
    prefixes: Vec<String>,
    deferred: Vec<(String, String)>,
}

impl StopList {
    /// The built-in list.
    #[must_use]
    pub fn own() -> Self {
        // A test parses it; a damaged list would stop nowhere.
        Self::parse(OWN).unwrap_or_default()
    }

    /// The text of the built-in list.
    #[must_use]
    pub fn own_text() -> &'static str {
        OWN
    }

    /// Parses a list.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut list = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |reason: &str| Error::StopList { line, reason: reason.into() };
            let (name, mut rest) = word(text);
            if let Some(after) = rest.strip_prefix("->") {
                let (to, reason) = word(after.trim_start());
                if to.is_empty() {
                    return Err(wrong("no function after \"->\""));
                }
                list.deferred.push((name.into(), to.into()));
                rest = reason;
            } else if let Some(prefix) = name.strip_suffix('*') {
                if prefix.is_empty() {
                    return Err(wrong("\"*\" alone would stop everywhere"));
                }
                list.prefixes.push(prefix.into());
            } else {
                list.names.push(name.into());
            }
            if rest.is_empty() {
                return Err(wrong(&format!("no reason after {name:?}")));
            }
        }
        list.names.sort_unstable();
        list.prefixes.sort_unstable();
        Ok(list)
    }

    /// Whether the search stops at a function, or at a part of it that the compiler has split off (`NAME.part.0`).
    #[must_use]
    pub fn holds(&self, function: &str) -> bool {
        let whole = function.split('.').next().unwrap_or(function);
        self.names.binary_search_by(|name| name.as_str().cmp(whole)).is_ok()
            || self.prefixes.iter().any(|prefix| function.starts_with(prefix.as_str()))
    }

    /// Calls that are made later.
    pub fn deferred(&self) -> impl Iterator<Item = (&str, &str)> {
        self.deferred.iter().map(|(from, to)| (from.as_str(), to.as_str()))
    }

    /// The list without its stops.
    #[must_use]
    pub fn without_stops(self) -> Self {
        Self { names: Vec::new(), prefixes: Vec::new(), ..self }
    }
}

fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_list_with_a_reason_a_line() {
        let list = StopList::parse(OWN).unwrap();
        assert!(list.names.len() > 50, "{}", list.names.len());
        assert_eq!(list, StopList::own());
    }

    #[test]
    fn stops_at_names_at_their_parts_and_at_what_begins_so() {
        let list = StopList::parse("# why\nkfree    memory\nprintk*  the log\n").unwrap();
        for name in ["kfree", "kfree.part.0", "printk", "printk_deferred"] {
            assert!(list.holds(name), "{name}");
        }
        for name in ["kfree_skb", "vprintk", ""] {
            assert!(!list.holds(name), "{name}");
        }
    }

    #[test]
    fn refuses_a_line_without_a_reason_by_its_number() {
        let error = StopList::parse("kfree memory\n\nschedule\n").unwrap_err().to_string();
        assert_eq!(error, "line 3 of the stop list: no reason after \"schedule\"");
        assert!(StopList::parse("* everything\n").is_err());
        assert!(StopList::parse("fput ->\n").is_err());
    }

    #[test]
    fn keeps_deferred_calls_without_stops() {
        let list = StopList::parse("fput -> ____fput   later\nkfree memory\n").unwrap().without_stops();
        assert_eq!(list.deferred().collect::<Vec<_>>(), [("fput", "____fput")]);
        assert!(!list.holds("kfree"));
    }
}
