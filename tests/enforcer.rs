//! The commands that control enforcement, and the C library, on real kernels.
//!
//! QEMU, kernels and a C compiler are needed: without them these tests fail, and say so.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

use crate::program::{
    Scratch,
    steps::{Guest, Library, Step, library, source},
};

#[test]
fn does_what_each_command_says() {
    let scratch = Scratch::new();
    let (good, bad) =
        ("$(at visitor)\\t$(of one)\\tfile\\tread,-relabelto\\n", "$(at visitor)\\t$(of one)\\tfile\\t-read\\n");
    let steps = Guest::new(&scratch, "6.1")
        .step("nothing", "tollgate status")
        .step("no daemon", "tollgate mode")
        .step("enforce", "tollgate enforce /policy")
        .step("status", "tollgate status --json")
        .step("people's status", "tollgate status")
        .step("why", "tollgate status --why --json")
        .step("why one", "tollgate status --why unix_may_send; tollgate status --why file_permission")
        .step("why none", "tollgate status --why inode_permision")
        .step("mode", "tollgate mode; tollgate mode permissive; tollgate mode; tollgate mode enforcing; tollgate mode")
        .step("domain", "tollgate mode permissive --domain visitor; tollgate status --json | grep -A1 '\"permissive\"'")
        .step("no domain", "tollgate mode permissive --domain vistor")
        .step(
            "no longer",
            "tollgate mode enforcing --domain visitor; tollgate status --json | grep -A1 '\"permissive\"'",
        )
        .step("run", "as visitor cat /proc/self/comm; as visitor sh -c 'exit 7'")
        .step("no context", "tollgate run --context system_u:system_r:nobody:s0 -- id")
        .step("ps", "as visitor sleep 100 & sleep 1; tollgate ps --domain visitor --json")
        .step("people's ps", "tollgate ps")
        .step("get", "mkdir -p /tmp/d/e; echo >/tmp/d/f; ln -s f /tmp/d/l; tollgate label get -R --json /tmp/d")
        .step("dry", "tollgate label set -n $(of one) /tmp/d/f && tollgate label get /tmp/d/f")
        .step("set", "tollgate label set $(of one) /tmp/d/f && tollgate label get /tmp/d/f /tmp/d/l")
        .step("set all", "tollgate label set -R $(of two) /tmp/d && tollgate label get -R /tmp/d")
        .step("no label", "tollgate label set $(of nothing) /tmp/d; tollgate label get /nowhere")
        .step("sanity", &format!("printf \"{good}\" >/good; tollgate reload /policy --sanity /good"))
        .step("insanity", &format!("printf \"{bad}\" >/bad; tollgate reload /policy --sanity /bad; tollgate status"))
        .step("count", "as visitor sh -c 'while :; do cat /tmp/d/f; sleep 0.1; done' & tollgate status --count 2")
        .step("stop", "tollgate stop && tollgate status; ls /sys/fs/bpf; ps | grep -c '[t]ollgate enforce'")
        .step("denials are told", "cat /var/log/tollgate/daemon.log")
        .run();
    steps["nothing"].is(1, &["nothing is enforced"]);
    steps["no daemon"].is(2, &["no daemon answers", "tollgate enforce POLICY"]);
    steps["enforce"].is(0, &[]);
    let status = steps["status"].json();
    assert_eq!((&status["mode"], &status["generation"]), (&"enforcing".into(), &1.into()), "{status}");
    assert_eq!(status["policy"], "/policy");
    assert_eq!(status["failures"], Value::Object(serde_json::Map::new()));
    assert!(status["hooks"]["attached"].as_array().unwrap().len() > 50, "{status}");
    steps["people's status"].is(0, &["mode         enforcing", "generation 1", "unconfined   kernel_t unconfined_t"]);
    explains(&steps, &status["hooks"]);
    steps["mode"].is(0, &["enforcing\npermissive\nenforcing\n"]);
    steps["domain"].is(0, &["\"visitor\""]);
    steps["no domain"].is(2, &["no type `vistor`"]);
    steps["no longer"].is(0, &["\"permissive\": []"]);
    steps["run"].is(7, &["cat\n"]);
    steps["no context"].is(2, &["nobody"]);
    let processes = steps["ps"].json();
    assert_eq!(processes.as_array().unwrap().len(), 1, "{processes}");
    assert_eq!(processes[0]["command"], "sleep 100");
    assert!(processes[0]["context"].as_str().unwrap().contains(":visitor:"), "{processes}");
    steps["people's ps"].is(0, &["CONTEXT", "[kthreadd]", "tollgate enforce /policy"]);
    let labels = steps["get"].json();
    let paths: Vec<&str> = labels.as_array().unwrap().iter().map(|label| label["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/tmp/d", "/tmp/d/e", "/tmp/d/f", "/tmp/d/l"]);
    assert!(
        steps["dry"]
            .is(0, &["-> system_u:object_r:one:s0 /tmp/d/f\n"])
            .text
            .lines()
            .nth(1)
            .unwrap()
            .contains("tmpfs_t")
    );
    steps["set"].is(0, &["\nsystem_u:object_r:one:s0 /tmp/d/f\n", "tmpfs_t"]);
    assert_eq!(
        steps["set all"].is(0, &[]).text.lines().filter(|line| line.starts_with("system_u:object_r:two:s0 ")).count(),
        4
    );
    steps["no label"].is(2, &["nothing", "/nowhere: No such file"]);
    steps["sanity"].is(0, &["generation 2 is in force"]);
    steps["insanity"].is(0, &["file read is allowed", "generation 2"]);
    steps["count"].is(0, &["from cache", "files"]);
    assert!(!steps["stop"].is(1, &["nothing is enforced"]).text.contains("tollgate\n"), "pins are left");
    steps["denials are told"].is(0, &["nothing is enforced any more"]);
}

