//! Flows of sockets that have labels.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What a socket and its other end say to one another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flow {
    /// The protocol, by the socket's class: `tcp`, `udp`, `rawip`...
    pub protocol: String,
    /// The socket's own address.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The number of the socket's network namespace: that of `ls -lL /proc/PID/ns/net`.
    pub namespace: u64,
    /// The socket's context.
    pub context: String,
    /// The other end's; `None`: nothing with a label has come from there yet.
    pub peer: Option<String>,
}

/// The flows, or as many as a report has room for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// The flows.
    pub flows: Vec<Flow>,
    /// How many are left out.
    pub left_out: u64,
}
