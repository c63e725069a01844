//! Records the revision that the program is built from, so that results can name it wherever it is run.

use std::process::Command;

fn main() {
    // The sources too: an edit that git has not been told of yet changes the mark all the same.
    for path in [".git/HEAD", ".git/logs/HEAD", ".git/index", "Cargo.toml", "Cargo.lock", "crates", "studies"] {
        println!("cargo:rerun-if-changed=../../{path}");
    }
    // Absent outside a checkout, or without git: then results name the version alone.
    if let (Some(revision), Some(changes)) = (git(&["rev-parse", "--short=12", "HEAD"]), git(&CHANGES)) {
        let mark = if changes.is_empty() { "" } else { "-dirty" };
        println!("cargo:rustc-env=TOLLGATE_REVISION={revision}{mark}");
    }
}

/// Without optional locks git leaves the index alone, which would have this run again.
const CHANGES: [&str; 4] = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"];

/// What git says; nothing if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
