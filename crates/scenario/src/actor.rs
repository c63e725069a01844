//! The subject: does one act after the other until one fails, and leaves what came of it where no policy can stand in
//! the way: in its name, which the runner reads when the process has ended.

use std::process;

use crate::{
    Engine,
    kernel::{Argument::Number, Argument::Text, call, text},
};

/// What a process is called that did all its acts.
pub(crate) const DONE: &str = "@done";
/// What a process is called that did them and stays.
pub(crate) const READY: &str = "@ready";
/// What a process is called whose child goes on in its place.
pub(crate) const CHILD: &str = "@child";

/// Before the words that a subject is started with.
const MARK: &str = "--subject";

/// Where an act left off: what the next one goes on with.
#[derive(Debug)]
pub(crate) struct Actor {
    /// Who enforces.
    pub(crate) engine: Engine,
    /// How many acts were done.
    pub(crate) done: usize,
    /// What acts without a path mean: a descriptor, or the number of a System V object or of a key.
    pub(crate) fd: i32,
    /// Another descriptor, such as the socket that listens while the first connects.
    pub(crate) kept: i32,
    /// The mapping that acts on memory mean.
    pub(crate) mapping: usize,
    /// Whether the process stays when all is done, as an object.
    pub(crate) stays: bool,
    /// Whether it goes on whatever fails.
    pub(crate) undeterred: bool,
    /// The acts to come.
    pub(crate) rest: Vec<String>,
}

impl Actor {
    /// A subject at its beginning.
    pub(crate) fn new(engine: Engine, acts: &[String]) -> Self {
        Self { engine, done: 0, fd: -1, kept: -1, mapping: 0, stays: false, undeterred: false, rest: acts.to_vec() }
    }

    /// A subject that was executed; a script's interpreter finds its words behind the script's.
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

    /// The words that let another program go on.
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

/// Ends under a name.
pub(crate) fn end(name: &str, status: i32) -> ! {
    rename(name);
    process::exit(status)
}

pub(crate) fn rename(name: &str) {
    // It is the caller's own name: nothing asks for a permission.
    let _ = call(libc::SYS_prctl, &mut [Number(libc::PR_SET_NAME.into()), Text(&text(name))]);
}
