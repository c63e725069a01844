//! `tollgate policy`: its output, and every wrong input.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::program::{Scratch, word};

const SMALL: &str = include_str!("policies/small.cil");
const SSHD: &str = "system_u:system_r:sshd_t:s0";
const INIT: &str = "system_u:system_r:init_t:s0-s1:c0.c2";
const SHADOW: &str = "system_u:object_r:shadow_t:s0";
const TMP: &str = "system_u:object_r:tmp_t:s0";

/// The small policy, built.
fn small(scratch: &Scratch) -> PathBuf {
    let (source, built) = (scratch.file("small.cil", SMALL), scratch.path("small"));
    scratch.run(&["policy", "build", word(&source), "-o", word(&built)]).with(0);
    built
}

/// libsepol's image of the small policy: the first section of the built file.
fn image(built: &Path) -> Vec<u8> {
    let bytes = fs::read(built).unwrap();
    let number = |at: usize| usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    bytes[number(20)..number(20) + number(28)].to_vec()
}

#[test]
fn answers_from_a_built_policy() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let query = |source: &str, target: &str, class: &str| {
        scratch.run(&["policy", "query", word(&built), source, target, class, "--json"]).with(0).json()
    };
    assert_eq!(query(INIT, SHADOW, "file")["allowed"], serde_json::json!(["open", "read", "write"]));
    assert_eq!(query(INIT, SHADOW, "file")["auditallow"], serde_json::json!(["read"]));
    assert_eq!(query(SSHD, SHADOW, "file")["allowed"], serde_json::json!([]));
    assert_eq!(query(SSHD, SHADOW, "file")["dontaudit"], serde_json::json!(["open", "read"]));
    assert_eq!(query(SSHD, SSHD, "process")["allowed"], serde_json::json!(["fork"]), "a rule of self");
    assert_eq!(query(SSHD, INIT, "process")["allowed"], serde_json::json!([]), "self is not the other domain");
}

#[test]
fn tries_contexts_without_using_them() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let context = |contexts: &[&str]| scratch.run(&[&["policy", "context", word(&built)], contexts].concat());
    let ended = context(&[SHADOW, "system_u:system_r:init_t:s0-s1:c0,c1,c2"]).with(0);
    assert_eq!(ended.stdout, format!("{SHADOW}\n{INIT}\n"));
    let ended = context(&[SHADOW, "system_u:object_r:shadov_t:s0"]).with(1);
    let expected = "system_u:object_r:shadov_t:s0: not valid: the policy has no type `shadov_t` (like it: shadow_t)";
    assert_eq!(ended.stdout, format!("{SHADOW}\n{expected}\n"));
    let told =
        context(&["system_u:system_r:shadow_t:s0", "system_u:object_r:tmp_t:s9", SHADOW, "--json"]).with(1).json();
    assert_eq!(told[0]["wrong"][0]["cil"], "(roletype system_r shadow_t)");
    assert_eq!(told[0]["wrong"][0]["part"], "context");
    assert_eq!((&told[1]["wrong"][0]["part"], &told[1]["valid"]), (&Value::from("range"), &Value::from(false)));
    assert_eq!((&told[2]["canonical"], &told[2]["valid"]), (&Value::from(SHADOW), &Value::from(true)));
    context(&[]).refused(&["CONTEXT"]);
    scratch.run(&["policy", "context", "nowhere", SHADOW]).refused(&["nowhere"]);
}

#[test]
fn answers_from_sources_and_binary_policies_too() {
    let scratch = Scratch::new();
    let source = scratch.file("small.cil", SMALL);
    let binary = scratch.path("policy.33");
    fs::write(&binary, image(&small(&scratch))).unwrap();
    for policy in [&source, &binary] {
        let answer = scratch.run(&["policy", "query", word(policy), INIT, SHADOW, "file"]).with(0);
        assert_eq!(answer.stdout.lines().next(), Some("allowed     open read write"), "{}", policy.display());
    }
}

