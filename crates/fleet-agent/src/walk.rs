//! The commands as a user calls them, one after the other, on a store in a folder.

use std::{fs, path::Path, pin::pin, task};

use clap::Parser;
use tollgate_fleet::{
    Folder, Hash, Kept, Signed, State, Time,
    part::Part,
    stage::Mode,
    store::{Kind, Store},
    zones::Zones,
};
use tollgate_policy::{
    built::{Built, Section},
    sepol::{self, CilFile, Options},
    sources::{self, Sources},
};
use tollgate_signing::SecretKey;

use crate::{Arguments, run};

struct Fleet(tempfile::TempDir);

impl Fleet {
    /// A fleet with keys `root`, `publish`, `approve` and `other`, and two policies.
    fn new() -> Self {
        let fleet = Self(tempfile::tempdir().unwrap());
        for name in ["root", "publish", "approve", "other"] {
            SecretKey::random(name).unwrap().make(&fleet.path(name)).unwrap();
        }
        for name in ["one", "two"] {
            fs::write(fleet.path(name), policy(name)).unwrap();
        }
        fleet.does(
            "init example STORE --sign DIR/root --root-key DIR/root.pub --publish-key DIR/publish.pub \
             --approve-key DIR/approve.pub",
        );
        fleet
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command, in which `STORE` stands for its options and `DIR/` for the folder.
    fn run(&self, command: &str) -> Result<bool, String> {
        let folder = self.0.path().to_str().unwrap();
        let command = command.replace("STORE", "--store DIR/store --root DIR/root.fleet").replace("DIR", folder);
        let words = ["tollgate-fleet"].into_iter().chain(command.split_ascii_whitespace());
        let arguments = Arguments::try_parse_from(words).map_err(|cause| cause.to_string())?;
        let code = now(run(&arguments.command)).map_err(|cause| format!("{cause:#}"))?;
        Ok(code == std::process::ExitCode::SUCCESS)
    }

    #[track_caller]
    fn does(&self, command: &str) {
        assert_eq!(self.run(command), Ok(true), "{command}");
    }

    #[track_caller]
    fn refuses(&self, command: &str, part: &str) {
        let error = self.run(command).unwrap_err();
        assert!(error.contains(part), "{command}: {error}");
    }

    /// Enrols a node and approves it.
    fn enrol(&self, node: &str) {
        self.does(&format!("enrol {node} STORE --group web --kept DIR/{node}"));
        let key = SecretKey::read(&self.path(node).join("key")).unwrap().public().digits();
        self.does(&format!("approve {node} --key {key} STORE --sign DIR/approve"));
    }

    /// Says in the name of a node's daemon that what it has taken is in force.
    fn enforces(&self, node: &str) {
        let kept = Kept::open(&self.path(node)).unwrap();
        let newest = kept.newest().unwrap();
        let manifest = newest.manifest();
        let state = State {
            fleet: manifest.fleet.clone(),
            node: node.parse().unwrap(),
            sequence: 9,
            made: Time::now(),
            number: manifest.number,
            manifest: Some(newest.hash()),
            generation: Some(manifest.generation()),
            tables: manifest.part(Part::Policy(Section::Tables)).map(|entry| entry.hash),
            mode: Some(Mode::Enforcing),
            hooks: 150,
            unenforced: 0,
            failures: 0,
            denials: 0,
        };
        let mut document = Signed::new(state);
        document.sign(&SecretKey::read(&self.path(node).join("key")).unwrap());
        let store = Folder::new(self.path("store"));
        now(store.put(Kind::State, &node.parse().unwrap(), &document.bytes())).unwrap();
    }
}

/// What a future returns that never waits.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut task::Context::from_waker(task::Waker::noop())) {
        task::Poll::Ready(output) => output,
        task::Poll::Pending => panic!("it waits"),
    }
}

pub(crate) fn policy(name: &str) -> Vec<u8> {
    let text = include_bytes!("../../policy/src/dump/everything.cil").to_vec();
    let file = CilFile { name: name.into(), text };
    Built::from_compiled(sepol::compile(&[file], &Options::default()).unwrap()).unwrap().to_bytes()
}

fn taken(node: &Path) -> Vec<u8> {
    fs::read(node.join("generations/current/policy")).unwrap()
}

