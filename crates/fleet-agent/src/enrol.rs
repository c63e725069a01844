//! `tollgate-fleet token`, `enrol`, `approve` and `revoke`: which nodes belong to the fleet.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_fleet::{
    Kept, Name, Register, Time,
    register::{Member, Request},
    store::{Head, Kind, Store, Version},
};

use tollgate_signing::SecretKey;

use crate::{
    input::read,
    node::{KEPT, Node},
    output,
    source::{Signing, Source},
    token,
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
    /// A token that `tollgate fleet token` has made for this node; it is used once, and removed
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The node
    #[arg(required_unless_present = "tokens")]
    node: Option<Name>,
    /// The first 16 digits of its key, or more, as `enrol` has printed them on the node
    #[arg(long, value_name = "DIGITS", required_unless_present = "tokens")]
    key: Option<String>,
    /// Approve all nodes that have asked with a token of this file, which `tollgate fleet token` has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["node", "key"])]
    tokens: Option<PathBuf>,
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

pub(crate) async fn enrol(Enrol { node, source, group, others, kept, token }: &Enrol) -> anyhow::Result<ExitCode> {
    let vouching = token.as_ref().map(|path| SecretKey::read(path)).transpose()?;
    let root = Kept::begin(kept, &read(source.root_file())?)?.root().clone();
    let key = Node::key(kept, node)?;
    let member = Member { node: node.clone(), key: key.public(), group: group.clone(), others: others.clone() };
    let mut request = Node::ask(kept, &key, Request { fleet: root.fleet, member, made: Time::now() })?;
    if let Some(vouching) = &vouching {
        request.sign(vouching);
    }
    source.store()?.put(Kind::Request, node, &request.bytes()).await?;
    if let Some(path) = token {
        fs::remove_file(path)
            .with_context(|| format!("cannot remove {}, which has been used; do it", path.display()))?;
        output::line(&format!("{node} asks to belong to the fleet, with a token"))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!(
        "{node} asks to belong to the fleet; compare its key when you approve it: {}",
        key.public().digits()
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn approve(arguments: &Approve) -> anyhow::Result<ExitCode> {
    let Approve { source, signing, .. } = arguments;
    match arguments {
        Approve { tokens: Some(tokens), .. } => approve_all(tokens, source, signing).await,
        Approve { node: Some(node), key: Some(key), .. } => approve_one(node, key, source, signing).await,
        _ => bail!("name a node and its --key, or --tokens"),
    }
}

/// Approves the nodes that have asked with a token. A token counts once.
async fn approve_all(tokens: &Path, source: &Source, signing: &Signing) -> anyhow::Result<ExitCode> {
    let (root, mut kept) = (source.root().await?, token::read(tokens)?);
    let (mut register, version) = source.register(&root).await?;
    let (number, mut approved) = (register.number, Vec::new());
    for (node, bytes) in source.store()?.all(Kind::Request).await? {
        let Some(at) = kept.iter().position(|voucher| voucher.node == node) else { continue };
        match kept[at].member(&bytes, &root.fleet, Time::now()) {
            Ok(member) => {
                register = register.with(member, Time::now());
                kept.remove(at);
                approved.push(node.to_string());
            }
            Err(cause) => output::line(&format!("{node} is not approved: {cause}"))?,
        }
    }
    if approved.is_empty() {
        bail!("no node has asked with a token of {}: run `tollgate fleet enrol --token` on them", tokens.display());
    }
    // One change is one number.
    let done = put(source, signing, Register { number: number + 1, ..register }, version, &approved.join(", ")).await?;
    token::write(tokens, &kept)?;
    Ok(done)
}

async fn approve_one(node: &Name, key: &str, source: &Source, signing: &Signing) -> anyhow::Result<ExitCode> {
    let root = source.root().await?;
    let requests = source.store()?.all(Kind::Request).await?;
    let request = requests.into_iter().find(|(name, _)| name == node);
    let (_, bytes) = request.with_context(|| format!("{node} has not asked: run `tollgate fleet enrol` on it"))?;
    let request = Request::parse(&bytes)?;
    // Anybody may have written the request: what the administrator has seen on the node decides.
    let digits = request.member.key.digits();
    if key.len() < DIGITS || !digits.starts_with(key) {
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
