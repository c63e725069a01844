//! The guard: its database on the command line, and hijacked programs in guests.
//!
//! Guests need QEMU and kernels: without them those tests fail, and say so.

use std::{fs, path::PathBuf};

use crate::program::{
    Ended, Scratch,
    guests::{KERNELS, kernels},
    steps::{Guest, source},
    word,
};

/// A file of a database, without programs.
fn database(scratch: &Scratch) -> PathBuf {
    let file = scratch.path("database");
    scratch.run(&["guard", "save", word(&file)]).with(0);
    file
}

fn guard(scratch: &Scratch, words: &[&str]) -> Ended {
    let file = scratch.path("database");
    scratch.run(&[&["guard"], words, &["--database", word(&file)]].concat())
}

#[test]
fn prints_a_database_as_it_can_be_changed() {
    let scratch = Scratch::new();
    database(&scratch);
    let [one, two] = ["one", "two"].map(|name| scratch.file(name, name));
    let [one, two] = [&one, &two].map(|path| fs::canonicalize(path).unwrap().to_str().unwrap().to_owned());
    guard(&scratch, &["add", &one, &two, &format!("allow {one} exec {two}"), "--mode", "warn"]).with(0);
    guard(&scratch, &["mode", &one, "enforce"]).with(0);
    guard(&scratch, &["mode", "daemon", "learn"]).with(0);
    guard(&scratch, &["add", "word BOP", &format!("allow {one} setuid 0")]).with(0);
    guard(&scratch, &["remove", &format!("allow {one} setuid 0")]).with(0);
    let listed = guard(&scratch, &["list"]).with(0).stdout;
    let [digest_one, digest_two] = [
        // sha256sum of `one` and `two`.
        "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
        "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
    ];
    let expected = format!(
        "default setuid learn\ndefault daemon learn\nword BOP\nprogram {one} enforce sha256:{digest_one}\n\
         program {two} warn sha256:{digest_two}\nallow {one} exec {two}\n"
    );
    assert_eq!(listed, expected);
    let text = scratch.file("text", &listed.replace("allow", "# none\nallow").replace(" exec ", "\texec  "));
    let changed = scratch.run(&["guard", "load", word(&text), "--dry-run"]).with(1);
    assert!(changed.stdout.contains(&format!("+ allow {one} exec {two}\n")), "{}", changed.stdout);
}

#[test]
fn takes_what_this_machine_has_of_a_set() {
    let scratch = Scratch::new();
    database(&scratch);
    let program = fs::canonicalize(scratch.file("one", "one")).unwrap();
    let (one, none) = (word(&program), "/none/of/these");
    let text = format!(
        "program {one} enforce\nprogram {none} learn\nallow {one} exec {none}\nallow {one} setuid root\n\
         allow {one} write /proc/1/loginuid\n"
    );
    let set = scratch.file("set", &text);
    let printed = guard(&scratch, &["merge", word(&set), "--dry-run"]).with(1).stdout;
    let expected = format!(
        "# not on this machine: program {none} learn\n# not on this machine: allow {one} exec {none}\n\
         + program {one} enforce sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\n\
         + allow {one} setuid 0\n+ allow {one} write /proc/*/loginuid\n"
    );
    assert_eq!(printed, expected);
    assert!(!guard(&scratch, &["list"]).with(0).stdout.contains(one), "nothing was changed");
    guard(&scratch, &["merge", word(&set)]).with(0);
    assert!(guard(&scratch, &["list"]).with(0).stdout.contains(&format!("program {one} enforce sha256:")));
    guard(&scratch, &["mode", one, "warn"]).with(0);
    let again = guard(&scratch, &["merge", word(&set), "--dry-run"]).with(0).stdout;
    assert!(!again.contains("+ "), "its mode stays: {again}");
    fs::write(&set, "word BOP").unwrap();
    guard(&scratch, &["merge", word(&set)]).refused(&["line 1", "no line of a set"]);
}

