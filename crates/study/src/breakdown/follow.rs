//! Follows calls and returns from one instruction to the next.

use tollgate_bench::tracing::Symbols;

/// The prefix of the framework's functions, each of which calls a hook.
const FRAMEWORK: &str = "security_";
/// The prefix of the code that calls BPF programs (kernel/bpf/trampoline.c).
pub(super) const TRAMPOLINE: &str = "bpf_trampoline_";
/// The prefix of BPF programs and of their functions; a digest follows, and the name.
const PROGRAM: &str = "bpf_prog_";
/// Jumps to a function that is called, or back from it (arch/x86/lib/retpoline.S): they belong to the function around them.
const THUNK: &str = "__x86_";
/// The entries of interrupts and exceptions (arch/x86/entry); what is in the tables begins at no symbol.
const INTERRUPT: &str = "asm_";
const INTERRUPT_TABLES: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];
/// The first address of the kernel's half.
const KERNEL: u64 = 1 << 63;

/// The code that a guest executed: the names of addresses.
#[derive(Debug, Clone, Copy)]
pub struct Code<'s> {
    /// The kernel's functions.
    pub symbols: &'s Symbols,
    /// Where pieces of BPF programs begin, and the source file of each, by address.
    pub sources: &'s [(u64, String)],
}

impl<'s> Code<'s> {
    fn source(&self, address: u64) -> &'s str {
        let after = self.sources.partition_point(|(start, _)| *start <= address);
        after.checked_sub(1).map_or("", |at| self.sources[at].1.as_str())
    }
}

/// A function that has been called and has not returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'s> {
    start: u64,
    pub(super) name: &'s str,
    /// Whether it calls a hook.
    pub(super) is_hook: bool,
    /// Of a BPF program: the source file of its last instruction. Empty if that is unknown.
    pub(super) file: &'s str,
}

impl<'s> Frame<'s> {
    /// The name of a BPF program's function, without its digest.
    pub(super) fn program(&self) -> Option<&'s str> {
        self.name.strip_prefix(PROGRAM)?.split_once('_').map(|(_, name)| name)
    }

    pub(super) fn is_interrupt(&self) -> bool {
        self.name.starts_with(INTERRUPT) || INTERRUPT_TABLES.contains(&self.name)
    }
}

/// The functions that have been called since a hook or an interrupt was entered.
///
/// A log has addresses only. A function's first instruction is a call of it, or a jump that ends the caller. Any other
/// instruction is a return to one of the functions that have called, or, if it is in none of those, the way out of all.
#[derive(Debug)]
pub(super) struct Followed<'s> {
    code: Code<'s>,
    /// The function around all frames.
    outside: &'s str,
    pub(super) frames: Vec<Frame<'s>>,
}

impl<'s> Followed<'s> {
    pub(super) fn new(code: Code<'s>) -> Self {
        Self { code, outside: "", frames: Vec::new() }
    }

    /// Goes to the next instruction. Returns whether it is the first one of a hook.
    pub(super) fn step(&mut self, address: u64) -> bool {
        let called = self.go(address);
        if let Some(last) = self.frames.last_mut().filter(|last| last.program().is_some()) {
            last.file = self.code.source(address);
        }
        called
    }

    fn go(&mut self, address: u64) -> bool {
        let function = self.code.symbols.function(address).filter(|_| address >= KERNEL);
        let Some((start, name)) = function else {
            self.leave("");
            return false;
        };
        let entered = !self.frames.is_empty();
        if self.frames.last().is_some_and(|last| last.start == start) || (entered && name.starts_with(THUNK)) {
            return false;
        }
        let function = name.strip_prefix(FRAMEWORK);
        let is_hook = function.is_some_and(|function| self.code.symbols.hook_of(function).is_some());
        let frame = Frame { start, name, is_hook, file: "" };
        let called = address == start;
        if frame.is_interrupt() || (called && (entered || is_hook)) {
            self.frames.push(frame);
            return is_hook;
        }
        if called && name.starts_with(TRAMPOLINE) {
            // A program that is attached to a function outside the framework.
            self.frames.extend([Frame { start: 0, name: self.outside, is_hook: true, file: "" }, frame]);
            return true;
        }
        match self.frames.iter().rposition(|known| known.start == start) {
            Some(at) => self.frames.truncate(at + 1),
            // It has called the function to which it is attached, behind that one's call of it.
            None if entered && name.starts_with(TRAMPOLINE) => self.frames.push(frame),
            None => self.leave(name),
        }
        false
    }

    fn leave(&mut self, to: &'s str) {
        self.frames.clear();
        self.outside = to;
    }
}
