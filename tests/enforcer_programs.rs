//! The BPF programs themselves: what they cost the verifier, and that another object file decides over their maps.
//!
//! The cost is in `crates/enforcer/verified.tsv`, one line per program, one column per kernel. All programs for which the
//! kernel has hooks are loaded, as `tollgate enforce` loads those that a policy needs, and none is attached; so the table
//! belongs to no policy. What the verifier reads depends on the kernel, and on what it takes for constant; the sizes of maps
//! are not among that. `TOLLGATE_WRITE_DOCS=1` writes the table anew, for the kernels that it runs:
//! `TOLLGATE_KERNELS=6.1,6.12,6.18,7.2` for all.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use libbpf_rs::{ObjectBuilder, ProgramInput, libbpf_sys};
use tollgate_abi::{CLASSES, tables::TG_CAPACITY};
use tollgate_enforcer::{
    contexts::Sid,
    enforcer::{Enforcer, Options},
    programs::{self, Loading, Pins},
    verified,
};
use tollgate_policy::built::Built;

use crate::program::{
    Scratch,
    guests::kernels,
    inside::{INSIDE, is_guest, name, policy},
    machine::{Machine, build},
};

const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.12", "6.18", "7.2"] } else { &["6.1"] };
/// How much dearer than in the table a program may be, in percent.
const MAX_INCREASE_PERCENT: u64 = 10;
/// The line of a program's cost in the guest's output.
const COST: &str = "the verifier reads ";

/// Instructions, by program and kernel.
type Table = BTreeMap<String, BTreeMap<String, u64>>;

fn path() -> PathBuf {
    crates().join("enforcer/verified.tsv")
}

fn read(text: &str) -> Table {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let kernels: Vec<&str> = lines.next().unwrap_or_default().split('\t').skip(1).collect();
    let program = |line: &str| {
        let mut words = line.split('\t');
        let name = words.next().unwrap().to_owned();
        let costs = kernels.iter().zip(words).filter(|(_, cost)| *cost != "-");
        (name, costs.map(|(kernel, cost)| ((*kernel).to_owned(), cost.parse().unwrap())).collect())
    };
    lines.map(program).collect()
}

fn write(table: &Table) -> String {
    let mut text = String::from(
        "# Instructions that the verifier reads of each program when all are loaded; `-`: the kernel lacks the hook.\n\
         # tests/enforcer_programs.rs holds it, and writes it anew with TOLLGATE_WRITE_DOCS=1.\nprogram",
    );
    let number = |kernel: &&String| kernel.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    let mut kernels: Vec<&String> = table.values().flat_map(BTreeMap::keys).collect();
    kernels.sort_by_key(number);
    kernels.dedup();
    kernels.iter().for_each(|kernel| write!(text, "\t{kernel}").unwrap());
    for (program, costs) in table {
        write!(text, "\n{program}").unwrap();
        for kernel in &kernels {
            match costs.get(*kernel) {
                Some(cost) => write!(text, "\t{cost}").unwrap(),
                None => text.push_str("\t-"),
            }
        }
    }
    text + "\n"
}

/// Compares one kernel's figures with the table: returns dearer programs, and those that the table lacks.
fn faults(table: &Table, kernel: &str, read: &BTreeMap<String, u64>) -> Vec<String> {
    let known = |program: &String| table.get(program)?.get(kernel).copied();
    let fault = |(program, cost): (&String, &u64)| match known(program) {
        None => Some(format!("{program} on {kernel}: {cost}, and the table has no line")),
        Some(known) if cost * 100 > known * (100 + MAX_INCREASE_PERCENT) => {
            Some(format!("{program} on {kernel}: {cost}, was {known}"))
        }
        Some(_) => None,
    };
    let gone = table.iter().filter(|(program, costs)| costs.contains_key(kernel) && !read.contains_key(*program));
    let gone = gone.map(|(program, _)| format!("{program} on {kernel}: the table has it, the kernel does not"));
    read.iter().filter_map(fault).chain(gone).collect()
}

