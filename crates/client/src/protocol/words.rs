//! Lines of words, and how a word is encoded.

use super::ProtocolError;

pub(super) fn line(words: &[String]) -> String {
    let mut line = words.iter().map(|word| encode(word)).collect::<Vec<_>>().join(" ");
    line.push('\n');
    line
}

pub(super) fn words(line: &[u8]) -> Result<Vec<String>, ProtocolError> {
    line.split(|byte| *byte == b' ').map(decode).collect()
}

fn encode(word: &str) -> String {
    let mut encoded = String::with_capacity(word.len());
    for byte in word.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

fn decode(word: &[u8]) -> Result<String, ProtocolError> {
    let wrong = || ProtocolError::Word(String::from_utf8_lossy(&word[..word.len().min(80)]).into_owned());
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
        bytes.push(u8::from_str_radix(digits.ok_or_else(wrong)?, 16).map_err(|_| wrong())?);
        rest = after;
    }
    let word = String::from_utf8(bytes).map_err(|_| wrong())?;
    // Words are passed on to C and to logs, so none may contain a NUL.
    if word.contains('\0') { Err(wrong()) } else { Ok(word) }
}
