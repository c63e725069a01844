//! Kernels that are built from Debian's source: the messages before they are built, and, in long tests, their properties. The
//! long tests need them built (`tollgate vm build`, most of an hour once); no test builds one.

use std::{fs, process::Command};

use crate::program::{Scratch, word};

const BUILT: [&str; 2] = ["6.1-built", "6.1-built-nosecurity"];

/// The program with a cache of its own, empty.
fn without_kernels(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = scratch.tollgate(arguments);
    command.env("XDG_CACHE_HOME", scratch.path("cache"));
    command
}

#[test]
fn lists_the_kernels_that_can_be_built() {
    let scratch = Scratch::new();
    let listed = scratch.run(&["vm", "kernels", "--json"]).with(0).json();
    let listed: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|kernel| kernel["built"].as_bool().unwrap())
        .map(|kernel| kernel["series"].as_str().unwrap())
        .collect();
    assert_eq!(listed, BUILT);
    let table = scratch.run(&["vm", "kernels"]).with(0).stdout;
    assert!(BUILT.iter().all(|name| table.lines().any(|line| line.split(' ').next() == Some(name))), "{table}");
}

#[test]
fn refuses_kernels_that_are_not_built_and_builds_none_by_itself() {
    let scratch = Scratch::new();
    let study = scratch.file("study.toml", include_str!("../studies/framework.toml"));
    for name in BUILT {
        let run = without_kernels(&scratch, &["vm", "run", "--kernel", name, "--", "true"]);
        scratch.finish(run).refused(&["not built yet", &format!("`tollgate vm build {name}`"), "minutes", "MiB"]);
    }
    let out = scratch.path("out");
    let run = without_kernels(&scratch, &["study", "run", word(&study), "--out", word(&out)]);
    scratch.finish(run).refused(&["--build-kernels", "`tollgate vm build 6.1-built-nosecurity`"]);
    assert!(!out.exists(), "a folder for results that there cannot be");
    assert!(!scratch.path("cache/tollgate/sources").exists());
}

#[test]
fn names_what_a_build_lacks_before_it_fetches_anything() {
    let scratch = Scratch::new();
    let tools = scratch.path("tools");
    fs::create_dir(&tools).unwrap();
    for arguments in
        [["vm", "build", "6.1-built"].as_slice(), &["study", "run", "framework", "--out", "o", "--build-kernels"]]
    {
        let mut command = without_kernels(&scratch, arguments);
        command.env("PATH", &tools);
        let ended = scratch
            .finish(command)
            .refused(&["apt-get install --no-install-recommends gcc make flex bison bc ccache dwarves"]);
        assert!(ended.stderr.contains("minutes") && ended.stderr.contains("MiB"), "{}", ended.stderr);
    }
    assert!(!scratch.path("cache/tollgate/sources").exists());
    scratch.run(&["vm", "build", "6.2-built"]).refused(&["\"6.2-built\"", "6.1-built-nosecurity"]);
}

#[cfg(feature = "long")]
mod long {
    use std::{collections::BTreeSet, fs};

    use tollgate_bench::confine::Confinement;
    use tollgate_host::Cache;
    use tollgate_study::results::Results;
    use tollgate_vm::{built, kernels};

    use super::{BUILT, Scratch, word};
    use crate::{
        latency::{compare, inject},
        program::{assert_all_measured, configuration, report, results},
    };

    /// Says which kernels a claim lacks, instead of building for an hour.
    fn needs(kernels: &[&str]) {
        let cache = Cache::of_user().unwrap();
        let lacks = kernels.iter().find(|name| !built::recipe(name).unwrap().is_built(&cache));
        assert_eq!(lacks, None, "this claim needs a kernel that is not built: make kernels (most of an hour, once)");
    }

    fn run(scratch: &Scratch, study: &str) -> Results {
        let out = scratch.path("out");
        scratch.run(&["study", "run", study, "--out", word(&out)]).with(0);
        results(&out)
    }

    /// Every module of the kernel comes up when `lsm=` names it and is measured, under a policy if the configuration has one.
    #[test]
    fn built_kernel_runs_every_module() {
        const NAMES: [&str; 12] = [
            "none",
            "capability",
            "bpf",
            "bpf-empty",
            "latency",
            "selinux-nopolicy",
            "selinux-enforcing",
            "apparmor",
            "tomoyo",
            "landlock",
            "yama",
            "smack",
        ];
        let scratch = Scratch::new();
        needs(&BUILT[..1]);
        let text = format!(
            "name = \"modules\"\ntitle = \"Modules of the built kernel\"\nkernels = [\"6.1-built\"]\nconfigurations = {NAMES:?}\n\
             workloads = [\"@controls\", \"open+close\", \"stat\"]\nsamples = 10\n\
             [[configuration]]\nname = \"smack\"\nlsm = \"smack\"\n"
        );
        let results = run(&scratch, word(&scratch.file("study.toml", &text)));
        assert_all_measured(&results);
        for of in &results.configurations {
            println!("{}: {}; {}", of.name, of.lsm, of.notes.join("; "));
        }
        let smack = configuration(&results, "smack");
        assert!(smack.lsm.split(',').any(|module| module == "smack"), "{}", smack.lsm);
        report("modules on the built kernel", &NAMES.len().to_string(), "all of them", true);
    }

