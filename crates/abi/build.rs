//! Turns the C headers into Rust, and tells dependants where they are (`DEP_TOLLGATE_ABI_INCLUDE`).

use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

const HOOKS: &str = "lsm_hooks.h";
const TABLES: &str = "tables.h";

fn main() {
    for header in [HOOKS, TABLES, "decide.h"] {
        println!("cargo::rerun-if-changed={header}");
    }
    let include = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=include={include}");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    hooks(&out.join("hooks.rs"));
    tables(&out.join("tables.rs"));
}

/// The table of LSM hooks as a Rust slice.
fn hooks(rust: &Path) {
    let table = fs::read_to_string(HOOKS).expect("the table lies beside build.rs");
    let mut text = String::from("&[\n");
    for (number, line) in table.lines().enumerate().filter(|(_, line)| line.starts_with("LSM_HOOK")) {
        let Some((name, default)) = hook(line) else {
            panic!("{HOOKS}:{}: expected `LSM_HOOK(name, number)`, found `{line}`", number + 1);
        };
        writeln!(text, "    Hook {{ name: {name:?}, default: {default} }},").expect("a string takes any text");
    }
    text.push(']');
    fs::write(rust, text).expect("OUT_DIR can be written");
}

/// The name and the default of a line of the table; `None` for anything else, such as a comment.
fn hook(line: &str) -> Option<(&str, i32)> {
    let (name, default) = line.strip_prefix("LSM_HOOK(")?.strip_suffix(')')?.split_once(", ")?;
    Some((name, default.parse().ok()?))
}

/// The structures and numbers of decision tables.
fn tables(rust: &Path) {
    let bindings = bindgen::Builder::default()
        .header(TABLES)
        .clang_args(["-I/usr/include/x86_64-linux-gnu"])
        .allowlist_item("(tg|TG)_.*")
        .no_copy("tg_tables|tg_levels")
        .derive_default(true)
        .derive_eq(true)
        .prepend_enum_name(false)
        .generate_comments(false);
    match bindings.generate() {
        Ok(bindings) => bindings.write_to_file(rust).expect("OUT_DIR can be written"),
        Err(error) => panic!("{TABLES}: {error}\nlibclang is needed: install the package clang, or set LIBCLANG_PATH"),
    }
}
