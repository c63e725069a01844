//! DSM's evaluation of 2002 on Tollgate: studies/dsm.toml, and what docs/dsm.md says of it.

use tollgate_bench::{
    confine::Confinement,
    counter::Counter,
    job::{Job, Report},
};
use tollgate_study::results::{Oracle, Results};

use crate::program::{
    Scratch, assert_all_measured, configuration, guests, machine::Machine, results, steps::TIMEOUT, word,
};

/// Operations in which the kernel draws random numbers.
const DRAWING: [&str; 3] = ["fork+exit", "exec", "tcp-connect"];

/// The configurations in which packets have labels.
const LABELLED: [&str; 5] =
    ["vxlan-gbp", "selinux-net-cipso", "tollgate-net-beside", "tollgate-net-cipso", "tollgate-net-sealed"];

/// In each boot of these, receivers saw the labels of senders, and those of the baseline saw none.
#[track_caller]
fn assert_labels_flow(results: &Results) {
    for name in LABELLED {
        let of = configuration(results, name);
        assert_eq!(of.oracle, Oracle::Held, "{name}: {:?}", of.notes);
    }
}

#[test]
#[ignore = "takes long: make test-rest"]
fn measures_labelled_packets_whose_labels_are_seen_to_flow() {
    let scratch = Scratch::new();
    let names = [&["none"], &LABELLED[..]].concat();
    let text = format!(
        "name = \"dsm-once\"\ntitle = \"Once\"\nkernels = [\"6.1\"]\nconfigurations = {names:?}\n\
         workloads = [\"null\", \"udp:veth\"]\nsamples = 2\n"
    );
    let (file, out) = (scratch.file("once.toml", &text), scratch.path("out"));
    let place = guests::take(2);
    scratch.run(&["study", "run", word(&file), "--out", word(&out), "--timeout", "1200"]).with(0);
    drop(place);
    let results = results(&out);
    assert_all_measured(&results);
    assert_labels_flow(&results);
}

/// Issue 17: on a machine where a daemon had run, connections, forks and execs were cheaper than without any module. The
/// daemon had drawn random numbers, and the kernel has seeded its generator for that.
#[test]
fn costs_no_less_once_a_process_has_waited_for_random_numbers() {
    let scratch = Scratch::new();
    let job = Job {
        counter: Counter::Instructions,
        confinement: Confinement::None,
        acts: Vec::new(),
        workloads: DRAWING.map(str::to_owned).to_vec(),
        commands: Vec::new(),
        samples: Some(25),
        work: None,
        padding: 0,
        settle: true,
        delays: Vec::new(),
        tunnel: false,
        labels: Vec::new(),
        logged: None,
    };
    let file = scratch.file("job.json", &serde_json::to_string(&job).unwrap());
    let machine =
        Machine::new(&scratch, "6.1", "yama", TIMEOUT).option(&["--clock", "instructions"]).file(&file, "/job");
    let twice = "tollgate bench job /job && echo && head -c 1 /dev/random > /random && exec tollgate bench job /job";
    let ended = machine.run(&["sh", "-c", twice]).with(0);
    let reports: Vec<Report> = ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [before, after] = &reports[..] else { panic!("{}", ended.stdout) };
    for (before, after) in before.workloads.iter().zip(&after.workloads) {
        let [least, later] = [before, after].map(|one| one.samples.iter().copied().fold(f64::INFINITY, f64::min));
        println!("  {}: {least} instructions, then {later}", before.name);
        assert!(least.is_finite() && (later / least - 1.0).abs() < 0.01, "{}: {least}, then {later}", before.name);
    }
}

/// The whole study, beside the figures that DSM's authors published.
#[cfg(feature = "long")]
mod whole {
    use tollgate_study::stats::quantile::quantile;

    use super::*;
    use crate::program::{report, workload};

    const REMOTE: [&str; 2] = ["udp:veth", "udp-1k:veth"];
    const LOCAL: [&str; 2] = ["udp", "udp-1k"];
    const STREAMS: [&str; 2] = ["tcp-stream", "tcp-stream:veth"];
    /// Bytes that one operation of a stream sends.
    const STREAM: f64 = 65536.0;
    /// Whose labels have goals.
    const PACKETS: [&str; 2] = ["tollgate-net-cipso", "tollgate-net-sealed"];

    /// A configuration's difference to the baseline, in percent.
    fn percent(results: &Results, name: &str, row: &str) -> f64 {
        workload(configuration(results, name), row).difference.map_or(0.0, |difference| difference.percent)
    }

    fn compare(results: &Results, name: &str, row: &str, most: f64) {
        let own = percent(results, name, row);
        report(&format!("{row} under {name}"), &format!("{own:+.1} %"), &format!("at most {most:+} %"), own <= most);
    }

    fn print_row(results: &Results, row: &str) {
        for of in &results.configurations {
            let own = workload(of, row);
            let mut samples = own.samples.clone();
            samples.sort_by(f64::total_cmp);
            let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| quantile(&samples, share).unwrap_or_default());
            let difference = percent(results, &of.name, row);
            println!(
                "  {row}: {} {:.0}, {difference:+.1} % (p50 {p50:.0}, p95 {p95:.0}, p99 {p99:.0})",
                of.name, own.figure
            );
        }
    }

    /// A stream's bytes per instruction, against the baseline's.
    fn compare_streams(results: &Results) {
        for (row, name) in STREAMS.iter().flat_map(|row| PACKETS.map(|name| (row, name))) {
            let rate = |name| STREAM / workload(configuration(results, name), row).figure;
            let change = 100.0 * (rate(name) / rate("none") - 1.0);
            let figure = format!("{change:+.1} % ({:.3} bytes per instruction)", rate(name));
            report(&format!("{row} under {name}, bytes per instruction"), &figure, "at least -5 %", change >= -5.0);
        }
    }

    /// As DSM splits its 30 %: 5 points for the hooks, 25 for the change of packets.
    fn split(results: &Results) {
        for row in LOCAL.iter().chain(&REMOTE) {
            let of = |name| percent(results, name, row);
            let (hooks, beside) = (of("tollgate-net"), of("tollgate-net-beside"));
            println!(
                "  {row}: enforcement {hooks:+.1} points, labels beside packets {:+.1}, CIPSO in packets {:+.1}, sealed {:+.1}",
                beside - hooks,
                of(PACKETS[0]) - beside,
                of(PACKETS[1]) - beside
            );
            let noise = of("capability").abs();
            let figure = format!("{beside:+.1} %, noise {noise:.2} %");
            report(&format!("{row} without a change of packets"), &figure, "in the noise", beside.abs() <= noise);
        }
    }

    #[test]
    fn tells_what_labels_cost_beside_dsms_tables() {
        let scratch = Scratch::new();
        let out = scratch.path("out");
        scratch.run(&["study", "run", "dsm", "--out", word(&out), "--timeout", "3600"]).with(0);
        let results = results(&out);
        assert_all_measured(&results);
        assert_labels_flow(&results);
        for of in configuration(&results, "none").workloads.clone() {
            print_row(&results, &of.name);
        }
        for name in PACKETS {
            REMOTE.iter().for_each(|row| compare(&results, name, row, 5.0));
            LOCAL.iter().for_each(|row| compare(&results, name, row, 4.0));
        }
        compare_streams(&results);
        split(&results);
    }
}
