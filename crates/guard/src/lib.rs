//! The guard's database: which privileged program may make which critical call with which arguments (docs/adr/0023).
//!
//! A [`Database`] has programs, known by the digests of their contents, and rules. Its text has one [`Item`] per line;
//! what prints it ([`Display`](std::fmt::Display)) prints what [`Database::parse`] reads. Its file is the binary form
//! ([`Database::to_bytes`]). [`changes`] says what is new in one database compared with another, and
//! [`Database::merge`] joins them.
//!
//! [`Record`] is a call that no rule allows, as the log has it; [`learn`] makes items of records.
//!
//! [`Table`] is what the kernel looks up in, with the evaluator that BPF programs run (`guard_decide.h`).
//! [`Database::decide`] says the same by the rules alone; tests hold the two against one another.
//!
//! ```
//! use tollgate_guard::{Asked, Class, Database, Digest, Question, Secret, Table, Until};
//!
//! let [su, shell] = [b"su", b"sh"].map(|content| Digest::of(content));
//! let text = format!("program /bin/sh learn {shell}\nprogram /bin/su enforce {su}\nallow /bin/su exec /bin/sh free\n");
//! let database = Database::parse(&text)?;
//! let question = Question { class: Class::Setuid, caller: Some(su), history: Until::NEVER, asked: Asked::Exec(Some(shell)) };
//! let answer = Table::of(&database, Secret([1, 2])).decide(&question);
//! assert!(answer.allowed && answer.free);
//! assert_eq!(answer, database.decide(&question));
//! # Ok::<(), tollgate_guard::TextError>(())
//! ```

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[macro_use]
mod named;

mod binary;
mod call;
mod changes;
mod database;
mod decide;
mod digest;
mod hash;
mod item;
mod learn;
mod name;
mod names;
mod record;
mod set;
mod table;
mod text;

pub use tollgate_abi::guard::tg_guard_event as Event;

pub use self::{
    binary::{BinaryError, MAX_SIZE},
    call::{Act, Bit, FileCall, Id, Place, PlainCall},
    changes::{Change, changes},
    database::{Database, ItemError},
    decide::{Answer, Asked, Question},
    digest::Digest,
    hash::Secret,
    item::{Class, Item, Mode, Program, Rule, Until, Word},
    learn::{Learnt, learn},
    name::Name,
    record::{Record, Verdict, registered},
    set::{Machine, Set},
    table::Table,
    text::TextError,
};
