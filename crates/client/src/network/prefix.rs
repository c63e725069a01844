//! A network: an address, and how many of its bits count.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// A network such as `10.77.0.0/24` or `fd00::/64`; a host is a network of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    first: IpAddr,
    length: u8,
}

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// It is neither an address nor an address with a length.
    #[error("it is not a network: write a host such as 10.77.0.1, or a network such as 10.77.0.0/24 or fd00::/64")]
    Shape,
    /// More bits than the address has.
    #[error("its addresses have {0} bits: write a length from 0 to {0}")]
    Length(u8),
    /// Bits beyond the length are not 0.
    #[error("it names a host in a network: write {network} for the network, or {host} for the host")]
    HostBits {
        /// The network.
        network: Prefix,
        /// The address.
        host: IpAddr,
    },
}

impl Prefix {
    /// The network of an address in which this many bits count. More than the address has are all of them.
    #[must_use]
    pub fn new(host: IpAddr, length: u8) -> Self {
        let length = length.min(width(host));
        Self { first: address(number(host) & !rest(width(host) - length), host), length }
    }

    /// How many bits count.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }

    /// The first address.
    #[must_use]
    pub fn first(self) -> IpAddr {
        self.first
    }

    /// The first and the last address, as numbers.
    #[must_use]
    pub fn bounds(self) -> (u128, u128) {
        let first = number(self.first);
        (first, first | rest(width(self.first) - self.length))
    }

    /// Whether the network contains an address.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let (first, last) = self.bounds();
        self.first.is_ipv4() == address.is_ipv4() && (first..=last).contains(&number(address))
    }

    /// Whether the network lies in another one, or is the same.
    #[must_use]
    pub fn is_in(self, other: Self) -> bool {
        other.length <= self.length && other.contains(self.first)
    }
}

/// The bits of an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn address(number: u128, like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from_bits(number as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(number).into(),
    }
}

/// The number whose lowest `bits` are 1.
fn rest(bits: u8) -> u128 {
    u128::MAX.checked_shr(128 - u32::from(bits)).unwrap_or(0)
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (host, length) = text.split_once('/').map_or((text, None), |(host, length)| (host, Some(length)));
        let host: IpAddr = host.parse().map_err(|_| PrefixError::Shape)?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let length = match length {
            None => width(host),
            Some(length) if digits(length) => {
                let known = length.parse().ok().filter(|length| *length <= width(host));
                known.ok_or(PrefixError::Length(width(host)))?
            }
            Some(_) => return Err(PrefixError::Shape),
        };
        let network = Self::new(host, length);
        if network.first == host { Ok(network) } else { Err(PrefixError::HostBits { network, host }) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == width(self.first) {
            return f.pad(&self.first.to_string());
        }
        f.pad(&format!("{}/{}", self.first, self.length))
    }
}

impl TryFrom<String> for Prefix {
    type Error = PrefixError;

    fn try_from(text: String) -> Result<Self, PrefixError> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_networks_and_hosts() {
        for text in ["0.0.0.0/0", "10.77.0.0/24", "10.77.0.1", "255.255.255.255", "::/0", "fd00::/64", "fd00::1"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1/32".parse(), "10.0.0.1".parse::<Prefix>());
    }

    #[test]
    fn refuses_what_is_no_network_and_says_what_to_write() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        for text in ["", "10.0.0", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/8/8", "localhost", "10.0.0.0/ 8", "fd00::%1"] {
            assert!(error(text).contains("such as 10.77.0.0/24"), "{text}: {}", error(text));
        }
        assert!(error("10.0.0.0/33").contains("from 0 to 32"));
        assert!(error("fd00::/1000").contains("from 0 to 128"));
        assert!(error("10.77.0.5/24").contains("10.77.0.0/24 for the network, or 10.77.0.5 for the host"));
    }

    #[test]
    fn contains_its_first_and_last_address_and_no_other_family() {
        let has = |prefix: &str, address: &str| prefix.parse::<Prefix>().unwrap().contains(address.parse().unwrap());
        assert!(has("10.77.0.0/24", "10.77.0.0") && has("10.77.0.0/24", "10.77.0.255"));
        assert!(!has("10.77.0.0/24", "10.76.255.255") && !has("10.77.0.0/24", "10.77.1.0"));
        assert!(has("0.0.0.0/0", "255.255.255.255") && !has("0.0.0.0/0", "::1") && !has("::/0", "0.0.0.1"));
        assert!(has("::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff") && has("fd00::1", "fd00::1"));
    }
}
