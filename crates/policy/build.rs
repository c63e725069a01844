//! Compiles the shim over libsepol, turns its header into Rust, compiles the evaluator for the host and for BPF, and links
//! libsepol.a.

use std::{env, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

fn main() {
    let include = env::var("DEP_TOLLGATE_ABI_INCLUDE").expect("tollgate-abi says where its headers are");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed={include}");
    evaluator(&include);
    bindings("c/sepol.h");
    let mut build = cc::Build::new();
    build.include(&include).include("c").std("gnu11").opt_level(2).warnings(true).extra_warnings(true);
    build.flag("-Werror");
    let mut sources: Vec<_> = std::fs::read_dir("c")
        .expect("c lies beside build.rs")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    build.files(sources).compile("tollgate_policy");
    // A newer libsepol than Debian's may lie elsewhere.
    println!("cargo::rerun-if-env-changed=LIBSEPOL_LIBRARY_PATH");
    println!(
        "cargo::rustc-link-search=native={}",
        env::var("LIBSEPOL_LIBRARY_PATH").unwrap_or_else(|_| LIBRARIES.to_owned())
    );
    println!("cargo::rustc-link-lib=static=sepol");
}

/// What Rust calls of the shim, in `OUT_DIR/sepol.rs`.
fn bindings(header: &str) {
    let rust = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("sepol.rs");
    let bindings = bindgen::Builder::default()
        .header(header)
        .clang_args(["-I/usr/include/x86_64-linux-gnu"])
        .allowlist_item("(tollgate|TOLLGATE)_.*")
        .prepend_enum_name(false)
        .generate_comments(false);
    match bindings.generate() {
        Ok(bindings) => bindings.write_to_file(rust).expect("OUT_DIR can be written"),
        Err(error) => panic!("{header}: {error}\nlibclang is needed: install the package clang, or set LIBCLANG_PATH"),
    }
}

/// The evaluator as a BPF program, in `OUT_DIR/decide.bpf.o`.
fn evaluator(include: &str) {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let object = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("decide.bpf.o");
    let mut builder = SkeletonBuilder::new();
    if let Some(clang) = env::var_os("CLANG") {
        builder.clang(clang);
    }
    // Where Debian has <asm/types.h>.
    let own = "-I/usr/include/x86_64-linux-gnu";
    builder.source("bpf/decide.bpf.c").obj(object).clang_args(["-I", include, own, "-mcpu=v3", "-Wall", "-Werror"]);
    if let Err(error) = builder.build() {
        panic!("{error:#}\nclang with the BPF target is needed: install the package clang, or set CLANG");
    }
}