/// `status --why` has each hook, attached or not as `status` has it, and the reasons of some are known.
fn explains(steps: &BTreeMap<String, Step>, hooks: &Value) {
    let reasons = steps["why"].is(0, &[]).json();
    let reasons = reasons.as_array().unwrap();
    let named = |attached: bool| -> BTreeSet<&str> {
        reasons.iter().filter(|why| why["attached"] == attached).map(|why| why["hook"].as_str().unwrap()).collect()
    };
    let listed = |name: &str| -> BTreeSet<&str> {
        hooks[name].as_array().unwrap().iter().map(|hook| hook.as_str().unwrap()).collect()
    };
    assert_eq!(named(true), listed("attached"));
    assert!(named(false).is_superset(&listed("not_needed")), "{reasons:?}");
    let kind = |hook: &str| {
        let why = reasons.iter().find(|why| why["hook"] == hook).unwrap();
        why["reasons"][0]["kind"].as_str().unwrap()
    };
    assert_eq!(["task_alloc", "unix_may_send"].map(kind), ["labels", "rule"]);
    assert_eq!(["uring_allowed", "inet_csk_clone"].map(kind), ["absent", "omitted"]);
    let one = ["HOOK          ATTACHED WHY\nunix_may_send yes ", " may not sendto ", ":unix_dgram_socket\n"];
    steps["why one"].is(0, &one).is(0, &["file_permission no       descriptors are checked when they change hands"]);
    steps["why none"].is(2, &["there is no hook \"inode_permision\" (like it: inode_permission"]);
}

#[test]
#[ignore = "takes long: make test-rest"]
fn lets_domains_tell_the_daemon_what_policy_allows_and_no_more() {
    for kernel in if cfg!(feature = "long") { &["6.1", "6.18"][..] } else { &["6.1"] } {
        tells_the_daemon(kernel);
    }
}

