//! Enforcement and the commands that tell it what to do, on real kernels.
//!
//! QEMU, kernels and a C compiler are needed: without them these tests fail, and say so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod program;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use program::{Scratch, guests::take, word};
use serde_json::Value;

/// A shell's names for the contexts of tests/enforcer/policy.cil.
const PRELUDE: &str = "\
at() { echo system_u:system_r:$1:s0-s15:c0.c1023; }
of() { echo system_u:object_r:$1:s0; }
as() { domain=$1; shift; tollgate run --context $(at $domain) -- \"$@\"; }
daemon() { cat /run/tollgate/lock; }
";
/// Attaching a hundred programs waits for as many grace periods.
const EXPEDITED: &str = "rcupdate.rcu_expedited=1";

/// A file of the repository.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A policy of the first parts of Tollgate's own and these.
fn policy(scratch: &Scratch, name: &str, parts: &[PathBuf]) -> PathBuf {
    let own = ["10-classes", "20-levels", "30-base", "40-unconfined", "50-mls"];
    let own = own.map(|name| source(&format!("policies/tollgate/{name}.cil")));
    let out = scratch.path(name);
    let words: Vec<&str> = own.iter().chain(parts).map(|path| word(path)).collect();
    scratch.run(&[&["policy", "build"], &words[..], &["-o", word(&out)]].concat()).with(0);
    out
}

/// The C library, and the program of tests/enforcer/calls.c against it.
struct Library {
    shared: PathBuf,
    calls: PathBuf,
}

/// Installs the library in a folder of the test, and compiles the program as pkg-config says.
fn library(scratch: &Scratch) -> Library {
    let (root, build) = (scratch.path("root"), scratch.path("lib"));
    let repository = source(".");
    let places = [format!("LIBRARY={}", word(&build)), format!("DESTDIR={}", word(&root)), "PREFIX=/usr".to_owned()];
    let mut command = scratch.command("make", &["-s", "-C", word(&repository), "install-lib"]);
    command.args(places);
    scratch.finish(command).with(0);
    let installed = root.join("usr/lib");
    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "tollgate"]).env("PKG_CONFIG_SYSROOT_DIR", &root);
    let flags = flags.env("PKG_CONFIG_LIBDIR", installed.join("pkgconfig")).output().expect("run pkg-config");
    assert!(flags.status.success(), "{flags:?}");
    let flags = String::from_utf8(flags.stdout).unwrap();
    let calls = scratch.path("calls");
    let mut cc = scratch.command("cc", &["-Wall", "-Wextra", "-Werror", "-pthread", "-o", word(&calls)]);
    cc.arg(source("tests/enforcer/calls.c")).args(flags.split_whitespace());
    // Here for those who ask which libraries the program needs; there for the guest.
    cc.arg(format!("-Wl,-rpath,{}:/usr/local/lib", word(&installed)));
    scratch.finish(cc).with(0);
    Library { shared: installed.join("libtollgate.so.0"), calls }
}

/// What one step of a guest's script printed, and its exit status.
#[derive(Debug, Clone)]
struct Step {
    code: i32,
    text: String,
}

impl Step {
    #[track_caller]
    fn is(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{}", self.text);
        for word in words {
            assert!(self.text.contains(word), "does not say {word:?}: {}", self.text);
        }
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("no JSON, {error}: {}", self.text))
    }
}

/// A guest with the policy `/policy`, and what runs in it step by step.
struct Guest<'s> {
    scratch: &'s Scratch,
    kernel: &'static str,
    lsm: &'static str,
    files: Vec<String>,
    script: String,
}

impl<'s> Guest<'s> {
    fn new(scratch: &'s Scratch, kernel: &'static str) -> Self {
        let built = policy(scratch, "policy", &[source("tests/enforcer/policy.cil")]);
        let guest = Self { scratch, kernel, lsm: "yama,bpf", files: Vec::new(), script: PRELUDE.to_owned() };
        guest.with(&built, "/policy").with(&scratch.program(), "/bin/tollgate")
    }

    fn lsm(mut self, list: &'static str) -> Self {
        self.lsm = list;
        self
    }

    fn with(mut self, host: &Path, guest: &str) -> Self {
        self.files.push(format!("--file={}:{guest}", word(host)));
        self
    }

    fn with_library(self) -> Self {
        let Library { shared, calls } = library(self.scratch);
        self.with(&calls, "/bin/calls").with(&shared, "/usr/local/lib/libtollgate.so.0")
    }

