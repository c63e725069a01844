//! Tollgate's own policy (policies/tollgate) answers as its tables of answers say, by libsepol and by the decision
//! tables.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::{collections::BTreeSet, fs, path::PathBuf};

use tollgate_policy::{
    dump,
    model::Policy,
    oracle::Oracle,
    sepol::{self, CilFile, Compiled, Options, SepolError},
    server::{Ask, SecurityServer},
    tables,
};

/// One rule for each promise of 90-goals.cil, and for the bounds of httpd.script_t, that breaks it.
const BREACHES: [&str; 25] = [
    "(allow httpd.t shadow_t (file (read)))",
    "(allow cron.t security_t (security (load_policy)))",
    "(allow user.t policy_t (file (write)))",
    "(allow ntp.t kernel_t (system (module_load)))",
    "(allow ntp.t self (bpf (prog_load)))",
    "(allow ntp.t self (capability (sys_module)))",
    "(allow ntp.t self (capability2 (mac_admin)))",
    "(allow backup.t disk_t (blk_file (open)))",
    "(allow backup.t memory_t (chr_file (open)))",
    "(allow user.t self (memprotect (mmap_zero)))",
    "(allow passwd.t etc_t (file (relabelto)))",
    "(allow httpd.t unconfined_t (process (transition)))",
    "(allow user.t unconfined_t (process (ptrace)))",
    "(allow httpd.t httpd.content_t (file (entrypoint)))",
    "(allow user.t user.tmp_t (file (execute)))",
    "(allow mta.t bin_t (file (write)))",
    "(allow mta.t lib_t (file (write)))",
    "(allow mta.t sshd.exec_t (file (write)))",
    "(allow db.t self (process (execmem)))",
    "(allow unconfined_t bin_t (process (transition)))",
    "(allowx user.t tty_t (ioctl chr_file (0x5412)))",
    "(allow httpd.script_t home_t (file (read)))",
    // A learnt domain (docs/learning.md), which no macro has given anything.
    "(type web_t) (typeattributeset domain web_t) (typeattributeset promised web_t) (allow web_t shadow_t (file (read open getattr)))",
    "(type web_t) (typeattributeset domain web_t) (typeattributeset promised web_t) (allow web_t etc_t (file (entrypoint)))",
    "(type web_t) (typeattributeset domain web_t) (typeattributeset promised web_t) (allow web_t self (process (execmem)))",
];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/tollgate"))
}

fn sources() -> Vec<CilFile> {
    let mut files: Vec<CilFile> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cil"))
        .map(|path| CilFile {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            text: fs::read(&path).unwrap(),
        })
        .collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

fn compile(files: &[CilFile]) -> Result<Compiled, SepolError> {
    sepol::compile(files, &Options { without_lines: true, ..Options::default() })
}

/// The rows of a table of answers, without comments.
fn rows(name: &str) -> Vec<[String; 6]> {
    let text = fs::read_to_string(folder().join(name)).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            cells.try_into().unwrap_or_else(|_| panic!("{name}: `{line}` has not 6 cells"))
        })
        .collect()
}

fn yes(cell: &str) -> bool {
    match cell {
        "yes" => true,
        "no" => false,
        _ => panic!("`{cell}` is neither yes nor no"),
    }
}

fn permission(policy: &Policy, class: u32, name: &str) -> u32 {
    let names = &policy.classes[class as usize].permissions;
    1 << names.iter().position(|other| other == name).unwrap_or_else(|| panic!("no permission {name}"))
}

