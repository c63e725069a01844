//! Forms of hijacks: places of memory, what is overwritten there, what it then does, and by which function.

use std::{collections::BTreeMap, path::PathBuf};

use super::{ON_STACK, STRICT, WEAK, compile};
use crate::program::{
    Scratch,
    guests::kernels,
    steps::{Guest, Step},
};

/// As many forms must leave root's mark without the guard.
const AT_LEAST: usize = 100;

/// Attacks in each form without the guard, and with it.
fn guest<'s>(guest: Guest<'s>, programs: &[(PathBuf, String)]) -> Guest<'s> {
    const SET_UP: &str = "mkdir /h /marks && mount -t tmpfs none /h && cp /hijacks/* /h && chown -R 0:0 /h && \
                          chmod 755 /h/* && chmod 4755 /h/forms";
    const LEARN: &str = "tollgate guard run >/out 2>&1 & until grep -q 'in force' /out; do sleep 0.2; done; \
                         /h/generate harmless; sleep 2; tollgate guard learn --write; \
                         tollgate guard mode /h/forms enforce; tollgate guard list";
    const LOG: &str = "sleep 3; grep 'denied: no rule' /out | cut -d'`' -f2 | sort | uniq -c; tollgate guard status";
    let guest = programs.iter().fold(guest, |guest, (host, path)| guest.with(host, path));
    guest
        .step("set up", SET_UP)
        .step("without", "/h/generate 2>/dev/null; rm /marks/*")
        .step("learn", LEARN)
        .step("with", "/h/generate 2>/dev/null")
        .step("marks", "ls /marks | wc -l")
        .step("log", LOG)
}

/// Each form, and whether it has left root's mark.
fn forms(step: &Step) -> BTreeMap<&str, bool> {
    let mut forms = BTreeMap::new();
    for line in step.text.lines() {
        let [name, mark, _ended] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        forms.insert(name, mark == "left");
    }
    forms
}

/// A row of each place, a column of each target: how many of them have left root's mark, and how many there are.
fn table(title: &str, forms: &BTreeMap<&str, bool>) {
    let mut cells: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for (name, left) in forms {
        let mut words = name.split('-');
        let (left_cell, all) = cells.entry((words.next().unwrap(), words.next().unwrap())).or_default();
        *left_cell += usize::from(*left);
        *all += 1;
    }
    println!("\n| {title}: place | target | root's mark | forms |\n|---|---|---|---|");
    for ((place, target), (left, all)) in cells {
        println!("| {place} | {target} | {left} | {all} |");
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn denies_every_form_that_leaves_a_mark_without_the_guard_in_two_boots() {
    let scratch = Scratch::new();
    let programs = [
        compile(&scratch, "forms", "forms", &WEAK, &[ON_STACK]),
        compile(&scratch, "generate", "generate", &STRICT, &[]),
        compile(&scratch, "mark", "mark", &STRICT, &["-static"]),
    ];
    for kernel in kernels(&["6.1"]) {
        let boots = [(); 2].map(|()| guest(Guest::new(&scratch, kernel), &programs).run());
        for steps in &boots {
            steps["set up"].is(0, &[]);
            steps["learn"].is(0, &["program /h/forms enforce", "allow /h/forms setuid 0"]);
            let (without, with) = (forms(steps["without"].is(0, &[])), forms(steps["with"].is(0, &[])));
            table("without the guard", &without);
            table("with it", &with);
            let left = |forms: &BTreeMap<&str, bool>| forms.values().filter(|left| **left).count();
            println!("\nforms: {}; {} without the guard, {} with it", without.len(), left(&without), left(&with));
            assert!(left(&without) >= AT_LEAST, "{without:?}");
            assert_eq!(left(&with), 0, "{with:?}");
            steps["marks"].is(0, &["0\n"]);
            steps["log"].is(0, &["allow /h/forms exec /h/mark", "allow /h/forms exec /bin/busybox", "0 lost"]);
        }
        let [first, second] = boots.each_ref().map(|steps| ["without", "with"].map(|name| forms(&steps[name])));
        assert_eq!(first, second, "two boots have the same results");
    }
}
