//! Labels in packets.

use serde::de::DeserializeOwned;

use super::{Client, ClientError, unexpected};
use crate::{
    network::{Flows, Report, Traced},
    protocol::{Network, Request},
};

impl Client {
    /// Which networks are labelled, and what became of packets.
    pub fn network(&mut self) -> Result<Report, ClientError> {
        self.asked(Network::Report, "networks")
    }

    /// The last packets that were denied or dropped, after the one with this number.
    pub fn trace(&mut self, after: u64) -> Result<Vec<Traced>, ClientError> {
        self.asked(Network::Trace(after), "packets")
    }

    /// The flows of sockets that have labels, in all network namespaces.
    pub fn flows(&mut self) -> Result<Flows, ClientError> {
        self.asked(Network::Peers, "flows")
    }

    fn asked<T: DeserializeOwned>(&mut self, what: Network, expected: &'static str) -> Result<T, ClientError> {
        let json = self.word(&Request::Network(what), &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected(expected, json))
    }
}
