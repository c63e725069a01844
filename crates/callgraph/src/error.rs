//! Errors of reading a kernel's call graph.

/// An error of this crate; the message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is neither a bzImage nor an ELF file nor a compressed one.
    #[error("this is no kernel image: {reason}; give a distribution's vmlinuz (a bzImage) or a vmlinux of x86-64")]
    NotAKernel {
        /// What the file contains instead.
        reason: String,
    },
    /// The payload is compressed by a method that is not supported.
    #[error(
        "the kernel is compressed with {found}, which is not read here; \
         unpack it (the kernel's scripts/extract-vmlinux does) and give the vmlinux"
    )]
    Compression {
        /// The method's name, or the payload's first bytes.
        found: String,
    },
    /// The file is shorter than its headers say, or a compressed part is damaged.
    #[error("the kernel image is truncated or damaged: {reason}; fetch it again")]
    Damaged {
        /// The damaged part.
        reason: String,
    },
    /// Functions have no names.
    #[error(
        "the kernel has no symbols: its .symtab is stripped, no System.map lies beside it, and it carries no kallsyms \
         (CONFIG_KALLSYMS); give a vmlinux with symbols, or --symbols with its System.map or /proc/kallsyms"
    )]
    NoSymbols,
    /// A file of symbols is empty, or belongs to another kernel.
    #[error("no symbols of this kernel: {reason}")]
    SymbolFile {
        /// What is wrong with it.
        reason: String,
    },
    /// The kernel has no hooks.
    #[error(
        "no function of this kernel calls security modules: it was built without CONFIG_SECURITY, or its symbols leave out \
         data (CONFIG_KALLSYMS_ALL), which tell hooks from other functions"
    )]
    NoHooks,
    /// The kernel does not have this system call.
    #[error("this kernel has no system call {name:?}{}", nearest(.near))]
    NoSyscall {
        /// The requested name.
        name: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// A line of a stop list is malformed.
    #[error("line {line} of the stop list: {reason}")]
    StopList {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

fn nearest(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) }
}
