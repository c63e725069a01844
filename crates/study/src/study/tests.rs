use super::{Figure, Study};
use tollgate_bench::counter::Counter;

const WHOLE: &str = r#"
name = "example"
title = "An example"
kernels = ["6.1"]
configurations = ["none", "tomoyo", "three-hooks"]
workloads = ["null", "stat"]
depths = [1, 3]

[[configuration]]
name = "three-hooks"
base = "bpf-empty"
hooks = ["file_open", "inode_permission", "file_permission"]

[[published]]
source = "a paper"
kernel = "6.1"
baseline = { stat = 3916 }
[published.percent]
"stat" = { tomoyo = 3.4, three-hooks = 22.6 }
"#;

/// The error of the whole example with a line changed.
fn error(from: &str, to: &str) -> String {
    assert!(WHOLE.contains(from), "{from:?} is not in the example");
    Study::parse("s.toml", &WHOLE.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn reads_a_whole_study_with_its_defaults() {
    let study = Study::parse("s.toml", WHOLE).unwrap();
    assert_eq!((study.clock, study.baseline.as_str(), study.boots()), (Counter::Instructions, "none", 1));
    assert_eq!(study.workloads, ["null", "stat:d1", "stat"]);
    assert_eq!(study.own("three-hooks").unwrap().hooks.len(), 3);
    let published = &study.published[0];
    assert_eq!(published.percent("6.1", "stat", "tomoyo"), Some(3.4));
    assert_eq!(published.percent("6.12", "stat", "tomoyo"), None);
    assert_eq!(published.baseline("6.1", "stat"), Some(3916.0));
    assert_eq!(study.header().text, WHOLE);
}

#[test]
fn rejects_an_unknown_key_with_its_place_and_what_is_allowed() {
    let message = error("depths =", "depht =");
    assert!(message.starts_with("s.toml:7:1: unknown field `depht`, expected one of `name`, `title`"), "{message}");
    let message = error("hooks =", "hook =");
    assert!(message.starts_with("s.toml:12:1: unknown field `hook`"), "{message}");
    assert!(message.contains("`command-line`"), "{message}");
}

#[test]
fn rejects_broken_toml_and_missing_keys_with_their_place() {
    assert!(error("[\"6.1\"]", "[\"6.1\"").starts_with("s.toml:"), "{}", error("[\"6.1\"]", "[\"6.1\""));
    assert!(error("title = \"An example\"", "").contains("missing field `title`"));
    assert!(error("kernels = [\"6.1\"]", "kernels = \"6.1\"").starts_with("s.toml:4:11: invalid type: string"));
}

#[test]
fn rejects_an_unknown_clock_and_says_which_there_are() {
    let message = error("kernels =", "clock = \"cycles\"\nkernels =");
    assert_eq!(message, "s.toml:4:9: unknown variant `cycles`, expected `instructions` or `wall`");
}

#[test]
fn rejects_an_unknown_workload_with_its_place_and_the_nearest() {
    let message = error("\"stat\"]", "\"sta\"]");
    assert!(message.starts_with("s.toml:6:22: unknown workload \"sta\"; did you mean \"stat\"?"), "{message}");
}

#[test]
fn rejects_a_suffix_that_does_not_apply() {
    let message = error("\"null\"", "\"null:ext4\"");
    assert!(message.starts_with("s.toml:6:14: workload \"null:ext4\": this workload takes no suffix"), "{message}");
}

#[test]
fn rejects_an_unknown_configuration_and_lists_what_is_allowed() {
    let message = error("\"tomoyo\"", "\"smack\"");
    assert!(
        message.starts_with("s.toml:5:27: unknown configuration \"smack\"; allowed are none, capability"),
        "{message}"
    );
}

#[test]
fn rejects_a_configuration_of_ones_own_that_cannot_be_meant() {
    assert!(error("name = \"three-hooks\"", "name = \"yama\"").contains("is a configuration already"));
    assert!(error(", \"three-hooks\"]", "]").contains("\"three-hooks\" is defined but not measured"));
    assert!(error("base = \"bpf-empty\"", "base = \"yama\"").contains("needs `base = \"bpf-empty\"`"));
    assert!(error("base = \"bpf-empty\"", "").contains("neither `lsm` nor `base`"));
    assert!(error("base = \"bpf-empty\"", "base = \"bpf\"\nlsm = \"a, b\"").contains("with commas and no spaces"));
    assert!(error("base = \"bpf-empty\"", "base = \"bfp\"").contains("unknown base \"bfp\"; allowed are none"));
    let message = error("\"file_open\"", "\"file_opens\"");
    assert!(message.starts_with("s.toml:12:10: \"file_opens\" is no hook"), "{message}");
}

#[test]
fn rejects_a_baseline_that_is_not_measured() {
    assert!(error("\"none\", ", "").starts_with("s.toml:5:18: the baseline \"none\" is not measured"));
    assert!(error("depths", "baseline = \"yama\"\ndepths").starts_with("s.toml:7:12: the baseline \"yama\""));
}

#[test]
fn rejects_kernels_that_are_none() {
    assert!(error("\"6.1\"]", "\"latest\"]").contains("\"latest\" names no kernel; allowed are a series"));
    assert!(error("\"6.1\"]", "\"host\"]").contains("the host has no instruction clock"));
    assert!(error("[\"6.1\"]", "[]").contains("`kernels` is empty"));
    assert!(error("[\"6.1\"]", "[\"6.1\", \"6.1\"]").contains("stands twice"));
}

#[test]
fn rejects_numbers_out_of_range() {
    assert!(error("[1, 3]", "[1, 11]").contains("a depth must be a number from 1 to 10"));
    assert!(error("depths", "samples = 0\ndepths").contains("samples must be a number from 1"));
    assert!(error("depths", "threshold = -1.0\ndepths").contains("`threshold` must be a percentage of 0 or more"));
    assert!(error("depths", "filesystems = [\"xfs\"]\ndepths").contains("allowed are tmpfs, ext4 and rootfs"));
    assert!(error("depths", "networks = [\"wlan\"]\ndepths").contains("allowed are loopback and veth"));
}

#[test]
fn takes_the_figure_that_is_asked_for_and_else_the_minimum() {
    assert_eq!(Study::parse("s.toml", WHOLE).unwrap().figure, Figure::Minimum);
    let means = Study::parse("s.toml", &WHOLE.replace("depths", "figure = \"mean\"\ndepths")).unwrap();
    assert_eq!((means.figure, means.header().figure), (Figure::Mean, Figure::Mean));
    let message = error("depths", "figure = \"average\"\ndepths");
    assert_eq!(message, "s.toml:7:10: unknown variant `average`, expected `minimum` or `mean`");
}

#[test]
fn rejects_what_belongs_to_the_other_clock() {
    assert!(
        error("depths", "clock = \"wall\"\nfigure = \"mean\"\ndepths").contains("`figure` is of the instruction clock")
    );
    assert!(error("depths", "rounds = 20\ndepths").contains("`rounds` is of the wall clock"));
    assert!(
        error("depths", "clock = \"wall\"\npaddings = 2\ndepths").contains("`paddings` is of the instruction clock")
    );
    let message = error("depths", "clock = \"wall\"\nrounds = 9\ndepths");
    assert!(message.ends_with("`rounds` must be a number from 10 to 10000"), "{message}");
}

#[test]
fn rejects_published_figures_of_what_is_not_measured() {
    assert!(error("\"stat\" = {", "\"lstat\" = {").contains("\"lstat\" is not among this study's `workloads`"));
    assert!(error("tomoyo = 3.4", "yama = 3.4").contains("\"yama\" is not among this study's `configurations`"));
    assert!(error("kernel = \"6.1\"", "kernel = \"6.9\"").contains("\"6.9\" is not among this study's `kernels`"));
}

#[test]
fn leaves_out_kernels_and_refuses_those_that_it_has_not() {
    let study = Study::parse("s.toml", &WHOLE.replacen("[\"6.1\"]", "[\"5.10\", \"6.1\", \"7.2\"]", 1)).unwrap();
    let on = |kernels: &[&str]| study.on(&kernels.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(on(&["7.2", "5.10"]).unwrap().kernels, ["5.10", "7.2"]);
    assert_eq!(on(&["6.9"]).unwrap_err(), "\"6.9\" is none of the study's kernels, which are 5.10, 6.1, 7.2");
}

#[test]
fn takes_overlapping_families_once() {
    let study = Study::parse("s.toml", &WHOLE.replace("[\"null\", \"stat\"]", "[\"@controls\", \"@all\"]")).unwrap();
    let mut names = study.workloads.clone();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), study.workloads.len());
    assert!(names.contains(&"stat:d1".to_owned()));
}

#[test]
fn reports_a_file_that_cannot_be_read() {
    let message = Study::read(std::path::Path::new("/nonexistent/s.toml")).unwrap_err().to_string();
    assert!(message.starts_with("study file /nonexistent/s.toml: "), "{message}");
}

/// The studies that come with the program.
#[test]
fn reads_every_study_that_comes_with_the_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    for name in ["quick", "modules", "reference"] {
        let study = Study::read(&folder.join(format!("{name}.toml"))).unwrap();
        assert_eq!(study.name, name);
    }
}

