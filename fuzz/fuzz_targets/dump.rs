//! What the child that runs libsepol says of a policy: a policy that can be laid out or refused, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_policy::{dump, tables};

fuzz_target!(|bytes: &[u8]| {
    let _ = dump::read_names(bytes);
    if let Ok(policy) = dump::read(bytes) {
        let _ = tables::build(&policy);
    }
});
