//! What labels in packets cost on this machine's processor, by the wall clock: pairs of network namespaces joined by veth, some
//! with the programs of network devices and some without, measured in turns. Only what the kernel does with packets is here:
//! the hooks of sockets need enforcement, and are measured in guests (`dsm.rs`).
//!
//! It needs root, and a kernel that takes these programs (6.1 or later, with types). Traffic stays in namespaces that go with
//! the test.

mod link;
mod machines;
mod programs;
mod turns;

use self::{link::Link, programs::Datapath, turns::Turns};
use crate::program::{Scratch, report_time};

/// Rounds; in each, all links are measured, beginning with another one.
const ROUNDS: usize = 60;
/// Round trips of one measurement, and how long a stream lasts.
const ROUND_TRIPS: usize = 600;
const STREAM_MILLISECONDS: u64 = 100;

/// The links: two without programs, whose difference is the noise, and three whose packets have labels.
const LINKS: [(&str, Option<u8>); 5] =
    [("no programs", None), ("no programs again", None), ("beside", Some(1)), ("CIPSO", Some(2)), ("sealed", Some(3))];

/// A goal in percent of what the first link costs, for links whose packets are changed.
fn goal(name: &str, bound: &str) -> String {
    if ["CIPSO", "sealed"].contains(&name) { bound.to_owned() } else { "none".to_owned() }
}

#[test]
fn tells_what_labels_cost_between_namespaces_by_the_wall_clock() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "run this test as root: it makes network namespaces and loads BPF programs"
    );
    let scratch = Scratch::new();
    let datapath = Datapath::load(&scratch);
    let links: Vec<Link> = (1..).zip(LINKS).map(|(place, (_, zone))| Link::join(place, zone)).collect();
    links.iter().filter(|link| link.is_labelled()).for_each(|link| datapath.attach(link));
    let mut udp = [1, 1024].map(|size| (size, Turns::new(LINKS.len()), Turns::new(LINKS.len())));
    let mut stream = Turns::new(LINKS.len());
    for round in 0..ROUNDS {
        for turn in 0..LINKS.len() {
            let place = (round + turn) % LINKS.len();
            for (size, wall, processor) in &mut udp {
                let took = links[place].round_trips(&datapath, *size, ROUND_TRIPS);
                wall.take(place, took.wall);
                processor.take(place, took.processor);
            }
            stream.take(place, 1e9 / links[place].stream(&datapath, STREAM_MILLISECONDS));
        }
    }
    for (size, wall, processor) in &udp {
        for (place, (name, _)) in LINKS.iter().enumerate() {
            let what = format!("UDP, {size} B round trip, {name}");
            report_time(&what, &wall.tell(place, "us"), &goal(name, "at most +5 %"));
            report_time(&format!("{what}, processor time"), &processor.tell(place, "us"), "none");
        }
    }
    for (place, (name, _)) in LINKS.iter().enumerate() {
        report_time(
            &format!("TCP stream, processor time per GB, {name}"),
            &stream.tell(place, "s"),
            &goal(name, "at most +5 %"),
        );
    }
    datapath.assert_all_labelled();
}
