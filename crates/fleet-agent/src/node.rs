//! A node: it takes the generation that its fleet has published, and says so.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use tollgate_fleet::{
    Generation, Hash, Kept, Name, Signed, State, Time,
    document::Text,
    durable,
    register::{Member, Request},
    rollout::Duty,
    shelf::Shelf,
    store::{Head, Kind, Revision, Store},
};
use tollgate_signing::{SecretKey, SigningError};

use crate::enforcer::{Enforced, Enforcer};

/// Where a node keeps its key and what it has accepted.
pub(crate) const KEPT: &str = "/var/lib/tollgate-fleet";

/// A node that has enrolled.
pub(crate) struct Node {
    folder: PathBuf,
    key: SecretKey,
    request: Request,
}

/// What a look has shown of the store.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The revision of what is published; `None`: the store did not answer.
    pub(crate) revision: Option<Option<Revision>>,
    /// Why the node does not know what is newest, or could not fetch it; `None`: it does.
    pub(crate) stale: Option<String>,
    /// What the node has said that it enforces.
    pub(crate) enforced: Enforced,
}

impl Node {
    /// The key of a node, which is made when there is none.
    pub(crate) fn key(folder: &Path, node: &Name) -> anyhow::Result<SecretKey> {
        let path = folder.join("key");
        match SecretKey::read(&path) {
            Err(SigningError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                let key = SecretKey::random(node.as_str())?;
                key.make(&path)?;
                Ok(key)
            }
            other => Ok(other?),
        }
    }

    /// Keeps what this node has asked for, and returns its request, signed.
    pub(crate) fn ask(folder: &Path, key: &SecretKey, request: Request) -> anyhow::Result<Signed<Request>> {
        let mut document = Signed::new(request);
        document.sign(key);
        let path = folder.join("request");
        durable::write(&path, 0o600, &document.bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(document)
    }

    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("request");
        let bytes = fs::read(&path)
            .with_context(|| format!("cannot read {}: enrol this node with `tollgate fleet enrol`", path.display()))?;
        let request = Request::parse(&bytes).with_context(|| path.display().to_string())?;
        let key = Self::key(folder, &request.member.node)?;
        Ok(Self { folder: folder.to_owned(), key, request })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &Name {
        &self.request.member.node
    }

    /// What in a store is for it.
    pub(crate) fn head(&self) -> Head {
        Head::Current(self.request.member.group.clone())
    }

    /// Looks for a generation, takes it if it is this node's turn, has it enforced, and says what is in force. Returns
    /// what it has seen, too.
    pub(crate) async fn look(&self, store: &impl Store, enforcer: &impl Enforcer) -> (Seen, anyhow::Result<String>) {
        let mut seen = Seen::default();
        let done = self.look_at(store, enforcer, &mut seen).await;
        if let (Err(cause), None) = (&done, &seen.revision) {
            seen.stale.get_or_insert_with(|| format!("{cause:#}"));
        }
        (seen, done)
    }

    async fn look_at(&self, store: &impl Store, enforcer: &impl Enforcer, seen: &mut Seen) -> anyhow::Result<String> {
        let mut kept = Kept::open(&self.folder)?;
        let taken = self.take(&mut kept, store, &mut seen.revision).await;
        seen.stale = taken.as_ref().err().map(|cause| format!("{cause:#}"));
        // It says what is in force as well if it can take nothing.
        let Member { node, others, .. } = &self.request.member;
        let duty = kept.newest().map(|newest| newest.manifest().duty(node, others));
        // It is offered what it lacks as well if nothing new has come.
        let offered = match &taken {
            Ok(_) => enforcer.offer(&kept, duty, store).await.context("the daemon does not take it"),
            Err(_) => Ok(()),
        };
        let enforced = enforcer.enforced(&kept, duty);
        seen.enforced = enforced.as_ref().cloned().unwrap_or_default();
        let said = self.say(&kept, seen.enforced.clone(), store).await;
        let done = taken?;
        offered?;
        enforced?;
        said?;
        Ok(done)
    }

    async fn take(
        &self,
        kept: &mut Kept,
        store: &impl Store,
        seen: &mut Option<Option<Revision>>,
    ) -> anyhow::Result<String> {
        let member = &self.request.member;
        kept.renew(store).await?;
        let version = store.head(&self.head()).await?;
        *seen = Some(version.as_ref().map(|version| version.revision.clone()));
        let Some(version) = version else {
            if let Some(newest) = kept.newest() {
                let number = newest.manifest().number;
                bail!(
                    "the store has no manifest of {}, and had number {number}: look who has removed it",
                    member.group
                );
            }
            return Ok(format!("nothing is published for the group {}", member.group));
        };
        let checked = kept.check(&version.bytes, &member.group, Time::now())?;
        let (manifest, shelf) = (checked.manifest().clone(), Shelf::of(&self.folder));
        let hash = manifest.generation();
        let done = match manifest.duty(&member.node, &member.others) {
            Duty::Wait | Duty::Keep(_) => format!("manifest {}: it is not this node's turn", manifest.number),
            Duty::Take(mode) => {
                // It may be there, and have been changed since.
                let own = shelf.generation();
                if shelf.hash() != Some(hash) || !own.as_ref().is_some_and(|own| has_policy(own, &manifest)) {
                    let generation = Generation::fetch(store, &manifest.parts, own.as_ref()).await?;
                    shelf.put(hash, &generation).context("cannot write the generation")?;
                }
                format!("manifest {}: {mode}, {}", manifest.number, shelf.current().join("policy").display())
            }
        };
        kept.accept(&version.bytes, checked)?;
        Ok(done)
    }

    async fn say(&self, kept: &Kept, enforced: Enforced, store: &impl Store) -> anyhow::Result<()> {
        let path = self.folder.join("state");
        // What cannot be read is as if nothing had been said.
        let before = fs::read(&path).ok().and_then(|bytes| Signed::<State>::parse(&bytes).ok());
        let newest = kept.newest();
        let state = State {
            fleet: self.request.fleet.clone(),
            node: self.request.member.node.clone(),
            sequence: before.map_or(0, |before| before.unverified().sequence.saturating_add(1)),
            made: Time::now(),
            number: newest.map_or(0, |newest| newest.manifest().number),
            manifest: newest.map(|newest| newest.hash()),
            generation: enforced.generation.or_else(|| Shelf::of(&self.folder).hash()),
            tables: enforced.tables,
            mode: enforced.mode,
            hooks: enforced.hooks,
            unenforced: enforced.unenforced,
            failures: enforced.failures,
            denials: enforced.denials,
        };
        let mut document = Signed::new(state);
        document.sign(&self.key);
        let bytes = document.bytes();
        debug_assert!(bytes.len() as u64 <= State::LIMIT);
        durable::write(&path, 0o600, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        store.put(Kind::State, &self.request.member.node, &bytes).await?;
        Ok(())
    }

    /// This node's share of a time, so that nodes do not all come at once.
    pub(crate) fn share(&self, time: Duration) -> Duration {
        let Hash(hash) = Hash::of(self.name().as_str().as_bytes());
        time * u32::from(u16::from_be_bytes([hash[0], hash[1]])) / 0x1_0000
    }
}

/// Whether the sections of the policy are those of a manifest.
fn has_policy(own: &Generation, manifest: &tollgate_fleet::Manifest) -> bool {
    let sections = manifest.parts.iter().filter(|entry| matches!(entry.part, tollgate_fleet::part::Part::Policy(_)));
    own.is(&sections.copied().collect::<Vec<_>>())
}
