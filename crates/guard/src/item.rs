//! The items of a database. Each is one line of its text.

use std::{collections::BTreeSet, fmt, str::FromStr};

use tollgate_abi::guard::{
    TG_GUARD_ANY, TG_GUARD_BPF, TG_GUARD_BY_DAEMON, TG_GUARD_BY_SETUID, TG_GUARD_CAPSET, TG_GUARD_CHMOD,
    TG_GUARD_CHOWN, TG_GUARD_DEPTH, TG_GUARD_ENFORCE, TG_GUARD_EXEC, TG_GUARD_GROUPS, TG_GUARD_IDENTITY,
    TG_GUARD_ITSELF, TG_GUARD_LEARN, TG_GUARD_LINK, TG_GUARD_MEMORY, TG_GUARD_MKNOD, TG_GUARD_MODULE, TG_GUARD_MOUNT,
    TG_GUARD_NAMESPACE, TG_GUARD_NETWORK, TG_GUARD_OFF, TG_GUARD_PTRACE, TG_GUARD_RANDOM, TG_GUARD_RENAME,
    TG_GUARD_SET_GROUP, TG_GUARD_SET_USER, TG_GUARD_SETCAP, TG_GUARD_SETGID, TG_GUARD_SETUID, TG_GUARD_SYMLINK,
    TG_GUARD_UNLINK, TG_GUARD_UNTRUSTED, TG_GUARD_URING, TG_GUARD_USERFAULTFD, TG_GUARD_WARN, TG_GUARD_WRITE,
};

use crate::{
    digest::Digest,
    hash::{ANY_NUMBER, is_number, split},
    name::Name,
};

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
named!(FileCall, "call on a file");
named!(PlainCall, "call without an argument");

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

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => id.fmt(f),
            Self::Any => f.write_str("any"),
        }
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "any" => Ok(Self::Any),
            // There is no such id, and `any` has this number.
            Ok(number) if number != TG_GUARD_ANY && !text.starts_with('+') => Ok(Self::One(number)),
            _ => Err(format!("`{text}` is no id of a user or a group: write its number, or `any`")),
        }
    }
}

impl Id {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::One(id) => id,
            Self::Any => TG_GUARD_ANY,
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

/// A call whose argument is a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[expect(missing_docs, reason = "guard.h says what they are")]
pub enum FileCall {
    Write = TG_GUARD_WRITE,
    Unlink = TG_GUARD_UNLINK,
    Rename = TG_GUARD_RENAME,
    Link = TG_GUARD_LINK,
    Symlink = TG_GUARD_SYMLINK,
    Mknod = TG_GUARD_MKNOD,
    Chown = TG_GUARD_CHOWN,
}

impl FileCall {
    /// All of them, with their names.
    pub const ALL: [(Self, &str); 7] = [
        (Self::Write, "write"),
        (Self::Unlink, "unlink"),
        (Self::Rename, "rename"),
        (Self::Link, "link"),
        (Self::Symlink, "symlink"),
        (Self::Mknod, "mknod"),
        (Self::Chown, "chown"),
    ];
}

/// A call whose argument no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[expect(missing_docs, reason = "guard.h says what they are")]
pub enum PlainCall {
    Groups = TG_GUARD_GROUPS,
    Capset = TG_GUARD_CAPSET,
    Setcap = TG_GUARD_SETCAP,
    Mount = TG_GUARD_MOUNT,
    Module = TG_GUARD_MODULE,
    Bpf = TG_GUARD_BPF,
    Ptrace = TG_GUARD_PTRACE,
    Uring = TG_GUARD_URING,
    Userfaultfd = TG_GUARD_USERFAULTFD,
    Namespace = TG_GUARD_NAMESPACE,
    Memory = TG_GUARD_MEMORY,
    Itself = TG_GUARD_ITSELF,
}

impl PlainCall {
    /// All of them, with their names.
    pub const ALL: [(Self, &str); 12] = [
        (Self::Groups, "setgroups"),
        (Self::Capset, "capset"),
        (Self::Setcap, "setcap"),
        (Self::Mount, "mount"),
        (Self::Module, "module"),
        (Self::Bpf, "bpf"),
        (Self::Ptrace, "ptrace"),
        (Self::Uring, "io_uring"),
        (Self::Userfaultfd, "userfaultfd"),
        (Self::Namespace, "namespace"),
        (Self::Memory, "memory"),
        (Self::Itself, "guard"),
    ];
}

/// Which files a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// All.
    Any,
    /// The one with this path. A component `*` stands for any number.
    Is(Name),
    /// All whose path is this one and the six characters that mkstemp(3) makes.
    Stem(Name),
    /// All below this directory.
    Below(Name),
}

