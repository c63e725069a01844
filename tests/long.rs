//! The claims of the instrument, with goals and figures, and every kernel: longer than `make test` may take.
//!
//! `make verify CLAIM=...` runs those whose names contain a word; docs/verify.md has the figures seen.

use std::{collections::BTreeSet, path::Path, sync::OnceLock};

use tollgate_bench::confine::REACHED_HOOKS;
use tollgate_study::{
    configuration::{KNOWN, Known},
    results::{ConfigurationResult, Oracle, Results},
    study::Study,
};

use crate::{
    guests::is_proved,
    program::{
        Ended, Scratch, assert_all_measured, configuration, machine::Machine, report, report_time, results, word,
        workload,
    },
};

/// The kernels of the issue: the oldest that has BPF LSM, Debian's releases, and the newest.
const KERNELS: [&str; 5] = ["5.10", "6.1", "6.12", "6.18", "7.2"];

fn run_study(scratch: &Scratch, study: &str, out: &str) -> Ended {
    let out = scratch.path(out);
    scratch.run(&["study", "run", study, "--out", word(&out)]).with(0)
}

/// Runs a study file's text.
fn run_text(scratch: &Scratch, text: &str) -> Results {
    let file = scratch.file("study.toml", text);
    run_study(scratch, word(&file), "out");
    results(&scratch.path("out"))
}

/// The study that comes with the program, to take its workloads from.
fn quick() -> Study {
    Study::parse("quick", include_str!("../studies/quick.toml")).unwrap()
}

fn text(kernels: &[&str], configurations: &[&str], workloads: &[String], more: &str) -> String {
    format!(
        "name = \"verified\"\ntitle = \"What docs/verify.md states\"\nkernels = {kernels:?}\n\
         configurations = {configurations:?}\nworkloads = {workloads:?}\n{more}\n"
    )
}

/// Configurations that Debian's kernels can have.
fn stock() -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().filter(|known| !known.needs_built_kernel())
}

/// Every configuration on every kernel with the default study's workloads; measured once for all tests of this program.
fn every_kernel() -> &'static Results {
    static MEASURED: OnceLock<Results> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let names: Vec<&str> = stock().map(|known| known.name).collect();
        run_text(&Scratch::new(), &text(&KERNELS, &names, &quick().workloads, ""))
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn quick_study_is_complete_and_gives_the_same_minima_again() {
    let scratch = Scratch::new();
    let first = run_study(&scratch, "quick", "first");
    let measured = results(&scratch.path("first"));
    let whole = measured.configurations.iter().filter(|c| c.unmeasured.is_empty() && c.workloads.len() >= 20).count();
    let size = format!("{whole} configurations with at least 20 workloads");
    report("make run", &size, "9", whole >= 9);
    let seconds = first.took.as_secs();
    report_time("make run, time", &format!("{} min {} s", seconds / 60, seconds % 60), "5 min");
    run_study(&scratch, "quick", "second");
    let (first, second) = (scratch.path("first"), scratch.path("second"));
    let compared = scratch.run(&["study", "compare", word(&first), word(&second)]).with(0).stdout;
    let sentence = compared.lines().next().unwrap();
    let words: Vec<&str> = sentence.split(' ').collect();
    report("make run, again", sentence, "all", words[0] == words[2]);
    assert!(whole >= 9, "{size}");
    assert!(words[0] == words[2] && words[0] != "0", "{compared}");
}

#[test]
fn reference_study_agrees_with_the_earlier_measurement() {
    let scratch = Scratch::new();
    run_study(&scratch, "reference", "out");
    let results = results(&scratch.path("out"));
    let published = results.study.published.first().unwrap();
    let mut apart = Vec::new();
    for (name, row) in &published.percent {
        for (configuration_name, then) in row {
            let now = workload(configuration(&results, configuration_name), name).difference.as_ref().unwrap().percent;
            let met = (now - then).abs() <= 1.5;
            report(
                &format!("{name} {configuration_name}"),
                &format!("{now:+.1} %"),
                &format!("{then:+.1} % within 1.5"),
                met,
            );
            let stated = ["selinux-enforcing", "empty-12"].contains(&configuration_name.as_str());
            if name.starts_with("open+close") && stated && !met {
                apart.push(format!("{configuration_name} {now:+.1} % for {then:+.1} %"));
            }
        }
    }
    assert!(apart.is_empty(), "{apart:?}");
}

#[test]
fn spread_is_small_on_every_kernel() {
    for kernel in KERNELS {
        let all = || every_kernel().on(kernel).flat_map(|c| c.workloads.iter().map(|w| w.spread));
        let (spread, widest) = (median(all().collect()), all().fold(0.0, f64::max));
        let figure = format!("{spread:.2} % (widest {widest:.1} %)");
        report(&format!("in-run spread on {kernel}"), &figure, "median under 2 %", spread < 2.0);
        assert!(spread < 2.0);
    }
}

