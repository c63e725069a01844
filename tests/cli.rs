//! The command line: every wrong input, and everything that needs neither root nor QEMU nor a network.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use crate::program::{Ended, Scratch, configuration, entries, results, word, workload};

/// The smallest study of the host: the baseline, and the same machine again. It needs no root: nothing is mounted.
const HOST: &str = r#"
name = "pair"
title = "The host beside itself"
clock = "wall"
kernels = ["host"]
configurations = ["none", "capability"]
workloads = ["null", "loop", "read-1:rootfs"]
samples = 5
rounds = 10
"#;

/// Much less than the timeouts of a network, and much more than a command that fails at once needs on a busy machine.
const QUICK_TIMEOUT: Duration = Duration::from_secs(60);

fn run_study(scratch: &Scratch, text: &str, more: &[&str]) -> Ended {
    let file = scratch.file("study.toml", text);
    let out = scratch.path("out");
    let mut arguments = vec!["study", "run", word(&file), "--out", word(&out)];
    arguments.extend(more);
    scratch.run(&arguments)
}

/// Runs the host's study into `out`.
fn measured(scratch: &Scratch) -> (Ended, PathBuf) {
    (run_study(scratch, HOST, &[]).with(0), scratch.path("out"))
}

/// A results folder that is a copy of `from`, with its results changed.
fn altered(scratch: &Scratch, from: &Path, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let text = fs::read(from.join("results.json")).unwrap();
    let mut value: Value = serde_json::from_slice(&text).unwrap();
    change(&mut value);
    let folder = scratch.path(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("results.json"), value.to_string()).unwrap();
    folder
}

/// Doubles a workload's figures; counts stay.
fn double(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            let figures = entries.iter_mut().filter(|(key, value)| match key.as_str() {
                "boot" | "at_min" | "spread" => false,
                "samples" => value.is_array(),
                _ => true,
            });
            figures.for_each(|(_, value)| double(value));
        }
        Value::Array(values) => values.iter_mut().for_each(double),
        Value::Number(number) => *value = Value::from(2.0 * number.as_f64().unwrap()),
        _ => {}
    }
}

#[test]
fn rejects_an_unknown_study_and_names_those_there_are() {
    let scratch = Scratch::new();
    scratch.run(&["study", "run", "qiuck", "--out", "out"]).refused(&["\"qiuck\"", "quick, modules, reference"]);
    assert!(!scratch.path("out").exists(), "nothing is made for a study that is not there");
}

#[test]
fn rejects_a_study_file_that_is_not_there() {
    Scratch::new().run(&["study", "run", "no/such.toml", "--out", "out"]).refused(&["no/such.toml", "No such file"]);
}

#[test]
fn rejects_a_wrong_key_by_line_and_column_and_says_what_is_allowed() {
    let scratch = Scratch::new();
    run_study(&scratch, &format!("{HOST}repeats = 3\n"), &[]).refused(&[
        "study.toml:10:1:",
        "`repeats`",
        "workloads",
        "threshold",
    ]);
    assert!(!scratch.path("out").exists());
}

#[test]
fn rejects_a_wrong_value_by_line_and_column_and_says_what_is_allowed() {
    let wrong = [
        ("\"wall\"", "\"cycles\"", ":4:9:", "`instructions`"),
        ("[\"host\"]", "[\"6.x\"]", ":5:12:", "\"6.1\""),
        ("rounds = 10", "rounds = 2", ":9:10:", "from 10"),
        ("rounds = 10", "paddings = 2", ":9:12:", "instruction clock"),
        ("samples = 5", "samples = 0", ":8:11:", "from 1"),
        ("\"wall\"", "\"instructions\"", ":5:12:", "`clock = \"wall\"`"),
        ("name = \"pair\"", "name = \"A pair\"", ":2:8:", "lower case letters"),
        ("title", "tilte", ":3:1:", "`title`"),
        ("\"none\", ", "", ":6:18:", "baseline"),
    ];
    for (right, with, at, allowed) in wrong {
        run_study(&Scratch::new(), &HOST.replace(right, with), &[]).refused(&[&format!("study.toml{at}"), allowed]);
    }
}

