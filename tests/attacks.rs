//! Attacks on enforcement and on labels, as an attacker would write them: one file per attacked thing.
//!
//! A program of `attacks/` attacks; it runs confined, as `worker` of `attacks/policy.cil`, in a guest. QEMU and kernels are
//! needed, from the cache or a network, and cc.

mod acts;
mod behalf;
mod canary;
mod daemon;
mod enforcement;
mod fuzz;
mod labels;
mod mounted;
mod network;
#[cfg(feature = "long")]
mod power;
mod recovery;
mod served;
mod shares;
mod subvolumes;

use std::path::PathBuf;

pub(crate) use recovery::disk;

use crate::program::{
    Scratch,
    steps::{Guest, policy, source},
    word,
};

/// A directory for the attack, and shell functions: `W COMMAND...` as the attacker, `O COMMAND...` as the bystander.
const NAMES: &str = "mkdir -p /srv\nW() { as worker \"$@\"; }\nO() { as other \"$@\"; }\n";

/// A program of `attacks/` for the guest, static because the guest has no library.
fn program(scratch: &Scratch, name: &str) -> PathBuf {
    let (from, to) = (source(&format!("tests/attacks/{name}.c")), scratch.path(name));
    let arguments = ["-static", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", word(&to), word(&from)];
    scratch.finish(scratch.command("cc", &arguments)).with(0);
    to
}

/// A guest under the attacks' policy, with these programs in `/`.
fn guest<'s>(scratch: &'s Scratch, kernel: &'static str, programs: &[&str]) -> Guest<'s> {
    let built = policy(scratch, "attacks", &[source("tests/attacks/policy.cil")]);
    let guest = Guest::under(scratch, kernel, &built).names(NAMES);
    programs.iter().fold(guest, |guest, name| guest.with(&program(scratch, name), &format!("/{name}")))
}
