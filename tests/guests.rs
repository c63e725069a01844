//! Real kernels in guests: output comes back, errors are reported, and nothing is left behind.
//!
//! QEMU, and a kernel in the cache or a network to fetch it, are needed: without them these tests fail, and say so.

use std::{collections::BTreeSet, fs, path::Path, process::Command, time::Duration};

use tollgate_bench::{place::Network, workload::Tasks};
use tollgate_host::{Cache, Error, Packages};
use tollgate_study::{
    configuration::{self, KNOWN, Known},
    results::{ConfigurationResult, Oracle, Results},
};
use tollgate_vm::kernels;

use crate::program::{
    Ended, Scratch, assert_all_measured, configuration, entries, guests::take, results, signal, wait_for, word,
    workload,
};

/// A guest that prints a line and stays.
const STAYING_GUEST: [&str; 8] =
    ["vm", "run", "--clock", "instructions", "--", "sh", "-c", "echo there; sleep 100000; sleep 100000"];

/// Much less than an interrupted program would take otherwise, and much more than it needs on a busy machine.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(60);

/// Whether a configuration's policy must be seen to deny something, or its packets to have labels.
pub(crate) fn is_proved(of: &ConfigurationResult) -> bool {
    let labels = |known: &Known| known.label(None, Network::Veth).is_some_and(|due| due.label.is_some());
    configuration::find(&of.name).is_some_and(|known| known.denies() || labels(known))
}

/// Configurations that only `long` measures, on every kernel: an emulated guest takes a minute to start Debian's policy under
/// Tollgate, and the others differ from measured ones only in their mode.
const LONG: [&str; 9] = [
    "selinux-nopolicy",
    "selinux-permissive",
    "tollgate-debian-confined",
    "tollgate-debian-at-use",
    "tollgate-debian-counted",
    "tollgate-permissive",
    "tollgate-mls",
    "tollgate-mls-cipso",
    "tollgate-mls-sealed",
];

/// A study of one kernel on the instruction clock.
fn study(configurations: &[&str], workloads: &[&str], more: &str) -> String {
    format!(
        "name = \"tested\"\ntitle = \"What the tests measure\"\nkernels = [\"6.1\"]\n\
         configurations = {configurations:?}\nworkloads = {workloads:?}\n{more}\n"
    )
}

/// Runs a study with this many guests at a time, into the folder `out` of the scratch.
fn run_study(scratch: &Scratch, text: &str, out: &str, guests: u32, more: &[&str]) -> Ended {
    let file = scratch.file("study.toml", text);
    let (out, guests) = (scratch.path(out), guests.to_string());
    let arguments = ["study", "run", word(&file), "--out", word(&out), "--guests", &guests];
    let _places = take(guests.parse().expect("a number"));
    scratch.run(&[&arguments, more].concat())
}

/// Runs the program with one guest.
fn run_guest(scratch: &Scratch, arguments: &[&str]) -> Ended {
    let _place = take(1);
    scratch.run(&[&["vm", "run"], arguments].concat())
}

/// The count in `... instructions (without idle)`.
fn instructions(ended: &Ended) -> u64 {
    let before = ended.stderr.split_once(" instructions (without idle)").map(|(before, _)| before);
    let word = before.and_then(|before| before.rsplit(' ').next());
    word.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no count: {}", ended.stderr))
}

#[test]
fn passes_on_the_commands_status_and_both_streams() {
    let scratch = Scratch::new();
    let command = "printf 'out\\0\\n'; echo err >&2; exit 7";
    let ended = run_guest(&scratch, &["--clock", "instructions", "--", "sh", "-c", command]).with(7).says(&["err\n"]);
    assert_eq!(ended.stdout, "out\0\n");
    let kernel = kernels::find(&Cache::of_user().unwrap(), "6.1").unwrap();
    let image = word(&kernel.image);
    let ended = run_guest(&scratch, &["--kernel", image, "--clock", "instructions", "--", "sh", "-c", "kill -9 $$"]);
    ended.with(128 + 9).says(&[&kernel.release]);
}

