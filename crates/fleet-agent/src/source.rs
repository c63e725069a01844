//! Where commands read and write, and what they trust.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use tollgate_fleet::{
    Name, Register, Root, Signed, Time,
    document::Text,
    store::{Head, Store, Version},
    trust::{self, Checked, TrustError},
};
use tollgate_signing::SecretKey;

use crate::{
    input::read,
    output,
    place::{Opened, Place},
};

/// A store and the root file that is trusted.
#[derive(Debug, Args)]
pub(crate) struct Source {
    #[command(flatten)]
    place: Place,
    /// The root file that is trusted; its later versions come from the store
    #[arg(long, value_name = "FILE")]
    root: PathBuf,
}

/// Who signs, and for how long.
#[derive(Debug, Args)]
pub(crate) struct Signing {
    /// A secret key that signs; repeat it if more than one must
    #[arg(long = "sign", value_name = "KEY", required_unless_present = "draft")]
    keys: Vec<PathBuf>,
    /// Write it into this new file, for others to sign with `sign`, and not into the store
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
}

impl Source {
    pub(crate) fn of(place: Place, root: PathBuf) -> Self {
        Self { place, root }
    }

    pub(crate) fn store(&self) -> anyhow::Result<Opened> {
        self.place.open("")
    }

    /// The file of the root file.
    pub(crate) fn root_file(&self) -> &Path {
        &self.root
    }

    /// The root file in force.
    pub(crate) async fn root(&self) -> anyhow::Result<Root> {
        let mut root = Root::first(&read(&self.root)?).with_context(|| format!("{}", self.root.display()))?;
        let store = self.store()?;
        while let Some(bytes) = store.root(root.version.saturating_add(1)).await? {
            root = root.next(&bytes)?;
        }
        Ok(root)
    }

    /// The manifest in force, whoever may trust it still, with its revision.
    pub(crate) async fn current(
        &self,
        root: &Root,
        group: &Name,
    ) -> anyhow::Result<Option<(Version, Result<Checked, TrustError>)>> {
        let version = self.store()?.head(&Head::Current(group.clone())).await?;
        Ok(version.map(|version| {
            let checked = trust::authentic(&version.bytes, root, group);
            (version, checked)
        }))
    }

    /// The register, or an empty one, with its revision.
    pub(crate) async fn register(&self, root: &Root) -> anyhow::Result<(Register, Option<Version>)> {
        let version = self.store()?.head(&Head::Register).await?;
        let register = match &version {
            Some(version) => Register::check(&version.bytes, root)?,
            None => Register::empty(root.fleet.clone(), Time::now()),
        };
        Ok((register, version))
    }
}

impl Signing {
    pub(crate) fn of(key: PathBuf) -> Self {
        Self { keys: vec![key], draft: None }
    }

    /// The document with the signatures of these keys.
    pub(crate) fn sign<T: Text>(&self, content: T) -> anyhow::Result<Signed<T>> {
        let mut document = Signed::new(content);
        for path in &self.keys {
            document.sign(&SecretKey::read(path)?);
        }
        Ok(document)
    }

    /// Writes it into a file, if that is what was asked for; `None`: it goes into the store.
    pub(crate) fn drafts<T: Text>(&self, document: &Signed<T>) -> anyhow::Result<Option<ExitCode>> {
        let Some(file) = &self.draft else { return Ok(None) };
        output::create(file, &document.bytes())?;
        let name = file.display();
        output::line(&format!("{name}: `tollgate fleet sign {name} --sign KEY`, then `tollgate fleet submit {name}`"))?;
        Ok(Some(ExitCode::SUCCESS))
    }
}
