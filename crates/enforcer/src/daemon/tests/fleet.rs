//! What an agent offers over the socket, and what becomes of it.

use std::{fs, path::PathBuf, time::Duration};

use tollgate_client::{
    fleet::{AgentState, Looked, Report},
    protocol::Refusal,
};
use tollgate_fleet::{
    Generation, Hash, Kept, Manifest, Root, Signed, Time,
    document::Text,
    durable::cut,
    manifest::Progress,
    part::Part,
    root::Role,
    stage::{Mode as StageMode, Stage},
};
use tollgate_policy::{
    built::Built,
    sepol::{self, CilFile, Options},
};
use tollgate_signing::SecretKey;

use super::*;

mod beside;

const QUESTION: &str = "alice:system_r:init:s0\talice:object_r:etc:s0\tfile\tread\n";

/// A node of a fleet whose root key is 1, and whose publishing key is 2.
struct Node {
    running: Running,
    folder: TempDir,
}

fn key(seed: u8) -> SecretKey {
    SecretKey::of_seed(&format!("key{seed}"), [seed; 32]).unwrap()
}

fn signed<T: Text>(content: T, seeds: &[u8]) -> Vec<u8> {
    let mut document = Signed::new(content);
    seeds.iter().for_each(|seed| document.sign(&key(*seed)));
    document.bytes()
}

fn root(version: u64, publish: u8) -> Root {
    let role = |seed| Role::new(1, vec![key(seed).public()]).unwrap();
    let expires = Time::now().after(Duration::from_secs(1000));
    let (root, publish, approve) = (role(1), role(publish), role(3));
    Root { fleet: "example".parse().unwrap(), version, made: Time::now(), expires, root, publish, approve }
}

fn policy(name: &str) -> Vec<u8> {
    let text = include_bytes!("../../../../policy/src/dump/everything.cil").to_vec();
    let file = CilFile { name: name.into(), text };
    Built::from_compiled(sepol::compile(&[file], &Options::default()).unwrap()).unwrap().to_bytes()
}

fn manifest(number: u64, policy: &[u8]) -> Manifest {
    let generation = Generation::new(policy, vec![(Part::Sanity, QUESTION.into())]).unwrap();
    let (parts, _) = generation.pack(|content| Ok(content.to_vec())).unwrap();
    Manifest {
        fleet: "example".parse().unwrap(),
        group: "web".parse().unwrap(),
        root: 1,
        number,
        before: None,
        base: None,
        made: Time::now(),
        expires: Time::now().after(Duration::from_secs(500)),
        parts,
        stages: vec![Stage::everybody(StageMode::Enforcing)],
        progress: Progress::Open(1),
    }
}

fn bytes(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file.rewind().unwrap();
    file
}

/// The fleet as the daemon finds it when it starts.
fn open(folder: &TempDir) -> Fleet {
    Fleet::open(&folder.path().join("etc"), &folder.path().join("kept")).unwrap().unwrap()
}

/// A node as its administrator has described it.
fn configured() -> (TempDir, Fleet) {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("etc");
    fs::create_dir(&settings).unwrap();
    fs::write(settings.join("node"), "node = \"web1\"\ngroup = \"web\"\nagent = 987\n").unwrap();
    fs::write(settings.join("root"), signed(root(1, 2), &[1])).unwrap();
    let fleet = open(&folder);
    (folder, fleet)
}

/// The policy with which the next daemon starts.
fn first(folder: &TempDir) -> Option<PathBuf> {
    crate::daemon::fleet::first(&folder.path().join("etc"), &folder.path().join("kept")).map(|files| files.policy)
}

impl Node {
    fn new() -> Self {
        let (folder, fleet) = configured();
        assert!(fleet.is_agent(987) && !fleet.is_agent(988));
        let node = Self { running: Running::of(Some(fleet)), folder };
        assert_eq!(node.first(), None);
        node
    }

    /// The policy with which the next daemon starts.
    fn first(&self) -> Option<PathBuf> {
        first(&self.folder)
    }