#[test]
fn counts_the_same_instructions_again_and_without_a_network() {
    let scratch = Scratch::new();
    let arguments = ["--clock", "instructions", "--", "sh", "-c", "for i in 1 2 3; do cat /proc/version; done"];
    let first = run_guest(&scratch, &arguments).with(0);
    let mut offline = scratch.tollgate(&[&["vm", "run"], &arguments[..]].concat());
    offline.env("http_proxy", "http://127.0.0.1:9").env("https_proxy", "http://127.0.0.1:9");
    let _place = take(1);
    let second = scratch.finish(offline).with(0);
    assert!(instructions(&first) > 100_000, "{}", first.stderr);
    assert_eq!(instructions(&first), instructions(&second));
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn gives_the_guest_the_modules_and_files_that_are_asked_for() {
    let scratch = Scratch::new();
    let file = format!("{}:/put/here", word(&scratch.file("there", "what was put there\n")));
    let command = "cat /sys/kernel/security/lsm; echo; cat /put/here; grep -o '^brd ' /proc/modules; uname -r";
    let arguments = ["--lsm", "yama,landlock", "--file", &file, "--module", "brd", "--clock", "instructions", "--"];
    let ended = run_guest(&scratch, &[&arguments[..], &["sh", "-c", command]].concat()).with(0);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[..3], ["lockdown,capability,yama,landlock", "what was put there", "brd "]);
    assert!(lines[3].starts_with("6.1."), "{lines:?}");
}

#[test]
fn says_which_clock_and_accelerator_a_wall_time_is_of() {
    let ended = run_guest(&Scratch::new(), &["--accelerator", "emulation", "--cpus", "2", "--", "nproc"]).with(0);
    assert_eq!(ended.stdout, "2\n");
    ended.says(&["emulation (as requested)", "clock wall", "s in the guest"]);
}

#[test]
fn rejects_an_unknown_kernel_and_names_those_there_are() {
    let ended = Scratch::new().run(&["vm", "run", "--kernel", "9.9", "--", "true"]);
    ended.refused(&["\"9.9\"", "6.1", "6.12", "path of a bzImage"]);
}

#[test]
fn rejects_programs_files_and_modules_that_are_not_there() {
    let scratch = Scratch::new();
    run_guest(&scratch, &["--", "no-such-program"]).refused(&["no-such-program", "no such program", "busybox"]);
    run_guest(&scratch, &["--", "/no/such/program"]).refused(&["/no/such/program", "no such program"]);
    run_guest(&scratch, &["--file", "/no/such/file", "--", "true"]).refused(&["--file /no/such/file"]);
    run_guest(&scratch, &["--module", "no_such_module", "--", "true"]).refused(&["no_such_module"]);
}

#[test]
fn reports_a_package_that_no_suite_has() {
    let (cache, folder) = (Cache::of_user().unwrap(), tempfile::tempdir().unwrap());
    let error = Packages::new(&cache).unpack(&["no-such-package-at-all"], folder.path()).unwrap_err();
    assert!(matches!(&error, Error::NoPackage { name, .. } if name == "no-such-package-at-all"), "{error}");
    assert!(error.to_string().contains("bookworm") && error.to_string().contains("--update"), "{error}");
}

#[test]
fn reports_a_panic_in_the_kernels_own_words() {
    let command = "echo before; echo c > /proc/sysrq-trigger";
    let ended = run_guest(&Scratch::new(), &["--clock", "instructions", "--", "sh", "-c", command]).with(2);
    ended.says(&["kernel panicked: sysrq triggered crash", "from the console", "  | "]);
}

#[test]
fn reports_a_guest_that_runs_out_of_memory() {
    let arguments = ["--memory", "160", "--clock", "instructions", "--", "tail", "/dev/zero"];
    run_guest(&Scratch::new(), &arguments).refused(&["160 MiB", "--memory", "Out of memory"]);
}

#[test]
fn reports_an_image_that_is_no_kernel() {
    let scratch = Scratch::new();
    let image = scratch.file("vmlinuz", "not at all");
    run_guest(&scratch, &["--kernel", word(&image), "--clock", "instructions", "--", "true"])
        .refused(&["QEMU", "kernel"]);
}

#[test]
fn stops_a_guest_that_takes_too_long() {
    let ended = run_guest(&Scratch::new(), &["--accelerator", "emulation", "--timeout", "8", "--", "sleep", "1000"]);
    assert!(ended.took >= Duration::from_secs(8), "{:?}", ended.took);
    ended.refused(&["within 8 s", "--timeout"]);
}

