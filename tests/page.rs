//! `tollgate study report DIR --html FILE`: the page in a browser, and wrong input.

mod browser;
pub(crate) mod fixture;

use std::{fs, os::unix::fs::FileTypeExt, path::PathBuf, process::Command, thread};

use serde_json::Value;

use crate::program::{Scratch, report, word};

/// WCAG 2.1, AA: of text, and of lines that must be seen.
const TEXT: f64 = 4.5;
const LINES: f64 = 3.0;

/// A page of the fixture.
fn page(scratch: &Scratch) -> PathBuf {
    let (folder, file) = (scratch.path("out"), scratch.path("page.html"));
    fixture::write(&folder);
    scratch.run(&["study", "report", word(&folder), "--html", word(&file)]).with(0);
    file
}

fn is_empty(found: &Value, key: &str) {
    assert_eq!(found[key], serde_json::json!([]), "{key}");
}

fn texts<'v>(found: &'v Value, key: &str) -> Vec<&'v str> {
    found[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn page_is_whole_legible_and_reached_by_keyboard_in_a_browser() {
    let scratch = Scratch::new();
    let page = page(&scratch);
    let mut least = f64::INFINITY;
    for (width, dark) in [(360, true), (1280, false)] {
        let found = browser::look(&scratch, &page, width, dark);
        assert_eq!(found["width"], width);
        assert_eq!(found["overflow"], 0, "the page scrolls sideways at {width}");
        for key in ["errors", "fetched", "unnamed", "unreached", "stuck", "twice", "dead"] {
            is_empty(&found, key);
        }
        for count in ["leaps", "bare", "mute"] {
            assert_eq!(found[count], 0, "{count}");
        }
        assert_ne!(found["first"]["paper"], found["second"]["paper"], "the button changes the theme");
        for theme in ["first", "second"] {
            let seen = &found[theme];
            let (text, lines) = (seen["least"].as_f64().unwrap(), seen["lines"].as_f64().unwrap());
            assert!(text >= TEXT, "{theme} at {width}: {}", seen["low"]);
            assert!(lines >= LINES, "{theme} at {width}: lines have {lines}");
            least = least.min(text);
        }
        assert_eq!(texts(&found, "landmarks"), ["header", "nav", "main", "footer"]);
        let sections =
            ["measured", "summary", "overhead", "depth", "kernels", "published", "latency", "counts", "reach"];
        assert_eq!(texts(&found, "sections"), sections);
        assert!(
            found["tables"].as_u64() >= Some(10) && found["charts"] == 14 && found["reach"].as_u64() > Some(40),
            "{found}"
        );
        copies(&found);
    }
    report("least contrast of text, both themes, 360 and 1280 wide", &format!("{least:.2}"), "4.5", least >= TEXT);
}

/// If a browser does not let a script copy, the table is selected and the page says so; otherwise these are the texts.
fn copies(found: &Value) {
    assert!(found["selected"].as_u64() > Some(500) && found["told"].as_str().unwrap().contains("Ctrl+C"), "{found}");
    let [tsv, csv, markdown] = texts(found, "copied")[..] else { panic!("{found}") };
    let stat = "stat\t5215\t";
    assert!(tsv.starts_with("operation\tnone\tcapability\t") && tsv.contains(&format!("\n{stat}")), "{tsv}");
    assert!(csv.contains("\nstat,5215,") && csv.lines().all(|line| line.matches(',').count() == 9), "{csv}");
    assert!(markdown.contains("\n|---|---:|") && markdown.contains("\n| open+close |"), "{markdown}");
}

#[test]
fn page_needs_nothing_but_itself() {
    let scratch = Scratch::new();
    let text = fs::read_to_string(page(&scratch)).unwrap();
    for word in ["http://", "https://", " src=", "@import", "url(", "<link"] {
        assert!(!text.contains(word), "the page names {word:?}");
    }
    assert!(text.contains("default-src 'none'"));
    let again = scratch.path("again.html");
    scratch.run(&["study", "report", word(&scratch.path("out")), "--html", word(&again)]).with(0);
    assert_eq!(fs::read_to_string(again).unwrap(), text, "the same results make the same page");
}

#[test]
fn page_refuses_what_is_no_study_and_leaves_no_half_of_a_file() {
    let scratch = Scratch::new();
    let file = scratch.path("page.html");
    let report = |dir: &str, file: &str| scratch.run(&["study", "report", dir, "--html", file]);
    fs::create_dir(scratch.path("empty")).unwrap();
    report("empty", word(&file)).refused(&["empty", "no results.json", "--out folder"]);
    report("absent", word(&file)).refused(&["absent", "no results.json"]);
    page(&scratch);
    let results = scratch.path("out/results.json");
    let text = fs::read_to_string(&results).unwrap();
    report("out", "no/such/page.html").refused(&["no/such/page.html", "folder that is there"]);
    report("out", "out").refused(&["out", "is a folder"]);
    scratch.run(&["study", "report", "out", "--html", "x.html", "--format", "csv"]).with(2);
    fs::write(&file, "before").unwrap();
    fs::write(&results, text.replacen("\"schema\":1", "\"schema\":7", 1)).unwrap();
    report("out", word(&file)).refused(&["schema 7", "reads schema 1"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before", "what was there is left as it was");
    let names: Vec<String> =
        fs::read_dir(scratch.path("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.ends_with(".new")), "{names:?}");
    fs::write(&results, &text).unwrap();
    fs::write(scratch.path("out/counts.json"), "[{ \"schema\": 9 }]").unwrap();
    report("out", word(&file)).refused(&["counts.json", "schema 9", "tollgate hooks count --json"]);
    fs::remove_file(scratch.path("out/counts.json")).unwrap();
    // A pipe is written to and not replaced.
    let pipe = scratch.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    report("out", word(&pipe)).with(0);
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe is still one");
    assert!(reader.join().unwrap().starts_with("<!DOCTYPE html>"));
}
