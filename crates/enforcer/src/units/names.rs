//! Names of units and of their cgroups.

use std::{fmt, str::FromStr};

use tollgate_abi::enforcer::{TG_UNIT_NAME, TG_UNIT_TEMPLATE, tg_unit_key};

/// The kinds of units that have processes of their own.
const KINDS: [&str; 4] = ["service", "socket", "mount", "swap"];
/// The maximum length of a name. For a longer one the BPF program cannot see whether it is complete.
const MAX_LENGTH: usize = TG_UNIT_NAME as usize - 2;
/// Prefixes of the files in a cgroup. A unit's name that begins with one is escaped (cg_needs_escape).
const FILES: [&str; 14] = [
    "cgroup.",
    "cpu.",
    "cpuacct.",
    "cpuset.",
    "io.",
    "blkio.",
    "memory.",
    "devices.",
    "pids.",
    "bpf-firewall.",
    "bpf-devices.",
    "bpf-foreign.",
    "bpf-socket-bind.",
    "bpf-restrict-network-interfaces.",
];

/// The name of a unit that has processes, for example `web.service`. The name of a template, `web@.service`, stands for
/// its instances.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// A text that is not the name of a unit with processes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} {why}")]
pub struct BadName {
    name: String,
    why: &'static str,
}

impl Name {
    /// The suffix of the name. With a capital letter it is also the section that says how the unit's processes run.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or_default()
    }

    /// The template of which it is an instance.
    #[must_use]
    pub fn template(&self) -> Option<Self> {
        let (name, rest) = self.0.split_once('@')?;
        let instance = rest.strip_suffix(self.kind())?.strip_suffix('.')?;
        (!instance.is_empty()).then(|| Self(format!("{name}@.{}", self.kind())))
    }

    /// Whether it stands for its instances.
    #[must_use]
    pub fn is_template(&self) -> bool {
        self.0.contains("@.") && self.template().is_none()
    }

    /// The name without the suffix.
    pub(super) fn stem(&self) -> &str {
        self.0.strip_suffix(self.kind()).and_then(|stem| stem.strip_suffix('.')).unwrap_or_default()
    }

    /// The key by which a cgroup's name is looked up, and the flags of the entry.
    pub(crate) fn key(&self) -> (tg_unit_key, u32) {
        let (text, flags) = if self.is_template() {
            (self.0.split_inclusive('@').next().unwrap_or_default().to_owned(), TG_UNIT_TEMPLATE)
        } else {
            (format!("{}\0", self.0), 0)
        };
        let text = escaped(&text);
        let mut key = tg_unit_key { bits: 8 * text.len() as u32, ..tg_unit_key::default() };
        for (to, from) in key.name.iter_mut().zip(text.bytes()) {
            *to = from as _;
        }
        (key, flags)
    }
}

/// cg_escape of systemd.
fn escaped(name: &str) -> String {
    let escapes = name.starts_with(['_', '.']) || FILES.iter().any(|file| name.starts_with(file));
    format!("{}{name}", if escapes { "_" } else { "" })
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(name: &str) -> Result<Self, BadName> {
        let bad = |why| Err(BadName { name: name.to_owned(), why });
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
        let unit = Self(name.to_owned());
        if !name.bytes().all(known) || unit.stem().is_empty() || unit.stem().starts_with('@') {
            return bad("is not the name of a unit, such as web.service");
        }
        if !KINDS.contains(&unit.kind()) {
            return bad("is not a unit with processes of its own: those end in .service, .socket, .mount or .swap");
        }
        if name.len() >= MAX_LENGTH {
            return bad("is too long: a name may have 121 characters");
        }
        if unit.is_template() && unit.kind() != "service" {
            return bad("is a template: only templates of services can have a context; name each instance of others");
        }
        Ok(unit)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