#[test]
fn rejects_an_unknown_workload_and_names_the_nearest() {
    let scratch = Scratch::new();
    scratch.run(&["bench", "run", "opne+close"]).refused(&["\"opne+close\"", "did you mean \"open+close\""]);
    run_study(&scratch, &HOST.replace("read-1", "read-l"), &[]).refused(&[
        "study.toml:7:30:",
        "\"read-l\"",
        "\"read-1\"",
    ]);
}

#[test]
fn rejects_a_variant_that_a_workload_does_not_have() {
    let scratch = Scratch::new();
    scratch.run(&["bench", "run", "stat:d11"]).refused(&["stat:d11", "d1 to d10"]);
    scratch.run(&["bench", "run", "null:ext4"]).refused(&["null:ext4", "takes no suffix"]);
    scratch.run(&["bench", "run", "stat:btrfs"]).refused(&["btrfs", "tmpfs, ext4, rootfs"]);
    scratch.run(&["bench", "run", "@everything"]).refused(&["@everything"]);
}

#[test]
fn rejects_an_unknown_configuration_and_names_those_there_are() {
    let study = HOST.replace("\"capability\"", "\"selinux\"");
    run_study(&Scratch::new(), &study, &[]).refused(&[
        "study.toml:6:27:",
        "\"selinux\"",
        "selinux-enforcing, apparmor",
    ]);
}

#[test]
fn refuses_a_folder_that_holds_another_runs_output() {
    let scratch = Scratch::new();
    let (_, out) = measured(&scratch);
    let before = fs::read(out.join("results.json")).unwrap();
    run_study(&scratch, HOST, &[]).refused(&["out", "--resume", "--out"]);
    assert_eq!(fs::read(out.join("results.json")).unwrap(), before, "what was measured is left as it was");
}

#[test]
fn refuses_to_go_on_with_another_study() {
    let scratch = Scratch::new();
    measured(&scratch);
    run_study(&scratch, &HOST.replace("samples = 5", "samples = 6"), &["--resume"]).refused(&["differs", "--out"]);
}

#[test]
fn refuses_an_out_folder_that_cannot_be_made() {
    let scratch = Scratch::new();
    let file = scratch.file("in-the-way", "");
    let (study, out) = (scratch.file("study.toml", HOST), file.join("out"));
    scratch.run(&["study", "run", word(&study), "--out", word(&out)]).refused(&["in-the-way"]);
}

#[test]
fn refuses_results_that_it_cannot_read() {
    let scratch = Scratch::new();
    let report = |folder: &Path| scratch.run(&["study", "report", word(folder)]);
    report(&scratch.path("nowhere")).refused(&["nowhere", "no results.json", "--out"]);
    let folder = scratch.path("half");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("results.json");
    for (text, words) in [
        ("{\"schema\": 1,", ["results.json", "line 1 column"].as_slice()),
        ("{\"schema\": 1}", &["results.json", "clock"]),
        ("{\"schema\": 99, \"environment\": {\"tollgate\": \"9.8.7\"}}", &["schema 99", "9.8.7", "measure again"]),
    ] {
        fs::write(&file, text).unwrap();
        report(&folder).refused(words);
        scratch.run(&["study", "compare", word(&folder), word(&folder)]).refused(words);
    }
}

#[test]
fn names_the_package_of_a_missing_emulator() {
    let scratch = Scratch::new();
    let bare = scratch.path("bin");
    fs::create_dir(&bare).unwrap();
    let kernel = scratch.file("vmlinuz", "");
    let without = |arguments: &[&str]| {
        let mut command = scratch.tollgate(arguments);
        command.env("PATH", &bare);
        scratch.finish(command).refused(&["qemu-system-x86_64 not found", "apt-get install qemu-system-x86"]);
    };
    without(&["vm", "run", "--kernel", word(&kernel), "--", "/bin/true"]);
    without(&["vm", "run", "--kernel", word(&kernel), "--clock", "instructions", "--", "/bin/true"]);
    let study = HOST.replace("\"wall\"", "\"instructions\"").replace("\"host\"", &format!("{kernel:?}"));
    let study = scratch.file("study.toml", &study.replace("rounds = 10", ""));
    without(&["study", "run", word(&study), "--out", "out"]);
}

