//! Which hooks a policy needs: those that maintain labels, and those that check something that a confined domain may be
//! denied, or that is audited. What no rule of the policy can deny is not checked.
//!
//! Everything here errs on one side: a hook is left out only if it is certain that this changes no answer.

mod constraints;
mod denials;

use tollgate_client::descriptors::Descriptors;
use tollgate_policy::{decide::Tables, model::Policy};

use self::denials::Denials;
use crate::hooks::{self, BadLine, Hook, Purpose, Question};

/// A hook, and whether the policy needs its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Name of the hook.
    pub hook: &'static str,
    /// Whether its program is needed.
    pub needed: bool,
    /// Why it is needed, or why it is not.
    pub because: String,
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
const WAYS: [&str; 4] = ["sctp_bind_connect", "socket_connect", "socket_sendmsg", "socket_setsockopt"];
/// At these hooks, sockets learn what connections bring: the peer's label, and its level.
const CONNECTIONS: [&str; 3] = ["inet_conn_established", "inet_conn_request", "inet_csk_clone"];
/// What SELinux checks for packets at netfilter's hooks, to which no program of kernels before 6.4 can be attached.
const SENT: [(&str, &str); 5] =
    [("netif", "egress"), ("node", "sendto"), ("packet", "send"), ("packet", "forward_in"), ("packet", "forward_out")];

/// What decides beside the policy which hooks are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// When descriptors are checked.
    pub descriptors: Descriptors,
    /// Whether packets have labels.
    pub labelled: bool,
}

/// For each hook with a program, whether the policy needs it. `unconfined` names the unconfined domains.
pub fn hooks(policy: &Policy, tables: &Tables, unconfined: &[String], setting: Setting) -> Result<Vec<Need>, BadLine> {
    let mut denials = Denials::new(policy, tables, unconfined);
    Ok(hooks::all()?.into_iter().filter_map(|hook| need(&hook, &mut denials, setting)).collect())
}

fn need(hook: &Hook, denials: &mut Denials<'_>, setting: Setting) -> Option<Need> {
    let Setting { descriptors, labelled } = setting;
    let say = |needed, because: String| Some(Need { hook: hook.name, needed, because });
    match &hook.purpose {
        Purpose::Nothing => None,
        _ if CONNECTIONS.contains(&hook.name) => match labelled {
            true => say(true, "packets have labels".into()),
            false => say(false, "no packet has a label".into()),
        },
        Purpose::Keeps | Purpose::Asks { keeps: true, .. } => say(true, "labels are kept there".into()),
        Purpose::Asks { .. } if hook.name == USE && descriptors == Descriptors::Check => {
            say(false, "descriptors are checked when they change hands".into())
        }
        Purpose::Asks { .. } if labelled && (hook.name == PACKETS.0 || WAYS.contains(&hook.name)) => {
            say(true, "packets have labels".into())
        }
        Purpose::Asks { .. } if hook.name == PACKETS.0 => match denials.has_capability(PACKETS.1) {
            true => say(true, "the policy has each packet checked".into()),
            false => say(false, "the policy has no packets checked".into()),
        },
        Purpose::Asks { questions, .. } => match first(hook.name, questions, denials) {
            Some(because) => say(true, because),
            None => say(false, "the policy denies nothing that is checked there".into()),
        },
    }
}

/// The first check that some domain may be denied, and that domain.
fn first(hook: &str, questions: &[Question], denials: &mut Denials<'_>) -> Option<String> {
    let asked = questions.iter().flat_map(|question| question.permissions.iter().map(|name| (question.class, *name)));
    let only = |class: &str, name: &str| hook != LOOKUP.0 || LOOKUP.1.contains(&(class, name));
    let mut asked = asked.filter(|(class, name)| only(class.name, name));
    asked.find_map(|(class, name)| {
        let looks = LOOKS.contains(&name) || (class.name, name) == CONNECTS;
        let vital = hooks::FILES.contains(&class.name) && !looks;
        denials.of(class.name, name).or_else(|| if vital { denials.of(ENFORCE.0, ENFORCE.1) } else { None })
    })
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
    let mut denials = Denials::new(policy, tables, unconfined);
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
            None => lost.extend(denials.of(class, permission).map(|because| Missing {
                hooks: vec![hook],
                class,
                permission,
                because,
            })),
        }
    }
    // With labels in packets, network devices run programs, which check them.
    if denials.has_capability(PACKETS.1) && !labelled {
        let sent = SENT.iter().filter_map(|(class, permission)| {
            let because = denials.of(class, permission)?;
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