#[test]
fn reports_an_emulator_that_was_killed() {
    let scratch = Scratch::new();
    let _place = take(1);
    let mut running = scratch.start(scratch.tollgate(&STAYING_GUEST));
    running.wait_until("the guest is up", |running| running.stdout().contains("there"));
    let emulators = running.emulators();
    assert_eq!(emulators.len(), 1);
    signal("KILL", &emulators[0].to_string());
    running.finish().with(2).says(&["QEMU ended early", "signal: 9"]);
}

#[test]
fn leaves_nothing_behind_when_a_guest_is_interrupted() {
    let scratch = Scratch::new();
    let _place = take(1);
    let mut running = scratch.start(scratch.tollgate(&STAYING_GUEST));
    running.wait_until("the guest is up", |running| running.stdout().contains("there"));
    running.interrupt();
    let ended = running.finish().with(130).says(&["interrupted"]);
    assert!(ended.took < INTERRUPT_TIMEOUT, "{:?}", ended.took);
}

#[test]
fn leaves_no_emulator_behind_when_it_is_killed_itself() {
    let scratch = Scratch::new();
    let _place = take(1);
    let mut running = scratch.start(scratch.tollgate(&STAYING_GUEST));
    running.wait_until("the guest is up", |running| running.stdout().contains("there"));
    let emulators = running.emulators();
    signal("KILL", &running.pid().to_string());
    running.wait_for_end();
    let gone = || emulators.iter().all(|pid| !Path::new(&format!("/proc/{pid}/exe")).exists());
    wait_for("the kernel to end the emulator", gone);
}

/// A shell line in which `$TOLLGATE` runs with a small file system of its own at `$SMALL`.
fn with_small_disk(scratch: &Scratch, size: &str, line: &str) -> Command {
    let small = scratch.path("small");
    fs::create_dir(&small).unwrap();
    let line = format!("mount -t tmpfs -o size={size} none \"$SMALL\" && {line}");
    let mut command = scratch.command("unshare", &["--map-root-user", "--mount", "sh", "-c", &line]);
    command.env("SMALL", small).env("TOLLGATE", scratch.program());
    // The cache is the user's, whoever runs inside.
    command.env("XDG_CACHE_HOME", Cache::of_user().unwrap().root().parent().unwrap());
    command
}

#[test]
fn reports_a_full_disk_where_the_guest_is_made_ready() {
    let scratch = Scratch::new();
    let line =
        "TMPDIR=\"$SMALL\" $TOLLGATE vm run --clock instructions -- true; status=$?; ls -A \"$SMALL\"; exit $status";
    scratch.finish(with_small_disk(&scratch, "1m", line)).refused(&["No space left on device", "TMPDIR"]);
}

#[test]
fn reports_a_full_disk_where_the_cache_is_before_anything_is_fetched() {
    let scratch = Scratch::new();
    let line = "XDG_CACHE_HOME=\"$SMALL\" $TOLLGATE vm kernels";
    scratch.finish(with_small_disk(&scratch, "3m", line)).refused(&["MiB are free", "XDG_CACHE_HOME"]);
}

