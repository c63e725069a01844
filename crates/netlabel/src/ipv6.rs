//! The hop-by-hop options header of IPv6 (RFC 8200, section 4.3): which option has the label.

use crate::error::ReadError;

/// Type of the CALIPSO option (RFC 5570, section 5.1): who does not know it skips it.
pub const CALIPSO: u8 = 7;

/// An option type for experiments (RFC 4727): who does not know it skips it, and nobody changes it on the way.
/// Tollgate's own label travels in it.
pub const EXPERIMENT: u8 = 0x1e;

const PAD_1: u8 = 0;
const PAD_N: u8 = 1;

/// Bytes of padding that alignment to 8 can need; more would be a covert channel (RFC 4942, section 2.1.9.5).
const MOST_PADDING: usize = 7;

/// The option with the label in exactly one hop-by-hop header, with its type and length. `None`: the packet has no label.
///
/// # Errors
///
/// What `ip6_parse_tlv` of net/ipv6/exthdrs.c refuses: options that overrun the header, more than 7 bytes of padding in a
/// row, padding that is not 0. Stricter than it: a second label. What other options are is not looked at.
pub fn label(header: &[u8]) -> Result<Option<&[u8]>, ReadError> {
    let mut rest = options(header)?;
    let (mut found, mut padding) = (None, 0);
    while let [kind, after @ ..] = rest {
        let option;
        (option, rest) = if *kind == PAD_1 { (&rest[..1], after) } else { first(rest)? };
        padding = match kind {
            &PAD_1 | &PAD_N => padded(option, padding)?,
            _ => 0,
        };
        if matches!(*kind, CALIPSO | EXPERIMENT) && found.replace(option).is_some() {
            return Err(ReadError::SecondLabel { kind: *kind });
        }
    }
    Ok(found)
}

/// What follows the header's first two bytes: the protocol of the next header, and the length in words of 8 bytes after
/// the first.
fn options(header: &[u8]) -> Result<&[u8], ReadError> {
    let &[_, words, ref options @ ..] = header else {
        return Err(ReadError::Truncated { needed: 8, have: header.len() });
    };
    let length = (usize::from(words) + 1) * 8;
    match header.len() {
        have if have < length => Err(ReadError::Truncated { needed: length, have }),
        have if have > length => Err(ReadError::TooLong { have, most: length }),
        _ => Ok(options),
    }
}

/// The first option, which is not `Pad1`, and what comes after it.
fn first(options: &[u8]) -> Result<(&[u8], &[u8]), ReadError> {
    let have = options.len();
    let &[_, data, ..] = options else { return Err(ReadError::Truncated { needed: 2, have }) };
    let length = usize::from(data) + 2;
    options.split_at_checked(length).ok_or(ReadError::Truncated { needed: length, have })
}

/// Bytes of padding in a row, with those of this option.
fn padded(option: &[u8], before: usize) -> Result<usize, ReadError> {
    let bytes = before + option.len();
    if bytes > MOST_PADDING {
        return Err(ReadError::TooMuchPadding { bytes });
    }
    match option.iter().skip(2).find(|byte| **byte != 0) {
        Some(value) => Err(ReadError::Padding { value: *value }),
        None => Ok(bytes),
    }
}

/// The data of exactly one option of type `expected`, and its length as the option has it.
pub(crate) fn data(option: &[u8], expected: u8) -> Result<(u8, &[u8]), ReadError> {
    let (whole, after) = first(option)?;
    match whole {
        [kind, ..] if *kind != expected => Err(ReadError::OptionType { found: *kind, expected }),
        [kind, length, ..] if !after.is_empty() => Err(ReadError::OptionLength { kind: *kind, length: *length }),
        [_, length, data @ ..] => Ok((*length, data)),
        _ => Err(ReadError::Truncated { needed: 2, have: whole.len() }),
    }
}

