//! Generates Rust from the C headers, and tells dependent crates where these are (`DEP_TOLLGATE_ABI_INCLUDE`).

use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use bindgen::callbacks::{DeriveInfo, ParseCallbacks};

const HOOKS: &str = "lsm_hooks.h";
const TABLES: &str = "tables.h";
const ENFORCER: &str = "enforcer.h";
const PATHS: &str = "paths.h";
const GUARD: &str = "guard.h";
const STATUS: &str = "status.h";
const CLASSES: &str = "classes.txt";

fn main() {
    for header in [HOOKS, TABLES, ENFORCER, PATHS, GUARD, STATUS, CLASSES, "datapath.h", "decide.h"] {
        println!("cargo::rerun-if-changed={header}");
    }
    let include = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=include={include}");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    hooks(&out.join("hooks.rs"));
    bindings(TABLES, "(tg|TG)_.*", &out.join("tables.rs"));
    bindings(ENFORCER, "(tg|TG|SECINITSID)_.*", &out.join("enforcer.rs"));
    bindings(PATHS, "TG_.*", &out.join("paths.rs"));
    bindings(GUARD, "(tg|TG)_.*", &out.join("guard.rs"));
    bindings(STATUS, "(tg|TG)_.*", &out.join("status.rs"));
    let generated = out.join("include");
    fs::create_dir_all(&generated).expect("OUT_DIR can be written");
    println!("cargo::metadata=generated={}", generated.display());
    classes(&generated.join("classes.h"), &out.join("classes.rs"));
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

/// The name and the default in a line of the table; `None` for anything else, such as a comment.
fn hook(line: &str) -> Option<(&str, i32)> {
    let (name, default) = line.strip_prefix("LSM_HOOK(")?.strip_suffix(')')?.split_once(", ")?;
    Some((name, default.parse().ok()?))
}

/// Classes and permissions: numbers in C, names in Rust.
fn classes(c: &Path, rust: &Path) {
    let table = fs::read_to_string(CLASSES).expect("the table lies beside build.rs");
    let mut header = format!("/* Generated from {CLASSES}. */\n#pragma once\n");
    let mut text = String::from("&[\n");
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for (line, number) in lines.zip(1..) {
        let mut words = line.split(' ');
        let class = words.next().expect("a line has a word");
        let permissions: Vec<&str> = words.collect();
        let upper = class.to_uppercase();
        writeln!(header, "#define SECCLASS_{upper} {number}").expect("a string takes any text");
        for (bit, permission) in permissions.iter().enumerate() {
            let permission = permission.to_uppercase();
            writeln!(header, "#define {upper}__{permission} (1u << {bit})").expect("a string takes any text");
        }
        writeln!(text, "    Class {{ name: {class:?}, permissions: &{permissions:?} }},")
            .expect("a string takes any text");
    }
    text.push(']');
    fs::write(c, header).expect("OUT_DIR can be written");
    fs::write(rust, text).expect("OUT_DIR can be written");
}

/// Structures whose bytes go into maps or come out of them. The compiler checks that they have no gaps.
const AS_BYTES: &[&str] = &[
    "tg_bare",
    "tg_container",
    "tg_context",
    "tg_endpoints",
    "tg_filesystem",
    "tg_fs_name",
    "tg_genfs_key",
    "tg_genfs_value",
    "tg_guard_entry",
    "tg_guard_event",
    "tg_guard_key",
    "tg_guard_own",
    "tg_guard_program_of",
    "tg_guard_state",
    "tg_guard_switch",
    "tg_guard_task",
    "tg_guarded",
    "tg_heard",
    "tg_held",
    "tg_identifier_key",
    "tg_inode",
    "tg_inquiry",
    "tg_kernel",
    "tg_label_key",
    "tg_label_value",
    "tg_labelled_socket",
    "tg_lineage",
    "tg_sid_key",
    "tg_slipped",
    "tg_socket",
    "tg_status_page",
    "tg_sock",
    "tg_superblock",
    "tg_task",
    "tg_task_tg_creation",
    "tg_text",
    "tg_thread",
    "tg_unit",
    "tg_unit_key",
    "tg_unwritten",
];

/// Makes bindgen derive zerocopy's traits for these structures.
#[derive(Debug)]
struct Derives;

impl ParseCallbacks for Derives {
    fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
        if !AS_BYTES.contains(&info.name) {
            return Vec::new();
        }
        ["FromBytes", "IntoBytes", "Immutable", "KnownLayout"].map(|name| format!("zerocopy::{name}")).to_vec()
    }
}

/// The structures and numbers of a header, without those of the headers that it includes.
fn bindings(header: &str, items: &str, rust: &Path) {
    let bindings = bindgen::Builder::default()
        .header(header)
        .clang_args(["-I/usr/include/x86_64-linux-gnu"])
        .allowlist_item(items)
        .parse_callbacks(Box::new(Derives))
        .no_copy("tg_tables|tg_levels|tg_generation|tg_network|tg_datapath|tg_doi")
        .derive_default(true)
        .derive_eq(true)
        .prepend_enum_name(false)
        .generate_cstr(true)
        .generate_comments(false);
    let bindings = if header == TABLES { bindings } else { bindings.blocklist_file(format!(".*{TABLES}")) };
    match bindings.generate() {
        Ok(bindings) => bindings.write_to_file(rust).expect("OUT_DIR can be written"),
        Err(error) => panic!("{header}: {error}\nlibclang is needed: install the package clang, or set LIBCLANG_PATH"),
    }
}
