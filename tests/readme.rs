//! README.md as a newcomer reads it: each command line is run or refused here, and each link leads to a file.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::{
    page::fixture,
    program::{
        Scratch,
        extract::{Line, groups},
        machine::source,
        steps::Guest,
        word,
    },
};

/// Where the lines of a block can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In this repository, by make.
    Makefile,
    /// Anywhere.
    Host,
    /// On a machine whose policy may be changed: root runs a line of the block.
    Guest,
}

fn readme() -> String {
    fs::read_to_string(source("README.md")).unwrap()
}

fn place(line: &Line, group: &[Line]) -> Place {
    let begins = |word: &str, line: &Line| line.text.split_whitespace().next() == Some(word);
    if begins("make", line) {
        Place::Makefile
    } else if group.iter().any(|line| begins("sudo", line)) {
        Place::Guest
    } else {
        Place::Host
    }
}

/// The lines of README.md for a place, in their order.
fn lines(wanted: Place) -> Vec<String> {
    let groups = groups(&readme());
    let lines = groups.iter().flat_map(|group| group.iter().map(move |line| (place(line, group), line)));
    let found: Vec<String> = lines.filter(|(place, _)| *place == wanted).map(|(_, line)| line.text.clone()).collect();
    assert!(!found.is_empty(), "README.md has no line for {wanted:?}");
    found
}

/// A folder with the files of a checkout after `make run`.
fn checkout(scratch: &Scratch) {
    symlink(source("policies").canonicalize().unwrap(), scratch.path("policies")).unwrap();
    let release = scratch.path("target/x86_64-unknown-linux-gnu/release");
    fs::create_dir_all(&release).unwrap();
    symlink(scratch.program(), release.join("tollgate")).unwrap();
    fixture::write(&scratch.path("results/quick"));
}

/// Runs the lines in one shell, which stops at the first failure.
fn run_on_host(scratch: &Scratch, lines: &[String]) {
    let script = format!("set -ex\n{}\n", lines.join("\n"));
    scratch.finish(scratch.command("sh", &["-c", &script])).with(0);
}

#[test]
fn readme_has_no_indented_line_that_is_no_command() {
    let text = readme();
    assert!(!text.contains("```"), "a fence hides lines from this test");
    let shown = text.lines().zip(1..).filter(|(line, _)| line.starts_with("    "));
    let taken: Vec<usize> = groups(&text).into_iter().flatten().map(|line| line.number).collect();
    let others: Vec<_> = shown.filter(|(_, number)| !taken.contains(number)).collect();
    assert!(
        others.is_empty(),
        "nothing runs these lines; a new command belongs into tests/program/extract.rs: {others:?}"
    );
}

#[test]
fn readme_names_targets_and_variables_of_the_makefile_and_ci_runs_its_tests() {
    let makefile = fs::read_to_string(source("Makefile")).unwrap();
    let scratch = Scratch::new();
    for line in lines(Place::Makefile) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        for (variable, _) in words.iter().filter_map(|word| word.split_once('=')) {
            assert!(makefile.contains(&format!("\n{variable} ")), "the Makefile has no {variable}: {line}");
        }
        let repository = source(".");
        let arguments = [&["-n", "-C", word(&repository)], &words[..]].concat();
        scratch.finish(scratch.command("make", &arguments)).with(0);
    }
    let ci = fs::read_to_string(source(".ci/run")).unwrap();
    assert!(lines(Place::Makefile).contains(&"make test".to_owned()) && ci.contains("\nmake test\n"));
}

#[test]
fn readme_runs_line_by_line_in_a_checkout() {
    let scratch = Scratch::new();
    checkout(&scratch);
    run_on_host(&scratch, &lines(Place::Host));
    let picture = fs::read_to_string(scratch.path("overhead.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains(">open+close<"));
}

#[test]
fn readme_enforces_and_stops_in_a_guest() {
    let scratch = Scratch::new();
    checkout(&scratch);
    let builds = |line: &String| line.starts_with("export ") || line.contains(" policy build ");
    run_on_host(&scratch, &lines(Place::Host).into_iter().filter(builds).collect::<Vec<_>>());
    let lines = lines(Place::Guest);
    let own = scratch.path("own");
    let mut guest = Guest::under(&scratch, "6.1", &own).with(&own, "/own").lines("cd /\n");
    for line in &lines {
        guest = guest.step(line, line.strip_prefix("sudo ").unwrap_or(line));
    }
    let steps = guest.run();
    for line in &lines {
        steps[line].is(0, &[]);
    }
}

/// The pages of a folder and of those below it.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path();
        if path.is_dir() && !["target", "results", ".git"].contains(&name.as_str()) {
            pages(&path, found);
        } else if name.ends_with(".md") && !path.ends_with("crates/enforcer/hooks.md") {
            // That file is the head of docs/hooks.md, and its links are relative to there.
            found.push(path);
        }
    }
}

/// The targets of a page's links that are files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.map(|target| target.split('#').next().unwrap_or_default());
    targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
}

#[test]
fn each_link_of_a_page_leads_to_a_file() {
    let mut found = Vec::new();
    pages(&source(".").canonicalize().unwrap(), &mut found);
    assert!(found.len() > 40, "{found:?}");
    for page in found {
        let text = fs::read_to_string(&page).unwrap();
        let lost: Vec<&str> = links(&text).filter(|target| !page.parent().unwrap().join(target).exists()).collect();
        assert!(lost.is_empty(), "{}: {lost:?}", page.display());
    }
}
