//! The file of a database. Numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `TGGUARD` and a NUL |
//! | 4 | version of the format: 3 |
//! | 8 | length of the file |
//! | 2 | modes of setuid programs and of daemons without an entry, one byte each |
//! | 1, n | length of the first word of lines in the log, and the word |
//! | 4, 4 | how many programs and rules follow |
//! | per program | length of the name (2), mode (1), how many contents (2), the name, the contents (32 each) |
//! | per rule | place of the caller among the programs (4), call (1), flags (1), what ends it (1), argument (4) |
//! | of a call on a file | the argument is 0 for any, 1 for a path, 2 for what is below one, 3 for a path that lacks six characters; then its length (2) and the path |
//! | 32 | SHA-256 of everything before |
//!
//! Programs are sorted by name, contents and rules by their order. One database has one form only: what is read is
//! refused if it would be written otherwise.

use sha2::{Digest as _, Sha256};
use tollgate_abi::guard::{
    TG_GUARD_ANY, TG_GUARD_CHMOD, TG_GUARD_EXEC, TG_GUARD_FREE, TG_GUARD_SET_GROUP, TG_GUARD_SET_USER, TG_GUARD_SETGID,
    TG_GUARD_SETUID,
};

use crate::{
    call::{Act, Bit, FileCall, Id, Place, PlainCall},
    database::Database,
    digest::Digest,
    item::{Class, Item, Mode, Program, Rule, Until},
    name::Name,
};

const MAGIC: &[u8; 8] = b"TGGUARD\0";
const VERSION: u32 = 3;
const HASH: usize = 32;
/// Arguments of calls on files.
const ANY: u32 = 0;
const IS: u32 = 1;
const BELOW: u32 = 2;
const STEM: u32 = 3;
/// The maximum size of a file, in bytes.
pub const MAX_SIZE: usize = 256 << 20;

/// Why bytes are no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BinaryError {
    /// They do not begin like one.
    #[error(
        "no guard database: `tollgate guard list` prints the one in force, and `tollgate guard load` makes one of text"
    )]
    NotDatabase,
    /// They belong to another version.
    #[error("a guard database of format {found}, but this program reads format {VERSION}: load it from its text")]
    Version {
        /// The version of the format that the file has.
        found: u32,
    },
    /// They are incomplete, or were changed.
    #[error("a guard database that is damaged or cut short ({0}): restore it from a copy, or load it from its text")]
    Damaged(&'static str),
}

impl Database {
    /// The binary form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(Class::ALL.map(|(class, _)| self.default_mode(class) as u32 as u8));
        let word = self.word().to_string();
        bytes.push(word.len() as u8);
        bytes.extend(word.bytes());
        bytes.extend((self.programs().len() as u32).to_le_bytes());
        bytes.extend((self.rule_count() as u32).to_le_bytes());
        for (name, program) in self.programs() {
            bytes.extend((name.as_bytes().len() as u16).to_le_bytes());
            bytes.push(program.mode as u32 as u8);
            bytes.extend((program.digests.len() as u16).to_le_bytes());
            bytes.extend(name.as_bytes());
            program.digests.iter().for_each(|digest| bytes.extend(digest.0));
        }
        let names: Vec<&Name> = self.programs().map(|(name, _)| name).collect();
        let place = |name: &Name| names.binary_search(&name).map_or(u32::MAX, |place| place as u32);
        for Rule { caller, act, until } in self.rules() {
            let (flags, argument, path) = match &act {
                Act::Exec { program, free } => (if *free { TG_GUARD_FREE } else { 0 }, place(program), None),
                Act::Setuid(id) | Act::Setgid(id) => (0, id.number(), None),
                Act::Chmod(bit) => (0, *bit as u32, None),
                Act::File(_, Place::Any) | Act::Plain(_) => (0, ANY, None),
                Act::File(_, Place::Is(path)) => (0, IS, Some(path)),
                Act::File(_, Place::Below(path)) => (0, BELOW, Some(path)),
                Act::File(_, Place::Stem(path)) => (0, STEM, Some(path)),
            };
            bytes.extend(place(&caller).to_le_bytes());
            bytes.extend([act.call() as u8, flags as u8, until.bits() as u8]);
            bytes.extend(argument.to_le_bytes());
            if let Some(path) = path {
                bytes.extend((path.as_bytes().len() as u16).to_le_bytes());
                bytes.extend(path.as_bytes());
            }
        }
        let length = (bytes.len() + HASH) as u64;
        bytes[MAGIC.len() + 4..][..8].copy_from_slice(&length.to_le_bytes());
        let hash = Sha256::digest(&bytes);
        bytes.extend(hash);
        bytes
    }

    /// Reads the binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BinaryError> {
        let mut reader = Reader(bytes);
        if reader.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(BinaryError::NotDatabase);
        }
        let found = u32::from_le_bytes(reader.array()?);
        if found != VERSION {
            return Err(BinaryError::Version { found });
        }
        if u64::from_le_bytes(reader.array()?) != bytes.len() as u64 || bytes.len() > MAX_SIZE {
            return Err(BinaryError::Damaged("its length differs from the one that it states"));
        }
        let content = bytes.len().checked_sub(HASH).ok_or(SHORT)?;
        if Sha256::digest(&bytes[..content])[..] != bytes[content..] {
            return Err(BinaryError::Damaged("its SHA-256 differs from the one that it states"));
        }
        let database = reader.database()?;
        // Other orders and doubles say the same, and would have another signature.
        if database.to_bytes() != bytes {
            return Err(BinaryError::Damaged("its items are not in order"));
        }
        Ok(database)
    }

    /// The SHA-256 of the binary form, by which machines can compare their databases.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }
}

