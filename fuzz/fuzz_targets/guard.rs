//! The file of the guard's database: a database that is written the same, or an error. Its length and its SHA-256 are made
//! right first, or nothing behind them would be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_guard::{Database, Digest};

fuzz_target!(|bytes: &[u8]| {
    let _ = Database::from_bytes(bytes);
    let mut bytes = bytes.to_vec();
    let length = bytes.len() as u64;
    let Some(content) = bytes.len().checked_sub(32).filter(|content| *content >= 20) else { return };
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    let digest = Digest::of(&bytes[..content]);
    bytes[content..].copy_from_slice(&digest.0);
    let Ok(database) = Database::from_bytes(&bytes) else { return };
    assert_eq!(database.to_bytes(), bytes);
    assert_eq!(Database::parse(&database.to_string()), Ok(database));
});
