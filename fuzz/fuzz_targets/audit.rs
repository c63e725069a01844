//! Denials that others wrote: any line is an entry or none, and an entry survives our own log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_audit::{Entry, clock::Zone, follow, log::InOrder, text};

fuzz_target!(|bytes: &[u8]| {
    let mut order = InOrder::default();
    for line in String::from_utf8_lossy(bytes).lines() {
        let Some(entry) = text::parse(line) else { continue };
        for zone in [Zone::Local, Zone::Utc] {
            let shown = follow::line(&entry, follow::Colour::Off, zone);
            assert!(!shown.contains(char::is_control), "{shown:?}");
        }
        if let Entry::Avc(denial) = &entry {
            let _ = denial.to_string();
        }
        let json = serde_json::to_string(&entry).expect("write an entry");
        assert_eq!(text::parse(&json).as_ref(), Some(&entry), "{json}");
        order.push(entry, |_| true);
    }
    order.finish(|_| true);
});
