//! Combines a written `file_contexts` with a policy.
//!
//! Lines are `EXPRESSION [KIND] CONTEXT`. If several match a path, the last one counts. libselinux refuses two lines
//! with the same expression for the same kind of file.

mod beside;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

pub use self::beside::{Files, Named};

use crate::{
    built::{Built, BuiltError},
    context::ContextError,
    diff::Statements,
};

/// The context in a line for paths that stay without a label.
const NONE: &str = "<<none>>";
/// Kinds of file, as in lines.
pub const KINDS: [&str; 7] = ["--", "-d", "-l", "-c", "-b", "-p", "-s"];

/// Why a `file_contexts` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileContextsError {
    /// A line has a context that the policy does not permit.
    #[error("line {line}: {cause}")]
    Context {
        /// The line, from 1.
        line: usize,
        /// Why the policy does not permit the context.
        cause: ContextError,
    },
    /// A line that cannot be read.
    #[error("line {line}: {cause}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with the line.
        cause: NoLine,
    },
    /// Two lines give different contexts to the same expression and kind of file.
    #[error(
        "line {line}: line {first} already labels `{expression}` as {one}, and this one labels it as {other}: delete one of them"
    )]
    Twice {
        /// The later line, from 1.
        line: usize,
        /// The earlier one.
        first: usize,
        /// The expression of both.
        expression: String,
        /// The context of the earlier line.
        one: String,
        /// The context of the later line.
        other: String,
    },
    /// The policy cannot answer questions.
    #[error(transparent)]
    Built(#[from] BuiltError),
}

/// A line that is neither empty nor a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a regular expression, perhaps a kind of file (--, -d, -l, -c, -b, -p, -s), and a context")]
pub struct NoLine;

/// A line that labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t> {
    /// The expression that the whole path must match.
    pub expression: &'t str,
    /// The kind of file that it applies to; `None`: any kind.
    pub kind: Option<&'t str>,
    /// The context; `None` for `<<none>>`.
    pub context: Option<&'t str>,
}

impl<'t> Line<'t> {
    /// Reads a line of a text; `None`: it is empty or a comment.
    pub fn parse(text: &'t str) -> Result<Option<Self>, NoLine> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (expression, kind, context) = match words[..] {
            [] => return Ok(None),
            [first, ..] if first.starts_with('#') => return Ok(None),
            [expression, context] => (expression, None, context),
            [expression, kind, context] if KINDS.contains(&kind) => (expression, Some(kind), context),
            _ => return Err(NoLine),
        };
        Ok(Some(Self { expression, kind, context: Some(context).filter(|context| *context != NONE) }))
    }

    /// Whether two lines have the same expression, and a kind of file in common.
    pub fn meets(&self, other: &Self) -> bool {
        let kinds = self.kind.is_none() || other.kind.is_none() || self.kind == other.kind;
        kinds && self.expression == other.expression
    }
}

/// The lines of a text that label. Lines that cannot be read are left out.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(|line| Line::parse(line).ok().flatten())
}

/// Adds lines after those of the policy. Each replaces the policy's lines with the same expression and kind of file.
/// Lines that contradict each other are refused. If two say the same, one is left out, because libselinux refuses both.
pub fn append(built: &mut Built, text: &str) -> Result<(), FileContextsError> {
    let mut server = built.server()?;
    for (line, text) in (1..).zip(text.lines()) {
        let parsed = Line::parse(text).map_err(|cause| FileContextsError::Line { line, cause })?;
        if let Some(context) = parsed.and_then(|parsed| parsed.context) {
            server.context(context).map_err(|cause| FileContextsError::Context { line, cause })?;
        }
    }
    let needless = needless(text)?;
    built.file_contexts = without(&built.file_contexts, text);
    let kept = (1..).zip(text.lines()).filter(|(line, _)| !needless.contains(line));
    built.file_contexts.extend(kept.flat_map(|(_, text)| [text, "\n"]));
    Ok(())
}

/// The text, with an empty line in place of each that says the same as another one.
pub fn without_needless(text: &str) -> Result<String, FileContextsError> {
    let needless = needless(text)?;
    let kept = (1..).zip(text.lines()).map(|(line, text)| if needless.contains(&line) { "" } else { text });
    Ok(kept.flat_map(|text| [text, "\n"]).collect())
}

