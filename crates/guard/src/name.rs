//! The name of a program: the path that it had when it was entered.

use std::{fmt, str::FromStr};

/// The maximum length of a path, without the NUL.
const MAX_LENGTH: usize = 4095;

/// An absolute path. Its text has no blanks and is ASCII: other bytes are written as `\ooo`, as in fstab(5).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Vec<u8>);

impl Name {
    /// The name with these bytes.
    pub fn of(bytes: impl Into<Vec<u8>>) -> Result<Self, String> {
        let bytes = bytes.into();
        if bytes.len() > MAX_LENGTH {
            return Err(format!("a program's name has at most {MAX_LENGTH} bytes"));
        }
        if !bytes.starts_with(b"/") || bytes.contains(&0) {
            return Err(format!("`{}` is no program's name: it is an absolute path", bytes.escape_ascii()));
        }
        Ok(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| match byte {
            b'\\' => f.write_str("\\134"),
            byte if byte.is_ascii_graphic() => write!(f, "{}", char::from(*byte)),
            byte => write!(f, "\\{byte:03o}"),
        })
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let [first, after @ ..] = rest {
            if *first == b'\\' {
                let octal = |digits: &[u8]| {
                    digits.iter().try_fold(0_u32, |value, digit| Some(value * 8 + char::from(*digit).to_digit(8)?))
                };
                let digits = after.get(..3).and_then(octal).and_then(|value| u8::try_from(value).ok());
                bytes.push(digits.ok_or_else(|| format!("`{text}`: after `\\` a byte has three octal digits"))?);
                rest = &after[3..];
            } else {
                bytes.push(*first);
                rest = after;
            }
        }
        Self::of(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_any_path_as_one_word_and_reads_it_back() {
        for (bytes, text) in [
            (&b"/usr/bin/su"[..], "/usr/bin/su"),
            (b"/a b\\c\n#", "/a\\040b\\134c\\012#"),
            (b"/\xff\xc3\xa9", "/\\377\\303\\251"),
        ] {
            let name = Name::of(bytes).unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(text.parse(), Ok(name));
        }
    }

    #[test]
    fn refuses_relative_paths_and_broken_escapes() {
        for text in ["su", "", "/a\\4", "/a\\400", "/a\\08x", "/a\\000"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
        assert!(Name::of(vec![b'/'; MAX_LENGTH + 1]).is_err());
    }
}
