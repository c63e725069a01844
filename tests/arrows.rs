//! The arrows of ARCHITECTURE.md: which crate knows which, and that no crate's modules form a circle. They are read from
//! Cargo.toml and from the source; nothing is built or run.

mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use source::{Crate, circle};

/// Crates whose modules may form circles, and why.
const EXCEPTIONS: [(&str, &str); 0] = [];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folders of all crates, by the name in ARCHITECTURE.md.
fn crates() -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|folder| folder.join("Cargo.toml").is_file());
    folders.map(|folder| (folder.file_name().unwrap().to_str().unwrap().to_owned(), folder)).collect()
}

/// The lines `crate → crates` of ARCHITECTURE.md, in its order.
fn drawn(text: &str) -> Vec<(String, BTreeSet<String>)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("    ")?.split_once('→'));
    let known = crates();
    lines
        .map(|(from, to)| (from.trim().to_owned(), to.split_whitespace().map(str::to_owned).collect()))
        .filter(|(from, _)| known.contains_key(from))
        .collect()
}

/// The crates of this workspace in the `[dependencies]` of a Cargo.toml.
fn needed(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.parse().unwrap();
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = dependencies.into_iter().flat_map(toml::Table::keys);
    names.filter_map(|name| name.strip_prefix("tollgate-").map(str::to_owned)).collect()
}

#[test]
fn draws_in_architecture_md_what_each_crate_needs() {
    let drawn = drawn(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    let mut expected = BTreeMap::new();
    for (name, folder) in crates() {
        expected.insert(name, needed(&fs::read_to_string(folder.join("Cargo.toml")).unwrap()));
    }
    assert_eq!(drawn.iter().cloned().collect::<BTreeMap<_, _>>(), expected, "left: ARCHITECTURE.md, right: Cargo.toml");
    for (at, (name, needs)) in drawn.iter().enumerate() {
        let below: BTreeSet<String> = drawn[at + 1..].iter().map(|(name, _)| name.clone()).collect();
        assert!(needs.is_subset(&below), "ARCHITECTURE.md draws an arrow upward from {name}: {needs:?}");
    }
}

#[test]
fn has_no_circle_of_modules_in_any_crate() {
    let mut found = Vec::new();
    for (name, folder) in crates() {
        let circles = Crate::read(&folder.join("src")).siblings().into_iter().filter_map(|(parent, arrows)| {
            let modules = circle(&arrows)?;
            let path: Vec<String> =
                modules.iter().map(|module| format!("{module} ({})", arrows[module].len())).collect();
            Some(format!("{name}: below `{parent}`: {}", path.join(" → ")))
        });
        let circles: Vec<String> = circles.collect();
        match EXCEPTIONS.iter().find(|(exception, _)| *exception == name) {
            Some((_, reason)) => {
                assert!(!circles.is_empty(), "{name} has no circle any more: delete its exception ({reason})")
            }
            None => found.extend(circles),
        }
    }
    assert!(found.is_empty(), "modules that need one another:\n{}", found.join("\n"));
}

#[test]
fn finds_a_circle_through_reexports_strings_and_macros() {
    let circle_of = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Crate::read(folder.path()).siblings().into_iter().find_map(|(_, arrows)| circle(&arrows))
    };
    let lib = ("lib.rs", "mod a; mod b; pub use a::Thing;");
    let to_a = ("b.rs", "use crate::Thing; pub fn f(_: Thing) {}");
    assert_eq!(circle_of(&[lib, ("a.rs", "pub struct Thing;"), to_a]), None);
    for other in [
        "pub struct Thing; fn g() { super::b::f(Thing) }",
        "pub struct Thing; fn g() { println!(\"{}\", crate::b::f(Thing)) }",
        "pub struct Thing { #[serde(with = \"crate::b::f\")] x: u8 }",
        "use crate::{b::f as g}; pub struct Thing;",
    ] {
        assert_eq!(circle_of(&[lib, ("a.rs", other), to_a]).map(|modules| modules.len()), Some(2), "{other}");
    }
    let in_tests = "pub struct Thing; #[cfg(test)] mod tests { use crate::b::f; }";
    assert_eq!(circle_of(&[lib, ("a.rs", in_tests), to_a]), None);
}

/// All that a package needs, tests and builds included, by Cargo.lock.
fn reached(lock: &toml::Table, package: &str) -> BTreeSet<String> {
    let packages = lock["package"].as_array().unwrap();
    let (mut found, mut next) = (BTreeSet::new(), vec![package.to_owned()]);
    while let Some(name) = next.pop() {
        let named = packages.iter().filter(|of| of["name"].as_str() == Some(&name));
        let needs = named.filter_map(|of| of.get("dependencies")?.as_array()).flatten().filter_map(toml::Value::as_str);
        // A version follows where there are several.
        let needs: Vec<String> = needs.filter_map(|need| Some(need.split(' ').next()?.to_owned())).collect();
        if found.insert(name) {
            next.extend(needs);
        }
    }
    found
}

#[test]
fn keeps_tokio_out_of_the_privileged_program() {
    let lock: toml::Table = fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    assert!(reached(&lock, "tollgate-fleet-agent").contains("tokio"), "the agent is where it belongs");
    let program = reached(&lock, "tollgate");
    assert!(program.len() > 100 && !program.contains("tokio"), "{program:?}");
}
