use std::collections::BTreeMap;

use tollgate_policy::{
    built::Built,
    oracle::Oracle,
    sepol::{self, CilFile, Options},
};

use super::*;
use crate::{Lost, text};

/// A policy in which permissions are denied for every reason there is.
const SOURCE: &str = include_str!("../../../policy/tests/explain.cil");
const SHELL: &str = "staff_u:staff_r:shell_t:s0";
const WEB: &str = "system_u:system_r:web_t:s0";

fn compile(added: &str) -> Built {
    let file = |name: &str, text: &str| CilFile { name: name.to_owned(), text: text.as_bytes().to_vec() };
    let files = [file("explain.cil", SOURCE), file("learnt.cil", added)];
    let compiled = sepol::compile(&files, &Options::default()).unwrap_or_else(|cause| panic!("{cause}\n{added}"));
    Built::from_compiled(compiled).unwrap()
}

/// A denial of a permissive domain, as the kernel writes it at a second.
fn record(second: u32, source: &str, target: &str, asked: &str) -> String {
    let (class, permissions) = asked.split_once(' ').unwrap();
    let (permissions, more) =
        permissions.split_once(';').unwrap_or((permissions, "path=\"/srv/page\" dev=\"sda\" ino=5"));
    format!(
        "type=AVC msg=audit({second}.000:7): avc:  denied  {{ {permissions} }} for  pid=9 comm=\"sh\" {more} \
         scontext={source} tcontext={target} tclass={class} permissive=1"
    )
}

fn object(type_: &str) -> String {
    format!("system_u:object_r:{type_}:s0")
}

fn learnt(built: &Built, records: &[String]) -> Learnt {
    let entries = records.iter().map(|line| text::parse(line).unwrap_or_else(|| panic!("{line}")));
    learn(&Explainer::new(&built.policy, &built.lines), entries)
}

fn rules(learnt: &Learnt) -> Vec<String> {
    learnt.to_string().lines().filter(|line| !line.starts_with(';') && !line.is_empty()).map(str::to_owned).collect()
}

/// What each type may do to each other, of each class, as libsepol says.
fn granted(image: &[u8]) -> BTreeMap<(&'static str, &'static str, u32), u32> {
    const TYPES: [&str; 7] = ["web_t", "shell_t", "admin_t", "secret_t", "web_data_t", "log_t", "blk.t"];
    let mut oracle = Oracle::load(image).unwrap();
    let mut all = BTreeMap::new();
    for source in ["web_t", "shell_t", "admin_t", "blk.t"] {
        let user = if source == "shell_t" { "staff_u:staff_r" } else { "system_u:system_r" };
        let from = oracle.sid(&format!("{user}:{source}:s0")).unwrap();
        for target in TYPES {
            let to = if target == source { from } else { oracle.sid(&object(target)).unwrap() };
            all.extend((1..=3).map(|class| ((source, target, class), oracle.access(from, to, class).allowed)));
        }
    }
    all
}

#[test]
fn allows_all_that_was_denied_and_nothing_else() {
    let built = compile("");
    let learnt = learnt(
        &built,
        &[
            record(10, SHELL, &object("secret_t"), "file append"),
            record(30, SHELL, &object("secret_t"), "file append ioctl"),
            record(20, SHELL, SHELL, "process transition"),
            record(20, WEB, &object("web_data_t"), "file entrypoint"),
            record(40, WEB, &object("web_data_t"), "file entrypoint"),
        ],
    );
    let expected = ["(allow shell_t secret_t (file (append ioctl)))", "(allow web_t web_data_t (file (entrypoint)))"];
    assert_eq!(rules(&learnt), expected, "{learnt}");
    assert_eq!((learnt.allowed, learnt.granted()), (1, 3));
    let (before, after) = (granted(&built.image), granted(&compile(&learnt.to_string()).image));
    let more: Vec<_> = after.iter().filter(|(key, now)| before[*key] != **now).collect();
    // The classes are in the policy's order: file is 1. Of file: ioctl 1, append 8, entrypoint 32.
    assert_eq!(
        more,
        [
            (&("shell_t", "secret_t", 1), &(before[&("shell_t", "secret_t", 1)] | 1 | 8)),
            (&("web_t", "web_data_t", 1), &(before[&("web_t", "web_data_t", 1)] | 32)),
        ]
    );
}

