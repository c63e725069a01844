//! `tollgate-fleet init` and `keys`: the root file and its versions.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_fleet::{Name, Root, Time, root::Role, store::Store};
use tollgate_signing::PublicKey;

use crate::{
    input::{duration, read},
    output,
    source::{Signing, Source},
};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The name of the fleet
    fleet: Name,
    #[command(flatten)]
    keys: Keys,
}

#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    signing: Signing,
    #[command(flatten)]
    roles: Roles,
}

/// Public keys by what they may do, and how many of them must sign.
#[derive(Debug, Args)]
pub(crate) struct Roles {
    /// A public key that signs root files
    #[arg(long, value_name = "KEY.pub")]
    root_key: Vec<PathBuf>,
    /// How many of them must sign [default: 1, or as before]
    #[arg(long, value_name = "COUNT")]
    root_threshold: Option<usize>,
    /// A public key that signs generations
    #[arg(long, value_name = "KEY.pub")]
    publish_key: Vec<PathBuf>,
    /// How many of them must sign [default: 1, or as before]
    #[arg(long, value_name = "COUNT")]
    publish_threshold: Option<usize>,
    /// A public key that approves nodes
    #[arg(long, value_name = "KEY.pub")]
    approve_key: Vec<PathBuf>,
    /// How many of them must sign [default: 1, or as before]
    #[arg(long, value_name = "COUNT")]
    approve_threshold: Option<usize>,
    /// How long the root file is valid
    #[arg(long, value_name = "TIME", default_value = "365days", value_parser = duration)]
    valid: Duration,
}

pub(crate) async fn init(Init { fleet, keys: Keys { source, signing, roles } }: &Init) -> anyhow::Result<ExitCode> {
    let made = Time::now();
    let root = Root {
        fleet: fleet.clone(),
        version: 1,
        made,
        expires: made.after(roles.valid),
        root: role("--root-key", &roles.root_key, roles.root_threshold, None)?,
        publish: role("--publish-key", &roles.publish_key, roles.publish_threshold, None)?,
        approve: role("--approve-key", &roles.approve_key, roles.approve_threshold, None)?,
    };
    let document = signing.sign(root)?;
    if let Some(done) = signing.drafts(&document)? {
        return Ok(done);
    }
    let bytes = document.bytes();
    Root::first(&bytes).context("name the secret root keys to --sign")?;
    output::create(source.root_file(), &bytes)?;
    source.store()?.put_root(1, &bytes).await?;
    output::line(&format!(
        "{}: the root file of the fleet {fleet}; bring it to each node, by a way that you trust",
        source.root_file().display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn keys(Keys { source, signing, roles }: &Keys) -> anyhow::Result<ExitCode> {
    let present = source.root().await?;
    let made = Time::now();
    let next = Root {
        fleet: present.fleet.clone(),
        version: present.version.saturating_add(1),
        made,
        expires: made.after(roles.valid),
        root: role("--root-key", &roles.root_key, roles.root_threshold, Some(&present.root))?,
        publish: role("--publish-key", &roles.publish_key, roles.publish_threshold, Some(&present.publish))?,
        approve: role("--approve-key", &roles.approve_key, roles.approve_threshold, Some(&present.approve))?,
    };
    let version = next.version;
    let document = signing.sign(next)?;
    if let Some(done) = signing.drafts(&document)? {
        return Ok(done);
    }
    let bytes = document.bytes();
    present.next(&bytes).context("enough root keys of the present and of the next version must --sign")?;
    source.store()?.put_root(version, &bytes).await?;
    output::line(&format!(
        "version {version} of the root file: publish for each group, and approve again if those keys changed"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn role(option: &str, files: &[PathBuf], threshold: Option<usize>, before: Option<&Role>) -> anyhow::Result<Role> {
    let keys = match before {
        Some(role) if files.is_empty() => role.keys.clone(),
        _ => files.iter().map(|path| public(path)).collect::<anyhow::Result<Vec<_>>>()?,
    };
    let threshold = threshold.or(before.map(|role| role.threshold)).unwrap_or(1);
    let count = keys.len();
    Role::new(threshold, keys).with_context(|| {
        format!("{option}: {threshold} must sign, and {count} keys are named; name enough, and each once")
    })
}

fn public(path: &Path) -> anyhow::Result<PublicKey> {
    let text = String::from_utf8(read(path)?).unwrap_or_default();
    match PublicKey::parse(text.trim()) {
        Ok(key) => Ok(key),
        Err(cause) => bail!("{}: {cause}", path.display()),
    }
}