/// A hop-by-hop header with this option alone, before a header of protocol `next`. The option begins at byte 2, which is
/// the alignment of CALIPSO (RFC 5570, section 5.1: 4n + 2), and padding follows it.
#[must_use]
pub fn header(next: u8, option: &[u8]) -> Vec<u8> {
    let used = 2 + option.len();
    let length = used.next_multiple_of(8);
    let mut header = Vec::with_capacity(length);
    header.extend([next, (length / 8 - 1) as u8]);
    header.extend(option);
    match length - used {
        0 => {}
        1 => header.push(PAD_1),
        padding => header.extend([PAD_N, padding as u8 - 2]),
    }
    header.resize(length, 0);
    header
}

#[cfg(test)]
mod tests {
    use super::{header, label};
    use crate::ReadError;

    const UDP: u8 = 17;
    const LABEL: [u8; 10] = [7, 8, 0, 0, 0, 1, 0, 3, 0, 0];

    #[test]
    fn fills_the_header_with_one_padding_option() {
        assert_eq!(header(UDP, &[9, 4, 1, 1, 1, 1]), [UDP, 0, 9, 4, 1, 1, 1, 1]);
        assert_eq!(header(UDP, &[9, 3, 1, 1, 1]), [UDP, 0, 9, 3, 1, 1, 1, 0]);
        assert_eq!(header(UDP, &[9, 2, 1, 1]), [UDP, 0, 9, 2, 1, 1, 1, 0]);
        assert_eq!(header(UDP, &[9, 5, 1, 1, 1, 1, 1])[9..], [1, 5, 0, 0, 0, 0, 0]);
        for length in 2..=255_u8 {
            let option: Vec<u8> = [9, length - 2].into_iter().chain(vec![1; usize::from(length) - 2]).collect();
            assert_eq!(label(&header(UDP, &option)), Ok(None), "{length}");
        }
    }

    #[test]
    fn finds_the_label_between_other_options() {
        assert_eq!(label(&header(UDP, &LABEL)), Ok(Some(&LABEL[..])));
        let router_alert = [5, 2, 0, 0];
        let all = [&[UDP, 2][..], &router_alert, &[0], &LABEL, &[1, 5, 0, 0, 0, 0, 0]].concat();
        assert_eq!(label(&all), Ok(Some(&LABEL[..])));
    }

    #[test]
    fn refuses_headers_and_options_whose_lengths_are_wrong() {
        assert_eq!(label(&[]), Err(ReadError::Truncated { needed: 8, have: 0 }));
        assert_eq!(label(&[UDP, 1, 0, 0, 0, 0, 0, 0]), Err(ReadError::Truncated { needed: 16, have: 8 }));
        assert_eq!(label(&[0; 9]), Err(ReadError::TooLong { have: 9, most: 8 }));
        assert_eq!(label(&[UDP, 0, 5, 5, 0, 0, 0, 0]), Err(ReadError::Truncated { needed: 7, have: 6 }));
        assert_eq!(label(&[UDP, 0, 5, 3, 0, 0, 0, 7]), Err(ReadError::Truncated { needed: 2, have: 1 }));
    }

    #[test]
    fn refuses_what_hides_in_padding() {
        assert_eq!(label(&[UDP, 0, 1, 4, 0, 0, 9, 0]), Err(ReadError::Padding { value: 9 }));
        let pad_n = [UDP, 1, 1, 6, 0, 0, 0, 0, 0, 0, 5, 4, 0, 0, 0, 0];
        assert_eq!(label(&pad_n), Err(ReadError::TooMuchPadding { bytes: 8 }));
        let pad_1 = [UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 5, 4, 0, 0, 0, 0];
        assert_eq!(label(&pad_1), Err(ReadError::TooMuchPadding { bytes: 8 }));
        // As much again is fine behind another option.
        assert_eq!(label(&[UDP, 1, 1, 4, 0, 0, 0, 0, 5, 0, 1, 4, 0, 0, 0, 0]), Ok(None));
    }

    #[test]
    fn refuses_a_second_label_of_either_kind() {
        let twice = [&LABEL[..], &LABEL].concat();
        assert_eq!(label(&header(UDP, &twice)), Err(ReadError::SecondLabel { kind: 7 }));
        let both = [&LABEL[..], &[0x1e, 0]].concat();
        assert_eq!(label(&header(UDP, &both)), Err(ReadError::SecondLabel { kind: 0x1e }));
    }
}
