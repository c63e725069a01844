//! The guard's database and the labelled networks of a generation, in a guest: in force with its policy, or not at all.

use std::process::Command;

use serde_json::Value;
use tollgate_client::Client;

use super::{FLEET, KILL, LOOK, REPORT, publish, report};
use crate::program::{
    Scratch,
    inside::{Guests, is_guest, name, sh},
    machine::{own_parts, source},
};

/// Two databases that differ from the machine's own, and a file of labelled networks.
const FILES: &str = "\
for mode in learn warn; do
    tollgate guard save /$mode && tollgate guard mode daemon $mode --database /$mode
done
printf '[[zone]]\\naddresses = [\"10.99.0.0/16\"]\\n' > /network
printf 'system_u:system_r:visitor:s0\\tsystem_u:object_r:three:s0\\tfile\\tread\\n' > /denied
";
const START: &str = "tollgate enforce --guard /policy </dev/null >/enforced 2>&1";

/// What is in force beside the policy: how the guard takes daemons that it does not know, and the file of networks.
fn in_force() -> (String, String) {
    let status = Command::new("tollgate").args(["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let guard = status["guard"]["daemon"].as_str().expect("a guard").to_owned();
    (guard, Client::connect().unwrap().network().unwrap().file)
}

/// The agent's error.
fn refused() -> String {
    let looked = Command::new("sh").args(["-c", LOOK]).output().unwrap();
    assert_eq!(looked.status.code(), Some(2));
    String::from_utf8(looked.stderr).unwrap()
}

#[test]
#[ignore = "takes long: make test-rest"]
fn puts_guard_and_networks_of_a_generation_in_force_and_takes_them_back() {
    if !is_guest() {
        return in_guest(puts_guard_and_networks_of_a_generation_in_force_and_takes_them_back);
    }
    sh(&format!("{FLEET}{FILES}{START}"));
    let own = ("off".to_owned(), "/etc/tollgate/network.toml".to_owned());
    assert_eq!(in_force(), own);
    publish("/policy", "--guard /learn --network /network");
    sh(&format!("{LOOK}; {REPORT}"));
    let generation = report().generation.expect("a generation");
    let first = ("learn".to_owned(), format!("/var/lib/tollgate/accepted/generations/{generation}/network"));
    assert_eq!(in_force(), first);

    // A question fails: nothing of the next one is in force. The machine's administrator changes nothing either.
    publish("/policy", "--guard /warn --sanity /denied");
    assert!(refused().contains("a sanity question fails"));
    let added = Command::new("tollgate").args(["guard", "mode", "daemon", "off"]).output().unwrap();
    let said = String::from_utf8_lossy(&added.stderr).into_owned();
    assert!(added.status.code() == Some(2) && said.contains("tollgate fleet publish --guard"), "{said}");
    sh(&format!("{KILL}; {START}"));
    assert_eq!((in_force(), report().number, report().generation), (first, 1, Some(generation)));

    // Without a guard nothing of it is in force; and a generation without parts leaves the machine its own.
    publish("/policy", "");
    sh(&format!("{LOOK}; {REPORT}"));
    assert_eq!(in_force(), own);
    sh(&format!("{KILL}; tollgate guard stop; tollgate enforce /policy </dev/null >/enforced 2>&1"));
    publish("/policy", "--guard /warn");
    assert!(refused().contains("the guard does not run here"));
    assert_eq!(report().number, 3);
}

/// Fails unless a test passes in a guest of its own.
fn in_guest(test: impl Fn()) {
    let scratch = Scratch::new();
    let policy = [own_parts(), vec![source("tests/enforcer/policy.cil")]].concat();
    let fleet = scratch.program().with_file_name("tollgate-fleet");
    let guests = Guests {
        kernels: &["6.1"],
        policies: &[(&policy, "/policy")],
        files: &[(&scratch.program(), "/bin/tollgate"), (&fleet, "/bin/tollgate-fleet")],
        processors: 1,
        timeout: 900,
        share_srv: false,
        tests: &[name(&test)],
    };
    guests.play(&scratch).assert_passed(test);
}
