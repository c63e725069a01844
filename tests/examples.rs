//! examples/: built outside the repository, as a stranger would, and run in a guest; they print what their pages show.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::program::{
    Ended, Scratch, extract,
    machine::source,
    steps::{Guest, Step},
    word,
};

#[test]
fn c_example_prints_in_a_guest_what_its_page_shows() {
    let scratch = Scratch::new();
    let (root, build, own) = (scratch.path("root"), scratch.path("lib"), scratch.path("own"));
    let repository = source(".");
    let mut install = scratch.command("make", &["-s", "-C", word(&repository), "install-lib", "PREFIX=/usr"]);
    install.args([format!("LIBRARY={}", word(&build)), format!("DESTDIR={}", word(&root))]);
    scratch.finish(install).with(0);
    let outside = scratch.path("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["context.c", "Makefile"] {
        fs::copy(source("examples/c").join(name), outside.join(name)).unwrap();
    }
    // The first path is for this machine, which looks up the program's libraries; the second for the guest.
    let path = format!("LDFLAGS=-Wl,-rpath,{}:/usr/local/lib", word(&root.join("usr/lib")));
    let mut make = scratch.command("make", &["-s", "-C", word(&outside), &path]);
    make.env("PKG_CONFIG_SYSROOT_DIR", &root).env("PKG_CONFIG_LIBDIR", root.join("usr/lib/pkgconfig"));
    scratch.finish(make).with(0);
    scratch.run(&["policy", "build", word(&source("policies/tollgate")), "-o", word(&own)]).with(0);
    let steps = Guest::under(&scratch, "6.1", &own)
        .with(&outside.join("context"), "/bin/context")
        .with(&root.join("usr/lib/libtollgate.so.0"), "/usr/local/lib/libtollgate.so.0")
        .lines("tollgate stop --force\n")
        .step("nothing", "context")
        .step("enforced", "tollgate enforce /policy 2>/dev/null && context")
        .run();
    shows(&source("examples/c/README.md"), &steps);
}

#[test]
fn rust_example_prints_in_a_guest_what_its_page_shows() {
    let scratch = Scratch::new();
    let (target, own) = (Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples"), scratch.path("own"));
    cargo(&scratch, "examples/rust", &["build", "--quiet", "--release", "--locked", "--target-dir", word(&target)]);
    scratch.run(&["policy", "build", word(&source("policies/tollgate")), "-o", word(&own)]).with(0);
    let steps = Guest::under(&scratch, "6.1", &own)
        .with(&target.join("x86_64-unknown-linux-gnu/release/context"), "/bin/context")
        .lines("tollgate stop --force\n")
        .step("nothing", "context")
        .step("enforced", "tollgate enforce /policy 2>/dev/null && context")
        .run();
    shows(&source("examples/rust/README.md"), &steps);
}

/// An example prints what its page shows, when nothing is enforced and under Tollgate's own policy.
fn shows(page: &Path, steps: &BTreeMap<String, Step>) {
    let page = fs::read_to_string(page).unwrap();
    let why = &steps["nothing"].is(2, &["context: "]).text;
    assert!(page.contains(why.trim_end()), "the page does not show\n{why}");
    let shown = extract::file(&page, "system_u:system_r:unconfined_t:s0-s15:c0.c1023").expect("the page shows output");
    let printed = &steps["enforced"].is(0, &[]).text;
    assert!(printed.ends_with(&shown), "the page shows\n{shown}and the program prints\n{printed}");
}

#[test]
fn links_no_library_of_enforcement_into_programs_against_the_client() {
    let scratch = Scratch::new();
    let words = ["tree", "--locked", "--package", "tollgate-client", "--edges", "normal,build", "--prefix", "none"];
    let tree = cargo(&scratch, ".", &words).stdout;
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("serde_json"), "{tree}");
    // libselinux and libsepol are no crates: they come with Tollgate's own.
    let own: Vec<&str> = names.iter().copied().filter(|name| name.starts_with("tollgate")).collect();
    assert_eq!(own, ["tollgate-abi", "tollgate-client"], "{tree}");
    let linked = |name: &&&str| ["bpf", "selinux", "sepol"].iter().any(|library| name.contains(library));
    assert_eq!(names.iter().find(linked), None, "{tree}");
}

/// Runs cargo in a folder of the repository.
fn cargo(scratch: &Scratch, folder: &str, words: &[&str]) -> Ended {
    let mut command = scratch.command(source("scripts/cargo"), words);
    command.current_dir(source(folder));
    scratch.finish(command).with(0)
}
