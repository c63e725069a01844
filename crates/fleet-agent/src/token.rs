//! `tollgate-fleet token`: approval of a node before it asks.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_fleet::{Name, Time, durable, voucher::Voucher};
use tollgate_signing::SecretKey;

use crate::{
    input::{self, duration},
    output,
};

#[derive(Debug, Args)]
pub(crate) struct Token {
    /// The node that may use it
    node: Name,
    /// The group of the node
    #[arg(long, value_name = "GROUP")]
    group: Name,
    /// A smaller group that stages name, to which it belongs as well
    #[arg(long = "also", value_name = "GROUP")]
    others: Vec<Name>,
    /// The file of tokens that were made and not used yet, which `approve` reads; it has no secrets
    #[arg(long, value_name = "FILE")]
    tokens: PathBuf,
    /// The new file of the token, which the node needs
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long it counts
    #[arg(long, value_name = "TIME", default_value = "7days", value_parser = duration)]
    valid: Duration,
}

pub(crate) fn token(arguments: &Token) -> anyhow::Result<ExitCode> {
    let Token { node, group, others, tokens, out, valid } = arguments;
    let mut kept = if tokens.exists() { read(tokens)? } else { Vec::new() };
    let key = SecretKey::random(node.as_str())?;
    key.make_alone(out)?;
    let expires = Time::now().after(*valid);
    let (node, group, others) = (node.clone(), group.clone(), others.clone());
    // Another one of the same node counts no longer.
    kept.retain(|voucher| voucher.node != node);
    kept.push(Voucher { node: node.clone(), key: key.public(), expires, group, others });
    write(tokens, &kept)?;
    output::line(&format!(
        "{}: counts once, for {node}, until {expires}; bring it there by a way that nobody else reads",
        out.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The tokens of a file, a line each.
pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<Voucher>> {
    let text = String::from_utf8(input::read(file)?);
    let text = text.with_context(|| format!("{} is no file of tokens: name another one", file.display()))?;
    let mut kept = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match line.parse() {
            Ok(voucher) => kept.push(voucher),
            Err(cause) => bail!("{}:{number}: {cause}", file.display()),
        }
    }
    Ok(kept)
}

/// Writes them, in place of those that were there.
pub(crate) fn write(file: &Path, kept: &[Voucher]) -> anyhow::Result<()> {
    let text: String = kept.iter().map(|voucher| format!("{voucher}\n")).collect();
    durable::write(file, 0o644, text.as_bytes())
        .with_context(|| format!("cannot write {}; name a file in a folder that you may write", file.display()))
}
