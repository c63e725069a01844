//! The guard: each call that it checks, the ways by which a process might lose its guard, and what ends the guard itself.
//!
//! Guests need QEMU and kernels: without them those tests fail, and say so.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    attacks::disk,
    program::{
        Scratch,
        guests::{KERNELS, kernels},
        machine::Machine,
        report,
        steps::{Guest, Step, source},
        word,
    },
};

/// Calls that `acts` makes, as it names them.
const CALLS: &str = "write truncate unlink rename link symlink mknod chown unnamed-program named chmod mount setgid setgroups setcap module bpf ptrace poke \
                     io_uring userfaultfd namespace memory mprotect capset foreign";
/// Ways to a shell.
const WAYS: &str = "shell fork twice session vfork thread memfd deleted traced script loader itself failing namespaced";
/// What the calls are about, as before the first of them.
const PREPARE: &str = "rm -rf /guarded /marks; mkdir -p /guarded/mount; mkdir -m 777 /marks; echo x >/guarded/file; echo x >/guarded/gone; \
                       echo x >/guarded/moved";
const SET_UP: &str = "chown 0:0 /bin/acts; cp /bin/acts /bin/privileged; echo 1 >>/bin/privileged; chmod 4755 /bin/privileged; \
                      cp /bin/acts /bin/rootd; echo 22 >>/bin/rootd; chmod 755 /bin/rootd /bin/ld.so /bin/dynamic; \
                      printf '#!/bin/busybox sh\\necho >/marks/$1\\n' >/bin/script; chmod 755 /bin/script; \
                      echo x >/users; chown 1000 /users; mkfifo /order; tollgate guard add /bin/privileged --mode off; \
                      tollgate guard add /bin/rootd --mode enforce";
const START: &str = "tollgate enforce --guard --log /log && tollgate guard status";
const MARKS: &str = "echo marks: $(ls /marks)";

/// Names of files, and whether rules allow them: those of names that change, and of names as long as what the programs read at
/// once, or longer.
const NAMES: [(&str, bool); 15] = [
    ("7", true),
    ("1234567890123", true),
    ("123456789012a", false),
    ("12:", false),
    ("tmp.Ab3dEf", true),
    ("tmp.Ab3dEfg", false),
    ("tmp.Ab3dE", false),
    ("Tmp.Ab3dEf", false),
    ("../else/7", false),
    (NAME_OF_32, true),
    ("32-characters-are-read-at-once-Z", false),
    (NAME_OF_33, true),
    ("33-characters-need-a-second-readZ", false),
    (NAME_OF_101, true),
    ("101-characters-need-four-of-them-so-that-the-last-one-is-short-and-begins-where-the-other-two-ended-Z", false),
];
const NAME_OF_32: &str = "32-characters-are-read-at-once-A";
const NAME_OF_33: &str = "33-characters-need-a-second-readA";
const NAME_OF_101: &str =
    "101-characters-need-four-of-them-so-that-the-last-one-is-short-and-begins-where-the-other-two-ended-A";
/// Opens a file, which is there or is made, and renames one to it: that has the directory of the first name, or another one.
const TRY: &str = "try() {
    one() { FILE=$1 /bin/acts user $3 | sed \"s,^,$1 $2 ,\"; }
    echo >/guarded/$1; one $1 opens another; one $1 opens make; rm /guarded/$1; one $1 makes make; rm -f /guarded/$1
    echo x >/guarded/moved; one $1 moves move; rm -f /guarded/$1
}";
/// All but this is allowed by now: mount was learnt.
const ITSELF: &str = "tollgate guard add 'allow /bin/privileged unlink any'; acts user unpin umount";
/// Programs get privilege.
const REGISTER: &str = "acts setcap; sleep 1; tail -1 /log/daemon.log; cp /bin/acts /bin/tool; echo 333 >>/bin/tool; chmod 4755 /bin/tool; sleep 1; tail -1 /log/daemon.log; \
                        tollgate guard list | grep 'program /bin/tool'; tollgate guard mode /bin/tool enforce";
/// Another one replaces it, as dpkg does, while no daemon could enter it.
const REPLACE: &str = "daemon=$(cat /run/tollgate/lock); PROGRAM=/bin/tool acts user write; \
                       cp /bin/acts /bin/tool.new; echo 4444 >>/bin/tool.new; kill -STOP $daemon; chmod 4755 /bin/tool.new; \
                       mv /bin/tool.new /bin/tool; PROGRAM=/bin/tool acts user write; kill -CONT $daemon";

