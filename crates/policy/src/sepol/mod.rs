//! libsepol, which reads and compiles policies, in a child process without privileges.
//!
//! The readers of libsepol 3.4 lack many fixes, and a policy may come from anywhere. So each call forks a child that
//! gives up its privileges ([`confine`]) before libsepol reads a byte, and that answers through a pipe. Whatever
//! happens to the child is only an error here.

mod child;
mod confine;
mod shim;
#[cfg(test)]
pub(crate) mod tests;

use std::{io, thread};

use self::child::Task;
use crate::lines::{self, Lines};

/// The newest binary policy version that every kernel since 5.10 reads (security/selinux/include/security.h).
pub const VERSION: u32 = 33;
/// The oldest version with MLS in its present form (`POLICYDB_VERSION_MLS`).
const OLDEST: u32 = 19;
/// Debian's policies take 5 s of processor time, and as much again to find where statements were written.
const COMPILE: Task = Task { name: "compile the policy", seconds: 600 };
const PLACES: Task = Task { name: "find the statements' places", seconds: 600 };
/// Debian's policies take 0.1 s. libsepol 3.4 loops forever on some damaged ones.
const READ: Task = Task { name: "read the binary policy", seconds: 30 };
const CONVERT: Task = Task { name: "turn the module package into CIL", seconds: 60 };
const POLICY_MAGIC: u32 = 0xf97c_ff8c;
const POLICY_WORD: &[u8] = b"SE Linux";

/// A CIL source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CilFile {
    /// Its name, for messages.
    pub name: String,
    /// The text of the file.
    pub text: Vec<u8>,
}

/// Options for compiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The version of the binary policy.
    pub version: u32,
    /// Whether `neverallow` rules are left unchecked.
    pub disable_neverallow: bool,
    /// Whether declarations, and equal file contexts, may be repeated, as in semodule.
    pub multiple_decls: bool,
    /// Whether the places of statements are left out, which is faster.
    pub without_lines: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { version: VERSION, disable_neverallow: false, multiple_decls: false, without_lines: false }
    }
}

/// A policy that libsepol has compiled or read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compiled {
    /// The binary policy, as a kernel's SELinux would load it.
    pub image: Vec<u8>,
    /// The policy in the form that the module `dump` reads.
    pub model: Vec<u8>,
    /// The statements and where they were written.
    pub lines: Lines,
    /// The text of `file_contexts`; empty if it has none.
    pub file_contexts: String,
}

/// Why libsepol did not compile or read a policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SepolError {
    /// libsepol refused the input.
    #[error("cannot {task}: libsepol refused:\n{messages}")]
    Refused {
        /// The task, as an infinitive: "compile the policy".
        task: &'static str,
        /// libsepol's messages, with files and lines.
        messages: String,
    },
    /// The child was killed.
    #[error(
        "cannot {task}: its reader died of {signal}; the file is corrupted or hostile, or needs too much memory or \
         time: nothing of it was used"
    )]
    Died {
        /// What was tried.
        task: &'static str,
        /// The signal that killed it.
        signal: &'static str,
    },
    /// The child did not end in time.
    #[error("cannot {task}: its reader took longer than {seconds} s and was stopped: nothing of it was used")]
    TimedOut {
        /// What was tried.
        task: &'static str,
        /// How long it could take, in seconds.
        seconds: u64,
    },
    /// The child's answer cannot be read.
    #[error(
        "cannot {task}: its reader's answer is not whole ({cause}); the file may be hostile: nothing of it was used"
    )]
    Garbled {
        /// What was tried.
        task: &'static str,
        /// What is wrong with the answer.
        cause: io::Error,
    },
    /// The child could not be confined.
    #[error(
        "cannot {task}: its reader could not {step}, and unconfined it is not run: run it where seccomp is allowed, on \
         Linux 5.9 or later"
    )]
    Confine {
        /// What was tried.
        task: &'static str,
        /// The step that was refused, and the cause.
        step: String,
    },
    /// The child process could not be started.
    #[error("cannot {task}: no process for its reader: {cause}")]
    Start {
        /// What was tried.
        task: &'static str,
        /// Why it could not be started.
        cause: io::Error,
    },
    /// The input does not begin like a binary policy.
    #[error(
        "not a binary policy: it does not begin with SELinux's magic number; a kernel's policy is /sys/fs/selinux/policy"
    )]
    NotPolicy,
    /// The input ends before its version.
    #[error("the binary policy is truncated: it has {0} bytes")]
    Truncated(usize),
    /// The policy is newer than libsepol.
    #[error("policy version {found}; libsepol reads {OLDEST} up to {newest}: build the policy for an older version")]
    Version {
        /// The version of the policy.
        found: u32,
        /// The newest version that libsepol reads.
        newest: u32,
    },
}

