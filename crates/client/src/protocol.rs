//! What the daemon and its callers say to each other over [`SOCKET`], a unix stream socket (docs/library.md).
//!
//! Lines. The daemon begins: `tollgate VERSION NONCE`. The caller answers `hello NONCE` and then sends requests, each a
//! line of words; a descriptor that a request is about comes with it as SCM_RIGHTS. The daemon answers each with one line:
//! `ok WORD...` or `error ERRNO TEXT`. In a word, every byte but a graphic ASCII character, and `%`, is `%` and two
//! hexadecimal digits.

#[cfg(test)]
mod tests;

use std::{fmt, ops::RangeInclusive};

use tollgate_abi::paths;

/// Where the daemon listens.
pub const SOCKET: &str = paths::SOCKET;
/// The version of what is said here.
pub const VERSION: u32 = 1;
/// The most bytes of a request's line. A context with 1,024 single categories has 6,000.
pub const LONGEST_REQUEST: usize = 16 << 10;
/// The most bytes of a reply's line.
pub const LONGEST_REPLY: usize = 1 << 20;

/// A line that is not of this protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A word that is not encoded as words are.
    #[error(
        "{0:?} is not an encoded word: write bytes that are not graphic ASCII, and %, as % and two hexadecimal digits"
    )]
    Word(String),
    /// No request.
    #[error("there is no request {0:?}; docs/library.md lists them")]
    Request(String),
    /// The other side does not speak as it should.
    #[error("expected {expected}, got {got:?}: the other side is of another version")]
    Unexpected {
        /// What was expected.
        expected: &'static str,
        /// What came.
        got: String,
    },
}

/// One of a process's contexts, as in `/proc/PID/attr` of SELinux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// Its own.
    Current,
    /// Its own before the last exec.
    Previous,
    /// The one that it has after the next exec.
    Exec,
    /// Of files that it makes.
    FsCreate,
    /// Of keys that it makes.
    KeyCreate,
    /// Of sockets that it makes.
    SockCreate,
}

impl Attribute {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Current, "current"),
        (Self::Previous, "prev"),
        (Self::Exec, "exec"),
        (Self::FsCreate, "fscreate"),
        (Self::KeyCreate, "keycreate"),
        (Self::SockCreate, "sockcreate"),
    ];

    /// Its name in `/proc/PID/attr`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(attribute, _)| *attribute == self).map_or("", |(_, name)| name)
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own)| *own == name).map(|(attribute, _)| *attribute)
    }
}

/// What happens to what policy denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is denied.
    Enforcing,
    /// It is granted, and audited.
    Permissive,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Enforcing => "enforcing",
            Self::Permissive => "permissive",
        })
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "enforcing" => Ok(Self::Enforcing),
            "permissive" => Ok(Self::Permissive),
            _ => Err(format!("there is no mode {name:?}: enforcing or permissive")),
        }
    }
}

/// What a caller wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// What is enforced: a [`crate::status::Status`] as JSON.
    Status,
    /// The mode.
    Mode,
    /// Another mode: for all, or for a domain.
    SetMode {
        /// The mode.
        mode: Mode,
        /// The domain's type.
        domain: Option<String>,
    },
    /// Another policy, whose built file is the descriptor: the new generation's number. A second descriptor is of sanity
    /// questions ([`crate::sanity`]): when one is answered otherwise, the policy before is put in force again.
    Reload {
        /// Also if this kernel cannot enforce all of it.
        accept_missing: bool,
    },
    /// No enforcement any more.
    Stop,
    /// A context of the caller, or of the process whose pidfd is the descriptor; an empty word when it has none.
    Get(Attribute),
    /// The SID of a context, which the caller is then going to give itself (`TG_PRCTL` in enforcer.h).
    Sid {
        /// For which attribute.
        attribute: Attribute,
        /// The context.
        context: String,
    },
    /// The context of a SID.
    Text(u32),
    /// What a context may do to another: the permissions' names.
    Access {
        /// The context that acts.
        source: String,
        /// The context that is acted on.
        target: String,
        /// The class's name.
        class: String,
    },
    /// The label of the object that is the descriptor.
    Label,
    /// Another one: the one before.
    SetLabel(String),
    /// The label that the policy's file_contexts give to the object that is the descriptor; an empty word for none.
    DefaultLabel,
    /// A policy, whose built file is the descriptor, that is asked beside the one in force: the contexts in use that it does
    /// not permit.
    StartShadow,
    /// The same no longer.
    StopShadow,
    /// What it would have decided otherwise: a [`crate::shadow::Report`] as JSON; an empty word without such a policy.
    Shadow,
    /// The units that have a context, as unit files are now: [`crate::units::Unit`]s as JSON.
    Units,
    /// Services as they should be and as they are: [`crate::services::Service`]s as JSON.
    Services,
    /// What runs is what should.
    AcceptServices,
    /// How often object managers were asked: [`crate::status::Manager`] as JSON.
    Statistics,
    /// Whether they count.
    Count(bool),
}