fn tells_the_daemon(kernel: &'static str) {
    let scratch = Scratch::new();
    let steps = Guest::new(&scratch, kernel)
        .with_library()
        .step("enforce", "tollgate enforce /policy")
        .step("own", "calls getcon; calls getpidcon 1; calls getprevcon; calls is_enforcing")
        .step("access", "calls check_access $(at visitor) $(of one) file read")
        .step("no access", "calls check_access $(at visitor) $(of one) file relabelto")
        .step("file", "echo >/tmp/f; calls setfilecon /tmp/f $(of one); calls getfilecon /tmp/f")
        .step("visitor's own", "as visitor calls getcon; as visitor calls is_enforcing; as visitor tollgate status")
        .step("visitor's mode", "as visitor tollgate mode permissive")
        .step("visitor's stop", "as visitor tollgate stop")
        .step("visitor's reload", "as visitor tollgate reload /policy")
        .step("visitor's count", "as visitor tollgate status --count 1")
        .step("visitor's getpidcon", "as visitor calls getpidcon 1")
        .step("visitor's label", "as visitor calls setfilecon /tmp/f $(of two)")
        .step("visitor's setcon", "as visitor calls setcon $(at changer)")
        .step("visitor's run", "as visitor tollgate run --context $(at changer) -- id")
        .step("visitor's force", "as visitor tollgate stop --force; ls /sys/fs/bpf/tollgate/links | grep -c .")
        .step("untouched", "tollgate status --json")
        .step("keeper", "as keeper tollgate mode permissive; tollgate mode; as keeper tollgate mode enforcing")
        .step("keeper's reload", "as keeper tollgate reload /policy")
        .step("setcon", "as changer calls setcon $(at visitor)")
        .step("no setcon", "as changer calls setcon $(at keeper)")
        .step("setexeccon", "as changer calls setexeccon $(at visitor) /bin/calls")
        .step("no setexeccon", "as changer calls setexeccon $(at keeper) /bin/calls")
        .step("setfscreatecon", "as changer calls setfscreatecon $(of two) /tmp/g")
        .step("no setfscreatecon", "as changer calls setfscreatecon $(of three) /tmp/h")
        .step("setfilecon", "as changer calls setfilecon /tmp/f $(of two); tollgate label get /tmp/f")
        .step("no setfilecon", "as changer calls setfilecon /tmp/f $(of one)")
        .step("thread", "as changer calls thread $(at part)")
        .step("no thread", "as changer calls thread $(at visitor)")
        .step("denials", "sleep 1; tollgate audit --domain visitor")
        .step("keeper's stop", "as keeper tollgate stop; ls /sys/fs/bpf")
        .step("nobody", "calls setexeccon $(at visitor) /bin/calls; calls is_enforcing")
        .run();
    steps["enforce"].is(0, &[]);
    steps["own"].is(0, &["getcon: system_u:system_r:unconfined_t:", "getpidcon: system_u", "is_enforcing: 1\n"]);
    steps["access"].is(0, &[]);
    steps["no access"].is(1, &["errno 13", "file relabelto"]);
    steps["file"].is(0, &["getfilecon: system_u:object_r:one:s0\n"]);
    steps["visitor's own"]
        .is(0, &["getcon: system_u:system_r:visitor:", "is_enforcing: 1\n", "mode         enforcing"]);
    steps["visitor's mode"].is(2, &["does not allow", "security setenforce"]);
    steps["visitor's stop"].is(2, &["security setenforce"]);
    steps["visitor's reload"].is(2, &["security load_policy"]);
    steps["visitor's count"].is(2, &["security setsecparam"]);
    steps["visitor's getpidcon"].is(1, &["errno 13", "unconfined_t", "process getattr"]);
    steps["visitor's label"].is(1, &["errno 13", "file relabelfrom"]);
    steps["visitor's setcon"].is(1, &["errno 13", "process setcurrent"]);
    steps["visitor's run"].is(2, &["process setexec"]);
    assert_ne!(steps["visitor's force"].text.lines().last(), Some("0"), "{:?}", steps["visitor's force"]);
    let status = steps["untouched"].json();
    assert_eq!((&status["mode"], &status["generation"]), (&"enforcing".into(), &1.into()), "{status}");
    steps["keeper"].is(0, &["permissive\n"]);
    steps["keeper's reload"].is(0, &["generation 2 is in force"]);
    steps["setcon"].is(0, &["getcon: system_u:system_r:visitor:"]);
    steps["no setcon"].is(1, &["errno 13"]);
    steps["setexeccon"].is(0, &["getexeccon: system_u:system_r:visitor:", "getcon: system_u:system_r:visitor:"]);
    steps["no setexeccon"].is(1, &["execl: errno 13"]);
    steps["setfscreatecon"].is(0, &["getfilecon: system_u:object_r:two:s0\n"]);
    steps["no setfscreatecon"].is(1, &["errno 2"]);
    steps["setfilecon"].is(0, &["setfilecon: -\n", "system_u:object_r:two:s0 /tmp/f\n"]);
    steps["no setfilecon"].is(1, &["errno 13", "file relabelfrom"]);
    if kernel == "6.1" {
        steps["thread"].is(1, &["first threads only", "first thread: system_u:system_r:changer:"]);
    } else {
        steps["thread"].is(0, &["getcon: system_u:system_r:part:", "first thread: system_u:system_r:changer:"]);
    }
    steps["no thread"]
        .is(1, &["setcon: errno 1: ", "context is not bounded", "first thread: system_u:system_r:changer:"]);
    let denials = &steps["denials"];
    denials.is(
        0,
        &["{ setenforce }", "{ load_policy }", "{ getattr }", "{ relabelfrom }", "{ setcurrent }", "{ setexec }"],
    );
    assert!(!steps["keeper's stop"].text.lines().any(|line| line == "tollgate"), "{:?}", steps["keeper's stop"]);
    steps["nobody"].is(1, &["no daemon answers"]);
}

#[test]
fn exports_the_calls_of_its_header_and_no_more() {
    let scratch = Scratch::new();
    let Library { shared, calls } = library(&scratch);
    let names = Command::new("nm").args(["-D", "--defined-only"]).arg(&shared).output().expect("run nm");
    let names = String::from_utf8(names.stdout).unwrap();
    let mut exported: Vec<&str> =
        names.lines().filter_map(|line| line.split_once(" T ")?.1.split('@').next()).collect();
    exported.sort_unstable();
    let header = std::fs::read_to_string(source("lib/tollgate.h")).unwrap();
    let mut declared: Vec<&str> = header
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("tg_") && *word != "tg_")
        .collect();
    declared.sort_unstable();
    declared.dedup();
    assert_eq!(exported, declared);
    // Nothing is enforced on this machine.
    let ended = scratch.finish(scratch.command(&calls, &["is_enforcing"])).with(1);
    assert!(ended.stdout.contains("start it with `tollgate enforce POLICY`"), "{}", ended.stdout);
    let ended = scratch.finish(scratch.command(&calls, &["nothing"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "nothing: -\n"));
}
