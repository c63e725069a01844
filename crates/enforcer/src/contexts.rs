//! Security contexts and their SIDs, as the daemon knows them.

use std::collections::{BTreeMap, HashMap};

use tollgate_abi::enforcer::{
    SECINITSID_UNLABELED, TG_FIRST_SID, TG_SID_CANARY, TG_SID_MACHINE, TG_SID_SURVIVAL, TG_SIDS,
};
use tollgate_policy::{
    context,
    model::{Context, Policy},
};

/// A security identifier: what the machine calls a context. It outlives generations.
pub type Sid = u32;

/// A SID without what else an object's says of it: whether enforcement lives by the object.
#[must_use]
pub fn bare(sid: Sid) -> Sid {
    sid & !TG_SID_SURVIVAL
}

/// The SID after `last`. None is 3 modulo 4: that way of the access cache is everybody's (`tg_way`).
#[must_use]
pub fn next(last: Sid) -> Sid {
    let next = (last + 1).max(TG_FIRST_SID);
    next + u32::from(next % 4 == 3)
}

/// Longer texts are no contexts that anybody has written: the kernel prints none of more than some hundred categories so.
const LONGEST_DEFERRED: usize = 1024;

/// Whether a text that is no context of the policy in force may be one of another: attributes are anybody's who makes an
/// image, and a text with a line's end would be two of the folder's lines.
#[must_use]
pub fn may_be_one(text: &str) -> bool {
    text.len() <= LONGEST_DEFERRED
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && matches!(text.splitn(4, ':').filter(|part| !part.is_empty()).count(), 3 | 4)
}

/// No SID is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {TG_SIDS} different security contexts were in use since the machine started: restart it")]
pub struct Full;

/// Which context each SID stands for, as text: what a context is in one policy's numbers it is not in another's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contexts {
    texts: BTreeMap<Sid, String>,
    sids: HashMap<String, Sid>,
    /// Those that were inserted since [`Contexts::take_new_lines`].
    new: Vec<Sid>,
    /// Up to which SID [`Contexts::unknown`] has looked, and what was not known below.
    seen: Sid,
    missing: Vec<Sid>,
}

impl Contexts {
    /// The contexts that every machine has: the policy's initial SIDs, and `machine`, that of tasks without a label.
    #[must_use]
    pub fn initial(policy: &Policy, machine: &str) -> Self {
        let mut contexts = Self::default();
        contexts.insert(TG_SID_MACHINE, machine.to_owned());
        // As an object: it is the daemon's.
        contexts.insert(TG_SID_CANARY, machine.to_owned());
        for initial in policy.initial_sids.iter().filter(|initial| initial.sid < TG_SID_MACHINE) {
            contexts.insert(initial.sid, context::text(policy, &initial.context));
        }
        contexts
    }

    /// The same under another policy: its initial SIDs are in force, as SELinux has it (policydb_load_isids); what others
    /// stand for stays.
    #[must_use]
    pub fn renewed(&self, policy: &Policy, machine: &str) -> Self {
        let mut contexts = Self::initial(policy, machine);
        for (sid, text) in self.iter().filter(|(sid, _)| *sid >= TG_FIRST_SID) {
            contexts.insert(sid, text.to_owned());
        }
        contexts
    }

    /// What [`Contexts::lines`] wrote; lines that are none are left out, such as one that was not written whole.
    #[must_use]
    pub fn from_lines(text: &str) -> Self {
        let mut contexts = Self::default();
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        for (sid, text) in whole.filter_map(|line| line.split_once(' ')) {
            if let Ok(sid) = sid.parse() {
                contexts.insert(sid, text.to_owned());
            }
        }
        contexts
    }

    /// One `SID CONTEXT` a line.
    #[must_use]
    pub fn lines(&self) -> String {
        self.iter().map(|(sid, text)| format!("{sid} {text}\n")).collect()
    }

    /// The lines of contexts that were noted since this was last asked.
    pub fn take_new_lines(&mut self) -> String {
        let new = std::mem::take(&mut self.new);
        new.into_iter().map(|sid| format!("{sid} {}\n", self.text(sid))).collect()
    }

    /// The SIDs up to `last` of which it is not known what they stand for. Each is looked for until it is known; what is
    /// known is not looked for again.
    pub fn unknown(&mut self, last: Sid) -> Vec<Sid> {
        let mut missing = std::mem::take(&mut self.missing);
        missing.extend(self.seen.max(TG_FIRST_SID - 1) + 1..=last);
        // Those that nobody is given never will be known.
        missing.retain(|sid| sid % 4 != 3 && !self.has(*sid));
        self.seen = self.seen.max(last);
        self.missing.clone_from(&missing);
        missing
    }

