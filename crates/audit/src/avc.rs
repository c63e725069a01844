//! A denial, in the form of the kernel's audit (security/selinux/avc.c, security/lsm_audit.c).

use std::fmt;

use serde::{Deserialize, Serialize};
use tollgate_abi::{
    Class, class,
    enforcer::{
        SECINITSID_SECURITY, TG_OBJECT_CAPABILITY, TG_OBJECT_INODE, TG_OBJECT_IOCTL, TG_OBJECT_IPC, TG_OBJECT_NAME,
        TG_OBJECT_PACKET, TG_OBJECT_PATH, TG_OBJECT_PORT, TG_OBJECT_SOCKET, TG_OBJECT_TASK, TG_OBJECT_UNIX, tg_event,
    },
};

use super::{Untrusted, endpoints::Endpoints};

/// An act that was denied, or granted and audited.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Denial {
    /// Time of the act, in milliseconds since 1970.
    #[serde(with = "time")]
    pub time: u64,
    /// Whether it was denied or granted.
    pub verdict: Verdict,
    /// Names of the permissions that were denied, out of those that were requested; or names of those that were
    /// granted.
    pub permissions: Vec<String>,
    /// Number of the process.
    pub pid: u32,
    /// Name of the process (`comm`).
    pub comm: Untrusted,
    /// The object of the act.
    #[serde(flatten)]
    pub object: Object,
    /// Context of the process; `None`: the policy in force has no context with that SID.
    pub scontext: Option<String>,
    /// SID of the process.
    pub ssid: u32,
    /// Context of the object; `None` as above.
    pub tcontext: Option<String>,
    /// SID of the object.
    pub tsid: u32,
    /// Class of the object.
    pub tclass: String,
    /// Whether it was granted all the same, because the domain or the machine is permissive.
    pub permissive: bool,
    /// What the system call returned for it, as an errno; 0 where it was granted.
    pub errno: u32,
    /// Number of the policy generation that decided.
    pub generation: u32,
    /// Number of other denials that this entry stands for: they equal it and came within a second of it. Default 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u64,
    /// What was requested of the object, `file:write,append`, if the policy allows that but enforcement depends on the
    /// object. The permission that was denied is then `security setenforce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// The class and the permission that let a domain end enforcement.
pub(crate) const ENDS_ENFORCEMENT: (&str, &str) = ("security", "setenforce");

/// Whether an act was denied or granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was denied, or would have been in enforcing mode.
    Denied,
    /// It was granted, and the policy has an auditallow rule for it.
    Granted,
}

/// What is known of the object of an act.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "object", rename_all = "lowercase")]
pub enum Object {
    /// Nothing is known.
    None,
    /// A file of which only the last component of its path is known.
    Inode {
        /// That component, if it is known.
        #[serde(default, skip_serializing_if = "Untrusted::is_empty")]
        name: Untrusted,
        /// The inode; `None`: it does not exist yet.
        #[serde(flatten)]
        place: Option<Place>,
    },
    /// A file with its path.
    Path {
        /// The path as the task sees it, from its root.
        path: Untrusted,
        /// Where the inode is.
        #[serde(flatten)]
        place: Option<Place>,
    },
    /// A file on which ioctl(2) was called.
    Ioctl {
        /// The file's path.
        path: Untrusted,
        /// Where the inode is.
        #[serde(flatten)]
        place: Option<Place>,
        /// The command of ioctl(2).
        ioctlcmd: u16,
    },
    /// A capability.
    Capability {
        /// Its number, as in linux/capability.h.
        capability: u32,
    },
    /// A System V object.
    Ipc {
        /// Its key; 0: it is private.
        ipc_key: i32,
    },
    /// Another process.
    Task {
        /// Number of that process.
        opid: u32,
        /// Name of that process (`comm`).
        ocomm: Untrusted,
    },
    /// A kernel module that the kernel requested.
    Module {
        /// Name of the module.
        kmod: Untrusted,
    },
    /// An anonymous inode.
    Anonymous {
        /// Name of the kind of inode, for example `[userfaultfd]`.
        anonclass: Untrusted,
    },
    /// A socket, a port or a packet, with the addresses that are known.
    Network(Box<Endpoints>),
    /// Any other object with a name.
    Named {
        /// Name of the object, for example a file system type.
        name: Untrusted,
    },
}

/// Where an inode is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The file system as the kernel names it (`s_id`): its block device, or its type.
    pub dev: Untrusted,
    /// The inode number.
    pub ino: u64,
}

