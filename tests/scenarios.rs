//! The same scenarios under the kernel's SELinux and under Tollgate, with one policy: verdict and error are the same, or the
//! difference is listed with its reason.
//!
//! QEMU and kernels are needed, from the cache or a network: without them these tests fail, and say so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod program;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use program::{Scratch, guests::take, word};
use tollgate_scenario::{
    Engine,
    outcome::{Outcome, Played},
    scenario::{Family, Scenario},
};

/// The kernels on which scenarios are played.
const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.18"] } else { &["6.1"] };

/// A file of the repository.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// All families, in the order of their names.
fn families() -> Vec<Family> {
    let files = program::entries(&source("tests/scenarios"));
    let mut files: Vec<PathBuf> =
        files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    let parse = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Family::parse(&name, &fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
    };
    files.into_iter().map(parse).collect()
}

/// The scenarios' policy, built: what Tollgate's own has of classes, levels and the unconfined domain, and theirs.
fn policy(scratch: &Scratch) -> PathBuf {
    let own = ["10-classes", "20-levels", "30-base", "40-unconfined", "50-mls"];
    let mut sources: Vec<PathBuf> = own.map(|name| source(&format!("policies/tollgate/{name}.cil"))).into();
    sources.push(source("tests/scenarios/policy.cil"));
    let out = scratch.path("built");
    let words: Vec<&str> = sources.iter().map(|path| word(path)).collect();
    scratch.run(&[&["policy", "build"], &words[..], &["-o", word(&out)]].concat()).with(0);
    out
}

/// What came of each scenario, by family, name, and whether it was enforced.
type All = BTreeMap<(String, String, bool), Played>;

/// Plays all scenarios in a guest.
fn play(engine: Engine, kernel: &str) -> All {
    let scratch = Scratch::new();
    let built = policy(&scratch);
    let image = scratch.path("image");
    scratch.run(&["policy", "export", word(&built), "--image", word(&image)]).with(0);
    let scenarios = scratch.file("scenarios.json", &serde_json::to_string(&families()).unwrap());
    let program = Path::new(env!("CARGO_BIN_EXE_tollgate-scenario"));
    let files = [
        (program, "/tollgate-scenario"),
        (Path::new("/sbin/mke2fs"), "/sbin/mke2fs"),
        (&scenarios, "/scenarios.json"),
        (&image, "/policy"),
    ];
    let files: Vec<String> = files.iter().map(|(host, guest)| format!("--file={}:{guest}", word(host))).collect();
    let line = format!(
        "/sbin/mke2fs -q -F /dev/ram0 16384 && exec /tollgate-scenario {} /policy /scenarios.json",
        engine.name()
    );
    let mut arguments = vec!["vm", "run", "--kernel", kernel, "--lsm", engine.name(), "--timeout", "540"];
    arguments.extend(["--module", "brd", "--module", "overlay"]);
    arguments.extend(files.iter().map(String::as_str));
    arguments.extend(["--", "sh", "-c", &line]);
    let _place = take(1);
    let ended = scratch.run(&arguments).with(0);
    let lines = ended.stdout.lines().map(|line| serde_json::from_str::<Played>(line).unwrap());
    lines.map(|played| ((played.family.clone(), played.name.clone(), played.enforcing), played)).collect()
}

/// What the kernel's SELinux did; played once a kernel for all tests.
fn selinux(kernel: &'static str) -> &'static All {
    static PLAYED: [OnceLock<All>; KERNELS.len()] = [const { OnceLock::new() }; KERNELS.len()];
    let at = KERNELS.iter().position(|known| *known == kernel).unwrap();
    PLAYED[at].get_or_init(|| play(Engine::Selinux, kernel))
}

/// A scenario's outcome in a mode.
#[track_caller]
fn outcome<'a>(all: &'a All, family: &Family, scenario: &Scenario, enforcing: bool) -> &'a Outcome {
    let key = (family.name.clone(), scenario.name.clone(), enforcing);
    &all.get(&key).unwrap_or_else(|| panic!("was not played: {key:?}")).outcome
}

/// What is wrong with scenarios themselves: not played, one verdict only, or a denial that enforcing did not make.
fn faults(all: &All) -> Vec<String> {
    let mut faults = Vec::new();
    for family in families() {
        let granted = |scenario: &&Scenario| outcome(all, &family, scenario, true).is_granted();
        if family.scenarios.iter().filter(granted).count() % family.scenarios.len() == 0 {
            faults.push(format!("{}: all verdicts are the same", family.name));
        }
        for scenario in &family.scenarios {
            let [enforced, permitted] = [true, false].map(|mode| outcome(all, &family, scenario, mode));
            let title = format!("{}, {:?}", family.name, scenario.name);
            if let Outcome::Broken(_) = enforced {
                faults.push(format!("{title}: {enforced}"));
            }
            match (&scenario.stays_denied, permitted.is_granted()) {
                (None, false) => faults.push(format!("{title}: {permitted} though nothing is enforced")),
                (Some(_), true) => {
                    faults.push(format!("{title}: granted when nothing is enforced, and said not to be"))
                }
                _ => {}
            }
        }
    }
    faults
}

/// The scenarios' own worth, before anyone is compared by them.
#[test]
fn denies_and_grants_in_every_family_of_scenarios_under_selinux() {
    let families = families();
    let count: usize = families.iter().map(|family| family.scenarios.len()).sum();
    println!("{count} scenarios in {} families", families.len());
    assert!(count >= 150 && families.len() >= 22);
    for kernel in KERNELS {
        assert_eq!(faults(selinux(kernel)), Vec::<String>::new(), "{kernel}");
    }
}
