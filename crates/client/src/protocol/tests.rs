use super::*;
use crate::fleet::Looked;

fn requests() -> Vec<Request> {
    let mut requests = vec![
        Request::Status,
        Request::Why(None),
        Request::Why(Some("file_open".into())),
        Request::Mode,
        Request::SetMode { mode: Mode::Permissive, domain: None },
        Request::SetMode { mode: Mode::Enforcing, domain: Some("httpd_t".into()) },
        Request::Reload { accept_missing: false },
        Request::Reload { accept_missing: true },
        Request::Access { source: "a b".into(), target: String::new(), class: "file".into() },
        Request::Stop,
        Request::Text(77),
        Request::Peer { from: None },
        Request::Peer { from: Some("[fe80::1%3]:53".parse().unwrap()) },
        Request::Act(Acting::Range),
        Request::Act(Acting::Context),
        Request::Label,
        Request::SetLabel("a:b:c:s0 - s1:c0.c3\n%41".into()),
        Request::DefaultLabel,
        Request::StartShadow,
        Request::StopShadow,
        Request::Shadow,
        Request::Units,
        Request::Network(Network::Report),
        Request::Network(Network::Trace(7)),
        Request::Network(Network::Peers),
        Request::Containers(Containers::Add { context: "a:b:c".into(), files: "a:b:d:s0".into() }),
        Request::Containers(Containers::Sweep),
        Request::Containers(Containers::Report),
        Request::Fleet(Fleet::Report),
        Request::Fleet(Fleet::Root),
        Request::Fleet(Fleet::Offer(vec![])),
        Request::Fleet(Fleet::Offer(vec!["policy".into(), "network".into(), "sanity".into()])),
        Request::Fleet(Fleet::Looked(Looked { next: Some(20), cause: None })),
        Request::Fleet(Fleet::Looked(Looked { next: None, cause: Some("no answer\n".into()) })),
        Request::Services,
        Request::AcceptServices,
        Request::Statistics,
        Request::Count(true),
        Request::Count(false),
    ];
    for (attribute, _) in Attribute::ALL {
        requests.push(Request::Get(attribute));
        requests.push(Request::Sid { attribute, context: String::new() });
    }
    requests
}

#[test]
fn reads_each_request_as_it_was_written() {
    for request in requests() {
        let line = request.line();
        let body = line.strip_suffix('\n').unwrap();
        assert!(body.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{line:?}");
        assert_eq!(Request::parse(body.as_bytes()), Ok(request));
    }
}

#[test]
fn reads_each_reply_as_it_was_written() {
    let replies: [Reply; 4] = [
        Ok(vec![]),
        Ok(vec![String::new()]),
        Ok(vec!["{\"a\": \"\u{e9}\u{a}\"}".into(), "7".into()]),
        Err(Refusal::new(13, "no: 100 % sure\nof it")),
    ];
    for reply in replies {
        let line = reply_line(&reply);
        assert_eq!(line.matches('\n').count(), 1, "{line:?}");
        assert_eq!(parse_reply(line.trim_end_matches('\n').as_bytes()), Ok(reply));
    }
}

#[test]
fn answers_the_greeting_of_its_own_version_only() {
    assert_eq!(greeting("n1"), "tollgate 1 n1\n");
    assert_eq!(hello(b"tollgate 1 n1").unwrap(), "hello n1\n");
    for wrong in ["tollgate 2 n1", "tollgate 1", "HTTP/1.1 400 Bad", ""] {
        assert!(hello(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn refuses_what_is_no_request() {
    let fleet = [
        "fleet root 2",
        "fleet offer guard",
        "fleet offer policy sanity guard",
        "fleet offer policy policy",
        "fleet looked",
        "fleet looked soon",
        "fleet looked 20 a b",
    ];
    for wrong in
        ["", "Status", "status now", "mode perhaps", "get soul", "sid exec", "text -1", "text 4294967296", "a  b"]
            .into_iter()
            .chain(fleet)
    {
        assert!(matches!(Request::parse(wrong.as_bytes()), Err(ProtocolError::Request(_))), "{wrong:?}");
    }
}

#[test]
fn refuses_words_that_are_not_encoded_as_they_should_be() {
    for wrong in ["%", "%4", "%+1", "%4g", "a%zz", "%00", "%ff"] {
        assert!(matches!(Request::parse(wrong.as_bytes()), Err(ProtocolError::Word(_))), "{wrong:?}");
    }
}

#[test]
fn refuses_replies_that_have_neither_shape() {
    for wrong in ["", "error", "error 13", "error 0 text", "error 5000 text", "error x text", "maybe"] {
        assert!(matches!(parse_reply(wrong.as_bytes()), Err(ProtocolError::Unexpected { .. })), "{wrong:?}");
    }
}

#[test]
fn never_panics_on_any_short_line() {
    let alphabet = b"ok% 01f\xff\0\n";
    let mut line = Vec::new();
    for mut number in 0..alphabet.len().pow(5) {
        line.clear();
        while number > 0 {
            line.push(alphabet[number % alphabet.len()]);
            number /= alphabet.len();
        }
        let _ = (Request::parse(&line), parse_reply(&line), hello(&line));
    }
}
