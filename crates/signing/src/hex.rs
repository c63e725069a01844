//! Bytes as hexadecimal digits.

/// The digits of bytes.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of so many digits in lower case; `None`: the text is something else.
pub(crate) fn bytes<const LENGTH: usize>(digits: &str) -> Option<[u8; LENGTH]> {
    let value = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
    let mut bytes = [0; LENGTH];
    if digits.len() != 2 * LENGTH {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_digits_of_the_right_number_only() {
        assert_eq!(bytes::<2>(&digits(&[0x0f, 0xa0])), Some([0x0f, 0xa0]));
        for other in ["", "0fa", "0fa00", "0FA0", "0fg0", "+f+0", "0\u{e9}0"] {
            assert_eq!(bytes::<2>(other), None, "{other}");
        }
    }
}