#[test]
fn writes_each_rules_evidence_beside_it() {
    let built = compile("");
    let capability = "process ptrace;opid=12 ocomm=\"init\"";
    let learnt = learnt(
        &built,
        &[
            record(1_700_000_040, WEB, &object("web_data_t"), "file entrypoint execute"),
            record(1_700_000_010, SHELL, &object("secret_t"), "file append"),
            record(1_700_000_030, SHELL, &object("secret_t"), "file append;path=\"/srv/other\""),
            record(1_700_000_020, SHELL, SHELL, capability),
        ],
    );
    let text = learnt.to_string();
    let expected = "\n; append: 2 times, 2023-11-14T22:13:30.000Z to 2023-11-14T22:13:50.000Z, by sh: /srv/other, /srv/page\n\
                    (allow shell_t secret_t (file (append)))\n";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains(
            "; ptrace: once, 2023-11-14T22:13:40.000Z, by sh: init[12]\n(allow shell_t self (process (ptrace)))"
        ),
        "{text}"
    );
    assert!(text.contains("\n; entrypoint execute: each once, 2023-11-14T22:14:00.000Z, by sh: /srv/page\n"), "{text}");
    assert!(text.starts_with("; Learnt by tollgate learn. Denials: 4, rules: 3, permissions: 4.\n"), "{text}");
    assert!(learnt.is_whole());
}

#[test]
fn names_the_commands_that_were_seen_where_the_policy_names_commands_and_no_others() {
    let built = compile("");
    let ioctl = |target: &str, command: u32| {
        record(1, SHELL, &object(target), &format!("file ioctl;path=\"/log\" dev=\"sda\" ino=5 ioctlcmd={command:#x}"))
    };
    let records = [0x6003, 0x6000, 0x6001, 0x5401].map(|command| ioctl("log_t", command));
    let learnt = learnt(&built, &[&records[..], &[ioctl("secret_t", 0x6000)]].concat());
    let expected = [
        "(allowx shell_t log_t (ioctl file ((range 0x6000 0x6001) 0x6003)))",
        "(allow shell_t secret_t (file (ioctl)))",
    ];
    assert_eq!(rules(&learnt), expected, "{learnt}");
    assert_eq!((learnt.allowed, learnt.granted()), (1, 4), "0x5401 is named already");
    let again = compile(&learnt.to_string());
    let records: Vec<_> = [0x6000, 0x6001, 0x6003].iter().map(|command| ioctl("log_t", *command)).collect();
    assert_eq!(self::learnt(&again, &records).allowed, 3);
    assert_eq!(rules(&self::learnt(&again, &[ioctl("log_t", 0x6002)])).len(), 1);
}

