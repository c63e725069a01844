//! Compiles the shim over libsepol and the host's copy of the evaluator, and links libsepol.a.

use std::env;

const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

fn main() {
    let include = env::var("DEP_TOLLGATE_ABI_INCLUDE").expect("tollgate-abi says where its headers are");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed={include}");
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