impl Request {
    /// How many descriptors may come with it.
    #[must_use]
    pub fn descriptors(&self) -> RangeInclusive<usize> {
        match self {
            Self::Reload { .. } => 1..=2,
            Self::Label | Self::SetLabel(_) | Self::DefaultLabel | Self::StartShadow => 1..=1,
            Self::Get(_) => 0..=1,
            _ => 0..=0,
        }
    }

    /// The words of its line.
    fn words(&self) -> Vec<String> {
        let words: Vec<&str> = match self {
            Self::Status => vec!["status"],
            Self::Mode => vec!["mode"],
            Self::SetMode { mode, domain } => {
                let domain = domain.iter().map(String::as_str);
                return ["mode", &mode.to_string()].into_iter().chain(domain).map(str::to_owned).collect();
            }
            Self::Reload { accept_missing: false } => vec!["reload"],
            Self::Reload { accept_missing: true } => vec!["reload", "accept-missing"],
            Self::Stop => vec!["stop"],
            Self::Get(attribute) => vec!["get", attribute.name()],
            Self::Sid { attribute, context } => vec!["sid", attribute.name(), context],
            Self::Text(sid) => return vec!["text".to_owned(), sid.to_string()],
            Self::Access { source, target, class } => vec!["access", source, target, class],
            Self::Label => vec!["label", "get"],
            Self::SetLabel(context) => vec!["label", "set", context],
            Self::DefaultLabel => vec!["label", "default"],
            Self::StartShadow => vec!["shadow", "start"],
            Self::StopShadow => vec!["shadow", "stop"],
            Self::Shadow => vec!["shadow"],
            Self::Units => vec!["units"],
            Self::Services => vec!["services"],
            Self::AcceptServices => vec!["services", "accept"],
            Self::Statistics => vec!["statistics"],
            Self::Count(true) => vec!["statistics", "on"],
            Self::Count(false) => vec!["statistics", "off"],
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// Its line, with the newline.
    #[must_use]
    pub fn line(&self) -> String {
        line(&self.words())
    }

    /// The request of a line without its newline.
    pub fn parse(line: &[u8]) -> Result<Self, ProtocolError> {
        let words = words(line)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let unknown = || ProtocolError::Request(words.join(" "));
        let mode = |name: &str| name.parse().map_err(|_| unknown());
        let attribute = |name: &str| Attribute::find(name).ok_or_else(unknown);
        Ok(match words[..] {
            ["status"] => Self::Status,
            ["mode"] => Self::Mode,
            ["mode", name] => Self::SetMode { mode: mode(name)?, domain: None },
            ["mode", name, domain] => Self::SetMode { mode: mode(name)?, domain: Some(domain.to_owned()) },
            ["reload"] => Self::Reload { accept_missing: false },
            ["reload", "accept-missing"] => Self::Reload { accept_missing: true },
            ["stop"] => Self::Stop,
            ["get", name] => Self::Get(attribute(name)?),
            ["sid", name, context] => Self::Sid { attribute: attribute(name)?, context: context.to_owned() },
            ["text", sid] => Self::Text(sid.parse().map_err(|_| unknown())?),
            ["access", source, target, class] => {
                Self::Access { source: source.to_owned(), target: target.to_owned(), class: class.to_owned() }
            }
            ["label", "get"] => Self::Label,
            ["label", "set", context] => Self::SetLabel(context.to_owned()),
            ["label", "default"] => Self::DefaultLabel,
            ["shadow", "start"] => Self::StartShadow,
            ["shadow", "stop"] => Self::StopShadow,
            ["shadow"] => Self::Shadow,
            ["units"] => Self::Units,
            ["services"] => Self::Services,
            ["services", "accept"] => Self::AcceptServices,
            ["statistics"] => Self::Statistics,
            ["statistics", "on"] => Self::Count(true),
            ["statistics", "off"] => Self::Count(false),
            _ => return Err(unknown()),
        })
    }
}

/// What the daemon answers when it does not do what is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The number that a system call would give.
    pub errno: i32,
    /// Why.
    pub text: String,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub fn new(errno: i32, text: impl Into<String>) -> Self {
        Self { errno, text: text.into() }
    }
}

/// An answer: words, or a refusal.
pub type Reply = Result<Vec<String>, Refusal>;

/// An answer's line, with the newline.
#[must_use]
pub fn reply_line(reply: &Reply) -> String {
    match reply {
        Ok(words) => {
            let words: Vec<String> =
                std::iter::once("ok").chain(words.iter().map(String::as_str)).map(str::to_owned).collect();
            line(&words)
        }
        Err(Refusal { errno, text }) => line(&["error".to_owned(), errno.to_string(), text.clone()]),
    }
}

/// The answer of a line without its newline.
pub fn parse_reply(line: &[u8]) -> Result<Reply, ProtocolError> {
    let words = words(line)?;
    let unexpected = || ProtocolError::Unexpected {
        expected: "ok or error",
        got: String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned(),
    };
    match words.split_first() {
        Some((first, rest)) if first == "ok" => Ok(Ok(rest.to_vec())),
        Some((first, [errno, text])) if first == "error" => {
            let errno = errno.parse().ok().filter(|errno| (1..4096).contains(errno)).ok_or_else(unexpected)?;
            Ok(Err(Refusal::new(errno, text.clone())))
        }
        _ => Err(unexpected()),
    }
}

/// What the daemon says first.
#[must_use]
pub fn greeting(nonce: &str) -> String {
    line(&["tollgate".to_owned(), VERSION.to_string(), nonce.to_owned()])
}

/// What the caller says first, to a greeting without its newline. Nothing that was sent before the daemon looked at who
/// is there can hold its nonce.
pub fn hello(greeting: &[u8]) -> Result<String, ProtocolError> {
    let got = || String::from_utf8_lossy(&greeting[..greeting.len().min(80)]).into_owned();
    match words(greeting)?.as_slice() {
        [name, version, nonce] if name == "tollgate" && *version == VERSION.to_string() => {
            Ok(line(&["hello".to_owned(), nonce.clone()]))
        }
        _ => Err(ProtocolError::Unexpected { expected: "tollgate 1 and a nonce", got: got() }),
    }
}

fn line(words: &[String]) -> String {
    let mut line = words.iter().map(|word| encode(word)).collect::<Vec<_>>().join(" ");
    line.push('\n');
    line
}

fn words(line: &[u8]) -> Result<Vec<String>, ProtocolError> {
    line.split(|byte| *byte == b' ').map(decode).collect()
}

fn encode(word: &str) -> String {
    let mut encoded = String::with_capacity(word.len());
    for byte in word.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

fn decode(word: &[u8]) -> Result<String, ProtocolError> {
    let wrong = || ProtocolError::Word(String::from_utf8_lossy(&word[..word.len().min(80)]).into_owned());
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
        bytes.push(u8::from_str_radix(digits.ok_or_else(wrong)?, 16).map_err(|_| wrong())?);
        rest = after;
    }
    let word = String::from_utf8(bytes).map_err(|_| wrong())?;
    // What is handed on to C and to logs.
    if word.contains('\0') { Err(wrong()) } else { Ok(word) }
}