#[test]
fn tells_apart_what_no_allow_rule_can_mend_with_what_would() {
    let built = compile("");
    let child = "system_u:system_r:web_child_t:s0";
    let learnt = learnt(
        &built,
        &[
            record(1, WEB, "system_u:object_r:log_t:s2:c1", "file read append"),
            record(1, SHELL, &object("secret_t"), "file read"),
            record(1, child, &object("web_part_t"), "file execute"),
            record(1, SHELL, "staff_u:system_r:web_t:s0", "process transition"),
            record(1, "staff_u:staff_r:web_t:s0", &object("log_t"), "file write"),
            record(1, SHELL, &object("log_t"), "tcp_socket connect"),
            record(1, SHELL, &object("log_t"), "file watch"),
            record(1, SHELL, &object("gone_t"), "file read"),
            record(1, SHELL, "", "file read").replace("tcontext=", "tsid=77"),
        ],
    );
    assert_eq!(rules(&learnt), [""; 0], "{learnt}");
    for (why, would) in [
        ("a constraint forbids it, explain.cil:", "another source range: system_u:system_r:web_t:s2:c1"),
        ("a neverallow rule of the policy forbids it, explain.cil:", ""),
        ("web_t, which bounds web_child_t, may not do it either", "(allow web_t web_data_t (file (execute)))"),
        ("(roleallow staff_r system_r) is missing", "(roleallow staff_r system_r)"),
        ("staff_u:staff_r:web_t:s0 is not a valid context", "(roletype staff_r web_t)"),
        ("no class `tcp_socket`", "define it in the policy"),
        ("no permission `watch`", "define it in the policy"),
        ("no type `gone_t`", "define it in the policy"),
        ("`SID 77` is not a context", "define it in the policy"),
    ] {
        let is = |apart: &&Apart| apart.why.iter().any(|own| own.contains(why));
        let apart = learnt.apart.iter().find(is).unwrap_or_else(|| panic!("{why}: {learnt}"));
        let text = apart.to_string();
        assert!(text.contains(would), "{would}: {text}");
    }
    assert_eq!((learnt.apart.len(), learnt.allowed), (9, 1), "what is above it may append to: {learnt}");
    assert!(!learnt.is_whole());
    compile(&learnt.to_string());
}

#[test]
fn leaves_out_what_the_policy_means_to_be_denied_and_what_was_granted() {
    let built = compile("");
    let granted = record(1, SHELL, &object("secret_t"), "file append").replace("denied", "granted");
    let learnt = learnt(&built, &[record(1, WEB, &object("secret_t"), "file read"), granted]);
    assert_eq!((rules(&learnt).len(), learnt.silent, learnt.apart.len()), (0, 1, 0), "{learnt}");
}

#[test]
fn says_what_it_cannot_know() {
    let built = compile("");
    let explainer = Explainer::new(&built.policy, &built.lines);
    let enforced =
        record(1, WEB, &object("web_data_t"), "file entrypoint").replace("permissive=1", "permissive=0 repeated=4");
    let lost = |count| Entry::Lost(Lost { time: 1, count, reason: Reason::RingBuffer });
    let learnt = learn(&explainer, [text::parse(&enforced).unwrap(), lost(3), lost(4)]);
    let text = learnt.to_string();
    assert!(text.contains("; Events lost: 7 (the ring buffer was full)"), "{text}");
    assert!(text.contains("; Denials that were enforced: 5."), "{text}");
    assert!(text.contains("; Dontaudit rules for web_t: 1. What they hide"), "{text}");
    assert!(!learnt.is_whole());
}

#[test]
fn says_when_a_boolean_would_do() {
    let learnt = learnt(&compile(""), &[record(1, WEB, &object("log_t"), "file write")]);
    let note = "; write is allowed without this rule when (and web_logs (not strict)) (tollgate policy bool)\n\
                (allow web_t log_t (file (write)))";
    assert!(learnt.to_string().contains(note), "{learnt}");
}

#[test]
fn lets_no_name_of_a_process_out_of_its_comment() {
    let built = compile("");
    let rule = "(allow web_t secret_t (file (read)))";
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
    let mut denial = match text::parse(&record(
        1,
        SHELL,
        &object("secret_t"),
        &format!("file append;path={}", hex(&format!("/a\n{rule}\r{rule}"))),
    )) {
        Some(Entry::Avc(denial)) => denial,
        other => panic!("{other:?}"),
    };
    denial.comm = crate::Untrusted::new(format!("\n{rule}"));
    let mut unknown = denial.clone();
    unknown.tcontext = Some(format!("system_u:object_r:x\n{rule}:s0"));
    unknown.tclass = format!("\n{rule}");
    let explainer = Explainer::new(&built.policy, &built.lines);
    let learnt = learn(&explainer, [Entry::Avc(denial), Entry::Avc(unknown)]);
    assert_eq!(rules(&learnt), ["(allow shell_t secret_t (file (append)))"], "{learnt}");
    assert!(learnt.to_string().chars().all(|c| c == '\n' || !c.is_control()), "{learnt}");
}
