//! `tollgate hooks graph`: Debian's kernels read from their images, compared with what a running kernel shows and with what
//! the function tracer saw in one. `make verify CLAIM=hooks_graph`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;
use tollgate_callgraph::{Image, Symbols};
use tollgate_host::Cache;
use tollgate_vm::kernels;

use crate::program::{Scratch, machine::Machine, report, report_time, word};

/// The series whose images are read.
const KERNELS: &[&str] = if cfg!(feature = "long") { &["5.10", "6.1", "6.12", "6.18", "7.2"] } else { &["6.1"] };

/// What the tracer saw, by system call.
fn traced() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut traced: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in include_str!("hooks_graph/traced.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        traced.entry(words.next().unwrap()).or_default().extend(words);
    }
    traced
}

/// Hooks that the tracer saw and the graph does not reach, each with the reason.
const EXPLAINED: [(&str, &str, &str); 1] =
    [("execve", "cred_getsecid", "only ima_bprm_check asks it: the stop list ends at IMA, which is no hook")];

#[test]
fn every_hook_that_was_traced_is_within_reach_or_listed_with_its_reason() {
    let scratch = Scratch::new();
    let json = scratch.run(&["hooks", "graph", "6.1", "--json"]).with(0).json();
    let reached: BTreeMap<&str, BTreeMap<&str, bool>> = json["syscalls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reach| {
            let hooks = reach["hooks"].as_array().unwrap().iter();
            let hooks = hooks.map(|hook| (hook["hook"].as_str().unwrap(), hook["direct"].as_bool().unwrap()));
            (reach["syscall"].as_str().unwrap(), hooks.collect())
        })
        .collect();
    let (mut direct, mut pointers, mut missed) = (0, 0, Vec::new());
    for (syscall, hook) in traced().iter().flat_map(|(call, hooks)| hooks.iter().map(move |hook| (*call, *hook))) {
        match reached[syscall].get(hook) {
            Some(true) => direct += 1,
            Some(false) => pointers += 1,
            None => missed.push((syscall, hook)),
        }
    }
    let pairs = direct + pointers + missed.len();
    let figure = format!("{direct} by direct calls, {pointers} through pointers, {} listed, of {pairs}", missed.len());
    let explained: Vec<_> = EXPLAINED.iter().map(|(call, hook, _)| (*call, *hook)).collect();
    let met = missed == explained;
    report("hooks that the tracer saw, within the graph's reach (6.1)", &figure, "all but those listed", met);
    assert_eq!(missed, explained, "listed are {EXPLAINED:?}");
    assert!(reached["getppid"].is_empty(), "what no call passes is not in its reach: {:?}", reached["getppid"]);
}

#[test]
fn reports_how_long_a_kernel_of_debian_takes() {
    let scratch = Scratch::new();
    for series in KERNELS {
        let ended = scratch.run(&["hooks", "graph", series]).with(0);
        let head = ended.stdout.lines().next().unwrap().to_string();
        assert!(head.contains(series), "{head}");
        report_time(&head, &format!("{:.1} s", ended.took.as_secs_f64()), "10 s");
    }
}

/// The symbols that the kernel shows, booted at the addresses of its image.
fn told(scratch: &Scratch, series: &str) -> BTreeSet<(u64, String)> {
    let machine = Machine::new(scratch, series, "bpf", 300).option(&["--append", "nokaslr"]);
    let ended = machine.run(&["cat", "/proc/kallsyms"]).with(0);
    // Symbols of modules and BPF programs end with a name in brackets.
    let lines = ended.stdout.lines().filter(|line| !line.ends_with(']'));
    let symbols = lines.map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        (u64::from_str_radix(words[0], 16).unwrap(), format!("{} {}", words[1], words[2]))
    });
    symbols.collect()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn kallsyms_in_an_image_are_those_that_the_kernel_tells_when_it_runs() {
    let scratch = Scratch::new();
    for series in KERNELS {
        let kernel = kernels::find(&Cache::of_user().unwrap(), series).unwrap();
        let image = Image::parse(fs::read(&kernel.image).unwrap()).unwrap();
        let symbols = Symbols::of(&image, None).unwrap();
        let read: BTreeSet<_> = symbols
            .all()
            .iter()
            .map(|symbol| (symbol.address, format!("{} {}", char::from(symbol.kind), symbol.name)))
            .collect();
        let told = told(&scratch, series);
        let (only_read, only_told) = (read.difference(&told).count(), told.difference(&read).count());
        let figure = format!("{} symbols, {only_read} only in the image, {only_told} only told", read.len());
        report(&format!("kallsyms of {}", kernel.release), &figure, "the same", read == told);
        let examples =
            || (read.difference(&told).take(3).collect::<Vec<_>>(), told.difference(&read).take(3).collect());
        assert!(read == told, "{series}: {:?}", examples() as (_, Vec<_>));
    }
}

