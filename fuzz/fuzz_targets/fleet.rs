//! Documents of a fleet, which lie in a store that anybody may write: what is read is written in the same way again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fleet::{Manifest, Register, Root, Signed, State, document::Text, register::Request};

fuzz_target!(|bytes: &[u8]| {
    same::<Manifest>(bytes);
    same::<Root>(bytes);
    same::<Register>(bytes);
    same::<Request>(bytes);
    same::<State>(bytes);
});

fn same<T: Text>(bytes: &[u8]) {
    if let Ok(document) = Signed::<T>::parse(bytes) {
        assert_eq!(document.bytes(), bytes);
    }
}
