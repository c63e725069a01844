//! Tollgate's own label: a full context between hosts of one cluster, sealed by a MAC.
//!
//! The body has 20 bytes, in network byte order but for the MAC:
//!
//! ```text
//!  0        1        2                 4                 6                 8
//! +--------+--------+--------+--------+--------+--------+--------+--------+
//! |version | key    | time window     | node            | generation      |
//! | 1      | number | (low 16 bits)   |                 | (low 16 bits)   |
//! +--------+--------+--------+--------+--------+--------+--------+--------+
//!  8                                   12                                  20
//! +--------+--------+--------+--------+--------+--------+--------+--------+----------
//! | context identifier                | SipHash-2-4, 64 bits, little endian
//! +--------+--------+--------+--------+--------+--------+--------+--------+----------
//! ```
//!
//! It travels in one of three options:
//!
//! ```text
//! IPv4, CIPSO, own tag 129     86 1c  domain (4)  81 16  body (20)           28 bytes, whole words
//! IPv4, experiment (RFC 4727)  9e 16  body (20)  00 00                       24 bytes with padding
//! IPv6, experiment (RFC 4727)  next 02  1e 14  body (20)                     24 bytes of hop-by-hop header
//! ```
//!
//! A kernel with NetLabel drops the first if nothing takes it off before: `cipso_v4_validate` knows no tag 129. So no such
//! host takes a packet as unlabelled by mistake, and no such router forwards it. Routers forward the other two, and hosts
//! without Tollgate ignore them.
//!
//! The MAC is SipHash-2-4 with a key of 128 bits over these bytes (40 for IPv4, 64 for IPv6), in network byte order:
//!
//! ```text
//! source address (4 or 16)  destination address (4 or 16)
//! source port (2)  destination port (2)  protocol (1)  version (1)  node (2)
//! domain (4)  context identifier (4)
//! generation (8)
//! time window (8)
//! ```
//!
//! Of generation and window, the MAC covers all bits, and the option has only the low ones. They tell the receiver which of
//! the values that it knows is meant. So a window that comes again after 65,536 others is still another one.
//!
//! A label that is moved to another flow, changed, or replayed after its window is refused. Within its flow and its window
//! a replay is accepted. Packets without ports, and fragments but the first, have 0 for both: their labels are bound to
//! addresses and protocol only. Length and content of packets are not covered, because the sender's program may see one packet for
//! many segments (GSO).

use std::{
    fmt,
    hash::Hasher,
    net::{Ipv4Addr, Ipv6Addr},
};

use siphasher::sip::SipHasher24;

use crate::{envelope, error::ReadError, ipv4, ipv6, level::Doi};

/// The tag in a CIPSO option. Tags from 128 on are each domain's own (the draft, section 3.4); 128 is Linux's.
pub(crate) const TAG: u8 = 129;

const VERSION: u8 = 1;

/// Bytes of the body.
pub const LENGTH: usize = 20;

/// Seconds of a time window.
pub const WINDOW_SECONDS: u64 = 8;

/// How many windows a label may be older or newer than the receiver's clock, at most. Beyond, 16 bits would not tell which
/// window is meant.
pub const MOST_TOLERANCE: u16 = 1 << 14;

/// What a sealed label says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The number of the sender's context in its generation.
    pub context: u32,
    /// The sender's node.
    pub node: u16,
    /// Whose numbers these are: the same on every host that has the same policy in force, such as the first 8 bytes of
    /// the digest of the built policy.
    pub generation: u64,
    /// When it was made, in units of [`WINDOW_SECONDS`] since 1970.
    pub window: u64,
}

/// The window of a time, in seconds since 1970.
#[must_use]
pub fn window(seconds: u64) -> u64 {
    seconds / WINDOW_SECONDS
}

/// Where a packet comes from and goes to. The label is valid for it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Source and destination.
    pub addresses: Addresses,
    /// The protocol that follows IP, as `IPPROTO_TCP`.
    pub protocol: u8,
    /// Source and destination port; 0 and 0 for a protocol without ports, and for every fragment but the first.
    pub ports: (u16, u16),
}

/// Source and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// Of IPv4.
    V4(Ipv4Addr, Ipv4Addr),
    /// Of IPv6.
    V6(Ipv6Addr, Ipv6Addr),
}

/// A key that the hosts of a cluster share. Two with different numbers may be valid at a time, while one replaces the other.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The number in labels that are sealed by it.
    pub number: u8,
    /// The secret.
    pub secret: [u8; 16],
}

