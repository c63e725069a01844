//! The decision tables against libsepol, by `tollgate policy verify`: random and boundary questions, the same each time.
//! 200,000 decisions per policy here, ten million with the feature `long`.

use std::path::{Path, PathBuf};

use tollgate_policy::built::Built;

use crate::program::{Scratch, report, word};

const DECISIONS: u64 = if cfg!(feature = "long") { 10_000_000 } else { 200_000 };

/// Compares libsepol and the tables; both must have granted and refused, or nothing was compared.
fn agrees(scratch: &Scratch, name: &str, policy: &Path) {
    let decisions = DECISIONS.to_string();
    let arguments = ["policy", "verify", word(policy), "--decisions", &decisions, "--json"];
    let answer = scratch.run(&arguments).with(0).json();
    let questions = answer["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 5, "access, transition, member, change, validatetrans: {answer}");
    for kind in questions {
        let number = |field: &str| kind[field].as_u64().unwrap();
        let (asked, granted, mismatches) = (number("asked"), number("granted"), number("mismatches"));
        let what = format!("{} decisions of {name} against libsepol", kind["kind"].as_str().unwrap());
        report(
            &what,
            &format!("{asked} asked, {granted} granted, {mismatches} mismatches"),
            "0 mismatches",
            mismatches == 0,
        );
        assert_eq!(mismatches, 0, "{answer}");
        if kind["kind"] == "access" {
            assert_eq!(asked, DECISIONS);
            assert!(granted > asked / 20 && granted < asked / 20 * 19, "one-sided: {granted} of {asked}");
        } else {
            assert!(asked > DECISIONS / 40 && granted > 0, "hardly asked: {kind}");
        }
    }
}

fn debian(scratch: &Scratch, name: &str) -> PathBuf {
    let out = scratch.path(name);
    scratch.run(&["policy", "debian", name, "-o", word(&out)]).with(0);
    out
}

#[test]
fn agrees_with_libsepol_on_debians_default_policy() {
    let scratch = Scratch::new();
    let policy = debian(&scratch, "default");
    agrees(&scratch, "Debian default", &policy);
}

#[test]
fn agrees_with_libsepol_on_debians_mls_policy() {
    let scratch = Scratch::new();
    let policy = debian(&scratch, "mls");
    agrees(&scratch, "Debian mls", &policy);
}

#[test]
fn agrees_with_libsepol_on_tollgates_own_policy() {
    let scratch = Scratch::new();
    let policy = scratch.path("own");
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/tollgate");
    scratch.run(&["policy", "build", sources, "-o", word(&policy)]).with(0);
    agrees(&scratch, "Tollgate's own policy", &policy);
}

#[test]
fn shows_the_questions_that_are_not_answered_alike() {
    let scratch = Scratch::new();
    let policy = scratch.path("changed");
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/tollgate");
    scratch.run(&["policy", "build", sources, "-o", word(&policy)]).with(0);
    let mut built = Built::open(&policy).unwrap();
    let tuple = built.server().unwrap().tables().header().tuple_at as usize + 2 * 16;
    built.tables[tuple] ^= 1;
    built.write(&policy).unwrap();
    let verify = |more: &[&str]| {
        let arguments = ["policy", "verify", word(&policy), "--decisions", "20000"];
        scratch.run(&[&arguments, more].concat()).with(1)
    };
    let text = verify(&[]).stdout;
    assert!(text.contains("\naccess ") && text.contains("\n  ours: allowed 0x"), "{text}");
    assert!(text.contains("\n  libsepol: allowed 0x") && text.ends_with(" above\n"), "{text}");
    let answer = verify(&["--json"]).json();
    let first = &answer["mismatches"][0];
    assert!(first["ours"] != first["libsepol"] && first["kind"] == "access", "{answer}");
}