#[test]
fn reports_a_full_disk_where_the_results_go_and_goes_on_when_there_is_room() {
    let scratch = Scratch::new();
    let text = study(&["none", "capability"], &["@controls", "stat"], "samples = 200");
    let file = scratch.file("study.toml", &text);
    let run = format!("$TOLLGATE study run {} --guests 1 --out \"$SMALL/out\"", word(&file));
    // 16 KiB hold the study file and no results.
    let line = format!(
        "{{ {run}; echo $? >&2; mount -o remount,size=8m \"$SMALL\"; {run} --resume > /dev/null && cat \"$SMALL/out/results.json\"; }}"
    );
    let _place = take(1);
    let ended = scratch.finish(with_small_disk(&scratch, "16k", &line)).with(0);
    let ended = ended.says(&["No space left on device", "--resume", "\n2\n"]);
    let results: Results = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(results.configurations.len(), 2);
    assert_all_measured(&results);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn keeps_what_was_measured_when_a_study_is_interrupted_and_goes_on_from_there() {
    let scratch = Scratch::new();
    let text = study(&["none", "capability", "yama"], &["@controls", "stat"], "samples = 20");
    let (file, out) = (scratch.file("study.toml", &text), scratch.path("out"));
    let arguments = ["study", "run", word(&file), "--out", word(&out), "--guests", "1"];
    let _place = take(1);
    let mut running = scratch.start(scratch.tollgate(&arguments));
    let records = || entries(&out.join("samples/6.1"));
    let is_whole = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    let whole = || records().into_iter().filter(|path| is_whole(path)).collect::<Vec<_>>();
    running.wait_until("the second guest runs", |running| whole().len() == 1 && running.emulators().len() == 1);
    running.interrupt();
    let ended = running.finish().with(130).says(&["interrupted", "--resume", word(&out)]);
    assert!(ended.took < INTERRUPT_TIMEOUT, "{:?}", ended.took);
    let kept = whole();
    let before = fs::read(&kept[0]).unwrap();
    assert_eq!((kept.len(), records().len()), (1, 1));
    assert_eq!(workload(configuration(&results(&out), "none"), "stat").samples.len(), 20);
    assert!(scratch.run(&["study", "report", word(&out)]).with(0).stdout.contains("stat"));

    scratch.run(&[&arguments[..], &["--resume"]].concat()).with(0);
    assert_eq!(whole().len(), 3);
    assert_eq!(fs::read(&kept[0]).unwrap(), before, "what was there is not measured again");
    assert_all_measured(&results(&out));
    assert_eq!(results(&out).configurations.len(), 3);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn goes_on_without_a_configuration_whose_guest_panics() {
    let scratch = Scratch::new();
    let broken = "[[configuration]]\nname = \"broken\"\nlsm = \"\"\ncommand-line = \"rdinit=/nothing\"";
    let text = study(&["none", "broken", "yama"], &["null"], &format!("samples = 5\n{broken}"));
    let ended = run_study(&scratch, &text, "out", 1, &[]).with(0).says(&["6.1 broken: the guest's kernel panicked"]);
    assert!(ended.stdout.contains("broken"), "{}", ended.stdout);
    let results = results(&scratch.path("out"));
    let of_broken = configuration(&results, "broken");
    assert!(of_broken.workloads.is_empty() && of_broken.notes.iter().any(|note| note.contains("panicked")));
    assert_eq!(configuration(&results, "yama").oracle, Oracle::Held);
    let console = fs::read_to_string(scratch.path("out/console/6.1/broken.p0.log")).unwrap();
    assert!(console.contains("Kernel panic"), "{console}");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn measures_every_known_configuration_and_sees_each_policy_decide() {
    let scratch = Scratch::new();
    let stock = KNOWN.iter().filter(|known| !known.needs_built_kernel());
    let mut names: Vec<&str> = stock.map(|known| known.name).collect();
    names.retain(|name| cfg!(feature = "long") || !LONG.contains(name));
    let workloads = ["@controls", "open+close", "stat", "creat+unlink", "exec", "pipe", "udp-self"];
    let text = study(&names, &workloads, "samples = 10");
    let ended = run_study(&scratch, &text, "out", 2, &[]).with(0);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
    let results = results(&scratch.path("out"));
    assert_eq!(results.configurations.len(), names.len());
    assert_all_measured(&results);
    for of in &results.configurations {
        let expected = if is_proved(of) { Oracle::Held } else { Oracle::None };
        assert_eq!(of.oracle, expected, "{}: {:?}", of.name, of.notes);
        let known = configuration::find(&of.name).unwrap();
        for module in known.lsm.split(',').filter(|module| !module.is_empty()) {
            assert!(
                of.lsm.split(',').any(|active| active == module),
                "{}: {} is not active: {}",
                of.name,
                module,
                of.lsm
            );
        }
    }
    controls_are_equal(&results);
    let cost = |configuration_name: &str, name: &str| {
        workload(configuration(&results, configuration_name), name).difference.as_ref().unwrap().percent
    };
    let twin = cost("capability", "open+close");
    assert!(twin.abs() < 0.5, "the baseline's own machine again: {twin} %");
    assert!(cost("selinux-enforcing", "open+close") > 10.0);
    assert!(cost("bpf-empty", "open+close") > cost("bpf", "open+close"));
    assert!(cost("apparmor-confined", "open+close") > cost("apparmor", "open+close"));
    // Every confined domain may open such an object, so opening it needs no check: only new objects differ.
    assert!(cost("tollgate-own-confined", "creat+unlink") > cost("tollgate-own-unconfined", "creat+unlink"));
    assert!(cost("tomoyo-learnt", "open+close") > cost("tomoyo", "open+close"));
}

/// `null` and `loop` pass no hook: their minimum is the same under every module.
fn controls_are_equal(results: &Results) {
    for name in ["null", "loop"] {
        let minima: BTreeSet<String> =
            results.configurations.iter().map(|of| workload(of, name).min.to_string()).collect();
        assert_eq!(minima.len(), 1, "{name}: {minima:?}");
    }
}

#[test]
fn measures_the_same_minima_again_and_the_comparison_says_so() {
    let scratch = Scratch::new();
    let text = study(&["none", "apparmor"], &["@controls", "open+close", "rename", "fork+exit", "tcp"], "samples = 20");
    for out in ["first", "second"] {
        run_study(&scratch, &text, out, 1, &[]).with(0);
    }
    let (first, second) = (scratch.path("first"), scratch.path("second"));
    let compared = scratch.run(&["study", "compare", word(&first), word(&second)]).with(0).stdout;
    let one_task = |out: &Path| {
        let results = results(out);
        let workloads = results.configurations.iter().flat_map(|c| c.workloads.iter());
        workloads.filter(|w| w.tasks == Tasks::One).count()
    };
    let all = one_task(&first);
    assert!(all >= 8 && compared.contains(&format!("{all} of {all} single-task minima identical")), "{compared}");
    assert!(compared.contains("Nothing got dearer"), "{compared}");
    let raw = |out: &Path| {
        let results = results(out);
        let samples = results.configurations.iter().flat_map(|c| c.workloads.iter().map(|w| w.samples.clone()));
        samples.collect::<Vec<_>>()
    };
    assert_eq!(raw(&first), raw(&second), "on this clock even the samples are the same");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn measures_a_list_of_modules_of_the_users_own() {
    let scratch = Scratch::new();
    let own = "[[configuration]]\nname = \"own\"\nlsm = \"capability,yama,tomoyo,bpf\"\n\
               [[configuration]]\nname = \"two-hooks\"\nbase = \"bpf-empty\"\nhooks = [\"file_open\", \"inode_permission\"]";
    let text = study(&["none", "own", "two-hooks"], &["null", "open+close"], &format!("samples = 20\n{own}"));
    run_study(&scratch, &text, "out", 1, &[]).with(0);
    let results = results(&scratch.path("out"));
    assert_all_measured(&results);
    assert_eq!(configuration(&results, "own").lsm, "lockdown,capability,yama,tomoyo,bpf");
    for name in ["own", "two-hooks"] {
        assert!(workload(configuration(&results, name), "open+close").difference.as_ref().unwrap().percent > 1.0);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn does_with_empty_programs_on_every_hook_what_it_did_without() {
    let scratch = Scratch::new();
    let text = study(&["none", "bpf-empty"], &["@all", "@files:ext4", "@communication:veth"], "samples = 3");
    run_study(&scratch, &text, "out", 2, &[]).with(0);
    let results = results(&scratch.path("out"));
    assert_all_measured(&results);
    let count = |name: &str| configuration(&results, name).workloads.len();
    assert!(count("none") > 80, "{}", count("none"));
    assert_eq!(count("none"), count("bpf-empty"));
    controls_are_equal(&results);
}

#[test]
fn measures_wall_time_under_kvm_or_on_the_host_and_says_which() {
    let scratch = Scratch::new();
    let text = study(&["none", "capability"], &["null", "stat"], "clock = \"wall\"\nrounds = 10\nsamples = 3");
    let file = scratch.file("study.toml", &text);
    let out = scratch.path("out");
    let _place = take(1);
    let ended = scratch.run(&["study", "run", word(&file), "--out", word(&out)]).with(0);
    let results = results(&out);
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    if results.accelerator == "kvm" {
        assert_eq!(results.kernels(), ["6.1"]);
    } else {
        assert_eq!(results.kernels(), ["host"]);
        assert!(words.contains("no guest was measured under KVM"), "{words}");
    }
    assert_all_measured(&results);
}