#[test]
fn reports_convergence_only_when_each_node_has_proven_it() {
    let fleet = Fleet::new();
    fleet.does("publish DIR/one STORE --sign DIR/publish --group web");
    fleet.enrol("a");
    fleet.enrol("b");
    assert_eq!(fleet.run("report STORE --group web"), Ok(false), "silent");
    for node in ["a", "b"] {
        fleet.does(&format!("agent --store DIR/store --kept DIR/{node} --once"));
        assert!(taken(&fleet.path(node)) == policy("one"), "byte by byte");
    }
    assert_eq!(fleet.run("report STORE --group web"), Ok(false), "taken, and not in force");
    fleet.enforces("a");
    assert_eq!(fleet.run("report STORE --group web"), Ok(false), "one of two");
    fleet.enforces("b");
    fleet.does("report STORE --group web --json --evidence DIR/evidence");
    // Somebody else comes to the same with the evidence alone, and not if it was changed.
    fs::remove_dir_all(fleet.path("store/states")).unwrap();
    assert_eq!(fleet.run("report STORE --group web"), Ok(false));
    fleet.does("report STORE --group web --check DIR/evidence");
    let evidence = fs::read_to_string(fleet.path("evidence")).unwrap();
    fs::write(fleet.path("evidence"), evidence.replace("failures 0", "failures 1")).unwrap();
    assert_eq!(fleet.run("report STORE --group web --check DIR/evidence"), Ok(false));
    fleet.does("revoke b STORE --sign DIR/approve");
    fleet.enforces("a");
    fleet.enforces("b");
    fleet.does("report STORE --group web");
}

#[test]
fn refuses_what_the_wrong_keys_sign() {
    let fleet = Fleet::new();
    for key in ["root", "approve", "other"] {
        fleet.refuses(&format!("publish DIR/one STORE --sign DIR/{key} --group web"), "of a key that may not sign it");
    }
    fleet.refuses("publish DIR/root STORE --sign DIR/publish --group web", "build it again");
    fleet.does("enrol a STORE --group web --kept DIR/a");
    let key = SecretKey::read(&fleet.path("a/key")).unwrap().public().digits();
    fleet.refuses(&format!("approve a --key {key} STORE --sign DIR/publish"), "of a key that may not sign it");
    fleet.refuses(&format!("approve a --key {} STORE --sign DIR/approve", &key[..8]), "compare 16 digits");
    fleet.refuses(&format!("approve b --key {key} STORE --sign DIR/approve"), "has not asked");
    fleet.refuses("keys STORE --sign DIR/other --root-key DIR/other.pub", "signed by 0 of the keys that may");
}

#[test]
fn rolls_out_by_stages_and_back() {
    let fleet = Fleet::new();
    fleet.does("publish DIR/one STORE --sign DIR/publish --group web");
    fleet.enrol("a");
    let look = || fleet.run("agent --store DIR/store --kept DIR/a --once");
    assert_eq!(look(), Ok(true));
    fleet.refuses("rollback STORE --sign DIR/publish --group web", "none to go back to");
    let stages =
        ["group canary permissive hold 0 denials 5 missing 0", "share 100 enforcing hold 0 denials 0 missing 0"];
    let root = fleet.0.path().to_str().unwrap().to_owned();
    let words =
        format!("publish {root}/two --store {root}/store --root {root}/root.fleet --sign {root}/publish --group web");
    let words =
        ["tollgate-fleet"].into_iter().chain(words.split(' ')).chain(["--stage", stages[0], "--stage", stages[1]]);
    now(run(&Arguments::try_parse_from(words).unwrap().command)).unwrap();
    assert_eq!(look(), Ok(true));
    assert!(taken(&fleet.path("a")) == policy("one"), "it is not a canary");
    fleet.does("rollout pause STORE --sign DIR/publish --group web");
    fleet.refuses("rollout promote STORE --sign DIR/publish --group web", "paused");
    fleet.does("rollout resume STORE --sign DIR/publish --group web");
    fleet.does("rollout promote STORE --sign DIR/publish --group web");
    assert_eq!(look(), Ok(true));
    assert!(taken(&fleet.path("a")) == policy("two"));
    let newest = fs::read(fleet.path("store/current/web")).unwrap();
    fleet.does("rollback STORE --sign DIR/publish --group web");
    assert_eq!(look(), Ok(true));
    assert!(taken(&fleet.path("a")) == policy("one"));
    // A store that puts the other one back is seen, and changes nothing.
    fs::write(fleet.path("store/current/web"), newest).unwrap();
    assert!(look().unwrap_err().contains("who has put an older one back"));
    assert!(taken(&fleet.path("a")) == policy("one"));
}

