//! The text of a database: one item per line.

use std::fmt;

use crate::{database::Database, item::Item};

/// Why a text is no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, and the remedy.
    pub message: String,
}

impl Database {
    /// Reads a text. Empty lines and those that begin with `#` are comments. Lines may come in any order.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let (mut database, mut rules) = (Self::default(), Vec::new());
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |message: String| TextError { line, message };
            match text.parse().map_err(wrong)? {
                // They may name programs of later lines.
                Item::Rule(rule) => rules.push((line, rule)),
                item => drop(database.enter(item).map_err(|cause| wrong(cause.to_string()))?),
            }
        }
        for (line, rule) in rules {
            let wrong = |cause: crate::ItemError| TextError { line, message: cause.to_string() };
            database.enter(Item::Rule(rule)).map_err(wrong)?;
        }
        Ok(database)
    }
}

impl fmt::Display for Database {
    /// Writes the text, in the order that all databases have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items().try_for_each(|item| writeln!(f, "{item}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn reads_lines_in_any_order_and_prints_them_in_one() {
        let [su, sh] = [Digest::of(b"su"), Digest::of(b"sh")];
        let text = format!(
            "# by hand\n\nallow /su exec /sh free\nprogram /su enforce {su}\n  program /sh learn {sh}\ndefault daemon warn\nword BOP\n"
        );
        let printed = format!(
            "default setuid learn\ndefault daemon warn\nword BOP\nprogram /sh learn {sh}\nprogram /su enforce {su}\nallow /su exec /sh free\n"
        );
        let database = Database::parse(&text).unwrap();
        assert_eq!(database.to_string(), printed);
        assert_eq!(Database::parse(&printed), Ok(database));
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        let error = Database::parse("# a\nword BOP\nallow /su exec /sh\n").unwrap_err().to_string();
        assert!(error.starts_with("line 3: the database has no program /su"), "{error}");
        let error = Database::parse("word BOP\nnonsense\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: `nonsense` begins no line"), "{error}");
    }
}
