//! The evaluator with tables that lie, under the sanitizers of the C compiler.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::{fs, path::Path, process::Command};

use tollgate_policy::{
    built::Built,
    sepol::{self, CilFile, Options},
};

/// As long as the other fuzzing takes (`fuzz.rs`).
fn seconds() -> String {
    std::env::var("TOLLGATE_FUZZ_SECONDS").unwrap_or_else(|_| "2".to_owned())
}

#[test]
fn fuzz_tables_lead_to_no_access_outside_and_nothing_undefined() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read(here.join("src/dump/everything.cil")).unwrap();
    let file = CilFile { name: "everything.cil".into(), text };
    let built = Built::from_compiled(sepol::compile(&[file], &Options::default()).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (program, tables) = (folder.path().join("evaluator"), folder.path().join("tables"));
    fs::write(&tables, &built.tables).unwrap();
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("../abi"))
        .arg(here.join("tests/evaluator.c"))
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(&program).arg(&tables).arg(seconds()).output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
