//! A fleet that exists for a simulation only: its keys, its register, and what its nodes keep.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use tempfile::TempDir;
use tollgate_fleet::{
    Kept, Name, Register, Root, Signed, Time,
    document::Text,
    register::{Member, Request},
    report::{Limits, Verdict},
    root::Role,
    store::{Head, Store},
};
use tollgate_signing::SecretKey;

use crate::{
    node::Node,
    place::Place,
    publish::{self, Publish},
    report,
    source::{Signing, Source},
};

/// How long its root file is valid.
const VALID: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Fleet {
    folder: TempDir,
    place: Place,
    root: Root,
    group: Name,
}

impl Fleet {
    /// A fleet of so many nodes, in a store that has none yet.
    pub(super) async fn new(nodes: usize, place: &Place, kept: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tollgate-fleet-").tempdir_in(kept);
        let folder = folder.with_context(|| format!("cannot write into {}; name another --kept", kept.display()))?;
        let key = SecretKey::random("simulated")?;
        key.make(&folder.path().join("secret"))?;
        let role = || Role::new(1, vec![key.public()]).context("one key is enough");
        let (made, group): (Time, Name) = (Time::now(), "simulated".parse()?);
        let root = Root {
            fleet: group.clone(),
            version: 1,
            made,
            expires: made.after(VALID),
            root: role()?,
            publish: role()?,
            approve: role()?,
        };
        let store = place.open("")?;
        let bytes = signed(root.clone(), &key);
        fs::write(folder.path().join("root"), &bytes)?;
        store.put_root(1, &bytes).await.context("a simulation needs an empty store")?;
        let fleet = Self { folder, place: place.clone(), root, group };
        let mut register = Register::empty(fleet.root.fleet.clone(), made);
        for number in 0..nodes {
            // Names in the order of their numbers, as a register has them.
            let node: Name = format!("node{number:06}").parse()?;
            let kept = fleet.folder(number);
            Kept::begin(&kept, &bytes)?;
            let key = Node::key(&kept, &node)?;
            let member = Member { node, key: key.public(), group: fleet.group.clone(), others: Vec::new() };
            Node::ask(&kept, &key, Request { fleet: fleet.root.fleet.clone(), member: member.clone(), made })?;
            register.members.push(member);
        }
        register.number = 1;
        store.swap(&Head::Register, &signed(register, &key), None).await?;
        Ok(fleet)
    }

    /// What a node keeps.
    pub(super) fn folder(&self, number: usize) -> PathBuf {
        self.folder.path().join(number.to_string())
    }

    /// Publishes a generation with a number.
    pub(super) async fn publish(&self, policy: &Path, number: u64) -> anyhow::Result<()> {
        // The number makes it another generation.
        let sanity = self.folder.path().join("sanity");
        fs::write(&sanity, format!("{number}\n"))?;
        let signing = Signing::of(self.folder.path().join("secret"));
        let publish = Publish::to_all(policy.to_owned(), sanity, self.source(), signing, self.group.clone());
        publish::publish(&publish).await.map(drop)
    }

    /// How many nodes prove that they have what is published.
    pub(super) async fn converged(&self) -> anyhow::Result<usize> {
        let evidence = report::present(&self.source(), &self.group).await?;
        let report = evidence.report(&self.root, &self.group, Limits::USUAL)?;
        Ok(report.nodes.iter().filter(|finding| finding.verdict == Verdict::Converged).count())
    }

    fn source(&self) -> Source {
        Source::of(self.place.clone(), self.folder.path().join("root"))
    }
}

fn signed<T: Text>(content: T, key: &SecretKey) -> Vec<u8> {
    let mut document = Signed::new(content);
    document.sign(key);
    document.bytes()
}
