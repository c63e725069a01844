use std::time::{Duration, Instant};

use clap::Parser;
use tollgate_fleet::{Hash, Name, store::*, suite};

use super::servers::Servers;
use crate::place::{Opened, Place};

/// Waits for the answer of a store.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    place: Place,
}

fn open(servers: &Servers, user: &str) -> Opened {
    let options = servers.options(user);
    Words::try_parse_from(["store"].into_iter().chain(options.split(' '))).unwrap().place.open("").unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn does_what_every_store_does() {
    wait(suite::run(|| {
        let servers = Servers::start(1);
        (open(&servers, "root"), servers)
    }));
}

#[test]
fn lets_each_user_write_what_its_role_may_and_nothing_else() {
    wait(async {
        let servers = Servers::secret().await;
        let [publisher, node] = ["tollgate-publisher", "tollgate-node"].map(|user| open(&servers, user));
        let group = Head::Current(name("web"));
        publisher.swap(&group, b"one", None).await.unwrap();
        publisher.swap(&Head::Register, b"nodes", None).await.unwrap();
        assert_eq!(node.head(&group).await.unwrap().unwrap().bytes, b"one");
        assert_eq!(node.head(&Head::Register).await.unwrap().unwrap().bytes, b"nodes");
        node.put(Kind::State, &name("a"), b"state").await.unwrap();
        assert_eq!(publisher.all(Kind::State).await.unwrap(), [(name("a"), b"state".to_vec())]);
        let present = node.head(&group).await.unwrap().unwrap().revision;
        for refused in [
            node.swap(&group, b"two", Some(&present)).await,
            node.put_root(1, b"root").await,
            node.put_piece(&Hash::of(b"x"), b"x").await,
            publisher.put(Kind::State, &name("a"), b"another").await,
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("permission denied") && error.contains("common name"), "{error}");
        }
        let stranger = servers.options("root").split(" --etcd-certificate").next().unwrap().to_owned();
        let stranger = Words::try_parse_from(["store"].into_iter().chain(stranger.split(' '))).unwrap();
        assert!(stranger.place.open("").unwrap().head(&group).await.is_err(), "without a certificate");
    });
}

#[test]
fn tells_of_a_change_after_the_history_was_compacted_and_of_none_without_one() {
    wait(async {
        let servers = Servers::start(1);
        let store = open(&servers, "root");
        let group = Head::Current(name("web"));
        let told = async |since: Option<&Revision>| {
            tokio::time::timeout(Duration::from_secs(1), store.changed(&group, since)).await.is_ok()
        };
        assert!(!told(None).await, "there is none");
        store.swap(&group, b"one", None).await.unwrap();
        assert!(told(None).await, "it has come before anybody waited");
        let first = store.head(&group).await.unwrap().unwrap().revision;
        // What the node knows is no longer in the history.
        for at in 0..20 {
            store.put(Kind::State, &name("a"), &[at]).await.unwrap();
        }
        let mut client = servers.client(0).await;
        let now = client.status().await.unwrap().header().unwrap().revision();
        client.compact(now, None).await.unwrap();
        assert!(!told(Some(&first)).await, "nothing has changed");
        let begun = Instant::now();
        let (_, ()) = tokio::join!(store.changed(&group, Some(&first)), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            store.swap(&group, b"two", Some(&first)).await.unwrap();
        });
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(300) && took < Duration::from_secs(1), "{took:?}");
        assert!(told(Some(&first)).await, "it was replaced");
    });
}

#[test]
fn reads_what_all_nodes_say_though_one_of_them_says_too_much() {
    wait(async {
        let servers = Servers::start(1);
        let store = open(&servers, "root");
        let nodes: Vec<Name> = (0..450).map(|number| name(&format!("n{number:03}"))).collect();
        for node in &nodes {
            store.put(Kind::State, node, b"state").await.unwrap();
        }
        let mut client = servers.client(0).await;
        for number in [7, 8, 9, 11, 12, 300] {
            client.put(format!("tollgate/nodes/states/x{number}"), vec![0; 1_500_000], None).await.unwrap();
            client.put(format!("tollgate/nodes/states/n{number:03}a"), vec![0; 1_500_000], None).await.unwrap();
        }
        client.put("tollgate/nodes/states/a/b", "x", None).await.unwrap();
        client.put("tollgate/nodes/states/../x", "x", None).await.unwrap();
        let all: Vec<Name> = store.all(Kind::State).await.unwrap().into_iter().map(|(node, _)| node).collect();
        assert_eq!(all, nodes);
    });
}

#[test]
fn keeps_one_register_however_often_it_is_replaced() {
    wait(async {
        let servers = Servers::start(1);
        let store = open(&servers, "root");
        let mut revision = None;
        for at in 0..4_u8 {
            // Longer than what etcd takes at once, as the register of ten thousand nodes is.
            store.swap(&Head::Register, &vec![at; 2_200_000], revision.as_ref()).await.unwrap();
            let present = store.head(&Head::Register).await.unwrap().unwrap();
            assert!(present.bytes == vec![at; 2_200_000]);
            revision = Some(present.revision);
        }
        let options = etcd_client::GetOptions::new().with_prefix().with_count_only();
        let pieces = servers.client(0).await.get("tollgate/policy/pieces/", Some(options)).await.unwrap();
        assert_eq!(pieces.count(), 3, "three cuts of one register");
    });
}

#[test]
fn goes_to_another_member_and_says_when_there_is_none() {
    wait(async {
        let mut servers = Servers::start(3);
        let store = open(&servers, "root");
        store.swap(&Head::Register, b"nodes", None).await.unwrap();
        for at in 0..3 {
            servers.kill(at);
            assert_eq!(store.head(&Head::Register).await.unwrap().unwrap().bytes, b"nodes", "without m{at}");
            servers.begin(at);
        }
        (0..3).for_each(|at| servers.kill(at));
        let error = store.head(&Head::Register).await.unwrap_err().to_string();
        assert!(error.contains("look whether its members run"), "{error}");
    });
}
