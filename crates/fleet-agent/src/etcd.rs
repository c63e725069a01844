//! An etcd as a store.
//!
//! | key | content | who writes |
//! |---|---|---|
//! | `PREFIX/policy/current/GROUP` | the manifest of a group | who publishes |
//! | `PREFIX/policy/register` | the hash of the register, which is a piece | who publishes |
//! | `PREFIX/policy/pieces/HASH/NUMBER` | compressed parts, and manifests, cut below etcd's limit | who publishes |
//! | `PREFIX/policy/roots/VERSION` | root files | who publishes |
//! | `PREFIX/nodes/states/NODE`, `PREFIX/nodes/requests/NODE` | what nodes say | nodes |
//!
//! There are no leases: a state carries its own signed time.

mod link;
#[cfg(test)]
pub(crate) mod servers;
#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, DeleteOptions, Error, GetOptions, KeyValue, TlsOptions, Txn, TxnOp, TxnOpResponse,
    WatchOptions,
};
use tollgate_fleet::{
    Hash, Name,
    store::{Head, Kind, Revision, Store, StoreError, Version},
};

use link::Link;

/// How much of a piece is under one key, in bytes. etcd takes 1.5 MiB by default.
const CUT: usize = 1_000_000;
/// How often nodes look, whatever a watch says.
const INTERVAL: Duration = Duration::from_secs(5 * 60);
/// How many nodes' words are read at once.
const PAGE: i64 = 200;
/// The maximum number of nodes that may say something.
const MAX_NODES: usize = 100_000;
/// The maximum length of a root file, in bytes.
const MAX_ROOT: u64 = 1 << 16;
/// How often a register is read anew that is replaced meanwhile.
const TRIES: usize = 3;

/// A store in an etcd.
pub(crate) struct Etcd {
    link: Link,
    prefix: String,
    /// How long it waits before it watches again what it could not watch.
    pause: Duration,
}

impl Etcd {
    /// The store below a prefix. `of`: whose connection it is, so that not all go to the same member at the same time.
    pub(crate) fn new(members: Vec<String>, prefix: &str, tls: Option<TlsOptions>, of: &str) -> Self {
        let Hash(hash) = Hash::of(of.as_bytes());
        let pause = Duration::from_millis(1000 + 16 * u64::from(hash[1]));
        Self { link: Link::new(members, tls, hash[0].into()), prefix: prefix.to_owned(), pause }
    }

    fn policy(&self, below: &str) -> String {
        format!("{}/policy/{below}", self.prefix)
    }

    fn nodes(&self, kind: Kind) -> String {
        let drawer = match kind {
            Kind::State => "states",
            Kind::Request => "requests",
        };
        format!("{}/nodes/{drawer}/", self.prefix)
    }

