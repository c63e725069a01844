//! Compiles the evaluator for the host from the header that BPF programs include (`guard_decide.h`).

use std::env;

fn main() {
    let include = env::var("DEP_TOLLGATE_ABI_INCLUDE").expect("tollgate-abi says where its headers are");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed={include}");
    let mut build = cc::Build::new();
    build.include(&include).std("gnu11").opt_level(2).warnings(true).extra_warnings(true).flag("-Werror");
    build.file("c/guard.c").compile("tollgate_guard");
}