    /// Offers a manifest with a policy and questions.
    fn offer(&self, manifest: &[u8], policy: &[u8]) -> Result<String, ClientError> {
        let (manifest, policy, sanity) = (bytes(manifest), bytes(policy), bytes(QUESTION.as_bytes()));
        self.running.client().offer(manifest.as_fd(), &[("policy", policy.as_fd()), ("sanity", sanity.as_fd())])
    }

    #[track_caller]
    fn refuses(&self, manifest: &[u8], policy: &[u8], part: &str) {
        let (report, current, done) = (self.report(), self.current(), self.running.done());
        let error = self.offer(manifest, policy).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        let now = self.report();
        assert_eq!(now.refusals, report.refusals + 1, "it is counted");
        let now = Report { refused: report.refused.clone(), refusals: report.refusals, ..now };
        assert_eq!((now, self.current(), self.running.done()), (report, current, done), "nothing is done");
    }

    fn report(&self) -> Report {
        self.running.client().fleet().unwrap()
    }

    fn current(&self) -> Option<PathBuf> {
        fs::read_link(self.folder.path().join("kept/generations/current")).ok()
    }
}

#[test]
fn takes_what_the_fleet_has_signed_and_starts_with_it_next_time() {
    let (node, one) = (Node::new(), policy("one"));
    let (offered, hash) = (manifest(7, &one), manifest(7, &one).generation().to_string());
    assert_eq!(node.offer(&signed(offered.clone(), &[2]), &one).unwrap(), "manifest 7: enforcing");
    let done = [format!("reload {} false 1", Hash::of(&one)), "mode enforcing None".to_owned()];
    assert_eq!(node.running.done(), done);
    let Report { number, generation, tables, .. } = node.report();
    assert_eq!((number, generation), (7, Some(hash.clone())));
    assert_eq!(tables, Some(Hash::of(b"tables").to_string()));
    assert_eq!(node.current(), Some(hash.into()));
    assert!(fs::read(node.first().unwrap()).unwrap() == one, "byte by byte");
    // A later manifest of the same generation changes nothing but the number.
    assert_eq!(node.offer(&signed(Manifest { number: 8, ..offered }, &[2]), &one).unwrap(), "manifest 8: enforcing");
    assert_eq!((node.running.done().len(), node.report().number), (2, 8));
}

#[test]
fn refuses_what_is_forged_older_changed_or_not_for_this_node() {
    let (node, one, two) = (Node::new(), policy("one"), policy("two"));
    let good = manifest(7, &one);
    node.offer(&signed(good.clone(), &[2]), &one).unwrap();
    node.refuses(&signed(manifest(8, &two), &[3]), &two, "of a key that may not sign it");
    node.refuses(&signed(manifest(8, &two), &[]), &two, "signed by 0 of the keys");
    node.refuses(&signed(manifest(6, &two), &[2]), &two, "manifest 6 where 7 was seen");
    node.refuses(&signed(manifest(7, &two), &[2]), &two, "another manifest with number 7");
    node.refuses(&signed(Manifest { group: "other".parse().unwrap(), ..manifest(8, &two) }, &[2]), &two, "group other");
    node.refuses(&signed(Manifest { fleet: "other".parse().unwrap(), ..manifest(8, &two) }, &[2]), &two, "fleet other");
    node.refuses(&signed(Manifest { root: 2, ..manifest(8, &two) }, &[2]), &two, "a manifest of root file 2");
    let expired = Manifest { made: Time::of_seconds(1), expires: Time::of_seconds(2), ..manifest(8, &two) };
    node.refuses(&signed(expired, &[2]), &two, "has expired");
    let next = signed(manifest(8, &two), &[2]);
    node.refuses(&next, &one, "not those that the manifest names");
    node.refuses(&next, &two[..two.len() - 1], "");
    node.refuses(&next, &[&two[..], &[0; 1 << 17]].concat(), "longer than");
    node.refuses(b"junk", &two, "");
    let (only, policy) = (bytes(&next), bytes(&two));
    let mut client = node.running.client();
    assert_eq!(errno(client.offer(only.as_fd(), &[])), libc::ENODATA);
    let (only, guard) = (bytes(&next), bytes(b"guard"));
    let parts = [("policy", policy.as_fd()), ("guard", guard.as_fd())];
    assert_eq!(errno(client.offer(only.as_fd(), &parts)), libc::EBADMSG, "a part that the manifest does not name");
}

