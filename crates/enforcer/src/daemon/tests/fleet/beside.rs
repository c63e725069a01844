//! What a generation has beside its policy: the guard's database, and which networks are labelled.

use tollgate_guard::Database;

use super::*;
use crate::daemon::machine::Beside;

/// Labelled networks that fit the policy of these tests.
const NETWORK: &str = "[[zone]]\naddresses = [\"10.0.0.1\"]\n";

/// A guard's database in which a class of programs has this mode.
fn guard(mode: &str) -> Vec<u8> {
    Database::parse(&format!("default daemon {mode}\n")).unwrap().to_bytes()
}

/// What a publisher hands to nodes: a manifest of these parts, signed, and the parts.
struct Offered {
    manifest: Manifest,
    parts: Vec<(&'static str, Vec<u8>)>,
}

impl Offered {
    fn new(number: u64, policy: &[u8], guard: &[u8], network: &str) -> Self {
        let others = vec![(Part::Guard, guard.to_vec()), (Part::Network, network.into())];
        let (entries, _) = Generation::new(policy, others).unwrap().pack(|content| Ok(content.to_vec())).unwrap();
        let parts = vec![("policy", policy.to_vec()), ("guard", guard.to_vec()), ("network", network.into())];
        Self { manifest: Manifest { parts: entries, ..manifest(number, policy) }, parts }
    }

    fn staged(self, stage: &str) -> Self {
        Self { manifest: Manifest { stages: vec![stage.parse().unwrap()], ..self.manifest }, ..self }
    }

    fn to(&self, node: &Node) -> Result<String, ClientError> {
        let files: Vec<_> = self.parts.iter().map(|(name, content)| (*name, bytes(content))).collect();
        let parts: Vec<_> = files.iter().map(|(name, file)| (*name, file.as_fd())).collect();
        node.running.client().offer(bytes(&signed(self.manifest.clone(), &[2])).as_fd(), &parts)
    }

    /// Where the daemon finds what is in force beside the policy.
    fn beside(&self, node: &Node) -> Beside {
        let folder = node.folder.path().join(format!("kept/generations/{}", self.manifest.generation()));
        Beside { guard: Some(folder.join("guard")), network: Some(folder.join("network")) }
    }
}

impl Node {
    /// A node whose guard runs.
    fn guarded() -> Self {
        let node = Self::new();
        node.running.machine.0.lock().unwrap().guarded = true;
        node
    }

    fn beside(&self) -> Beside {
        self.running.machine.0.lock().unwrap().beside.clone()
    }
}

#[test]
fn puts_guard_and_networks_in_force_with_the_policy_or_none_of_them() {
    let (node, one, two) = (Node::guarded(), policy("one"), policy("two"));
    let seven = Offered::new(7, &one, &guard("learn"), NETWORK);
    seven.to(&node).unwrap();
    let before = node.report();
    assert_eq!(
        (before.generation.clone(), node.beside()),
        (Some(seven.manifest.generation().to_string()), seven.beside(&node))
    );
    node.running.machine.0.lock().unwrap().fails = true;
    Offered::new(8, &two, &guard("warn"), NETWORK).to(&node).unwrap_err();
    node.running.machine.0.lock().unwrap().fails = false;
    assert_eq!(node.beside(), seven.beside(&node), "the guard's database is put back when the policy fails");
    for (guard, network, part) in [
        (b"junk".to_vec(), NETWORK.to_owned(), "guard database"),
        (guard("warn"), format!("{NETWORK}unlabelled = \"a:b:c\"\n"), "a:b:c"),
        (guard("warn"), "[[zone]]\n".to_owned(), "addresses"),
    ] {
        let error = Offered::new(8, &two, &guard, &network).to(&node).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let Report { generation, number, .. } = node.report();
    assert_eq!((generation, number, node.beside()), (before.generation, 7, seven.beside(&node)));
}

#[test]
fn refuses_a_guards_database_where_no_guard_runs() {
    let (node, one) = (Node::new(), policy("one"));
    assert_eq!(errno(Offered::new(7, &one, &guard("learn"), NETWORK).to(&node)), libc::ENODEV);
    assert_eq!((node.running.done(), node.report().generation, node.report().number), (Vec::new(), None, 0));
}

#[test]
fn goes_back_with_guard_and_networks() {
    for mode in [StageMode::Enforcing, StageMode::Permissive] {
        let (node, one, two) = (Node::guarded(), policy("one"), policy("two"));
        let seven = Offered::new(7, &one, &guard("learn"), NETWORK);
        let stage = format!("share 100 {mode} hold 0 denials 5 missing 0");
        let eight = Offered::new(8, &two, &guard("warn"), NETWORK).staged(&stage);
        seven.to(&node).unwrap();
        eight.to(&node).unwrap();
        // The guard has no trial.
        let guard = if mode == StageMode::Enforcing { eight.beside(&node).guard } else { seven.beside(&node).guard };
        assert_eq!(node.beside(), Beside { guard, ..eight.beside(&node) }, "{mode}");
        assert_eq!(node.report().generation, Some(eight.manifest.generation().to_string()));
        denials(&node, 0);
        denials(&node, 6);
        assert_eq!(node.beside(), seven.beside(&node), "{mode}");
        assert_eq!(node.report().generation, Some(seven.manifest.generation().to_string()));
    }
}

#[test]
fn claims_no_generation_of_which_a_part_was_replaced_and_takes_it_again() {
    let (node, one) = (Node::guarded(), policy("one"));
    let seven = Offered::new(7, &one, &guard("learn"), NETWORK);
    for replace in [|beside: &mut Beside| beside.guard = None, |beside: &mut Beside| beside.network = None] {
        seven.to(&node).unwrap();
        replace(&mut node.running.machine.0.lock().unwrap().beside);
        assert_eq!(node.report().generation, None);
        seven.to(&node).unwrap();
        assert_eq!((node.report().generation.is_some(), node.beside()), (true, seven.beside(&node)));
    }
}