/// Runs `test` with libsepol, the policy and the server of its tables.
fn with_policy(test: impl FnOnce(&mut Oracle, &Policy, &mut SecurityServer<'_>)) {
    let compiled = compile(&sources()).unwrap();
    let policy = dump::read(&compiled.model).unwrap();
    let laid = tables::build(&policy).unwrap();
    let mut server = SecurityServer::new(&policy, &laid.tables, &laid.levels).unwrap();
    let mut oracle = Oracle::load(&compiled.image).unwrap();
    test(&mut oracle, &policy, &mut server);
}

#[test]
fn answers_each_question_as_promised() {
    with_policy(|oracle, policy, server| {
        let questions = rows("questions.tsv");
        assert!(questions.len() >= 100);
        for [source, target, class, name, expected, why] in &questions {
            let number = server.class(class).unwrap();
            let bit = permission(policy, number, name);
            let sids = (oracle.sid(source).unwrap(), oracle.sid(target).unwrap());
            let libsepol = oracle.access(sids.0, sids.1, number).allowed & bit != 0;
            let contexts = (server.context(source).unwrap(), server.context(target).unwrap());
            let ours = server.access(contexts.0, contexts.1, number).allowed & bit != 0;
            let question = format!("{source} {target} {class} {name} ({why})");
            assert_eq!(libsepol, yes(expected), "libsepol: {question}");
            assert_eq!(ours, yes(expected), "tables: {question}");
        }
    });
}

#[test]
fn labels_new_things_as_promised() {
    with_policy(|oracle, _, server| {
        for [source, target, class, name, expected, why] in &rows("transitions.tsv") {
            let number = server.class(class).unwrap();
            let transition = format!("{source} {target} {class} {name} ({why})");
            if name == "-" {
                let sids = (oracle.sid(source).unwrap(), oracle.sid(target).unwrap());
                let libsepol = oracle.transition(sids.0, sids.1, number).and_then(|sid| oracle.context(sid));
                // libsepol 3.4 labels sockets like their directory; the kernel, and we, like their process.
                if !class.ends_with("socket") {
                    assert_eq!(libsepol.as_ref(), Some(expected), "libsepol: {transition}");
                }
            }
            let contexts = (server.context(source).unwrap(), server.context(target).unwrap());
            let name = Some(name.as_str()).filter(|name| *name != "-");
            let label = server.label(Ask::Transition, contexts.0, contexts.1, number, name).unwrap();
            assert_eq!(&server.text(&label), expected, "tables: {transition}");
        }
    });
}

#[test]
fn denies_people_without_the_role_to_run_sudo() {
    with_policy(|_, _, server| {
        let source = server.context("user_u:user_r:user.t:s0-s3:c0.c1023").unwrap();
        let target = server.context("system_u:object_r:sudo.exec_t:s0").unwrap();
        let class = server.class("process").unwrap();
        let refused = server.label(Ask::Transition, source, target, class, None).unwrap_err().to_string();
        assert!(refused.contains("user_u:system_r:sudo.t"), "{refused}");
    });
}

#[test]
fn relabels_as_promised() {
    with_policy(|oracle, _, server| {
        for [old, new, class, task, expected, why] in &rows("relabels.tsv") {
            let number = server.class(class).unwrap();
            let [a, b, c] = [old, new, task].map(|context| oracle.sid(context).unwrap());
            assert_eq!(oracle.validate(a, b, c, number), yes(expected), "libsepol: {old} {new} {class} {task} ({why})");
            let [a, b, c] = [old, new, task].map(|context| server.context(context).unwrap());
            assert_eq!(server.validate(a, b, c, number), yes(expected), "tables: {old} {new} {class} {task} ({why})");
        }
    });
}

#[test]
fn labels_files_with_valid_contexts_and_every_program_of_a_domain() {
    with_policy(|_, policy, server| {
        let text = fs::read_to_string(folder().join("file_contexts")).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let labels: BTreeSet<&str> =
            lines.filter_map(|line| line.split_whitespace().last()).filter(|label| *label != "<<none>>").collect();
        for label in &labels {
            server.context(label).unwrap();
        }
        for program in policy.types.iter().filter(|type_| type_.name.ends_with("exec_t")) {
            let prefix = format!("system_u:object_r:{}:", program.name);
            assert!(labels.iter().any(|label| label.starts_with(&prefix)), "no file is a {}", program.name);
        }
    });
}

#[test]
fn rejects_a_rule_that_breaks_a_promise() {
    for breach in BREACHES {
        let mut files = sources();
        files.push(CilFile { name: "breach.cil".into(), text: breach.into() });
        let refused = compile(&files).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("neverallow") || refused.contains("bounds"), "{breach}: {refused}");
    }
}