#[test]
fn records_what_is_forged_once_per_second() {
    let (node, one) = (Node::new(), policy("one"));
    let records = || node.running.machine.0.lock().unwrap().records.clone();
    (0..3).for_each(|_| drop(node.offer(&signed(manifest(8, &one), &[3]), &one).unwrap_err()));
    assert!(
        records()[0].contains("? false ") && records()[0].contains("of a key that may not sign it"),
        "{:?}",
        records()
    );
    std::thread::sleep(Duration::from_millis(2500));
    assert!(records().len() == 2 && records()[1].ends_with("(1 more before it)"), "{:?}", records());
    node.running.client().offer_root(bytes(&signed(root(2, 4), &[3])).as_fd()).unwrap_err();
    assert_eq!(records().len(), 3);
}

#[test]
fn keeps_the_one_before_when_a_sanity_question_fails() {
    let (node, one, two) = (Node::new(), policy("one"), policy("two"));
    node.offer(&signed(manifest(7, &one), &[2]), &one).unwrap();
    node.running.machine.0.lock().unwrap().fails = true;
    node.refuses(&signed(manifest(8, &two), &[2]), &two, "a sanity question fails");
    node.running.machine.0.lock().unwrap().fails = false;
    assert_eq!(node.report().number, 7, "so the publisher may go back with 8");
}

#[test]
fn follows_new_root_files_and_believes_the_old_keys_no_more() {
    let (node, one) = (Node::new(), policy("one"));
    let offer = |content: Vec<u8>| node.running.client().offer_root(bytes(&content).as_fd());
    assert_eq!(errno(offer(signed(root(2, 4), &[3]))), libc::EACCES);
    assert_eq!(offer(signed(root(2, 4), &[1])).unwrap(), 2);
    assert_eq!(Kept::open(&node.folder.path().join("kept")).unwrap().root().version, 2);
    let by = |seed| signed(Manifest { root: 2, ..manifest(1, &one) }, &[seed]);
    node.refuses(&by(2), &one, "of a key that may not sign it");
    node.refuses(&signed(manifest(1, &one), &[2]), &one, "which 2 has replaced");
    node.offer(&by(4), &one).unwrap();
}

#[test]
fn waits_for_its_stage_and_tries_in_shadow_without_changing_what_it_starts_with() {
    let (node, one, two) = (Node::new(), policy("one"), policy("two"));
    node.offer(&signed(manifest(7, &one), &[2]), &one).unwrap();
    let before = node.current();
    let canary = vec![
        "group canary shadow hold 0 denials 0 missing 0".parse().unwrap(),
        "share 100 shadow hold 0 denials 0 missing 0".parse().unwrap(),
    ];
    let staged = Manifest { stages: canary, ..manifest(8, &two) };
    let said = node.offer(&signed(staged.clone(), &[2]), &two).unwrap();
    assert_eq!((said.as_str(), node.report().number), ("manifest 8: it is not this node's turn", 8));
    let open = Manifest { number: 9, progress: Progress::Open(2), ..staged };
    assert_eq!(node.offer(&signed(open, &[2]), &two).unwrap(), "manifest 9: shadow");
    assert_eq!((node.running.done().len(), node.current()), (3, before));
    assert_eq!(node.running.done()[2], "shadow");
    let Report { mode, generation, tables, .. } = node.report();
    assert_eq!((mode.as_deref(), generation), (Some("shadow"), Some(manifest(8, &two).generation().to_string())));
    assert_eq!(tables, Some(Hash::of(b"candidate").to_string()));
    // The trial is over as soon as it is not this node's turn any more.
    let aborted = Manifest { number: 10, progress: Progress::Open(1), ..manifest(8, &two) };
    let stages = vec![
        "group canary shadow hold 0 denials 0 missing 0".parse().unwrap(),
        "share 100 shadow hold 0 denials 0 missing 0".parse().unwrap(),
    ];
    node.offer(&signed(Manifest { stages, ..aborted }, &[2]), &two).unwrap();
    assert_eq!(node.running.done().last().unwrap(), "no shadow");
    assert_eq!(node.report().generation, Some(manifest(7, &one).generation().to_string()));
}