#[test]
fn lays_out_an_experiment_on_the_hooks_that_it_names() {
    let table =
        "[latency]\nhooks = [\"file_open\", \"inode_permission\"]\nunits = 50\ncentre-points = 2\n[[published]]";
    let text =
        WHOLE.replace("\"tomoyo\", \"three", "\"bpf-latency\", \"tomoyo\", \"three").replace("[[published]]", table);
    let study = Study::parse("s.toml", &text).unwrap();
    assert_eq!(study.hooks("bpf-latency"), ["file_open", "inode_permission"]);
    let delays = study.delays("bpf-latency");
    // Order 4, folded, and the centre twice.
    assert_eq!(delays.len(), 10);
    assert_eq!(delays.iter().filter(|run| run.values().all(|delay| delay.units == 25) && run.len() == 2).count(), 2);
    assert!(study.delays("tomoyo").is_empty() && study.delays("three-hooks").is_empty());
    let reached =
        Study::parse("s.toml", &text.replace("hooks = [\"file_open\", \"inode_permission\"]\nunits", "units"));
    let reached = reached.unwrap();
    assert!(reached.hooks("bpf-latency").is_empty());
    assert!(reached.delays("bpf-latency").len() > 200);
}

/// The kernel's own module needs no programs beside it.
#[test]
fn lays_out_an_experiment_for_the_module_in_the_kernel_alone() {
    let table = "[latency]\nhooks = [\"file_open\", \"inode_permission\"]\n[[published]]";
    let text = WHOLE.replace("\"tomoyo\", \"three", "\"latency\", \"tomoyo\", \"three").replace("[[published]]", table);
    let study = Study::parse("s.toml", &text).unwrap();
    assert_eq!(study.delays("latency").len(), 11);
    assert!(study.delays("tomoyo").is_empty());
}