fn script<'s>(guest: Guest<'s>) -> Guest<'s> {
    let calls = format!("{PREPARE}; acts user {CALLS}; umount /guarded/mount");
    let ways = format!("{PREPARE}; for way in {WAYS}; do acts user $way; done; {MARKS}");
    let mode = |mode: &str| format!("tollgate guard mode /bin/privileged {mode}");
    let names = NAMES.map(|(name, _)| format!("try {name}")).join("; ");
    let allowed = ["1", "tmp.??????", NAME_OF_32, NAME_OF_33, NAME_OF_101].map(|name| {
        format!("tollgate guard add 'allow /bin/privileged write /guarded/{name}' 'allow /bin/privileged rename /guarded/{name}'")
    });
    let names = format!(
        "{TRY}; {}; tollgate guard add 'allow /bin/privileged rename /guarded/moved'; mkdir /else; {names}",
        allowed.join("; ")
    );
    let learn = "tollgate guard learn --log /log";
    let learns = format!(
        "{}; {calls}; sleep 2; {learn} --since 1s; echo now; {learn} --since 1day; {learn} --write",
        mode("learn")
    );
    let warns = format!("{}; {PREPARE}; acts user fork; sleep 1; tail -1 /log/daemon.log; {MARKS}", mode("warn"));
    let busybox = "ifconfig lo up; tollgate guard add /bin/busybox 'allow /bin/privileged setuid 0' \
                   'allow /bin/privileged exec /bin/busybox until network untrusted identity'";
    guest
        .step("set up", SET_UP)
        .step("calls without", &calls)
        .step("ways without", &ways)
        .step("start", &format!("syslogd -O /syslog; /bin/rootd wait /order >/told & sleep 0.5; {START}"))
        .step("running", &format!("{PREPARE}; echo shell >/order; wait; cat /told; {MARKS}"))
        .step("calls with", &format!("{}; {calls}", mode("enforce")))
        .step("names", &names)
        .step("unnamed", "acts user unnamed")
        .step("ways with", &ways)
        .step("logged", "cat /log/daemon.log; grep -m 1 'authpriv.warn' /syslog")
        .step("warned", &warns)
        .step("learn", &learns)
        .step("calls learnt", &format!("{}; {calls}", mode("enforce")))
        .step("itself", ITSELF)
        .step(
            "ended",
            &format!(
                "{busybox}; {PREPARE}; for act in shell misled received changed; do acts user $act; done; {MARKS}"
            ),
        )
        .step("registered", REGISTER)
        .step("replaced", REPLACE)
        .step("entered", "sleep 1; tollgate guard list | grep 'program /bin/tool'")
        .step("off", "echo 0 >/proc/sys/kernel/ftrace_enabled; sleep 1; tail -1 /log/daemon.log")
        // It does not wait until it has read the programs of all processes.
        .step("on", "echo 1 >/proc/sys/kernel/ftrace_enabled; sleep 1; tail -2 /log/daemon.log")
        .step("stop", &format!("tollgate guard stop; {PREPARE}; acts user shell; {MARKS}"))
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_each_call_that_no_rule_allows_whatever_a_process_does_to_lose_its_guard() {
    let scratch = Scratch::new();
    let [acts, loaded] = programs(&scratch);
    for kernel in kernels(KERNELS) {
        let guest = Guest::new(&scratch, kernel).with(&acts, "/bin/acts").with(&loaded, "/bin/dynamic");
        let guest = guest.with(&PathBuf::from("/lib64/ld-linux-x86-64.so.2"), "/bin/ld.so");
        let steps = script(guest).run();
        check_calls(&steps);
        check_ways(&steps);
        steps["itself"].is(0, &["unpin: Operation not permitted", "umount: Operation not permitted"]);
        let registered = ["/guarded/file", "/bin/tool"].map(|path| format!("registered the program {path}"));
        steps["registered"].is(0, &[&registered[0], &registered[1], "program /bin/tool learn sha256:"]);
        for (name, is_allowed) in NAMES {
            let answer = if is_allowed { "done" } else { "Operation not permitted" };
            for act in ["opens another", "opens make", "makes make", "moves move"] {
                steps["names"].is(0, &[&format!("{name} {act}: {answer}\n")]);
            }
        }
        steps["unnamed"].is(0, &["unnamed: done"]);
        let denied = steps["replaced"].text.matches("write: Operation not permitted").count();
        assert_eq!(denied, 2, "{}", steps["replaced"].text);
        let digests = steps["entered"].is(0, &["program /bin/tool enforce"]).text.matches("sha256:").count();
        assert_eq!(digests, 2, "{}", steps["entered"].text);
        steps["off"].is(0, &["the guard is off: the kernel runs none of its programs"]);
        steps["on"].is(0, &["the guard's programs run again"]);
        steps["stop"].is(0, &["shell\n"]);
    }
}

