//! Compiles the empty BPF programs into `OUT_DIR/empty.bpf.o`.

use std::{env, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let source = "bpf/empty.bpf.c";
    let include = env::var("DEP_TOLLGATE_ABI_INCLUDE").expect("tollgate-abi says where its headers are");
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed={include}/lsm_hooks.h");
    println!("cargo::rerun-if-env-changed=CLANG");

    let object = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("empty.bpf.o");
    let mut builder = SkeletonBuilder::new();
    if let Some(clang) = env::var_os("CLANG") {
        builder.clang(clang);
    }
    builder.source(source).obj(object).clang_args(["-I", include.as_str(), "-mcpu=v3", "-Wall", "-Werror"]);
    if let Err(error) = builder.build() {
        panic!("{error:#}\nclang with the BPF target is needed: install the package clang, or set CLANG");
    }
}
