//! Values of booleans that survive a restart: lines `NAME=1`, as in SELinux's booleans.local.

use std::collections::BTreeMap;

use super::StoreError;
use crate::booleans::assignment;

/// The values, by name. If several lines have one name, the last counts.
pub(super) fn parse(text: &str, file: &str) -> Result<BTreeMap<String, bool>, StoreError> {
    let mut values = BTreeMap::new();
    for (line, text) in said(text) {
        let wrong = |_| StoreError::Line { file: file.to_owned(), line, expected: "NAME=1 or NAME=0 is expected" };
        values.extend([assignment(text).map_err(wrong)?]);
    }
    Ok(values)
}

/// The text with these values. Each replaces the line with its name, or comes last.
pub(super) fn with(text: &str, assignments: &[(String, bool)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, value) in assignments {
        let is_for = |line: &String| line.split_once('=').is_some_and(|(own, _)| own.trim() == name);
        lines.retain(|line| !is_for(line));
        lines.push(format!("{name}={}", u8::from(*value)));
    }
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Lines that are neither empty nor comments, with their numbers.
fn said(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote_and_keeps_what_people_wrote() {
        let text = with("# ours\nb=1\n", &[("a".to_owned(), true), ("b".to_owned(), false)]);
        assert_eq!(text, "# ours\na=1\nb=0\n");
        let values: Vec<_> = parse(&text, "f").unwrap().into_iter().collect();
        assert_eq!(values, [("a".to_owned(), true), ("b".to_owned(), false)]);
    }

    #[test]
    fn names_the_line_that_assigns_nothing() {
        let error = parse("# ours\n\na=maybe\n", "f").unwrap_err().to_string();
        assert_eq!(error, "f, line 3: NAME=1 or NAME=0 is expected");
    }
}