#[test]
fn knows_from_a_studys_text_which_of_its_own_configurations_take_delays() {
    let slow = "\n[[configuration]]\nname = \"slow\"\nbase = \"bpf-latency\"\n";
    let text = format!("{}{slow}", WHOLE.replace("\"tomoyo\", \"three", "\"slow\", \"tomoyo\", \"three"));
    let mut header = Study::parse("s.toml", &text).unwrap().header();
    let names = ["slow", "latency", "three-hooks", "tomoyo"];
    assert_eq!(names.map(|name| header.takes_delays(name)), [true, true, false, false]);
    header.text.clear();
    assert_eq!(names.map(|name| header.takes_delays(name)), [false, true, false, false]);
}

#[test]
fn rejects_an_experiment_that_cannot_be_made() {
    let latency = |table: &str| error("[[published]]", &format!("[latency]\n{table}\n[[published]]"));
    assert!(latency("").contains("add one of them to `configurations`"), "{}", latency(""));
    let with = |table: &str| {
        let text = WHOLE.replace("\"tomoyo\", \"three", "\"bpf-latency\", \"tomoyo\", \"three");
        let text = text.replace("[[published]]", &format!("[latency]\n{table}\n[[published]]"));
        Study::parse("s.toml", &text).unwrap_err().to_string()
    };
    assert!(with("hooks = [\"file_opening\"]").contains("\"file_opening\" is no hook"));
    assert!(with("hooks = [\"file_open\", \"file_open\"]").contains("stands twice"));
    assert!(with("units = 1").contains("`units` must be a number from 2 to 100000"));
    assert!(with("center-points = 1").contains("unknown field `center-points`"));
}

