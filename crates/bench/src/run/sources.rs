//! The source files of the machine code of BPF programs, by the line information that the kernel keeps of them.

use std::{
    collections::HashMap,
    ffi::CStr,
    ptr::{self, NonNull},
};

use libbpf_rs::{
    libbpf_sys,
    query::{ProgInfoIter, ProgInfoQueryOptions},
};

/// First addresses of pieces of machine code, each with the name of the source file of its lines, by address. Code that was
/// compiled into a function from another file has that file. Empty if this process may not look at programs.
pub(super) fn sources() -> Vec<(u64, String)> {
    let options = ProgInfoQueryOptions::default().include_line_info(true).include_jited_line_info(true);
    let mut types = HashMap::new();
    let mut lines = Vec::new();
    for program in ProgInfoIter::with_query_opts(options) {
        let Some(types) = types.entry(program.btf_id).or_insert_with(|| Types::of(program.btf_id)) else { continue };
        let places = program.jited_line_info.iter().zip(&program.line_info);
        lines.extend(places.map(|(address, line)| (address.addr() as u64, types.file(line.file_name_off))));
    }
    lines.sort();
    // A piece goes on until another file's begins.
    lines.dedup_by(|later, earlier| later.1 == earlier.1);
    lines
}

/// The types of a program, which also have the strings of its line information.
struct Types(NonNull<libbpf_sys::btf>);

impl Types {
    fn of(id: u32) -> Option<Self> {
        // SAFETY: takes a number; what it returns is owned by the caller.
        NonNull::new(unsafe { libbpf_sys::btf__load_from_kernel_by_id(id) }).map(Self)
    }

    /// The file's name without its folders.
    fn file(&self, offset: u32) -> String {
        // SAFETY: the types live as long as this value, and so do their strings, which end in a zero byte.
        let path = unsafe {
            let name = libbpf_sys::btf__name_by_offset(self.0.as_ptr(), offset);
            if ptr::eq(name, ptr::null()) { c"" } else { CStr::from_ptr(name) }
        };
        let path = path.to_string_lossy();
        path.rsplit('/').next().unwrap_or_default().to_owned()
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        // SAFETY: nothing else owns them.
        unsafe { libbpf_sys::btf__free(self.0.as_ptr()) }
    }
}
