//! How many instructions the verifier examined of each program before the kernel accepted it.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{Object, Program, libbpf_sys};

use crate::programs::{self, ProgramsError};

/// The number of instructions that the verifier examined of each loaded program, by name: `verified_insns` of `struct
/// bpf_prog_info`. It examines an instruction again for each different state in which it is reached, and refuses a
/// program for which it would examine more than a million (`BPF_COMPLEXITY_LIMIT_INSNS`).
///
/// # Errors
/// If the kernel does not report it, which every kernel since 5.16 does.
pub fn instructions(object: &Object) -> Result<Vec<(String, u32)>, ProgramsError> {
    let loaded = object.progs().filter(Program::autoload);
    loaded.map(|program| Ok((program.name().to_string_lossy().into_owned(), verified(&program)?))).collect()
}

fn verified(program: &Program<'_>) -> Result<u32, ProgramsError> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    let program = program.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel writes `length` bytes at most.
    match unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program, &raw mut info, &raw mut length) } {
        0 => Ok(info.verified_insns),
        error => {
            let cause = libbpf_rs::Error::from_raw_os_error(-error);
            Err(programs::refused("find out what the verifier read of a program")(cause))
        }
    }
}
