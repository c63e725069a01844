//! Prefixes of addresses, and which of them have labels.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// Bits of an IPv4 address.
const BITS4: u8 = 32;
/// Bits of an IPv6 address.
const BITS6: u8 = 128;

/// The family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// AF_INET or AF_INET6.
    #[must_use]
    pub fn number(self) -> u8 {
        let number = match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        };
        number as u8
    }

    /// The family with this number.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.number() == number)
    }

    fn bits(self) -> u8 {
        match self {
            Self::V4 => BITS4,
            Self::V6 => BITS6,
        }
    }
}

/// Addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// The family.
    pub family: Family,
    /// The first address; one of IPv4 in the low 32 bits.
    first: u128,
    /// How many bits are the same.
    pub length: u8,
}

impl Prefix {
    /// A prefix of this address. Bits behind the prefix are left out; a length beyond the address is that of the address.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Self {
        match address {
            IpAddr::V4(address) => Self::of(Family::V4, address.to_bits().into(), length),
            IpAddr::V6(address) => Self::of(Family::V6, address.to_bits(), length),
        }
    }

    fn of(family: Family, address: u128, length: u8) -> Self {
        let length = length.min(family.bits());
        let rest = family.bits() - length;
        let first = if rest == BITS6 { 0 } else { address >> rest << rest };
        Self { family, first, length }
    }

    /// The prefix of the address with these bytes; none: the address 0.
    #[must_use]
    pub fn from_bytes(family: Family, bytes: &[u8], length: u8) -> Option<Self> {
        let address = match family {
            Family::V4 if bytes.is_empty() => 0,
            Family::V4 => u32::from_be_bytes(bytes.try_into().ok()?).into(),
            Family::V6 if bytes.is_empty() => 0,
            Family::V6 => u128::from_be_bytes(bytes.try_into().ok()?),
        };
        Some(Self::of(family, address, length))
    }

    /// The bytes of the first address.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        match self.address() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    fn address(self) -> IpAddr {
        match self.family {
            Family::V4 => Ipv4Addr::from_bits(self.first as u32).into(),
            Family::V6 => Ipv6Addr::from_bits(self.first).into(),
        }
    }

    /// Whether all addresses of another are among its own.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        let is_shorter = self.family == other.family && self.length <= other.length;
        is_shorter && Self::of(self.family, other.first, self.length).first == self.first
    }

    /// The fewest prefixes that together have the addresses from `first` to `last`.
    #[must_use]
    pub fn between(family: Family, first: u128, last: u128) -> Vec<Self> {
        let (mut found, mut next) = (Vec::new(), Some(first));
        while let Some(first) = next.filter(|next| *next <= last) {
            // As many as begin here, and no more than are left.
            let aligned = first.trailing_zeros().min(family.bits().into());
            let left = (last - first).checked_add(1).map_or(u32::from(BITS6), u128::ilog2);
            let bits = aligned.min(left);
            found.push(Self::of(family, first, family.bits() - bits as u8));
            next = 1_u128.checked_shl(bits).and_then(|count| first.checked_add(count));
        }
        found
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(), self.length)
    }
}

/// Why a text is no prefix.
#[derive(Debug, thiserror::Error)]
#[error("a prefix is ADDRESS/LENGTH")]
pub struct NoPrefix;

impl FromStr for Prefix {
    type Err = NoPrefix;

    fn from_str(text: &str) -> Result<Self, NoPrefix> {
        let (address, length) = text.split_once('/').ok_or(NoPrefix)?;
        Ok(Self::new(address.parse().map_err(|_| NoPrefix)?, length.parse().map_err(|_| NoPrefix)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn contains_what_begins_with_it() {
        for (outer, inner) in [("0.0.0.0/0", "1.2.3.4/32"), ("10.0.0.0/8", "10.1.0.0/16"), ("::/0", "fe80::/64")] {
            assert!(prefix(outer).contains(prefix(inner)) && !prefix(inner).contains(prefix(outer)), "{outer} {inner}");
            assert!(prefix(outer).contains(prefix(outer)));
        }
        assert!(!prefix("10.0.0.0/8").contains(prefix("11.0.0.0/16")));
        assert!(!prefix("::/0").contains(prefix("10.0.0.0/8")));
        assert_eq!(prefix("10.1.2.3/8"), prefix("10.0.0.0/8"));
    }

    #[test]
    fn covers_a_range_exactly() {
        let between = |first: &str, last: &str| {
            let bits = |text: &str| prefix(&format!("{text}/128")).first;
            let family = prefix(&format!("{first}/0")).family;
            Prefix::between(family, bits(first), bits(last)).iter().map(Prefix::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(between("0.0.0.0", "255.255.255.255"), "0.0.0.0/0");
        assert_eq!(between("10.0.0.0", "10.0.2.0"), "10.0.0.0/23 10.0.2.0/32");
        assert_eq!(between("10.0.0.1", "10.0.0.6"), "10.0.0.1/32 10.0.0.2/31 10.0.0.4/31 10.0.0.6/32");
        assert_eq!(between("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), "::/0");
        assert_eq!(between("fd00::", "fd00::ffff:ffff:ffff:ffff"), "fd00::/64");
        assert_eq!(between("8000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), "8000::/1");
        // All addresses, each once: counted at random.
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let (a, b) = (random.u32(..), random.u32(..));
            let (first, last) = (a.min(b), a.max(b));
            let parts = Prefix::between(Family::V4, first.into(), last.into());
            let count: u64 = parts.iter().map(|part| 1 << (32 - part.length)).sum();
            assert_eq!(count, u64::from(last - first) + 1);
            assert!(parts.windows(2).all(|two| two[0].first + (1 << (32 - two[0].length)) == two[1].first));
        }
    }
}
