//! Where programs, daemon and library find one another, as `paths.h` has it.

use std::ffi::CStr;

/// Pinned programs and maps, on the BPF file system.
pub const PINS: &str = text(header::TG_PINS);
/// The pinned contexts of processes.
pub const PINNED_TASKS: &str = text(header::TG_PINNED_TASKS);
/// The programs' pinned global variables, a [`tg_state`](crate::enforcer::tg_state).
pub const PINNED_BSS: &str = text(header::TG_PINNED_BSS);
/// The pinned ring buffer of checks, while they are recorded.
pub const PINNED_CHECKS: &str = text(header::TG_PINNED_CHECKS);
/// Pinned programs and maps of the guard.
pub const GUARD_PINS: &str = text(header::TG_GUARD_PINS);
/// What outlives the daemon beside the kernel.
pub const FOLDER: &str = text(header::TG_FOLDER);
/// Where the daemon answers.
pub const SOCKET: &str = text(header::TG_SOCKET);
/// What SIDs stand for, in lines `SID CONTEXT`.
pub const CONTEXTS: &str = text(header::TG_CONTEXTS);
/// What is in force, a [`tg_status_page`](crate::status::tg_status_page).
pub const STATUS: &str = text(header::TG_STATUS);
/// The policy of a generation, whose number is in place of `%u`.
pub const GENERATION: &str = text(header::TG_GENERATION);

#[allow(clippy::allow_attributes_without_reason, unreachable_pub, reason = "generated")]
mod header {
    include!(concat!(env!("OUT_DIR"), "/paths.rs"));
}

const fn text(path: &CStr) -> &str {
    match path.to_str() {
        Ok(text) => text,
        Err(_) => panic!("a path is ASCII"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_where_the_c_library_looks_too() {
        let [request, process] = [include_str!("../../../lib/request.h"), include_str!("../../../lib/process.c")];
        for (source, name, path) in
            [(request, "SOCKET", SOCKET), (process, "CONTEXTS", CONTEXTS), (process, "TASKS", PINNED_TASKS)]
        {
            let line = format!("#define {name} \"{path}\"");
            assert!(source.lines().any(|own| own == line), "lib/ does not say: {line}");
        }
    }

    #[test]
    fn is_below_what_the_machine_gives_to_programs_and_daemons() {
        for pinned in [PINNED_TASKS, PINNED_BSS] {
            assert!(pinned.starts_with(&format!("{PINS}/maps/")), "{pinned}");
        }
        for kept in [SOCKET, CONTEXTS, STATUS, GENERATION] {
            assert!(kept.starts_with(&format!("{FOLDER}/")), "{kept}");
        }
    }
}
