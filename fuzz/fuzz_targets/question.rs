//! What machines ask one another about contexts: a message or an error; who does not have the key can write none, and what
//! is read can be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::seeds::KEY;
use tollgate_netlabel::{question::Message, sealed::Key};

fuzz_target!(|bytes: &[u8]| {
    let stranger = Key { number: bytes.get(5).copied().unwrap_or(0), secret: *b"not in the seeds" };
    assert!(Message::open(bytes, &[stranger]).is_err());
    if let Ok((message, key)) = Message::open(bytes, &[KEY]) {
        assert_eq!(message.seal(key)[..], *bytes);
    }
});
