//! Manual pages: the help texts, with exit status, files, examples and related pages.

use std::{collections::BTreeMap, fs, io, path::Path};

use clap::Command;
use clap_mangen::{
    Man,
    roff::{Inline, Roff, bold, italic, roman},
};
use serde::Deserialize;

const PAGES: &str = include_str!("manual/pages.toml");
const MANUAL: &str = "Tollgate";
const DONE: &str = "It is done.";
const NOT_DONE: &str = "It could not be done; why, and what helps, is on standard error.";

/// The content of pages.toml.
#[derive(Debug, Deserialize)]
struct Pages {
    /// A path and its description, by the name that pages use.
    files: BTreeMap<String, [String; 2]>,
    #[serde(flatten)]
    pages: BTreeMap<String, Page>,
}

/// What a page says in addition to the help.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    /// The meaning of exit status 1; none: the command never has it.
    exit: Option<String>,
    #[serde(default)]
    files: Vec<String>,
    see: Vec<String>,
    /// Commands, each with its description.
    #[serde(default)]
    examples: Vec<[String; 2]>,
}

/// Writes a page for each command into a folder, which is created if it does not exist.
pub(crate) fn write(command: Command, folder: &Path) -> io::Result<()> {
    let pages = pages();
    fs::create_dir_all(folder)?;
    for (path, command) in commands(command) {
        let man = Man::new(command.clone()).title(path.replace(' ', "-")).source(source(&command)).manual(MANUAL);
        let mut text = Vec::new();
        man.render_title(&mut text)?;
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        if command.get_subcommands().any(|below| !below.is_hide_set()) {
            man.render_subcommands_section(&mut text)?;
        }
        if let Some(page) = pages.pages.get(&path) {
            page.render(&pages.files).to_writer(&mut text)?;
        }
        fs::write(folder.join(man.get_filename()), text)?;
    }
    Ok(())
}

fn source(command: &Command) -> String {
    format!("{MANUAL} {}", command.get_version().unwrap_or(env!("CARGO_PKG_VERSION")))
}

/// All commands that are not hidden, each with the words by which it is called.
fn commands(command: Command) -> Vec<(String, Command)> {
    fn below(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            below(command, &format!("{path} {}", command.get_name()), all);
        }
        all.push((path.to_owned(), command.clone()));
    }
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut all = Vec::new();
    below(&command, command.get_name(), &mut all);
    all
}

fn pages() -> Pages {
    toml::from_str(PAGES).expect("pages.toml is read by a unit test")
}

impl Page {
    /// `files`: those that pages may name.
    fn render(&self, files: &BTreeMap<String, [String; 2]>) -> Roff {
        let mut roff = Roff::new();
        if !self.examples.is_empty() {
            self.exit_status(&mut roff);
        }
        if !self.files.is_empty() {
            roff.control("SH", ["FILES"]);
            for [path, what] in self.files.iter().filter_map(|name| files.get(name)) {
                tagged(&mut roff, italic(path.as_str()), what);
            }
        }
        if !self.examples.is_empty() {
            roff.control("SH", ["EXAMPLES"]);
            for [command, what] in &self.examples {
                tagged(&mut roff, bold(command.as_str()), what);
            }
        }
        roff.control("SH", ["SEE ALSO"]);
        for (place, page) in self.see.iter().enumerate() {
            let (name, section) = page.split_once('(').unwrap_or((page, ""));
            let comma = if place + 1 == self.see.len() { "" } else { ", " };
            roff.text([bold(name), roman(format!("({section}{comma}"))]);
        }
        roff
    }

    fn exit_status(&self, roff: &mut Roff) {
        roff.control("SH", ["EXIT STATUS"]);
        tagged(roff, bold("0"), DONE);
        if let Some(what) = &self.exit {
            tagged(roff, bold("1"), what);
        }
        tagged(roff, bold("2"), NOT_DONE);
    }
}

fn tagged(roff: &mut Roff, tag: Inline, what: &str) {
    roff.control("TP", []);
    roff.text([tag]);
    roff.text([roman(what)]);
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::Arguments;

    #[test]
    fn gives_every_command_a_page_with_examples_that_can_be_called() {
        let pages = pages();
        let commands = commands(Arguments::command());
        let names: Vec<String> = commands.iter().map(|(path, _)| path.replace(' ', "-")).collect();
        for (path, command) in &commands {
            let page = pages.pages.get(path).unwrap_or_else(|| panic!("{path} has no page"));
            assert!(command.has_subcommands() || !page.examples.is_empty(), "{path} has no example");
            for [example, _] in page.examples.iter().filter(|[example, _]| example.starts_with("tollgate ")) {
                assert!(example.starts_with(path.as_str()), "{path}: {example}");
                if let Err(cause) = Arguments::try_parse_from(example.split_whitespace()) {
                    panic!("{example}: {cause}");
                }
            }
            for page in page.see.iter().filter(|page| page.starts_with("tollgate")) {
                let (name, section) = page.split_once('(').unwrap();
                let known = section != "1)" || names.iter().any(|other| other == name);
                assert!(known, "{path}: there is no page {page}");
            }
            for file in &page.files {
                assert!(pages.files.contains_key(file), "{path}: {file}");
            }
        }
        let unknown: Vec<_> =
            pages.pages.keys().filter(|path| !commands.iter().any(|(known, _)| known == *path)).collect();
        assert!(unknown.is_empty(), "pages of no command: {unknown:?}");
    }

    #[test]
    fn tells_exit_status_files_examples_and_other_pages() {
        let folder = tempfile::tempdir().unwrap();
        write(Arguments::command(), folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("tollgate-enforce.1")).unwrap();
        for heading in ["EXIT STATUS", "FILES", "EXAMPLES", "SEE ALSO"] {
            assert!(page.contains(&format!(".SH \"{heading}\"")) || page.contains(&format!(".SH {heading}")), "{page}");
        }
    }
}
