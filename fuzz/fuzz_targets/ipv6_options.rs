//! A hop-by-hop header of IPv6: a label or an error; a label can be written and read again, and no sealed one is valid.
#![no_main]

use std::net::Ipv6Addr;

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::refuses_seal;
use tollgate_netlabel::{Label, ipv6, sealed::Addresses};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(label)) = Label::in_ipv6(bytes) else { return };
    let option = match &label {
        Label::Calipso(calipso) => calipso.write().expect("what was read has room"),
        Label::Sealed { doi: None, sealed } => {
            refuses_seal(sealed, None, Addresses::V6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST));
            sealed.write_ipv6()
        }
        other => panic!("{other:?} in IPv6"),
    };
    assert_eq!(Label::in_ipv6(&ipv6::header(0, &option)), Ok(Some(label)));
});
