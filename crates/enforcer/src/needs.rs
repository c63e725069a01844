//! Which hooks a policy needs: those that maintain labels, and those that check something that a confined domain may be
//! denied, or that is audited. What no rule of the policy can deny is not checked.
//!
//! Everything here errs on one side: a hook is left out only if it is certain that this changes no answer.

mod checks;
mod constraints;
mod denials;

use std::collections::BTreeSet;

use tollgate_client::{
    descriptors::Descriptors,
    why::{Kind, Reason},
};
use tollgate_policy::{decide::Tables, model::Policy};

use self::denials::Denials;
pub(crate) use self::denials::Places;
use crate::hooks::{self, BadLine, Hook, Purpose, Question};

/// A hook with a program, and why the policy needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Name of the hook.
    pub hook: &'static str,
    /// Reasons for its program. Empty: it is not needed.
    pub reasons: Vec<Reason>,
}

/// A permission that the policy restricts and that no hook of a kernel can enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The hooks that check it on other kernels.
    pub hooks: Vec<&'static str>,
    /// Name of the class.
    pub class: &'static str,
    /// Name of the permission.
    pub permission: &'static str,
    /// Which domain the policy denies it, and on what.
    pub because: String,
}

/// This hook checks each read and write. It is needed if descriptors are checked at their use, and while processes hold
/// what an earlier policy has granted.
pub(crate) const USE: &str = "file_permission";

/// At this hook, an inode gets the label that the daemon writes to its attribute through overlayfs. It is needed from the
/// first such label on.
pub(crate) const THROUGH_OVERLAY: &str = "inode_post_setxattr";

/// Of this hook's checks, only these are made by no other hook. Other hooks make the rest (`state.no_lookups`).
const LOOKUP: (&str, [(&str, &str); 2]) = ("inode_permission", [("dir", "search"), ("sock_file", "write")]);

/// Anything but looking at a file is denied, whatever the policy says about the file, if enforcement depends on it
/// (`TG_SID_SURVIVAL`), unless this permission is allowed.
const ENFORCE: (&str, &str) = ("security", "setenforce");
/// The permissions that only look at a file (`tg_looks`).
const LOOKS: [&str; 11] = [
    "read",
    "getattr",
    "open",
    "audit_access",
    "watch",
    "watch_reads",
    "search",
    "map",
    "execute",
    "execute_no_trans",
    "entrypoint",
];
/// Connecting changes no directory (`tg_looks` again).
const CONNECTS: (&str, &str) = ("sock_file", "write");

/// This hook checks each received packet, if packets have labels or the policy has the capability.
const PACKETS: (&str, &str) = ("socket_sock_rcv_skb", "always_check_network");
/// At these hooks, confined sockets are denied ways by which packets would have no label.
const WAYS: [&str; 5] = ["sctp_bind_connect", "socket_connect", "socket_create", "socket_sendmsg", "socket_setsockopt"];
/// At these hooks, sockets learn what connections bring: the peer's label, and its level.
const CONNECTIONS: [&str; 3] = ["inet_conn_established", "inet_conn_request", "inet_csk_clone"];
/// What SELinux checks for packets at netfilter's hooks, to which no program of kernels before 6.4 can be attached.
const SENT: [(&str, &str); 5] =
    [("netif", "egress"), ("node", "sendto"), ("packet", "send"), ("packet", "forward_in"), ("packet", "forward_out")];

/// At this hook, a confined process is denied an io_uring of another domain, whatever rules allow.
const RINGS: &str = "file_receive";
/// This hook checks messages, by the one permission `nlmsg` if the policy has the capability. Else a message of an unknown
/// type is refused, unless the policy allows what it does not define.
const MESSAGES: (&str, &str, &str) = ("netlink_send", "netlink_xperm", "nlmsg");

/// What decides beside the policy which hooks are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// When descriptors are checked.
    pub descriptors: Descriptors,
    /// Whether packets have labels.
    pub labelled: bool,
    /// Whether the daemon writes labels through overlayfs.
    pub overlay: bool,
}

/// The hooks whose programs the policy needs. `unconfined` names the unconfined domains.
pub fn hooks(
    policy: &Policy,
    tables: &Tables,
    unconfined: &[String],
    setting: Setting,
) -> Result<Vec<&'static str>, BadLine> {
    let denials = Denials::new(policy, tables, unconfined, &|_, _, _| Vec::new());
    let needed = |hook: &Hook| reasons(hook, &denials, setting).next().is_some();
    Ok(hooks::all()?.into_iter().filter(needed).map(|hook| hook.name).collect())
}

/// Why [`hooks`] has a hook: for `only` this one, with an example for each class, or the first reason for each with a
/// program. `places` says where constraints are written.
pub(crate) fn why(
    policy: &Policy,
    tables: &Tables,
    unconfined: &[String],
    setting: Setting,
    places: &Places<'_>,
    only: Option<&str>,
) -> Result<Vec<Need>, BadLine> {
    let denials = Denials::new(policy, tables, unconfined, places);
    let wanted = |hook: &Hook| hook.purpose != Purpose::Nothing && only.is_none_or(|name| name == hook.name);
    let programs = hooks::all()?.into_iter().filter(wanted);
    let most = if only.is_some() { usize::MAX } else { 1 };
    let need = |hook: Hook| {
        let mut classes = BTreeSet::new();
        let is_new = |reason: &Reason| reason.example.as_ref().is_none_or(|it| classes.insert(it.class.clone()));
        let reasons = reasons(&hook, &denials, setting).filter(is_new).take(most).collect();
        Need { hook: hook.name, reasons }
    };
    Ok(programs.map(need).collect())
}