#[test]
fn answers_a_batch_in_order_with_errors_in_their_place() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let questions = [
        format!("{INIT}\t{SHADOW}\tfile"),
        format!("{SSHD}\t{SHADOW}\tfile"),
        format!("{SSHD}\tsystem_u:object_r:shadov_t:s0\tfile"),
        "nonsense".to_owned(),
        format!("{SSHD}\t{TMP}\tdir"),
    ];
    let file = scratch.file("questions", &questions.join("\n"));
    let ended = scratch.run(&["policy", "query", word(&built), "--batch", word(&file)]).with(2);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), questions.len());
    assert_eq!([lines[0], lines[1], lines[4]], ["open,read,write", "-", "add_name,read,search,write"]);
    assert_eq!(lines[2], "error: the policy has no type `shadov_t` (like it: shadow_t)");
    assert_eq!(lines[3], "error: expected SCON<TAB>TCON<TAB>CLASS");

    let file = scratch.file("questions", &format!("{}\n", questions[0]));
    let ended = scratch.run(&["policy", "query", word(&built), "--batch", word(&file)]).with(0);
    assert_eq!(ended.stdout, "open,read,write\n");
}

#[test]
fn labels_new_objects_by_rule_by_name_and_by_default() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let questions = [
        format!("{INIT}\tsystem_u:object_r:sshd_exec_t:s0\tprocess"),
        format!("{SSHD}\t{TMP}\tfile"),
        format!("{SSHD}\t{TMP}\tfile\thost.key"),
        format!("{SSHD}\t{TMP}\tfile\thost.keys"),
        format!("{INIT}\t{TMP}\tfile\thost.key"),
        format!("{INIT}\t{TMP}\ttcp_socket"),
        format!("{INIT}\tsystem_u:object_r:tmp_t:s0:c1-s1:c0.c1\tdir"),
    ];
    let expected = [
        "system_u:system_r:sshd_t:s0-s1",
        "system_u:object_r:sshd_tmp_t:s0",
        "system_u:object_r:sshd_key_t:s0",
        "system_u:object_r:sshd_tmp_t:s0",
        "system_u:object_r:tmp_t:s0",
        INIT,
        "system_u:object_r:tmp_t:s0-s1:c0,c1",
    ];
    let file = scratch.file("questions", &questions.join("\n"));
    let ended = scratch.run(&["policy", "transition", word(&built), "--batch", word(&file)]).with(0);
    let one: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(one, expected);
    let ended = scratch.run(&["policy", "transition", word(&built), SSHD, TMP, "file", "host.key"]).with(0);
    assert_eq!(ended.stdout, "system_u:object_r:sshd_key_t:s0\n");
    let ended = scratch.run(&["policy", "member", word(&built), SSHD, TMP, "dir"]).with(0);
    assert_eq!(ended.stdout, "system_u:object_r:sshd_tmp_t:s0\n");
    let ended = scratch.run(&["policy", "change", word(&built), INIT, TMP, "file"]).with(0);
    assert_eq!(ended.stdout, "system_u:object_r:sshd_tmp_t:s0\n");
}

#[test]
fn rejects_an_unknown_name_and_offers_the_nearest() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let query = |source: &str, class: &str| scratch.run(&["policy", "query", word(&built), source, SHADOW, class]);
    query("system_u:system_r:ssh_t:s0", "file").refused(&["no type `ssh_t`", "sshd_t"]);
    query("system_u:system_r:sshd_t:s7", "file").refused(&["no sensitivity `s7`", "s0, s1"]);
    query(SSHD, "flie").refused(&["no class `flie`", "file"]);
    query("system_u:system_r:domain:s0", "file").refused(&["`domain` is an attribute"]);
    query("system_u:system_r:shadow_t:s0", "file").refused(&["role system_r may not have type shadow_t"]);
    query("system_u:system_r:sshd_t", "file").refused(&["USER:ROLE:TYPE:RANGE"]);
}

#[test]
fn rejects_wrong_cil_by_file_and_line() {
    let scratch = Scratch::new();
    let good = scratch.file("small.cil", SMALL);
    let build = |text: &str| {
        let more = scratch.file("more.cil", text);
        scratch.run(&["policy", "build", word(&good), word(&more), "-o", word(&scratch.path("out"))])
    };
    build("(allow sshd_t\n  shadow_t (file (read))\n").refused(&["more.cil:"]);
    build("\n\n(allow sshd_t shadov_t (file (read)))\n").refused(&["more.cil:3", "shadov_t"]);
    build("\n(alow sshd_t shadow_t (file (read)))\n").refused(&["more.cil:2", "alow"]);
    build("(neverallow init_t shadow_t (file (write)))\n").refused(&["neverallow", "more.cil:1"]);
    assert!(!scratch.path("out").exists(), "nothing is written for a policy that does not build");
}