/// 5.10 has neither Landlock nor task storage, which Tollgate needs; this is reported. Everything else is present and
/// decides.
#[test]
fn oracles_hold_on_every_kernel() {
    let lacks =
        |of: &ConfigurationResult| of.kernel == "5.10" && (of.name == "landlock" || of.name.starts_with("tollgate-"));
    let void = |of: &ConfigurationResult| lacks(of) && is_proved(of);
    for kernel in KERNELS {
        let on: Vec<&ConfigurationResult> = every_kernel().on(kernel).collect();
        let held = on.iter().filter(|of| of.oracle == Oracle::Held).count();
        let goal = on.iter().filter(|of| is_proved(of) && !void(of)).count();
        report(&format!("oracles on {kernel}"), &format!("{held} held"), &goal.to_string(), held == goal);
        assert_eq!(on.len(), stock().count(), "{kernel}");
        for of in on {
            let notes = of.notes.join("; ");
            if lacks(of) {
                assert!(of.workloads.is_empty() && !notes.is_empty(), "{}: {notes}", of.name);
                continue;
            }
            let expected = if is_proved(of) { Oracle::Held } else { Oracle::None };
            assert_eq!(of.oracle, expected, "{kernel} {}: {notes}", of.name);
            assert!(of.unmeasured.is_empty(), "{kernel} {}: {:?}", of.name, of.unmeasured);
            assert_eq!(of.workloads.len(), quick().workloads.len(), "{kernel} {}: {notes}", of.name);
        }
    }
}

#[test]
fn controls_are_equal_under_every_module_on_every_kernel() {
    for kernel in KERNELS {
        for name in ["null", "loop"] {
            let on = every_kernel().on(kernel).filter_map(|of| of.workload(name));
            let minima: BTreeSet<String> = on.map(|w| w.min.to_string()).collect();
            let figures: Vec<&str> = minima.iter().map(String::as_str).collect();
            report(&format!("{name} on {kernel}"), &figures.join(", "), "one minimum", minima.len() == 1);
            assert_eq!(minima.len(), 1);
        }
    }
}

#[test]
fn empty_programs_change_nothing_on_every_kernel() {
    let workloads = ["@all", "@files:ext4", "@files:rootfs", "@communication:veth"].map(String::from);
    let results = run_text(&Scratch::new(), &text(&KERNELS, &["none", "bpf-empty"], &workloads, "samples = 3"));
    for of in &results.configurations {
        let (done, failed) = (of.workloads.len(), of.unmeasured.len());
        let what = format!("workloads on {} under {}", of.kernel, of.name);
        report(&what, &format!("{done} work, {failed} do not; {}", of.confinement), "all work", failed == 0);
    }
    assert_all_measured(&results);
}

#[test]
fn pair_of_the_same_machine_differs_by_nothing() {
    let study = text(&["6.1"], &["none", "capability"], &quick().workloads, "paddings = 4");
    let results = run_text(&Scratch::new(), &study);
    let pair = configuration(&results, "capability");
    let mut apart = Vec::new();
    let mut widest = 0.0_f64;
    for of in &pair.workloads {
        let difference = of.difference.as_ref().unwrap();
        widest = widest.max(difference.percent.abs());
        // The table prints `0` or `~0`.
        if difference.percent != 0.0 && !(difference.low..=difference.high).contains(&0.0) {
            apart.push(format!("{} {:+.2} %", of.name, difference.percent));
        }
    }
    let figure = format!(
        "{} of {} print 0 or ~0, none is over {widest:.2} %",
        pair.workloads.len() - apart.len(),
        pair.workloads.len()
    );
    report("none against capability", &figure, "all", apart.is_empty());
    assert!(apart.is_empty(), "{apart:?}");
}

/// An empty program costs one trampoline per call. `read-1` makes one call of `file_permission`: its difference is the cost.
/// A path walk calls `inode_permission` once per directory: ten depths must differ by ten times that.
#[test]
fn latency_of_a_known_size_is_found_to_its_size() {
    let own = "baseline = \"bpf\"\ndepths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\
               [[configuration]]\nname = \"one-call\"\nbase = \"bpf-empty\"\nhooks = [\"file_permission\"]\n\
               [[configuration]]\nname = \"a-call-each\"\nbase = \"bpf-empty\"\nhooks = [\"inode_permission\"]";
    let study = text(&["6.1"], &["bpf", "one-call", "a-call-each"], &["read-1".into(), "stat".into()], own);
    let results = run_text(&Scratch::new(), &study);
    let added = |name: &str, of: &str| {
        workload(configuration(&results, name), of).min - workload(configuration(&results, "bpf"), of).min
    };
    let size = added("one-call", "read-1");
    let depth = |depth: u32| if depth == 3 { "stat".to_owned() } else { format!("stat:d{depth}") };
    let latencies: Vec<f64> = (1..=10).map(|d| added("a-call-each", &depth(d))).collect();
    let steps: Vec<f64> = latencies.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let slope = (latencies[9] - latencies[0]) / 9.0;
    let (least, most) = (steps.iter().copied().fold(f64::MAX, f64::min), steps.iter().copied().fold(0.0, f64::max));
    let found = format!("{slope:.1} instructions per call (steps {least} to {most}), by read-1 {size}");
    let met = (slope / size - 1.0).abs() < 0.1 && (most - least) / slope < 0.02;
    report("an empty program, by path depth", &found, "the same within 10 %, steps within 2 %", met);
    assert!(met, "{latencies:?}");
}

