//! The table in the kernel, as a map of the host, and the evaluator of the BPF programs (`guard_decide.h`).

use std::{collections::HashMap, ffi::c_void, ptr};

use tollgate_abi::guard::{
    TG_GUARD_ANY, TG_GUARD_CHMOD, TG_GUARD_DEFAULT, TG_GUARD_DEPTH, TG_GUARD_EXEC, TG_GUARD_FREE, TG_GUARD_HAS,
    TG_GUARD_HAS_ANY, TG_GUARD_HAS_BELOW, TG_GUARD_HAS_PATH, TG_GUARD_HAS_STEM, TG_GUARD_PATH_BELOW, TG_GUARD_PATH_IS,
    TG_GUARD_PATH_STEM, TG_GUARD_PROGRAM, TG_GUARD_RULE, TG_GUARD_SETGID, TG_GUARD_SETUID, TG_GUARD_UNTIL,
    TG_GUARD_WORDS, tg_guard_answer, tg_guard_entry, tg_guard_key, tg_guard_question,
};

use crate::{
    call::{Act, FileCall, Place},
    database::Database,
    decide::{Answer, Asked, Question},
    digest::Digest,
    hash::{self, Secret},
    item::{Class, Mode},
    name::Name,
};

type Words = [u32; TG_GUARD_WORDS as usize];
type Map = HashMap<(u32, Words), tg_guard_entry>;

mod ffi {
    use super::{c_void, tg_guard_answer, tg_guard_entry, tg_guard_key, tg_guard_question};

    /// `struct tollgate_guard_map` of c/guard.c.
    #[repr(C)]
    pub(super) struct Map {
        pub(super) table: *const c_void,
        pub(super) find: unsafe extern "C" fn(*const c_void, *const tg_guard_key) -> *const tg_guard_entry,
    }

    unsafe extern "C" {
        pub(super) fn tollgate_guard_decide(
            map: *const Map,
            question: *const tg_guard_question,
            target: *const u32,
            answer: *mut tg_guard_answer,
        );
    }
}

/// What the kernel looks up in.
#[derive(Debug, Clone)]
pub struct Table {
    map: Map,
    secret: Secret,
}

impl Table {
    /// The table of a database, with this key of the hashes of paths.
    #[must_use]
    pub fn of(database: &Database, secret: Secret) -> Self {
        let mut map = Map::new();
        for (class, _) in Class::ALL {
            let entry = tg_guard_entry { mode: database.default_mode(class) as u32, ..tg_guard_entry::default() };
            map.insert((TG_GUARD_DEFAULT, words(&[class as u32])), entry);
        }
        let numbers: HashMap<&Name, u32> = database.programs().map(|(name, _)| name).zip(1..).collect();
        for (name, program) in database.programs() {
            let flags = database.acts(name).fold(0, |has, (act, _)| has | rules(act));
            let entry = tg_guard_entry { number: numbers[name], mode: program.mode as u32, flags };
            map.extend(program.digests.iter().map(|digest| ((TG_GUARD_PROGRAM, digest.words()), entry)));
        }
        for (caller, number) in &numbers {
            for (act, until) in database.acts(caller) {
                let (kind, rest, free) = key(act, &numbers, secret);
                let flags = free | until.bits() << TG_GUARD_UNTIL;
                let entry = tg_guard_entry { flags, ..tg_guard_entry::default() };
                map.insert((kind, words(&[*number, act.call(), rest as u32, (rest >> 32) as u32])), entry);
            }
        }
        Self { map, secret }
    }