/// Why the program of a hook is not needed if there is no reason for it.
pub(crate) fn omitted(hook: &str, setting: Setting) -> Reason {
    let text = match hook {
        USE if setting.descriptors == Descriptors::Check => {
            "descriptors are checked when they change hands; each use is checked only while something is held that the policy denies"
        }
        _ if CONNECTIONS.contains(&hook) => "no packet has a label",
        THROUGH_OVERLAY => "no label was given to a file of an overlayfs yet",
        _ if hook == PACKETS.0 => "no packet has a label, and the policy has no packets checked",
        _ => "this policy denies nothing, and audits nothing, that is checked there",
    };
    Reason::new(Kind::Omitted, text)
}

/// The reasons for the program of a hook, which are found one after the other.
fn reasons<'d>(hook: &'d Hook, denials: &'d Denials<'_>, setting: Setting) -> impl Iterator<Item = Reason> + 'd {
    let checked = match hook.name {
        USE => setting.descriptors == Descriptors::Use,
        name => name != PACKETS.0 || setting.labelled || denials.has_capability(PACKETS.1),
    };
    let denied = move |(_, class, permission): (&str, &str, &str)| denied(hook.name, class, permission, denials);
    standing(hook, denials, setting)
        .into_iter()
        .chain(asked(hook).into_iter().filter(move |_| checked).filter_map(denied))
}

/// The reason for a program that does not depend on rules and constraints.
fn standing(hook: &Hook, denials: &Denials<'_>, Setting { labelled, overlay, .. }: Setting) -> Option<Reason> {
    let packets = labelled && (hook.name == PACKETS.0 || WAYS.contains(&hook.name));
    let (kind, text) = match &hook.purpose {
        Purpose::Keeps if CONNECTIONS.contains(&hook.name) && !labelled => return None,
        Purpose::Keeps if hook.name == THROUGH_OVERLAY && !overlay => return None,
        Purpose::Keeps if CONNECTIONS.contains(&hook.name) => (Kind::Packets, "packets have labels"),
        Purpose::Keeps if !hook.remark.is_empty() => (Kind::Labels, hook.remark),
        Purpose::Keeps | Purpose::Asks { keeps: true, .. } => (Kind::Labels, "labels or subjects are kept there"),
        _ if packets => (Kind::Packets, "packets have labels"),
        _ if hook.name == PACKETS.0 && denials.has_capability(PACKETS.1) => {
            (Kind::Packets, "the policy has each packet checked")
        }
        _ if hook.name == RINGS && denials.confines() => {
            (Kind::Fixed, "no domain gets an io_uring of another, whatever rules allow")
        }
        _ if hook.name == MESSAGES.0 && denials.confines() && refuses_messages(denials) => (
            Kind::Fixed,
            "messages of unknown types are refused, because the policy does not allow what it does not define",
        ),
        _ => return None,
    };
    Some(Reason::new(kind, text))
}

fn refuses_messages(denials: &Denials<'_>) -> bool {
    !denials.allows_unknown() && !denials.has_capability(MESSAGES.1)
}

/// Why a check of a hook may have another result than a silent yes.
fn denied(hook: &str, class: &str, permission: &str, denials: &Denials<'_>) -> Option<Reason> {
    let by_other_hooks = hook == LOOKUP.0 && !LOOKUP.1.contains(&(class, permission));
    let of_other_kind = hook == MESSAGES.0 && denials.has_capability(MESSAGES.1) != (permission == MESSAGES.2);
    if by_other_hooks || of_other_kind {
        return None;
    }
    let looks = LOOKS.contains(&permission) || (class, permission) == CONNECTS;
    let vital = hooks::FILES.contains(&class) && !looks;
    denials.of(class, permission).or_else(|| if vital { denials.of(ENFORCE.0, ENFORCE.1) } else { None })
}

/// What the policy may deny but a kernel with only these hooks never checks. What no program can check on any kernel is
/// not counted, except for sent packets (`SENT`).
pub fn missing(
    policy: &Policy,
    tables: &Tables,
    unconfined: &[String],
    kernel: &[String],
    labelled: bool,
) -> Result<Vec<Missing>, BadLine> {
    let denials = Denials::new(policy, tables, unconfined, &|_, _, _| Vec::new());
    let hooks = hooks::all()?;
    let mut lost: Vec<Missing> = Vec::new();
    let (present, absent): (Vec<&Hook>, Vec<&Hook>) =
        hooks.iter().partition(|hook| kernel.iter().any(|name| name == hook.name));
    for (hook, class, permission) in absent.iter().flat_map(|hook| asked(hook)) {
        if present.iter().flat_map(|hook| asked(hook)).any(|(_, of, name)| (of, name) == (class, permission)) {
            continue;
        }
        match lost.iter_mut().find(|it| (it.class, it.permission) == (class, permission)) {
            Some(known) => known.hooks.push(hook),
            None => lost.extend(denials.of(class, permission).map(|reason| Missing {
                hooks: vec![hook],
                class,
                permission,
                because: reason.text,
            })),
        }
    }
    // With labels in packets, network devices run programs, which check them.
    if denials.has_capability(PACKETS.1) && !labelled {
        let sent = SENT.iter().filter_map(|(class, permission)| {
            let because = denials.of(class, permission)?.text;
            Some(Missing { hooks: Vec::new(), class, permission, because })
        });
        lost.extend(sent);
    }
    Ok(lost)
}

/// What is checked at a hook: the hook, the class, the permission.
fn asked(hook: &Hook) -> Vec<(&'static str, &'static str, &'static str)> {
    let Purpose::Asks { questions, .. } = &hook.purpose else { return Vec::new() };
    let of = |question: &Question| {
        let (class, permissions) = (question.class.name, question.permissions.clone());
        permissions.into_iter().map(move |permission| (hook.name, class, permission)).collect::<Vec<_>>()
    };
    questions.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests;