#[test]
fn refuses_wires_without_two_ends_or_by_the_instruction_clock() {
    let scratch = Scratch::new();
    scratch.run(&["vm", "run", "--wire", "one", "--", "true"]).refused(&["--wire <OWN:OTHER>", "two different paths"]);
    let words = ["vm", "run", "--wire", "one:two", "--clock", "instructions", "--", "true"];
    scratch.run(&words).refused(&["--wire needs --clock wall"]);
}

#[test]
fn refuses_to_count_instructions_under_kvm() {
    let scratch = Scratch::new();
    let kernel = scratch.file("vmlinuz", "");
    let arguments =
        ["vm", "run", "--kernel", word(&kernel), "--clock", "instructions", "--accelerator", "kvm", "--", "true"];
    scratch.run(&arguments).refused(&["KVM cannot count instructions", "--clock wall"]);
}

#[test]
fn rejects_a_kernel_image_that_is_not_there() {
    Scratch::new()
        .run(&["vm", "run", "--kernel", "./no-image", "--", "/bin/true"])
        .refused(&["./no-image", "No such file"]);
}

#[test]
fn says_at_once_that_there_is_no_network_and_nothing_in_the_cache() {
    let scratch = Scratch::new();
    let cold = |arguments: &[&str]| {
        let mut command = scratch.tollgate(arguments);
        // Port 9 discards: no server listens there.
        for variable in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
            command.env(variable, "http://127.0.0.1:9");
        }
        command.env("XDG_CACHE_HOME", scratch.path("cache")).env_remove("no_proxy");
        let ended = scratch.finish(command).refused(&["no network", "not in the cache", word(&scratch.path("cache"))]);
        assert!(ended.took < QUICK_TIMEOUT, "{:?}", ended.took);
    };
    cold(&["vm", "run", "--kernel", "6.1", "--", "/bin/true"]);
    cold(&["vm", "kernels"]);
    assert!(entries(&scratch.path("cache/tollgate/kernels")).is_empty(), "nothing half fetched is left");
}

#[test]
fn rejects_wrong_usage_with_status_2_and_helps_with_status_0() {
    let scratch = Scratch::new();
    for wrong in [
        ["study", "compare", "only-one"].as_slice(),
        &["study", "compare", "a", "b", "--threshold", "-1"],
        &["study", "run", "quick"],
        &["study", "run", "quick", "--out", "o", "--guests", "0"],
        &["bench", "run"],
        &["bench", "run", "null", "--samples", "0"],
        &["vm", "run", "--memory", "1", "--", "true"],
        &["completions", "tcsh"],
        &["frobnicate"],
    ] {
        let ended = scratch.run(wrong).with(2);
        assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    }
    for words in [["--help"].as_slice(), &["study", "run", "--help"], &["vm", "run", "--help"], &["--version"]] {
        assert!(!scratch.run(words).with(0).stdout.is_empty());
    }
}

#[test]
fn refuses_a_level_of_messages_that_there_is_not_and_names_those_there_are() {
    let scratch = Scratch::new();
    let with = |level: &str| {
        let mut command = scratch.tollgate(&["study", "list"]);
        command.env("TOLLGATE_LOG", level);
        scratch.finish(command)
    };
    with("loud").refused(&["TOLLGATE_LOG is \"loud\"", "debug, info, warn, error or off"]);
    with("off").with(0);
}

#[test]
fn fails_where_standard_output_is_full_and_not_where_its_reader_has_gone() {
    let scratch = Scratch::new();
    let shell = |line: &str| scratch.finish(scratch.command("sh", &["-c", line, word(&scratch.program())]));
    shell("\"$0\" bench list > /dev/full").refused(&["No space left on device"]);
    shell("\"$0\" completions bash > /dev/full").refused(&["No space left on device"]);
    // The status is that of the program: not every `sh` has `pipefail`.
    for command in ["bench list --json", "completions bash", "study list"] {
        let line = format!("{{ \"$0\" {command}; echo $? >&2; }} | true");
        assert_eq!(shell(&line).stderr, "0\n", "{command}");
    }
}

