//! `tollgate-fleet enrol`, `approve` and `revoke`: which nodes belong to the fleet.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_fleet::{
    Kept, Name, Register, Time,
    register::{Member, Request},
    store::{Head, Kind, Store, Version},
};

use crate::{
    input::read,
    node::{KEPT, Node},
    output,
    source::{Signing, Source},
};

/// How many digits of a node's key an administrator must compare.
const DIGITS: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct Enrol {
    /// The name of this node
    node: Name,
    #[command(flatten)]
    source: Source,
    /// The group whose generations it takes
    #[arg(long, value_name = "GROUP")]
    group: Name,
    /// A smaller group that stages name, to which it belongs as well
    #[arg(long = "also", value_name = "GROUP")]
    others: Vec<Name>,
    /// Where this node keeps its key and what it has accepted
    #[arg(long, value_name = "FOLDER", default_value = KEPT)]
    kept: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The node
    node: Name,
    /// The first 16 digits of its key, or more, as `enrol` has printed them on the node
    #[arg(long, value_name = "DIGITS")]
    key: String,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    signing: Signing,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The node
    node: Name,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    signing: Signing,
}

pub(crate) async fn enrol(Enrol { node, source, group, others, kept, .. }: &Enrol) -> anyhow::Result<ExitCode> {
    let root = Kept::begin(kept, &read(source.root_file())?)?.root().clone();
    let key = Node::key(kept, node)?;
    let member = Member { node: node.clone(), key: key.public(), group: group.clone(), others: others.clone() };
    let request = Node::ask(kept, &key, Request { fleet: root.fleet, member, made: Time::now() })?;
    source.store()?.put(Kind::Request, node, &request).await?;
    output::line(&format!(
        "{node} asks to belong to the fleet; compare its key when you approve it: {}",
        key.public().digits()
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn approve(Approve { node, key, source, signing }: &Approve) -> anyhow::Result<ExitCode> {
    let root = source.root().await?;
    let requests = source.store()?.all(Kind::Request).await?;
    let request = requests.into_iter().find(|(name, _)| name == node);
    let (_, bytes) = request.with_context(|| format!("{node} has not asked: run `tollgate fleet enrol` on it"))?;
    let request = Request::parse(&bytes)?;
    // Anybody may have written the request: what the administrator has seen on the node decides.
    let digits = request.member.key.digits();
    if key.len() < DIGITS || !digits.starts_with(key.as_str()) {
        bail!(
            "the request is of the key {digits}, not {key}: compare {DIGITS} digits at least with what the node printed"
        );
    }
    if request.member.node != *node || request.fleet != root.fleet {
        bail!("the request is of {} of the fleet {}: enrol the node again", request.member.node, request.fleet);
    }
    let (register, version) = source.register(&root).await?;
    let what = format!("{node}: of the group {}", request.member.group);
    put(source, signing, register.with(request.member, Time::now()), version, &what).await
}

pub(crate) async fn revoke(Revoke { node, source, signing }: &Revoke) -> anyhow::Result<ExitCode> {
    let (register, version) = source.register(&source.root().await?).await?;
    let next = register.without(node, Time::now());
    let next = next.with_context(|| format!("{node} is not in the register, so it belongs to no group already"))?;
    put(source, signing, next, version, &format!("{node}: foreign from now on")).await
}

async fn put(
    source: &Source,
    signing: &Signing,
    register: Register,
    version: Option<Version>,
    what: &str,
) -> anyhow::Result<ExitCode> {
    let number = register.number;
    let document = signing.sign(register)?;
    if let Some(done) = signing.drafts(&document)? {
        return Ok(done);
    }
    source.root().await?.approve.verified(&document).context("nobody would believe this")?;
    let revision = version.map(|version| version.revision);
    source.store()?.swap(&Head::Register, &document.bytes(), revision.as_ref()).await?;
    output::line(&format!("{what} (register {number})"))?;
    Ok(ExitCode::SUCCESS)
}
