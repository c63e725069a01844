use std::{collections::BTreeSet, env, fs, path::Path};

use super::*;
use crate::programs;

fn names(of: impl Fn(&Purpose) -> bool) -> BTreeSet<String> {
    all()
        .expect("the table is well")
        .into_iter()
        .filter(|hook| of(&hook.purpose))
        .map(|hook| hook.name.into())
        .collect()
}

#[test]
fn has_a_line_for_every_hook_that_a_program_can_be_attached_to() {
    let hooks: Vec<&str> = tollgate_abi::HOOKS.iter().map(|hook| hook.name).collect();
    let lines: Vec<&str> = all().expect("the table is well").iter().map(|hook| hook.name).collect();
    assert_eq!(lines, hooks, "hooks.txt has the hooks of lsm_hooks.h in their order");
}

#[test]
fn has_a_program_wherever_it_says_that_one_asks_or_keeps() {
    let programs: BTreeSet<String> = programs::all().expect("the object is well").into_iter().collect();
    let lines = names(|purpose| matches!(purpose, Purpose::Asks { .. } | Purpose::Keeps));
    assert_eq!(lines.difference(&programs).collect::<Vec<_>>(), Vec::<&String>::new(), "lines without a program");
    assert_eq!(programs.difference(&lines).collect::<Vec<_>>(), Vec::<&String>::new(), "programs without a line");
}

#[test]
fn refuses_lines_that_name_what_does_not_exist() {
    for line in ["file_open: asks file levitate", "file_open: asks fil open", "file_open: wonders", "file_open"] {
        assert!(hook(line).is_err(), "{line}");
    }
}

#[test]
fn gives_each_class_those_permissions_that_it_has() {
    let questions = questions("files execute_no_trans read").expect("files have both");
    let of = |name| questions.iter().find(|question| question.class.name == name).map(|it| it.permissions.clone());
    assert_eq!(of("file"), Some(vec!["read", "execute_no_trans"]));
    assert_eq!(of("dir"), Some(vec!["read"]));
}

/// The header that has a hook's program, below `bpf/`.
fn header(hook: &str) -> Option<String> {
    let sections = [
        format!("SEC(\"lsm/{hook}\")"),
        format!("SEC(\"fentry/security_{hook}\")"),
        format!("SEC(\"cgroup/getsockopt\") int {hook}("),
    ];
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/programs");
    let headers = fs::read_dir(programs).expect("there are headers").map(|entry| entry.expect("it is read").path());
    let mut found = headers.filter(|path| {
        let text = fs::read_to_string(path).expect("a header is text");
        sections.iter().any(|section| text.contains(section))
    });
    let header = found.next()?;
    assert!(found.next().is_none(), "{hook} is in two headers");
    Some(format!("programs/{}", header.file_name()?.to_string_lossy()))
}

#[test]
fn finds_the_header_of_every_program() {
    for program in programs::all().expect("the object is well") {
        assert!(header(&program).is_some(), "no header of bpf/programs/ has the program of {program}");
    }
}

/// With `TOLLGATE_WRITE_DOCS` in the environment it writes the document.
#[test]
fn is_what_the_documentation_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let text = document(header).expect("the table is well");
    if env::var_os("TOLLGATE_WRITE_DOCS").is_some() {
        fs::write(&path, &text).expect("docs can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/hooks.md is old: TOLLGATE_WRITE_DOCS=1 cargo test -p tollgate-enforcer hooks");
}