    /// Two instructions a unit, as often as the hook is passed.
    #[test]
    fn module_in_the_kernel_takes_two_instructions_a_unit() {
        let scratch = Scratch::new();
        needs(&BUILT[..1]);
        let found = inject(&scratch, "6.1-built", "tollgate_latency", Confinement::Latency);
        let unit = found.calibration.as_ref().unwrap().further();
        report("a unit of the module in the kernel", &format!("{unit} instructions"), "2", unit == 2.0);
        println!("{} of {} pairs differ", compare("6.1-built", &found), found.workloads.len() * found.delayed.len());
        assert!(unit == 2.0, "{unit}");
    }

    /// The cost of the framework alone: SECURITY=y without modules minus SECURITY=n, by workload.
    #[test]
    fn framework_costs_what_the_difference_of_two_kernels_is() {
        let scratch = Scratch::new();
        needs(&BUILT);
        assert_eq!(differing(), ["BPF_LSM=y", "BUILD_BIN2C=y", "CRC_CCITT=y", "NETLABEL=y"]);
        let results = run(&scratch, "framework");
        assert_all_measured(&results);
        let of = |kernel: &str, configuration: &str| {
            results.on(kernel).find(|of| of.name == configuration).unwrap().workloads.clone()
        };
        let (without, with, twin) = (of(BUILT[1], "none"), of(BUILT[0], "none"), of(BUILT[0], "capability"));
        println!(
            "{:<24} {:>10} {:>8} {:>8}  calls with fsnotify in them",
            "instructions", "no hooks", "hooks", "percent"
        );
        for ((without, with), twin) in without.iter().zip(&with).zip(&twin) {
            assert_eq!(without.name, with.name);
            let cost = with.figure - without.figure;
            let share = cost / without.figure * 100.0;
            println!(
                "{:<24} {:>10} {:>+8} {:>+7.1}%  {}",
                without.name,
                without.figure,
                cost,
                share,
                fsnotify(&without.name)
            );
            if without.name == "null" || without.name == "loop" {
                assert_eq!(cost, 0.0, "{}: controls pass no hook", without.name);
            }
            if without.name == "stat" || without.name == "open+close" {
                assert!(cost > 0.0, "{}: hooks cost {cost}", without.name);
            }
            assert!(((twin.figure - with.figure) / with.figure).abs() < 0.01, "{}: the A/A pair", with.name);
        }
        report("framework cost", &format!("{} workloads", with.len()), "20", with.len() >= 20);
        assert!(with.len() >= 20);
    }

    /// The answers in which the two configurations differ, except those named after SECURITY, the release and types for BPF.
    fn differing() -> Vec<String> {
        const EXPECTED: [&str; 6] = ["SECURITY", "DEFAULT_SECURITY", "LSM", "LOCALVERSION", "DEBUG_INFO", "PAHOLE"];
        let answers = |name: &str| -> BTreeSet<String> {
            let kernel = kernels::find(&Cache::of_user().unwrap(), name).unwrap();
            let text = fs::read_to_string(kernel.image.with_file_name("config")).unwrap();
            text.lines().filter_map(|line| line.strip_prefix("CONFIG_")).map(str::to_owned).collect()
        };
        let [with, without] = BUILT.map(answers);
        let is_expected = |answer: &str| EXPECTED.iter().any(|start| answer.starts_with(start));
        with.symmetric_difference(&without).filter(|answer| !is_expected(answer)).cloned().collect()
    }

    /// The part of a workload's difference that is not LSM: security_file_open and security_file_permission call fsnotify
    /// (security/security.c), which does nothing for a write.
    fn fsnotify(workload: &str) -> &'static str {
        match workload.split(':').next().unwrap_or_default() {
            "open+close" | "creat" | "creat+unlink" | "posix-shm" => "file_open",
            name if name.starts_with("create-") => "file_open",
            "copy" | "getdents" | "pread" | "pread-1" | "pipe" | "ctx-switch" => "file_permission",
            name if name.starts_with("read-") => "file_permission",
            "exec" | "sh" => "file_permission and file_open",
            _ => "",
        }
    }
}