const SHORT: BinaryError = BinaryError::Damaged("it ends too early");

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], BinaryError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], BinaryError> {
        self.take(LENGTH)?.try_into().map_err(|_| SHORT)
    }

    fn mode(&mut self) -> Result<Mode, BinaryError> {
        let [number] = self.array()?;
        Mode::of(number.into()).ok_or(BinaryError::Damaged("it has a mode that does not exist"))
    }

    fn database(&mut self) -> Result<Database, BinaryError> {
        let mut database = Database::default();
        let mut enter =
            |item| database.enter(item).map_err(|_| BinaryError::Damaged("its items contradict each other"));
        for (class, _) in Class::ALL {
            enter(Item::Default(class, self.mode()?))?;
        }
        let [length] = self.array()?;
        let word = str::from_utf8(self.take(length.into())?).ok().and_then(|word| word.parse().ok());
        enter(Item::Word(word.ok_or(BinaryError::Damaged("its first word of lines is none"))?))?;
        let (programs, rules) = (u32::from_le_bytes(self.array()?), u32::from_le_bytes(self.array()?));
        let mut names = Vec::new();
        for _ in 0..programs {
            let (name, program) = self.program()?;
            names.push(name.clone());
            enter(Item::Program(name, program))?;
        }
        for _ in 0..rules {
            enter(Item::Rule(self.rule(&names)?))?;
        }
        Ok(database)
    }

    fn program(&mut self) -> Result<(Name, Program), BinaryError> {
        let length = u16::from_le_bytes(self.array()?);
        let (mode, count) = (self.mode()?, u16::from_le_bytes(self.array()?));
        let name = Name::of(self.take(length.into())?).map_err(|_| BinaryError::Damaged("a name is no path"))?;
        let digests = (0..count).map(|_| self.array().map(Digest)).collect::<Result<_, _>>()?;
        Ok((name, Program { mode, digests }))
    }

    fn rule(&mut self, names: &[Name]) -> Result<Rule, BinaryError> {
        let name = |place: u32| {
            names.get(place as usize).cloned().ok_or(BinaryError::Damaged("a rule names a program that it lacks"))
        };
        let caller = name(u32::from_le_bytes(self.array()?))?;
        let [call, flags, until] = self.array()?;
        let until = Until::of(until.into()).ok_or(BinaryError::Damaged("a rule ends with what does not exist"))?;
        let argument = u32::from_le_bytes(self.array()?);
        let id = if argument == TG_GUARD_ANY { Id::Any } else { Id::One(argument) };
        let call = u32::from(call);
        let act = match (call, argument) {
            (TG_GUARD_EXEC, place) => Act::Exec { program: name(place)?, free: u32::from(flags) == TG_GUARD_FREE },
            (TG_GUARD_SETUID, _) => Act::Setuid(id),
            (TG_GUARD_SETGID, _) => Act::Setgid(id),
            (TG_GUARD_CHMOD, TG_GUARD_SET_USER) => Act::Chmod(Bit::User),
            (TG_GUARD_CHMOD, TG_GUARD_SET_GROUP) => Act::Chmod(Bit::Group),
            _ => self.other(call, argument)?,
        };
        Ok(Rule { caller, act, until })
    }

    fn other(&mut self, call: u32, argument: u32) -> Result<Act, BinaryError> {
        let unknown = BinaryError::Damaged("a rule has a call that does not exist");
        if let Some((call, _)) = PlainCall::ALL.into_iter().find(|(known, _)| *known as u32 == call) {
            return Ok(Act::Plain(call));
        }
        let (call, _) = FileCall::ALL.into_iter().find(|(known, _)| *known as u32 == call).ok_or(unknown)?;
        let mut path = || {
            let length = u16::from_le_bytes(self.array()?);
            Name::of(self.take(length.into())?).map_err(|_| BinaryError::Damaged("a file of a rule has no path"))
        };
        let place = match argument {
            ANY => Place::Any,
            IS => Place::Is(path()?),
            BELOW => Place::Below(path()?),
            STEM => Place::Stem(path()?),
            _ => return Err(BinaryError::Damaged("a rule is about files that do not exist")),
        };
        // Whatever text cannot say is no rule.
        if place.to_string().parse() != Ok(place.clone()) {
            return Err(BinaryError::Damaged("a file of a rule has no path"));
        }
        Ok(Act::File(call, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Database {
        let [su, old, sh] = ["su", "old", "sh"].map(|content| Digest::of(content.as_bytes()));
        let text = format!(
            "word BOP\ndefault daemon warn\nprogram /bin/su enforce {su} {old}\nprogram /bin/sh learn {sh}\n\
             allow /bin/su exec /bin/sh free\nallow /bin/su setuid any\nallow /bin/su chmod g+s\n\
             allow /bin/su write /etc/shadow until network\nallow /bin/su unlink /tmp/\nallow /bin/su rename /run/x.??????\nallow /bin/su mount"
        );
        Database::parse(&text).unwrap()
    }

    /// With the right SHA-256 at its end.
    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let content = bytes.len() - HASH;
        let hash = Sha256::digest(&bytes[..content]);
        bytes[content..].copy_from_slice(&hash);
        bytes
    }

    #[test]
    fn reads_what_it_has_written() {
        for database in [Database::default(), database()] {
            assert_eq!(Database::from_bytes(&database.to_bytes()), Ok(database));
        }
        assert_ne!(database().digest(), Database::default().digest());
    }

    #[test]
    fn refuses_each_changed_bit_and_each_shorter_file() {
        let bytes = database().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Database::from_bytes(&changed).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Database::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Database::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn refuses_another_order_and_says_which_version_it_reads() {
        let bytes = database().to_bytes();
        let digests = bytes.windows(32).position(|window| window == Digest::of(b"su").0).unwrap();
        let other = bytes.windows(32).position(|window| window == Digest::of(b"old").0).unwrap();
        let mut swapped = bytes.clone();
        swapped[digests..digests + 32].copy_from_slice(&Digest::of(b"old").0);
        swapped[other..other + 32].copy_from_slice(&Digest::of(b"su").0);
        let error = Database::from_bytes(&sealed(swapped)).unwrap_err();
        assert_eq!(error, BinaryError::Damaged("its items are not in order"));
        let mut newer = bytes.clone();
        newer[8] = 4;
        assert_eq!(Database::from_bytes(&sealed(newer)), Err(BinaryError::Version { found: 4 }));
        assert_eq!(Database::from_bytes(b"word BOP\n"), Err(BinaryError::NotDatabase));
    }
}
