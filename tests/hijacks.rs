//! Hijacks of weak privileged programs, without the guard and with it.
//!
//! Guests need QEMU and kernels: without them those tests fail, and say so.

mod forms;

use std::{collections::BTreeMap, path::PathBuf};

use crate::program::{
    Scratch,
    guests::kernels,
    steps::{Guest, Step, source},
    word,
};

/// A hijack by the name that `attack` knows, how it enters, and what the log says of the act that is denied.
const HIJACKS: [(&str, &str, &str); 14] = [
    ("shellcode", "stack overflow with code", "/h/weak exec /h/mark"),
    ("libc", "return to libc", "/h/weak setuid 0"),
    ("rop", "chain of returns", "/h/weak exec /h/mark"),
    ("chmod", "chmod u+s of a shell", "/h/weak chmod u+s"),
    ("module", "module load", "/h/weak module"),
    ("format", "format string", "/h/daemon exec /bin/busybox"),
    ("got", "GOT overwrite", "/h/daemon exec /bin/busybox"),
    ("heap", "heap function pointer", "/h/daemon exec /bin/busybox"),
    ("symlink", "symlink of a root writer's file", "/h/daemon write /marks/symlink"),
    ("race", "race with a root writer", "/h/daemon write /marks/race"),
    ("environment", "environment of a helper", "/h/helper exec /h/mark"),
    ("capability", "LD_PRELOAD into a capability program", "/h/helper setuid 0"),
    ("path", "path search", "/h/careless exec /tmp/user/helper"),
    ("words", "words for a shell", "/bin/busybox exec /h/mark"),
];

/// Hijacks all programs in turn, and prints which mark is left, and what the guard logged meanwhile.
fn attacks() -> String {
    let names = HIJACKS.map(|(name, ..)| name).join(" ");
    // The loaded module is its mark. What is left is removed at the end: with the guard, this shell may not.
    format!(
        "for name in {names}; do
    : >/out
    echo \"- $name\"
    /h/attack $name >/dev/null
    if grep -q ^dummy /proc/modules; then rmmod dummy; touch /marks/module; fi
    [ \"$(stat -c %u /marks/$name)\" = 0 ] && echo left
    for try in $TRIES; do grep -q denied /out && break; sleep 0.1; done
    sleep 0.1
    cat /out
done
rm -f /marks/* /tmp/user/race; chmod 755 /h/shell"
    )
}

const SET_UP: &str = "\
mkdir -p /h /marks /tmp/log /tmp/user && mount -t tmpfs none /h && cp /hijacks/* /h && cp /h/mark /h/shell && \
cp /h/mark /tmp/user/helper && chown -R 0:0 /h && chmod 755 /h/* && chmod 4755 /h/weak /h/careless && \
chown 1000:1000 /tmp/log /tmp/user && /h/attack grant /h/capable && rmmod dummy";
/// Starts the daemon without a terminal.
const DAEMON: &str = "setsid /h/daemon </dev/null >/dev/null 2>&1 & echo $! >/daemon; \
                      until [ -S /run/daemon ]; do sleep 0.1; done; sleep 0.2";
const KILL: &str = "kill $(cat /daemon); rm /run/daemon";

/// What each hijack has printed.
fn rows(step: &Step) -> BTreeMap<&str, &str> {
    let rows = step.text.split("- ").filter_map(|row| row.split_once('\n'));
    rows.map(|(name, text)| (name.trim(), text)).collect()
}

// As in the year 2000: return addresses and tables can be overwritten, and where it is said, the stack can be executed.
const WEAK: [&str; 6] = ["-w", "-O0", "-no-pie", "-fno-stack-protector", "-znorelro", "-zlazy"];
const ON_STACK: &str = "-zexecstack";
const STRICT: [&str; 4] = ["-O1", "-Wall", "-Wextra", "-Werror"];

/// Compiles a program of tests/hijacks. Returns it with its path in the guest.
fn compile(scratch: &Scratch, name: &str, out: &str, flags: &[&str], more: &[&str]) -> (PathBuf, String) {
    let (from, to) = (source(&format!("tests/hijacks/{name}.c")), scratch.path(out));
    let arguments = [flags, more, &["-o", word(&to), word(&from)]].concat();
    scratch.finish(scratch.command("cc", &arguments)).with(0);
    (to, format!("/hijacks/{out}"))
}

/// The programs that are attacked, and those that attack.
fn programs(scratch: &Scratch) -> Vec<(PathBuf, String)> {
    let strict = |name: &str, out: &str, more: &[&str]| compile(scratch, name, out, &STRICT, more);
    vec![
        compile(scratch, "weak", "weak", &WEAK, &[ON_STACK]),
        compile(scratch, "daemon", "daemon", &WEAK, &[]),
        strict("careless", "careless", &[]),
        strict("capable", "capable", &[]),
        strict("helper", "helper", &[]),
        strict("attack", "attack", &[]),
        strict("mark", "mark", &["-static"]),
        strict("preload", "preload.so", &["-shared", "-fPIC"]),
    ]
}

/// Attacks, learns what the programs are for, and attacks again.
fn guest<'s>(guest: Guest<'s>, programs: &[(PathBuf, String)]) -> Guest<'s> {
    const GUARDED: &str = "/h/weak /h/daemon /h/careless /h/capable /h/helper";
    const START: &str = "tollgate guard run >>/out 2>&1 & until grep -q 'in force' /out; do sleep 0.2; done; \
                         tollgate guard mode daemon learn";
    let enforce = format!(
        "tollgate guard learn --write; tollgate guard add /h/weak; \
         for program in {GUARDED} /bin/busybox; do tollgate guard mode $program enforce; done; \
         tollgate guard mode daemon off; tollgate guard list"
    );
    let guest = programs.iter().fold(guest, |guest, (host, path)| guest.with(host, path));
    guest
        .modules(&["dummy"])
        .step("set up", SET_UP)
        .step("without", &format!("{DAEMON}; TRIES=; {}; {KILL}", attacks()))
        .step("learn", &format!("{START}; {DAEMON}; /h/attack harmless; echo \"ends with $?\"; sleep 2; {KILL}"))
        .step("enforce", &enforce)
        .step("harmless", &format!("{DAEMON}; : >/out; /h/attack harmless; echo \"ends with $?\"; sleep 2; cat /out"))
        .step("with", &format!("TRIES=$(seq 20); {}", attacks()))
}

#[test]
fn denies_what_hijacked_programs_attempt_and_names_it() {
    let scratch = Scratch::new();
    let programs = programs(&scratch);
    for kernel in kernels(&["6.1"]) {
        let steps = guest(Guest::new(&scratch, kernel), &programs).run();
        steps["set up"].is(0, &[]);
        let harmless = steps["harmless"].is(0, &["ends with 0"]);
        assert!(!harmless.text.contains("GUARD"), "what was learnt is granted: {}", harmless.text);
        let (without, with) = (rows(&steps["without"]), rows(&steps["with"]));
        let mark = |text: &str| if text.contains("left") { "root's mark" } else { "nothing" };
        println!("| hijack | without the guard | with it | the log |\n|---|---|---|---|");
        let mut wrong = Vec::new();
        for (name, entry, act) in HIJACKS {
            let denied = format!("denied: no rule `allow {act}");
            let logged = with[name].lines().find(|line| line.contains(&denied));
            let (before, after) = (mark(without[name]), mark(with[name]));
            println!("| {name}: {entry} | {before} | {after} | {} |", logged.unwrap_or("silent"));
            if before == "nothing" || after != "nothing" || logged.is_none() {
                wrong.push(format!("{name}: {}", with[name]));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
