//! The items of a database. Each is one line of its text.

use std::{collections::BTreeSet, fmt, str::FromStr};

use tollgate_abi::guard::{
    TG_GUARD_BY_DAEMON, TG_GUARD_BY_SETUID, TG_GUARD_ENFORCE, TG_GUARD_IDENTITY, TG_GUARD_LEARN, TG_GUARD_NETWORK,
    TG_GUARD_OFF, TG_GUARD_UNTRUSTED, TG_GUARD_WARN,
};

use crate::{call::Act, digest::Digest, name::Name};

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

/// What a process may do before a rule ends: bits as in guard.h.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Until(u32);

impl Until {
    const ALL: [(u32, &str); 3] =
        [(TG_GUARD_NETWORK, "network"), (TG_GUARD_UNTRUSTED, "untrusted"), (TG_GUARD_IDENTITY, "identity")];

    /// The rule never ends.
    pub const NEVER: Self = Self(0);

    /// Its bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// With these bits, if they exist.
    #[must_use]
    pub fn of(bits: u32) -> Option<Self> {
        let all = Self::ALL.iter().fold(0, |all, (bit, _)| all | bit);
        (bits & !all == 0).then_some(Self(bits))
    }

    /// What a process has done, in words.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        Self::ALL.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| *name).collect()
    }

    fn parse(words: &[&str]) -> Result<Self, String> {
        let one = |word: &&str| Self::ALL.iter().find(|(_, name)| name == word).map(|(bit, _)| *bit);
        let bits: Option<Vec<u32>> = words.iter().map(one).collect();
        match bits {
            Some(bits) if !bits.is_empty() => Ok(Self(bits.iter().fold(0, |all, bit| all | bit))),
            _ => Err(format!("`until {}`: a rule ends with network, untrusted or identity", words.join(" "))),
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
    /// What ends that.
    pub until: Until,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allow {} {}", self.caller, self.act)?;
        match self.until {
            Until::NEVER => Ok(()),
            until => write!(f, " until {}", until.names().join(" ")),
        }
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
            ["allow", caller, ref words @ ..] => {
                let end = words.iter().position(|word| *word == "until");
                let act = Act::parse(&words[..end.unwrap_or(words.len())])?;
                let until = end.map_or(Ok(Until::NEVER), |end| Until::parse(&words[end + 1..]))?;
                Ok(Self::Rule(Rule { caller: caller.parse()?, act, until }))
            }
            [first, ..] => Err(format!("`{first}` begins no line of a database: a line is {FORMS}")),
            [] => Err(format!("an empty line is no item: it is {FORMS}")),
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
            "allow /bin/su setgid any".to_owned(),
            "allow /bin/su write /etc/shadow".to_owned(),
            "allow /bin/su unlink /tmp/a\\040b/ until network untrusted".to_owned(),
            "allow /bin/su chown any".to_owned(),
            "allow /bin/su write /proc/*/loginuid".to_owned(),
            "allow /bin/su write /run/mount/utab.??????".to_owned(),
            "allow /bin/su write /srv/a*b?c".to_owned(),
            "allow /bin/su io_uring until identity".to_owned(),
        ] {
            assert_eq!(line.parse::<Item>().unwrap().to_string(), line);
        }
        let numbers = "allow /bin/su chown /dev/pts/12".parse::<Item>().unwrap();
        assert_eq!(numbers.to_string(), "allow /bin/su chown /dev/pts/*");
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
            ("allow /bin/cp write".to_owned(), "`write PLACE`"),
            ("allow /bin/cp write /a/../b".to_owned(), "no empty component"),
            ("allow /bin/cp write /".to_owned(), "a directory with `/`, or `any`"),
            (format!("allow /bin/cp write {}", "/a".repeat(17)), "at most 16 components"),
            ("allow /bin/cp write /??????".to_owned(), "no empty component"),
            ("allow /bin/cp write /a??????".to_owned(), "there is a directory"),
            ("allow /bin/cp write /a/12??????".to_owned(), "the beginning of a name"),
            ("allow /bin/cp write /a/??????".to_owned(), "no empty component"),
            ("allow /bin/cp write /a??????/b".to_owned(), "no rule can name"),
            ("allow /bin/cp write /a/\\052/b".to_owned(), "no rule can name a file `*`"),
            ("allow /bin/cp mount until".to_owned(), "network, untrusted or identity"),
            ("allow /bin/cp mount until noon".to_owned(), "network, untrusted or identity"),
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