#[test]
fn hooks_of_each_kernel_are_those_that_bpf_programs_can_attach_to() {
    let scratch = Scratch::new();
    for series in KERNELS {
        let json = scratch.run(&["hooks", "graph", series, "--json"]).with(0).json();
        let hooks: BTreeSet<String> =
            json["hooks"].as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap().to_string()).collect();
        let kernel = kernels::find(&Cache::of_user().unwrap(), series).unwrap();
        let image = Image::parse(fs::read(&kernel.image).unwrap()).unwrap();
        let symbols = Symbols::of(&image, None).unwrap();
        // kernel/bpf/bpf_lsm.c has a function for each line of lsm_hook_defs.h.
        let attachable =
            symbols.functions().iter().flat_map(|function| std::iter::once(&function.name).chain(&function.aliases));
        let attachable: BTreeSet<String> =
            attachable.filter_map(|name| name.strip_prefix("bpf_lsm_")).map(str::to_string).collect();
        let missing: Vec<_> = hooks.difference(&attachable).collect();
        let figure = format!("{} hooks, {} without a function of BPF LSM: {missing:?}", hooks.len(), missing.len());
        report(&format!("hooks of {}", kernel.release), &figure, "none without", missing.is_empty());
        assert!(missing.is_empty(), "{series}: {missing:?}");
        // Programs attach by our own list of hooks; a hook that is in it and in this kernel must be in the graph.
        for hook in tollgate_abi::HOOKS.iter().map(|hook| hook.name).filter(|hook| attachable.contains(*hook)) {
            assert!(hooks.contains(hook), "{series}: {hook} of lsm_hooks.h is not among the graph's hooks");
        }
    }
}

#[test]
fn one_system_call_is_told_with_its_ways_and_drawn() {
    let scratch = Scratch::new();
    let picture = scratch.path("mkdir.svg");
    let text = scratch.run(&["hooks", "graph", "6.1", "--syscall", "mkdir", "--svg", word(&picture)]).with(0).stdout;
    assert!(text.contains("\ninode_mkdir, 3 deep, by direct calls\n"), "{text}");
    assert!(text.contains("(through inode_operations.mkdir)"), "{text}");
    let picture = fs::read_to_string(picture).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains("Hooks within reach of mkdir on 6.1"), "{picture}");
    let direct = scratch.run(&["hooks", "graph", "6.1", "--syscall", "mkdir", "--direct", "--json"]).with(0).json();
    let hooks = direct["hooks"].as_array().unwrap();
    assert!(!hooks.is_empty() && hooks.iter().all(|hook| hook["direct"] == Value::Bool(true)), "{direct}");
}

#[cfg(feature = "long")]
#[test]
fn two_kernels_are_told_apart_by_hooks_that_have_come_and_gone() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("source/security/one")).unwrap();
    scratch.file("source/security/one/hooks.c", "int one;\nint two;\n");
    scratch.file("source/security/Kconfig", "config ONE\n");
    let source = scratch.path("source");
    let arguments = ["hooks", "graph", "6.1", "--against", "6.12", "--source", word(&source), "--json"];
    let json = scratch.run(&arguments).with(1).json();
    let names =
        |key: &str| json[key].as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_string()).collect::<Vec<_>>();
    // Hooks that came with 6.9.
    for hook in ["bpf_token_create", "file_post_open", "inode_post_create_tmpfile"] {
        assert!(names("come").iter().any(|name| name == hook), "{hook}: {json}");
    }
    assert_eq!((&json["kernels"][0]["lines"], &json["kernels"][1]["lines"]), (&Value::from(2), &Value::Null));
    scratch.run(&["hooks", "graph", "6.1", "--against", "6.1"]).with(0);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    let scratch = Scratch::new();
    let kernel = kernels::find(&Cache::of_user().unwrap(), "6.1").unwrap();
    let whole = fs::read(&kernel.image).unwrap();
    let written = |name: &str, bytes: &[u8]| {
        let path = scratch.path(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let graph = |path: &std::path::Path, more: &[&str]| scratch.run(&[&["hooks", "graph", word(path)], more].concat());
    graph(&written("text", b"no kernel at all"), &[]).refused(&["no kernel image", "vmlinux"]);
    graph(&written("empty", b""), &[]).refused(&["no kernel image", "empty"]);
    graph(&written("cut", &whole[..whole.len() / 2]), &[]).refused(&["truncated or damaged"]);
    graph(&scratch.path("absent"), &[]).refused(&["cannot open the kernel", "absent"]);
    let mut other = whole.clone();
    let payload = other.windows(4).position(|window| window == b"\x02\x21\x4c\x18").unwrap();
    other[payload..payload + 4].copy_from_slice(b"BZh9");
    graph(&written("bzip2", &other), &[]).refused(&["bzip2", "extract-vmlinux"]);
    let stub = scratch.file("System.map", "ffffffffffffffff B The real System.map is in the dbg package\n");
    graph(&kernel.image, &["--symbols", word(&stub)]).refused(&["no symbols of this kernel"]);
    graph(&kernel.image, &["--syscall", "opemat"]).refused(&["no system call \"opemat\""]);
    let list = scratch.file("stop", "kfree\n");
    graph(&kernel.image, &["--stop", word(&list)]).refused(&["line 1 of the stop list", "no reason"]);
}
