//! An unconfined machine behaves the same with Tollgate as without: commands, and test programs of other projects.
//!
//! QEMU, a kernel and Debian's packages, from the cache or a network, are needed: without them these tests fail, and say so.

use std::{collections::BTreeMap, path::Path};

use crate::program::{
    Scratch,
    machine::{Machine, build, source},
    report,
};

/// Starts enforcement of Tollgate's policy, runs the rest of the line, and reports on standard error whether enforcement
/// lasted.
const ENFORCED: &str =
    "/tollgate enforce /own.policy >&2 || exit 3; \"$@\"; status=$?; /tollgate status >&2; exit $status";

/// The outcome of each command or test, by name.
type Outcomes = BTreeMap<String, String>;

/// Runs a command in a guest, with Tollgate enforcing or without; returns its standard output.
fn run(scratch: &Scratch, kernel: &str, enforced: bool, files: &[(&Path, &str)], command: &[&str]) -> String {
    let own = scratch.path("own.policy");
    if !own.exists() {
        build(scratch, "own.policy", &[source("policies/tollgate")], &[]);
    }
    let machine = Machine::new(scratch, kernel, "bpf", 800).option(&["--memory", "2500"]);
    let machine = machine.modules(&["overlay", "loop"]).file(&own, "/own.policy").file(&scratch.program(), "/tollgate");
    let machine = files.iter().fold(machine, |machine, (host, guest)| machine.file(host, guest));
    // By a shell both times, so that a name finds the same program.
    let shell = ["sh", "-c", if enforced { ENFORCED } else { "\"$@\"" }, "guest"];
    let ended = machine.run(&[&shell[..], command].concat()).with(0);
    assert_eq!(enforced, ended.stderr.contains("mode         enforcing"), "{}", ended.stderr);
    ended.stdout
}

/// The outcomes in the output of tests/transparency/run.
fn outcomes(text: &str) -> Outcomes {
    let blocks = text.split("\n== ").map(|block| block.trim_start_matches("== "));
    blocks
        .filter_map(|block| block.split_once(' '))
        .map(|(number, rest)| (number.to_owned(), rest.to_owned()))
        .collect()
}

/// Fails unless both have the same outcomes, and at least `least` of them.
fn assert_alike(what: &str, without: &Outcomes, with: &Outcomes, least: usize) {
    let names = without.keys().chain(with.keys());
    let different: BTreeMap<_, _> =
        names.filter(|name| without.get(*name) != with.get(*name)).map(|n| (n, ())).collect();
    report(
        what,
        &format!("{} of {} alike", without.len() - different.len(), without.len()),
        &format!("all, of at least {least}"),
        different.is_empty() && without.len() >= least,
    );
    for name in different.keys() {
        eprintln!("{name}\n  without: {:?}\n  with: {:?}", without.get(*name), with.get(*name));
    }
    assert!(different.is_empty() && without.len() >= least, "{} differ", different.len());
}

#[test]
#[ignore = "takes long: make test-rest"]
fn runs_hundreds_of_commands_alike() {
    let scratch = Scratch::new();
    let [script, commands] = ["run", "commands"].map(|name| source("tests/transparency").join(name));
    let files = [(script.as_path(), "/run.sh"), (&commands, "/commands")];
    let command = ["busybox", "sh", "/run.sh", "/commands"];
    let [without, with] = [false, true].map(|enforced| outcomes(&run(&scratch, "6.1", enforced, &files, &command)));
    assert_alike("commands on 6.1", &without, &with, 300);
}

#[cfg(feature = "long")]
mod debian {
    use tollgate_host::{Cache, Packages};

    use super::*;

    /// Python's own test suite, as Debian packages it, with what it needs.
    const PACKAGES: [&str; 12] = [
        "python3.11-minimal",
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "libpython3.11-testsuite",
        "libc6",
        "zlib1g",
        "libexpat1",
        "libffi8",
        "libbz2-1.0",
        "liblzma5",
        "libssl3",
        "libuuid1",
    ];
    /// The parts that test what a kernel does for a program.
    const PARTS: &str = "test_posix test_os test_fcntl test_stat test_glob test_resource test_fork1 test_wait3 test_wait4 \
                         test_mmap test_file test_fileio test_select test_poll test_tempfile";
    const SUITE: &str = "mkdir /py && tar xf /py.tar -C /py && cd /py && mkdir -p tmp proc dev sys etc bin && \
        mount -t proc p proc && mount -t devtmpfs d dev && mount -t sysfs s sys && mkdir -p dev/pts dev/shm && \
        mount -t devpts d dev/pts && mount -t tmpfs t dev/shm && cp /etc/passwd /etc/group etc && cp /bin/busybox bin && \
        chroot /py /bin/busybox --install /bin; chmod 1777 tmp; ip link set lo up; \
        chroot /py /usr/bin/python3.11 -m test -v --timeout 300 $1 2>&1";

    /// The suite's temporary files are named after its process.
    fn without_number(outcome: &str) -> String {
        match outcome.split_once("@test_") {
            Some((before, after)) => {
                format!("{before}@test_{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
            }
            None => outcome.to_owned(),
        }
    }

    /// Parses lines `NAME (CLASS) ... OUTCOME`; other lines are messages of the suite.
    fn tests(text: &str) -> Outcomes {
        let lines = text.lines().filter_map(|line| line.rsplit_once(" ... "));
        let own = lines.filter(|(name, _)| name.starts_with("test") && name.ends_with(')'));
        own.map(|(name, outcome)| (name.to_owned(), without_number(outcome))).collect()
    }

    #[test]
    fn passes_pythons_test_suite_alike() {
        let (scratch, cache) = (Scratch::new(), Cache::of_user().unwrap());
        let (root, archive) = (scratch.path("py"), scratch.path("py.tar"));
        std::fs::create_dir_all(&root).unwrap();
        Packages::new(&cache)
            .unpack(&PACKAGES.map(|package| format!("{package}/bookworm")).each_ref().map(String::as_str), &root)
            .unwrap();
        let mut tar = std::process::Command::new("tar");
        assert!(tar.arg("cf").arg(&archive).arg("-C").arg(&root).arg(".").status().unwrap().success());
        let command = ["busybox", "sh", "-c", SUITE, "suite", PARTS];
        let [without, with] =
            [false, true].map(|enforced| tests(&run(&scratch, "6.1", enforced, &[(&archive, "/py.tar")], &command)));
        assert_alike("tests of Python's suite on 6.1", &without, &with, 500);
    }
}