    /// Adds a step; its name is what it shows.
    fn step(mut self, name: &str, line: &str) -> Self {
        self.script.push_str(&format!("echo \"@ {name}\"\n{{ {line}\n}} 2>&1\necho \"@= $?\"\n"));
        self
    }

    /// Boots it and runs the steps.
    fn run(self) -> BTreeMap<String, Step> {
        let script = self.scratch.file("script", &self.script);
        let file = format!("--file={}:/script", word(&script));
        let mut arguments = vec!["vm", "run", "--kernel", self.kernel, "--lsm", self.lsm, "--append", EXPEDITED];
        arguments.extend(["--timeout", "300", &file]);
        arguments.extend(self.files.iter().map(String::as_str));
        arguments.extend(["--", "sh", "/script"]);
        let _place = take(1);
        steps(&self.scratch.run(&arguments).with(0).stdout)
    }
}

fn steps(output: &str) -> BTreeMap<String, Step> {
    let (mut steps, mut name, mut text) = (BTreeMap::new(), String::new(), String::new());
    for line in output.lines() {
        if let Some(code) = line.strip_prefix("@= ") {
            let step = Step { code: code.parse().unwrap(), text: std::mem::take(&mut text) };
            steps.insert(std::mem::take(&mut name), step);
        } else if let Some(next) = line.strip_prefix("@ ") {
            name = next.to_owned();
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    assert!(name.is_empty(), "{name} did not end:\n{text}");
    steps
}

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
    steps["mode"].is(0, &["enforcing\npermissive\nenforcing\n"]);
    steps["domain"].is(0, &["\"visitor\""]);
    steps["no domain"].is(2, &["no type vistor"]);
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

#[test]
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
    steps["no thread"].is(1, &["setcon: errno 1", "first thread: system_u:system_r:changer:"]);
    let denials = &steps["denials"];
    denials.is(
        0,
        &["{ setenforce }", "{ load_policy }", "{ getattr }", "{ relabelfrom }", "{ setcurrent }", "{ setexec }"],
    );
    assert!(!steps["keeper's stop"].text.contains("tollgate"), "{:?}", steps["keeper's stop"]);
    steps["nobody"].is(1, &["no daemon answers"]);
}

#[test]
fn enforces_without_its_daemon_and_a_new_one_takes_over() {
    let scratch = Scratch::new();
    let denied = "as visitor calls setcon $(at changer)";
    // Nobody waits for the daemon in a guest: its process stays, dead.
    let wait = "while tollgate mode; do sleep 0.2; done >/dev/null 2>&1";
    let steps = Guest::new(&scratch, "6.1")
        .with_library()
        .step("enforce", "tollgate enforce /policy && tollgate label set $(of one) /tmp ")
        .step("locked", "sh -c \"trap '' TERM; tollgate run --context $(at visitor) -- sh -c 'while :; do sleep 1; done'\" & sleep 1; pid=$!")
        .step("killed", &format!("kill -9 $(daemon); {wait}; tollgate status"))
        .step("on", "cat /proc/$pid/comm; tollgate mode; calls getcon; calls getpidcon $pid")
        .step("relabelled by nobody", "as visitor true")
        .step("stop without force", "tollgate stop")
        .step("taken over", "tollgate enforce /policy && tollgate status --json")
        .step("same label", "tollgate label get /tmp; tollgate ps --domain visitor | grep -c while")
        .step("denied", denied)
        .step("terminated", &format!("kill -TERM $(daemon); {wait}; tollgate status; tail -1 /var/log/tollgate/daemon.log"))
        .step("foreground", "tollgate enforce --foreground /policy & while ! tollgate mode; do sleep 0.2; done 2>/dev/null")
        .step("hung up", "kill -HUP $(daemon); sleep 3; tollgate status --json | grep '\"generation\"'")
        .step("another policy", &format!("kill -9 $(daemon); {wait}; tollgate enforce /other && tollgate status --json"))
        .step("forced", &format!("kill -9 $(daemon); {wait}; tollgate stop --force; tollgate status; ls /sys/fs/bpf"))
        .with(&policy(&scratch, "other", &[source("tests/enforcer/policy.cil"), scratch.file("more.cil", "(type more)\n")]), "/other")
        .run();
    steps["enforce"].is(0, &[]);
    steps["killed"].is(0, &["programs are attached, enforcement goes on", "none: denials are not logged"]);
    steps["on"].is(
        0,
        &["no daemon answers", "getcon: system_u:system_r:unconfined_t", "getpidcon: system_u:system_r:visitor:"],
    );
    steps["relabelled by nobody"].is(2, &["no daemon answers"]);
    steps["stop without force"].is(2, &["tollgate stop --force"]);
    let status = steps["taken over"].is(0, &[]).json();
    assert_eq!((&status["mode"], &status["generation"]), (&"enforcing".into(), &1.into()), "{status}");
    steps["same label"].is(0, &["system_u:object_r:one:s0 /tmp\n"]);
    steps["denied"].is(1, &["errno 13", "process setcurrent"]);
    steps["terminated"].is(0, &["enforcement goes on", "the daemon ends"]);
    steps["foreground"].is(0, &["enforcing"]);
    steps["hung up"].is(0, &["\"generation\": 2"]);
    let status = steps["another policy"].is(0, &[]).json();
    assert_eq!((&status["policy"], &status["generation"]), (&"/other".into(), &3.into()), "{status}");
    assert!(!steps["forced"].is(0, &["nothing is enforced"]).text.contains("tollgate\n"), "{:?}", steps["forced"]);
}

#[test]
fn says_what_a_machine_lacks_to_be_enforced() {
    let scratch = Scratch::new();
    let unmet = Guest::new(&scratch, "6.1").lsm("yama,apparmor").step("enforce", "tollgate enforce /policy").run();
    unmet["enforce"].is(2, &["add lsm=lockdown,yama,apparmor,bpf to its command line"]);

    let reject = std::fs::read_to_string(source("tests/policies/small.cil")).unwrap();
    let reject = scratch.file("reject.cil", &reject.replace("(handleunknown allow)", "(handleunknown reject)"));
    let built = scratch.path("reject");
    scratch.run(&["policy", "build", word(&reject), "-o", word(&built)]).with(0);
    let users = scratch.file("passwd", "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n");
    let pins = "/sys/fs/bpf/tollgate";
    let steps = Guest::new(&scratch, "6.1")
        .with(&built, "/reject")
        .with(&users, "/etc/passwd")
        .step("not root", "su nobody -c 'tollgate enforce /policy'")
        .step(
            "no types",
            "mount -t tmpfs none /sys/kernel/btf; tollgate enforce /policy; s=$?; umount /sys/kernel/btf; (exit $s)",
        )
        .step("refused", "tollgate enforce /reject; s=$?; ls /sys/fs/bpf; (exit $s)")
        .step("no policy", "tollgate enforce /nothing")
        .step("no type", "tollgate enforce /policy --unconfined somebody_t; s=$?; ls /sys/fs/bpf; (exit $s)")
        .step(
            "foreign",
            &format!("mkdir -p {pins}/mine; tollgate enforce /policy; s=$?; rmdir {pins}/mine {pins}; (exit $s)"),
        )
        .step("enforce", "tollgate enforce /policy")
        .step("second", "tollgate enforce /policy")
        .step("nobody's mode", "su nobody -c 'tollgate mode permissive'")
        .step("nobody's status", "su nobody -c 'tollgate status'")
        .step("half", &format!("kill -9 $(daemon); sleep 1; rm {pins}/maps/labels; tollgate enforce /policy"))
        .step("repaired", "tollgate stop --force && tollgate enforce /policy && tollgate mode")
        .run();
    steps["not root"].is(2, &["only root", "sudo"]);
    steps["no types"].is(2, &["CONFIG_DEBUG_INFO_BTF"]);
    assert!(!steps["refused"].is(2, &["handleunknown reject"]).text.contains("tollgate\n"), "pins are left");
    steps["no policy"].is(2, &["/nothing"]);
    assert!(!steps["no type"].is(2, &["somebody_t"]).text.contains("tollgate\n"), "pins are left");
    steps["foreign"].is(2, &["mine is none of Tollgate's pins"]);
    steps["enforce"].is(0, &[]);
    steps["second"].is(2, &["a daemon runs already (process "]);
    steps["nobody's mode"].is(2, &["only root"]);
    steps["nobody's status"].is(0, &["mode         enforcing"]);
    steps["half"].is(2, &["maps/labels is missing", "tollgate stop --force"]);
    steps["repaired"].is(0, &["enforcing"]);
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
    // Here nothing is enforced.
    let ended = scratch.finish(scratch.command(&calls, &["is_enforcing"])).with(1);
    assert!(ended.stdout.contains("start it with `tollgate enforce POLICY`"), "{}", ended.stdout);
}
