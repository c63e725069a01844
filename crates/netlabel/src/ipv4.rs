//! The options of an IPv4 header: which one has the label.

use crate::error::ReadError;

/// Bytes of options that an IPv4 header has at most: 60 bytes of header, 20 of which are fixed (RFC 791, section 3.1).
pub const MAX_OPTIONS: usize = 40;

/// Type of the CIPSO option, `IPOPT_CIPSO`. Its highest bit says that each fragment has a copy.
pub const CIPSO: u8 = 134;

/// An option type for experiments (RFC 4727), also copied into fragments. Tollgate's own label can travel in it.
pub const EXPERIMENT: u8 = 158;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;

/// The option with the label among all options of a header, with its type and length. `None`: the packet has no label.
///
/// # Errors
///
/// Any option that overruns the header, which `__ip_options_compile` refuses too; a second label, which it refuses if
/// both are CIPSO. Stricter than it: bytes after the end of options must be 0, where it sets them to 0.
pub fn label(options: &[u8]) -> Result<Option<&[u8]>, ReadError> {
    if options.len() > MAX_OPTIONS {
        return Err(ReadError::TooLong { have: options.len(), most: MAX_OPTIONS });
    }
    let (mut rest, mut found) = (options, None);
    while let [kind, after @ ..] = rest {
        match *kind {
            END => return zero(after).map(|()| found),
            NO_OPERATION => rest = after,
            kind => {
                let option;
                (option, rest) = first(rest)?;
                if matches!(kind, CIPSO | EXPERIMENT) && found.replace(option).is_some() {
                    return Err(ReadError::SecondLabel { kind });
                }
            }
        }
    }
    Ok(found)
}

/// The first option, which has a length, and what comes after it.
fn first(options: &[u8]) -> Result<(&[u8], &[u8]), ReadError> {
    let &[kind, length, ..] = options else { return Err(ReadError::Truncated { needed: 2, have: options.len() }) };
    if length < 2 {
        return Err(ReadError::OptionLength { kind, length });
    }
    let truncated = ReadError::Truncated { needed: length.into(), have: options.len() };
    options.split_at_checked(length.into()).ok_or(truncated)
}

fn zero(bytes: &[u8]) -> Result<(), ReadError> {
    bytes.iter().find(|byte| **byte != 0).map_or(Ok(()), |value| Err(ReadError::Padding { value: *value }))
}

/// The length of exactly one option of type `expected`, as it says itself, and what follows its length.
pub(crate) fn body(option: &[u8], expected: u8) -> Result<(u8, &[u8]), ReadError> {
    let (whole, after) = first(option)?;
    match whole {
        [kind, ..] if *kind != expected => Err(ReadError::OptionType { found: *kind, expected }),
        [kind, length, ..] if !after.is_empty() => Err(ReadError::OptionLength { kind: *kind, length: *length }),
        [_, length, body @ ..] => Ok((*length, body)),
        _ => Err(ReadError::Truncated { needed: 2, have: whole.len() }),
    }
}

/// The option as the only one of a header: whole words, filled with the end of options.
#[must_use]
pub fn pad(mut option: Vec<u8>) -> Vec<u8> {
    option.resize(option.len().next_multiple_of(4), END);
    option
}

#[cfg(test)]
mod tests {
    use super::{label, pad};
    use crate::ReadError;

    const ROUTER_ALERT: [u8; 4] = [148, 4, 0, 0];
    const LABEL: [u8; 10] = [134, 10, 0, 0, 0, 1, 1, 4, 0, 3];

    #[test]
    fn finds_the_label_between_other_options() {
        let all = [&[1, 1], &ROUTER_ALERT[..], &LABEL, &[1, 1, 0, 0]].concat();
        assert_eq!(label(&all), Ok(Some(&LABEL[..])));
        assert_eq!(label(&LABEL), Ok(Some(&LABEL[..])));
        assert_eq!(label(&ROUTER_ALERT), Ok(None));
        assert_eq!(label(&[]), Ok(None));
    }

    #[test]
    fn refuses_options_that_overrun_the_header() {
        assert_eq!(label(&[134, 0, 0, 0]), Err(ReadError::OptionLength { kind: 134, length: 0 }));
        assert_eq!(label(&[148, 1, 0, 0]), Err(ReadError::OptionLength { kind: 148, length: 1 }));
        assert_eq!(label(&LABEL[..9]), Err(ReadError::Truncated { needed: 10, have: 9 }));
        assert_eq!(label(&[1, 1, 1, 134]), Err(ReadError::Truncated { needed: 2, have: 1 }));
        assert_eq!(label(&[1; 41]), Err(ReadError::TooLong { have: 41, most: 40 }));
    }

    #[test]
    fn refuses_a_second_label_of_either_kind() {
        let twice = [LABEL, LABEL].concat();
        assert_eq!(label(&twice), Err(ReadError::SecondLabel { kind: 134 }));
        let both = [&LABEL[..], &[158, 2]].concat();
        assert_eq!(label(&both), Err(ReadError::SecondLabel { kind: 158 }));
    }

    #[test]
    fn refuses_what_hides_after_the_end_of_options() {
        assert_eq!(label(&[1, 0, 0, 7]), Err(ReadError::Padding { value: 7 }));
        assert_eq!(label(&[0, 134, 10, 0]), Err(ReadError::Padding { value: 134 }));
    }

    #[test]
    fn fills_words_with_the_end_of_options() {
        assert_eq!(pad(LABEL.to_vec())[10..], [0, 0]);
        assert_eq!(pad(ROUTER_ALERT.to_vec()), ROUTER_ALERT);
    }
}
