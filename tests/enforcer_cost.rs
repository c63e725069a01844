//! The cost of enforcement beside SELinux's, by operation, and where the instructions go: `make verify CLAIM=cost`.
//!
//! Every figure is the study's own. SELinux and Tollgate run one policy, Debian's, with the workloads in one domain.

use std::fmt::Write;

use tollgate_study::{
    results::{ConfigurationResult, Oracle, Results},
    study::Study,
};

use crate::program::{Scratch, assert_all_measured, report, results, word, workload};

/// The greatest permitted ratio of the overhead to SELinux's.
const MAX_RATIO: f64 = 1.5;
/// The ratio that is the goal.
const GOAL_RATIO: f64 = 1.0;

/// Hooks that keep labels, and check nothing.
const LABELLING: [&str; 10] = [
    "d_instantiate",
    "inode_alloc_security",
    "inode_free_security",
    "inode_init_security",
    "inode_post_setxattr",
    "task_to_inode",
    "cred_prepare",
    "cred_free",
    "bprm_committing_creds",
    "task_prctl",
];

/// The study that users run; here with fewer configurations.
fn enforcer() -> Study {
    Study::parse("enforcer", include_str!("../studies/enforcer.toml")).unwrap()
}

/// A study of its workloads.
fn part_of_it(name: &str, kernels: &[String], paddings: u32, configurations: &[&str]) -> String {
    format!(
        "name = {name:?}\ntitle = \"Part of the study enforcer\"\nkernels = {kernels:?}\npaddings = {paddings}\n\
         configurations = {configurations:?}\nworkloads = {:?}\n",
        enforcer().workloads
    )
}

/// Runs a study file's text.
fn run(scratch: &Scratch, name: &str, text: &str) -> Results {
    let (file, out) = (scratch.file(&format!("{name}.toml"), text), scratch.path(name));
    scratch.run(&["study", "run", word(&file), "--out", word(&out)]).with(0);
    results(&out)
}

/// A workload's cost above the baseline, in instructions.
fn overhead(results: &Results, kernel: &str, configuration: &str, name: &str) -> f64 {
    let [of, baseline] = [configuration, "none"].map(|configuration| results.find(kernel, configuration).unwrap());
    workload(of, name).figure - workload(baseline, name).figure
}

/// A line of the table: SELinux's overhead, Tollgate's, both in percent of the baseline, and their ratio.
#[derive(Debug)]
struct Line {
    kernel: String,
    workload: String,
    baseline: f64,
    selinux: f64,
    tollgate: f64,
}

impl Line {
    fn ratio(&self) -> f64 {
        self.tollgate / self.selinux
    }

    fn percent(&self, instructions: f64) -> f64 {
        100.0 * instructions / self.baseline
    }

    fn print(&self) {
        let Self { kernel, workload, .. } = self;
        let (what, met) = (format!("{workload} on {kernel}, at most"), self.ratio() <= MAX_RATIO);
        report(&what, &self.figure(), &format!("{MAX_RATIO} times"), met);
        self.print_goal();
    }

    fn print_goal(&self) {
        let (what, met) = (format!("{} on {}", self.workload, self.kernel), self.ratio() <= GOAL_RATIO);
        report(&what, &self.figure(), &format!("{GOAL_RATIO} times"), met);
    }

    fn figure(&self) -> String {
        let [selinux, tollgate] = [self.selinux, self.tollgate].map(|overhead| self.percent(overhead));
        format!("SELinux {selinux:+.1} %, Tollgate {tollgate:+.1} %, {:.2} times", self.ratio())
    }
}

fn lines(results: &Results) -> Vec<Line> {
    let mut lines = Vec::new();
    for kernel in results.kernels() {
        for of in results.find(kernel, "none").unwrap().workloads.iter().filter(|of| !is_control(&of.name)) {
            lines.push(Line {
                kernel: kernel.to_owned(),
                workload: of.name.clone(),
                baseline: of.figure,
                selinux: overhead(results, kernel, "selinux-enforcing", &of.name),
                tollgate: overhead(results, kernel, "tollgate-debian-confined", &of.name),
            });
        }
    }
    lines
}

