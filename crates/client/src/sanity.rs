//! Sanity questions: the answers that a new policy must give to be kept in force.
//!
//! Each line is `SCON<TAB>TCON<TAB>CLASS<TAB>PERMISSION[,PERMISSION]...`, as `tollgate policy query --batch` reads it,
//! with the verdict added: a permission must be allowed, and one with `-` before it must be denied. Empty lines and
//! lines that begin with `#` are ignored.

use std::fmt;

use crate::protocol::Refusal;

/// A question with the answer that is required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The context that acts.
    pub source: String,
    /// The context that is acted on.
    pub target: String,
    /// Name of the object's class.
    pub class: String,
    /// Names of permissions, and whether each must be allowed.
    pub permissions: Vec<(String, bool)>,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.permissions.iter().map(|(name, allowed)| format!("{}{name}", if *allowed { "" } else { "-" }));
        write!(f, "{} {} {} {}", self.source, self.target, self.class, words.collect::<Vec<_>>().join(","))
    }
}

/// A line that is not a sanity question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the sanity questions is not SCON<TAB>TCON<TAB>CLASS<TAB>PERMISSION[,PERMISSION]... (with - before a permission that must be denied)"
)]
pub struct NoQuestion {
    /// Number of the line, from 1.
    pub line: usize,
}

/// Reads all questions of a file.
pub fn parse(text: &str) -> Result<Vec<Question>, NoQuestion> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| question(line).ok_or(NoQuestion { line: number })).collect()
}

fn question(line: &str) -> Option<Question> {
    let fields: Vec<&str> = line.trim_end_matches('\r').split('\t').collect();
    let [source, target, class, permissions] = fields[..] else { return None };
    let permission = |word: &str| {
        let (name, allowed) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
        (!name.is_empty()).then(|| (name.to_owned(), allowed))
    };
    let permissions = permissions.split(',').map(permission).collect::<Option<_>>()?;
    Some(Question { source: source.to_owned(), target: target.to_owned(), class: class.to_owned(), permissions })
}

/// Checks all questions. Returns an error at the first that is answered wrongly. `ask` returns the permissions that are
/// allowed.
pub fn hold(
    questions: &[Question],
    mut ask: impl FnMut(&Question) -> Result<Vec<String>, Refusal>,
) -> Result<(), Refusal> {
    for question in questions {
        let allowed = ask(question)?;
        for (permission, expected) in &question.permissions {
            if allowed.contains(permission) != *expected {
                let Question { source, target, class, .. } = question;
                let verdict = if *expected { "denied" } else { "allowed" };
                let text = format!("a sanity question fails: {source} {target} {class} {permission} is {verdict}");
                return Err(Refusal::new(libc::EINVAL, text));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# what must go on\n\na:b:c\td:e:f\tfile\tread,-write\n";

    fn answered(allowed: &[&str]) -> Result<(), Refusal> {
        let questions = parse(TEXT).unwrap();
        hold(&questions, |_| Ok(allowed.iter().map(|name| (*name).to_owned()).collect()))
    }

    #[test]
    fn holds_a_policy_to_what_it_must_allow_and_deny() {
        assert_eq!(answered(&["read", "open"]), Ok(()));
        let text = |result: Result<(), Refusal>| result.unwrap_err().text;
        assert!(text(answered(&["open"])).ends_with("a:b:c d:e:f file read is denied"));
        assert!(text(answered(&["read", "write"])).ends_with("a:b:c d:e:f file write is allowed"));
    }

    #[test]
    fn names_the_line_that_is_no_question() {
        for wrong in ["a\tb\tc", "a\tb\tc\t", "a\tb\tc\tread,,write", "a\tb\tc\t-", "a b c read"] {
            assert_eq!(parse(&format!("#\n{wrong}\n")), Err(NoQuestion { line: 2 }), "{wrong:?}");
        }
    }
}
