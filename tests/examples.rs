//! examples/: built outside the repository, as a stranger would, and run in a guest; they print what their pages show.

use std::fs;

use crate::program::{Scratch, extract, machine::source, steps::Guest, word};

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
        .step("nothing", "context")
        .step("enforced", "tollgate enforce /policy 2>/dev/null && context")
        .run();
    steps["nothing"].is(2, &["context: "]);
    let page = fs::read_to_string(source("examples/c/README.md")).unwrap();
    let shown = extract::file(&page, "system_u:system_r:unconfined_t:s0-s15:c0.c1023").expect("the page shows output");
    let printed = &steps["enforced"].is(0, &[]).text;
    assert!(printed.ends_with(&shown), "the page shows\n{shown}and the program prints\n{printed}");
}