impl Denial {
    /// The denial that an event of the object managers reports. `booted` is when the machine started, in nanoseconds
    /// since 1970. `context` returns the text of a SID.
    pub fn new(event: &tg_event, booted: u64, mut context: impl FnMut(u32) -> Option<String>) -> Self {
        let mut context = |sid| context(sid).filter(|text| !text.is_empty());
        let (verdict, vector) =
            if event.denied == 0 { (Verdict::Granted, event.requested) } else { (Verdict::Denied, event.denied) };
        let known = class(event.class);
        let (tclass, asked) = (class_name(event.class), permissions(known, vector));
        let withheld = (event.denied != 0 && event.withheld != 0).then(|| format!("{tclass}:{}", asked.join(",")));
        let (tclass, permissions, target) = match withheld {
            Some(_) => (ENDS_ENFORCEMENT.0.to_owned(), vec![ENDS_ENFORCEMENT.1.to_owned()], SECINITSID_SECURITY),
            None => (tclass, asked, event.target),
        };
        Self {
            time: booted.saturating_add(event.time) / 1_000_000,
            verdict,
            permissions,
            pid: event.tgid,
            comm: Untrusted::from_c(&event.command),
            object: Object::new(event, known),
            scontext: context(event.source),
            ssid: event.source,
            tcontext: context(target),
            tsid: target,
            tclass,
            permissive: verdict == Verdict::Denied && event.permissive != 0,
            errno: event.result,
            generation: event.generation,
            repeated: 0,
            withheld,
        }
    }

    /// The type in the process's context, which is its domain.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        self.scontext.as_deref()?.split(':').nth(2)
    }
}

fn class_name(number: u32) -> String {
    class(number).map_or_else(|| number.to_string(), |class| class.name.to_owned())
}

/// Names of the permissions in a vector. Bits without a name come as one hexadecimal number, as in avc_dump_av.
fn permissions(class: Option<&Class>, vector: u32) -> Vec<String> {
    let bits = (0..32).filter(|bit| vector >> bit & 1 != 0);
    let name = |bit: u32| class.and_then(|class| class.permissions.get(bit as usize));
    let mut names: Vec<String> = bits.clone().filter_map(name).map(|name| (*name).to_owned()).collect();
    let nameless = bits.filter(|&bit| name(bit).is_none()).fold(0u32, |sum, bit| sum | 1 << bit);
    if nameless != 0 {
        names.push(format!("0x{nameless:x}"));
    }
    names
}

impl Object {
    fn new(event: &tg_event, class: Option<&Class>) -> Self {
        let name = Untrusted::from_c(&event.name);
        let dev = Untrusted::from_c(&event.filesystem);
        let place = (!dev.is_empty()).then_some(Place { dev, ino: event.inode });
        match event.object {
            TG_OBJECT_INODE => Self::Inode { name, place },
            TG_OBJECT_PATH => Self::Path { path: path(event), place },
            TG_OBJECT_IOCTL => Self::Ioctl { path: path(event), place, ioctlcmd: event.number as u16 },
            TG_OBJECT_CAPABILITY => Self::Capability { capability: event.number },
            TG_OBJECT_IPC => Self::Ipc { ipc_key: event.number.cast_signed() },
            TG_OBJECT_TASK => Self::Task { opid: event.number, ocomm: name },
            TG_OBJECT_SOCKET | TG_OBJECT_PORT | TG_OBJECT_PACKET => Self::Network(Box::new(Endpoints::new(event))),
            TG_OBJECT_UNIX => Self::Path { path: unix(event), place: None },
            TG_OBJECT_NAME => match class.map(|class| class.name) {
                Some("system") => Self::Module { kmod: name },
                Some("anon_inode") => Self::Anonymous { anonclass: name },
                _ => Self::Named { name },
            },
            _ => Self::None,
        }
    }
}

/// The name of a unix socket without a file. It may hold any bytes; the first one is NUL.
fn unix(event: &tg_event) -> Untrusted {
    let bytes = event.name.iter().map(|&c| c.cast_unsigned());
    Untrusted::new(bytes.take(event.number as usize).collect::<Vec<u8>>())
}