impl Place {
    /// Whether a rule of this place is also one of a path.
    pub(crate) fn has(&self, path: &Name) -> bool {
        let rest = |place: &Name| path.as_bytes().strip_prefix(place.as_bytes()).map(<[u8]>::to_vec);
        match self {
            Self::Any => true,
            Self::Is(place) => place == path,
            Self::Stem(place) => {
                rest(place).is_some_and(|end| end.len() == TG_GUARD_RANDOM as usize && !end.contains(&b'/'))
            }
            Self::Below(place) => rest(place).is_some_and(|end| end.starts_with(b"/")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Is(name) => name.fmt(f),
            Self::Stem(name) => write!(f, "{name}{RANDOM}"),
            Self::Below(name) => write!(f, "{name}/"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Some(path) = text.strip_suffix('/') {
            return components(text, path).map(Self::Below);
        }
        let Some(path) = text.strip_suffix(RANDOM) else { return components(text, text).map(Self::Is) };
        let name = components(text, path)?;
        let (folder, last) = split(name.as_bytes());
        if folder.is_empty() || last == ANY_NUMBER {
            return Err(format!("`{text}`: before `{RANDOM}` there is a directory, and the beginning of a name"));
        }
        Ok(Self::Stem(name))
    }
}

/// The end of a temporary name in the text.
const RANDOM: &str = "??????";

/// The path of a rule: numbers are [`ANY_NUMBER`] there, and no file has this name or the end of a temporary one.
fn components(text: &str, path: &str) -> Result<Name, String> {
    let name: Name =
        path.parse().map_err(|_| format!("`{text}` is no file: write a path, a directory with `/`, or `any`"))?;
    let mut components: Vec<&[u8]> = name.as_bytes()[1..].split(|byte| *byte == b'/').collect();
    if components.iter().any(|component| matches!(*component, b"" | b"." | b"..")) {
        return Err(format!("`{text}`: a path in a rule has no empty component, `.` or `..`"));
    }
    if components.len() > TG_GUARD_DEPTH as usize {
        return Err(format!("`{text}`: a path in a rule has at most {TG_GUARD_DEPTH} components"));
    }
    let wanted = path.split('/').filter(|component| *component == "*").count();
    let is_taken = |component: &&&[u8]| **component == ANY_NUMBER || component.ends_with(RANDOM.as_bytes());
    if components.iter().filter(is_taken).count() > wanted {
        return Err(format!("`{text}`: no rule can name a file `*`, or one whose name ends in `{RANDOM}`"));
    }
    for component in components.iter_mut().filter(|component| is_number(component)) {
        *component = ANY_NUMBER;
    }
    Name::of([b"/", &components.join(&b'/')[..]].concat())
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
    /// It takes a group id.
    Setgid(Id),
    /// It makes a call on a file.
    File(FileCall, Place),
    /// It makes another call.
    Plain(PlainCall),
}

impl Act {
    /// Its number (`enum tg_guard_call`).
    #[must_use]
    pub fn call(&self) -> u32 {
        match self {
            Self::Exec { .. } => TG_GUARD_EXEC,
            Self::Setuid(_) => TG_GUARD_SETUID,
            Self::Setgid(_) => TG_GUARD_SETGID,
            Self::Chmod(_) => TG_GUARD_CHMOD,
            Self::File(call, _) => *call as u32,
            Self::Plain(call) => *call as u32,
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exec { program, free } => write!(f, "exec {program}{}", if *free { " free" } else { "" }),
            Self::Setuid(id) => write!(f, "setuid {id}"),
            Self::Setgid(id) => write!(f, "setgid {id}"),
            Self::Chmod(Bit::User) => f.write_str("chmod u+s"),
            Self::Chmod(Bit::Group) => f.write_str("chmod g+s"),
            Self::File(call, place) => write!(f, "{call} {place}"),
            Self::Plain(call) => call.fmt(f),
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
                let act = act(&words[..end.unwrap_or(words.len())])?;
                let until = end.map_or(Ok(Until::NEVER), |end| Until::parse(&words[end + 1..]))?;
                Ok(Self::Rule(Rule { caller: caller.parse()?, act, until }))
            }
            [first, ..] => Err(format!("`{first}` begins no line of a database: a line is {FORMS}")),
            [] => Err(format!("an empty line is no item: it is {FORMS}")),
        }
    }
}

fn act(words: &[&str]) -> Result<Act, String> {
    match *words {
        ["exec", program] => Ok(Act::Exec { program: program.parse()?, free: false }),
        ["exec", program, "free"] => Ok(Act::Exec { program: program.parse()?, free: true }),
        ["setuid", id] => Ok(Act::Setuid(id.parse()?)),
        ["setgid", id] => Ok(Act::Setgid(id.parse()?)),
        ["chmod", "u+s"] => Ok(Act::Chmod(Bit::User)),
        ["chmod", "g+s"] => Ok(Act::Chmod(Bit::Group)),
        ["chmod", "ug+s"] => Err("a rule has one bit: write two rules, `chmod u+s` and `chmod g+s`".into()),
        [call] if call.parse::<PlainCall>().is_ok() => Ok(Act::Plain(call.parse()?)),
        [call, place] if call.parse::<FileCall>().is_ok() => Ok(Act::File(call.parse()?, place.parse()?)),
        _ => Err(calls()),
    }
}

/// What a call is.
fn calls() -> String {
    let files: Vec<String> = FileCall::ALL.iter().map(|(_, name)| format!("`{name} PLACE`")).collect();
    let plain: Vec<String> = PlainCall::ALL.iter().map(|(_, name)| format!("`{name}`")).collect();
    format!(
        "a call is `exec PATH`, `exec PATH free`, `setuid ID`, `setgid ID`, `chmod u+s`, `chmod g+s`, {} or {}",
        files.join(", "),
        plain.join(", ")
    )
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
