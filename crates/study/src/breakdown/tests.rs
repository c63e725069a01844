use tollgate_bench::tracing::Symbols;

use super::*;

const SYMBOLS: &str = "ffffffff81000000 T vfs_read\n\
    ffffffff81001000 T security_file_permission\n\
    ffffffff81002000 T bpf_lsm_file_permission\n\
    ffffffff81003000 T __bpf_prog_enter\n\
    ffffffff81003800 T migrate_disable\n\
    ffffffff81004000 T bpf_task_storage_get\n\
    ffffffff81005000 T __x86_return_thunk\n\
    ffffffff81006000 T asm_sysvec_apic_timer_interrupt\n\
    ffffffff81007000 t selinux_file_permission\n\
    ffffffff81008000 T avc_policy_seqno\n\
    ffffffff81009000 T do_exit\n\
    ffffffffc0000000 t bpf_trampoline_6442\t[bpf]\n\
    ffffffffc0001000 t bpf_prog_0123456789abcdef_file_permission\t[bpf]\n\
    ffffffffc0002000 t bpf_prog_fedcba9876543210_tg_find_subject\t[bpf]\n\
    ffffffffc0003000 t bpf_other\t[bpf]\n";

const READ: u64 = 0xffff_ffff_8100_0000;
const SECURITY: u64 = READ + 0x1000;
const LSM: u64 = READ + 0x2000;
const ENTER: u64 = READ + 0x3000;
const MIGRATE: u64 = READ + 0x3800;
const STORAGE: u64 = READ + 0x4000;
const THUNK: u64 = READ + 0x5000;
const TIMER: u64 = READ + 0x6000;
const SELINUX: u64 = READ + 0x7000;
const AVC: u64 = READ + 0x8000;
const EXIT: u64 = READ + 0x9000;
const TRAMPOLINE: u64 = 0xffff_ffff_c000_0000;
const PROGRAM: u64 = TRAMPOLINE + 0x1000;
const SUBPROGRAM: u64 = TRAMPOLINE + 0x2000;

fn broken_down(addresses: &[u64]) -> Breakdown {
    let symbols = Symbols::parse(SYMBOLS);
    let sources = [(PROGRAM, "file.h"), (PROGRAM + 8, "cache.h"), (SUBPROGRAM, "subject.h")]
        .map(|(address, file)| (address, file.to_owned()));
    break_down(addresses, Code { symbols: &symbols, sources: &sources })
}

fn of(breakdown: &Breakdown) -> Vec<(Group, &str, u64)> {
    let parts = breakdown.hooks.iter().flat_map(|hook| &hook.parts);
    parts.map(|part| (part.group, part.what.as_str(), part.instructions)).collect()
}

#[test]
fn tells_entry_own_instructions_and_helpers_of_a_program_apart() {
    let broken = broken_down(&[
        0x40_1000,
        READ + 4,
        SECURITY,
        SECURITY + 4,
        LSM,
        TRAMPOLINE,
        ENTER,
        MIGRATE,
        ENTER + 4,
        TRAMPOLINE + 4,
        PROGRAM,
        PROGRAM + 8,
        SUBPROGRAM,
        STORAGE,
        STORAGE + 4,
        SUBPROGRAM + 4,
        PROGRAM + 12,
        TRAMPOLINE + 8,
        // The function to which it is attached, behind the call of the trampoline.
        LSM + 5,
        TRAMPOLINE + 12,
        SECURITY + 8,
        READ + 8,
    ]);
    let expected = [
        (Group::Entry, "trampoline", 4),
        (Group::Entry, "__bpf_prog_enter", 3),
        (Group::Entry, "bpf_lsm_file_permission", 2),
        (Group::Entry, "security_file_permission", 3),
        (Group::Subject, "tg_find_subject subject.h", 2),
        (Group::Subject, "tg_find_subject subject.h > bpf_task_storage_get", 2),
        (Group::Cache, "file_permission cache.h", 2),
        (Group::Rest, "file_permission file.h", 1),
    ];
    let mut parts = of(&broken);
    parts.sort();
    let mut sorted = expected;
    sorted.sort();
    assert_eq!(parts, sorted);
    assert_eq!((broken.executed, broken.outside, broken.inside()), (22, 3, 19));
    assert_eq!((broken.hooks[0].calls, broken.hooks[0].of(Group::Subject)), (1, 4));
}

#[test]
fn counts_each_call_and_takes_no_jump_of_the_compiler_for_a_function() {
    let broken = broken_down(&[SECURITY, SECURITY + 4, THUNK, READ + 4, SECURITY, THUNK + 4, READ + 8]);
    assert_eq!((broken.hooks[0].calls, broken.hooks[0].sum(), broken.outside), (2, 5, 2));
}

#[test]
fn keeps_interrupts_apart_and_goes_on_with_the_hook_behind_them() {
    let broken = broken_down(&[SECURITY, TIMER, MIGRATE, TIMER + 4, SECURITY + 4, READ + 8, TIMER, READ + 12]);
    assert_eq!((broken.hooks[0].sum(), broken.interrupts, broken.outside), (2, 4, 2));
    assert_eq!(broken.hooks[0].calls, 1);
}

#[test]
fn groups_functions_of_a_module_that_is_no_program() {
    let broken = broken_down(&[READ, SECURITY, SELINUX, AVC, MIGRATE, SELINUX + 4, SECURITY + 4, READ + 4]);
    let expected = [
        (Group::Entry, "security_file_permission", 2),
        (Group::Cache, "avc_policy_seqno", 2),
        (Group::Rest, "selinux_file_permission", 2),
    ];
    assert_eq!(of(&broken), expected);
}

#[test]
fn names_the_function_outside_the_framework_to_which_a_program_is_attached() {
    let broken = broken_down(&[EXIT, EXIT + 4, TRAMPOLINE, PROGRAM, TRAMPOLINE + 4, EXIT + 8]);
    assert_eq!((broken.hooks[0].function.as_str(), broken.hooks[0].sum(), broken.outside), ("do_exit", 3, 3));
}
