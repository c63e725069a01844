//! Scale: what an inode, a task and a socket take of the kernel's memory beside SELinux's own, and what a start takes with many
//! domains, contexts and files.
//!
//! All guests are on the instruction clock: a microsecond is a thousand instructions. Kernels are needed, from the cache or a
//! network, a C compiler and mke2fs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::program::{
    Scratch,
    machine::{Machine, policy, source},
    report, word,
};

const TIMEOUT: u32 = 3000;
/// Objects of a kind that are made, of which the second half is counted.
const OBJECTS: [(&str, u32); 3] = [("files", 40_000), ("sockets", 40_000), ("tasks", 4_000)];
/// Bytes that each may take, beside what SELinux takes: BPF's storage has a header of its own for each object.
const GOALS: [(&str, f64); 3] = [("files", 512.0), ("sockets", 512.0), ("tasks", 512.0)];
const DOMAINS: [u32; 3] = [1, 100, 1000];
/// Rules of each domain: 130,000 of 1,000.
const RULES: u32 = 130;
/// Levels in which each domain is entered: 24,000 contexts of 1,000.
const LEVELS: u32 = 24;
/// Files of an image; the cost of a million is by the line through both.
const FILES: [u32; 2] = [10_000, 20_000];
/// Instructions of a microsecond of the guest.
const INSTRUCTIONS: f64 = 1000.0;

/// The guest's helper.
fn objects(scratch: &Scratch) -> PathBuf {
    let program = scratch.path("objects");
    let mut cc = scratch.command("cc", &["-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o", word(&program)]);
    cc.arg(source("tests/scale/objects.c"));
    scratch.finish(cc).with(0);
    program
}

/// A policy with so many domains. Each has three types of its own, and rules about some of 200 types that all share.
fn domains(scratch: &Scratch, count: u32) -> PathBuf {
    let mut text: String = (0..200).map(|shared| format!("(type shared{shared}_t)\n")).collect();
    for domain in 0..count {
        text += &format!("(type d{domain}_t)\n(roletype system_r d{domain}_t)\n");
        for own in ["exec", "data", "log"] {
            text += &format!("(type d{domain}_{own}_t)\n");
            text += &format!("(allow d{domain}_t d{domain}_{own}_t (file (read getattr open)))\n");
            text += &format!("(allow d{domain}_t d{domain}_{own}_t (dir (read getattr search open)))\n");
        }
        // Neighbours have many rules in common, and none has those of another.
        for rule in 0..RULES - 6 {
            let (shared, class) = ((domain / 25 * 7 + rule * (1 + domain % 5)) % 200, rule / 40);
            let class = ["file", "dir", "lnk_file", "fifo_file"][class as usize % 4];
            text += &format!("(allow d{domain}_t shared{shared}_t ({class} (read getattr)))\n");
        }
    }
    policy(scratch, &format!("domains{count}"), &[scratch.file(&format!("domains{count}.cil"), &text)])
}

fn guest<'s>(scratch: &'s Scratch, lsm: &str, script: &str, helper: &Path) -> Machine<'s> {
    let script = scratch.file(&format!("script-{lsm}"), script);
    let machine = Machine::new(scratch, "6.1", lsm, TIMEOUT).option(&["--clock", "instructions", "--memory", "3000"]);
    machine.file(helper, "/objects").file(&script, "/script")
}

/// Figures of lines that begin with these words.
fn figures(text: &str, words: &str) -> Vec<f64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(words));
    lines.map(|rest| rest.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap()).collect()
}

/// Bytes of the kernel's memory that each of the second half of objects has taken.
fn each(text: &str, kind: &str, number: u32) -> f64 {
    let at = |number| figures(text, &format!("{kind} {number} "))[0];
    (at(number) - at(number / 2)) * 1024.0 / f64::from(number / 2)
}

/// Starts enforcement, and enters the domain of a policy in which everything is allowed.
const ENTER: &str = "\
/tollgate enforce /built --accept-missing --unconfined unconfined_t --once --intern $CONTEXT >/dev/null
export SID=$(grep \" $CONTEXT\\$\" /run/tollgate/contexts | cut -d' ' -f1)
";

#[test]
fn takes_little_memory_for_an_object() {
    let scratch = Scratch::new();
    let (helper, built) = (objects(&scratch), policy(&scratch, "built", &[]));
    let make: String =
        OBJECTS.iter().map(|(kind, number)| format!("/objects {kind} {number} /many || exit 1\n")).collect();
    let begin = "mkdir /many && mount -t tmpfs -o nr_inodes=0 tmpfs /many\n";
    let run = |lsm: &str, enter: &str| {
        let script = format!("{begin}CONTEXT=system_u:system_r:kernel_t:s0\n{enter}{make}");
        let machine =
            guest(&scratch, lsm, &script, &helper).file(&scratch.program(), "/tollgate").file(&built, "/built");
        machine.run(&["sh", "/script"]).with(0).stdout
    };
    let [none, selinux, own] =
        [("capability", ""), ("selinux", ""), ("bpf", ENTER)].map(|(lsm, enter)| run(lsm, enter));
    for ((kind, number), (_, goal)) in OBJECTS.into_iter().zip(GOALS) {
        let [none, selinux, own] = [&none, &selinux, &own].map(|text| each(text, kind, number));
        let (selinux, own) = (selinux - none, own - none);
        let goal_text = format!("at most {goal} more than SELinux");
        let figure = format!("{own:.0} bytes beside {none:.0} of the kernel's; SELinux {selinux:.0}");
        report(&format!("memory for each of {number} {kind}"), &figure, &goal_text, own - selinux <= goal);
    }
}

/// What the helper says of a command that it ran: instructions, and the command's memory in KiB.
#[track_caller]
fn ran(text: &str) -> Vec<(f64, f64)> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let figures = |words: Vec<String>| match &words[..] {
        [_, time, _, memory, _, _, status] if status == "0" => {
            (time.parse::<f64>().unwrap() * INSTRUCTIONS, memory.parse().unwrap())
        }
        _ => panic!("{text}"),
    };
    text.lines().filter(|line| line.starts_with("run ")).map(words).map(figures).collect()
}

