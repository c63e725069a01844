//! The protocol between the daemon and its clients over [`SOCKET`], a unix stream socket (docs/library.md).
//!
//! It consists of lines. The daemon begins with `tollgate VERSION NONCE`. The client answers `hello NONCE` and then
//! sends requests, one per line. A descriptor that a request needs comes with its line as SCM_RIGHTS. The daemon
//! answers each request with one line: `ok WORD...` or `error ERRNO TEXT`. Within a word, `%` and every byte that is
//! not a graphic ASCII character are written as `%` and two hexadecimal digits.

mod containers;
mod fleet;
mod network;
#[cfg(test)]
mod tests;
mod words;

use std::{fmt, net::SocketAddr, ops::RangeInclusive};

use tollgate_abi::paths;

use self::words::{line, words};
pub use self::{containers::Containers, fleet::Fleet, network::Network};

/// Path of the socket on which the daemon listens.
pub const SOCKET: &str = paths::SOCKET;
/// Version of the protocol. Both sides must have the same.
pub const VERSION: u32 = 1;
/// The maximum length of a request's line, in bytes. A context with 1,024 single categories has 6,000.
pub const MAX_REQUEST_LENGTH: usize = 16 << 10;
/// The maximum length of a reply's line, in bytes.
pub const MAX_REPLY_LENGTH: usize = 1 << 20;

/// Why a line does not belong to this protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A word that is not encoded as words must be.
    #[error(
        "{0:?} is not an encoded word: write bytes that are not graphic ASCII, and %, as % and two hexadecimal digits"
    )]
    Word(String),
    /// A line whose first word names no request, or whose arguments do not fit.
    #[error("there is no request {0:?}; docs/library.md lists them")]
    Request(String),
    /// A line that is not what must come at this point.
    #[error("expected {expected}, got {got:?}: the two sides have different versions")]
    Unexpected {
        /// What should have come.
        expected: &'static str,
        /// The line that came.
        got: String,
    },
}

/// One of a process's contexts. The names are those of `/proc/PID/attr` under SELinux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// The context in which the process runs.
    Current,
    /// The context before the last exec.
    Previous,
    /// The context after the next exec; unset: the rules of the policy decide.
    Exec,
    /// The context of files that the process makes; unset: the rules of the policy decide.
    FsCreate,
    /// The context of keys that the process makes; unset: the rules of the policy decide.
    KeyCreate,
    /// The context of sockets that the process makes; unset: the rules of the policy decide.
    SockCreate,
}

impl Attribute {
    /// All attributes with their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Current, "current"),
        (Self::Previous, "prev"),
        (Self::Exec, "exec"),
        (Self::FsCreate, "fscreate"),
        (Self::KeyCreate, "keycreate"),
        (Self::SockCreate, "sockcreate"),
    ];

    /// The name of the file in `/proc/PID/attr`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(attribute, _)| *attribute == self).map_or("", |(_, name)| name)
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own)| *own == name).map(|(attribute, _)| *attribute)
    }
}

/// What happens when the policy denies something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The act is denied, and audited.
    Enforcing,
    /// The act is granted, and audited.
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

/// How a thread acts for the peer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acting {
    /// In its own domain, with the peer's range.
    Range,
    /// With the peer's whole context.
    Context,
}

impl Acting {
    fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Context => "context",
        }
    }
}

