//! Names that processes choose. They are written as the kernel's audit writes them, so that none can look like another
//! field.

use std::{borrow::Cow, ffi::c_char, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Bytes that a process chose, for example the name of a command or file.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Untrusted(Vec<u8>);

impl Untrusted {
    /// Takes these bytes as they are.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Takes a C array up to its NUL, or all of it.
    pub fn from_c(array: &[c_char]) -> Self {
        Self(array.iter().map(|&c| c.cast_unsigned()).take_while(|&c| c != 0).collect())
    }

    /// The bytes as they are.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text for a terminal. No byte of it can move the cursor.
    #[must_use]
    pub fn for_people(&self) -> String {
        for_people(&self.0)
    }
}

/// Bytes that others chose, as text for a terminal and for logs. None of them can move the cursor or begin a new line.
#[must_use]
pub fn for_people(bytes: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(bytes.as_ref()).chars().flat_map(escaped).collect()
}

fn escaped(c: char) -> Box<dyn Iterator<Item = char>> {
    if c.is_control() || c == '\\' { Box::new(c.escape_default()) } else { Box::new(std::iter::once(c)) }
}

/// As in audit_log_untrustedstring: quoted, or in hexadecimal if a reader could take the text for something else. That
/// includes the apostrophe, which would end the `msg='...'` of a record from user space.
impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dangerous = |&byte: &u8| matches!(byte, b'"' | b'\'' | ..=0x20 | 0x7f..);
        if self.0.iter().any(dangerous) {
            return f.write_str(&hex(&self.0));
        }
        write!(f, "\"{}\"", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// In JSON: a string, or `{"hex": "..."}` if the bytes are not UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Json<'a> {
    Text(Cow<'a, str>),
    Hex { hex: Cow<'a, str> },
}

impl Serialize for Untrusted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => Json::Text(text.into()),
            Err(_) => Json::Hex { hex: hex(&self.0).into() },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Untrusted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Text(text) => Ok(Self(text.into_owned().into_bytes())),
            Json::Hex { hex } => unhex(&hex).map(Self).ok_or_else(|| D::Error::custom("not hexadecimal")),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes that hexadecimal digits stand for.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        Untrusted::new(bytes).to_string()
    }

    #[test]
    fn quotes_what_is_harmless() {
        assert_eq!(text(b"cat"), "\"cat\"");
        assert_eq!(text(b"/srv/a=b,{c}"), "\"/srv/a=b,{c}\"");
        assert_eq!(text(b""), "\"\"");
    }

    /// What audit_log_untrustedstring makes of these, read from a kernel's log; and the apostrophe.
    #[test]
    fn writes_hexadecimal_what_could_be_taken_for_more() {
        assert_eq!(text(b"two words"), "74776F20776F726473");
        assert_eq!(text(b"a\" b=\"c"), "612220623D2263");
        assert_eq!(text(b"a\nb"), "610A62");
        assert_eq!(text("ä".as_bytes()), "C3A4");
        assert_eq!(text(b"\x7f"), "7F");
        assert_eq!(text(b"a'b"), "612762");
    }

    #[test]
    fn takes_an_array_without_nul_whole() {
        let array = [b'a'; 4].map(u8::cast_signed);
        assert_eq!(Untrusted::from_c(&array).bytes(), b"aaaa");
        assert_eq!(Untrusted::from_c(&[0x61, 0, 0x62, 0]).bytes(), b"a");
    }

    #[test]
    fn keeps_any_bytes_over_json() {
        for bytes in [&b"plain"[..], b"", b"\xff\xfe\x00", "ä \" '".as_bytes(), b"\x1b[31m"] {
            let there = serde_json::to_string(&Untrusted::new(bytes)).unwrap();
            let back: Untrusted = serde_json::from_str(&there).unwrap();
            assert_eq!(back.bytes(), bytes, "{there}");
        }
        for broken in ["{\"hex\":\"f\"}", "{\"hex\":\"zz\"}", "{\"hex\":\"ää\"}", "7"] {
            assert!(serde_json::from_str::<Untrusted>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn gives_a_terminal_no_control_characters() {
        assert_eq!(Untrusted::new(*b"a\x1b[31m\n\\").for_people(), "a\\u{1b}[31m\\n\\\\");
    }
}
