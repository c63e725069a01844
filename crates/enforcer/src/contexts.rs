//! Security contexts and their SIDs, as the daemon knows them.

use std::collections::{BTreeMap, HashMap};

use tollgate_abi::enforcer::{
    SECINITSID_UNLABELED, TG_FIRST_SID, TG_SID_CANARY, TG_SID_MACHINE, TG_SID_SURVIVAL, TG_SIDS, TG_TEXT_WORDS, tg_text,
};
use tollgate_policy::{
    context,
    model::{Context, Policy},
};
use zerocopy::IntoBytes;

/// A security identifier: the machine's number for a context. It stays the same in all generations.
pub type Sid = u32;

/// The SID alone, without the flag in an object's SID that says that enforcement depends on the object.
#[must_use]
pub fn bare(sid: Sid) -> Sid {
    sid & !TG_SID_SURVIVAL
}

/// The SID after `last`. No SID is 3 modulo 4: that way of the access cache belongs to all subjects (`tg_way`).
#[must_use]
pub fn next(last: Sid) -> Sid {
    let next = (last + 1).max(TG_FIRST_SID);
    next + u32::from(next % 4 == 3)
}

/// The maximum length of a context that the policy does not have, in bytes.
/// Nobody has written a longer one: the kernel prints such a long text only for contexts with some hundred categories.
const MAX_DEFERRED_LENGTH: usize = 1024;

/// Where the range of a context begins, with its colon; its length if it has no range.
fn range_at(text: &str) -> usize {
    text.match_indices(':').nth(2).map_or(text.len(), |(place, _)| place)
}

/// A context with the range of another.
#[must_use]
pub(crate) fn with_range(text: &str, other: &str) -> String {
    format!("{}{}", &text[..range_at(text)], &other[range_at(other)..])
}

/// A context as the programs have it, with the length 0 if it is longer than there is room.
pub(crate) fn raw(text: &str) -> tg_text {
    let mut raw = tg_text { range: range_at(text) as u32, ..tg_text::default() };
    let room = raw.words.as_mut_bytes();
    if let Some(place) = room.get_mut(..text.len()).filter(|_| text.len() < TG_TEXT_WORDS as usize * size_of::<u64>()) {
        place.copy_from_slice(text.as_bytes());
        raw.length = text.len() as u32 + 1;
    }
    raw
}

/// Whether a text that is not a context of the policy in force may be one of another policy. Whoever makes an image
/// chooses its attributes, and a text with a newline would be two lines in the daemon's directory.
#[must_use]
pub fn may_be_one(text: &str) -> bool {
    text.len() <= MAX_DEFERRED_LENGTH
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && matches!(text.splitn(4, ':').filter(|part| !part.is_empty()).count(), 3 | 4)
}

/// All SIDs have been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {TG_SIDS} different security contexts were in use since the machine started: restart it")]
pub struct Full;

/// The context of each SID, as text, because each policy has its own numbers for users, roles and types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contexts {
    texts: BTreeMap<Sid, String>,
    sids: HashMap<String, Sid>,
    /// SIDs that were inserted since the last call of [`Contexts::take_new_lines`].
    new: Vec<Sid>,
    /// The last SID that [`Contexts::unknown`] has looked at, and those below it that were not known.
    seen: Sid,
    missing: Vec<Sid>,
}

impl Contexts {
    /// The contexts that every machine has: the policy's initial SIDs, and `machine`, the context of tasks without a
    /// label.
    #[must_use]
    pub fn initial(policy: &Policy, machine: &str) -> Self {
        let mut contexts = Self::default();
        contexts.insert(TG_SID_MACHINE, machine.to_owned());
        // As an object, the canary counts as the daemon.
        contexts.insert(TG_SID_CANARY, machine.to_owned());
        for initial in policy.initial_sids.iter().filter(|initial| initial.sid < TG_SID_MACHINE) {
            contexts.insert(initial.sid, context::text(policy, &initial.context));
        }
        contexts
    }

    /// The same SIDs under another policy. Its initial SIDs are in force, as in SELinux (policydb_load_isids); all
    /// other SIDs keep their contexts.
    #[must_use]
    pub fn renewed(&self, policy: &Policy, machine: &str) -> Self {
        let mut contexts = Self::initial(policy, machine);
        for (sid, text) in self.iter().filter(|(sid, _)| *sid >= TG_FIRST_SID) {
            contexts.insert(sid, text.to_owned());
        }
        contexts
    }