#[test]
fn goes_on_with_new_keys_and_takes_nothing_that_the_old_ones_have_signed() {
    let fleet = Fleet::new();
    fleet.does("publish DIR/one STORE --sign DIR/publish --group web");
    fleet.enrol("a");
    let look = || fleet.run("agent --store DIR/store --kept DIR/a --once");
    assert_eq!(look(), Ok(true));
    fleet.does("keys STORE --sign DIR/root --publish-key DIR/other.pub");
    assert!(look().unwrap_err().contains("which 2 has replaced"));
    fleet.refuses("rollout renew STORE --sign DIR/other --group web", "publish a policy");
    fleet.refuses("publish DIR/two STORE --sign DIR/publish --group web", "of a key that may not sign it");
    fleet.does("publish DIR/two STORE --sign DIR/other --group web");
    assert_eq!(look(), Ok(true));
    assert!(taken(&fleet.path("a")) == policy("two"));
}

#[test]
fn goes_on_with_the_last_good_generation_whatever_lies_in_the_store() {
    let fleet = Fleet::new();
    fleet.does("publish DIR/one STORE --sign DIR/publish --group web");
    fleet.enrol("a");
    let look = || fleet.run("agent --store DIR/store --kept DIR/a --once");
    assert_eq!(look(), Ok(true));
    fleet.does("publish DIR/two STORE --sign DIR/publish --group web");
    let pieces = fleet.path("store/pieces");
    let kept: Vec<_> = fs::read_dir(&pieces).unwrap().map(|entry| entry.unwrap().path()).collect();
    let bytes: Vec<_> = kept.iter().map(|path| fs::read(path).unwrap()).collect();
    for (path, bytes) in kept.iter().zip(&bytes) {
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }
    assert!(look().unwrap_err().contains("not the one that the manifest names"));
    assert!(taken(&fleet.path("a")) == policy("one"), "all of the one before");
    assert_eq!(Kept::open(&fleet.path("a")).unwrap().newest().map(|newest| newest.manifest().number), Some(1));
    for (path, bytes) in kept.iter().zip(&bytes) {
        assert!(path.ends_with(Hash::of(bytes).to_string()) || bytes.starts_with(b"tollgate fleet manifest"));
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(look(), Ok(true));
    assert!(taken(&fleet.path("a")) == policy("two"));
}

#[test]
fn takes_what_several_people_have_signed_in_turn_and_nothing_that_too_few_have() {
    let fleet = Fleet::new();
    for (what, role) in [("root", "root"), ("publish", "publish"), ("approve", "approve")] {
        let two = "--publish-key DIR/publish.pub --publish-key DIR/other.pub --publish-threshold 2 \
                   --approve-key DIR/approve.pub --approve-key DIR/other.pub --approve-threshold 2";
        match what {
            "root" => fleet.does(&format!("keys STORE {two} --draft DIR/root.draft")),
            "publish" => fleet.does("publish DIR/one STORE --group web --sign DIR/publish --draft DIR/publish.draft"),
            _ => {
                fleet.does("enrol a STORE --group web --kept DIR/a");
                let key = SecretKey::read(&fleet.path("a/key")).unwrap().public().digits();
                fleet.does(&format!("approve a --key {key} STORE --draft DIR/approve.draft"));
            }
        }
        let draft = format!("DIR/{what}.draft");
        if what == "root" {
            fleet.refuses(&format!("submit {draft} STORE"), "signed by 0 of the keys that may");
        } else {
            fleet.does(&format!("sign {draft} --sign DIR/other"));
        }
        if what == "approve" {
            fleet.refuses(&format!("submit {draft} STORE"), "signed by 1 of the keys that may, and 2 must");
        }
        fleet.does(&format!("sign {draft} --sign DIR/{role}"));
        fleet.does(&format!("submit {draft} STORE"));
        // It counts once.
        assert!(fleet.run(&format!("submit {draft} STORE")).is_err(), "{what} again");
        fleet.refuses(&format!("sign DIR/{role}.pub --sign DIR/{role}"), "is no draft");
    }
    fleet.does("agent --store DIR/store --kept DIR/a --once");
    assert!(taken(&fleet.path("a")) == policy("one"));
    // Nothing is overtaken, and nobody else's signature helps.
    let next = |number: u32| format!("publish DIR/two STORE --group web --sign DIR/publish --draft DIR/next{number}");
    (1..4).for_each(|number| fleet.does(&next(number)));
    fleet.does("sign DIR/next1 --sign DIR/other");
    fleet.does("sign DIR/next2 --sign DIR/approve");
    fleet.does("sign DIR/next3 --sign DIR/other");
    fleet.refuses("submit DIR/next2 STORE", "of a key that may not sign it");
    fleet.does("submit DIR/next1 STORE");
    fleet.refuses("submit DIR/next3 STORE", "was published after this draft");
    fleet.refuses(&next(1), "next1");
}

#[test]
fn enrols_by_a_token_once_and_by_no_other_one() {
    let fleet = Fleet::new();
    let token = |node: &str, out: &str| format!("token {node} --group web --tokens DIR/tokens --out DIR/{out}");
    let enrol = |node: &str, kept: &str, token: &str| {
        format!("enrol {node} STORE --group web --kept DIR/{kept} --token DIR/{token}")
    };
    let approve = "approve STORE --sign DIR/approve --tokens DIR/tokens";
    for node in ["a", "b"] {
        fleet.does(&token(node, &format!("{node}.token")));
    }
    let secret = fs::read_to_string(fleet.path("a.token")).unwrap();
    let digits = secret.split_whitespace().last().unwrap();
    assert!(
        !fs::read_to_string(fleet.path("tokens")).unwrap().contains(digits),
        "what the administrator keeps is public"
    );
    fleet.refuses(approve, "no node has asked with a token");
    fs::copy(fleet.path("a.token"), fleet.path("stolen")).unwrap();
    fleet.does(&enrol("a", "a", "a.token"));
    assert!(!fleet.path("a.token").exists(), "it is used");
    // A token of another node is none.
    fs::copy(fleet.path("b.token"), fleet.path("b2")).unwrap();
    fleet.does(&enrol("c", "c", "b2"));
    fleet.does(approve);
    fleet.does("publish DIR/one STORE --sign DIR/publish --group web");
    fleet.does("agent --store DIR/store --kept DIR/a --once");
    fleet.enforces("a");
    fleet.does("report STORE --group web");
    assert_eq!(fs::read_to_string(fleet.path("tokens")).unwrap().lines().count(), 1, "that of b is there still");
    // Whoever has stolen it comes too late.
    fleet.does(&enrol("a", "thief", "stolen"));
    fleet.refuses(approve, "no node has asked with a token");
    fleet.enforces("a");
    fleet.does("report STORE --group web");
    fleet.refuses(&token("d", "b.token"), "exists");
    fleet.refuses("approve STORE --sign DIR/approve --tokens DIR/one", "is no file of tokens");
    fleet.refuses("approve STORE --sign DIR/approve --tokens DIR/root.pub", "root.pub:1: no token's line");
    fleet.refuses("token d --group web --tokens DIR/one --out DIR/d.token", "is no file of tokens");
    assert!(!fleet.path("d.token").exists() && fs::read(fleet.path("one")).unwrap() == policy("one"));
}

const ZONES: &str = r#"
[[zone]]
name = "web"
groups = ["web"]
addresses = ["10.1.0.0/16"]
domains = ["httpd.t"]

[[zone]]
name = "db"
groups = ["db"]
addresses = ["10.2.0.0/16"]
domains = ["db.t"]
"#;

/// Tollgate's own policy with other statements.
fn own_policy(more: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/tollgate");
    let Sources::Cil { mut files, .. } = sources::read(&[folder]).unwrap() else { panic!("the policy is CIL") };
    files.push(CilFile { name: "more.cil".into(), text: more.into() });
    Built::from_compiled(sepol::compile(&files, &Options::default()).unwrap()).unwrap().to_bytes()
}

#[test]
fn refuses_to_publish_a_policy_that_does_not_keep_zones_apart() {
    let fleet = Fleet::new();
    let base = own_policy("");
    let statements = Zones::parse(ZONES.as_bytes()).unwrap().statements(&base).unwrap();
    let files =
        [("zones", ZONES.as_bytes()), ("base", &base), ("zoned", &own_policy(&statements)), ("asked", b"# written")];
    files.iter().for_each(|(name, content)| fs::write(fleet.path(name), content).unwrap());
    fleet.does("zones DIR/zones DIR/base --cil");
    assert_eq!(fleet.run("zones DIR/zones DIR/base"), Ok(false));
    fleet.does("zones DIR/zones DIR/zoned");
    fleet.does("zones DIR/zones DIR/zoned --json");
    fleet.refuses("zones DIR/root DIR/zoned", "root: ");
    fleet.refuses("zones DIR/zones DIR/nothing", "name a file that is there");
    let publish = |policy: &str, group: &str| {
        format!("publish DIR/{policy} STORE --sign DIR/publish --group {group} --sanity DIR/asked --zones DIR/zones")
    };
    fleet.refuses(&publish("base", "web"), "was not built with the zones of");
    fleet.refuses(&publish("zoned", "mail"), "has the group mail: add it to one");
    fleet.does(&publish("zoned", "web"));
    fleet.enrol("a");
    fleet.does("agent --store DIR/store --kept DIR/a --once");
    let asked = fs::read_to_string(fleet.path("a/generations/current/sanity")).unwrap();
    let question = "system_u:system_r:httpd.t:s0\tsystem_u:system_r:db.t:s0\tpeer\t-recv\n";
    assert!(asked.starts_with("# written\n") && asked.contains(question), "{asked}");
}
