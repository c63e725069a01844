//! Regular expressions in `file_contexts`: the prefix of all paths that they match.
//!
//! They are Perl's, anchored at both ends. An expression that is not fully understood gets an empty prefix, so that it
//! is always tried.

/// The prefix that each path matched by an expression has.
pub(super) fn prefix(expression: &str) -> Vec<u8> {
    let mut prefix = Vec::new();
    if !is_plain(expression) {
        return prefix;
    }
    let mut rest = expression.bytes().peekable();
    while let Some(byte) = rest.next() {
        let literal = match byte {
            b'.' | b'^' | b'$' | b'|' | b'[' | b'(' | b')' => break,
            b'?' | b'*' | b'+' | b'{' => {
                // This sign says how often the byte before it occurs, which may be never.
                prefix.pop();
                break;
            }
            b'\\' => match rest.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => escaped,
                _ => break,
            },
            byte => byte,
        };
        prefix.push(literal);
    }
    prefix
}

/// Whether an expression has alternatives only in groups, and nothing of Perl's that changes the meaning of other
/// signs.
fn is_plain(expression: &str) -> bool {
    let mut depth = 0u32;
    let mut bytes = expression.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if matches!(bytes.next(), None | Some(b'Q' | b'E')) => return false,
            b'(' => {
                if matches!(bytes.peek(), Some(b'?' | b'*')) {
                    return false;
                }
                depth += 1;
            }
            b')' => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return false,
            },
            b'|' if depth == 0 => return false,
            b'[' if !skip_class(&mut bytes) => return false,
            _ => {}
        }
    }
    depth == 0
}

/// Skips a class of characters, `[^]...]`. Returns whether it ends.
fn skip_class(bytes: &mut std::iter::Peekable<std::str::Bytes<'_>>) -> bool {
    bytes.next_if_eq(&b'^');
    bytes.next_if_eq(&b']');
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if matches!(bytes.next(), None | Some(b'Q' | b'E')) => return false,
            // A class within a class, `[[:alpha:]]`, contains a bracket as well.
            b'[' if matches!(bytes.peek(), Some(b':' | b'.' | b'=')) && !bytes.any(|byte| byte == b']') => {
                return false;
            }
            b']' => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_the_prefix_where_an_expression_stops_being_text() {
        for (expression, expected) in [
            ("/etc/shadow", "/etc/shadow"),
            ("/etc(/.*)?", "/etc"),
            ("/etc/.*", "/etc/"),
            ("/etc/shadow-?", "/etc/shadow"),
            ("/etc/a*b", "/etc/"),
            ("/etc/a{2}", "/etc/"),
            ("/etc/a+", "/etc/"),
            ("/lib/libc\\.so\\.[0-9]+", "/lib/libc.so."),
            ("/dev/tty\\d", "/dev/tty"),
            ("/usr/(s?bin|lib)/x", "/usr/"),
            ("/usr/[[:alpha:]|]/x", "/usr/"),
            ("/usr/[]|]", "/usr/"),
            ("/usr/[^]|]", "/usr/"),
            ("/a\\(b", "/a(b"),
            ("/\\.?a", "/"),
        ] {
            assert_eq!(String::from_utf8(prefix(expression)).unwrap(), expected, "{expression}");
        }
    }

    #[test]
    fn gives_no_prefix_to_what_it_does_not_understand() {
        for expression in
            ["/a|/b", "/a(b|c)|/d", "/a)|(b", "/a(?i)b", "/\\Qa|b\\E", "/[(]a|/b", "/a[", "/a(", "/a\\", "/(*VERB)a"]
        {
            assert_eq!(prefix(expression), b"", "{expression}");
        }
    }
}
