//! Compiles the object managers into `OUT_DIR/enforcer.bpf.o`, and links libselinux's selabel.

use std::{env, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let include = env::var("DEP_TOLLGATE_ABI_INCLUDE").expect("tollgate-abi says where its headers are");
    let generated = env::var("DEP_TOLLGATE_ABI_GENERATED").expect("tollgate-abi says where classes.h is");
    for path in ["bpf", &include, &generated] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    let object = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("enforcer.bpf.o");
    let mut builder = SkeletonBuilder::new();
    if let Some(clang) = env::var_os("CLANG") {
        builder.clang(clang);
    }
    // Where Debian has <asm/types.h>.
    let own = "-I/usr/include/x86_64-linux-gnu";
    let arguments = ["-I", &include, "-I", &generated, own, "-mcpu=v3", "-Wall", "-Werror"];
    builder.source("bpf/enforcer.bpf.c").obj(object).clang_args(arguments);
    if let Err(error) = builder.build() {
        panic!("{error:#}\nclang with the BPF target is needed: install the package clang, or set CLANG");
    }
}
