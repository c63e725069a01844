//! What is said on the daemon's socket, by either side, and the questions that come over it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_client::{
    protocol::{Request, hello, parse_reply, reply_line},
    sanity,
    status::Status,
};

fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = hello(line);
        if let Ok(request) = Request::parse(line) {
            assert_eq!(Request::parse(without_end(&request.line())).as_ref(), Ok(&request));
        }
        if let Ok(reply) = parse_reply(line) {
            assert_eq!(parse_reply(without_end(&reply_line(&reply))).as_ref(), Ok(&reply));
            let words = reply.unwrap_or_default();
            words.iter().for_each(|word| drop(serde_json::from_str::<Status>(word)));
        }
    }
    let _ = sanity::parse(&String::from_utf8_lossy(bytes));
});

/// A line as readers have it: without the one newline, its last byte.
fn without_end(line: &str) -> &[u8] {
    assert_eq!(line.find('\n'), Some(line.len() - 1));
    line[..line.len() - 1].as_bytes()
}