#[test]
fn gives_known_programs_the_mode_that_is_named() {
    let scratch = Scratch::new();
    database(&scratch);
    let program = scratch.file("one", "one");
    for (words, mode) in [
        (&["add", word(&program)][..], "learn"),
        (&["add", word(&program), "--mode", "enforce"], "enforce"),
        (&["add", word(&program)], "enforce"),
    ] {
        guard(&scratch, words).with(0);
        let listed = guard(&scratch, &["list"]).with(0).stdout;
        assert!(listed.contains(&format!("/one {mode} sha256:")), "{words:?}: {listed}");
    }
}

#[test]
fn refuses_items_that_a_database_cannot_have() {
    let scratch = Scratch::new();
    let file = database(&scratch);
    let program = scratch.file("one", "one");
    guard(&scratch, &["add", word(&program)]).with(0);
    let copy = fs::read(&file).unwrap();
    guard(&scratch, &["add", "allow /none exec /none"]).refused(&["no program /none", "tollgate guard add /none"]);
    guard(&scratch, &["add", "deny"]).refused(&["`deny` begins no line", "allow PATH CALL"]);
    guard(&scratch, &["add", "/none/of/these"]).refused(&["cannot read the program /none/of/these"]);
    guard(&scratch, &["mode", "/none", "enforce"]).refused(&["no program /none", "guard list"]);
    guard(&scratch, &["mode", "root", "enforce"]).refused(&["neither a path nor a class"]);
    guard(&scratch, &["mode", "setuid", "on"]).refused(&["off, learn, warn, enforce"]);
    guard(&scratch, &["remove", "word GUARD"]).refused(&["always there"]);
    assert_eq!(fs::read(&file).unwrap(), copy, "what was refused has changed nothing");
    fs::write(&file, &copy[..copy.len() - 1]).unwrap();
    guard(&scratch, &["list"]).refused(&["database cannot be used", "damaged or cut short"]);
    fs::write(&file, "text").unwrap();
    guard(&scratch, &["list"]).refused(&["no guard database", "guard load"]);
}

/// Waits until the guard's process logs.
const STARTED: &str = "until grep -q 'in force' /out; do sleep 0.2; done";
/// Waits for its next lines.
const LOGGED: &str = "sleep 2.5; cat /out";
/// Hijacks the weak program, and says whether root has left its mark.
const ATTACK: &str = "rm -f /marks/mark; attack /bin/weak; echo \"ends with $?\"; cat /marks/mark || echo no mark";
const GREET: &str = "attack /bin/weak harmless; echo \"ends with $?\"";

/// Learns, enforces, and goes on with each kind of trouble.
fn hijack<'s>(guest: Guest<'s>, [weak, attack, helper]: &[PathBuf; 3]) -> Guest<'s> {
    const RUN: &str = "tollgate guard run >>/out 2>&1 & echo $! >/pid";
    const KILL: &str = "kill -9 $(cat /pid); sleep 0.5";
    const SET_UP: &str = "chown 0:0 /bin/weak && chmod 4755 /bin/weak && mkdir /marks && tollgate guard status";
    const DAMAGE: &str = "cp /etc/tollgate/guard /good; echo >>/etc/tollgate/guard; timeout 3 tollgate guard run; \
                          tollgate guard status; cp /good /etc/tollgate/guard";
    const TRUST: &str = "tollgate key new /key && cp /key.pub /etc/tollgate/trusted && tollgate guard save /next && \
                         tollgate guard mode setuid warn --database /next && tollgate guard load /next";
    guest
        .with(weak, "/bin/weak")
        .with(attack, "/bin/attack")
        .with(helper, "/bin/helper")
        .step("set up", SET_UP)
        .step("without", ATTACK)
        .step("start", &format!("{RUN}; {STARTED}; tollgate guard add 'word BOP'"))
        .step("greet", &format!("{GREET}; {LOGGED}"))
        .step("learn", "tollgate guard learn --write; tollgate guard mode /bin/weak enforce; tollgate guard list")
        .step("greet again", &format!(": >/out; {GREET}; {LOGGED}"))
        .step("with", &format!("{ATTACK}; {LOGGED}"))
        .step("status", "tollgate guard status")
        .step("without a process", &format!("{KILL}; tollgate guard status; {ATTACK}"))
        .step("allowed", "tollgate guard add /bin/busybox 'allow /bin/weak exec /bin/busybox'; tollgate guard list")
        .step("changed", &format!(": >/out; echo >>/bin/helper; {RUN}; {STARTED}; {GREET}; {LOGGED}"))
        .step("damaged", &format!("{KILL}; {DAMAGE}"))
        .step("unsigned", TRUST)
        .step("refused", "tollgate guard mode setuid warn")
        .step("signed", "tollgate key sign /next --key /key && tollgate guard load /next && tollgate guard status")
        .step("stop", &format!("tollgate guard stop && {ATTACK}; tollgate guard status"))
}