    /// Notes what a SID stands for.
    pub fn insert(&mut self, sid: Sid, text: String) {
        self.new.push(sid);
        self.sids.entry(text.clone()).or_insert(sid);
        self.texts.insert(sid, text);
    }

    /// The SID of a context, if it has one.
    #[must_use]
    pub fn sid(&self, text: &str) -> Option<Sid> {
        self.sids.get(text).copied()
    }

    /// What a SID stands for; what nobody knows is unlabelled.
    #[must_use]
    pub fn text(&self, sid: Sid) -> &str {
        let unlabelled = || self.texts.get(&SECINITSID_UNLABELED).map_or("", String::as_str);
        self.texts.get(&bare(sid)).map_or_else(unlabelled, String::as_str)
    }

    /// Whether it is known what a SID stands for.
    #[must_use]
    pub fn has(&self, sid: Sid) -> bool {
        self.texts.contains_key(&bare(sid))
    }

    /// All of them, by SID.
    pub fn iter(&self) -> impl Iterator<Item = (Sid, &str)> {
        self.texts.iter().map(|(sid, text)| (*sid, text.as_str()))
    }
}

/// The context of tasks that have no label: `unconfined_t` with the widest user and role that may have it, where the
/// policy has it, else that of the kernel.
#[must_use]
pub fn machine(policy: &Policy) -> Option<String> {
    let kernel = || policy.initial_sids.iter().find(|initial| initial.sid == 1);
    let type_ = (1u32..).zip(policy.types.iter().skip(1)).find(|(_, type_)| type_.name == "unconfined_t");
    let Some((type_, _)) = type_ else { return kernel().map(|initial| context::text(policy, &initial.context)) };
    let mut candidates = Vec::new();
    for (user, record) in (1u32..).zip(policy.users.iter().skip(1)) {
        for role in record.roles.iter().filter(|role| *role != tollgate_abi::tables::TG_OBJECT_R) {
            if policy.roles.get(role as usize).is_some_and(|record| record.types.has(type_)) {
                let range = record.range.clone();
                // Debian's is unconfined_u:unconfined_r; elsewhere the system's own.
                let rank = ["unconfined_u", "system_u"].iter().position(|name| *name == record.name).unwrap_or(2);
                candidates.push((rank, Context { user, role, type_, range }));
            }
        }
    }
    candidates.sort_by_key(|(rank, _)| *rank);
    let chosen = candidates.into_iter().next().map(|(_, context)| context);
    chosen.or_else(|| kernel().map(|initial| initial.context.clone())).map(|chosen| context::text(policy, &chosen))
}

/// A context's type.
#[must_use]
pub fn domain(context: &str) -> &str {
    context.split(':').nth(2).unwrap_or(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_for_a_context_until_it_is_known_and_not_again() {
        let mut contexts = Contexts::default();
        contexts.insert(33, "a:b:c".to_owned());
        assert_eq!(contexts.unknown(36), [32, 34, 36]);
        contexts.insert(34, "d:e:f".to_owned());
        assert_eq!(contexts.unknown(37), [32, 36, 37]);
        assert_eq!(contexts.take_new_lines(), "33 a:b:c\n34 d:e:f\n");
        assert_eq!(contexts.take_new_lines(), "");
    }

    #[test]
    fn remembers_nothing_that_is_no_context_of_any_policy() {
        for text in ["u:object_r:gone_t:s0", "u:object_r:gone_t", "u:r:t:s0-s15:c0.c1023"] {
            assert!(may_be_one(text), "{text}");
        }
        let long = format!("u:r:t:s0:{}", "c1,".repeat(LONGEST_DEFERRED / 3));
        for text in ["", "gone_t", "::", "u:r:", "u:r:t:s0\n3 u:r:mine_t:s0", "u:r:t s0", "u:r:t\u{e9}:s0", &long] {
            assert!(!may_be_one(text), "{text}");
        }
    }

    #[test]
    fn reads_no_line_that_was_not_written_whole() {
        let contexts = Contexts::from_lines("33 a:b:c\n34 d:e");
        assert!(contexts.has(33) && !contexts.has(34));
    }

    #[test]
    fn gives_no_sid_the_way_that_is_everybodys() {
        let mut sid = 0;
        for _ in 0..1000 {
            let following = next(sid);
            assert!(following > sid && following >= TG_FIRST_SID && following % 4 != 3);
            sid = following;
        }
    }
}