fn is_control(name: &str) -> bool {
    ["null", "loop", "nothing", "nothing:ext4"].contains(&name)
}

/// The hooks to which a configuration was attached.
fn attached(of: &ConfigurationResult) -> Vec<&str> {
    let (_, hooks) = of.confinement.split_once(" hooks: ").unwrap_or_else(|| panic!("{}", of.confinement));
    hooks.split_whitespace().collect()
}

/// Where the instructions go, measured by leaving parts out: empty programs on the attached hooks (entry), only the programs
/// that keep labels, compared with empty ones (label), and the rest (cache, and the tables on a miss).
fn breakdown(scratch: &Scratch, measured: &Results, kernel: &str) -> Results {
    let hooks = attached(measured.find(kernel, "tollgate-debian-confined").unwrap());
    let labelling: Vec<&str> = hooks.iter().copied().filter(|hook| LABELLING.contains(hook)).collect();
    let configurations = ["none", "bpf", "entry", "label-entry", "label", "tollgate-debian-confined"];
    let mut text = part_of_it("parts", &[kernel.to_owned()], 1, &configurations);
    for (name, base, hooks) in [
        ("entry", "bpf-empty", &hooks),
        ("label-entry", "bpf-empty", &labelling),
        ("label", "tollgate-debian-confined", &labelling),
    ] {
        write!(text, "[[configuration]]\nname = {name:?}\nbase = {base:?}\nhooks = {hooks:?}\n").unwrap();
    }
    run(scratch, &format!("parts-{kernel}"), &text)
}

fn print_parts(parts: &Results, line: &Line) {
    let above = |configuration: &str| overhead(parts, &line.kernel, configuration, &line.workload);
    let (call, entry, whole) = (above("bpf"), above("entry"), above("tollgate-debian-confined"));
    let label = above("label") - above("label-entry");
    let shares = [("call", call), ("entry", entry - call), ("label", label), ("check", whole - entry - label)];
    let shown: Vec<String> = shares.map(|(part, cost)| format!("{part} {cost:.0}")).into();
    println!("  {} on {}: {whole:.0} instructions: {}", line.workload, line.kernel, shown.join(", "));
}

/// No operation may cost more than one and a half times SELinux's overhead on 6.1; for one that misses the goal, the test
/// shows where its instructions go.
#[test]
fn enforcement_cost_is_at_most_half_again_of_selinuxs() {
    let scratch = Scratch::new();
    let configurations = ["none", "selinux-enforcing", "tollgate-debian-confined"];
    let text = part_of_it("cost", &enforcer().kernels, enforcer().paddings, &configurations);
    let measured = run(&scratch, "cost", &text);
    for of in measured.configurations.iter().filter(|of| of.name.ends_with("ing") || of.name.ends_with("-confined")) {
        assert_eq!(of.oracle, Oracle::Held, "{} on {}: {:?}", of.name, of.kernel, of.notes);
    }
    let lines = lines(&measured);
    lines.iter().for_each(Line::print);
    for kernel in measured.kernels() {
        let behind: Vec<&Line> =
            lines.iter().filter(|line| line.kernel == kernel && line.ratio() > GOAL_RATIO).collect();
        if !behind.is_empty() {
            let parts = breakdown(&scratch, &measured, kernel);
            behind.into_iter().for_each(|line| print_parts(&parts, line));
        }
    }
    let dear: Vec<&Line> = lines.iter().filter(|line| line.kernel == "6.1" && line.ratio() > MAX_RATIO).collect();
    assert!(dear.is_empty(), "{dear:?}");
}

/// Each whole command, with the daemon's work, beside the same under SELinux.
#[test]
fn whole_commands_cost_no_more_than_under_selinux() {
    let scratch = Scratch::new();
    let measured = run(&scratch, "commands", include_str!("../studies/commands.toml"));
    assert_all_measured(&measured);
    for of in measured.configurations.iter().filter(|of| of.name != "none") {
        assert_eq!(of.oracle, Oracle::Held, "{}: {:?}", of.name, of.notes);
    }
    lines(&measured).iter().for_each(Line::print_goal);
}