impl Key {
    /// The number of a context in labels that this key seals: 32 bits of the SipHash-2-4 of its text. It is never 0. All
    /// machines that share the key know it, whichever of them met the context first. Who does not have the key cannot look
    /// for another context with the same number.
    #[must_use]
    pub fn identifier(&self, context: &str) -> u32 {
        let mut hash = SipHasher24::new_with_key(&self.secret);
        // What the MAC covers begins with an address, and has one of two lengths.
        hash.write(b"context");
        hash.write(context.as_bytes());
        (hash.finish() as u32).max(1)
    }
}

/// Without the secret.
impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Key").field("number", &self.number).finish_non_exhaustive()
    }
}

/// What a receiver knows, which a label must fit.
#[derive(Debug, Clone, Copy)]
pub struct Receiver<'a> {
    /// The domain of its cluster.
    pub doi: Doi,
    /// The keys that are valid.
    pub keys: &'a [Key],
    /// The generations whose contexts it knows.
    pub generations: &'a [u64],
    /// The window of its clock.
    pub now: u64,
    /// How many windows a label may be older or newer; more than [`MOST_TOLERANCE`] counts as that.
    pub tolerance: u16,
}

/// Why a label is not valid for this packet, here and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// It was made too long ago, or the clocks differ.
    #[error("the label's time window is {window}, and the clock is at {now}")]
    Window {
        /// The label's window.
        window: u64,
        /// The receiver's.
        now: u64,
    },
    /// It was sealed by a key that is not valid here.
    #[error("no key has the number {number}")]
    Key {
        /// The key's number.
        number: u8,
    },
    /// Its numbers are those of a policy that is not in force here.
    #[error("no known generation ends in {generation:#06x}")]
    Generation {
        /// The low bits of the generation.
        generation: u16,
    },
    /// It is forged, or another flow's.
    #[error("the label is not sealed for this packet")]
    Mac,
}

/// A sealed label, as an option has it. Nothing in it is true before [`Sealed::open`] says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sealed {
    /// The number of the key.
    pub key: u8,
    /// The low bits of the window.
    pub window: u16,
    /// The node.
    pub node: u16,
    /// The low bits of the generation.
    pub generation: u16,
    /// The number of the context.
    pub context: u32,
    /// The MAC.
    pub mac: u64,
}

impl Sealed {
    /// Seals a claim for the packets of one flow.
    #[must_use]
    pub fn seal(claim: &Claim, flow: &Flow, doi: Doi, key: &Key) -> Self {
        Self {
            key: key.number,
            window: claim.window as u16,
            node: claim.node,
            generation: claim.generation as u16,
            context: claim.context,
            mac: mac(claim, flow, doi, key),
        }
    }

    /// What the label says, if it is valid for this packet.
    ///
    /// # Errors
    ///
    /// If it is not, with the first reason. Only [`SealError::Mac`] is found by computing; so what is refused for another
    /// reason costs a flood's receiver little.
    pub fn open(&self, flow: &Flow, receiver: &Receiver<'_>) -> Result<Claim, SealError> {
        let window = nearest(self.window, receiver.now);
        if window.abs_diff(receiver.now) > receiver.tolerance.min(MOST_TOLERANCE).into() {
            return Err(SealError::Window { window, now: receiver.now });
        }
        // Two keys may have one number, and two generations the same low bits: the MAC tells which is meant.
        let keys = || receiver.keys.iter().filter(|key| key.number == self.key);
        keys().next().ok_or(SealError::Key { number: self.key })?;
        let mut known = false;
        for generation in receiver.generations.iter().filter(|known| **known as u16 == self.generation) {
            known = true;
            let claim = Claim { context: self.context, node: self.node, generation: *generation, window };
            if keys().any(|key| mac(&claim, flow, receiver.doi, key) == self.mac) {
                return Ok(claim);
            }
        }
        Err(if known { SealError::Mac } else { SealError::Generation { generation: self.generation } })
    }

    /// Reads exactly one IPv4 option of the experimental type.
    ///
    /// # Errors
    ///
    /// Another type, length or version.
    pub fn read_ipv4(option: &[u8]) -> Result<Self, ReadError> {
        let (length, body) = ipv4::body(option, ipv4::EXPERIMENT)?;
        Self::read(body, ReadError::OptionLength { kind: ipv4::EXPERIMENT, length })
    }