/// In a guest: loads all programs, and prints what the verifier read of each.
fn load_all() {
    let hooks = programs::hooks().unwrap();
    let load = |tables| {
        // The machine may have been saved with some.
        programs::unpin(&Pins::default()).unwrap();
        programs::load(&Pins::default(), &hooks, &Loading { tables, ..Loading::default() }).unwrap()
    };
    // Those for large tables differ only by the number with which they mask.
    load(TG_CAPACITY as usize);
    let objects = load(0);
    for (program, cost) in objects.iter().flat_map(|object| verified::instructions(object).unwrap()) {
        println!("\n{COST}{program} {cost}");
    }
}

fn costs(said: &str) -> BTreeMap<String, u64> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(COST)?.split_once(' '));
    lines.map(|(program, cost)| (program.to_owned(), cost.parse().unwrap())).collect()
}

/// The line of another object file's answer in the guest's output.
const ANSWER: &str = "another object is answered ";
/// Decisions of the policy `cache.cil` on reading and writing a file, by domain and type.
const ANSWERS: [(&str, &str, &[&str]); 3] =
    [("reader_t", "open_t", &["read"]), ("reader_t", "closed_t", &[]), ("late_t", "open_t", &[])];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Compiles `crates/enforcer/tests/second.bpf.c`: an object file with maps and contexts, without hooks.
fn compile(scratch: &Scratch) -> PathBuf {
    let (folder, object) = (scratch.path("include"), scratch.path("second.bpf.o"));
    fs::create_dir_all(folder.join("bpf")).unwrap();
    for (name, text) in libbpf_sys::API_HEADERS {
        fs::write(folder.join("bpf").join(name), text).unwrap();
    }
    let mut classes = String::from("#pragma once\n");
    for (number, class) in (1..).zip(CLASSES) {
        let class_name = class.name.to_uppercase();
        writeln!(classes, "#define SECCLASS_{class_name} {number}").unwrap();
        for (bit, permission) in class.permissions.iter().enumerate() {
            writeln!(classes, "#define {class_name}__{} (1u << {bit})", permission.to_uppercase()).unwrap();
        }
    }
    fs::write(folder.join("classes.h"), classes).unwrap();
    let mut clang = Command::new(env::var_os("CLANG").unwrap_or("clang".into()));
    clang.args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-I/usr/include/x86_64-linux-gnu"]);
    // The size of the tables in the policy in force.
    clang.arg("-DTG_CAPACITY=(4u << 20)");
    for include in [folder, crates().join("abi"), crates().join("enforcer/bpf")] {
        clang.arg("-I").arg(include);
    }
    clang.arg("-c").arg(crates().join("enforcer/tests/second.bpf.c")).arg("-o").arg(&object);
    assert!(clang.status().unwrap().success());
    object
}

/// In a guest: loads the other object with the pinned maps of the policy in force.
fn ask_from_another_object() {
    // Pins of `load_all`, which attached nothing.
    programs::unpin(&Pins::default()).unwrap();
    let built = Built::open(Path::new("/built")).unwrap();
    let mut enforcer = Enforcer::start(Options::default(), built).unwrap();
    let mut object = ObjectBuilder::default().open_file("/second.bpf.o").unwrap();
    for mut map in object.maps_mut() {
        let map_name = map.name().to_string_lossy().into_owned();
        map.reuse_pinned_map(Pins::default().map(map_name.rsplit('.').next().unwrap())).unwrap();
    }
    let object = object.load().unwrap();
    let second = object.progs_mut().find(|program| program.name() == "second").unwrap();
    for (domain, of, _) in ANSWERS {
        let sids: [Sid; 2] =
            [format!("u:r:{domain}:s0"), format!("u:object_r:{of}:s0")].map(|it| enforcer.intern(&it).unwrap());
        let (mut packet, mut answer) = (vec![0; 16], [0; 32]);
        for word in [sids[0], sids[1], class("file").0, 0] {
            packet.extend(word.to_ne_bytes());
        }
        let input = ProgramInput { data_in: Some(&packet), data_out: Some(&mut answer), ..Default::default() };
        assert_eq!(second.test_run(input).unwrap().return_value, 0);
        println!("\n{ANSWER}{domain} {of} {}", u32::from_ne_bytes(answer[28..].try_into().unwrap()));
    }
}

