//! Compiles the BPF programs that decide nothing into `OUT_DIR/NAME.bpf.o`.

use std::{env, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

const PROGRAMS: [&str; 2] = ["empty", "latency"];

fn main() {
    let include = env::var("DEP_TOLLGATE_ABI_INCLUDE").expect("tollgate-abi says where its headers are");
    println!("cargo::rerun-if-changed={include}/lsm_hooks.h");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for name in PROGRAMS {
        let source = format!("bpf/{name}.bpf.c");
        println!("cargo::rerun-if-changed={source}");
        let mut builder = SkeletonBuilder::new();
        if let Some(clang) = env::var_os("CLANG") {
            builder.clang(clang);
        }
        // The folder of <asm/types.h> on Debian.
        let arguments = ["-I", include.as_str(), "-I/usr/include/x86_64-linux-gnu", "-mcpu=v3", "-Wall", "-Werror"];
        builder.source(source).obj(out.join(format!("{name}.bpf.o"))).clang_args(arguments);
        if let Err(error) = builder.build() {
            panic!("{error:#}\nclang with the BPF target is needed: install the package clang, or set CLANG");
        }
    }
}
