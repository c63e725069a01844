//! First labels of files: `file_contexts`, compiled and looked up by libselinux's selabel.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::labels::{
    expression::prefix,
    selabel::{Handle, Refusal},
};

/// The context in lines for files that stay without a label.
const NONE: &str = "<<none>>";

/// Why a `file_contexts` cannot be used, or a path cannot be looked up in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileContextsError {
    /// A line is wrong.
    #[error("file_contexts, line {line}: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What libselinux, or the policy, says about it.
        reason: String,
    },
    /// libselinux refuses the whole text.
    #[error("cannot use file_contexts: {reason}")]
    Refused {
        /// What libselinux says.
        reason: String,
    },
    /// The text could not be passed to libselinux, which reads only files.
    #[error("cannot pass file_contexts to libselinux: {cause}")]
    Io {
        /// What the system returned.
        cause: io::Error,
    },
    /// A path could not be looked up.
    #[error("cannot look up {} in file_contexts: {cause}", path.display())]
    Lookup {
        /// The path that was looked up.
        path: PathBuf,
        /// What libselinux returned.
        cause: io::Error,
    },
}

/// A line that labels: `EXPRESSION [KIND] CONTEXT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Specification<'t> {
    /// Number of the line, from 1.
    pub line: usize,
    /// The whole line.
    pub text: &'t str,
    /// The expression that paths must match.
    pub expression: &'t str,
    /// The kind of files, for example `-d`; `None`: all.
    pub kind: Option<&'t str>,
    /// The context; `None` for `<<none>>`.
    pub context: Option<&'t str>,
}

/// The lines of a `file_contexts` that label, without those that libselinux will refuse.
pub fn specifications(text: &str) -> impl Iterator<Item = Specification<'_>> {
    (1..).zip(text.lines()).filter_map(|(line, text)| {
        let mut words = text.split_whitespace();
        let expression = words.next().filter(|first| !first.starts_with('#'))?;
        let context = words.next_back()?;
        let context = Some(context).filter(|context| *context != NONE);
        Some(Specification { line, text, expression, kind: words.next(), context })
    })
}

/// A compiled `file_contexts`. It may be sent to another thread, but only one may use it at a time.
#[derive(Debug)]
pub struct FileContexts {
    lines: Vec<Line>,
    all: RefCell<Part>,
}

/// A line that labels, and the prefix of every path that it matches.
#[derive(Debug)]
struct Line {
    text: String,
    prefix: Vec<u8>,
}

/// How many lines libselinux checks at once.
const CHECKED_LINES: usize = 64;
/// With fewer lines than this, splitting off a part is not worth it.
const MIN_LINES: usize = 48;
/// How many paths are looked up in a directory before it gets a part of its own.
const LOOKUPS_BEFORE_PART: u32 = 24;

/// The lines that may match paths in a directory. libselinux tries one line after the other. A whole policy has
/// thousands, but a directory has only a few.
#[derive(Debug)]
struct Part {
    handle: Handle,
    /// Indices of [`FileContexts::lines`].
    lines: Vec<usize>,
    below: HashMap<Vec<u8>, Below>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
enum Below {
    /// How many paths were looked up there.
    Asked(u32),
    /// Its index in `parts`.
    Part(usize),
    /// A part would have as many lines as this one.
    Useless,
}

impl FileContexts {
    /// Reads the text of a `file_contexts`. Each expression must be valid, and each context must have the form of one.
    pub fn new(text: &str) -> Result<Self, FileContextsError> {
        Self::checked(text, |_| Ok(()))
    }

    /// Likewise. `check` says what is wrong with a context, for example that the policy does not have its type.
    pub fn checked(text: &str, mut check: impl FnMut(&str) -> Result<(), String>) -> Result<Self, FileContextsError> {
        for Specification { line, context, .. } in specifications(text) {
            let Some(context) = context else { continue };
            if context.split(':').take(3).filter(|part| !part.is_empty()).count() < 3 {
                return Err(FileContextsError::Line { line, reason: format!("`{context}` is not a context") });
            }
            check(context).map_err(|reason| FileContextsError::Line { line, reason })?;
        }
        refuse_repeated(text)?;
        check_lines(text)?;
        let handle = Handle::new(text).map_err(|cause| refusal(cause, 0))?;
        let lines: Vec<Line> = specifications(text)
            .map(|found| Line { text: found.text.to_owned(), prefix: prefix(found.expression) })
            .collect();
        let all = Part::new(handle, (0..lines.len()).collect());
        Ok(Self { lines, all: RefCell::new(all) })
    }

