//! The table in the kernel, as a map of the host, and the evaluator of the BPF programs (`guard_decide.h`).

use std::{collections::HashMap, ffi::c_void, ptr};

use tollgate_abi::guard::{
    TG_GUARD_CHMOD, TG_GUARD_DEFAULT, TG_GUARD_EXEC, TG_GUARD_FREE, TG_GUARD_PROGRAM, TG_GUARD_RULE, TG_GUARD_SETUID,
    TG_GUARD_WORDS, tg_guard_answer, tg_guard_entry, tg_guard_key, tg_guard_question,
};

use crate::{
    database::Database,
    decide::{Answer, Asked, Question},
    digest::Digest,
    item::{Act, Class, Mode},
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
            answer: *mut tg_guard_answer,
        );
    }
}

/// What the kernel looks up in.
#[derive(Debug, Clone)]
pub struct Table {
    map: Map,
}

impl Table {
    /// The table of a database.
    #[must_use]
    pub fn of(database: &Database) -> Self {
        let mut map = Map::new();
        for (class, _) in Class::ALL {
            let entry = tg_guard_entry { mode: database.default_mode(class) as u32, ..tg_guard_entry::default() };
            map.insert((TG_GUARD_DEFAULT, words(&[class as u32])), entry);
        }
        let numbers: HashMap<&Name, u32> = database.programs().map(|(name, _)| name).zip(1..).collect();
        for (name, program) in database.programs() {
            let entry = tg_guard_entry { number: numbers[name], mode: program.mode as u32, flags: 0 };
            map.extend(program.digests.iter().map(|digest| ((TG_GUARD_PROGRAM, digest.words()), entry)));
        }
        for (caller, number) in &numbers {
            for act in database.acts(caller) {
                let (value, flags) = value(act, &numbers);
                let entry = tg_guard_entry { flags, ..tg_guard_entry::default() };
                map.insert((TG_GUARD_RULE, words(&[*number, act.call(), value])), entry);
            }
        }
        Self { map }
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
            caller: digest(question.caller),
            ..tg_guard_question::default()
        };
        match question.asked {
            Asked::Exec(target) => (raw.call, raw.target) = (TG_GUARD_EXEC, digest(target)),
            Asked::Setuid(id) => (raw.call, raw.value) = (TG_GUARD_SETUID, id),
            Asked::Chmod(bits) => (raw.call, raw.value) = (TG_GUARD_CHMOD, bits),
        }
        let answer = self.ask(&raw);
        Answer {
            mode: Mode::of(answer.mode).unwrap_or(Mode::Enforce),
            caller_known: answer.caller != 0,
            target_known: answer.target != 0,
            allowed: answer.allowed != 0,
            free: answer.flags & TG_GUARD_FREE != 0,
        }
    }

    fn ask(&self, question: &tg_guard_question) -> tg_guard_answer {
        let map = ffi::Map { table: ptr::from_ref(&self.map).cast(), find };
        let mut answer = tg_guard_answer::default();
        // SAFETY: all three live during the call, and the evaluator keeps none of them. It calls `find` with `table`.
        unsafe { ffi::tollgate_guard_decide(&raw const map, question, &raw mut answer) };
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

/// The argument of a rule, and its flags.
fn value(act: &Act, numbers: &HashMap<&Name, u32>) -> (u32, u32) {
    match act {
        Act::Exec { program, free } => (numbers[program], if *free { TG_GUARD_FREE } else { 0 }),
        Act::Setuid(id) => (id.number(), 0),
        Act::Chmod(bit) => (*bit as u32, 0),
    }
}

fn words(first: &[u32]) -> Words {
    let mut words = Words::default();
    words[..first.len()].copy_from_slice(first);
    words
}
