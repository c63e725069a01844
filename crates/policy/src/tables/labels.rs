//! Labelling decisions and role rules as keys.

use std::collections::BTreeMap;

use tollgate_abi::tables::{
    TG_CHANGE, TG_MEMBER, TG_NAME, TG_NAME_HASH, TG_NAMED, TG_NAMED_AT, TG_RANGE, TG_ROLE, TG_ROLE_ALLOW,
    TG_TRANSITION, tg_named,
};

use crate::model::{NameTransition, Policy, Rule, RuleKind};

use super::{
    keys::{Keys, key},
    layout::Layout,
    levels::Levels,
    limit::TableLimit,
};

/// Type transitions, members and changes without a file name. As in `security_compute_sid`, types are looked up
/// themselves and not by their attributes, and a conditional rule counts only if no unconditional one does.
pub(super) fn types(policy: &Policy, keys: &mut Keys) {
    let (conditional, unconditional): (Vec<&Rule>, Vec<&Rule>) =
        policy.rules.iter().partition(|rule| rule.condition.is_some());
    for rule in unconditional.into_iter().chain(conditional) {
        let kind = match rule.kind {
            RuleKind::Transition => TG_TRANSITION,
            RuleKind::Member => TG_MEMBER,
            RuleKind::Change => TG_CHANGE,
            RuleKind::Allow | RuleKind::AuditAllow | RuleKind::DontAudit => continue,
        };
        if policy.holds(rule.condition) {
            keys.insert(key(kind, rule.source, rule.target, rule.class), rule.data.into());
        }
    }
}

/// Role transitions and role allows.
pub(super) fn roles(policy: &Policy, keys: &mut Keys) {
    for rule in &policy.role_transitions {
        keys.insert(key(TG_ROLE, rule.role, rule.target, rule.class), rule.result.into());
    }
    for (from, to) in &policy.role_allows {
        keys.insert(key(TG_ROLE_ALLOW, *from, *to, 0), 1);
    }
}

/// Adds the range transitions.
pub(super) fn ranges(policy: &Policy, levels: &mut Levels, keys: &mut Keys) -> Result<(), TableLimit> {
    for rule in &policy.range_transitions {
        let low = levels.intern(&rule.range.low, "a range transition")?;
        let high = levels.intern(&rule.range.high, "a range transition")?;
        keys.insert(key(TG_RANGE, rule.source, rule.target, rule.class), u64::from(low) | u64::from(high) << 32);
    }
    Ok(())
}

/// Type transitions by file name.
pub(super) fn names(policy: &Policy, layout: &mut Layout, keys: &mut Keys) -> Result<(), TableLimit> {
    let mut by_name: BTreeMap<&str, BTreeMap<(u32, u32), Vec<&NameTransition>>> = BTreeMap::new();
    for rule in &policy.name_transitions {
        by_name.entry(&rule.name).or_default().entry((rule.target, rule.class)).or_default().push(rule);
    }
    if by_name.len() > usize::from(u16::MAX) {
        let most = u16::MAX.into();
        return Err(TableLimit::Identifiers { what: "file names in type transitions", has: by_name.len(), most });
    }
    let mut hashes: BTreeMap<u64, &str> = BTreeMap::new();
    for ((name, rules), number) in by_name.into_iter().zip(1..) {
        let hash = hash(name);
        if let Some(first) = hashes.insert(hash, name) {
            return Err(TableLimit::NameHash { first: first.to_owned(), second: name.to_owned() });
        }
        let at = text(name, layout)?;
        keys.insert(u64::from(TG_NAME_HASH) << 48 | hash, u64::from(at) | u64::from(number) << 32);
        for ((target, class), rules) in rules {
            if rules.len() > TG_NAMED as usize {
                let target = policy.types[target as usize].name.clone();
                return Err(TableLimit::NameSources { name: name.to_owned(), target, has: rules.len() });
            }
            let mut named = Vec::new();
            for rule in &rules {
                let types_at = layout.bit_map(&rule.sources, policy.types.len())?;
                named.push(tg_named { types_at, type_: rule.result });
            }
            let at = layout.push("file names", &named)?;
            keys.insert(key(TG_NAMED_AT, number, target, class), u64::from(at) | (rules.len() as u64) << 32);
        }
    }
    Ok(())
}

/// Stores the length and the bytes of a name. Returns their offset.
fn text(name: &str, layout: &mut Layout) -> Result<u32, TableLimit> {
    let too_long = || TableLimit::NameLength { name: name.to_owned(), has: name.len() };
    let length = u8::try_from(name.len()).ok().filter(|length| u32::from(*length) <= TG_NAME).ok_or_else(too_long)?;
    let mut bytes = vec![length];
    bytes.extend_from_slice(name.as_bytes());
    layout.push("file names", &bytes)
}

/// 48 bits of the 64-bit FNV-1a hash (`tg_name_number`).
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
        >> 16
}
