//! Turns the table of hooks into Rust, and tells dependants where the header is (`DEP_TOLLGATE_ABI_INCLUDE`).

use std::{env, fmt::Write, fs, path::PathBuf};

const TABLE: &str = "lsm_hooks.h";

/// The name and the default of a line of the table; `None` for anything else, such as a comment.
fn entry(line: &str) -> Option<(&str, i32)> {
    let (name, default) = line.strip_prefix("LSM_HOOK(")?.strip_suffix(')')?.split_once(", ")?;
    Some((name, default.parse().ok()?))
}

fn main() {
    println!("cargo::rerun-if-changed={TABLE}");
    let include = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=include={include}");

    let table = fs::read_to_string(TABLE).expect("the table lies beside build.rs");
    let mut rust = String::from("&[\n");
    for (number, line) in table.lines().enumerate().filter(|(_, line)| line.starts_with("LSM_HOOK")) {
        let Some((name, default)) = entry(line) else {
            panic!("{TABLE}:{}: expected `LSM_HOOK(name, number)`, found `{line}`", number + 1);
        };
        writeln!(rust, "    Hook {{ name: {name:?}, default: {default} }},").expect("a string takes any text");
    }
    rust.push(']');
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("hooks.rs"), rust).expect("OUT_DIR can be written");
}
