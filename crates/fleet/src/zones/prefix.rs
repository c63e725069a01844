//! The addresses of a zone's nodes: networks and hosts.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A network, or a host, which is a network of one address. No bit beyond its length is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    /// How many bits of an address say that it is in the network.
    length: u8,
}

/// A text that is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network: write an address, or its first one and a length, such as 10.1.0.0/16 or fd00:1::/64")]
pub struct NoPrefix(String);

impl Prefix {
    /// Its first address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The mask of its addresses.
    #[must_use]
    pub fn mask(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => Ipv4Addr::from(!u32::MAX.checked_shr(self.length.into()).unwrap_or(0)).into(),
            IpAddr::V6(_) => Ipv6Addr::from(!u128::MAX.checked_shr(self.length.into()).unwrap_or(0)).into(),
        }
    }

    /// Whether some address is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let wider = if self.length < other.length { self } else { other };
        masked(self.address, wider.length) == masked(other.address, wider.length)
    }

    /// Whether it has addresses by which a machine speaks to itself.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let own = [
            Self { address: Ipv4Addr::new(127, 0, 0, 0).into(), length: 8 },
            Self { address: Ipv6Addr::LOCALHOST.into(), length: 128 },
        ];
        own.iter().any(|loopback| self.overlaps(loopback))
    }
}

/// The first bits of an address.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    let mask = Prefix { address, length }.mask();
    match (address, mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => (address & mask).into(),
        (IpAddr::V6(address), IpAddr::V6(mask)) => (address & mask).into(),
        (address, _) => address,
    }
}

impl FromStr for Prefix {
    type Err = NoPrefix;

    fn from_str(text: &str) -> Result<Self, NoPrefix> {
        let none = || NoPrefix(text.chars().take(80).collect());
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| none())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let length = length.map_or(Some(longest), number).ok_or_else(none)?;
        if length > longest || masked(address, length) != address {
            return Err(none());
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = if self.address.is_ipv4() { 32 } else { 128 };
        match self.length {
            length if length == longest => write!(f, "{}", self.address),
            length => write!(f, "{}/{length}", self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn reads_networks_and_hosts_and_nothing_else() {
        for (text, mask) in [
            ("10.1.0.0/16", "255.255.0.0"),
            ("10.1.2.3", "255.255.255.255"),
            ("0.0.0.0/0", "0.0.0.0"),
            ("fd00:1::/64", "ffff:ffff:ffff:ffff::"),
            ("::/0", "::"),
        ] {
            assert_eq!((prefix(text).to_string(), prefix(text).mask().to_string()), (text.to_owned(), mask.to_owned()));
        }
        for text in ["10.1.0.1/16", "10.1.0.0/33", "fd00::1/64", "fd00::/129", "web", "", "10.1.0.0/", "10.1.0.0/+8"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn finds_addresses_that_two_networks_share() {
        for (one, other, expected) in [
            ("10.1.0.0/16", "10.1.2.3", true),
            ("10.1.0.0/16", "10.0.0.0/8", true),
            ("10.1.0.0/16", "10.2.0.0/16", false),
            ("0.0.0.0/0", "::/0", false),
            ("fd00:1::/64", "fd00:1::7", true),
        ] {
            assert_eq!(prefix(one).overlaps(&prefix(other)), expected, "{one} {other}");
            assert_eq!(prefix(other).overlaps(&prefix(one)), expected, "{other} {one}");
        }
        assert!(prefix("0.0.0.0/0").is_loopback() && prefix("::1").is_loopback() && !prefix("::/128").is_loopback());
    }
}