#[test]
fn prints_completions_for_shells() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.run(&["completions", shell]).with(0).stdout;
        assert!(script.contains("tollgate") && script.contains("compare"), "{shell}");
    }
}

#[test]
fn lists_workloads_and_studies_as_tables_and_as_json() {
    let scratch = Scratch::new();
    let listed = scratch.run(&["bench", "list", "--json"]).with(0).json();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    for name in ["null", "loop", "open+close", "creat+unlink", "fork+exit", "exec", "pipe", "udp"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let table = scratch.run(&["bench", "list"]).with(0).stdout;
    assert!(names.iter().all(|name| table.lines().any(|line| line.split(' ').next() == Some(name))), "{table}");
    let studies = scratch.run(&["study", "list", "--json"]).with(0).json();
    let names: Vec<&str> = studies.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    let table = scratch.run(&["study", "list"]).with(0).stdout;
    assert!(names.contains(&"quick") && names.iter().all(|name| table.contains(name)), "{names:?}");
}

#[test]
fn measures_workloads_on_the_host() {
    let scratch = Scratch::new();
    let measured = scratch.run(&["bench", "run", "null", "loop", "--samples", "7", "--json"]).with(0).json();
    for (one, name) in measured.as_array().unwrap().iter().zip(["null", "loop"]) {
        assert_eq!((one["name"].as_str(), one["unit"].as_str()), (Some(name), Some("ns")));
        let samples: Vec<f64> = one["samples"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
        assert!(samples.len() == 7 && samples.iter().all(|s| *s > 0.0), "{samples:?}");
    }
    let table = scratch.run(&["bench", "run", "null", "--samples", "3"]).with(0).stdout;
    assert!(table.contains("ns an operation") && table.contains("/3"), "{table}");
}

#[test]
fn refuses_to_count_instructions_where_time_is_time() {
    Scratch::new().run(&["bench", "run", "null", "--counter", "instructions"]).with(2).says(&["instruction"]);
}

#[test]
fn says_that_kvm_was_not_tried_and_how_far_the_pair_is_apart() {
    let scratch = Scratch::new();
    let (ended, out) = measured(&scratch);
    assert!(ended.stdout.contains("KVM was not tried"), "{}", ended.stdout);
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("capability") && words.contains("seem"), "no false difference: {words}");
    for line in ended.stdout.lines() {
        assert!(line.chars().count() <= 100 && !line.contains('\x1b'), "{line:?}");
    }
    let results = results(&out);
    assert_eq!(results.study.boots, 10);
    for name in ["none", "capability"] {
        let figures = configuration(&results, name);
        assert_eq!(figures.workloads.len(), 3);
        assert_eq!(workload(figures, "loop").boots.len(), 10);
        assert_eq!(workload(figures, "loop").samples.len(), 50);
    }
    assert!(workload(configuration(&results, "capability"), "loop").difference.is_some());
}

#[test]
fn keeps_the_keys_that_programs_rely_on() {
    let scratch = Scratch::new();
    let (_, out) = measured(&scratch);
    let json = scratch.run(&["study", "report", word(&out), "--json"]).with(0).json();
    assert_eq!((json["schema"].as_u64(), json["clock"].as_str()), (Some(1), Some("wall")));
    assert!(json["accelerator"].is_string() && json["environment"]["host"].is_string());
    for configuration in json["configurations"].as_array().unwrap() {
        assert!(["name", "kernel", "lsm"].iter().all(|key| configuration[*key].is_string()), "{configuration}");
        assert_eq!(configuration["oracle"], "none");
        for workload in configuration["workloads"].as_array().unwrap() {
            assert!(workload["name"].is_string() && workload["unit"] == "ns", "{workload}");
            assert!(workload["min"].is_number() && workload["median"].is_number());
            assert_eq!(workload["samples"].as_array().unwrap().len(), 50);
        }
    }
    let raw = entries(&out.join("samples/host"));
    assert_eq!(raw.len(), 20, "a record a configuration and round: {raw:?}");
}

#[test]
fn exports_every_figure_as_csv_and_markdown() {
    let scratch = Scratch::new();
    let (table, out) = measured(&scratch);
    let report = |more: &[&str]| scratch.run(&[&["study", "report", word(&out)], more].concat()).with(0).stdout;
    assert_eq!(report(&[]), table.stdout, "the report is the table that the run ended with");
    let csv = report(&["--format", "csv"]);
    let columns = csv.lines().next().unwrap().split(',').count();
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.starts_with("host,") && line.split(',').count() >= columns), "{csv}");
    let markdown = report(&["--format", "markdown"]);
    assert_eq!(fs::read_to_string(out.join("table.md")).unwrap(), markdown, "the run has left the same table");
    assert!(markdown.contains("- Host: ") && markdown.contains(" Linux "), "{markdown}");
    for row in ["null", "loop", "read-1"] {
        assert!(markdown.lines().any(|line| line.starts_with("| ") && line.contains(row)), "{markdown}");
    }
}

