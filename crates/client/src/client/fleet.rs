//! What a fleet's agent asks of the daemon.

use std::os::fd::BorrowedFd;

use super::{Client, ClientError, unexpected};
use crate::{
    fleet::{Looked, Report},
    protocol::{Fleet, Request},
};

impl Client {
    /// What this node enforces of what its fleet has published.
    pub fn fleet(&mut self) -> Result<Report, ClientError> {
        let json = self.word(&Request::Fleet(Fleet::Report), &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("a fleet's report", json))
    }

    /// Says that the agent has looked into the store.
    pub fn looked(&mut self, looked: Looked) -> Result<(), ClientError> {
        self.request(&Request::Fleet(Fleet::Looked(looked)), &[]).map(drop)
    }

    /// Offers the next version of the fleet's root file. Returns its version.
    pub fn offer_root(&mut self, root: BorrowedFd<'_>) -> Result<u64, ClientError> {
        let version = self.word(&Request::Fleet(Fleet::Root), &[root])?;
        version.parse().map_err(|_| unexpected("a version", version))
    }

    /// Offers a manifest, and parts of its generation by name: `policy`, then `guard`, `network` and `sanity` as far as
    /// the manifest names them. Returns what was done with it, in words.
    pub fn offer(&mut self, manifest: BorrowedFd<'_>, parts: &[(&str, BorrowedFd<'_>)]) -> Result<String, ClientError> {
        let (names, files): (Vec<&str>, Vec<_>) = parts.iter().copied().unzip();
        let files: Vec<_> = [manifest].into_iter().chain(files).collect();
        self.word(&Request::Fleet(Fleet::Offer(names.into_iter().map(str::to_owned).collect())), &files)
    }
}
