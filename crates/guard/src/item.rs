//! The items of a database. Each is one line of its text.

use std::{collections::BTreeSet, fmt, str::FromStr};

use tollgate_abi::guard::{
    TG_GUARD_ANY_ID, TG_GUARD_BY_DAEMON, TG_GUARD_BY_SETUID, TG_GUARD_CHMOD, TG_GUARD_ENFORCE, TG_GUARD_EXEC,
    TG_GUARD_LEARN, TG_GUARD_OFF, TG_GUARD_SET_GROUP, TG_GUARD_SET_USER, TG_GUARD_SETUID, TG_GUARD_WARN,
};

use crate::{digest::Digest, name::Name};

/// What becomes of calls that no rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Mode {
    /// They are granted.
    Off = TG_GUARD_OFF,
    /// They are granted, and recorded.
    Learn = TG_GUARD_LEARN,
    /// They are granted, and reported.
    Warn = TG_GUARD_WARN,
    /// They are denied.
    Enforce = TG_GUARD_ENFORCE,
}

impl Mode {
    /// All of them, with their names.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Off, "off"), (Self::Learn, "learn"), (Self::Warn, "warn"), (Self::Enforce, "enforce")];

    /// The mode with a number (`enum tg_guard_mode`).
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|(mode, _)| *mode as u32 == number).map(|(mode, _)| mode)
    }
}

/// Why a process is guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Class {
    /// A program has given a user's process privilege.
    Setuid = TG_GUARD_BY_SETUID,
    /// It is privileged, and was started without a terminal.
    Daemon = TG_GUARD_BY_DAEMON,
}

impl Class {
    /// All of them, with their names.
    pub const ALL: [(Self, &str); 2] = [(Self::Setuid, "setuid"), (Self::Daemon, "daemon")];

    /// The class with a number (`enum tg_guard_class`).
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|(class, _)| *class as u32 == number).map(|(class, _)| class)
    }
}

/// Names of a small set: printed, and read from text with an error that lists them.
macro_rules! named {
    ($type:ty, $what:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let known = <$type>::ALL.iter().find(|(item, _)| item == self);
                known.map_or(Ok(()), |(_, name)| f.pad(name))
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = <$type>::ALL.into_iter().find(|(_, name)| *name == text);
                found.map(|(item, _)| item).ok_or_else(|| {
                    let names = <$type>::ALL.map(|(_, name)| name).join(", ");
                    format!(concat!("`{}` is no ", $what, ": use one of {}"), text, names)
                })
            }
        }
    };
}

named!(Mode, "mode");
named!(Class, "class");

/// The first word of lines in the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(String);

impl Default for Word {
    fn default() -> Self {
        Self("GUARD".to_owned())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=32).contains(&text.len()) && text.bytes().all(is_known) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("`{text}` cannot begin lines of the log: use 1 to 32 letters, digits, `-`, `_` and `.`"))
    }
}

/// What the database knows of a program beside its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// What becomes of its calls that no rule allows.
    pub mode: Mode,
    /// The contents that it may have: at least one.
    pub digests: BTreeSet<Digest>,
}

/// A user id in a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// This one.
    One(u32),
    /// Each.
    Any,
}

impl Id {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::One(id) => id,
            Self::Any => TG_GUARD_ANY_ID,
        }
    }
}

/// A bit of a file's mode that gives its program privilege.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Bit {
    /// The set-user-id bit.
    User = TG_GUARD_SET_USER,
    /// The set-group-id bit.
    Group = TG_GUARD_SET_GROUP,
}

/// A call with its argument, as rules have them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// It executes a program.
    Exec {
        /// The program.
        program: Name,
        /// What is executed is not guarded any more.
        free: bool,
    },
    /// It takes a user id.
    Setuid(Id),
    /// It sets this bit of a file's mode.
    Chmod(Bit),
}

impl Act {
    /// Its number (`enum tg_guard_call`).
    #[must_use]
    pub fn call(&self) -> u32 {
        match self {
            Self::Exec { .. } => TG_GUARD_EXEC,
            Self::Setuid(_) => TG_GUARD_SETUID,
            Self::Chmod(_) => TG_GUARD_CHMOD,
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exec { program, free } => write!(f, "exec {program}{}", if *free { " free" } else { "" }),
            Self::Setuid(Id::One(id)) => write!(f, "setuid {id}"),
            Self::Setuid(Id::Any) => f.write_str("setuid any"),
            Self::Chmod(Bit::User) => f.write_str("chmod u+s"),
            Self::Chmod(Bit::Group) => f.write_str("chmod g+s"),
        }
    }
}

/// What a program may do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// The program.
    pub caller: Name,
    /// What it may do.
    pub act: Act,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allow {} {}", self.caller, self.act)
    }
}

/// One line of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The mode of programs that the database lacks.
    Default(Class, Mode),
    /// The first word of lines in the log.
    Word(Word),
    /// A program.
    Program(Name, Program),
    /// A rule.
    Rule(Rule),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default(class, mode) => write!(f, "default {class} {mode}"),
            Self::Word(word) => write!(f, "word {word}"),
            Self::Program(name, Program { mode, digests }) => {
                write!(f, "program {name} {mode}")?;
                digests.iter().try_for_each(|digest| write!(f, " {digest}"))
            }
            Self::Rule(rule) => rule.fmt(f),
        }
    }
}

