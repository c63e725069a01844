//! The decision tables against libsepol, by `tollgate policy verify`: random and boundary questions, the same each time.
//! 200,000 decisions per policy here, ten million with the feature `long`. And all decisions against the rules (`--all`).

use std::path::{Path, PathBuf};

use tollgate_policy::built::Built;

use crate::program::{Scratch, report, word};

const DECISIONS: u64 = if cfg!(feature = "long") { 10_000_000 } else { 200_000 };

/// Compares libsepol and the tables; both must have granted and refused, or nothing was compared.
pub(crate) fn agrees(scratch: &Scratch, name: &str, policy: &Path) {
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

fn own(scratch: &Scratch) -> PathBuf {
    let policy = scratch.path("own");
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/tollgate");
    scratch.run(&["policy", "build", sources, "-o", word(&policy)]).with(0);
    policy
}

/// Compares all decisions with the rules; each kind of decision that the policy has must have been compared.
fn agrees_in_all(scratch: &Scratch, name: &str, policy: &Path) {
    let answer = scratch.run(&["policy", "verify", word(policy), "--all", "--json"]).with(0).json();
    let number = |value: &serde_json::Value, field: &str| value[field].as_u64().unwrap();
    let (compared, different) = (number(&answer, "compared"), number(&answer, "different"));
    let figure = format!("{compared} compared, {different} differ, {:.0} s", answer["seconds"].as_f64().unwrap());
    report(&format!("all decisions of {name} against the rules"), &figure, "0 differences", different == 0);
    assert_eq!(different, 0, "{answer}");

    let policy = Built::open(policy).unwrap().policy;
    let types = policy.types.iter().filter(|type_| !type_.attribute && !type_.name.is_empty()).count();
    let triples = (types * types * (policy.classes.len() - 1)) as u64;
    for kind in answer["decisions"].as_array().unwrap() {
        let least = match kind["kind"].as_str().unwrap() {
            "access" | "transition" | "member" | "change" => triples,
            "transition by name" => u64::from(!policy.name_transitions.is_empty()),
            "ioctl" => u64::from(!policy.extended_rules.is_empty()),
            "context" => 1,
            _ => u64::from(policy.classes.iter().any(|class| !class.validatetrans.is_empty())),
        };
        assert!(number(kind, "compared") >= least && number(kind, "granted") >= least.min(1), "{kind}");
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
    agrees(&scratch, "Tollgate's own policy", &own(&scratch));
}

#[test]
fn agrees_with_all_rules_of_tollgates_own_policy() {
    let scratch = Scratch::new();
    agrees_in_all(&scratch, "Tollgate's own policy", &own(&scratch));
}

/// A quarter of an hour for each policy: only where the claims of docs/verify.md are shown.
#[cfg(feature = "long")]
#[test]
#[ignore = "takes long: make verify"]
fn agrees_with_all_rules_of_debians_policies() {
    let scratch = Scratch::new();
    for name in ["default", "mls"] {
        let policy = debian(&scratch, name);
        agrees_in_all(&scratch, &format!("Debian {name}"), &policy);
    }
}

/// Tollgate's own policy, with one bit of its access vectors changed.
fn changed(scratch: &Scratch) -> PathBuf {
    let policy = own(scratch);
    let mut built = Built::open(&policy).unwrap();
    let tuple = built.server().unwrap().tables().header().tuple_at as usize + 2 * 16;
    built.tables[tuple] ^= 1;
    built.write(&policy).unwrap();
    policy
}

#[test]
fn shows_the_decisions_that_are_not_what_the_rules_say() {
    let scratch = Scratch::new();
    let policy = changed(&scratch);
    let verify = |more: &[&str]| scratch.run(&[&["policy", "verify", word(&policy), "--all"], more].concat()).with(1);
    let text = verify(&[]).stdout;
    assert!(text.contains("\naccess ") && text.contains("\n  tables: allowed 0x"), "{text}");
    assert!(text.contains("\n  rules: allowed 0x") && text.contains(", the first 20 above, "), "{text}");
    let answer = verify(&["--json"]).json();
    let first = &answer["differences"][0];
    assert!(first["tables"] != first["rules"] && first["kind"] == "access", "{answer}");
}

#[test]
fn shows_the_questions_that_are_not_answered_alike() {
    let scratch = Scratch::new();
    let policy = changed(&scratch);
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