/// The numbers of lines that say the same as another line of the text.
fn needless(text: &str) -> Result<BTreeSet<usize>, FileContextsError> {
    let mut known: HashMap<&str, Vec<(usize, Line<'_>)>> = HashMap::new();
    let mut needless = BTreeSet::new();
    for (number, text) in (1..).zip(text.lines()) {
        let Ok(Some(line)) = Line::parse(text) else { continue };
        let before = known.entry(line.expression).or_default();
        for (first, other) in before.iter().filter(|(_, other)| other.meets(&line)) {
            if other.context != line.context {
                let name = |line: &Line<'_>| line.context.unwrap_or(NONE).to_owned();
                let (first, expression) = (*first, line.expression.to_owned());
                let (one, other) = (name(other), name(&line));
                return Err(FileContextsError::Twice { line: number, first, expression, one, other });
            }
            needless.insert(if line.kind.is_none() { *first } else { number });
        }
        before.push((number, line));
    }
    Ok(needless)
}

/// The lines of `before` without those that lines of `after` replace. A line for any kind of file stays for the other
/// kinds.
fn without(before: &str, after: &str) -> String {
    let mut taken: HashMap<&str, Vec<Option<&str>>> = HashMap::new();
    for line in lines(after) {
        taken.entry(line.expression).or_default().push(line.kind);
    }
    let mut left = String::new();
    for text in before.lines() {
        let line = Line::parse(text).ok().flatten();
        let taken = line.and_then(|line| Some((line, taken.get(line.expression)?)));
        match taken {
            None => left.push_str(&format!("{text}\n")),
            Some((_, kinds)) if kinds.contains(&None) => {}
            Some((Line { kind: Some(kind), .. }, kinds)) => {
                if !kinds.contains(&Some(kind)) {
                    left.push_str(&format!("{text}\n"));
                }
            }
            Some((Line { expression, context, .. }, kinds)) => {
                for kind in KINDS.iter().filter(|kind| !kinds.contains(&Some(kind))) {
                    left.push_str(&format!("{expression}\t{kind}\t{}\n", context.unwrap_or(NONE)));
                }
            }
        }
    }
    left
}

/// The text with a line, which replaces the one with the same expression and kind of file, or comes last.
pub fn with(text: &str, line: &Line<'_>) -> String {
    let line = format!("{line}\n");
    without(text, &line) + &line
}

/// The text without the line with an expression and a kind of file; `None`: it has none.
pub fn without_line(text: &str, expression: &str, kind: Option<&str>) -> Option<String> {
    let is_it = |text: &&str| {
        let line = Line::parse(text).ok().flatten();
        line.is_some_and(|line| (line.expression, line.kind) == (expression, kind))
    };
    text.lines()
        .any(|line| is_it(&line))
        .then(|| text.lines().filter(|line| !is_it(line)).flat_map(|line| [line, "\n"]).collect())
}

/// For each pair `ALIAS PATH`, adds the lines about the path and what is below it for the alias as well. libselinux
/// reads the pairs from files beside its own (`file_contexts.subs`), and looks up one path in place of the other.
pub fn with_aliases(text: &str, pairs: &str) -> String {
    let mut whole = once(text.lines().map(str::to_owned));
    for pair in pairs.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let [alias, path] = pair[..] else { continue };
        if alias.starts_with('#') {
            continue;
        }
        let [alias, path] = [alias, path].map(|text| text.replace('.', "\\."));
        let below = |line: &str| {
            let rest = line.strip_prefix(&path).filter(|rest| rest.starts_with(['/', '(', '\t', ' ']))?;
            Some(format!("{alias}{rest}"))
        };
        let lines = without(&once(text.lines().filter_map(below)), &whole);
        whole.push_str(&lines);
    }
    whole
}

/// The first line of each group for the same paths, because libselinux refuses the others.
pub fn once(lines: impl Iterator<Item = String>) -> String {
    let mut known = HashSet::new();
    let mut fresh = |line: &String| match Line::parse(line) {
        Ok(Some(Line { expression, kind, .. })) => known.insert((expression.to_owned(), kind.map(str::to_owned))),
        _ => true,
    };
    lines.filter(|line| fresh(line)).map(|line| line + "\n").collect()
}

/// Lines that only one of two texts has; `None`: they have the same lines.
pub fn difference(before: &str, after: &str) -> Option<Statements> {
    let of = |text| -> BTreeSet<String> { lines(text).map(|line| line.to_string()).collect() };
    let (before, after) = (of(before), of(after));
    let removed: Vec<String> = before.difference(&after).cloned().collect();
    let added: Vec<String> = after.difference(&before).cloned().collect();
    let differ = !(removed.is_empty() && added.is_empty());
    differ.then_some(Statements { kind: "file contexts", removed, added })
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.kind.map(|kind| format!(" {kind}")).unwrap_or_default();
        write!(f, "{}{kind} {}", self.expression, self.context.unwrap_or(NONE))
    }
}
