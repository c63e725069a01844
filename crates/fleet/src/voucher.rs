//! Tokens by which nodes are approved before they ask: an administrator makes one for a node, which signs its request with it
//! once, and keeps the public half. So whoever reads what the administrator keeps can enrol nothing.

use std::{fmt, str::FromStr};

use tollgate_signing::PublicKey;

use crate::{
    document::{DocumentError, Signed},
    name::Name,
    register::{Member, Request},
    time::Time,
};

/// The public half of a token. Its text is `NODE DIGITS EXPIRES GROUP`, and more groups for stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voucher {
    /// The node that may use it.
    pub node: Name,
    /// The key that signs the node's request.
    pub key: PublicKey,
    /// Until when it counts.
    pub expires: Time,
    /// The group of the node.
    pub group: Name,
    /// Smaller groups, which stages name.
    pub others: Vec<Name>,
}

/// Why a request is not vouched for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VoucherError {
    /// It is none, or neither the node nor the token has signed it.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It asks for something else.
    #[error("it asks as {asked}, and the token is for {given}: enrol the node so, or make another token")]
    Other {
        /// The fleet, the node and the groups that it names.
        asked: String,
        /// Those of the token.
        given: String,
    },
    /// The token counts no longer.
    #[error("its token has expired on {0}: make another one")]
    Expired(Time),
}

impl Voucher {
    /// The node that a request describes, if this token has signed it, too. Its bytes may be anyone's.
    pub fn member(&self, request: &[u8], fleet: &Name, now: Time) -> Result<Member, VoucherError> {
        let Request { fleet: named, member, .. } = Request::parse(request)?;
        let document = Signed::<Request>::parse(request)?;
        document.verified(&[member.key.clone(), self.key.clone()], 2)?;
        let groups = |group: &Name, others: &[Name]| {
            [group].into_iter().chain(others).map(Name::as_str).collect::<Vec<_>>().join(" ")
        };
        let asked = format!("{} of the fleet {named}, in {}", member.node, groups(&member.group, &member.others));
        let given = format!("{} of the fleet {fleet}, in {}", self.node, groups(&self.group, &self.others));
        if asked != given {
            return Err(VoucherError::Other { asked, given });
        }
        if self.expires < now {
            return Err(VoucherError::Expired(self.expires));
        }
        Ok(member)
    }
}

impl fmt::Display for Voucher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, key, expires, group, others } = self;
        write!(f, "{node} {} {expires} {group}", key.digits())?;
        others.iter().try_for_each(|group| write!(f, " {group}"))
    }
}

/// A text that is no voucher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no token's line, which is `NODE DIGITS EXPIRES GROUP`: {0}")]
pub struct NoVoucher(String);

impl FromStr for Voucher {
    type Err = NoVoucher;

    fn from_str(text: &str) -> Result<Self, NoVoucher> {
        let wrong = |cause: &dyn fmt::Display| NoVoucher(cause.to_string());
        let name = |text: &str| text.parse::<Name>().map_err(|cause| wrong(&cause));
        let words: Vec<&str> = text.split(' ').collect();
        let [node, digits, expires, group, others @ ..] = &words[..] else {
            return Err(wrong(&"it has fewer words"));
        };
        let key = PublicKey::parse(&format!("public ed25519 {node} {digits}")).map_err(|cause| wrong(&cause))?;
        let expires = expires.parse().map_err(|cause: crate::time::NoTime| wrong(&cause))?;
        let others = others.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
        Ok(Self { node: name(node)?, key, expires, group: name(group)?, others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        register::tests::member,
        root::tests::key,
        trust::tests::{NOW, name},
    };

    fn voucher() -> Voucher {
        let Member { node, group, others, .. } = member("a", 31);
        Voucher { node, key: key(41).public(), expires: Time::of_seconds(NOW), group, others }
    }

    /// The request of a node, signed by the keys of these numbers.
    fn request(member: Member, fleet: &str, seeds: &[u8]) -> Vec<u8> {
        let mut document = Signed::new(Request { fleet: name(fleet), member, made: Time::of_seconds(NOW) });
        seeds.iter().for_each(|seed| document.sign(&key(*seed)));
        document.bytes()
    }

    #[test]
    fn vouches_for_the_node_that_has_the_token_and_for_nobody_else() {
        let at = |seconds| Time::of_seconds(NOW + seconds);
        let asks = |bytes: &[u8]| voucher().member(bytes, &name("example"), at(0));
        let good = request(member("a", 31), "example", &[31, 41]);
        assert_eq!(asks(&good), Ok(member("a", 31)));
        assert_eq!(
            Request::parse(&good).unwrap().member,
            member("a", 31),
            "an administrator may compare its key as well"
        );
        for (bytes, part) in [
            (request(member("a", 31), "example", &[31]), "signed by 1 of the keys"),
            (request(member("a", 31), "example", &[41]), "signed by 0 of the keys"),
            (request(member("a", 31), "example", &[31, 42]), "of a key that may not sign it"),
            (request(member("b", 31), "example", &[31, 41]), "it asks as b of the fleet example, in web canary"),
            (request(Member { group: name("db"), ..member("a", 31) }, "example", &[31, 41]), "in db canary"),
            (request(Member { others: Vec::new(), ..member("a", 31) }, "example", &[31, 41]), "in web, and"),
            (request(member("a", 31), "other", &[31, 41]), "of the fleet other"),
        ] {
            let error = asks(&bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(voucher().member(&good, &name("example"), at(1)), Err(VoucherError::Expired(at(0))));
    }

    #[test]
    fn reads_its_own_lines_and_no_others() {
        let text = voucher().to_string();
        let read: Voucher = text.parse().unwrap();
        assert_eq!((read.to_string(), read.key.digits()), (text.clone(), voucher().key.digits()));
        for other in ["", "a", &text.replace("web", "../web"), &text.replace("Z ", " "), &format!("{text} ")] {
            assert!(other.parse::<Voucher>().is_err(), "{other}");
        }
    }
}
