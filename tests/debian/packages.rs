//! The packages that `make deb` builds.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::program::{Scratch, word};

/// The packages of a version, in a folder of the test, or in the folder of that path.
pub(crate) fn make(scratch: &Scratch, version: &str, folder: &str) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let out = scratch.path(folder);
    let mut command = scratch.command("packaging/deb", &[version, word(&scratch.program()), word(&out)]);
    command.current_dir(repository).env("SOURCE_DATE_EPOCH", "1767225600");
    scratch.finish(command).with(0);
    out
}

/// Packages for tests that only read them, built once.
fn made() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| make(&Scratch::new(), "0.1.0", concat!(env!("CARGO_TARGET_TMPDIR"), "/packages")))
}

fn dpkg(scratch: &Scratch, arguments: &[&str]) -> String {
    scratch.finish(scratch.command("dpkg-deb", arguments)).with(0).stdout
}

/// The paths in a package.
fn paths(scratch: &Scratch, package: &Path) -> BTreeSet<String> {
    let listed = dpkg(scratch, &["--contents", word(package)]);
    listed.lines().map(|line| line.split_whitespace().nth(5).unwrap().trim_start_matches('.').to_owned()).collect()
}

/// The names of all commands that are not hidden, in the form of their manual pages: `tollgate-policy-build`.
fn commands(scratch: &Scratch, words: &[&str], found: &mut Vec<String>) {
    let help = scratch.run(&[words, &["--help"]].concat()).with(0).stdout;
    found.push([&["tollgate"], words].concat().join("-"));
    // The commands of another program, which tells of them itself.
    if words == ["fleet"] {
        return;
    }
    let list = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    for line in list.lines().take_while(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().unwrap();
        if line.as_bytes()[2] != b' ' && name != "help" {
            commands(scratch, &[words, &[name]].concat(), found);
        }
    }
}

#[test]
fn packages_hold_the_program_the_unit_and_a_manual_page_of_each_command() {
    let scratch = Scratch::new();
    let out = made();
    let held = paths(&scratch, &out.join("tollgate_0.1.0_amd64.deb"));
    let mut names = Vec::new();
    commands(&scratch, &[], &mut names);
    assert!(names.len() > 30 && names.contains(&"tollgate-policy-build".to_owned()), "{names:?}");
    let pages = names.iter().map(|name| format!("/usr/share/man/man1/{name}.1.gz"));
    let others = [
        "/usr/bin/tollgate",
        "/usr/bin/tollgate-fleet",
        "/usr/lib/systemd/system/tollgate.service",
        "/usr/share/bash-completion/completions/tollgate",
        "/usr/share/zsh/vendor-completions/_tollgate",
        "/usr/share/fish/vendor_completions.d/tollgate.fish",
        "/usr/share/tollgate/policy/10-classes.cil",
        "/usr/share/tollgate/policy/file_contexts",
        "/usr/share/tollgate/debian/labels.cil",
        "/usr/share/tollgate/guard/passwd",
        "/usr/share/tollgate/debian/runtime.cil",
        "/usr/share/tollgate/prometheus/tollgate.rules.yml",
        "/usr/share/doc/tollgate/copyright",
    ];
    for path in pages.chain(others.map(str::to_owned)) {
        assert!(held.contains(&path), "{path} is not in {held:?}");
    }
    // Nothing that enforces by itself: only a hook of dpkg, which does nothing if nothing is enforced.
    let etc: Vec<_> = held.iter().filter(|path| path.starts_with("/etc") && !path.ends_with('/')).collect();
    assert_eq!(etc, ["/etc/dpkg/dpkg.cfg.d/tollgate"]);
    let conffiles = dpkg(&scratch, &["--info", word(&out.join("tollgate_0.1.0_amd64.deb")), "conffiles"]);
    assert_eq!(conffiles, "/etc/dpkg/dpkg.cfg.d/tollgate\n");
    let unit = dpkg(&scratch, &["--fsys-tarfile", word(&out.join("tollgate_0.1.0_amd64.deb"))])
        .contains("ExecStart=/usr/bin/tollgate ");
    assert!(unit, "the unit starts another program");
}

#[test]
fn packages_of_the_library_need_each_other_and_the_c_library() {
    let scratch = Scratch::new();
    let out = made();
    let [shared, development] =
        ["libtollgate0", "libtollgate-dev"].map(|name| out.join(format!("{name}_0.1.0_amd64.deb")));
    let folder = "/usr/lib/x86_64-linux-gnu";
    let held = paths(&scratch, &shared);
    assert!(held.contains(&format!("{folder}/libtollgate.so.0")), "{held:?}");
    let held = paths(&scratch, &development);
    for path in
        [&format!("{folder}/libtollgate.so"), &format!("{folder}/pkgconfig/tollgate.pc"), "/usr/include/tollgate.h"]
    {
        assert!(held.contains(path), "{path} is not in {held:?}");
    }
    assert!(dpkg(&scratch, &["--field", word(&shared), "Depends"]).starts_with("libc6 (>= 2."));
    assert_eq!(dpkg(&scratch, &["--field", word(&development), "Depends"]).trim(), "libtollgate0 (= 0.1.0)");
}

#[test]
fn packages_are_the_same_bytes_again() {
    let scratch = Scratch::new();
    let (one, two) = (made(), make(&scratch, "0.1.0", "again"));
    for name in ["tollgate", "libtollgate0", "libtollgate-dev"].map(|name| format!("{name}_0.1.0_amd64.deb")) {
        let [one, two] = [one, &two].map(|folder| fs::read(folder.join(&name)).unwrap());
        assert!(one == two, "{name} differs");
    }
}