    /// Reads what [`Contexts::lines`] wrote. Lines of another form are left out, such as one that was not completely
    /// written.
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

    /// All contexts, one line `SID CONTEXT` each.
    #[must_use]
    pub fn lines(&self) -> String {
        self.iter().map(|(sid, text)| format!("{sid} {text}\n")).collect()
    }

    /// The lines of contexts that were added since the last call.
    pub fn take_new_lines(&mut self) -> String {
        let new = std::mem::take(&mut self.new);
        new.into_iter().map(|sid| format!("{sid} {}\n", self.text(sid))).collect()
    }

    /// The SIDs up to `last` whose contexts are not known. A SID is looked for again until its context is known, and no
    /// longer.
    pub fn unknown(&mut self, last: Sid) -> Vec<Sid> {
        let mut missing = std::mem::take(&mut self.missing);
        missing.extend(self.seen.max(TG_FIRST_SID - 1) + 1..=last);
        // SIDs that are never given will never be known.
        missing.retain(|sid| sid % 4 != 3 && !self.has(*sid));
        self.seen = self.seen.max(last);
        self.missing.clone_from(&missing);
        missing
    }

    /// Records the context of a SID.
    pub fn insert(&mut self, sid: Sid, text: String) {
        self.new.push(sid);
        self.sids.entry(text.clone()).or_insert(sid);
        self.texts.insert(sid, text);
    }

    /// The SID of a context; `None`: it has none.
    #[must_use]
    pub fn sid(&self, text: &str) -> Option<Sid> {
        self.sids.get(text).copied()
    }

    /// The context of a SID; the context of unlabelled objects if it is not known.
    #[must_use]
    pub fn text(&self, sid: Sid) -> &str {
        let unlabelled = || self.texts.get(&SECINITSID_UNLABELED).map_or("", String::as_str);
        self.texts.get(&bare(sid)).map_or_else(unlabelled, String::as_str)
    }

    /// Whether the context of a SID is known.
    #[must_use]
    pub fn has(&self, sid: Sid) -> bool {
        self.texts.contains_key(&bare(sid))
    }

    /// All SIDs with their contexts, by SID.
    pub fn iter(&self) -> impl Iterator<Item = (Sid, &str)> {
        self.texts.iter().map(|(sid, text)| (*sid, text.as_str()))
    }
}

/// The context of tasks without a label. It is `unconfined_t` with the user and role that may have the most, if the
/// policy has that type; else the context of the kernel.
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
                // On Debian they are unconfined_u:unconfined_r, elsewhere those of the system.
                let rank = ["unconfined_u", "system_u"].iter().position(|name| *name == record.name).unwrap_or(2);
                candidates.push((rank, Context { user, role, type_, range }));
            }
        }
    }
    candidates.sort_by_key(|(rank, _)| *rank);
    let chosen = candidates.into_iter().next().map(|(_, context)| context);
    chosen.or_else(|| kernel().map(|initial| initial.context.clone())).map(|chosen| context::text(policy, &chosen))
}

/// The type of a context.
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
        let long = format!("u:r:t:s0:{}", "c1,".repeat(MAX_DEFERRED_LENGTH / 3));
        for text in ["", "gone_t", "::", "u:r:", "u:r:t:s0\n3 u:r:mine_t:s0", "u:r:t s0", "u:r:t\u{e9}:s0", &long] {
            assert!(!may_be_one(text), "{text}");
        }
    }

    #[test]
    fn tells_programs_no_part_of_a_context() {
        let told = raw("u:r:t");
        assert_eq!((told.length, told.range, &told.words.as_bytes()[..7]), (6, 5, b"u:r:t\0\0".as_slice()));
        assert_eq!(raw("u:r:t:s0:c1").range, 5);
        let room = TG_TEXT_WORDS as usize * 8;
        let longest = "c".repeat(room - 1);
        assert_eq!(raw(&longest).length as usize, room);
        assert_eq!(raw(&longest).words.as_bytes().last(), Some(&0));
        let longer = raw(&"c".repeat(room));
        assert_eq!((longer.length, longer.words.as_bytes()), (0, [0; 1024].as_slice()));
    }

    #[test]
    fn gives_a_context_the_range_of_another() {
        assert_eq!(with_range("u:r:server:s0-s3", "v:r:client:s1:c1,c2"), "u:r:server:s1:c1,c2");
        assert_eq!(with_range("u:r:server", "v:r:client"), "u:r:server");
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