/// Shell functions for what happens to programs, and to the daemon.
const DETACHED: &str = "mended() { for try in $(seq 100); do tail -1 /log/daemon.log | grep 'guarded now' && break; sleep 0.5; done; \
                        grep 'run again' /log/daemon.log; }\n\
                        start() { tollgate enforce --guard --log /log; sleep 2; tail -4 /log/daemon.log; }\n\
                        crash() { kill -9 $(cat /run/tollgate/lock); sleep 0.5; }\n\
                        detach() { for name in $*; do rm /sys/fs/bpf/tollgate-guard/links/guard_$name; done; sleep 2; }\n\
                        links() { echo $(ls /sys/fs/bpf/tollgate-guard/links | wc -l) links; }\n";
/// A program gets privilege that no hook sees, and is told what to do once the daemon is there again.
const SLIPS: &str = "crash; detach creds ptrace; links; acts user wait /order >/told & sleep 1; tollgate guard status; \
                     tollgate status; acts user ptrace";
const BACK: &str = "start; mended; links; acts user ptrace; echo ptrace >/order; wait; sed 's/^/slipped /' /told; tollgate status; \
                    tollgate status --json";

#[test]
#[ignore = "takes long: make test-rest"]
fn attaches_programs_again_that_somebody_has_detached() {
    let scratch = Scratch::new();
    let [acts, _] = programs(&scratch);
    for kernel in kernels(KERNELS) {
        let guest = Guest::new(&scratch, kernel).with(&acts, "/bin/acts").lines(DETACHED);
        let steps = guest
            .step(
                "start",
                &format!("{SET_UP}; tollgate guard mode /bin/privileged enforce; start; acts user ptrace; links"),
            )
            .step("watched", "detach ptrace; links; tail -4 /log/daemon.log; mended; acts user ptrace")
            .step("slips", SLIPS)
            .step("back", BACK)
            .step("all", "crash; rm /sys/fs/bpf/tollgate-guard/links/*; sleep 2; acts user ptrace; start; links; acts user ptrace")
            .step(
                "stop",
                "tollgate guard stop; sleep 2; tail -1 /log/daemon.log; ls /sys/fs/bpf/tollgate-guard; tollgate status",
            )
            .run();
        let denied = "ptrace: Operation not permitted\n";
        let started = steps["start"].is(0, &[denied]);
        let links = started.text.lines().last().unwrap_or_default().to_owned();
        let again = "the guard's programs run again";
        let said = "the guard is off at 1 hooks, whose links are gone: guard_ptrace; their programs are attached again";
        steps["watched"].is(0, &[&links, said, again, denied]);
        let off = "  canary     the guard is off at 2 hooks, whose links are gone: guard_creds guard_ptrace";
        steps["slips"].is(0, &[off, "ptrace: done"]);
        let said = "the guard is off at 2 hooks, whose links are gone: guard_creds guard_ptrace";
        let slipped = "1 processes that had not been guarded while programs did not run are guarded now";
        let back = steps["back"].is(1, &[&links, said, again, slipped, denied, &format!("slipped {denied}")]);
        assert!(back.text.contains("canary     its programs run\n"), "{}", back.text);
        assert!(back.text.contains(r#""watched": true"#), "{}", back.text);
        steps["all"].is(0, &["ptrace: done", "the guard has pins and no program", &links, denied]);
        steps["stop"].is(1, &["the guard has been ended", "nothing is enforced"]);
    }
}

/// Instructions of a denied open, with these rules beside that one.
fn cost(scratch: &Scratch, rules: usize) -> u64 {
    let [acts, _] = programs(scratch);
    let others: String = (0..rules).map(|number| format!("allow /bin/privileged write /other/n{number}\n")).collect();
    let rules = scratch.file("rules", &others);
    let script = "echo 1 >>/bin/privileged; chmod 4755 /bin/privileged; mkdir /guarded; echo >/guarded/file; tollgate guard add /bin/privileged --mode enforce; \
                  tollgate guard list >/text; cat /rules >>/text; tollgate guard load /text >/dev/null; \
                  tollgate enforce --guard --log /log; acts user cost";
    let script = scratch.file("cost", script);
    let machine = Machine::new(scratch, KERNELS[0], "yama,bpf", 1800).option(&["--clock", "instructions"]);
    let machine =
        machine.file(&scratch.program(), "/bin/tollgate").file(&acts, "/bin/acts").file(&acts, "/bin/privileged");
    let ended = machine.file(&rules, "/rules").file(&script, "/script").run(&["sh", "/script"]).with(0);
    let least = ended.stdout.lines().find_map(|line| line.strip_prefix("least ")?.parse().ok());
    least.unwrap_or_else(|| panic!("{}\n{}", ended.stdout, ended.stderr))
}

#[test]
#[ignore = "takes long: make test-rest"]
fn checks_a_call_as_fast_with_100000_rules_as_with_ten() {
    let [few, many] = [10, 100_000].map(|rules| cost(&Scratch::new(), rules));
    let met = many.abs_diff(few) * 50 <= few;
    let figure = format!("{few} instructions with 10 rules, {many} with 100,000");
    report("a denied open, with the system call", &figure, "at most 2 % apart", met);
    assert!(met, "{figure}");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn has_a_whole_database_after_a_cut_while_it_was_saved() {
    let scratch = Scratch::new();
    let image = disk(&scratch, "ext4", 64);
    let started = || {
        let guest = Guest::new(&scratch, KERNELS[0]).volume(&image);
        guest.step(
            "mount",
            "mkdir -p /disk && mount /dev/vda /disk && mkdir -p /disk/etc /etc && ln -s /disk/etc /etc/tollgate",
        )
    };
    let save = "(while :; do tollgate guard mode daemon warn; tollgate guard mode daemon learn; done) & sleep 3";
    started().step("save", save).run_until_cut();
    let steps = started().step("list", "ls -l /disk/etc; tollgate guard list").run();
    steps["list"].is(0, &["default daemon "]);
}

fn check_calls(steps: &BTreeMap<String, Step>) {
    steps["start"].is(0, &["1 of them enforced"]);
    for call in CALLS.split_whitespace() {
        let lines = |step: &str| {
            let find = |line: &&str| line.split_once(": ").is_some_and(|(name, _)| name == call);
            steps[step].text.lines().find(find).unwrap_or("nothing").to_owned()
        };
        assert_eq!(lines("calls without"), format!("{call}: done"));
        assert_eq!(lines("calls with"), format!("{call}: Operation not permitted"));
        assert_eq!(lines("calls learnt"), format!("{call}: done"), "{}", steps["learn"].text);
    }
    let rules = [
        "+ allow /bin/privileged write /guarded/file\n",
        "+ allow /bin/privileged rename /guarded/renamed\n",
        "+ allow /bin/privileged setgid 5\n",
        "+ allow /bin/privileged io_uring\n",
    ];
    let learnt = steps["learn"].is(0, &rules).text.split_once("now\n").unwrap();
    assert!(!learnt.0.contains("+ "), "nothing is new in the last second: {}", learnt.0);
    assert_eq!(learnt.1.matches(rules[0]).count(), 2, "in the last day, and when it is entered: {}", learnt.1);
    let warned = "GUARD granted with a warning: no rule `allow /bin/privileged exec /bin/busybox`";
    steps["warned"].is(0, &[warned, "marks: fork\n"]);
    steps["logged"].is(0, &["authpriv.warn GUARD denied: no rule `"]);
    steps["logged"].is(0, &["GUARD denied: no rule `allow /bin/privileged chown /guarded/file` (process"]);
}

fn check_ways(steps: &BTreeMap<String, Step>) {
    let marks = |step: &str| {
        let line = steps[step].text.lines().find_map(|line| line.strip_prefix("marks:")).unwrap_or("none");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut ways: Vec<&str> = WAYS.split_whitespace().filter(|way| *way != "itself").collect();
    ways.sort_unstable();
    assert_eq!(marks("ways without"), ways, "{}", steps["ways without"].text);
    assert!(marks("ways with").is_empty(), "{}", steps["ways with"].text);
    assert!(marks("running").is_empty(), "it ran before the guard: {}", steps["running"].text);
    steps["running"].is(0, &["shell: Operation not permitted"]);
    assert_eq!(marks("ended"), ["shell"], "{}", steps["ended"].text);
    let ended = ["misled", "received", "changed"].map(|act| format!("{act}: Operation not permitted"));
    steps["ended"].is(0, &ended.each_ref().map(String::as_str));
}

/// The program of the acts, and the one that needs a loader.
pub(crate) fn programs(scratch: &Scratch) -> [PathBuf; 2] {
    let compile = |name: &str, flags: &[&str]| {
        let (out, from) = (scratch.path(name), source(&format!("tests/guard/{name}.c")));
        let arguments = [&["-O1", "-Wall", "-Wextra", "-Werror", "-o", word(&out), word(&from)], flags].concat();
        scratch.finish(scratch.command("cc", &arguments)).with(0);
        out
    };
    let loaded = ["-nostdlib", "-pie", "-fpie", "-fno-stack-protector"];
    [compile("acts", &["-static", "-pthread"]), compile("loaded", &loaded)]
}
