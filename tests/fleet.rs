//! A node of a fleet, in a guest: what its daemon takes of an agent that may be anybody, and what it decides by when both are
//! killed (`kills`).
//!
//! QEMU and a kernel are needed: without them these tests fail, and say so.

use std::{fs::File, os::fd::AsFd, path::PathBuf, process::Command, thread, time::Duration};

use tollgate_client::{
    Client, ClientError,
    fleet::{AgentState, Report},
};

use crate::program::{
    Scratch,
    inside::{Guests, is_guest, name, sh},
    machine::{own_parts, source},
};

mod beside;
mod kills;
#[cfg(feature = "long")]
mod machines;
#[cfg(feature = "long")]
mod members;
#[cfg(feature = "long")]
mod node;

/// A fleet with a node, the keys of its own and of a forger, and two stores, of which the second is the forger's.
const FLEET: &str = "\
mkdir -p /keys /etc/tollgate/fleet && cd /keys
for key in root publish approve forger; do tollgate key new $key --name $key; done
init() {
    tollgate fleet init example --store $1 --root $2 --sign $3 --root-key $3.pub --publish-key $4.pub --approve-key approve.pub
}
init /store /keys/fleet.root root publish
init /forged /keys/forged.root forger forger
cp fleet.root /etc/tollgate/fleet/root
printf 'node = \"web1\"\\ngroup = \"web\"\\n' > /etc/tollgate/fleet/node
tollgate fleet enrol web1 --store /store --root fleet.root --group web --kept /node > /digits
tollgate fleet approve web1 --key $(sed 's/.*: //' /digits) --store /store --root fleet.root --sign approve
";
/// Enforcement, and what `/two` grants and `/policy` denies.
const SECRET: &str = "\
tollgate enforce /policy </dev/null >/enforced 2>&1
echo secret > /secret
tollgate label set system_u:object_r:three:s0 /secret
";
/// The agent, as it looks once.
const LOOK: &str = "tollgate fleet agent --store /store --kept /node --once";
const REPORT: &str = "tollgate fleet report --store /store --root /keys/fleet.root --group web";
/// Kills the daemon, and waits until it is gone.
const KILL: &str = "kill -9 $(cat /run/tollgate/lock); while tollgate mode; do sleep 0.2; done >/dev/null 2>&1";

fn publish(policy: &str, more: &str) {
    let whose = if policy == "/forged-policy" {
        "/forged --root forged.root --sign forger"
    } else {
        "/store --root fleet.root --sign publish"
    };
    sh(&format!("cd /keys; tollgate fleet publish {policy} --store {whose} --group web {more}"));
}

/// Whether a visitor may read the secret: `/two` grants it, and `/policy` does not.
fn is_granted() -> bool {
    let words = ["run", "--context", "system_u:system_r:visitor:s0-s15:c0.c1023", "--", "cat", "/secret"];
    let ran = Command::new("tollgate").args(words).output().unwrap();
    println!("{}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout == b"secret\n"
}

fn report() -> Report {
    Client::connect().unwrap().fleet().unwrap()
}

/// Offers what lies in these files, as an agent that checks nothing.
fn offer(manifest: &str, policy: &str) -> Result<String, ClientError> {
    let [manifest, policy] = [manifest, policy].map(|path| File::open(path).unwrap());
    Client::connect().unwrap().offer(manifest.as_fd(), &[("policy", policy.as_fd())])
}

#[track_caller]
fn refuses(manifest: &str, policy: &str, part: &str) {
    let in_force = || Report { refused: None, refusals: 0, ..report() };
    let before = in_force();
    let error = offer(manifest, policy).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
    assert_eq!((in_force(), is_granted()), (before, true), "what was in force is");
}

#[test]
#[ignore = "takes long: make test-rest"]
fn enforces_what_its_fleet_has_signed_and_nothing_else() {
    let this = name(enforces_what_its_fleet_has_signed_and_nothing_else);
    if !is_guest() {
        let scratch = Scratch::new();
        let policy = [own_parts(), vec![source("tests/enforcer/policy.cil")]].concat();
        let more =
            |name: &str, text: &str| -> Vec<PathBuf> { [policy.clone(), vec![scratch.file(name, text)]].concat() };
        let two = more("two.cil", "(allow visitor three (file (read open getattr)))\n");
        let fleet = scratch.program().with_file_name("tollgate-fleet");
        let guests = Guests {
            kernels: &["6.1"],
            policies: &[
                (&policy, "/policy"),
                (&two, "/two"),
                (&more("forged.cil", "(type forged)\n"), "/forged-policy"),
            ],
            files: &[(&scratch.program(), "/bin/tollgate"), (&fleet, "/bin/tollgate-fleet")],
            processors: 1,
            timeout: 900,
            share_srv: false,
            tests: &[this],
        };
        return guests.play(&scratch).assert_passed(enforces_what_its_fleet_has_signed_and_nothing_else);
    }
    sh(&format!("{FLEET}{SECRET}"));
    assert!(!is_granted());
    publish("/two", "");
    sh("cp /store/current/web /one-manifest");
    sh(&format!("{LOOK}; {REPORT}"));
    assert!(is_granted(), "{:?}", report());
    assert_eq!((report().number, report().mode.as_deref()), (1, Some("enforcing")));
    publish("/two", "");
    sh(&format!("{LOOK}; {REPORT}"));
    assert_eq!(report().number, 2);

    (0..3).for_each(|_| publish("/forged-policy", ""));
    refuses("/forged/current/web", "/forged-policy", "a key that may not sign it");
    refuses("/one-manifest", "/two", "manifest 1 where 2 was seen");
    sh("printf 'system_u:system_r:visitor:s0\\tsystem_u:object_r:three:s0\\tfile\\t-read\\n' > /denied");
    publish("/two", "--sanity /denied");
    refuses("/store/current/web", "/two", "the parts are not those");
    assert_eq!(Command::new("sh").args(["-c", LOOK]).status().unwrap().code(), Some(2), "a question fails");
    assert!(is_granted() && report().number == 2, "{:?}", report());

    // The node begins with it again, without the store.
    sh(&format!("mv /store /away; {KILL}; tollgate stop --force"));
    sh("tollgate enforce /policy </dev/null >/enforced 2>&1");
    thread::sleep(Duration::from_secs(1));
    assert!(is_granted(), "{:?}", report());
    assert_eq!((report().number, report().mode.as_deref()), (2, Some("enforcing")));
    notices_its_agent();
}

/// Waits until the daemon says so of the agent, and whether the node knows what is newest.
#[track_caller]
fn awaits(state: AgentState, fresh: bool) {
    let is_so = |report: &Report| report.agent.state == state && report.stale_since.is_none() == fresh;
    (0..600).find(|_| {
        thread::sleep(Duration::from_millis(100));
        is_so(&report())
    });
    assert!(is_so(&report()), "{:?}", report());
}

/// An agent begins without the store, finds it, and is killed.
fn notices_its_agent() {
    let words = ["agent", "--store", "/store", "--kept", "/node", "--spread", "0s"];
    let mut agent = Command::new("tollgate-fleet").args(words).spawn().unwrap();
    awaits(AgentState::Runs, false);
    sh("mv /away /store");
    awaits(AgentState::Runs, true);
    assert!(report().agent.failures > 0);
    agent.kill().unwrap();
    agent.wait().unwrap();
    awaits(AgentState::Ended, false);
    sh("tollgate status | grep 'agent *has ended'; tollgate status --metrics | grep -x 'tollgate_fleet_agent_up 0'");
}