    /// The first context of a file with this path and mode; `None`: no line matches, or the last one that does says
    /// `<<none>>`. With a mode of 0 the kind of file is not known, and lines for any kind match.
    pub fn lookup(&self, path: &Path, mode: u32) -> Result<Option<String>, FileContextsError> {
        let failed = |cause| FileContextsError::Lookup { path: path.to_owned(), cause };
        let mut all = self.all.borrow_mut();
        let part = self.part(&mut all, path.as_os_str().as_bytes()).map_err(failed)?;
        part.handle.lookup(path, mode).map_err(failed)
    }

    /// The part for the directory of a path, or for one above it.
    fn part<'p>(&self, all: &'p mut Part, path: &[u8]) -> io::Result<&'p Part> {
        let mut part = all;
        // libselinux normalizes other paths before it compares them.
        if path.first() != Some(&b'/') || path.ends_with(b"/") || path.windows(2).any(|pair| pair == b"//") {
            return Ok(part);
        }
        let mut start = 1;
        for end in (1..path.len()).filter(|at| path[*at] == b'/') {
            match part.below(&self.lines, &path[start..end], &path[..=end])? {
                Some(place) => part = &mut part.parts[place],
                None => break,
            }
            start = end + 1;
        }
        Ok(part)
    }
}

impl Part {
    fn new(handle: Handle, lines: Vec<usize>) -> Self {
        Self { handle, lines, below: HashMap::new(), parts: Vec::new() }
    }

    /// The index of the part for a subdirectory. The part is made when the directory is looked up often. `path` is the
    /// subdirectory's, and ends in a slash.
    fn below(&mut self, all: &[Line], name: &[u8], path: &[u8]) -> io::Result<Option<usize>> {
        if self.lines.len() <= MIN_LINES {
            return Ok(None);
        }
        match self.below.get_mut(name) {
            Some(Below::Part(place)) => return Ok(Some(*place)),
            Some(Below::Useless) => return Ok(None),
            Some(Below::Asked(times)) if *times < LOOKUPS_BEFORE_PART => *times += 1,
            Some(Below::Asked(_)) => return self.split(all, name, path),
            None => drop(self.below.insert(name.to_vec(), Below::Asked(1))),
        }
        Ok(None)
    }

    fn split(&mut self, all: &[Line], name: &[u8], path: &[u8]) -> io::Result<Option<usize>> {
        let may_match = |prefix: &[u8]| path.starts_with(prefix) || prefix.starts_with(path);
        let lines: Vec<usize> = self.lines.iter().copied().filter(|line| may_match(&all[*line].prefix)).collect();
        let below = if lines.len() < self.lines.len() {
            let text: String = lines.iter().flat_map(|line| [all[*line].text.as_str(), "\n"]).collect();
            let handle = Handle::new(&text).map_err(|refusal| io::Error::other(format!("{refusal:?}")))?;
            self.parts.push(Self::new(handle, lines));
            Below::Part(self.parts.len() - 1)
        } else {
            Below::Useless
        };
        self.below.insert(name.to_vec(), below);
        Ok(match below {
            Below::Part(place) => Some(place),
            _ => None,
        })
    }
}

/// Lets libselinux check a text. It compares each line with each other one: for a whole policy's, that takes longer than
/// all else.
fn check_lines(text: &str) -> Result<(), FileContextsError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut parts = (0..).step_by(CHECKED_LINES).zip(lines.chunks(CHECKED_LINES));
    parts.try_for_each(|(before, part)| Handle::check(&part.concat()).map_err(|cause| refusal(cause, before)))
}