#[test]
fn takes_in_a_kernel_that_need_not_be_built_where_it_is() {
    let text = WHOLE.replacen("configurations =", "kernels-if-built = [\"6.1-built\"]\nconfigurations =", 1);
    let study = Study::parse("s.toml", &text).unwrap();
    assert_eq!(study.kernels, ["6.1"]);
    let without = study.clone().with_built(|_| false);
    assert_eq!((without.kernels, without.kernels_if_built), (vec!["6.1".to_owned()], vec!["6.1-built".to_owned()]));
    let with = study.clone().with_built(|name| name == "6.1-built");
    assert_eq!(with.kernels, ["6.1", "6.1-built"]);
    assert!(with.kernels_if_built.is_empty());
    // A kernel that is named must be measured, whether it is built or not.
    assert_eq!(study.on(&["6.1-built".to_owned()]).unwrap().kernels, ["6.1-built"]);
    assert!(study.on(&["6.2".to_owned()]).unwrap_err().ends_with("which are 6.1, 6.1-built"));
}

#[test]
fn rejects_a_kernel_that_nothing_here_builds_or_that_is_measured_anyway() {
    let with = |list: &str| error("configurations =", &format!("kernels-if-built = [{list}]\nconfigurations ="));
    let message = with("\"6.12\"");
    assert!(
        message.starts_with("s.toml:5:21: \"6.12\" is no kernel that is built here; allowed are \"6.1-built\""),
        "{message}"
    );
    let message = with("\"6.1-built\", \"6.1-built\"");
    assert!(message.starts_with("s.toml:5:34: \"6.1-built\" stands twice among the kernels"), "{message}");
}

const COMMANDS: &str = r#"
name = "mine"
title = "My program"
kernels = ["6.1"]
configurations = ["none"]
workloads = ["null", "sort"]
filesystems = ["tmpfs", "ext4"]

[[command]]
name = "sort"
about = "sorts a list"
packages = ["libstdc++6"]
files = { "/usr/local/bin/mysort" = "target/mysort" }
set-up = "seq 9 >list"
run = "mysort list"
"#;

#[test]
fn measures_a_command_of_its_own_on_each_file_system() {
    let study = Study::parse("s.toml", COMMANDS).unwrap();
    assert_eq!(study.workloads, ["null", "sort", "sort:ext4"]);
    let command = &study.commands[0];
    assert_eq!((command.line.set_up.as_str(), command.line.before.as_str()), ("seq 9 >list", ""));
    let recipe = study.recipe("labels".into());
    assert_eq!(recipe.packages, ["libstdc++6", "policycoreutils"]);
    assert_eq!(command.files["/usr/local/bin/mysort"], std::path::Path::new("target/mysort"));
}

#[test]
fn refuses_commands_that_cannot_be_measured() {
    for (from, to, said) in [
        ("\"null\", \"sort\"", "\"null\"", "\"sort\" is defined but not measured"),
        ("name = \"sort\"", "name = \"stat\"", "\"stat\" is a workload already"),
        ("name = \"sort\"", "name = \"a b\"", "lower case letters"),
        ("libstdc++6", "-o=x", "is not the name of a Debian package"),
        ("\"/usr/local", "\"usr/local", "begins with `/`"),
        ("kernels = [", "clock = \"wall\"\nkernels = [", "on the instruction clock"),
        ("\"sort\"]", "\"sort:d4\"]", "it takes tmpfs, ext4 or rootfs"),
        ("\"sort\"]", "\"sort\", \"srot\"]", "unknown workload \"srot\""),
    ] {
        assert!(COMMANDS.contains(from), "{from}");
        let error = Study::parse("s.toml", &COMMANDS.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
