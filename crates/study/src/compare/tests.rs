//! What comparisons say.

use tollgate_bench::oracle::Act;

use super::*;
use crate::results::examples::{Boot, boot, denying, failed, mean_results, results, wall_results};

fn run(stat: f64, pipe: f64) -> Vec<Boot> {
    vec![
        boot("none", 0).measured("stat", &[3916.]).measured("pipe", &[10378.]),
        boot("yama", 0).measured("stat", &[stat, stat + 9.0]).measured("pipe", &[pipe]),
    ]
}

fn of(before: &[Boot], after: &[Boot]) -> Comparison {
    compare(&results(before), &results(after), 1.0).unwrap()
}

#[test]
fn reports_identical_minima() {
    let comparison = of(&run(3916., 10378.), &run(3916., 10378.));
    assert_eq!(comparison.identical(), (2, 2));
    let golden = "2 of 2 single-task minima identical.\nNothing got dearer by more than 1 %.\n";
    assert_eq!(comparison.render(), golden);
}

#[test]
fn reports_what_got_dearer_than_the_threshold() {
    let comparison = of(&run(3916., 10378.), &run(4000., 10379.));
    assert_eq!(comparison.identical(), (1, 2));
    assert_eq!(comparison.dearer().len(), 1);
    let golden = "\
1 of 2 single-task minima identical.
kernel  configuration  workload  before  after  difference
6.1     yama           stat        3916   4000  +2.1% dearer
6.1     yama           pipe       10378  10379  +0.010%
1 of 4 got dearer by more than 1 %.
";
    assert_eq!(comparison.render(), golden);
}

#[test]
fn does_not_call_cheaper_dearer() {
    let cheaper = of(&run(4000., 10378.), &run(3916., 10378.));
    assert!(cheaper.dearer().is_empty());
    assert_eq!(cheaper.identical(), (1, 2));
}

#[test]
fn reports_what_only_one_measured() {
    let comparison = of(&run(1., 1.), &run(1., 1.)[..1]);
    assert_eq!(comparison.only_before, ["6.1 yama stat", "6.1 yama pipe"]);
    assert!(comparison.render().contains("Only the first measured: 6.1 yama stat, 6.1 yama pipe.\n"));
    assert_eq!(of(&run(1., 1.)[..1], &run(1., 1.)).only_after.len(), 2);
}

#[test]
fn prints_some_of_many_that_only_one_measured_and_how_many_more() {
    let many: Vec<Boot> = (0..30).map(|i| boot(&format!("own-{i}"), 0).measured("stat", &[1.0])).collect();
    let text = of(&[run(1., 1.), many].concat(), &run(1., 1.)).render();
    assert!(text.contains("6.1 own-11 stat, and 18 more (--json") && !text.contains("own-12"), "{text}");
    assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
}

#[test]
fn notes_another_release_and_another_program() {
    let mut after = results(&run(1., 1.));
    after.configurations.iter_mut().for_each(|c| c.release = "6.1.0-57-cloud-amd64".to_owned());
    after.environment.tollgate = "0.2.0".to_owned();
    let comparison = compare(&results(&run(1., 1.)), &after, 1.0).unwrap();
    assert_eq!(
        comparison.notes,
        [
            "kernel 6.1 was 6.1.0-56-cloud-amd64 in the first and is 6.1.0-57-cloud-amd64 in the second",
            "tollgate was 0.1.0 in the first and is 0.2.0 in the second",
        ]
    );
}

#[test]
fn compares_means_where_both_studies_go_by_them() {
    let run = |last| [boot("none", 0).measured("stat", &[100., 100., 100., last])];
    let comparison = compare(&mean_results(&run(180.)), &mean_results(&run(190.)), 1.0).unwrap();
    assert_eq!((comparison.pairs[0].before, comparison.pairs[0].after), (120.0, 122.5));
    assert_eq!((comparison.identical(), comparison.dearer().len()), ((1, 1), 1));
    assert!(comparison.notes.is_empty());
}

#[test]
fn compares_minima_of_a_study_by_means_with_one_by_minima_and_says_so() {
    let run = [boot("none", 0).measured("stat", &[100., 140.]).measured("pipe", &[1., 2., 6.])];
    let comparison = compare(&mean_results(&run), &results(&run), 1.0).unwrap();
    assert!(comparison.pairs.iter().all(|p| p.before == p.after), "{:?}", comparison.pairs);
    assert_eq!(comparison.pairs[1].after, 2.0);
    assert!(comparison.notes[0].contains("minima are compared"), "{:?}", comparison.notes);
}

