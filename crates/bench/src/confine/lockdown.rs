//! Lockdown: integrity mode.

use super::securityfs::{ROOT, read, require, write};
use crate::Error;

/// Switches integrity mode on, unless the machine is locked down as much or more. It lasts until the next boot.
pub(super) fn set_integrity() -> Result<String, Error> {
    require("lockdown")?;
    let file = format!("{ROOT}/lockdown");
    if chosen(&read(&file)?) == Some("none") {
        write(&file, b"integrity")?;
    }
    let state = read(&file)?;
    match chosen(&state) {
        Some(level @ ("integrity" | "confidentiality")) => Ok(format!("lockdown: {level}")),
        _ => Err(Error::Unavailable(format!("lockdown stays {state:?} after integrity was requested"))),
    }
}

/// The chosen word of a list such as `none [integrity] confidentiality`.
fn chosen(list: &str) -> Option<&str> {
    list.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_chosen_level() {
        assert_eq!(chosen("none [integrity] confidentiality"), Some("integrity"));
        assert_eq!(chosen("none integrity"), None);
    }
}