#[test]
fn ends_with_1_when_something_got_dearer_and_with_0_when_nothing_did() {
    let scratch = Scratch::new();
    let (_, out) = measured(&scratch);
    let dear = altered(&scratch, &out, "dear", |results| double(&mut results["configurations"][1]["workloads"][1]));
    let compare = |before: &Path, after: &Path, more: &[&str]| {
        scratch.run(&[&["study", "compare", word(before), word(after)], more].concat())
    };
    assert!(compare(&out, &out, &[]).with(0).stdout.contains("Nothing got dearer"));
    let dearer = compare(&out, &dear, &[]).with(1).stdout;
    let line = dearer.lines().find(|line| line.contains("capability") && line.contains("loop")).unwrap();
    assert!(line.ends_with("dearer") && line.contains("+100"), "{dearer}");
    assert!(dearer.contains("1 of 6 got dearer"), "{dearer}");
    assert_eq!(compare(&out, &dear, &["--json"]).with(1).json()["pairs"].as_array().unwrap().len(), 6);
    compare(&out, &dear, &["--threshold", "150"]).with(0);
    compare(&dear, &out, &[]).with(0);
}

#[test]
fn refuses_to_compare_what_cannot_be_compared() {
    let scratch = Scratch::new();
    let (_, out) = measured(&scratch);
    let counted = altered(&scratch, &out, "counted", |results| results["clock"] = "instructions".into());
    let elsewhere = altered(&scratch, &out, "elsewhere", |results| {
        for configuration in results["configurations"].as_array_mut().unwrap() {
            configuration["kernel"] = "6.1".into();
        }
    });
    let compare = |after: &Path| scratch.run(&["study", "compare", word(&out), word(after)]);
    compare(&counted).refused(&["ns", "instructions", "same clock"]);
    compare(&elsewhere).refused(&["host", "6.1", "same study"]);
}

#[test]
fn keeps_what_was_measured_when_interrupted_and_goes_on_from_there() {
    let scratch = Scratch::new();
    let file = scratch.file("study.toml", &HOST.replace("samples = 5", "samples = 40"));
    let out = scratch.path("out");
    let arguments = ["study", "run", word(&file), "--out", word(&out)];
    let mut running = scratch.start(scratch.tollgate(&arguments));
    let records = || entries(&out.join("samples/host"));
    running.wait_until("a few rounds are over", |_| records().len() >= 3);
    running.interrupt();
    running.finish().with(130).says(&["interrupted", "--resume", word(&out)]);
    let kept: Vec<(PathBuf, Vec<u8>)> = records().into_iter().map(|p| (p.clone(), fs::read(p).unwrap())).collect();
    assert!((3..20).contains(&kept.len()), "{}", kept.len());
    let so_far: usize = results(&out).configurations.iter().map(|c| c.workloads[0].boots.len()).sum();
    assert_eq!(so_far, kept.len(), "the results hold every round that was over");
    scratch.run(&[&arguments[..], &["--resume"]].concat()).with(0);
    assert_eq!(records().len(), 20);
    for (path, before) in kept {
        assert_eq!(fs::read(&path).unwrap(), before, "{} was measured again", path.display());
    }
}