#[test]
fn reports_when_its_agent_looked_and_why_that_failed() {
    let (node, one) = (Node::new(), policy("one"));
    assert_eq!((node.report().agent.state, node.report().stale_since), (AgentState::Awaited, None));
    let expires = manifest(7, &one).expires.seconds();
    node.offer(&signed(manifest(7, &one), &[2]), &one).unwrap();
    assert!(node.report().expires.unwrap() >= expires);
    let looked = |next, cause: Option<&str>| {
        node.running.client().looked(Looked { next, cause: cause.map(str::to_owned) }).unwrap();
        node.report()
    };
    let good = looked(Some(20), None);
    assert_eq!((good.agent.state, good.agent.failures, good.stale_since), (AgentState::Runs, 0, None));
    let failed = looked(Some(20), Some("the store does not answer"));
    assert_eq!((failed.agent.state, failed.agent.failures), (AgentState::Runs, 1));
    assert_eq!(failed.agent.cause.as_deref(), Some("the store does not answer"));
    assert!(failed.stale_since.unwrap() <= failed.agent.looked.unwrap());
    assert_eq!(looked(None, None).agent.state, AgentState::Once);
}

#[test]
fn answers_no_agent_of_a_machine_without_fleet() {
    let running = Running::new();
    assert_eq!(errno(running.client().fleet()), libc::ENOENT);
}

#[test]
fn never_puts_in_force_what_does_not_answer_its_own_questions() {
    let (node, one) = (Node::new(), policy("one"));
    let question = QUESTION.replace("\tread", "\t-read");
    let generation = Generation::new(&one, vec![(Part::Sanity, question.clone().into())]).unwrap();
    let (parts, _) = generation.pack(|content| Ok(content.to_vec())).unwrap();
    let content = signed(Manifest { parts, ..manifest(7, &one) }, &[2]);
    let files = [&content, &one, question.as_bytes()].map(bytes);
    let parts = [("policy", files[1].as_fd()), ("sanity", files[2].as_fd())];
    let error = node.running.client().offer(files[0].as_fd(), &parts).unwrap_err().to_string();
    assert!(error.contains("a sanity question fails") && node.running.done().is_empty(), "{error}");
    let Report { number, refused, .. } = node.report();
    assert!(number == 0 && refused.unwrap().contains("manifest 7 is refused"));
}

/// A stage of all nodes that accepts five denials a minute.
fn limited(mode: StageMode, number: u64, policy: &[u8]) -> Vec<u8> {
    let stages = vec![format!("share 100 {mode} hold 0 denials 5 missing 0").parse().unwrap()];
    signed(Manifest { stages, ..manifest(number, policy) }, &[2])
}

/// Lets so many denials come, and waits until the daemon has counted them.
fn denials(node: &Node, count: u64) {
    node.running.machine.0.lock().unwrap().denials += count;
    std::thread::sleep(Duration::from_millis(2500));
}

#[test]
fn goes_back_by_itself_when_denials_pass_the_limit_of_its_stage() {
    for mode in [StageMode::Enforcing, StageMode::Permissive, StageMode::Shadow] {
        let (node, one, two) = (Node::new(), policy("one"), policy("two"));
        node.offer(&signed(manifest(7, &one), &[2]), &one).unwrap();
        let before = node.report();
        let eight = limited(mode, 8, &two);
        node.offer(&eight, &two).unwrap();
        assert_eq!(node.report().mode, Some(mode.to_string()));
        denials(&node, 0);
        denials(&node, 5);
        assert_eq!((node.report().mode, node.report().denials), (Some(mode.to_string()), 5), "as many as it accepts");
        denials(&node, 1);
        let Report { generation, mode: now, number, refused, .. } = node.report();
        assert_eq!((generation, now, number), (before.generation.clone(), before.mode, 8), "{mode}");
        assert!(refused.unwrap().contains("6 denials in a minute, where the stage accepts 5"));
        assert!(fs::read(node.first().unwrap()).unwrap() == one);
        let records = node.running.machine.0.lock().unwrap().records.clone();
        let back = format!("{mode} false 6 denials in a minute, where the stage accepts 5");
        assert_eq!(records, ["enforcing true ".to_owned(), format!("{mode} true "), back]);
        // It is not taken again, unless the fleet says so with an emergency.
        let said = node.offer(&eight, &two).unwrap();
        assert!(said.contains("this node went back"), "{said}");
        assert_eq!(node.report().generation, before.generation);
        let emergency = Manifest { progress: Progress::Emergency, ..manifest(9, &two) };
        node.offer(&signed(emergency, &[2]), &two).unwrap();
        assert_eq!(node.report().generation, Some(manifest(9, &two).generation().to_string()));
    }
}

