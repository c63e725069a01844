//! Reads a guest's console: text without the firmware's control sequences, its last lines, its panic.

/// The first words of a kernel's fatal messages.
const PANIC_SIGNS: [&str; 3] = ["Kernel panic", "BUG: ", "Oops: "];
/// How many lines of the console an error shows.
const TAIL: usize = 15;

/// Drops escape sequences and control characters; keeps line breaks.
#[must_use]
pub(crate) fn clean(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\x1b' => skip_sequence(&mut characters),
            '\n' | '\t' => text.push(c),
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text
}

/// `ESC [ ... letter`, or `ESC` and one character (ECMA-48 5.4).
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if characters.next() != Some('[') {
        return;
    }
    for c in characters.by_ref() {
        if ('\x40'..='\x7e').contains(&c) {
            break;
        }
    }
}

/// The last lines, each marked as the guest's; after a panic, those from its first line on, because registers follow.
#[must_use]
pub(crate) fn tail(console: &str) -> String {
    let lines: Vec<&str> = console.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return "the console is empty: the guest printed nothing".into();
    }
    let last = lines.len().saturating_sub(TAIL);
    let first =
        lines.iter().position(|line| PANIC_SIGNS.iter().any(|sign| line.contains(sign))).unwrap_or(last).min(last);
    let mut text = String::from("from the console:");
    for line in &lines[first..lines.len().min(first + TAIL)] {
        text.push_str("\n  | ");
        text.push_str(line);
    }
    text
}

/// The sentence after `Kernel panic - not syncing:`.
#[must_use]
pub(crate) fn panic_reason(console: &str) -> Option<String> {
    let (_, rest) = console.split_once("Kernel panic - not syncing: ")?;
    Some(rest.lines().next().unwrap_or_default().trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_firmwares_escape_sequences() {
        assert_eq!(clean("\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS\r\nBooting\x07\n"), "SeaBIOS\nBooting\n");
    }

    #[test]
    fn shows_the_last_lines_only() {
        let console: String = (0..40).map(|n| format!("line {n}\n\n")).collect();
        let tail = tail(&console);
        assert!(tail.ends_with("| line 39"));
        assert!(tail.contains("line 25") && !tail.contains("line 24"));
    }

    #[test]
    fn shows_a_panic_from_its_beginning() {
        let mut console = String::from("boot\nKernel panic - not syncing: why\n");
        console.extend((0..40).map(|n| format!("register {n}\n")));
        let tail = tail(&console);
        assert!(tail.contains("not syncing: why") && tail.ends_with("| register 13"), "{tail}");
    }

    #[test]
    fn says_so_when_nothing_was_printed() {
        assert!(tail("").contains("printed nothing"));
    }

    #[test]
    fn finds_the_reason_of_a_panic() {
        let console =
            "[    1.6] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100\n[ 1.7] CPU: 0";
        assert_eq!(panic_reason(console).unwrap(), "Attempted to kill init! exitcode=0x00000100");
        assert_eq!(panic_reason("all is well"), None);
    }
}
