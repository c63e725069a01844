//! Alarms for Prometheus, by its own tool.
//!
//! Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use std::path::PathBuf;

use tollgate_host::{Cache, Packages};

use crate::program::{Scratch, machine::source, word};

/// Debian's promtool.
fn promtool() -> PathBuf {
    let cache = Cache::of_user().unwrap();
    let folder = cache
        .folder("prometheus/bookworm", |fresh| Packages::new(&cache).unpack(&["prometheus/bookworm"], fresh).map(drop));
    folder.unwrap().join("usr/bin/promtool")
}

#[test]
#[ignore = "takes long: make test-rest"]
fn alarms_when_something_is_wrong_and_not_before() {
    let (scratch, promtool) = (Scratch::new(), promtool());
    let run = |words: &[&str]| scratch.finish(scratch.command(word(&promtool), words)).with(0).stdout;
    let checked = run(&["check", "rules", word(&source("packaging/prometheus/tollgate.rules.yml"))]);
    println!("{checked}{}", run(&["test", "rules", word(&source("tests/alarms/alarms.yml"))]));
}
