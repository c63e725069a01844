//! What every store must do, as tests that each of them runs.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use crate::{
    hash::Hash,
    name::Name,
    store::{Head, Kind, Store, StoreError},
};

/// What a future returns that never waits, such as a folder's.
///
/// # Panics
///
/// If it waits.
pub fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// Runs the suite. `new` makes an empty store, with whatever must live as long as it.
///
/// # Panics
///
/// If the store does something else.
pub async fn run<S: Store, T>(mut new: impl FnMut() -> (S, T)) {
    let (store, _alive) = new();
    swaps_what_is_expected_and_nothing_else(&store).await;
    keeps_pieces_by_their_hash(&store).await;
    never_replaces_a_root_file(&store).await;
    keeps_what_each_node_says(&store).await;
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

async fn swaps_what_is_expected_and_nothing_else(store: &impl Store) {
    let [web, database] = ["web", "database"].map(|group| Head::Current(name(group)));
    assert_eq!(store.head(&web).await.expect("no head"), None);
    store.swap(&web, b"one", None).await.expect("the first");
    let first = store.head(&web).await.expect("a head").expect("the first");
    assert_eq!(first.bytes, b"one");
    let again = store.swap(&web, b"two", None).await;
    assert!(matches!(again, Err(StoreError::Replaced { .. })), "there is one: {again:?}");
    store.swap(&web, b"two", Some(&first.revision)).await.expect("the second");
    let late = store.swap(&web, b"three", Some(&first.revision)).await;
    assert!(matches!(late, Err(StoreError::Replaced { .. })), "it was replaced: {late:?}");
    assert_eq!(store.head(&web).await.expect("a head").map(|version| version.bytes), Some(b"two".to_vec()));
    assert_eq!(store.head(&database).await.expect("no head"), None, "another group's");
    assert_eq!(store.head(&Head::Register).await.expect("no head"), None);
    store.swap(&Head::Register, b"nodes", None).await.expect("the register");
}

async fn keeps_pieces_by_their_hash(store: &impl Store) {
    // Longer than what a store may take at once.
    let long: Vec<u8> = (0..2_500_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for bytes in [&b""[..], b"piece", &long] {
        let hash = Hash::of(bytes);
        let missing = store.piece(&hash, long.len() as u64).await;
        assert!(matches!(missing, Err(StoreError::Missing { .. })), "{missing:?}");
        store.put_piece(&hash, bytes).await.expect("write");
        store.put_piece(&hash, bytes).await.expect("write again");
        assert!(store.piece(&hash, bytes.len() as u64).await.expect("read") == bytes);
    }
    let cut = store.piece(&Hash::of(b"piece"), 4).await;
    assert!(matches!(cut, Err(StoreError::Long { .. })), "{cut:?}");
}

async fn never_replaces_a_root_file(store: &impl Store) {
    assert_eq!(store.root(1).await.expect("none"), None);
    store.put_root(1, b"root").await.expect("write");
    store.put_root(1, b"root").await.expect("write the same");
    let other = store.put_root(1, b"another").await;
    assert!(matches!(other, Err(StoreError::Exists { .. })), "{other:?}");
    assert_eq!(store.root(1).await.expect("read"), Some(b"root".to_vec()));
    assert_eq!(store.root(2).await.expect("none"), None);
}

async fn keeps_what_each_node_says(store: &impl Store) {
    let [a, b] = ["a", "b.example.org"].map(name);
    assert_eq!(store.all(Kind::State).await.expect("none"), []);
    store.put(Kind::State, &b, b"old").await.expect("write");
    store.put(Kind::State, &a, b"a").await.expect("write");
    store.put(Kind::State, &b, b"new").await.expect("write");
    store.put(Kind::Request, &a, b"let me in").await.expect("write");
    assert_eq!(store.all(Kind::State).await.expect("read"), [(a.clone(), b"a".to_vec()), (b, b"new".to_vec())]);
    assert_eq!(store.all(Kind::Request).await.expect("read"), [(a, b"let me in".to_vec())]);
}
