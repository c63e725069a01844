//! The text of the guard's database: one that is printed and read again the same, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_guard::Database;

fuzz_target!(|text: &str| {
    let Ok(database) = Database::parse(text) else { return };
    assert_eq!(Database::parse(&database.to_string()), Ok(database.clone()));
    assert_eq!(Database::from_bytes(&database.to_bytes()), Ok(database));
});
