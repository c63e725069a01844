//! `tollgate key`: keys and signatures of files.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use tollgate_signing::{Content, SecretKey, Signatures, Trusted};

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a key: FILE signs and stays secret, FILE.pub verifies
    New(New),
    /// Sign a file: the signature is written into FILE.sig, beside those of other keys
    Sign(Sign),
    /// Say which trusted key has signed a file; exit status 1 if none has
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The file of the secret key, which must not exist yet
    file: PathBuf,
    /// The name of the key, by which people know it
    #[arg(long, default_value = "tollgate")]
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// The file that is signed, such as a guard database or a built policy
    file: PathBuf,
    /// The file of the secret key
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// Where signatures are written [default: FILE.sig]
    #[arg(long, value_name = "SIGNATURES")]
    signatures: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The file that was signed
    file: PathBuf,
    /// The public keys that are trusted, one per line
    #[arg(long, value_name = "KEYS", default_value = Trusted::FILE)]
    trusted: PathBuf,
    /// Where the signatures are [default: FILE.sig]
    #[arg(long, value_name = "SIGNATURES")]
    signatures: Option<PathBuf>,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::New(arguments) => new(arguments),
        Command::Sign(arguments) => sign(arguments),
        Command::Verify(arguments) => verify(arguments),
    }
}

fn new(New { file, name }: &New) -> anyhow::Result<ExitCode> {
    let public = SecretKey::random(name)?.make(file)?;
    output::line(&format!(
        "{}: the secret key, keep it; {}: the public key, add its line to {} on machines that shall trust it",
        file.display(),
        public.display(),
        Trusted::FILE
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn sign(Sign { file, key, signatures }: &Sign) -> anyhow::Result<ExitCode> {
    let (key, content, path) = (SecretKey::read(key)?, Content::read(file)?, beside(file, signatures.as_deref()));
    let mut signatures = Signatures::read_if_any(&path)?;
    signatures.add(&key, &content);
    signatures.write(&path)?;
    output::line(&format!("{}: signed by {}, in {}", file.display(), key.public().name(), path.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn verify(Verify { file, trusted, signatures }: &Verify) -> anyhow::Result<ExitCode> {
    let (trusted, content, path) = (Trusted::read(trusted)?, Content::read(file)?, beside(file, signatures.as_deref()));
    let signatures = match signatures {
        // What somebody names must exist.
        Some(path) => Signatures::read(path)?,
        None => Signatures::read_if_any(&path)?,
    };
    if let Some(key) = trusted.verify(&content, &signatures) {
        output::line(&format!("{}: signed by {}", file.display(), key.name()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let why = if signatures.is_empty() {
        format!("there is no signature in {}", path.display())
    } else {
        format!("no signature in {} is of this content and of a key in {}", path.display(), trusted.path().display())
    };
    output::line(&format!("{}: not signed by a trusted key: {why}", file.display()))?;
    Ok(ExitCode::from(1))
}

fn beside(file: &Path, named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| Signatures::of(file), Path::to_owned)
}
