//! Reads the S-expressions of CIL statements.

/// How deep lists may be nested. libsepol's own parser has such a limit as well.
const MAX_DEPTH: usize = 64;

/// A word or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sexp<'a> {
    /// A word, or a quoted string with its quotes.
    Word(&'a str),
    /// What is between parentheses.
    List(Vec<Sexp<'a>>),
}

impl<'a> Sexp<'a> {
    /// Reads one list; `None`: `text` does not begin with a complete one.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut open: Vec<Vec<Self>> = Vec::new();
        let mut rest = text;
        while let Some((word, after)) = token(rest) {
            rest = after;
            match word {
                "(" if open.len() == MAX_DEPTH => return None,
                "(" => open.push(Vec::new()),
                ")" => {
                    let list = Self::List(open.pop()?);
                    match open.last_mut() {
                        Some(outer) => outer.push(list),
                        None => return Some(list),
                    }
                }
                word => open.last_mut()?.push(Self::Word(word)),
            }
        }
        None
    }

    /// The word; `None`: it is a list.
    pub(super) fn word(&self) -> Option<&'a str> {
        if let Self::Word(word) = self { Some(word) } else { None }
    }

    /// The items of a list; a word is its own only item.
    pub(super) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { std::slice::from_ref(self) }
    }
}

/// The next word, parenthesis or string, and what follows it.
pub(super) fn token(text: &str) -> Option<(&str, &str)> {
    let mut text = text.trim_start();
    while let Some(comment) = text.strip_prefix(';') {
        text = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    let first = text.chars().next()?;
    let length = match first {
        '(' | ')' => 1,
        '"' => text[1..].find('"')? + 2,
        _ => text.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';')).unwrap_or(text.len()),
    };
    Some(text.split_at(length))
}
