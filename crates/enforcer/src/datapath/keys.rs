//! The file of keys that seal labels: lines `NUMBER 32-HEX-DIGITS`. The first key seals, and both open.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use tollgate_abi::enforcer::TG_SEAL_KEYS;

/// Where the keys are unless the file of networks says otherwise.
pub const FILE: &str = "/etc/tollgate/network.keys";

/// Digits of a secret.
const DIGITS: usize = 32;

/// Why keys cannot be used. No text has a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file cannot be read.
    #[error("cannot read the keys {}: {cause}; `tollgate net key new --file {}` makes the first one", .file.display(), .file.display())]
    Unreadable {
        /// Path of the file.
        file: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the keys {}: {cause}; name a file in a folder that exists", .file.display())]
    Unwritable {
        /// Path of the file.
        file: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// Others than root may read or change it.
    #[error(
        "{}: others than root may know these keys (owner {owner}, mode {mode:03o}): run `chown root:root {}` and \
         `chmod 600 {}`, then make new keys if somebody has read these",
        .file.display(), .file.display(), .file.display()
    )]
    Exposed {
        /// Path of the file.
        file: PathBuf,
        /// The uid of its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is not a key.
    #[error("{}:{line}: {message}", .file.display())]
    Wrong {
        /// Path of the file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and the remedy.
        message: String,
    },
}

/// A key of 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its number in labels.
    pub number: u8,
    /// The secret.
    pub secret: [u8; 16],
}

/// Without the secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Key {
    /// A new random key whose number is none of `used`.
    pub fn random(used: &Keys) -> io::Result<Self> {
        let mut secret = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut secret)?;
        let last = used.0.iter().map(|key| key.number).max().unwrap_or(0);
        // There are more numbers than keys.
        let free = (1..=u8::MAX).map(|step| last.wrapping_add(step)).find(|number| used.get(*number).is_none());
        Ok(Self { number: free.unwrap_or(1), secret })
    }

    /// Its line in the file, without the newline.
    #[must_use]
    pub fn line(&self) -> String {
        let digits: String = self.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{} {digits}", self.number)
    }
}

/// The keys that are valid, at most two. The first one seals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// The keys, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.0.iter()
    }

    /// The key with a number.
    #[must_use]
    pub fn get(&self, number: u8) -> Option<&Key> {
        self.0.iter().find(|key| key.number == number)
    }

    /// Reads a file, which must belong to root and be readable by nobody else.
    pub fn read(file: &Path) -> Result<Self, KeysError> {
        Self::of_text(file, &text(file)?)
    }

    /// Reads the text of a file, which has at least one key.
    pub fn of_text(file: &Path, text: &str) -> Result<Self, KeysError> {
        let keys = Self::listed(file, text)?;
        let message = || format!("there is no key; `tollgate net key new --file {}` adds one", file.display());
        let none = || KeysError::Wrong { file: file.to_owned(), line: 1, message: message() };
        if keys.0.is_empty() { Err(none()) } else { Ok(keys) }
    }

    /// Likewise, or of one that has no key yet.
    pub fn listed(file: &Path, text: &str) -> Result<Self, KeysError> {
        let wrong = |line, message: String| KeysError::Wrong { file: file.to_owned(), line, message };
        let mut keys = Self::default();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_key(line)) {
            let key = key(line).map_err(|message| wrong(number, message))?;
            if keys.get(key.number).is_some() {
                return Err(wrong(number, format!("another key has the number {}; leave one out", key.number)));
            }
            if keys.0.len() == TG_SEAL_KEYS as usize {
                return Err(wrong(number, format!("at most {TG_SEAL_KEYS} keys are valid; leave out the oldest")));
            }
            keys.0.push(key);
        }
        Ok(keys)
    }
}

/// The text of a file of keys, if nobody but root can know or change it.
pub fn text(file: &Path) -> Result<String, KeysError> {
    let unreadable = |cause| KeysError::Unreadable { file: file.to_owned(), cause };
    let mut open = File::open(file).map_err(unreadable)?;
    let metadata = open.metadata().map_err(unreadable)?;
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if is_exposed(owner, mode) {
        return Err(KeysError::Exposed { file: file.to_owned(), owner, mode });
    }
    let mut text = String::new();
    open.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Writes a file of keys, whole or not at all. Only its owner can read it.
pub fn write(file: &Path, text: &str) -> Result<(), KeysError> {
    // A link stays a link.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A temporary file has mode 600.
    let written = NamedTempFile::new_in(folder).and_then(|mut fresh| {
        fresh.write_all(text.as_bytes())?;
        fresh.as_file().sync_all()?;
        fresh.persist(&target)?;
        Ok(())
    });
    written.map_err(|cause| KeysError::Unwritable { file: file.to_owned(), cause })
}

fn is_exposed(owner: u32, mode: u32) -> bool {
    owner != 0 || mode & 0o077 != 0
}

/// Where a new key is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// It seals from the next reload on, and the first one until now opens.
    First,
    /// It opens only.
    Second,
}

/// The text of a file with a new key. Of two keys that it has, the first stays. Comments stay, too.
#[must_use]
pub fn with(text: &str, key: &Key, rank: Rank) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    while places(&lines).len() >= TG_SEAL_KEYS as usize {
        places(&lines).last().map(|last| lines.remove(*last));
    }
    let at = match (rank, places(&lines).first()) {
        (Rank::First, Some(first)) => *first,
        _ => lines.len(),
    };
    lines.insert(at, key.line());
    lines.join("\n") + "\n"
}

