//! Which store a command means, and the store itself.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use etcd_client::{Certificate, Identity, TlsOptions};
use tollgate_fleet::{
    Folder, Hash, Name,
    store::{Head, Kind, Revision, Store, StoreError, Version},
};

use crate::{etcd::Etcd, input::read};

/// How the name of an etcd begins.
const ETCD: &str = "etcd://";
/// What stands before the keys in an etcd if nothing else is named.
const PREFIX: &str = "tollgate";

/// A store, as a command names it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// The store: a folder, which may be a share or a copy, or `etcd://HOST:PORT,HOST:PORT/PREFIX`
    #[arg(long, value_name = "STORE")]
    store: String,
    /// The authority that has signed the certificates of etcd's members
    #[arg(long, value_name = "FILE")]
    etcd_authority: Option<PathBuf>,
    /// The certificate for etcd, whose common name is a user of etcd
    #[arg(long, value_name = "FILE", requires_all = ["etcd_authority", "etcd_key"])]
    etcd_certificate: Option<PathBuf>,
    /// The secret key of the certificate
    #[arg(long, value_name = "FILE", requires = "etcd_certificate")]
    etcd_key: Option<PathBuf>,
}

/// A store of either kind.
pub(crate) enum Opened {
    Folder(Folder),
    Etcd(Box<Etcd>),
}

impl Place {
    /// The store. `of`: whose connection it is.
    pub(crate) fn open(&self, of: &str) -> anyhow::Result<Opened> {
        let Some(rest) = self.store.strip_prefix(ETCD) else {
            if self.etcd_authority.is_some() {
                bail!("{} is a folder, which has no certificates: name a store {ETCD}HOST:PORT", self.store);
            }
            return Ok(Opened::Folder(Folder::new(&self.store)));
        };
        let (members, prefix) = rest.split_once('/').unwrap_or((rest, PREFIX));
        let tls = self.tls()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let members: Vec<String> = members.split(',').map(|member| format!("{scheme}://{member}")).collect();
        if prefix.is_empty() || members.iter().any(|member| member.ends_with('/')) {
            bail!("{} names no members: write {ETCD}HOST:PORT,HOST:PORT, or with /PREFIX after them", self.store);
        }
        Ok(Opened::Etcd(Box::new(Etcd::new(members, prefix, tls, of))))
    }

    fn tls(&self) -> anyhow::Result<Option<TlsOptions>> {
        let Some(authority) = &self.etcd_authority else { return Ok(None) };
        let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(authority)?));
        if let Some(certificate) = &self.etcd_certificate {
            let key = self.etcd_key.as_ref().context("name the certificate's key with --etcd-key")?;
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        Ok(Some(tls))
    }
}

/// Does the same in the store of either kind.
macro_rules! either {
    ($opened:expr, $store:ident => $call:expr) => {
        match $opened {
            Opened::Folder($store) => $call,
            Opened::Etcd($store) => $call,
        }
    };
}

impl Store for Opened {
    async fn head(&self, head: &Head) -> Result<Option<Version>, StoreError> {
        either!(self, store => store.head(head).await)
    }

    async fn swap(&self, head: &Head, bytes: &[u8], expected: Option<&Revision>) -> Result<(), StoreError> {
        either!(self, store => store.swap(head, bytes, expected).await)
    }

    async fn piece(&self, hash: &Hash, limit: u64) -> Result<Vec<u8>, StoreError> {
        either!(self, store => store.piece(hash, limit).await)
    }

    async fn put_piece(&self, hash: &Hash, bytes: &[u8]) -> Result<(), StoreError> {
        either!(self, store => store.put_piece(hash, bytes).await)
    }

    async fn root(&self, version: u64) -> Result<Option<Vec<u8>>, StoreError> {
        either!(self, store => store.root(version).await)
    }

    async fn put_root(&self, version: u64, bytes: &[u8]) -> Result<(), StoreError> {
        either!(self, store => store.put_root(version, bytes).await)
    }

    async fn put(&self, kind: Kind, node: &Name, bytes: &[u8]) -> Result<(), StoreError> {
        either!(self, store => store.put(kind, node, bytes).await)
    }

    async fn all(&self, kind: Kind) -> Result<Vec<(Name, Vec<u8>)>, StoreError> {
        either!(self, store => store.all(kind).await)
    }

    async fn changed(&self, head: &Head, since: Option<&Revision>) {
        either!(self, store => store.changed(head, since).await);
    }

    fn interval(&self) -> Duration {
        either!(self, store => store.interval())
    }
}