/// Compiles CIL sources together.
pub fn compile(files: &[CilFile], options: &Options) -> Result<Compiled, SepolError> {
    let task = COMPILE.name;
    if !(OLDEST..=shim::newest()).contains(&options.version) {
        return Err(SepolError::Version { found: options.version, newest: shim::newest() });
    }
    thread::scope(|scope| {
        // This takes as long as compiling.
        let places = (!options.without_lines).then(|| scope.spawn(|| statements(files, options)));
        let answer = child::run(COMPILE, |out| shim::compile(files, options, out));
        let lines = match places.map(thread::ScopedJoinHandle::join) {
            None => Lines::missing("the policy was compiled without the statements' places"),
            Some(Ok(lines)) => lines,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        };
        let answer = answer.map_err(|error| with_places(error, files))?;
        let file_contexts = String::from_utf8(whole(task, answer.file_contexts, "file contexts")?)
            .map_err(|_| garbled(task, "its file contexts are not UTF-8"))?;
        Ok(Compiled {
            image: whole(task, answer.image, "image")?,
            model: whole(task, answer.model, "model")?,
            lines,
            file_contexts,
        })
    })
}

/// Reads a binary policy.
pub fn read(image: &[u8]) -> Result<Compiled, SepolError> {
    read_within(image, READ)
}

fn read_within(image: &[u8], task: Task) -> Result<Compiled, SepolError> {
    check_head(image)?;
    let answer = child::run(task, |out| shim::read(image, out))?;
    Ok(Compiled {
        image: image.to_vec(),
        model: whole(task.name, answer.model, "model")?,
        lines: Lines::missing("the policy was read from a binary policy, which does not hold its statements' places"),
        file_contexts: String::new(),
    })
}

/// A binary policy with its booleans' values changed to `states`, by number: the image, and its model.
pub fn set_booleans(image: &[u8], states: &[bool]) -> Result<(Vec<u8>, Vec<u8>), SepolError> {
    let task = Task { name: "set the booleans of the binary policy", ..READ };
    check_head(image)?;
    let states: Vec<u8> = states.iter().map(|state| u8::from(*state)).collect();
    let answer = child::run(task, |out| shim::set_booleans(image, &states, out))?;
    Ok((whole(task.name, answer.image, "image")?, whole(task.name, answer.model, "model")?))
}

/// The CIL of a module package (`.pp`), or of a module.
pub fn module_to_cil(package: &[u8]) -> Result<Vec<u8>, SepolError> {
    let answer = child::run(CONVERT, |out| shim::module(package, out))?;
    whole(CONVERT.name, answer.cil, "CIL")
}

/// The statements of `files`, or why there are none.
fn statements(files: &[CilFile], options: &Options) -> Lines {
    // libsepol writes the name of the file in every mark, so a short one is faster.
    let marked: Vec<CilFile> = (0..)
        .zip(files)
        .map(|(number, file)| CilFile { name: format!("f{number}"), text: lines::mark(&file.text, number) })
        .collect();
    let names = files.iter().map(|file| file.name.clone()).collect();
    let resolved = child::run(PLACES, |out| shim::resolve(&marked, options, out))
        .and_then(|answer| whole(PLACES.name, answer.cil, "CIL"))
        .and_then(|cil| String::from_utf8(cil).map_err(|_| garbled(PLACES.name, "its CIL is not UTF-8")));
    match resolved {
        Ok(resolved) => Lines::from_resolved(names, &resolved),
        Err(error) => Lines::missing(error.to_string()),
    }
}