#[test]
fn denies_a_hijacked_program_a_shell_and_says_what_would_allow_it() {
    let scratch = Scratch::new();
    let programs = programs(&scratch);
    for kernel in kernels(KERNELS) {
        let steps = hijack(Guest::new(&scratch, kernel), &programs).run();
        steps["set up"].is(1, &["does not run", "tollgate guard run"]);
        steps["without"].is(0, &["ends with 0", "\n0\n"]);
        let learns = "BOP granted while learning: no rule `allow /bin/weak exec /bin/helper`";
        steps["greet"].is(0, &["ends with 0", learns]);
        steps["learn"].is(0, &["+ allow /bin/weak exec /bin/helper\n", "program /bin/weak enforce sha256:"]);
        let again = steps["greet again"].is(0, &["ends with 0"]);
        assert!(!again.text.contains("BOP"), "what was learnt is granted: {}", again.text);
        steps["with"].is(
            0,
            &[
                "ends with 99",
                "no mark",
                "BOP denied: no rule `allow /bin/weak setuid 0` ",
                "BOP denied: no rule `allow /bin/weak exec /bin/busybox` ",
                "this would allow it: tollgate guard add 'program /bin/busybox learn sha256:",
                "' 'allow /bin/weak exec /bin/busybox'",
            ],
        );
        steps["status"].is(0, &["that of /etc/tollgate/guard", "1 of them enforced", "2 denied", "0 lost"]);
        steps["without a process"].is(0, &["2 denied", "ends with 99", "no mark"]);
        steps["allowed"].is(0, &["allow /bin/weak exec /bin/busybox\n", "allow /bin/weak exec /bin/helper\n"]);
        steps["changed"].is(0, &["BOP denied: no rule `allow /bin/weak exec /bin/helper`"]);
        steps["damaged"].is(0, &["the guard's database in force stays", "damaged or cut short", "cannot be used"]);
        steps["unsigned"].is(2, &["/next is not signed by a key in /etc/tollgate/trusted", "tollgate key sign /next"]);
        steps["refused"].is(2, &["this machine demands signatures", "tollgate guard save"]);
        steps["signed"].is(0, &["+ default setuid warn", "that of /etc/tollgate/guard"]);
        steps["stop"].is(1, &["\n0\n", "does not run"]);
    }
}

/// The weak program, its attacker, and the weak program's helper.
fn programs(scratch: &Scratch) -> [PathBuf; 3] {
    let compile = |name: &str, source: &PathBuf, more: &[&str]| {
        let out = scratch.path(name);
        let arguments = [&["-static", "-O1", "-o", word(&out), word(source)], more].concat();
        scratch.finish(scratch.command("cc", &arguments)).with(0);
        out
    };
    let helper = scratch.file("helper.c", "int main(void)\n{\n\treturn 0;\n}\n");
    // The code on the stack can be executed, and a return address can be overwritten, as in the year 2000.
    let weak = ["-no-pie", "-fno-stack-protector", "-z", "execstack", "-w"];
    [
        compile("weak", &source("tests/guard/weak.c"), &weak),
        compile("attack", &source("tests/guard/attack.c"), &["-Wall", "-Wextra", "-Werror"]),
        compile("helper", &helper, &[]),
    ]
}
