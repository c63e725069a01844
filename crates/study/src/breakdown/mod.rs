//! Where the instructions of one operation go: by hook, and within a hook by what the security module does.
//!
//! The emulator logs each instruction of an operation ([`log`]). Calls and returns are followed through the kernel's symbols
//! ([`follow`]), so that each instruction belongs to a hook and to a function in it; of BPF programs, also to a source file.
//! [`group`] says what those are for. [`guest`] runs the boot.

mod follow;
mod group;
mod guest;
mod log;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::follow::{Followed, Frame, TRAMPOLINE};

pub use self::{
    follow::Code,
    group::Group,
    guest::{Logged, log_operations},
};

/// The prefix of the functions to which BPF LSM attaches programs.
const ATTACHED: &str = "bpf_lsm_";

/// Where the instructions of one operation went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Instructions in the log: the sum of all that follows.
    pub executed: u64,
    /// Instructions of the same operation by the guest's counter.
    pub counted: u64,
    /// Instructions outside hooks.
    pub outside: u64,
    /// Instructions of interrupts and exceptions.
    pub interrupts: u64,
    /// Hooks, the dearest first.
    pub hooks: Vec<HookCost>,
}

/// The instructions of all calls of one hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HookCost {
    /// The kernel's function that calls the hook.
    pub function: String,
    /// How often it was called.
    pub calls: u64,
    /// What they are for, the dearest first.
    pub parts: Vec<Part>,
}

/// Instructions of a hook that are for one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What they are for.
    pub group: Group,
    /// The function; of BPF programs with the source file, and the kernel's function that is called there.
    pub what: String,
    /// Their number, with those of the functions that it calls.
    pub instructions: u64,
}

impl Breakdown {
    /// Instructions in hooks.
    pub fn inside(&self) -> u64 {
        self.hooks.iter().map(HookCost::sum).sum()
    }
}

impl HookCost {
    /// All its instructions.
    pub fn sum(&self) -> u64 {
        self.parts.iter().map(|part| part.instructions).sum()
    }

    /// Those of one group.
    pub fn of(&self, group: Group) -> u64 {
        self.parts.iter().filter(|part| part.group == group).map(|part| part.instructions).sum()
    }
}

/// Breaks the instructions at these addresses down.
pub fn break_down(addresses: &[u64], code: Code<'_>) -> Breakdown {
    let mut followed = Followed::new(code);
    let mut all = Breakdown { executed: addresses.len() as u64, ..Breakdown::default() };
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    let mut parts: BTreeMap<(String, Group, String), u64> = BTreeMap::new();
    for address in addresses {
        let called = followed.step(*address);
        let frames = &followed.frames;
        // The innermost hook: hooks call hooks.
        let hook = frames.iter().rposition(|frame| frame.is_hook);
        match hook {
            _ if frames.iter().any(Frame::is_interrupt) => all.interrupts += 1,
            None => all.outside += 1,
            Some(at) => {
                let function = frames[at].name.to_owned();
                *calls.entry(function.clone()).or_default() += u64::from(called);
                let (group, what) = part(&frames[at..]);
                *parts.entry((function, group, what)).or_default() += 1;
            }
        }
    }
    all.hooks = calls.into_iter().map(|(function, calls)| hook_cost(function, calls, &parts)).collect();
    all.hooks.sort_by_key(|hook| std::cmp::Reverse(hook.sum()));
    all
}

fn hook_cost(function: String, calls: u64, parts: &BTreeMap<(String, Group, String), u64>) -> HookCost {
    let own = parts.iter().filter(|((of, ..), _)| *of == function);
    let mut parts: Vec<Part> =
        own.map(|((_, group, what), count)| Part { group: *group, what: what.clone(), instructions: *count }).collect();
    parts.sort_by_key(|part| (part.group, std::cmp::Reverse(part.instructions)));
    HookCost { function, calls, parts }
}

/// What the last of these functions does for the hook that is the first.
fn part(frames: &[Frame<'_>]) -> (Group, String) {
    if let Some((last, name)) = frames.iter().enumerate().rev().find_map(|(at, f)| Some((at, f.program()?))) {
        let file = frames[last].file;
        let called = frames.get(last + 1).map_or(String::new(), |helper| format!(" > {}", helper.name));
        return (group::of_file(file), format!("{name} {file}{called}"));
    }
    if let Some(at) = frames.iter().rposition(|frame| frame.name.starts_with(TRAMPOLINE)) {
        // Whatever a trampoline calls, with the functions that this calls.
        return (Group::Entry, frames.get(at + 1).map_or("trampoline", |frame| frame.name).to_owned());
    }
    let is_entry = frames.len() < 2 || frames.iter().any(|frame| frame.name.starts_with(ATTACHED));
    if is_entry {
        return (Group::Entry, frames.last().map_or("", |frame| frame.name).to_owned());
    }
    // The innermost function with a group, or what the framework has called.
    let known = frames.iter().rev().find_map(|frame| Some((group::of_function(frame.name)?, frame.name)));
    let (group, name) = known.unwrap_or((Group::Rest, frames[1].name));
    (group, name.to_owned())
}
