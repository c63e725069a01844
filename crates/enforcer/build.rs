//! Compiles the object managers into `OUT_DIR/enforcer-N.bpf.o` and what labels packets into `OUT_DIR/datapath-N.bpf.o`, for
//! decision tables of N MiB each, the guard into `OUT_DIR/guard.bpf.o`, what times decisions into `OUT_DIR/cost.bpf.o`, and
//! links libselinux's selabel.

use std::{env, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

/// The sizes of decision tables, in MiB, for which there are programs (`src/programs/compiled.rs`).
const CAPACITIES: [u32; 2] = [4, 32];

fn main() {
    selabel();
    let include = env::var("DEP_TOLLGATE_ABI_INCLUDE").expect("tollgate-abi says where its headers are");
    let generated = env::var("DEP_TOLLGATE_ABI_GENERATED").expect("tollgate-abi says where classes.h is");
    for path in ["bpf", "../netlabel/bpf", &include, &generated] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    // Where Debian has <asm/types.h>.
    let own = "-I/usr/include/x86_64-linux-gnu";
    let netlabel = "-I../netlabel/bpf";
    let arguments = ["-I", &include, "-I", &generated, own, netlabel, "-mcpu=v3", "-Wall", "-Werror"];
    // For tests/headers.rs, which compiles headers as this does.
    println!("cargo::rustc-env=TOLLGATE_BPF_ARGUMENTS={}", arguments.join(" "));
    ["guard", "cost"].iter().for_each(|name| compile(name, name, &arguments));
    for mebibytes in CAPACITIES {
        let capacity = format!("-DTG_CAPACITY=({mebibytes}u << 20)");
        for name in ["enforcer", "datapath"] {
            compile(name, &format!("{name}-{mebibytes}"), &[&arguments[..], &[&capacity]].concat());
        }
    }
}

/// Compiles an object file.
fn compile(name: &str, object: &str, arguments: &[&str]) {
    let object = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join(format!("{object}.bpf.o"));
    let mut builder = SkeletonBuilder::new();
    if let Some(clang) = env::var_os("CLANG") {
        builder.clang(clang);
    }
    builder.source(format!("bpf/{name}.bpf.c")).obj(object).clang_args(arguments);
    if let Err(error) = builder.build() {
        panic!("{error:#}\nclang with the BPF target is needed: install the package clang, or set CLANG");
    }
}

/// The shim over libselinux's selabel, and the libraries that it needs.
fn selabel() {
    println!("cargo::rerun-if-changed=c");
    let mut build = cc::Build::new();
    build.std("gnu11").opt_level(2).warnings(true).extra_warnings(true).flag("-Werror");
    build.file("c/file_contexts.c").compile("tollgate_enforcer");
    println!("cargo::rustc-link-search=native={LIBRARIES}");
    println!("cargo::rustc-link-lib=static=selinux");
    println!("cargo::rustc-link-lib=static=pcre2-8");
}
