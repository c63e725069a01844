//! A `file_contexts` that somebody wrote, put beside a policy.
//!
//! Lines are `EXPRESSION [KIND] CONTEXT`. Of several that match a path the last counts; libselinux refuses two for one
//! expression that are for the same kind of file.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::{
    built::{Built, BuiltError},
    context::ContextError,
    diff::Statements,
};

/// What a path has that is to have no label.
const NONE: &str = "<<none>>";
/// Kinds of file, as lines name them.
pub const KINDS: [&str; 7] = ["--", "-d", "-l", "-c", "-b", "-p", "-s"];

/// Why it cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileContextsError {
    /// A line gives a context that the policy does not permit.
    #[error("line {line}: {cause}")]
    Context {
        /// The line, from 1.
        line: usize,
        /// Why the policy has no such context.
        cause: ContextError,
    },
    /// A line is none.
    #[error("line {line}: {cause}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Why it is no line of file contexts.
        cause: NoLine,
    },
    /// The policy cannot be asked.
    #[error(transparent)]
    Built(#[from] BuiltError),
}

/// A line that says something, but does not label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a regular expression, perhaps a kind of file (--, -d, -l, -c, -b, -p, -s), and a context")]
pub struct NoLine;

/// A line that labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t> {
    /// What whole paths must match.
    pub expression: &'t str,
    /// For which kind of file it is; `None`: for any.
    pub kind: Option<&'t str>,
    /// The context; `None` for `<<none>>`.
    pub context: Option<&'t str>,
}

impl<'t> Line<'t> {
    /// The line of a text; `None` of what says nothing.
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

    /// Whether both are for the same expression and some kind of file.
    pub fn meets(&self, other: &Self) -> bool {
        let kinds = self.kind.is_none() || other.kind.is_none() || self.kind == other.kind;
        kinds && self.expression == other.expression
    }
}

/// The lines of a text that label; what is no line is left out.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(|line| Line::parse(line).ok().flatten())
}

/// Puts lines after those that the policy has, each in the place of those for the same expression and kind of file.
pub fn append(built: &mut Built, text: &str) -> Result<(), FileContextsError> {
    let mut server = built.server()?;
    for (line, text) in (1..).zip(text.lines()) {
        let parsed = Line::parse(text).map_err(|cause| FileContextsError::Line { line, cause })?;
        if let Some(context) = parsed.and_then(|parsed| parsed.context) {
            server.context(context).map_err(|cause| FileContextsError::Context { line, cause })?;
        }
    }
    built.file_contexts = without(&built.file_contexts, text);
    built.file_contexts.push_str(text);
    if !text.is_empty() && !text.ends_with('\n') {
        built.file_contexts.push('\n');
    }
    Ok(())
}

/// The lines of `before` less what lines of `after` are for: one for any kind of file is left for the other kinds.
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

/// A text with a line, in the place of what it says for the same expression and kind of file, or at the end.
pub fn with(text: &str, line: &Line<'_>) -> String {
    let line = format!("{line}\n");
    without(text, &line) + &line
}

/// A text without the line of an expression and a kind of file; `None`: it has none.
pub fn without_line(text: &str, expression: &str, kind: Option<&str>) -> Option<String> {
    let is_it = |text: &&str| {
        let line = Line::parse(text).ok().flatten();
        line.is_some_and(|line| (line.expression, line.kind) == (expression, kind))
    };
    text.lines()
        .any(|line| is_it(&line))
        .then(|| text.lines().filter(|line| !is_it(line)).flat_map(|line| [line, "\n"]).collect())
}

/// For each pair `ALIAS PATH` the lines about the path and what is below it, for the alias, too. libselinux reads the pairs
/// from files beside its own (`file_contexts.subs`), and looks one path up in place of the other.
pub fn with_aliases(text: &str, pairs: &str) -> String {
    let mut whole: Vec<String> = text.lines().map(str::to_owned).collect();
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
        whole.extend(text.lines().filter_map(below));
    }
    once(whole.into_iter())
}

/// The lines, of several for the same paths the first: libselinux refuses others.
pub(crate) fn once(lines: impl Iterator<Item = String>) -> String {
    let mut known = HashSet::new();
    let mut fresh = |line: &String| match Line::parse(line) {
        Ok(Some(Line { expression, kind, .. })) => known.insert((expression.to_owned(), kind.map(str::to_owned))),
        _ => true,
    };
    lines.filter(|line| fresh(line)).map(|line| line + "\n").collect()
}

/// Lines that only one of two texts has; `None`: they have the same.
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