/// What a client can ask of the daemon. The answer follows each colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// What is enforced: a [`crate::status::Status`] as JSON.
    Status,
    /// Why hooks have programs, or have none, of one hook or of all: [`crate::why::Why`]s as JSON.
    Why(Option<String>),
    /// The mode: its name.
    Mode,
    /// Sets the mode, of all domains or of one.
    SetMode {
        /// The new mode.
        mode: Mode,
        /// The type of the domain; `None`: all domains.
        domain: Option<String>,
    },
    /// Puts another policy in force; its built file is the descriptor: the number of the new generation. A second
    /// descriptor holds sanity questions ([`crate::sanity`]): if one of them is answered wrongly, the policy before is
    /// put in force again.
    Reload {
        /// Whether to put it in force even if this kernel cannot enforce all of it.
        accept_missing: bool,
    },
    /// Ends enforcement.
    Stop,
    /// A context of the caller, or of the process whose pidfd is the descriptor; an empty word when it has none.
    Get(Attribute),
    /// The SID of a context that the client is about to give itself (`TG_PRCTL` in enforcer.h).
    Sid {
        /// The attribute that it will set.
        attribute: Attribute,
        /// The context's text.
        context: String,
    },
    /// The context that this SID stands for.
    Text(u32),
    /// What a context may do to another: the names of the permissions.
    Access {
        /// The context that acts.
        source: String,
        /// The context that is acted on.
        target: String,
        /// The class's name.
        class: String,
    },
    /// The context of the peer of the socket that is the descriptor; for datagrams, of the sender that the socket has
    /// received something from last.
    Peer {
        /// The sender of datagrams that is meant; `None`: the last one.
        from: Option<SocketAddr>,
    },
    /// The caller's SID, and the one that it needs in order to act for the peer of the socket that is the descriptor
    /// (`TG_PRCTL` in enforcer.h).
    Act(Acting),
    /// The label of the object that is the descriptor.
    Label,
    /// Sets the label of the object that is the descriptor: the label that it had before.
    SetLabel(String),
    /// The label that the policy's file_contexts give to the object that is the descriptor; an empty word for none.
    DefaultLabel,
    /// Makes a built policy, which is the descriptor, the candidate that is checked beside the policy in force: the
    /// contexts in use that it does not permit.
    StartShadow,
    /// Stops checking the candidate.
    StopShadow,
    /// What the candidate would have decided otherwise: a [`crate::shadow::Report`] as JSON; an empty word without a candidate.
    Shadow,
    /// The units that have a context, as their unit files are now: [`crate::units::Unit`]s as JSON.
    Units,
    /// Labels in packets.
    Network(Network),
    /// Containers that start, and those that run.
    Containers(Containers),
    /// A fleet's generation.
    Fleet(Fleet),
    /// Services as expected and as they run: [`crate::services::Service`]s as JSON.
    Services,
    /// Makes what runs now what is expected of each service.
    AcceptServices,
    /// How often each object manager checked something: [`crate::status::Manager`]s as JSON.
    Statistics,
    /// Switches the counters of the object managers on or off.
    Count(bool),
}

impl Request {
    /// How many descriptors the request may have.
    #[must_use]
    pub fn descriptors(&self) -> RangeInclusive<usize> {
        match self {
            Self::Reload { .. } => 1..=2,
            Self::Peer { .. }
            | Self::Act(_)
            | Self::Label
            | Self::SetLabel(_)
            | Self::DefaultLabel
            | Self::StartShadow => 1..=1,
            Self::Get(_) => 0..=1,
            Self::Containers(containers) => containers.descriptors(),
            Self::Fleet(fleet) => fleet.descriptors()..=fleet.descriptors(),
            _ => 0..=0,
        }
    }

