//! A policy on trial: what it would have decided differently is listed, and it decides nothing.
//!
//! QEMU, a kernel and Debian's policy packages, from the cache or a network, are needed: without them these tests fail, and
//! say so.

// Two starts of Debian's policies take minutes in an emulated guest.
#[cfg(feature = "long")]
mod debian;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::program::{
    Scratch,
    steps::{Guest, source},
    word,
};

/// Waits until the daemon is gone: its process stays as a zombie, because nothing reaps it in a guest.
const GONE: &str = "until ! tollgate mode 2>/dev/null; do sleep 0.1; done";

/// The policies of the revocation tests: one that grants, and one that does not.
fn policies(scratch: &Scratch) -> [PathBuf; 2] {
    let [after, before] = ["revocation", "revocation-before"].map(|name| source(&format!("tests/policies/{name}.cil")));
    let build = |name: &str, sources: &[&PathBuf]| {
        let out = scratch.path(name);
        let words: Vec<&str> = sources.iter().map(|path| word(path)).collect();
        scratch.run(&[&["policy", "build"], &words[..], &["-o", word(&out)]].concat()).with(0);
        out
    };
    [build("before", &[&after, &before]), build("after", &[&after])]
}

/// Source and target types, class, and what would be denied and granted, of each difference.
fn differences(report: &Value) -> Vec<(String, String, Value, Value, Value)> {
    let of = |context: &Value| context.as_str().unwrap().split(':').nth(2).unwrap().to_owned();
    let all = report["differences"].as_array().unwrap().iter();
    all.map(|one| {
        (of(&one["source"]), of(&one["target"]), one["class"].clone(), one["denied"].clone(), one["granted"].clone())
    })
    .collect()
}

#[test]
fn lists_what_a_candidate_would_deny_and_grant_and_lets_the_policy_in_force_decide() {
    let scratch = Scratch::new();
    let [before, after] = policies(&scratch);
    let holder = "tollgate run --context u:r:holder_t:s0 -- cat";
    let report = "tollgate shadow report --json";
    let steps = Guest::new(&scratch, "6.1")
        .with(&before, "/before")
        .with(&after, "/after")
        .step(
            "enforce",
            "tollgate enforce /before && echo text > /lost && tollgate label set u:object_r:lost_t:s0 /lost",
        )
        .step("none", report)
        .step("alike", &format!("tollgate shadow start /after 2>/dev/null && {holder} /init > /dev/null; {report}"))
        .step("granted", &format!("{holder} /lost"))
        .step("again", &format!("{holder} /lost; {holder} /lost"))
        .step("would deny", report)
        .step(
            "taken over",
            &format!("kill -9 $(daemon); {GONE}; tollgate enforce /before 2>/dev/null && {holder} /lost && {report}"),
        )
        .step("denied", &format!("tollgate reload /after && tollgate shadow start /before && {holder} /lost"))
        .step("would grant", report)
        .step("people", "tollgate shadow report; tollgate status")
        .step("stop", "tollgate shadow stop && tollgate status --json")
        .run();
    steps["none"].is(2, &["tollgate shadow start POLICY"]);
    assert_eq!(steps["alike"].json()["differences"], json!([]));
    steps["granted"].is(0, &["text"]);
    let would_deny = steps["would deny"].is(1, &[]).json();
    assert_eq!(would_deny["candidate"]["policy"], "/after");
    let expected = |denied: Value, granted: Value| {
        vec![("holder_t".to_owned(), "lost_t".to_owned(), json!("file"), denied, granted)]
    };
    assert_eq!(differences(&would_deny), expected(json!(["read"]), json!([])));
    assert_eq!((&would_deny["differences"][0]["count"], &would_deny["not_asked"]), (&json!(3), &json!(0)));
    let taken_over = steps["taken over"].is(1, &[]).text.split_once('{').map(|(_, json)| format!("{{{json}")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&taken_over).unwrap()["differences"][0]["count"], json!(4));
    steps["denied"].is(1, &["Permission denied"]);
    assert_eq!(differences(&steps["would grant"].is(1, &[]).json()), expected(json!([]), json!(["read"])));
    steps["people"]
        .is(0, &["would grant u:r:holder_t:s0 u:object_r:lost_t:s0 file { read }", "tollgate shadow report"]);
    assert_eq!(steps["stop"].is(0, &[]).json()["shadow"], Value::Null);
}
