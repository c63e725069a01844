use super::*;

const KEY: Key = Key { number: 7, secret: [9; 16] };
const QUESTION: Question = Question {
    nonce: [3; 16],
    generation: 0x0102_0304_0506_0708,
    window: 221_000_000,
    identifier: 0xaabb_ccdd,
    from: 1,
    to: 2,
};

fn answer(context: &str) -> Message {
    Message::Answer(QUESTION, Some(context.to_owned()))
}

fn open(bytes: &[u8]) -> Result<Message, MessageError> {
    Message::open(bytes, &[KEY]).map(|(message, _)| message)
}

#[test]
fn agrees_with_the_vectors_of_rfc_4231() {
    let hex = |bytes: [u8; 32]| bytes.map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(hex(hmac(&[0x0b; 20], b"Hi There")), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_eq!(
        hex(hmac(b"Jefe", b"what do ya want for nothing?")),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
}

#[test]
fn reads_what_it_has_written() {
    let longest = "c".repeat(MAX_CONTEXT);
    for message in [
        Message::Question(QUESTION),
        Message::Answer(QUESTION, None),
        answer("system_u:system_r:web_t:s0:c1,c3"),
        answer(&longest),
    ] {
        assert_eq!(open(&message.seal(&KEY)), Ok(message));
    }
    // Longer ones are not told, and an empty one is none.
    for context in [longest + "c", String::new()] {
        assert_eq!(open(&answer(&context).seal(&KEY)), Ok(Message::Answer(QUESTION, None)));
    }
}

#[test]
fn refuses_each_changed_byte_and_each_other_length() {
    for message in [Message::Question(QUESTION), answer("system_u:system_r:web_t:s0")] {
        let sealed = message.seal(&KEY);
        for at in 0..LENGTH {
            for change in [1, 0x80, fastrand::u8(1..)] {
                let mut changed = sealed;
                changed[at] ^= change;
                assert!(open(&changed).is_err(), "byte {at}");
            }
        }
        for length in (0..LENGTH).chain([LENGTH + 1]) {
            let bytes: Vec<u8> = sealed.iter().copied().chain([0]).take(length).collect();
            assert_eq!(open(&bytes), Err(MessageError::Form), "{length} bytes");
        }
    }
}

#[test]
fn refuses_who_does_not_have_the_key() {
    let other = Key { secret: [8; 16], ..KEY };
    assert_eq!(open(&answer("u:r:t").seal(&other)), Err(MessageError::Mac));
    assert_eq!(open(&answer("u:r:t").seal(&Key { number: 8, ..KEY })), Err(MessageError::Key { number: 8 }));
    let keys = [KEY, Key { number: 8, ..other }];
    let sealed = answer("u:r:t").seal(&keys[1]);
    assert_eq!(Message::open(&sealed, &keys).map(|(_, key)| key.number), Ok(8));
}

#[test]
fn refuses_what_is_no_context_even_of_who_has_the_key() {
    let written = |change: fn(&mut [u8])| {
        let mut bytes = answer("u:r:t").seal(&KEY);
        let (covered, sealed) = bytes.split_at_mut(HEAD + MAX_CONTEXT);
        change(covered);
        sealed.copy_from_slice(&mac(&KEY, covered));
        open(&bytes)
    };
    assert!(written(|_| {}).is_ok());
    let wrong: [fn(&mut [u8]); 5] = [
        |bytes| bytes[HEAD] = b'\n',
        |bytes| bytes[HEAD] = 0xe9,
        |bytes| bytes[HEAD + 5] = b'x',
        |bytes| bytes[6] = 0xff,
        // A question with a context.
        |bytes| bytes[4] = super::QUESTION,
    ];
    for change in wrong {
        assert_eq!(written(change), Err(MessageError::Context));
    }
}