/// A class's number and its permissions.
fn class(name: &str) -> (u32, &'static [&'static str]) {
    let (number, class) = (1..).zip(CLASSES).find(|(_, class)| class.name == name).unwrap();
    (number, class.permissions)
}

/// The output of each kernel's guest.
fn played() -> &'static [(&'static str, String)] {
    static PLAYED: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    PLAYED.get_or_init(|| {
        let (scratch, this) = (Scratch::new(), env::current_exe().unwrap());
        let (object, built) = (compile(&scratch), build(&scratch, "built", &[policy("cache.cil")], &[]));
        let line = format!(
            "grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf; mkdir -p /run; \
             mount -t tmpfs none /run; {INSIDE}=1 exec /tests --exact {} --nocapture",
            name(costs_the_verifier_no_more_than_the_table_says)
        );
        let play = |kernel| {
            let machine = Machine::new(&scratch, kernel, "bpf", 900).file(&this, "/tests");
            let machine = machine.file(&object, "/second.bpf.o").file(&built, "/built");
            (kernel, machine.run(&["sh", "-c", &line]).with(0).stdout)
        };
        kernels(KERNELS).into_iter().map(play).collect()
    })
}

#[test]
fn costs_the_verifier_no_more_than_the_table_says() {
    if is_guest() {
        load_all();
        return ask_from_another_object();
    }
    let mut table = read(&fs::read_to_string(path()).unwrap_or_default());
    let mut faults_found = Vec::new();
    for (kernel, said) in played() {
        let read = costs(said);
        assert!(read.len() > 100, "{kernel}: {said}");
        println!("{kernel}: {} programs, {} instructions", read.len(), read.values().sum::<u64>());
        if env::var_os("TOLLGATE_WRITE_DOCS").is_some() {
            for costs in table.values_mut() {
                costs.remove(*kernel);
            }
            for (program, cost) in read {
                table.entry(program).or_default().insert((*kernel).to_owned(), cost);
            }
            table.retain(|_, costs| !costs.is_empty());
            fs::write(path(), write(&table)).unwrap();
        } else {
            faults_found.extend(faults(&table, kernel, &read));
        }
    }
    assert!(
        faults_found.is_empty(),
        "{}\ncrates/enforcer/verified.tsv: see what made them dearer; if it is worth it, write the table anew: \
         TOLLGATE_WRITE_DOCS=1 TOLLGATE_KERNELS=6.1,6.12,6.18,7.2 make verify CLAIM=enforcer_programs",
        faults_found.join("\n")
    );
}

#[test]
fn answers_another_object_over_the_same_maps_as_the_policy_says() {
    let permissions = class("file").1;
    let bits = |of: &[&str]| {
        let bit = |name| 1u32 << permissions.iter().position(|permission| *permission == name).unwrap();
        of.iter().map(|name| bit(*name)).fold(0, |all, bit| all | bit)
    };
    for (kernel, said) in played() {
        for (domain, of, allowed) in ANSWERS {
            let answer = said.lines().find_map(|line| line.strip_prefix(&format!("{ANSWER}{domain} {of} ")));
            let answer: u32 = answer.unwrap_or_else(|| panic!("{kernel}: {said}")).parse().unwrap();
            assert_eq!(answer & bits(&["read", "write"]), bits(allowed), "{kernel}: {domain} {of}");
        }
    }
}

#[test]
fn finds_programs_that_are_dearer_than_in_the_table_new_or_gone() {
    let table = read("# words\nprogram\t6.1\t7.2\nfile_open\t1000\t2000\nuring_cmd\t-\t50\ntask_kill\t70\t70\n");
    let read_by = |costs: &[(&str, u64)]| costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect();
    let found = |costs| faults(&table, "6.1", &read_by(costs));
    assert_eq!(found(&[("file_open", 1100), ("task_kill", 60)]), Vec::<String>::new());
    assert_eq!(found(&[("file_open", 1101), ("task_kill", 70)]), ["file_open on 6.1: 1101, was 1000"]);
    assert_eq!(found(&[("file_open", 9), ("task_kill", 70), ("uring_cmd", 1)]).len(), 1);
    assert_eq!(found(&[("file_open", 1000)]), ["task_kill on 6.1: the table has it, the kernel does not"]);
    assert_eq!(read(&write(&table)), table);
}
