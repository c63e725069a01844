//! Calls with their arguments, as rules have them.

use std::{fmt, str::FromStr};

use tollgate_abi::guard::{
    TG_GUARD_ANY, TG_GUARD_BPF, TG_GUARD_CAPSET, TG_GUARD_CHMOD, TG_GUARD_CHOWN, TG_GUARD_DEPTH, TG_GUARD_EXEC,
    TG_GUARD_GROUPS, TG_GUARD_ITSELF, TG_GUARD_LINK, TG_GUARD_MEMORY, TG_GUARD_MKNOD, TG_GUARD_MODULE, TG_GUARD_MOUNT,
    TG_GUARD_NAMESPACE, TG_GUARD_PTRACE, TG_GUARD_RANDOM, TG_GUARD_RENAME, TG_GUARD_SET_GROUP, TG_GUARD_SET_USER,
    TG_GUARD_SETCAP, TG_GUARD_SETGID, TG_GUARD_SETUID, TG_GUARD_SYMLINK, TG_GUARD_UNLINK, TG_GUARD_URING,
    TG_GUARD_USERFAULTFD, TG_GUARD_WRITE,
};

use crate::{
    hash::{ANY_NUMBER, is_number, split},
    name::Name,
};

named!(FileCall, "call on a file");
named!(PlainCall, "call without an argument");

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

    /// Reads the words of a call.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        match *words {
            ["exec", program] => Ok(Self::Exec { program: program.parse()?, free: false }),
            ["exec", program, "free"] => Ok(Self::Exec { program: program.parse()?, free: true }),
            ["setuid", id] => Ok(Self::Setuid(id.parse()?)),
            ["setgid", id] => Ok(Self::Setgid(id.parse()?)),
            ["chmod", "u+s"] => Ok(Self::Chmod(Bit::User)),
            ["chmod", "g+s"] => Ok(Self::Chmod(Bit::Group)),
            ["chmod", "ug+s"] => Err("a rule has one bit: write two rules, `chmod u+s` and `chmod g+s`".into()),
            [call] if call.parse::<PlainCall>().is_ok() => Ok(Self::Plain(call.parse()?)),
            [call, place] if call.parse::<FileCall>().is_ok() => Ok(Self::File(call.parse()?, place.parse()?)),
            _ => Err(calls()),
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