/// Hooks that are called during the bench's set-up and end, outside every clock.
const SET_UP: [&str; 16] = [
    // Mounting and unmounting tmpfs and ext4, and the file systems of new network namespaces.
    "fs_context_parse_param",
    "kernfs_init_security",
    "sb_alloc_security",
    "sb_delete",
    "sb_eat_lsm_opts",
    "sb_free_security",
    "sb_kern_mount",
    "sb_mount",
    "sb_set_mnt_opts",
    "sb_umount",
    // veth pairs and addresses.
    "netlink_send",
    // The block device's size, and whether standard output is a terminal.
    "file_ioctl",
    // Scheduling of the kernel's own new threads, such as ext4's and the RAM disk's, and of mke2fs.
    "task_getscheduler",
    "task_setioprio",
    "task_setscheduler",
    // Opening the kernel's timer list, before confinement.
    "locked_down",
];

/// Hooks that the kernel lets no program be attached to (kernel/bpf/bpf_lsm.c: disabled hooks).
const NOT_FOR_PROGRAMS: [&str; 2] = ["inode_need_killpriv", "vm_enough_memory"];

/// Traces `bpf_lsm_*` while all workloads run, and prints each hook once.
const TRACE: &str = "\
cd /sys/kernel/tracing
echo 0 > tracing_on
echo 200000 > buffer_size_kb
echo 'bpf_lsm_*' > set_ftrace_filter
echo function > current_tracer
echo 1 > tracing_on
/tollgate bench run @all @files:ext4 @communication:veth --samples 2 >&2 || exit
echo 0 > tracing_on
grep -q '^overrun: 0$' per_cpu/cpu0/stats || { echo the trace lost events >&2; exit 1; }
sed -n 's/.* bpf_lsm_\\([a-z0-9_]*\\) <-.*/\\1/p' trace | sort -u
";

#[test]
fn hooks_that_workloads_reach_get_empty_programs() {
    let scratch = Scratch::new();
    let (script, program) = (scratch.file("trace.sh", TRACE), scratch.program());
    let files = [
        (script.as_path(), "/trace.sh"),
        (&program, "/tollgate"),
        (Path::new("/sbin/mke2fs"), "/sbin/mkfs.ext4"),
        (Path::new("/etc/mke2fs.conf"), "/etc/mke2fs.conf"),
    ];
    let mut reached = BTreeSet::new();
    for kernel in ["6.1", "6.12", "6.18", "7.2"] {
        let machine = Machine::new(&scratch, kernel, "bpf", 300).option(&["--clock", "instructions"]);
        let machine =
            files.iter().fold(machine.modules(&["brd", "veth"]), |machine, (host, guest)| machine.file(host, guest));
        let traced = machine.run(&["sh", "/trace.sh"]).with(0).stdout;
        let hooks: BTreeSet<String> = traced.lines().map(str::to_owned).collect();
        let known = |hook: &str| [REACHED_HOOKS, &SET_UP, &NOT_FOR_PROGRAMS].iter().any(|list| list.contains(&hook));
        let unknown: Vec<&String> = hooks.iter().filter(|hook| !known(hook)).collect();
        let figure = format!("{} traced, {} of them unknown", hooks.len(), unknown.len());
        report(&format!("hooks on {kernel}"), &figure, "none unknown", unknown.is_empty());
        assert!(unknown.is_empty(), "{unknown:?}");
        reached.extend(hooks);
    }
    let never: Vec<&&str> = REACHED_HOOKS.iter().filter(|hook| !reached.contains(**hook)).collect();
    report("hooks in the set that no kernel reaches", &format!("{never:?}"), "none", never.is_empty());
    assert!(never.is_empty(), "{never:?}");
}

/// Ten minutes for the parsers of policy descriptions, built policies, places of statements, decision tables, the answers of
/// libsepol's child, and binary policies in it, at the same time; then ten for the evaluator under sanitizers. Not
/// `--release`, so that arithmetic overflow panics, too.
#[test]
fn fuzz_finds_no_crash_and_no_read_outside() {
    let seconds = 600;
    let ended = std::process::Command::new(env!("CARGO"))
        .args(["test", "--locked", "--package", "tollgate-policy", "--lib", "--test", "evaluator"])
        .args(["fuzz_", "--", "--test-threads", "16"])
        .env("TOLLGATE_FUZZ_SECONDS", seconds.to_string())
        .output()
        .unwrap();
    let (out, error) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let passed: Vec<&str> = out.lines().filter(|line| line.ends_with("... ok")).collect();
    let figure = format!("{} readers, {} min each, without a crash", passed.len(), seconds / 60);
    report("fuzzing", &figure, "10 min", ended.status.success());
    assert!(ended.status.success(), "{out}{error}");
    assert!(passed.len() >= 7, "{out}{error}");
}
