use std::collections::BTreeMap;

use super::*;
use crate::{
    configuration::KNOWN,
    results::examples::{Boot, boot, denying, mean_results, results, wall_results},
    study::Published,
};
use tollgate_bench::oracle::Act;

fn example() -> Vec<Boot> {
    vec![
        boot("none", 0)
            .tried(Act::HeapExec, None)
            .measured("open+close", &[6252., 6260.])
            .measured("null", &[337., 337.])
            .measured("pipe", &[10378., 10378.])
            .measured("exec", &[142_311., 142_400.]),
        boot("capability", 0)
            .measured("open+close", &[6252., 6252.])
            .measured("null", &[337., 337.])
            .measured("pipe", &[10378., 10388.])
            .measured("exec", &[142_311., 142_400.]),
        denying("selinux-enforcing", Act::HeapExec, 13)
            .tried(Act::HeapExec, None)
            .measured("open+close", &[7979., 7980.])
            .measured("null", &[337., 337.])
            .measured("pipe", &[11657., 11657.])
            .broken("exec", "execve /work/c/true: Permission denied"),
    ]
}

#[test]
fn prints_rows_by_group_the_baseline_in_instructions_and_the_rest_in_percent() {
    let text = render(&results(&example()), Style::default());
    let golden = "\
An example

                                   selinux-
                                  enforcing
                none  capability     (void)
controls
  null           337           0          0
files
  open+close    6252           0     +27.6%
processes
  exec        142356           0          -
communication
  pipe         10378          ~0     +12.3%

Clock: instructions. none: guest instructions per operation, minimum (median of CPU time without
  idle where tasks wait for one another); work that the kernel puts off is not in it; others:
  difference in percent.
Kernel 6.1.0-56-cloud-amd64 (linux-image-6.1-cloud-amd64 6.1.1-1); accelerator emulation (the
  instruction clock needs it); boots per configuration: 1; 2 samples per workload and boot; in-run
  spread 0.00 % (median over workloads).
~0: less than layout alone moves it, or than 0.05 %. -: not measured, see the notes.
Controls null equal under all 3 configurations: yes.

Notes
selinux-enforcing: oracle void: heap-exec succeeded, errno 13 was due (padding 0)
selinux-enforcing: exec: execve /work/c/true: Permission denied
";
    assert_eq!(text, golden);
}

fn all_configurations(paddings: u32) -> Vec<Boot> {
    let names =
        (0..paddings).flat_map(|padding| KNOWN.iter().zip(0u16..).map(move |(known, i)| (padding, known.name, i)));
    names
        .map(|(padding, name, i)| {
            let figure = 6000.0 + 400.0 * f64::from(i) + f64::from(padding * 7);
            boot(name, padding).measured("null", &[337.]).measured("creat+unlink:rootfs:d4", &[figure])
        })
        .collect()
}

#[test]
fn prints_means_of_a_study_that_goes_by_them_and_says_what_they_hold() {
    let cycle = |every: f64, rare: f64| [every, every, every, rare].repeat(20);
    let boots = [
        boot("none", 0).measured("stat", &cycle(100., 180.)).measured("chmod", &[90., 110.].repeat(2)),
        boot("yama", 0).measured("stat", &cycle(100., 204.)).measured("chmod", &[92., 110.].repeat(2)),
    ];
    let text = render(&mean_results(&boots), Style::default());
    assert!(text.contains("stat    120  +5.0%") && text.contains("chmod   100     ~0"), "{text}");
    assert!(text.contains("guest instructions per operation, mean"), "{text}");
    assert!(
        text.contains("~0: less than layout alone moves it, or than twice its standard error, or than 0.05 %."),
        "{text}"
    );
    assert!(render(&results(&boots), Style::default()).contains("stat    100      0"));
}

#[test]
fn keeps_within_a_hundred_columns_and_puts_further_blocks_below() {
    for paddings in [1, 3] {
        let text = render(&results(&all_configurations(paddings)), Style::default());
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        assert!(text.matches("creat+unlink:rootfs:d4").count() >= 2, "{text}");
        for part in ["capability", "nopolicy", "permissive", "enforcing", "confined", "learnt", "lockdown", "yama"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}

#[test]
fn colours_only_when_asked() {
    let built = results(&example());
    assert!(!render(&built, Style::default()).contains('\x1b'));
    let coloured = render(&built, Style { colour: true, ..Style::default() });
    assert!(coloured.contains("\x1b[31m+27.6%\x1b[0m") && coloured.contains("\x1b[33m+12.3%\x1b[0m"), "{coloured}");
    let plain =
        ["\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"].iter().fold(coloured, |t, c| t.replace(c, ""));
    assert_eq!(plain, render(&built, Style::default()));
}

#[test]
fn prints_published_figures_beside_ours() {
    let mut built = results(&example());
    let capability =
        |percent| BTreeMap::from([("open+close".to_owned(), BTreeMap::from([("capability".to_owned(), percent)]))]);
    built.study.published = vec![Published {
        source: "a paper".to_owned(),
        kernel: Some("6.1".to_owned()),
        baseline: BTreeMap::from([("open+close".to_owned(), 6240.0)]),
        percent: capability(1.5),
        rows: Vec::new(),
    }];
    let text = render(&built, Style::default());
    assert!(text.contains("open+close  6252 (6240)    0 (+1.5)     +27.6%"), "{text}");
    assert!(text.contains("(in brackets): a paper."), "{text}");
    built.study.published.push(Published {
        source: "another".to_owned(),
        kernel: None,
        baseline: BTreeMap::new(),
        percent: capability(2.5),
        rows: Vec::new(),
    });
    let text = render(&built, Style::default());
    assert!(text.contains("0 (+1.5 a) (+2.5 b)"), "{text}");
    assert!(text.contains("(in brackets, a): a paper.") && text.contains("(in brackets, b): another."), "{text}");
}

#[test]
fn prints_each_kernel_s_table_by_itself() {
    let both: Vec<Boot> = example().into_iter().chain(example().into_iter().map(|b| b.on("6.12"))).collect();
    let text = render(&results(&both), Style::default());
    assert_eq!(text.matches("open+close").count(), 2);
    assert!(text.contains("linux-image-6.12-cloud-amd64"), "{text}");
}

#[test]
fn reports_what_the_aa_pair_seems_to_differ_by_on_the_wall_clock() {
    let boots: Vec<Boot> = (0..10)
        .flat_map(|r| {
            let own = [101.0, 99.0][r as usize % 2];
            [boot("none", r).wall().measured("stat", &[100.]), boot("capability", r).wall().measured("stat", &[own])]
        })
        .collect();
    let text = render(&wall_results(&boots), Style::default());
    assert!(text.contains("Clock: wall. none: nanoseconds per operation"), "{text}");
    assert!(text.contains("stat   100          ~0"), "{text}");
    assert!(text.contains("1 of 1 workloads show no difference"), "{text}");
    assert!(text.contains("~0: the interval includes none, or less than 0.05 %."), "{text}");
}

#[test]
fn says_when_nothing_has_been_measured() {
    assert!(render(&results(&[]), Style::default()).contains("Nothing has been measured yet."));
}
