//! Prefixes, as messages about routes and ranges of addresses have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tollgate_client::network::Prefix;

/// The family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of a prefix.
    #[must_use]
    pub fn of(prefix: Prefix) -> Self {
        if prefix.first().is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The family with this number (AF_INET, AF_INET6).
    #[must_use]
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.number() == number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        let number = match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        };
        number as u8
    }

    /// How many bits an address has.
    fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// The highest address, as a number.
    #[must_use]
    pub fn highest(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    fn address(self, number: u128) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::from_bits(number as u32).into(),
            Self::V6 => Ipv6Addr::from_bits(number).into(),
        }
    }

    /// The prefix of the address with these bytes. No bytes are address 0.
    #[must_use]
    pub fn prefix(self, bytes: &[u8], length: u8) -> Option<Prefix> {
        let number = match self {
            _ if bytes.is_empty() => 0,
            Self::V4 => u32::from_be_bytes(bytes.try_into().ok()?).into(),
            Self::V6 => u128::from_be_bytes(bytes.try_into().ok()?),
        };
        Some(Prefix::new(self.address(number), length))
    }

    /// The fewest prefixes that together have the addresses from `first` to `last`.
    #[must_use]
    pub fn between(self, first: u128, last: u128) -> Vec<Prefix> {
        let (mut found, mut next) = (Vec::new(), Some(first));
        while let Some(first) = next.filter(|next| *next <= last) {
            // As many as begin here, and no more than are left.
            let aligned = first.trailing_zeros().min(self.bits().into());
            let left = (last - first).checked_add(1).map_or(u128::BITS, u128::ilog2);
            let bits = aligned.min(left);
            found.push(Prefix::new(self.address(first), self.bits() - bits as u8));
            next = 1_u128.checked_shl(bits).and_then(|count| first.checked_add(count));
        }
        found
    }
}

/// The bytes of a prefix's first address.
#[must_use]
pub fn bytes(prefix: Prefix) -> Vec<u8> {
    match prefix.first() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_a_range_exactly() {
        let between = |first: &str, last: &str| {
            let [first, last] = [first, last].map(|text| text.parse::<Prefix>().unwrap());
            let found = Family::of(first).between(first.bounds().0, last.bounds().0);
            found.iter().map(Prefix::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(between("0.0.0.0", "255.255.255.255"), "0.0.0.0/0");
        assert_eq!(between("10.0.0.0", "10.0.2.0"), "10.0.0.0/23 10.0.2.0");
        assert_eq!(between("10.0.0.1", "10.0.0.6"), "10.0.0.1 10.0.0.2/31 10.0.0.4/31 10.0.0.6");
        assert_eq!(between("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), "::/0");
        assert_eq!(between("fd00::", "fd00::ffff:ffff:ffff:ffff"), "fd00::/64");
        assert_eq!(between("8000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), "8000::/1");
    }

    #[test]
    fn covers_each_address_of_a_range_once() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let (a, b) = (random.u32(..), random.u32(..));
            let (first, last) = (a.min(b).into(), a.max(b).into());
            let parts: Vec<_> = Family::V4.between(first, last).into_iter().map(Prefix::bounds).collect();
            assert_eq!((parts[0].0, parts.last().unwrap().1), (first, last));
            assert!(parts.windows(2).all(|two| two[0].1 + 1 == two[1].0), "{parts:?}");
        }
    }
}