    /// The words of the request's line.
    fn words(&self) -> Vec<String> {
        let words: Vec<&str> = match self {
            Self::Status => vec!["status"],
            Self::Why(None) => vec!["why"],
            Self::Why(Some(hook)) => vec!["why", hook],
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
            Self::Peer { from: None } => vec!["peer"],
            Self::Peer { from: Some(from) } => return vec!["peer".to_owned(), from.to_string()],
            Self::Act(acting) => vec!["act", acting.name()],
            Self::Label => vec!["label", "get"],
            Self::SetLabel(context) => vec!["label", "set", context],
            Self::DefaultLabel => vec!["label", "default"],
            Self::StartShadow => vec!["shadow", "start"],
            Self::StopShadow => vec!["shadow", "stop"],
            Self::Shadow => vec!["shadow"],
            Self::Units => vec!["units"],
            Self::Network(network) => return network.words(),
            Self::Containers(containers) => return containers.words(),
            Self::Fleet(fleet) => return fleet.words(),
            Self::Services => vec!["services"],
            Self::AcceptServices => vec!["services", "accept"],
            Self::Statistics => vec!["statistics"],
            Self::Count(true) => vec!["statistics", "on"],
            Self::Count(false) => vec!["statistics", "off"],
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// The request's line, with the newline.
    #[must_use]
    pub fn line(&self) -> String {
        line(&self.words())
    }

    /// Reads a request from a line without its newline.
    pub fn parse(line: &[u8]) -> Result<Self, ProtocolError> {
        let words = words(line)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let unknown = || ProtocolError::Request(words.join(" "));
        let mode = |name: &str| name.parse().map_err(|_| unknown());
        let attribute = |name: &str| Attribute::find(name).ok_or_else(unknown);
        Ok(match words[..] {
            ["status"] => Self::Status,
            ["why"] => Self::Why(None),
            ["why", hook] => Self::Why(Some(hook.to_owned())),
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
            ["peer"] => Self::Peer { from: None },
            ["peer", from] => Self::Peer { from: Some(from.parse().map_err(|_| unknown())?) },
            ["act", "range"] => Self::Act(Acting::Range),
            ["act", "context"] => Self::Act(Acting::Context),
            ["label", "get"] => Self::Label,
            ["label", "set", context] => Self::SetLabel(context.to_owned()),
            ["label", "default"] => Self::DefaultLabel,
            ["shadow", "start"] => Self::StartShadow,
            ["shadow", "stop"] => Self::StopShadow,
            ["shadow"] => Self::Shadow,
            ["units"] => Self::Units,
            ["network", ref rest @ ..] => Self::Network(Network::parse(rest).ok_or_else(unknown)?),
            ["containers", ref rest @ ..] => Self::Containers(Containers::parse(rest).ok_or_else(unknown)?),
            ["fleet", ref rest @ ..] => Self::Fleet(Fleet::parse(rest).ok_or_else(unknown)?),
            ["services"] => Self::Services,
            ["services", "accept"] => Self::AcceptServices,
            ["statistics"] => Self::Statistics,
            ["statistics", "on"] => Self::Count(true),
            ["statistics", "off"] => Self::Count(false),
            _ => return Err(unknown()),
        })
    }
}

/// The daemon's answer when it does not do what was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The errno that a system call would return in such a case.
    pub errno: i32,
    /// The reason, and the remedy if there is one.
    pub text: String,
}

impl Refusal {
    /// A refusal with an errno and its reason.
    #[must_use]
    pub fn new(errno: i32, text: impl Into<String>) -> Self {
        Self { errno, text: text.into() }
    }
}

/// The answer to a request: words, or a refusal.
pub type Reply = Result<Vec<String>, Refusal>;

/// The line of an answer, with the newline.
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

/// Reads an answer from a line without its newline.
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

/// The first line of the daemon, with the newline.
#[must_use]
pub fn greeting(nonce: &str) -> String {
    line(&["tollgate".to_owned(), VERSION.to_string(), nonce.to_owned()])
}

/// The first line of the client: the answer to a greeting (without its newline). The nonce proves that the client sent
/// it after the daemon had looked at who is connected.
pub fn hello(greeting: &[u8]) -> Result<String, ProtocolError> {
    let got = || String::from_utf8_lossy(&greeting[..greeting.len().min(80)]).into_owned();
    match words(greeting)?.as_slice() {
        [name, version, nonce] if name == "tollgate" && *version == VERSION.to_string() => {
            Ok(line(&["hello".to_owned(), nonce.clone()]))
        }
        _ => Err(ProtocolError::Unexpected { expected: "tollgate 1 and a nonce", got: got() }),
    }
}
