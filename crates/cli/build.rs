//! Records the revision that the program is built from, so that results can name it wherever it is run.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    // Absent outside a checkout, or without git: then results name the version alone.
    let git = |arguments: &[&str]| Command::new("git").args(arguments).output().ok().filter(|o| o.status.success());
    if let Some(output) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=TOLLGATE_REVISION={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
