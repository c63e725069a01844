//! The label of a packet, in whatever format it comes.

use crate::{
    calipso::Calipso,
    cipso::{Cipso, Tag},
    dsm::{self, Dsm},
    envelope,
    error::ReadError,
    ipv4, ipv6,
    level::Doi,
    sealed::{self, Sealed},
};

/// A label, and its format.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Label {
    /// A level or a SID in a CIPSO option.
    Cipso(Cipso),
    /// DSM's.
    Dsm(Dsm),
    /// A level in a CALIPSO option.
    Calipso(Calipso),
    /// Tollgate's own.
    Sealed {
        /// The domain that a CIPSO option names; the other options name none.
        doi: Option<Doi>,
        /// The label, which is yet to be verified.
        sealed: Sealed,
    },
}

impl Label {
    /// The label in the options of an IPv4 header, which are what follows its first 20 bytes. `None`: it has none.
    ///
    /// # Errors
    ///
    /// If the options are malformed, or the label is. An option of the experimental type that is not Tollgate's is
    /// malformed too: another experiment cannot share the type.
    pub fn in_ipv4(options: &[u8]) -> Result<Option<Self>, ReadError> {
        let Some(option) = ipv4::label(options)? else { return Ok(None) };
        if option.first() == Some(&ipv4::EXPERIMENT) {
            let sealed = Sealed::read_ipv4(option)?;
            return Ok(Some(Self::Sealed { doi: None, sealed }));
        }
        let (doi, tag) = envelope::open(option)?;
        Ok(Some(match tag.first() {
            Some(&dsm::FREE_FORM) => Self::Dsm(Dsm::read_tag(doi, tag)?),
            Some(&sealed::TAG) => Self::Sealed { doi: Some(doi), sealed: Sealed::read_tag(tag)? },
            _ => Self::Cipso(Cipso { doi, tag: Tag::read(tag)? }),
        }))
    }

    /// The label in a hop-by-hop header of IPv6. `None`: it has none.
    ///
    /// # Errors
    ///
    /// As for IPv4.
    pub fn in_ipv6(header: &[u8]) -> Result<Option<Self>, ReadError> {
        let Some(option) = ipv6::label(header)? else { return Ok(None) };
        Ok(Some(if option.first() == Some(&ipv6::EXPERIMENT) {
            Self::Sealed { doi: None, sealed: Sealed::read_ipv6(option)? }
        } else {
            Self::Calipso(Calipso::read(option)?)
        }))
    }
}