    fn key(&self, head: &Head) -> String {
        match head {
            Head::Current(group) => self.policy(&format!("current/{group}")),
            Head::Register => self.policy("register"),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<KeyValue>, StoreError> {
        let question = async |client: &mut Client| client.get(key, None).await;
        let mut answer = self.link.ask(&format!("read {key}"), question).await?;
        Ok(answer.take_kvs().pop())
    }

    async fn write(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let question = async |client: &mut Client| client.put(key, bytes, None).await;
        self.link.ask(&format!("write {key}"), question).await.map(drop)
    }

    /// Writes it if `known` holds; otherwise returns what is there.
    async fn write_if(&self, known: Compare, key: &str, writes: Vec<TxnOp>) -> Result<Option<Vec<u8>>, StoreError> {
        let transaction = Txn::new().when([known]).and_then(writes).or_else([TxnOp::get(key, None)]);
        let question = async |client: &mut Client| client.txn(transaction.clone()).await;
        let answer = self.link.ask(&format!("write {key}"), question).await?;
        if answer.succeeded() {
            return Ok(None);
        }
        let present = answer.op_responses().into_iter().find_map(|answer| match answer {
            TxnOpResponse::Get(mut answer) => answer.take_kvs().pop(),
            _ => None,
        });
        Ok(Some(present.map_or_else(Vec::new, |present| present.value().to_vec())))
    }

    /// Returns when the head has another revision.
    async fn watch(&self, head: &Head, since: Option<&Revision>) -> Result<(), Error> {
        let key = self.key(head);
        let watched = |error: link::Unanswered| Error::WatchError(error.to_string());
        let mut look = async |client: &mut Client| client.get(&*key, Some(GetOptions::new().with_keys_only())).await;
        let present = self.link.ask_once(&mut look).await.map_err(watched)?;
        if present.kvs().first().map(KeyValue::mod_revision) != since.map(number) {
            return Ok(());
        }
        // Not since the head's own revision: that part of the history may be compacted.
        let from = present.header().map_or(0, |header| header.revision() + 1);
        let options = WatchOptions::new().with_start_revision(from);
        let mut begin = async |client: &mut Client| client.watch(&*key, Some(options.clone())).await;
        let mut changes = self.link.ask_once(&mut begin).await.map_err(watched)?;
        while let Some(message) = changes.message().await? {
            if !message.events().is_empty() {
                return Ok(());
            }
            if message.canceled() {
                return Err(Error::WatchError(message.cancel_reason().to_owned()));
            }
        }
        Err(Error::WatchError("the connection has ended".to_owned()))
    }
}

/// Whether what is behind it is a piece, for it may be longer than etcd takes.
fn is_piece(head: &Head) -> bool {
    head.limit() > CUT as u64
}

/// A revision is etcd's own number, and the hash of the piece if it is one.
fn revision(present: &KeyValue, piece: Option<Hash>) -> Revision {
    let mut bytes = present.mod_revision().to_be_bytes().to_vec();
    bytes.extend(piece.iter().flat_map(|hash| hash.0));
    Revision(bytes)
}

fn number(Revision(bytes): &Revision) -> i64 {
    bytes.first_chunk().map_or(0, |number| i64::from_be_bytes(*number))
}

fn piece_of(Revision(bytes): &Revision) -> Option<Hash> {
    Some(Hash(*bytes.get(8..)?.first_chunk()?))
}

impl Store for Etcd {
    async fn head(&self, head: &Head) -> Result<Option<Version>, StoreError> {
        let key = self.key(head);
        let mut left = TRIES;
        loop {
            let Some(present) = self.get(&key).await? else { return Ok(None) };
            if !is_piece(head) {
                let bytes = checked_length(&key, present.value(), head.limit())?;
                return Ok(Some(Version { bytes, revision: revision(&present, None) }));
            }
            let hash = present.value_str().ok().and_then(|text| text.parse::<Hash>().ok());
            let hash = hash.ok_or_else(|| StoreError::Missing { what: format!("the hash in {key}") })?;
            left -= 1;
            match self.piece(&hash, head.limit()).await {
                // It has been replaced since.
                Err(StoreError::Missing { .. }) if left > 0 => {}
                bytes => return Ok(Some(Version { bytes: bytes?, revision: revision(&present, Some(hash)) })),
            }
        }
    }

    async fn swap(&self, head: &Head, bytes: &[u8], expected: Option<&Revision>) -> Result<(), StoreError> {
        let key = self.key(head);
        let mut value = bytes.to_vec();
        let mut writes = Vec::new();
        if is_piece(head) {
            let hash = Hash::of(bytes);
            self.put_piece(&hash, bytes).await?;
            value = hash.to_string().into_bytes();
            // Each node that is approved makes a new register.
            if let Some(before) = expected.and_then(piece_of).filter(|before| *before != hash) {
                let before = self.policy(&format!("pieces/{before}/"));
                writes.push(TxnOp::delete(before, Some(DeleteOptions::new().with_prefix())));
            }
        }
        let known = match expected {
            None => Compare::version(&*key, CompareOp::Equal, 0),
            Some(revision) => Compare::mod_revision(&*key, CompareOp::Equal, number(revision)),
        };
        writes.push(TxnOp::put(&*key, &*value, None));
        match self.write_if(known, &key, writes).await? {
            // It was written by this call, whose first answer was lost.
            Some(present) if present != value => Err(StoreError::Replaced { what: key }),
            _ => Ok(()),
        }
    }

    async fn piece(&self, hash: &Hash, limit: u64) -> Result<Vec<u8>, StoreError> {
        let what = self.policy(&format!("pieces/{hash}"));
        let mut bytes = Vec::new();
        for number in 0.. {
            let cut = self.get(&format!("{what}/{number:03}")).await?;
            match cut {
                None if number == 0 => return Err(StoreError::Missing { what }),
                None => break,
                Some(cut) => bytes.extend(cut.value()),
            }
            if bytes.len() as u64 > limit {
                return Err(StoreError::Long { what, limit });
            }
            if bytes.len() < (number + 1) * CUT {
                break;
            }
        }
        Ok(bytes)
    }

    async fn put_piece(&self, hash: &Hash, bytes: &[u8]) -> Result<(), StoreError> {
        // Half of one, or another one, is written anew.
        if matches!(self.piece(hash, bytes.len() as u64).await, Ok(present) if present == bytes) {
            return Ok(());
        }
        let mut cuts: Vec<&[u8]> = bytes.chunks(CUT).collect();
        if cuts.is_empty() {
            cuts.push(&[]);
        }
        // The first one comes last: with it, the piece is there.
        for (number, cut) in cuts.into_iter().enumerate().rev() {
            self.write(&self.policy(&format!("pieces/{hash}/{number:03}")), cut).await?;
        }
        Ok(())
    }

    async fn root(&self, version: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let key = self.policy(&format!("roots/{version}"));
        let present = self.get(&key).await?;
        present.map(|present| checked_length(&key, present.value(), MAX_ROOT)).transpose()
    }

    async fn put_root(&self, version: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let key = self.policy(&format!("roots/{version}"));
        let new = Compare::version(&*key, CompareOp::Equal, 0);
        match self.write_if(new, &key, vec![TxnOp::put(&*key, bytes, None)]).await? {
            Some(present) if present != bytes => Err(StoreError::Exists { what: key }),
            _ => Ok(()),
        }
    }

    async fn put(&self, kind: Kind, node: &Name, bytes: &[u8]) -> Result<(), StoreError> {
        self.write(&format!("{}{node}", self.nodes(kind)), bytes).await
    }

    async fn all(&self, kind: Kind) -> Result<Vec<(Name, Vec<u8>)>, StoreError> {
        let prefix = self.nodes(kind);
        let (mut from, mut page) = (prefix.clone().into_bytes(), PAGE);
        // The first key after all of them: `0` follows on `/`.
        let end = format!("{}0", prefix.trim_end_matches('/'));
        let mut all = Vec::new();
        while all.len() < MAX_NODES {
            let range = GetOptions::new().with_range(&*end).with_limit(page);
            let question = async |client: &mut Client| client.get(&*from, Some(range.clone())).await;
            let mut answer = match self.link.try_ask(question).await {
                // Some node's word may be so long that a page of them does not arrive.
                Err(error) if error.is_too_long() && page > 1 => {
                    page = 1.max(page / 8);
                    continue;
                }
                answer => answer.map_err(|error| error.in_store(&format!("read {prefix}")))?,
            };
            for present in answer.take_kvs() {
                let (key, value) = present.into_key_value();
                let name = key.strip_prefix(prefix.as_bytes()).and_then(|name| std::str::from_utf8(name).ok());
                if let Some(node) = name.and_then(|name| name.parse::<Name>().ok())
                    && value.len() as u64 <= kind.limit()
                {
                    all.push((node, value));
                }
                from = key;
                from.push(0);
            }
            if !answer.more() {
                break;
            }
            page = PAGE.min(page * 2);
        }
        Ok(all)
    }

    async fn changed(&self, head: &Head, since: Option<&Revision>) {
        if self.watch(head, since).await.is_err() {
            // Whoever waits looks now, at another member if there is one, and learns why.
            self.link.leave();
            tokio::time::sleep(self.pause).await;
        }
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }
}

fn checked_length(key: &str, bytes: &[u8], limit: u64) -> Result<Vec<u8>, StoreError> {
    if bytes.len() as u64 > limit {
        return Err(StoreError::Long { what: key.to_owned(), limit });
    }
    Ok(bytes.to_vec())
}