/// The text of a file whose two keys have changed places; `None`: it does not have two.
#[must_use]
pub fn swapped(text: &str) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let [first, second] = places(&lines)[..] else { return None };
    lines.swap(first, second);
    Some(lines.join("\n") + "\n")
}

/// Which lines are keys.
fn places(lines: &[String]) -> Vec<usize> {
    (0..lines.len()).filter(|place| is_key(&lines[*place])).collect()
}

fn is_key(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn key(line: &str) -> Result<Key, String> {
    let shape = || format!("a key is NUMBER and {DIGITS} hexadecimal digits; `tollgate net key new` prints one");
    let (number, digits) = line.trim().split_once(char::is_whitespace).ok_or_else(shape)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|_| is_number).ok_or("a key's number is from 0 to 255; choose another")?;
    let digits = digits.trim();
    if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(shape());
    }
    let secret = u128::from_str_radix(digits, 16).map_err(|_| shape())?.to_be_bytes();
    Ok(Key { number, secret })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const TEXT: &str = "# of the cluster\n8 000102030405060708090a0b0c0d0e0f\n\n7 ffffffffffffffffffffffffffffffFF\n";

    fn keys(text: &str) -> Result<Keys, String> {
        Keys::of_text(Path::new("/k"), text).map_err(|cause| cause.to_string())
    }

    fn numbers(text: &str) -> Vec<u8> {
        keys(text).unwrap().iter().map(|key| key.number).collect()
    }

    #[test]
    fn reads_two_keys_of_which_the_first_seals() {
        let keys = keys(TEXT).unwrap();
        let first = keys.iter().next().unwrap();
        assert_eq!((first.number, first.secret), (8, std::array::from_fn(|at| at as u8)));
        assert_eq!(keys.get(7).unwrap().secret, [0xff; 16]);
        assert_eq!(format!("{}\n", first.line()), TEXT.lines().nth(1).unwrap().to_owned() + "\n");
    }

    #[test]
    fn refuses_what_is_no_key_and_keeps_the_secret_to_itself() {
        let digits = "000102030405060708090a0b0c0d0e0f";
        for (text, line, part) in [
            (String::new(), 1, "there is no key"),
            (digits.to_owned(), 1, "32 hexadecimal digits"),
            (format!("#\n256 {digits}"), 2, "from 0 to 255"),
            (format!("+1 {digits}"), 1, "from 0 to 255"),
            (format!("1 {}", &digits[1..]), 1, "32 hexadecimal digits"),
            (format!("1 +{}", &digits[1..]), 1, "32 hexadecimal digits"),
            (format!("1 {digits}\n1 {digits}"), 2, "another key has the number 1"),
            (format!("1 {digits}\n2 {digits}\n3 {digits}"), 3, "at most 2 keys"),
        ] {
            let error = keys(&text).unwrap_err();
            assert!(error.starts_with(&format!("/k:{line}: ")) && error.contains(part), "{text}: {error}");
            assert!(!error.contains(&digits[8..]), "{error}");
        }
        assert!(!format!("{:?}", keys(TEXT).unwrap()).contains("255"), "secrets are not shown");
    }

    #[test]
    fn refuses_a_file_that_others_may_read_and_names_chmod() {
        assert!(!is_exposed(0, 0o600) && !is_exposed(0, 0o400));
        for (owner, mode) in [(1000, 0o600), (0, 0o640), (0, 0o604), (0, 0o620)] {
            assert!(is_exposed(owner, mode), "{owner} {mode:o}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        fs::write(&file, TEXT).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Keys::read(&file).unwrap_err().to_string();
        assert!(error.contains("mode 644") && error.contains("`chmod 600 "), "{error}");
        let error = Keys::read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("tollgate net key new --file"), "{error}");
    }

    #[test]
    fn writes_a_file_that_only_its_owner_reads_and_keeps_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("keys"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, TEXT).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), TEXT);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let error = write(&folder.path().join("none/keys"), TEXT).unwrap_err().to_string();
        assert!(error.contains("a folder that exists"), "{error}");
    }

    #[test]
    fn adds_a_key_and_drops_the_second_of_two() {
        let key = Key::random(&keys(TEXT).unwrap()).unwrap();
        assert_eq!(key.number, 9);
        let first = with(TEXT, &key, Rank::First);
        assert_eq!(numbers(&first), [9, 8]);
        assert!(first.starts_with("# of the cluster\n9 "), "{first}");
        assert_eq!(numbers(&with(TEXT, &key, Rank::Second)), [8, 9]);
        assert_eq!(numbers(&with("", &key, Rank::First)), [9]);
        assert_eq!(numbers(&with(&with("", &key, Rank::First), &Key { number: 4, ..key }, Rank::Second)), [9, 4]);
    }

    #[test]
    fn numbers_keys_round_and_never_like_a_valid_one() {
        let key = |number| Key { number, secret: [0; 16] };
        let next =
            |numbers: &[u8]| Key::random(&Keys(numbers.iter().map(|number| key(*number)).collect())).unwrap().number;
        assert_eq!((next(&[]), next(&[255]), next(&[0, 255])), (1, 0, 1));
        let [one, two] = [(); 2].map(|()| Key::random(&Keys::default()).unwrap().secret);
        assert_ne!(one, two);
    }

    #[test]
    fn swaps_the_keys_and_leaves_comments_where_they_are() {
        let swapped = swapped(TEXT).unwrap();
        assert_eq!(numbers(&swapped), [7, 8]);
        assert!(swapped.starts_with("# of the cluster\n7 "), "{swapped}");
        assert_eq!(super::swapped("1 00"), None);
    }
}