#[test]
fn keeps_the_policy_that_was_there_when_a_build_fails() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let before = fs::read(&built).unwrap();
    let wrong = scratch.file("wrong.cil", "(nonsense)");
    scratch.run(&["policy", "build", word(&wrong), "-o", word(&built)]).refused(&["wrong.cil:1"]);
    assert_eq!(fs::read(&built).unwrap(), before);
}

#[test]
fn rejects_a_binary_policy_that_is_truncated_corrupted_or_too_new() {
    let scratch = Scratch::new();
    let whole = image(&small(&scratch));
    let build = |name: &str, bytes: &[u8]| {
        let file = scratch.path(name);
        fs::write(&file, bytes).unwrap();
        scratch.run(&["policy", "build", word(&file), "-o", word(&scratch.path("out"))])
    };
    for length in [9, 40, whole.len() / 2, whole.len() - 1] {
        build("short", &whole[..length]).refused(&["short"]);
    }
    let mut corrupted = whole.clone();
    corrupted[200..260].fill(0xff);
    build("corrupted", &corrupted).refused(&["corrupted"]);
    // The version follows the magic number, the length of the platform's name and the name.
    let mut newer = whole.clone();
    newer[16] = 99;
    build("newer", &newer).refused(&["99", "33"]);
    build("empty", b"").refused(&["empty"]);
    assert!(!scratch.path("out").exists());
}

#[test]
fn rejects_a_built_policy_that_is_damaged() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let whole = fs::read(&built).unwrap();
    let query = |bytes: &[u8]| {
        let file = scratch.path("damaged");
        fs::write(&file, bytes).unwrap();
        scratch.run(&["policy", "query", word(&file), SSHD, SHADOW, "file"])
    };
    query(&whole[..whole.len() - 1]).refused(&["cut short", "build it again"]);
    query(&whole[..30]).refused(&["cut short", "build it again"]);
    let mut newer = whole.clone();
    newer[8] = 9;
    query(&newer).refused(&["format 9", "build it again"]);
    let mut longer = whole;
    longer.push(0);
    query(&longer).refused(&["damaged"]);
}

#[test]
fn rejects_a_policy_above_a_table_limit() {
    let scratch = Scratch::new();
    // Sixty-five sets of names in constraints; the tables hold sixty-four.
    let mut text = String::from(SMALL);
    for number in 0..65 {
        text.push_str(&format!("(type many{number}_t)\n(roletype object_r many{number}_t)\n"));
        text.push_str(&format!("(constrain (file (write)) (neq t2 many{number}_t))\n"));
    }
    let source = scratch.file("many.cil", &text);
    scratch
        .run(&["policy", "build", word(&source), "-o", word(&scratch.path("out"))])
        .refused(&["64 different sets", "attributes"]);
    assert!(!scratch.path("out").exists());
}

#[test]
fn rejects_a_policy_file_that_is_not_there() {
    let scratch = Scratch::new();
    scratch.run(&["policy", "query", "nowhere", SSHD, SHADOW, "file"]).refused(&["nowhere", "No such file"]);
    scratch.run(&["policy", "build", "nowhere.cil", "-o", "out"]).refused(&["nowhere.cil", "No such file"]);
    let built = small(&scratch);
    scratch.run(&["policy", "query", word(&built), "--batch", "nowhere"]).refused(&["nowhere", "No such file"]);
}

#[test]
fn exports_what_other_programs_read_and_never_onto_the_policy_itself() {
    let scratch = Scratch::new();
    let built = small(&scratch);
    let (before, out) = (fs::read(&built).unwrap(), scratch.path("policy.33"));
    scratch.run(&["policy", "export", word(&built), "--image", word(&out)]).with(0);
    assert_eq!(fs::read(&out).unwrap(), image(&built));
    scratch
        .run(&["policy", "export", word(&built), "--image", word(&built)])
        .refused(&["overwritten by a part of itself"]);
    assert_eq!(fs::read(&built).unwrap(), before);
}

#[test]
fn reports_what_it_built() {
    let scratch = Scratch::new();
    let source = scratch.file("small.cil", SMALL);
    let report =
        scratch.run(&["policy", "build", word(&source), "-o", word(&scratch.path("out")), "--json"]).with(0).json();
    assert_eq!((report["types"].as_u64(), report["classes"].as_u64()), (Some(7), Some(4)));
    assert_eq!(report["image_bytes"].as_u64(), Some(image(&scratch.path("out")).len() as u64));
    assert!(report["tables_bytes"].as_u64() > Some(0), "{report}");
    let _: &Value = &report["compile_seconds"];
}
