//! Records the revision that the program is built from, so that results can name it wherever it is run.

use std::process::Command;

fn main() {
    // Sources are watched too, because an edit changes the mark before git knows of it.
    for path in [".git/HEAD", ".git/logs/HEAD", ".git/index", "Cargo.toml", "Cargo.lock", "crates", "studies"] {
        println!("cargo:rerun-if-changed=../../{path}");
    }
    // Absent outside a checkout, or without git: then results name the version alone.
    if let (Some(revision), Some(changes)) = (git(&["rev-parse", "--short=12", "HEAD"]), git(&CHANGES)) {
        let mark = if changes.is_empty() { "" } else { "-dirty" };
        println!("cargo:rustc-env=TOLLGATE_REVISION={revision}{mark}");
    }
}

/// Without optional locks git does not rewrite the index, which would make cargo run this script again.
const CHANGES: [&str; 4] = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"];

/// The output of git; nothing if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