const FORMS: &str = "`default CLASS MODE`, `word WORD`, `program PATH MODE DIGEST...` or `allow PATH CALL ARGUMENT`";

impl FromStr for Item {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["default", class, mode] => Ok(Self::Default(class.parse()?, mode.parse()?)),
            ["word", word] => Ok(Self::Word(word.parse()?)),
            ["program", name, mode, ref digests @ ..] if !digests.is_empty() => {
                let digests = digests.iter().map(|digest| digest.parse()).collect::<Result<_, String>>()?;
                Ok(Self::Program(name.parse()?, Program { mode: mode.parse()?, digests }))
            }
            ["program", ..] => {
                Err("a program is `program PATH MODE DIGEST...`; `tollgate guard add PATH` enters one".into())
            }
            ["allow", caller, ref act @ ..] => Ok(Self::Rule(Rule { caller: caller.parse()?, act: self::act(act)? })),
            [first, ..] => Err(format!("`{first}` begins no line of a database: a line is {FORMS}")),
            [] => Err(format!("an empty line is no item: it is {FORMS}")),
        }
    }
}

fn act(words: &[&str]) -> Result<Act, String> {
    match *words {
        ["exec", program] => Ok(Act::Exec { program: program.parse()?, free: false }),
        ["exec", program, "free"] => Ok(Act::Exec { program: program.parse()?, free: true }),
        ["setuid", "any"] => Ok(Act::Setuid(Id::Any)),
        ["setuid", id] => match id.parse() {
            // There is no such user, and `any` has this number.
            Ok(number) if number != TG_GUARD_ANY_ID && !id.starts_with('+') => Ok(Act::Setuid(Id::One(number))),
            _ => Err(format!("`{id}` is no user id: write its number, or `any`")),
        },
        ["chmod", "u+s"] => Ok(Act::Chmod(Bit::User)),
        ["chmod", "g+s"] => Ok(Act::Chmod(Bit::Group)),
        ["chmod", "ug+s"] => Err("a rule has one bit: write two rules, `chmod u+s` and `chmod g+s`".into()),
        _ => {
            Err("a call is `exec PATH`, `exec PATH free`, `setuid ID`, `setuid any`, `chmod u+s` or `chmod g+s`".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_kind_of_line_and_prints_it_again() {
        let digest = Digest::of(b"");
        for line in [
            "default setuid learn".to_owned(),
            "default daemon off".to_owned(),
            "word BOP".to_owned(),
            format!("program /bin/a\\040b enforce {digest}"),
            "allow /bin/su exec /bin/sh free".to_owned(),
            "allow /bin/su exec /bin/sh".to_owned(),
            "allow /bin/su setuid 0".to_owned(),
            "allow /bin/su setuid any".to_owned(),
            "allow /bin/cp chmod u+s".to_owned(),
            "allow /bin/cp chmod g+s".to_owned(),
        ] {
            assert_eq!(line.parse::<Item>().unwrap().to_string(), line);
        }
        assert_eq!("  word \t BOP ".parse::<Item>().unwrap().to_string(), "word BOP");
    }

    #[test]
    fn refuses_other_lines_and_says_what_a_line_is() {
        let digest = Digest::of(b"");
        for (line, part) in [
            ("".to_owned(), "program PATH MODE DIGEST"),
            ("deny /bin/su exec /bin/sh".to_owned(), "`deny` begins no line"),
            ("default user learn".to_owned(), "use one of setuid, daemon"),
            ("default setuid on".to_owned(), "use one of off, learn, warn, enforce"),
            ("word two words".to_owned(), "begins no line"),
            ("word \u{1b}[31m".to_owned(), "letters, digits"),
            ("program /bin/su enforce".to_owned(), "tollgate guard add PATH"),
            (format!("program bin/su enforce {digest}"), "absolute path"),
            ("program /bin/su enforce sha256:00".to_owned(), "64 hexadecimal digits"),
            ("allow /bin/su exec".to_owned(), "a call is `exec PATH`"),
            ("allow /bin/su exec /bin/sh always".to_owned(), "a call is `exec PATH`"),
            ("allow /bin/su setuid root".to_owned(), "write its number"),
            ("allow /bin/su setuid +1".to_owned(), "write its number"),
            ("allow /bin/su setuid 4294967295".to_owned(), "write its number"),
            ("allow /bin/cp chmod ug+s".to_owned(), "two rules"),
            ("allow /bin/cp chmod a+x".to_owned(), "a call is"),
        ] {
            let error = line.parse::<Item>().unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn numbers_modes_and_classes_as_the_kernel_does() {
        assert!(Mode::ALL.iter().all(|(mode, _)| Mode::of(*mode as u32) == Some(*mode)));
        assert!(Class::ALL.iter().all(|(class, _)| Class::of(*class as u32) == Some(*class)));
        assert_eq!((Mode::of(4), Class::of(0)), (None, None));
    }
}
