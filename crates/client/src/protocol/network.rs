//! What a client can ask about labels in packets.

/// A question about labels in packets. The answer follows each colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Which networks are labelled, and what became of packets: a [`crate::network::Report`] as JSON.
    Report,
    /// Packets that were denied or dropped, after the one with this number: [`crate::network::Traced`]s as JSON.
    Trace(u64),
    /// The flows of sockets that have labels: [`crate::network::Flows`] as JSON.
    Peers,
}

impl Network {
    pub(super) fn words(self) -> Vec<String> {
        let words = match self {
            Self::Report => return vec!["network".to_owned()],
            Self::Trace(after) => ["trace".to_owned(), after.to_string()].to_vec(),
            Self::Peers => vec!["peers".to_owned()],
        };
        [vec!["network".to_owned()], words].concat()
    }

    /// Reads the words after `network`.
    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        match words {
            [] => Some(Self::Report),
            ["trace", after] => Some(Self::Trace(after.parse().ok()?)),
            ["peers"] => Some(Self::Peers),
            _ => None,
        }
    }
}