/// Refuses a second line for the same files, as libselinux does where it compares them.
fn refuse_repeated(text: &str) -> Result<(), FileContextsError> {
    let mut known: HashMap<&str, Vec<Specification<'_>>> = HashMap::new();
    for found in specifications(text) {
        let Specification { line, expression, kind, .. } = found;
        let same = known.entry(expression).or_default();
        let meets = |other: &&Specification<'_>| kind.is_none() || other.kind.is_none() || kind == other.kind;
        if let Some(other) = same.iter().find(meets) {
            let reason = format!("line {} has a context for `{expression}` already: remove one of them", other.line);
            return Err(FileContextsError::Line { line, reason });
        }
        same.push(found);
    }
    Ok(())
}

/// Takes a message like `line N has invalid regex ...` apart, which counts from the line after `before`.
fn refusal(refusal: Refusal, before: usize) -> FileContextsError {
    let message = match refusal {
        Refusal::Said(message) => message,
        Refusal::Io(cause) => return FileContextsError::Io { cause },
    };
    let numbered = message.strip_prefix("line ").and_then(|rest| rest.split_once(' '));
    match numbered.and_then(|(line, reason)| Some((before + line.parse::<usize>().ok()?, reason.to_owned()))) {
        Some((line, reason)) => FileContextsError::Line { line, reason },
        None => FileContextsError::Refused { reason: message },
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    const DIRECTORY: u32 = libc::S_IFDIR | 0o755;
    const FILE: u32 = libc::S_IFREG | 0o644;

    fn lookup(text: &str, path: &str, mode: u32) -> Option<String> {
        FileContexts::new(text).unwrap().lookup(Path::new(path), mode).unwrap()
    }

    fn line(text: &str) -> usize {
        match FileContexts::new(text) {
            Err(FileContextsError::Line { line, .. }) => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn takes_the_last_expression_that_matches_the_path_and_the_kind() {
        let text = "/srv(/.*)? u:r:srv_t:s0\n/srv/.* -d u:r:dir_t:s0\n/srv/key -- u:r:key_t:s0\n";
        assert_eq!(lookup(text, "/srv/a/b", FILE).as_deref(), Some("u:r:srv_t:s0"));
        assert_eq!(lookup(text, "/srv/a/b", DIRECTORY).as_deref(), Some("u:r:dir_t:s0"));
        assert_eq!(lookup(text, "/srv/key", FILE).as_deref(), Some("u:r:key_t:s0"));
        assert_eq!(lookup(text, "/srv/key", DIRECTORY).as_deref(), Some("u:r:dir_t:s0"));
    }

    #[test]
    fn gives_no_label_where_nothing_matches_or_none_is_said() {
        let text = "/srv/.* u:r:srv_t:s0\n/srv/tmp/.* <<none>>\n";
        assert_eq!(lookup(text, "/var", DIRECTORY), None);
        assert_eq!(lookup(text, "/srv/tmp/x", FILE), None);
        assert_eq!(lookup("", "/srv/tmp/x", FILE), None);
        assert_eq!(lookup("# /srv u:r:srv_t\n", "/srv", DIRECTORY), None);
    }

    /// Every path that can be made of a few names, often enough that each directory has a part of its own.
    #[test]
    fn gives_each_path_the_same_label_with_parts_and_without() {
        let fillers: String =
            (0..100).map(|n| format!("/a/filler/{n} u:r:filler_t\n/b/{n}/.* u:r:filler_t\n")).collect();
        let text = format!(
            "{fillers}/.* u:r:all_t\n/a(/.*)? u:r:a_t\n/a/b/.* u:r:ab_t\n/(a|b)/c/x* u:r:x_t\n/a.b/c u:r:dot_t\n\
             /a/bc?/c -- u:r:bc_t\n/b|/a/c/a u:r:or_t\n/a/b+/b/.* u:r:bb_t\n/a/c/b\\.c <<none>>\n/b/.*/a u:r:ba_t\n\
             /b/a/[^/]+/c u:r:class_t\n/c/(?i)A.* u:r:i_t\n"
        );
        let names = ["a", "b", "c", "b.c", "bc", "xx"];
        let contexts = FileContexts::new(&text).unwrap();
        let whole = Handle::new(&text).unwrap();
        let mut paths = vec![String::new()];
        let mut labels = std::collections::HashSet::new();
        for _ in 0..4 {
            paths = paths.iter().flat_map(|path| names.map(|name| format!("{path}/{name}"))).collect();
            for path in &paths {
                let expected = whole.lookup(Path::new(path), FILE).unwrap();
                assert_eq!(contexts.lookup(Path::new(path), FILE).unwrap(), expected, "{path}");
                labels.insert(expected);
            }
        }
        assert_eq!(labels.len(), 11, "{labels:?}");
        let all = contexts.all.borrow();
        assert!(all.parts.len() > 3 && all.parts.iter().any(|part| part.parts.len() > 3));
    }

    #[test]
    fn matches_names_that_are_not_text_and_names_with_line_ends() {
        let contexts = FileContexts::new("/srv/.* u:r:srv_t\n").unwrap();
        let strange = Path::new(OsStr::from_bytes(b"/srv/\xff\n\x01"));
        assert_eq!(contexts.lookup(strange, FILE).unwrap().as_deref(), Some("u:r:srv_t"));
        let long = PathBuf::from(format!("/srv{}", "/directory".repeat(1000)));
        assert_eq!(contexts.lookup(&long, FILE).unwrap().as_deref(), Some("u:r:srv_t"));
    }

    #[test]
    fn refuses_a_path_with_a_nul() {
        let contexts = FileContexts::new("/.* u:r:t\n").unwrap();
        assert!(matches!(contexts.lookup(Path::new("/a\0b"), FILE), Err(FileContextsError::Lookup { .. })));
    }

    #[test]
    fn tells_the_line_of_what_is_wrong() {
        let good = "/a u:r:t\n\n# comment\n";
        assert_eq!(line(&format!("{good}/b(c u:r:t\n")), 4, "an expression");
        assert_eq!(line(&format!("{good}/b -x u:r:t\n")), 4, "a kind of file");
        assert_eq!(line(&format!("{good}/b\n")), 4, "no context");
        assert_eq!(line(&format!("{good}/b type\n")), 4, "a context");
        assert_eq!(line(&format!("{good}/b u::t\n")), 4, "a context");
        let error = FileContexts::checked(&format!("{good}/b u:r:x\n/c u:r:y"), |context| {
            if context == "u:r:y" { Err("no such type".into()) } else { Ok(()) }
        });
        assert_eq!(error.unwrap_err().to_string(), "file_contexts, line 5: no such type");
    }

    #[test]
    fn tells_the_line_of_what_is_wrong_in_a_long_text() {
        let good: String = (0..1000).map(|n| format!("/{n}(/.*)? u:r:t\n")).collect();
        assert_eq!(line(&format!("{good}/b(c u:r:t\n/z u:r:t\n")), 1001);
        assert_eq!(line(&format!("{good}/7(/.*)? u:r:t\n")), 1001);
    }

    #[test]
    fn refuses_two_contexts_for_one_expression() {
        let agrees = |text: &str| {
            let found = FileContexts::new(text);
            assert_eq!(found.is_ok(), Handle::check(text).is_ok(), "libselinux, on {text}: {found:?}");
            found.map(drop).map_err(|cause| cause.to_string())
        };
        let said = "file_contexts, line 2: line 1 has a context for `/a` already: remove one of them";
        for kinds in [["", ""], ["--", "--"], ["", "-d"], ["-d", ""]] {
            let text = format!("/a {} u:r:t\n/a {} u:r:x\n", kinds[0], kinds[1]);
            assert_eq!(agrees(&text).unwrap_err(), said);
        }
        agrees("/a u:r:t\n/a u:r:t\n").unwrap_err();
        agrees("/a u:r:t\n/a <<none>>\n").unwrap_err();
        agrees("/a -- u:r:t\n/a -d u:r:x\n/a. u:r:t\n").unwrap();
    }

    #[test]
    fn reads_tollgates_own() {
        let contexts = FileContexts::new(include_str!("../../../../policies/tollgate/file_contexts")).unwrap();
        let shadow = contexts.lookup(Path::new("/etc/shadow"), FILE).unwrap();
        assert_eq!(shadow.as_deref(), Some("system_u:object_r:shadow_t:s0"));
    }
}
