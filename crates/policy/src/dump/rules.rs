//! Reads rules, transitions, and the contexts of objects without a label of their own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    DumpError,
    stream::{Counts, Stream},
};
use crate::model::{
    Condition, ExtendedRule, Extension, FsUse, GenFs, InitialSid, InterfaceContext, NameTransition, NodeContext,
    Policy, PortContext, RangeTransition, RoleTransition, Rule, RuleKind,
};

/// The kernel's names of initial SIDs, by number (security/selinux/include/initial_sid_to_string.h).
const INITIAL_SIDS: [&str; 28] = [
    "null",
    "kernel",
    "security",
    "unlabeled",
    "fs",
    "file",
    "file_labels",
    "init",
    "any_socket",
    "port",
    "netif",
    "netmsg",
    "node",
    "igmp_packet",
    "icmp_socket",
    "tcp_socket",
    "sysctl_modprobe",
    "sysctl",
    "sysctl_fs",
    "sysctl_kernel",
    "sysctl_net",
    "sysctl_net_unix",
    "sysctl_vm",
    "sysctl_dev",
    "kmod",
    "policy",
    "scmp_packet",
    "devnull",
];

pub(super) fn read(stream: &mut Stream<'_>, counts: &Counts, policy: &mut Policy) -> Result<(), DumpError> {
    let conditions = policy.conditions.len();
    policy.rules = stream.list(24, |stream| {
        let (kind, [source, target, class], condition) = key(stream, counts, conditions)?;
        let greatest = if kind < RuleKind::Transition { u32::MAX } else { counts.types as u32 };
        let data = stream.number()?;
        if data > greatest || kind >= RuleKind::Transition && data == 0 {
            return Err(DumpError::Content("a rule with a type that is not there"));
        }
        Ok(Rule { kind, source, target, class, data, condition })
    })?;
    policy.extended_rules = stream.list(56, |stream| extended(stream, counts, conditions))?;
    transitions(stream, counts, policy)?;
    contexts(stream, counts, policy)
}

/// The beginning of every rule, numbered as in libsepol (`AVTAB_*`, sepol/policydb/avtab.h).
fn key(
    stream: &mut Stream<'_>,
    counts: &Counts,
    conditions: usize,
) -> Result<(RuleKind, [u32; 3], Option<Condition>), DumpError> {
    let kind = match stream.number()? {
        0x1 | 0x100 => RuleKind::Allow,
        0x2 | 0x200 => RuleKind::AuditAllow,
        0x4 | 0x400 => RuleKind::DontAudit,
        0x10 => RuleKind::Transition,
        0x20 => RuleKind::Member,
        0x40 => RuleKind::Change,
        _ => return Err(DumpError::Content("a rule of unknown kind")),
    };
    let (source, target) = (stream.within(1, counts.types)?, stream.within(1, counts.types)?);
    let class = stream.within(1, counts.classes)?;
    let condition = match stream.within(0, 2 * conditions)? {
        0 => None,
        number => Some(Condition { condition: (number - 1) / 2, value: (number - 1) % 2 == 1 }),
    };
    Ok((kind, [source, target, class], condition))
}

fn extended(stream: &mut Stream<'_>, counts: &Counts, conditions: usize) -> Result<ExtendedRule, DumpError> {
    let (kind, [source, target, class], condition) = key(stream, counts, conditions)?;
    if kind >= RuleKind::Transition {
        return Err(DumpError::Content("an extended rule of unknown kind"));
    }
    let [specified, driver, 0, 0] = stream.number()?.to_le_bytes() else {
        return Err(DumpError::Content("extended permissions of unknown kind"));
    };
    let extension = match specified {
        1 => Extension::IoctlFunction { driver },
        2 => Extension::IoctlDriver,
        _ => return Err(DumpError::Content("extended permissions of unknown kind")),
    };
    let mut bits = [0; 4];
    for word in &mut bits {
        *word = u64::from(stream.number()?) | u64::from(stream.number()?) << 32;
    }
    Ok(ExtendedRule { kind, source, target, class, extension, bits, condition })
}

fn transitions(stream: &mut Stream<'_>, counts: &Counts, policy: &mut Policy) -> Result<(), DumpError> {
    policy.name_transitions = stream.list(20, |stream| {
        let sources = stream.set(counts.types)?;
        let (target, class) = (stream.within(1, counts.types)?, stream.within(1, counts.classes)?);
        let result = stream.within(1, counts.types)?;
        Ok(NameTransition { sources, target, class, name: stream.text()?, result })
    })?;
    policy.role_transitions = stream.list(16, |stream| {
        Ok(RoleTransition {
            role: stream.within(1, counts.roles)?,
            target: stream.within(1, counts.types)?,
            class: stream.within(1, counts.classes)?,
            result: stream.within(1, counts.roles)?,
        })
    })?;
    policy.role_allows =
        stream.list(8, |stream| Ok((stream.within(1, counts.roles)?, stream.within(1, counts.roles)?)))?;
    policy.range_transitions = stream.list(28, |stream| {
        Ok(RangeTransition {
            source: stream.within(1, counts.types)?,
            target: stream.within(1, counts.types)?,
            class: stream.within(1, counts.classes)?,
            range: counts.range(stream)?,
        })
    })?;
    // libsepol's hash tables have no order of their own.
    policy.name_transitions.sort();
    policy.range_transitions.sort();
    Ok(())
}

fn contexts(stream: &mut Stream<'_>, counts: &Counts, policy: &mut Policy) -> Result<(), DumpError> {
    policy.initial_sids = stream.list(32, |stream| {
        let sid = stream.number()?;
        let name = INITIAL_SIDS.get(sid as usize).map_or_else(|| format!("#{sid}"), ToString::to_string);
        Ok(InitialSid { sid, name, context: counts.context(stream)? })
    })?;
    policy.fs_uses = stream.list(36, |stream| {
        Ok(FsUse { behaviour: stream.number()?, name: stream.text()?, context: counts.context(stream)? })
    })?;
    policy.genfs = stream.list(40, |stream| {
        let (name, path) = (stream.text()?, stream.text()?);
        Ok(GenFs { name, path, class: stream.within(0, counts.classes)?, context: counts.context(stream)? })
    })?;
    policy.ports = stream.list(40, |stream| {
        let protocol = stream.within(0, u8::MAX.into())? as u8;
        let (low, high) = (stream.within(0, u16::MAX.into())? as u16, stream.within(0, u16::MAX.into())? as u16);
        Ok(PortContext { protocol, low, high, context: counts.context(stream)? })
    })?;
    policy.interfaces = stream.list(60, |stream| {
        let name = stream.text()?;
        Ok(InterfaceContext { name, interface: counts.context(stream)?, packet: counts.context(stream)? })
    })?;
    policy.nodes = stream.list(40, |stream| {
        let length = stream.number()? as usize;
        let (address, mask) = (address(stream, length)?, address(stream, length)?);
        Ok(NodeContext { address, mask, context: counts.context(stream)? })
    })?;
    policy.infiniband = stream.number()?;
    Ok(())
}

/// An address in network byte order.
fn address(stream: &mut Stream<'_>, length: usize) -> Result<IpAddr, DumpError> {
    let bytes = stream.bytes(length.min(16))?;
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Ok(IpAddr::V4(Ipv4Addr::from(v4)));
    }
    let v6 = <[u8; 16]>::try_from(bytes).map_err(|_| DumpError::Content("an address of unknown length"))?;
    Ok(IpAddr::V6(Ipv6Addr::from(v6)))
}
