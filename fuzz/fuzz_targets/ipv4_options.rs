//! The options of an IPv4 header: a label or an error; a label can be written and read again, and no sealed one is valid.
#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::refuses_seal;
use tollgate_netlabel::{Label, ipv4, sealed::Addresses};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(label)) = Label::in_ipv4(bytes) else { return };
    let options = match &label {
        Label::Cipso(cipso) => cipso.write_words().expect("what was read has room"),
        Label::Dsm(dsm) => dsm.write(),
        Label::Sealed { doi, sealed } => {
            refuses_seal(sealed, *doi, Addresses::V4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST));
            doi.map_or_else(|| ipv4::pad(sealed.write_ipv4()), |doi| sealed.write_cipso(doi))
        }
        Label::Calipso(calipso) => panic!("{calipso:?} in IPv4"),
    };
    assert!(options.len() <= ipv4::MAX_OPTIONS && options.len().is_multiple_of(4), "{options:02x?}");
    assert_eq!(Label::in_ipv4(&options), Ok(Some(label)));
});
