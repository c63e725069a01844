//! What the programs cost the verifier: `crates/enforcer/verified.tsv`, one line per program, one column per kernel.
//!
//! All programs are loaded that the kernel has hooks for, as `tollgate enforce` loads those that a policy needs, and none is
//! attached. So the table is of no policy. What the verifier reads depends on the kernel, and on what it takes for
//! constant: the size of maps is not among it.
//!
//! `TOLLGATE_WRITE_DOCS=1` writes the table anew, for the kernels that it runs: `TOLLGATE_KERNELS=6.1,6.12,6.18,7.2` for all.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use tollgate_enforcer::{
    programs::{self, Pins},
    verified,
};

use crate::program::{
    Scratch,
    guests::{kernels, take},
    inside::{is_guest, name},
    word,
};

const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.12", "6.18", "7.2"] } else { &["6.1"] };
/// What one program may cost more than the table says, in percent.
const MORE: u64 = 10;
/// What a program costs, in the guest's output.
const COST: &str = "the verifier reads ";

/// Instructions, by program and kernel.
type Table = BTreeMap<String, BTreeMap<String, u64>>;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../enforcer/verified.tsv")
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
         # tests/enforcer_verified.rs holds it, and writes it anew with TOLLGATE_WRITE_DOCS=1.\nprogram",
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

/// What one kernel's verifier read, against the table: what is dearer, and what the table does not have.
fn faults(table: &Table, kernel: &str, read: &BTreeMap<String, u64>) -> Vec<String> {
    let known = |program: &String| table.get(program)?.get(kernel).copied();
    let fault = |(program, cost): (&String, &u64)| match known(program) {
        None => Some(format!("{program} on {kernel}: {cost}, and the table has no line")),
        Some(known) if cost * 100 > known * (100 + MORE) => Some(format!("{program} on {kernel}: {cost}, was {known}")),
        Some(_) => None,
    };
    let gone = table.iter().filter(|(program, costs)| costs.contains_key(kernel) && !read.contains_key(*program));
    let gone = gone.map(|(program, _)| format!("{program} on {kernel}: the table has it, the kernel does not"));
    read.iter().filter_map(fault).chain(gone).collect()
}

/// In a guest: loads all programs, and tells what the verifier read of each.
fn load_all() {
    let hooks = programs::hooks().unwrap();
    let object = programs::load(&Pins::default(), &hooks, &[]).unwrap();
    for (program, cost) in verified::instructions(&object).unwrap() {
        println!("\n{COST}{program} {cost}");
    }
}

fn costs(said: &str) -> BTreeMap<String, u64> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(COST)?.split_once(' '));
    lines.map(|(program, cost)| (program.to_owned(), cost.parse().unwrap())).collect()
}

#[test]
fn costs_the_verifier_no_more_than_the_table_says() {
    if is_guest() {
        return load_all();
    }
    let (scratch, this) = (Scratch::new(), env::current_exe().unwrap());
    let mut table = read(&fs::read_to_string(path()).unwrap_or_default());
    let mut faults_found = Vec::new();
    for kernel in kernels(KERNELS) {
        let line = format!(
            "grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf; \
             TOLLGATE_TEST_IN_GUEST=1 exec /tests --exact {} --nocapture",
            name(costs_the_verifier_no_more_than_the_table_says)
        );
        let file = format!("--file={}:/tests", word(&this));
        let _place = take(1);
        let ended =
            scratch.run(&["vm", "run", "--kernel", kernel, "--lsm", "bpf", &file, "--", "sh", "-c", &line]).with(0);
        let read = costs(&ended.stdout);
        assert!(read.len() > 100, "{kernel}: {}{}", ended.stdout, ended.stderr);
        println!("{kernel}: {} programs, {} instructions", read.len(), read.values().sum::<u64>());
        if env::var_os("TOLLGATE_WRITE_DOCS").is_some() {
            for costs in table.values_mut() {
                costs.remove(kernel);
            }
            for (program, cost) in read {
                table.entry(program).or_default().insert(kernel.to_owned(), cost);
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
         TOLLGATE_WRITE_DOCS=1 TOLLGATE_KERNELS=6.1,6.12,6.18,7.2 make verify CLAIM=enforcer_verified",
        faults_found.join("\n")
    );
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