/// The path in an event, which lists the components from the last to the first. Objects without a path are named as
/// d_path names them.
fn path(event: &tg_event) -> Untrusted {
    match Untrusted::from_c(&event.filesystem).bytes() {
        b"pipefs" => return Untrusted::new(format!("pipe:[{}]", event.inode)),
        b"sockfs" => return Untrusted::new(format!("socket:[{}]", event.inode)),
        b"anon_inodefs" => {
            return Untrusted::new([b"anon_inode:", Untrusted::from_c(&event.name).bytes()].concat());
        }
        _ => (),
    }
    let bytes: Vec<u8> = event.name.iter().map(|&c| c.cast_unsigned()).collect();
    let components = bytes.split(|&byte| byte == 0).take_while(|component| !component.is_empty());
    let mut components: Vec<&[u8]> = components.collect();
    // A path that was cut has no slash before the part that is left. The root is an empty component.
    match components.last().copied() {
        Some(b".") => drop(components.pop()),
        Some(_) => components.push(b""),
        None => return Untrusted::new(*b"/"),
    }
    components.reverse();
    Untrusted::new(components.join(&b'/'))
}

/// The text of the kernel's record: avc_audit_pre_callback, dump_common_audit_data, avc_audit_post_callback.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.verdict == Verdict::Denied { "denied" } else { "granted" };
        write!(f, "avc:  {verdict}  {{ {} }} for  pid={} comm={}", self.permissions.join(" "), self.pid, self.comm)?;
        self.object.fmt(f)?;
        context(f, "scontext", self.scontext.as_deref(), "ssid", self.ssid)?;
        context(f, "tcontext", self.tcontext.as_deref(), "tsid", self.tsid)?;
        write!(f, " tclass={}", self.tclass)?;
        if self.verdict == Verdict::Denied {
            write!(f, " permissive={}", u8::from(self.permissive))?;
        }
        if let Some(withheld) = &self.withheld {
            write!(f, " withheld={withheld}")?;
        }
        if self.repeated == 0 { Ok(()) } else { write!(f, " repeated={}", self.repeated) }
    }
}

fn context(f: &mut fmt::Formatter<'_>, key: &str, text: Option<&str>, or: &str, sid: u32) -> fmt::Result {
    match text {
        Some(text) => write!(f, " {key}={text}"),
        None => write!(f, " {or}={sid}"),
    }
}

/// The same text as audit_log_lsm_data writes, with its blanks.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place_of = |f: &mut fmt::Formatter<'_>, place: &Option<Place>| match place {
            Some(Place { dev, ino }) => write!(f, " dev={dev} ino={ino}"),
            None => Ok(()),
        };
        match self {
            Self::None => Ok(()),
            Self::Inode { name, place } => {
                if !name.is_empty() {
                    write!(f, " name={name}")?;
                }
                place_of(f, place)
            }
            Self::Path { path, place } => {
                write!(f, " path={path}")?;
                place_of(f, place)
            }
            Self::Ioctl { path, place, ioctlcmd } => {
                write!(f, " path={path}")?;
                place_of(f, place)?;
                write!(f, " ioctlcmd=0x{ioctlcmd:x}")
            }
            Self::Capability { capability } => write!(f, " capability={capability} "),
            Self::Ipc { ipc_key } => write!(f, " ipc_key={ipc_key} "),
            Self::Task { opid, ocomm } if ocomm.is_empty() => write!(f, " opid={opid}"),
            Self::Task { opid, ocomm } => write!(f, " opid={opid} ocomm={ocomm}"),
            Self::Module { kmod } => write!(f, " kmod={kmod}"),
            Self::Anonymous { anonclass } => write!(f, " anonclass={anonclass}"),
            Self::Named { name } => write!(f, " name={name}"),
            Self::Network(endpoints) => endpoints.fmt(f),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Times in milliseconds since 1970, written as RFC 3339 in UTC: `2026-11-21T08:00:00.123Z`.
pub(crate) mod time {
    use std::time::{Duration, SystemTime};

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(time: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = humantime::parse_rfc3339(&text).map_err(D::Error::custom)?;
        let since = time.duration_since(SystemTime::UNIX_EPOCH).map_err(D::Error::custom)?;
        u64::try_from(since.as_millis()).map_err(D::Error::custom)
    }

    /// The end of the year 9999, the last time that this form can express.
    pub(crate) const LAST: u64 = 253_402_300_799_999;

    /// The text of a time. A time after [`LAST`] becomes 1970.
    pub(crate) fn text(time: u64) -> String {
        let time = if time > LAST { 0 } else { time };
        humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + Duration::from_millis(time)).to_string()
    }
}

#[cfg(test)]
mod tests;