#[test]
fn goes_back_to_the_named_policy_from_the_first_generation() {
    let (node, one) = (Node::new(), policy("one"));
    node.offer(&limited(StageMode::Enforcing, 7, &one), &one).unwrap();
    denials(&node, 0);
    denials(&node, 6);
    assert_eq!(node.running.done()[2..], ["reread", "mode permissive None"], "as it was before");
    assert_eq!((node.report().generation, node.first()), (None, None));
}

/// Offers a manifest with its policy and questions to a fleet without its daemon.
fn take(fleet: &mut Fleet, machine: &mut Pretended, manifest: &[u8], policy: &[u8]) -> Result<String, Refusal> {
    let [manifest, policy, sanity] = [manifest, policy, QUESTION.as_bytes()].map(bytes);
    fleet.take(machine, manifest, vec![("policy".into(), policy), ("sanity".into(), sanity)])
}

#[test]
fn begins_with_one_whole_generation_and_its_number_wherever_the_power_goes() {
    let (one, two) = (policy("one"), policy("two"));
    let [six, seven, eight] = [(6, &one), (7, &one), (8, &two)].map(|(n, policy)| signed(manifest(n, policy), &[2]));
    for changes in 0.. {
        let (folder, mut fleet) = configured();
        take(&mut fleet, &mut Pretended::default(), &seven, &one).unwrap();
        cut::after(Some(changes));
        let taken = take(&mut fleet, &mut Pretended::default(), &eight, &two);
        cut::after(None);
        let (mut fleet, mut machine) = (open(&folder), Pretended::default());
        let (begins, number) = (fs::read(first(&folder).unwrap()).unwrap(), fleet.report(&mut machine).unwrap().number);
        assert!(begins == one || begins == two && number == 8, "after {changes} changes, {number}");
        assert!(take(&mut fleet, &mut machine, &six, &one).is_err(), "the number has fallen after {changes} changes");
        assert_eq!(take(&mut fleet, &mut machine, &seven, &one).is_ok(), number == 7);
        take(&mut fleet, &mut machine, &eight, &two).unwrap();
        assert!(fs::read(first(&folder).unwrap()).unwrap() == two, "it is taken after {changes} changes");
        if taken.is_ok() {
            assert!(changes >= 6 && begins == two, "the parts, the trial, the manifest and two links: {changes}");
            return;
        }
    }
}

#[test]
fn goes_back_even_if_nothing_can_be_written_and_stays_back_once_it_is_noted() {
    let (one, two) = (policy("one"), policy("two"));
    for changes in 0..3 {
        let (folder, mut fleet) = configured();
        let mut machine = Pretended::default();
        take(&mut fleet, &mut machine, &signed(manifest(7, &one), &[2]), &one).unwrap();
        take(&mut fleet, &mut machine, &limited(StageMode::Enforcing, 8, &two), &two).unwrap();
        let now = Instant::now();
        fleet.wake(&mut machine, now);
        machine.0.lock().unwrap().denials = 6;
        cut::after(Some(changes));
        fleet.wake(&mut machine, now + Duration::from_secs(1));
        cut::after(None);
        let generation = fleet.report(&mut machine).unwrap().generation;
        assert_eq!(generation, Some(manifest(7, &one).generation().to_string()), "after {changes} changes");
        open(&folder);
        assert_eq!(fs::read(first(&folder).unwrap()).unwrap() == one, changes > 0, "after {changes} changes");
    }
}