/// Starts enforcement of a policy with options, tells what that took, and ends it.
const START: &str = "\
start() {
    of=$1; shift
    /objects run /tollgate enforce $of --accept-missing --once \"$@\" | grep ^run
    /tollgate stop --force >/dev/null
}
";

fn billions(instructions: f64) -> String {
    format!("{:.2} billion instructions", instructions / 1e9)
}

#[test]
fn starts_and_decides_with_a_thousand_domains_and_24_000_contexts() {
    let scratch = Scratch::new();
    let helper = objects(&scratch);
    let context = |n: u32| format!("--intern system_u:system_r:d{}_t:s0:c{}\n", n / LEVELS, n % LEVELS);
    let contexts: String = (0..DOMAINS[2] * LEVELS).map(context).collect();
    let starts = DOMAINS.map(|count| format!("start /domains{count}\n")).concat();
    let decisions =
        DOMAINS.map(|count| format!("/tollgate bench decisions /domains{count} --runs 3 --json\n")).concat();
    let script = format!("{START}{starts}start /domains1000 $(cat /contexts)\n{decisions}");
    let machine = guest(&scratch, "bpf", &script, &helper).file(&scratch.program(), "/tollgate");
    let machine = machine.file(&scratch.file("contexts", &contexts), "/contexts");
    let machine = DOMAINS
        .iter()
        .fold(machine, |machine, count| machine.file(&domains(&scratch, *count), &format!("/domains{count}")));
    let text = machine.run(&["sh", "/script"]).with(0).stdout;
    let took = ran(&text);
    let (first, _) = took[0];
    for (count, (instructions, memory)) in DOMAINS.iter().zip(&took) {
        let figure = format!("{}, {memory} KiB of the process", billions(*instructions));
        report(
            &format!("a start with {count} domains"),
            &figure,
            "at most twice that with one",
            *instructions <= 2.0 * first,
        );
    }
    let (instructions, memory) = took[DOMAINS.len()];
    let figure = format!("{}, {memory} KiB of the process", billions(instructions));
    report("a start with 24,000 contexts", &figure, "at most 256 MiB", memory <= 256.0 * 1024.0);
    // On this clock a nanosecond is an instruction.
    let timed: Vec<Value> = text
        .split_inclusive("\n}\n")
        .filter_map(|part| serde_json::from_str(&part[part.find("{\n")?..]).ok())
        .collect();
    assert_eq!(timed.len(), DOMAINS.len(), "{text}");
    for (name, most) in [("hit-file", 1.05), ("hit", 1.05), ("miss", 1.5)] {
        let cost = |timed: &Value| {
            let parts = timed["parts"].as_array().unwrap();
            parts.iter().find(|part| part["part"] == name).unwrap()["median"].as_f64().unwrap()
        };
        let costs: Vec<f64> = timed.iter().map(cost).collect();
        let figure = DOMAINS
            .iter()
            .zip(&costs)
            .map(|(count, cost)| format!("{count}: {cost:.0}"))
            .collect::<Vec<_>>()
            .join(", ");
        report(
            &format!("instructions of a decision ({name}) by domains"),
            &figure,
            &format!("at most {most} times that with one"),
            costs[2] <= most * costs[0],
        );
    }
}

#[test]
fn labels_the_files_of_a_large_file_system() {
    let scratch = Scratch::new();
    let (helper, built) = (objects(&scratch), policy(&scratch, "built", &[]));
    let mount = |number: u32| format!("mount -o loop /image{number} /many && start /built; umount /many\n");
    let script = format!("mkdir /many\n{START}start /built\n{}{}", mount(FILES[0]), mount(FILES[1]));
    let machine = guest(&scratch, "bpf", &script, &helper).modules(&["loop"]);
    let machine = machine.file(&scratch.program(), "/tollgate").file(&built, "/built");
    let machine = FILES
        .iter()
        .fold(machine, |machine, number| machine.file(&image(&scratch, *number), &format!("/image{number}")));
    let took = ran(&machine.run(&["sh", "/script"]).with(0).stdout);
    let [none, less, more] = [took[0].0, took[1].0, took[2].0];
    let each = (more - less) / f64::from(FILES[1] - FILES[0]);
    let figure = format!(
        "{each:.0} instructions a file ({}, {} and {} files walked: {})",
        0,
        FILES[0],
        FILES[1],
        [none, less, more].map(billions).join(", ")
    );
    report("a walk of a file system", &figure, "at most 100,000 a file: a million in 100 billion", each <= 1e5);
}

/// An ext4 with so many empty files.
fn image(scratch: &Scratch, number: u32) -> PathBuf {
    let tree = scratch.path(&format!("tree{number}"));
    for file in 0..number {
        let folder = tree.join((file / 1000).to_string());
        if file % 1000 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(file.to_string()), "").unwrap();
    }
    let image = scratch.path(&format!("image{number}"));
    let inodes = (number + 2000).to_string();
    scratch
        .finish(scratch.command("mke2fs", &["-q", "-t", "ext4", "-N", &inodes, "-d", word(&tree), word(&image), "60M"]))
        .with(0);
    image
}
