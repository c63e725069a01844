//! Results of a study of three kernels: sweeps over depths, a module that failed, one whose policy did not deny.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tollgate_bench::counter::Counter;
use tollgate_study::{
    record::BootRecord,
    results::{Environment, Head, build},
    store::Store,
    study::{Figure, Published, StudyHeader},
};

const KERNELS: [&str; 3] = ["6.1", "6.12", "7.2"];

/// Modules, each with its overhead per operation, and per component of a path, in percent.
const MODULES: [(&str, f64, f64); 9] = [
    ("none", 0.0, 0.0),
    ("capability", 0.0, 0.0),
    ("bpf-empty", 11.0, 1.0),
    ("selinux-enforcing", 14.0, 2.0),
    ("apparmor-confined", 16.0, 0.1),
    ("tomoyo-learnt", 30.0, 4.0),
    ("landlock", 3.0, 9.0),
    ("lockdown", -0.4, 0.0),
    ("tollgate-debian-confined", 9.0, 1.6),
];

const OPERATIONS: [(&str, f64); 9] = [
    ("null", 337.0),
    ("fstat", 900.0),
    ("read-1", 1304.0),
    ("fork+exit", 160_993.0),
    ("exec", 142_311.0),
    ("pipe", 10_378.0),
    ("udp", 22_361.0),
    ("tcp:veth", 61_000.0),
    ("unix-stream", 9_100.0),
];

/// Operations that are measured at ten depths.
const SWEEPS: [(&str, f64); 4] =
    [("open+close", 6025.0), ("stat", 4315.0), ("mkdir:ext4", 48_000.0), ("rename", 21_000.0)];

/// Fills a folder.
pub(crate) fn write(folder: &Path) {
    let boots: Vec<BootRecord> = KERNELS
        .iter()
        .zip(0..)
        .flat_map(|(kernel, age)| MODULES.iter().map(move |module| boot(kernel, f64::from(age), module)))
        .map(|value| serde_json::from_value(value).unwrap())
        .collect();
    let results = build(head(), &boots);
    let store = Store::create(folder, "").unwrap();
    store.write_results(&results).unwrap();
    fs::write(folder.join("observations.json"), observations().to_string()).unwrap();
    fs::write(folder.join("counts.json"), counts().to_string()).unwrap();
    fs::write(folder.join("graph-6.1.json"), graph().to_string()).unwrap();
}

fn observations() -> Value {
    let run = |units: u64| json!({ "units": { "file_open": units }, "costs": { "open+close": 6000 + units.checked_sub(1).map_or(0, |u| 40 + 15 * u) } });
    json!([{ "schema": 1, "clock": "instructions", "kernel": "6.1", "configuration": "bpf-latency",
        "calibration": { "first": 40.0, "unit": 15.0 }, "workloads": ["open+close"],
        "runs": [run(0), run(40), run(80), run(100)] }])
}

fn counts() -> Value {
    let openat = json!({ "call": "openat", "count": 2.0, "hooks": { "file_open": 2.0, "inode_permission": 6.5 } });
    json!([{ "schema": 1, "kernel": "6.1", "workload": "open+close", "runs": 10, "lost": 0, "hooks": {},
        "calls": [openat], "deferred": { "file_free": 1.0 } }])
}

fn graph() -> Value {
    let hook = |name: &str, functions: &[&str]| {
        let path: Vec<Value> = functions.iter().map(|function| json!({ "function": function })).collect();
        json!({ "hook": name, "direct": true, "depth": path.len() - 1, "path": path })
    };
    let hooks = [
        hook("file_open", &["__x64_sys_openat", "do_filp_open", "vfs_open", "security_file_open"]),
        hook("inode_permission", &["__x64_sys_openat", "do_filp_open", "link_path_walk", "security_inode_permission"]),
    ];
    json!({ "kernel": "6.1", "hooks": [], "syscalls": [{ "syscall": "openat", "hooks": hooks }] })
}

fn boot(kernel: &str, age: f64, module: &(&str, f64, f64)) -> Value {
    let (name, fixed, each) = *module;
    let outcome = if (kernel, name) == ("7.2", "landlock") {
        json!({ "failed": "the guest panicked: <not syncing> & gone" })
    } else {
        json!({ "report": {
            "release": format!("{kernel}.0-cloud-amd64"), "lsm": format!("capability,{name}"), "confinement": "",
            "acts": [], "settled": null, "workloads": workloads(age, fixed, each), "delayed": [], "calibration": null,
        }})
    };
    let denials = if name == "tomoyo-learnt" { json!([{ "act": "heap-exec", "errno": 1 }]) } else { json!([]) };
    json!({
        "schema": 1, "tollgate": "0.1.0", "kernel": kernel, "configuration": name, "clock": "instructions", "boot": 0,
        "lsm": "", "command_line": "", "machine": [], "denials": denials, "seconds": 1.0, "outcome": outcome,
    })
}

fn workloads(age: f64, fixed: f64, each: f64) -> Vec<Value> {
    let dearer = |base: f64, percent: f64| (base * (1.0 + age / 50.0) * (1.0 + percent / 100.0)).round();
    let one = |name: String, figure: f64| json!({ "name": name, "unit": "instructions", "tasks": "one", "samples": [figure, figure + 3.0], "error": null });
    let flat = OPERATIONS.iter().zip(1..).map(|((name, base), nth)| {
        let share = if *name == "null" { 0.0 } else { 1.0 / f64::from(nth) };
        one((*name).to_owned(), dearer(*base, fixed * share))
    });
    let deep = SWEEPS.iter().flat_map(|(name, base)| {
        (1..=10).map(move |depth| {
            let name = if depth == 3 { (*name).to_owned() } else { format!("{name}:d{depth}") };
            one(name, dearer(base + 300.0 * f64::from(depth), fixed + each * f64::from(depth)))
        })
    });
    flat.chain(deep).collect()
}

fn head() -> Head {
    let percent = [("stat", [("selinux-enforcing", 28.3), ("tollgate-debian-confined", 20.0)])];
    Head {
        clock: Counter::Instructions,
        accelerator: "emulation".to_owned(),
        accelerator_reason: "the instruction clock needs it".to_owned(),
        started: "2026-11-22T03:00:00Z".to_owned(),
        environment: Environment {
            tollgate: "0.1.0".to_owned(),
            cpu: "a processor".to_owned(),
            ..Environment::default()
        },
        study: StudyHeader {
            name: "fixture".to_owned(),
            title: "Security modules <on> three kernels & \"ten\" depths".to_owned(),
            kernels: KERNELS.map(str::to_owned).to_vec(),
            configurations: MODULES.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            baseline: "none".to_owned(),
            boots: 1,
            figure: Figure::Minimum,
            threshold: 1.0,
            published: vec![Published {
                source: "a table of a paper".to_owned(),
                kernel: Some("6.1".to_owned()),
                baseline: [("stat".to_owned(), 3916.0)].into(),
                percent: percent.map(|(w, of)| (w.to_owned(), of.map(|(name, p)| (name.to_owned(), p)).into())).into(),
                rows: Vec::new(),
            }],
            text: "name = \"fixture\" # </pre>".to_owned(),
        },
    }
}
