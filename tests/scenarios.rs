//! The same scenarios under the kernel's SELinux and under Tollgate, with one policy: verdict and error are the same, or the
//! difference is listed with its reason.
//!
//! QEMU and kernels are needed, from the cache or a network: without them these tests fail, and say so.

use std::{
    borrow::Borrow,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
    thread,
};

use tollgate_client::descriptors::Descriptors;
use tollgate_scenario::{
    Engine,
    compare::{All, Comparison, compare},
    scenario::Family,
};

use crate::program::{
    Scratch, entries,
    machine::{self, Machine, source},
    report,
    steps::TIMEOUT,
    word,
};

/// The kernels on which scenarios are played.
const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.12", "6.18", "7.2"] } else { &["6.1"] };

/// `make test` plays one in this many scenarios of each family.
const SOME: usize = 4;

/// Scenarios with a policy of their own, which contains that of the others.
const PACKETS: &str = "tests/scenarios/packets";

/// The files with this extension in a place, in the order of their names.
fn files(place: &str, extension: &str) -> Vec<PathBuf> {
    let mut files = entries(&source(place));
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

/// All families except those with a policy of their own.
fn families() -> Vec<Family> {
    families_in("tests/scenarios")
}

fn families_in(place: &str) -> Vec<Family> {
    let parse = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Family::parse(&name, &fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
    };
    files(place, "toml").into_iter().map(parse).collect()
}

/// The scenarios' policy, built: classes, levels and the unconfined domain of Tollgate's own policy, and the scenarios'
/// rules.
fn policy(scratch: &Scratch, more: &[PathBuf]) -> PathBuf {
    machine::policy(scratch, "built", &[&files("tests/scenarios", "cil"), more].concat())
}

/// Plays all scenarios in a guest.
fn play(engine: Engine, kernel: &str, families: &[Family]) -> All {
    play_with(&[], engine, kernel, families)
}

/// Plays scenarios under a policy that also contains these files.
fn play_with(more: &[PathBuf], engine: Engine, kernel: &str, families: &[Family]) -> All {
    let scratch = Scratch::new();
    let built = policy(&scratch, more);
    let image = scratch.path("image");
    scratch.run(&["policy", "export", word(&built), "--image", word(&image)]).with(0);
    let scenarios = scratch.file("scenarios.json", &serde_json::to_string(families).unwrap());
    let (lsm, policy) = match engine {
        Engine::Selinux => ("selinux", &image),
        Engine::Tollgate(_) => ("bpf", &built),
    };
    let line = format!(
        "/sbin/mke2fs -q -F /dev/ram0 16384 && exec /tollgate-scenario {} /policy /scenarios.json",
        engine.name()
    );
    let machine = Machine::new(&scratch, kernel, lsm, TIMEOUT);
    let machine = machine.modules(&["brd", "overlay", "tun", "sctp", "vsock", "af_alg", "xfrm_user"]);
    let machine = machine.file(Path::new(env!("CARGO_BIN_EXE_tollgate-scenario")), "/tollgate-scenario");
    let machine = machine.file(&scratch.program(), "/bin/tollgate").file(Path::new("/sbin/mke2fs"), "/sbin/mke2fs");
    let ended = machine.file(&scenarios, "/scenarios.json").file(policy, "/policy").run(&["sh", "-c", &line]).with(0);
    All::parse(&ended.stdout).unwrap()
}

/// SELinux's results; played once per kernel for all tests.
fn selinux(kernel: &'static str) -> &'static All {
    static PLAYED: [OnceLock<All>; KERNELS.len()] = [const { OnceLock::new() }; KERNELS.len()];
    let at = KERNELS.iter().position(|known| *known == kernel).unwrap();
    PLAYED[at].get_or_init(|| play(Engine::Selinux, kernel, &families()))
}

/// Checks the scenarios themselves, before they are used for a comparison.
#[test]
#[ignore = "plays all scenarios under SELinux: make test-rest"]
fn denies_and_grants_in_every_family_of_scenarios_under_selinux() {
    let families = families();
    let count: usize = families.iter().map(|family| family.scenarios.len()).sum();
    println!("{count} scenarios in {} families", families.len());
    assert!(count >= 300 && families.len() >= 30);
    for kernel in KERNELS {
        assert_eq!(selinux(kernel).faults(&families), Vec::<String>::new(), "{kernel}");
    }
}

/// Prints the comparison; there must be no difference that is not listed.
fn tell(kernel: &str, comparison: &Comparison) {
    let all = comparison.all();
    let figure = format!(
        "{} in {} families: {} the same, {} differ as listed, {} otherwise",
        all.scenarios,
        comparison.rows.len(),
        all.equal,
        all.listed,
        all.unlisted
    );
    println!("kernel {kernel}\n{}", comparison.table());
    report(&format!("scenarios on {kernel}"), &figure, "0 otherwise", all.unlisted == 0);
    assert!(comparison.complaints.is_empty(), "{kernel}:\n{}", comparison.complaints.join("\n"));
}

/// Plays families under Tollgate, and compares with what `selinux` has of a kernel.
fn assert_decided_as<S>(families: &[Family], descriptors: Descriptors, selinux: impl Fn(&'static str) -> S)
where
    S: Borrow<All>,
{
    for kernel in KERNELS {
        let (played, expected) = thread::scope(|both| {
            // Under the test's name, which determines when it gets a place.
            let other = thread::Builder::new().name(thread::current().name().unwrap_or_default().to_owned());
            let played = other.spawn_scoped(both, || play(Engine::Tollgate(descriptors), kernel, families)).unwrap();
            let expected = selinux(kernel);
            (played.join().unwrap(), expected)
        });
        let comparison = compare(families, expected.borrow(), &played, descriptors);
        tell(kernel, &comparison);
    }
}

#[test]
fn decides_some_scenarios_of_each_family_as_selinux_does() {
    let mut families = families();
    for family in &mut families {
        family.scenarios = family.scenarios.drain(..).step_by(SOME).collect();
    }
    assert_decided_as(&families, Descriptors::Check, |kernel| play(Engine::Selinux, kernel, &families));
}

#[test]
#[ignore = "plays all scenarios: make test-rest"]
fn decides_scenarios_as_selinux_does() {
    assert_decided_as(&families(), Descriptors::Check, selinux);
}

/// The families in which descriptors outlive the right to use them; another start of enforcement, which takes long.
#[test]
#[cfg(feature = "long")]
fn decides_scenarios_of_descriptors_as_selinux_does_where_they_are_asked_about_at_their_use() {
    let mut families = families();
    families.retain(|family| ["dyntrans", "fdreceive", "inherit", "relabel"].contains(&family.name.as_str()));
    assert_eq!(families.len(), 4);
    assert_decided_as(&families, Descriptors::Use, selinux);
}

/// SELinux also checks sent packets, which BPF cannot: there the policy denies nothing.
#[test]
#[cfg(feature = "long")]
fn decides_about_packets_that_are_received_as_selinux_does() {
    let (families, more) = (families_in(PACKETS), files(PACKETS, "cil"));
    for kernel in KERNELS {
        let expected = play_with(&more, Engine::Selinux, kernel, &families);
        assert_eq!(expected.faults(&families), Vec::<String>::new(), "{kernel}");
        let played = play_with(&more, Engine::Tollgate(Descriptors::Check), kernel, &families);
        let comparison = compare(&families, &expected, &played, Descriptors::Check);
        tell(kernel, &comparison);
    }
}
