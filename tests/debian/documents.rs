//! The quick start and the guides, run as they are written: each command line in them is run in a guest, a Debian 12 with
//! systemd. The lines are taken from the documents themselves.

use std::{collections::BTreeMap, fs};

use serde::Deserialize;

use super::system::repository;
use crate::program::extract::{Line, commands, file};

const PAGES: &str = include_str!("documents/pages.toml");

#[derive(Deserialize)]
struct Pages {
    page: Vec<Page>,
}

/// A page, and the state that its commands require.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    name: String,
    before: String,
    #[serde(default)]
    line: Vec<Known>,
    #[serde(default)]
    file: Vec<File>,
}

/// A file that the page tells its reader to write: the block that begins with this line.
#[derive(Deserialize)]
struct File {
    first: String,
    path: String,
}

/// What the test knows about a line.
#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields, default)]
struct Known {
    line: String,
    before: String,
    meanwhile: String,
    /// The input on the command's terminal.
    types: Option<String>,
    endless: bool,
    status: i32,
    /// Whether it cannot be run in a guest.
    never: bool,
    why: String,
}

/// The guides that are installed, with their texts.
fn guides() -> BTreeMap<String, String> {
    let makefile = fs::read_to_string(repository("Makefile")).unwrap();
    let line = makefile.lines().find_map(|line| line.strip_prefix("GUIDES   := $(addprefix docs/,")).unwrap();
    let (docs, others) = line.split_once(')').unwrap();
    let docs = docs.split(',').flat_map(str::split_whitespace).map(|name| format!("docs/{name}"));
    let paths = docs.chain(others.split_whitespace().map(str::to_owned));
    let read = |path: String| {
        let text = fs::read_to_string(repository(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        (path.rsplit('/').next().unwrap().to_owned(), text)
    };
    paths.map(read).collect()
}

fn pages() -> Vec<Page> {
    toml::from_str::<Pages>(PAGES).unwrap().page
}

/// The lines of a page with what is known about each. An entry is for the next line with its text; an entry without a line is
/// an error.
fn lines(page: &Page, text: &str) -> Result<Vec<(Line, Known)>, String> {
    let mut known: Vec<&Known> = page.line.iter().collect();
    let mut of = |line: &Line| {
        let at = known.iter().position(|known| known.line == line.text)?;
        Some(known.remove(at).clone())
    };
    let found: Vec<_> = commands(text).into_iter().map(|line| (of(&line), line)).collect();
    match known.first() {
        Some(left) => Err(format!("{} has no line {:?}", page.name, left.line)),
        None => Ok(found.into_iter().map(|(known, line)| (line, known.unwrap_or_default())).collect()),
    }
}

#[test]
fn runs_each_command_of_the_documents_or_says_why_it_cannot() {
    let (guides, pages) = (guides(), pages());
    assert!(guides.len() > 10 && guides.contains_key("SECURITY.md"), "{:?}", guides.keys());
    for page in &pages {
        let text = &guides[&page.name];
        let lines = lines(page, text).unwrap();
        assert!(!lines.is_empty(), "{} has no commands", page.name);
        let reasoned = |known: &Known| known.status == 0 && !known.never || !known.why.is_empty();
        assert!(lines.iter().all(|(_, known)| reasoned(known)), "{}: a reason is missing", page.name);
        for File { first, .. } in &page.file {
            assert!(file(text, first).is_some(), "{} has no block that begins with {first:?}", page.name);
        }
        let test = format!("as_written(\"{}\"", page.name);
        assert!(include_str!("documents/guests.rs").contains(&test), "no test runs {}", page.name);
    }
    for (name, text) in &guides {
        let run = pages.iter().any(|page| page.name == *name);
        assert!(run || commands(text).is_empty(), "{name} has commands that nobody runs: {:?}", commands(text));
    }
}

#[test]
fn fails_for_an_entry_that_no_page_has_a_line_for() {
    let known = Known { line: "tollgate gone".into(), ..Known::default() };
    let page = Page { name: "page".into(), before: String::new(), line: vec![known], file: Vec::new() };
    assert!(lines(&page, "    tollgate gone\n").is_ok());
    assert_eq!(lines(&page, "    tollgate status\n").err().unwrap(), "page has no line \"tollgate gone\"");
}

#[cfg(feature = "long")]
#[path = "documents/guests.rs"]
mod guests;