    /// Reads exactly one IPv6 option of the experimental type.
    ///
    /// # Errors
    ///
    /// Another type, length or version.
    pub fn read_ipv6(option: &[u8]) -> Result<Self, ReadError> {
        let (length, data) = ipv6::data(option, ipv6::EXPERIMENT)?;
        Self::read(data, ReadError::OptionLength { kind: ipv6::EXPERIMENT, length })
    }

    /// Reads exactly one CIPSO option with Tollgate's tag.
    ///
    /// # Errors
    ///
    /// Another type, tag, length or version; domain 0.
    pub fn read_cipso(option: &[u8]) -> Result<(Doi, Self), ReadError> {
        let (doi, tag) = envelope::open(option)?;
        Ok((doi, Self::read_tag(tag)?))
    }

    pub(crate) fn read_tag(tag: &[u8]) -> Result<Self, ReadError> {
        match *tag {
            [TAG, length, ref body @ ..] => Self::read(body, ReadError::TagLength { tag: TAG, length }),
            [tag, ..] => Err(ReadError::TagType { tag }),
            [] => Err(ReadError::Truncated { needed: 2, have: 0 }),
        }
    }

    fn read(body: &[u8], bad: ReadError) -> Result<Self, ReadError> {
        let body: &[u8; LENGTH] = body.try_into().map_err(|_| bad)?;
        let [version, key, w0, w1, n0, n1, g0, g1, c0, c1, c2, c3, ref mac @ ..] = *body;
        if version != VERSION {
            return Err(ReadError::Version { found: version });
        }
        Ok(Self {
            key,
            window: u16::from_be_bytes([w0, w1]),
            node: u16::from_be_bytes([n0, n1]),
            generation: u16::from_be_bytes([g0, g1]),
            context: u32::from_be_bytes([c0, c1, c2, c3]),
            mac: u64::from_le_bytes(*mac),
        })
    }

    /// A CIPSO option of 28 bytes.
    #[must_use]
    pub fn write_cipso(&self, doi: Doi) -> Vec<u8> {
        envelope::wrap(doi, TAG, &self.body())
    }

    /// An IPv4 option of the experimental type, 22 bytes; [`ipv4::pad`] fills it to whole words.
    #[must_use]
    pub fn write_ipv4(&self) -> Vec<u8> {
        [&[ipv4::EXPERIMENT, 2 + LENGTH as u8], &self.body()[..]].concat()
    }

    /// An IPv6 option of the experimental type, 22 bytes; [`ipv6::header`] makes a header of it.
    #[must_use]
    pub fn write_ipv6(&self) -> Vec<u8> {
        [&[ipv6::EXPERIMENT, LENGTH as u8], &self.body()[..]].concat()
    }

    fn body(&self) -> Vec<u8> {
        let mut body = vec![VERSION, self.key];
        body.extend(self.window.to_be_bytes());
        body.extend(self.node.to_be_bytes());
        body.extend(self.generation.to_be_bytes());
        body.extend(self.context.to_be_bytes());
        body.extend(self.mac.to_le_bytes());
        body
    }
}

/// The window with these low bits that is nearest to `now`.
fn nearest(low: u16, now: u64) -> u64 {
    // The distance as a signed number of 16 bits; before 1970 there are no windows, so it wraps around there.
    now.wrapping_add_signed(i64::from(low.wrapping_sub(now as u16) as i16))
}

fn mac(claim: &Claim, flow: &Flow, doi: Doi, key: &Key) -> u64 {
    let mut covered = Vec::with_capacity(64);
    match flow.addresses {
        Addresses::V4(source, destination) => covered.extend([source.octets(), destination.octets()].as_flattened()),
        Addresses::V6(source, destination) => covered.extend([source.octets(), destination.octets()].as_flattened()),
    }
    covered.extend(flow.ports.0.to_be_bytes());
    covered.extend(flow.ports.1.to_be_bytes());
    covered.extend([flow.protocol, VERSION]);
    covered.extend(claim.node.to_be_bytes());
    covered.extend(doi.number().to_be_bytes());
    covered.extend(claim.context.to_be_bytes());
    covered.extend(claim.generation.to_be_bytes());
    covered.extend(claim.window.to_be_bytes());
    SipHasher24::new_with_key(&key.secret).hash(&covered)
}

#[cfg(test)]
mod tests;
