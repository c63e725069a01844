//! The tools for building a kernel.

use std::path::Path;

use crate::{Error, image::on_path};

/// Programs, with their packages.
const PROGRAMS: [(&str, &str); 9] = [
    ("gcc", "gcc"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("ccache", "ccache"),
    // Writes the kernel's types, which BPF LSM needs.
    ("pahole", "dwarves"),
    ("perl", "perl"),
    ("xz", "xz-utils"),
];

/// Headers, with their packages: objtool reads objects by libelf; the C library's own headers come with it.
const HEADERS: [(&str, &str); 3] =
    [("gelf.h", "libelf-dev"), ("stdio.h", "libc6-dev"), ("linux/types.h", "linux-libc-dev")];

/// Reports all missing packages at once.
pub(super) fn all_there() -> Result<(), Error> {
    let missing =
        missing(|program| on_path(program).is_some(), |header| Path::new("/usr/include").join(header).exists());
    if missing.is_empty() { Ok(()) } else { Err(Error::ToolsAbsent { packages: missing.join(" ") }) }
}

fn missing(has_program: impl Fn(&str) -> bool, has_header: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let programs = PROGRAMS.iter().filter(|(program, _)| !has_program(program));
    let headers = HEADERS.iter().filter(|(header, _)| !has_header(header));
    programs.chain(headers).map(|(_, package)| *package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_packages_of_all_that_is_missing() {
        assert_eq!(missing(|_| true, |_| true), Vec::<&str>::new());
        let lacking = missing(|program| !["pahole", "bison"].contains(&program), |header| header != "gelf.h");
        assert_eq!(lacking, ["bison", "dwarves", "libelf-dev"]);
        let error = Error::ToolsAbsent { packages: lacking.join(" ") }.to_string();
        assert!(error.contains("apt-get install --no-install-recommends bison dwarves libelf-dev"), "{error}");
    }
}
