//! The subject: does one act after the other until one fails. It reports the result in its process name, because no policy
//! can prevent that; the runner reads the name after the process has ended.

use std::process;

use crate::{
    Engine,
    kernel::{Argument::Number, Argument::Text, call, text},
};

/// The process name after all acts were done.
pub(crate) const DONE: &str = "@done";
/// The process name after all acts were done, of a process that stays.
pub(crate) const READY: &str = "@ready";
/// The process name of a parent whose child continues in its place.
pub(crate) const CHILD: &str = "@child";

/// The first word of a subject's arguments.
const MARK: &str = "--subject";

/// The state between two acts.
#[derive(Debug)]
pub(crate) struct Actor {
    /// The enforcer that decides.
    pub(crate) engine: Engine,
    /// How many acts were done.
    pub(crate) done: usize,
    /// The descriptor of acts without a path; or the number of a System V object or of a key.
    pub(crate) fd: i32,
    /// Another descriptor, such as the listening socket while the first one connects.
    pub(crate) kept: i32,
    /// The mapping of acts on memory.
    pub(crate) mapping: usize,
    /// Whether the process stays as an object when all acts are done.
    pub(crate) stays: bool,
    /// Whether it continues after a failure.
    pub(crate) undeterred: bool,
    /// The remaining acts.
    pub(crate) rest: Vec<String>,
}

impl Actor {
    /// A subject at its start.
    pub(crate) fn new(engine: Engine, acts: &[String]) -> Self {
        Self { engine, done: 0, fd: -1, kept: -1, mapping: 0, stays: false, undeterred: false, rest: acts.to_vec() }
    }

    /// A subject that was executed; the interpreter of a script finds its words after the script's.
    pub(crate) fn from_words(words: &[String]) -> Option<Self> {
        let at = words.iter().position(|word| word == MARK)?;
        let [engine, done, fd, kept, stays, rest @ ..] = words.get(at + 1..)? else { return None };
        Some(Self {
            engine: Engine::from_name(engine)?,
            done: done.parse().ok()?,
            fd: fd.parse().ok()?,
            kept: kept.parse().ok()?,
            mapping: 0,
            stays: stays == "stays",
            undeterred: stays == "undeterred",
            rest: rest.to_vec(),
        })
    }

    /// The arguments with which another program continues.
    pub(crate) fn words(&self, program: &str) -> Vec<String> {
        let stays = match (self.stays, self.undeterred) {
            (true, _) => "stays",
            (false, true) => "undeterred",
            (false, false) => "ends",
        };
        let [done, fd, kept] = [self.done.to_string(), self.fd.to_string(), self.kept.to_string()];
        let own = [program, MARK, self.engine.name(), &done, &fd, &kept, stays];
        own.iter().map(|word| (*word).to_owned()).chain(self.rest.iter().cloned()).collect()
    }
}

/// Ends the process with a name.
pub(crate) fn end(name: &str, status: i32) -> ! {
    rename(name);
    process::exit(status)
}

pub(crate) fn rename(name: &str) {
    // It is the caller's own name, which needs no permission.
    let _ = call(libc::SYS_prctl, &mut [Number(libc::PR_SET_NAME.into()), Text(&text(name))]);
}
