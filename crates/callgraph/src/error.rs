//! Why a kernel's call graph cannot be had.

/// An error of this crate; the message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a bzImage nor an ELF file nor a compressed one.
    #[error("this is no kernel image: {reason}; give a distribution's vmlinuz (a bzImage) or a vmlinux of x86-64")]
    NotAKernel {
        /// What was found in its place.
        reason: String,
    },
    /// The payload is packed by a program that we have no reader for.
    #[error(
        "the kernel is compressed with {found}, which is not read here; \
         unpack it (the kernel's scripts/extract-vmlinux does) and give the vmlinux"
    )]
    Compression {
        /// The method's name, or the payload's first bytes.
        found: String,
    },
    /// The file ends before what it announces, or a compressed part is damaged.
    #[error("the kernel image is truncated or damaged: {reason}; fetch it again")]
    Damaged {
        /// Where.
        reason: String,
    },
    /// Functions have no names.
    #[error(
        "the kernel has no symbols: its .symtab is stripped, no System.map lies beside it, and it carries no kallsyms \
         (CONFIG_KALLSYMS); give a vmlinux with symbols, or --symbols with its System.map or /proc/kallsyms"
    )]
    NoSymbols,
    /// A file of symbols has none, or those of another kernel.
    #[error("no symbols of this kernel: {reason}")]
    SymbolFile {
        /// What is wrong with it.
        reason: String,
    },
    /// Without hooks there is nothing to look for.
    #[error(
        "no function of this kernel asks security modules: it was built without CONFIG_SECURITY, or its symbols leave out \
         data (CONFIG_KALLSYMS_ALL), which tell hooks from other functions"
    )]
    NoHooks,
    /// No such system call in this kernel.
    #[error("this kernel has no system call {name:?}{}", nearest(.near))]
    NoSyscall {
        /// What was asked for.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// A line of a stop list cannot be read.
    #[error("line {line} of the stop list: {reason}")]
    StopList {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

fn nearest(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) }
}
