//! A built policy, which may be anyone's file: it answers every question, or is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_abi::tables::{TG_ASK_CHANGE, TG_ASK_MEMBER, TG_ASK_TRANSITION, TG_LEVELS, tg_context, tg_question};
use tollgate_policy::{
    built::Built,
    decide::{Levels, Tables, name},
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(built) = Built::from_bytes(bytes) else { return };
    let again = Built::from_bytes(&built.to_bytes()).expect("read what was written");
    assert_eq!((again.policy, again.tables), (built.policy, built.tables.clone()));
    let tables = Tables::new(&built.tables).expect("tables that were taken");
    let mut levels = Levels::new(&built.levels).expect("levels that were taken");
    for number in [0, 1, 2, 3, 5, 11, u32::MAX] {
        for ask in [TG_ASK_TRANSITION, TG_ASK_MEMBER, TG_ASK_CHANGE] {
            question(&tables, &mut levels, number, ask);
        }
    }
});

/// Identifiers that are there, and some that are not.
fn question(tables: &Tables, levels: &mut Levels, number: u32, ask: u32) {
    let (user, role) = (number as u16, number as u16);
    let source = tg_context { user, role, type_: number, low: number % TG_LEVELS, high: number };
    let target = tg_context { type_: number ^ 1, low: 0, high: 0, ..source };
    let question = tg_question { source, target, task: source, class: number, ask };
    if let Some(decision) = tables.decide(levels, &question) {
        let _ = tables.extend(&decision, 0x12);
    }
    tables.validate(levels, &question);
    tables.valid(levels, &source);
    tables.label(levels, &question, None);
    tables.label(levels, &question, name("a name").as_ref());
}
