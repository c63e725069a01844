//! A kernel's own symbols: whatever they say, its graph is one or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate_fuzz::symbols(bytes));