#[test]
fn refuses_different_clocks() {
    let wall = wall_results(&[boot("none", 0).wall().measured("stat", &[1.0])]);
    let error = compare(&results(&run(1., 1.)), &wall, 1.0).unwrap_err().to_string();
    assert_eq!(error, "the first counts instructions, the second ns: compare results of the same clock");
}

#[test]
fn refuses_results_with_nothing_in_common() {
    let other: Vec<Boot> = run(1., 1.).into_iter().map(|b| b.on("6.12")).collect();
    let error = compare(&results(&run(1., 1.)), &results(&other), 1.0).unwrap_err().to_string();
    assert!(error.contains("first: 6.1; second: 6.12"), "{error}");
    assert!(compare(&results(&[]), &results(&[]), 1.0).unwrap_err().to_string().contains("nothing measured"));
}

#[test]
fn takes_the_shift_of_the_rounds_on_the_wall_clock() {
    let run = |factor: f64| -> Vec<Boot> {
        (0..10).map(|r| boot("none", r).wall().measured("stat", &[factor * f64::from(100 + r)])).collect()
    };
    let comparison = compare(&wall_results(&run(1.0)), &wall_results(&run(1.2)), 1.0).unwrap();
    assert!((comparison.pairs[0].percent - 20.0).abs() < 1.0, "{:?}", comparison.pairs);
    assert!(!comparison.render().contains("minima"));
}

#[test]
fn notes_another_revision() {
    let mut after = results(&run(1., 1.));
    after.environment.revision = Some("0123456789ab-dirty".to_owned());
    let comparison = compare(&results(&run(1., 1.)), &after, 1.0).unwrap();
    assert_eq!(comparison.notes, ["the revision was unknown in the first and is 0123456789ab-dirty in the second"]);
    assert!(!comparison.is_worse());
}

#[test]
fn reports_an_oracle_that_is_no_longer_held() {
    let run = |errno| {
        let none = boot("none", 0).tried(Act::OpenDevmem, None).measured("stat", &[1.0]);
        [none, denying("lockdown", Act::OpenDevmem, 1).tried(Act::OpenDevmem, errno).measured("stat", &[1.0])]
    };
    let comparison = of(&run(Some(1)), &run(None));
    assert_eq!(comparison.voided, ["6.1 lockdown"]);
    assert!(comparison.render().contains("Oracle held in the first, void in the second: 6.1 lockdown.\n"));
    assert!(comparison.is_worse());
    assert!(!of(&run(None), &run(None)).is_worse());
    assert!(!of(&run(None), &run(Some(1))).is_worse());
}

#[test]
fn reports_a_workload_that_has_come_to_fail() {
    let broken = [run(1., 1.)[0].clone(), boot("yama", 0).measured("stat", &[1.0]).broken("pipe", "no pipe")];
    let comparison = of(&run(1., 1.), &broken);
    assert_eq!(
        (comparison.failed.as_slice(), comparison.only_before.len()),
        (["6.1 yama pipe".to_owned()].as_slice(), 0)
    );
    assert!(comparison.render().contains("Measured in the first, failed in the second: 6.1 yama pipe.\n"));
    assert!(comparison.is_worse());
    assert!(!of(&broken, &broken).is_worse());
}

#[test]
fn reports_a_workload_that_has_come_to_fail_in_some_boots() {
    let again = |boot: Boot| [run(1., 1.), vec![boot]].concat();
    let whole = again(boot("yama", 1).measured("stat", &[1.0]).measured("pipe", &[1.0]));
    let partly = again(boot("yama", 1).measured("stat", &[1.0]).broken("pipe", "no pipe"));
    assert_eq!(of(&whole, &partly).failed, ["6.1 yama pipe"]);
    assert!(of(&partly, &partly).failed.is_empty());
}

#[test]
fn reports_what_a_configuration_measured_that_no_longer_boots() {
    let comparison = of(&run(1., 1.), &[run(1., 1.)[0].clone(), failed("yama", "panic")]);
    assert_eq!(comparison.failed, ["6.1 yama stat", "6.1 yama pipe"]);
    let nothing = of(&run(1., 1.)[1..], &[failed("yama", "panic")]);
    assert!(nothing.pairs.is_empty() && nothing.is_worse());
}