    /// Its entries, in no order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (tg_guard_key, tg_guard_entry)> {
        self.map.iter().map(|((kind, words), entry)| (tg_guard_key { kind: *kind, words: *words }, *entry))
    }

    /// Answers a question as the kernel does.
    #[must_use]
    pub fn decide(&self, question: &Question) -> Answer {
        let digest = |digest: Option<Digest>| digest.map_or([0; TG_GUARD_WORDS as usize], |digest| digest.words());
        let mut raw = tg_guard_question {
            class: question.class as u32,
            history: question.history.bits(),
            caller: digest(question.caller),
            ..tg_guard_question::default()
        };
        let mut target = digest(None);
        match &question.asked {
            Asked::Exec(content) => (raw.call, target) = (TG_GUARD_EXEC, digest(*content)),
            Asked::Setuid(id) => (raw.call, raw.value) = (TG_GUARD_SETUID, *id),
            Asked::Setgid(id) => (raw.call, raw.value) = (TG_GUARD_SETGID, *id),
            Asked::Chmod(bits) => (raw.call, raw.value) = (TG_GUARD_CHMOD, *bits),
            Asked::File(call, path) => {
                (raw.call, raw.path, raw.stem) = (*call as u32, self.hashes(path), self.stem(path));
                raw.first = raw.path.iter().take_while(|hash| **hash == 0).count() as u64;
            }
            Asked::Plain(call) => raw.call = *call as u32,
        }
        let answer = self.ask(&raw, target);
        Answer {
            mode: Mode::of(answer.mode).unwrap_or(Mode::Enforce),
            caller_known: answer.caller != 0,
            target_known: answer.target != 0,
            allowed: answer.allowed != 0,
            free: answer.flags & TG_GUARD_FREE != 0,
        }
    }

    /// The hashes of a path as the kernel has them; zeros: it is too long.
    fn hashes(&self, path: &Name) -> [u64; TG_GUARD_DEPTH as usize] {
        let (mut hashes, found) = ([0; TG_GUARD_DEPTH as usize], self.secret.path(path.as_bytes()));
        if let Some(first) = hashes.len().checked_sub(found.len()) {
            hashes[first..].copy_from_slice(&found);
        }
        hashes
    }

    /// The hash of a path's stem as the kernel has it.
    fn stem(&self, path: &Name) -> u64 {
        let is_known = self.hashes(path)[TG_GUARD_DEPTH as usize - 1] != 0;
        let stem = hash::stem(path.as_bytes()).filter(|_| is_known);
        stem.and_then(|stem| self.secret.path(stem).last().copied()).unwrap_or_default()
    }

    fn ask(&self, question: &tg_guard_question, target: Words) -> tg_guard_answer {
        let map = ffi::Map { table: ptr::from_ref(&self.map).cast(), find };
        let mut answer = tg_guard_answer::default();
        // SAFETY: all four live during the call, and the evaluator keeps none of them. It calls `find` with `table`.
        unsafe { ffi::tollgate_guard_decide(&raw const map, question, target.as_ptr(), &raw mut answer) };
        answer
    }
}

/// TG_GUARD_FIND for the evaluator.
///
/// # Safety
/// `table` is a [`Map`], and `key` a key that the evaluator has made.
unsafe extern "C" fn find(table: *const c_void, key: *const tg_guard_key) -> *const tg_guard_entry {
    // SAFETY: see above; the evaluator only reads the entry, while the map is borrowed.
    let (map, key) = unsafe { (&*table.cast::<Map>(), &*key) };
    map.get(&(key.kind, key.words)).map_or(ptr::null(), ptr::from_ref)
}

/// The kind of a rule's key, its last word or two, and its flags.
fn key(act: &Act, numbers: &HashMap<&Name, u32>, secret: Secret) -> (u32, u64, u32) {
    let hash = |path: &Name| secret.rule(path.as_bytes());
    match act {
        Act::Exec { program, free } => (TG_GUARD_RULE, numbers[program].into(), if *free { TG_GUARD_FREE } else { 0 }),
        Act::Setuid(id) | Act::Setgid(id) => (TG_GUARD_RULE, id.number().into(), 0),
        Act::Chmod(bit) => (TG_GUARD_RULE, (*bit as u32).into(), 0),
        Act::File(_, Place::Is(path)) => (TG_GUARD_PATH_IS, hash(path), 0),
        Act::File(_, Place::Stem(path)) => (TG_GUARD_PATH_STEM, hash(path), 0),
        Act::File(_, Place::Below(path)) => (TG_GUARD_PATH_BELOW, hash(path), 0),
        Act::File(_, Place::Any) | Act::Plain(_) => (TG_GUARD_RULE, TG_GUARD_ANY.into(), 0),
    }
}

/// What the entry of a caller says of a rule that it has.
fn rules(act: &Act) -> u32 {
    let Act::File(call, place) = act else { return 0 };
    let kind = match place {
        Place::Any => TG_GUARD_HAS_ANY,
        Place::Is(_) => TG_GUARD_HAS_PATH,
        Place::Below(_) => TG_GUARD_HAS_BELOW,
        Place::Stem(_) => TG_GUARD_HAS_STEM,
    };
    kind << (TG_GUARD_HAS * (*call as u32 - FileCall::Write as u32))
}

fn words(first: &[u32]) -> Words {
    let mut words = Words::default();
    words[..first.len()].copy_from_slice(first);
    words
}