/// Adds places to libsepol's messages about unknown words, which have none (`parse_statement` of cil_build_ast.c).
/// with it.
fn with_places(error: SepolError, files: &[CilFile]) -> SepolError {
    let SepolError::Refused { task, messages } = error else { return error };
    let with_place = |message: &str| {
        let word = message.strip_prefix("Error: ").unwrap_or(message).strip_prefix("Unknown keyword ")?;
        let places = files.iter().flat_map(|file| {
            lines::lists(&file.text, word.as_bytes()).into_iter().map(move |line| format!("{}:{line}", file.name))
        });
        let places: Vec<String> = places.take(5).collect();
        (!places.is_empty()).then(|| format!("Unknown keyword {word} at {}", places.join(", ")))
    };
    let placed = |message: &str| with_place(message).unwrap_or_else(|| with_line(place_first(message), files));
    let messages: Vec<String> = messages.lines().map(placed).collect();
    SepolError::Refused { task, messages: messages.join("\n") }
}

/// Adds the text of the line to a message that ends with a place, because libsepol does not say which name of a
/// statement is unknown.
fn with_line(message: String, files: &[CilFile]) -> String {
    let line = message.rsplit_once(" at ").and_then(|(_, place)| {
        let (name, number) = place.rsplit_once(':')?;
        let text = &files.iter().find(|file| file.name == name)?.text;
        text.split(|byte| *byte == b'\n').nth(number.parse::<usize>().ok()?.checked_sub(1)?)
    });
    match line.map(|line| String::from_utf8_lossy(line).trim().to_owned()) {
        Some(line) if !line.is_empty() => format!("{message}: {line}"),
        _ => message,
    }
}

/// Rewrites `MESSAGE at line LINE of FILE`, libsepol's form, so that the place comes first, where editors and people
/// look for it.
fn place_first(message: &str) -> String {
    let place = message.rsplit_once(" at line ").and_then(|(what, place)| Some((what, place.split_once(" of ")?)));
    match place {
        Some((what, (line, file))) if line.parse::<u32>().is_ok() => format!("{file}:{line}: {what}"),
        _ => message.to_owned(),
    }
}

fn whole(task: &'static str, section: Option<Vec<u8>>, what: &str) -> Result<Vec<u8>, SepolError> {
    section.ok_or_else(|| garbled(task, format!("it has no {what}")))
}

fn garbled(task: &'static str, what: impl Into<String>) -> SepolError {
    SepolError::Garbled { task, cause: io::Error::new(io::ErrorKind::InvalidData, what.into()) }
}

/// Checks the beginning of a binary policy without libsepol: magic number, name, version.
fn check_head(image: &[u8]) -> Result<(), SepolError> {
    let number =
        |at: usize| image.get(at..at + 4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let truncated = SepolError::Truncated(image.len());
    match number(0) {
        Some(POLICY_MAGIC) => {}
        Some(_) => return Err(SepolError::NotPolicy),
        None => return Err(truncated),
    }
    let Some(length) = number(4) else { return Err(truncated) };
    if length as usize != POLICY_WORD.len() {
        return Err(SepolError::NotPolicy);
    }
    match (image.get(8..16), number(16)) {
        (Some(word), _) if word != POLICY_WORD => Err(SepolError::NotPolicy),
        (Some(_), Some(found)) if !(OLDEST..=shim::newest()).contains(&found) => {
            Err(SepolError::Version { found, newest: shim::newest() })
        }
        (Some(_), Some(_)) => Ok(()),
        _ => Err(truncated),
    }
}

/// libsepol's messages as an error shows them: printable, and without empty lines.
fn messages(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace(|c: char| c.is_control() && c != '\n' && c != '\t', "?");
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { "it gave no reason".to_owned() } else { lines.join("\n") }
}
