//! BOP's evaluation of 2000 on Debian's daemons: studies/bop.toml, and what docs/bop.md says of it.

use std::fs;

use serde_json::Value;

use crate::program::{Scratch, guests, word};

const STUDY: &str = include_str!("../studies/bop.toml");

/// Runs a study, in which the guard denies nothing that it has learnt, and returns the rows of its table.
fn rows(study: &str) -> Vec<Value> {
    let scratch = Scratch::new();
    let (file, out) = (scratch.file("bop.toml", study), scratch.path("out"));
    let place = guests::take(1);
    let ended = scratch.run(&["study", "run", word(&file), "--out", word(&out)]).with(0);
    drop(place);
    println!("{}", ended.stdout);
    let results: Value = serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap();
    results["report"]["rows"].as_array().unwrap().clone()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn measures_applications_that_are_guarded_by_what_was_learnt() {
    let rows = rows(&STUDY.replace("runs = 40", "runs = 2"));
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["mail", "print", "copy", "copy-unguarded", "x-server"]);
    for row in &rows {
        let samples = row["samples"].as_array().unwrap().iter().map(|of| of.as_array().unwrap().len());
        assert_eq!(samples.collect::<Vec<_>>(), [2, 2], "{row}");
    }
}

/// The whole study, beside the figures that BOP's authors published.
#[cfg(feature = "long")]
#[test]
fn costs_bops_applications_less_than_one_percent() {
    for row in rows(STUDY) {
        let number = |value: &Value| value.as_f64().unwrap();
        let (from, to) = (number(&row["interval"][0]), number(&row["interval"][1]));
        let figure = format!("{:+.2} % ({from:+.2} to {to:+.2})", number(&row["percent"]));
        let met = row["proven"].as_str().unwrap().starts_with("proven");
        crate::program::report(row["name"].as_str().unwrap(), &figure, "less than 1 %, proven at 5 %", met);
    }
}
