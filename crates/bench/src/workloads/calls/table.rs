//! The rows, and the workloads that they are.

use super::{Row, Step, Word::*, prepare};
use crate::workload::{Group, Scope, Tasks, Workload};

const RDONLY: i64 = libc::O_RDONLY as i64;
const AT: i64 = libc::AT_FDCWD as i64;
const BASIC: i64 = libc::STATX_BASIC_STATS as i64;
const FIFO: i64 = (libc::S_IFIFO | 0o644) as i64;
const GETFL: i64 = libc::F_GETFL as i64;
const FIONREAD: i64 = libc::FIONREAD as i64;
const LOCK_SH: i64 = libc::LOCK_SH as i64;
const LOCK_UN: i64 = libc::LOCK_UN as i64;
const PROT_READ: i64 = libc::PROT_READ as i64;
const READ_WRITE: i64 = (libc::PROT_READ | libc::PROT_WRITE) as i64;
const PRIVATE: i64 = libc::MAP_PRIVATE as i64;
const GET_NAME: i64 = libc::PR_GET_NAME as i64;
const INET: i64 = libc::AF_INET as i64;
const DGRAM: i64 = libc::SOCK_DGRAM as i64;
const STREAM: i64 = libc::SOCK_STREAM as i64;
const SOL: i64 = libc::SOL_SOCKET as i64;
const REUSE: i64 = libc::SO_REUSEADDR as i64;

/// The calls before, outside the clock; the measured call; the calls that undo it.
const fn row(before: &'static [Step], act: Step, after: &'static [Step]) -> Row {
    Row { before, act, after }
}

macro_rules! workloads {
    ($($number:literal $name:literal $before:expr, $act:expr, $after:expr;)*) => {
        /// The rows, by the number of the workload.
        pub(super) static ROWS: &[Row] = &[$(row($before, $act, $after)),*];

        pub(in super::super) static WORKLOADS: &[Workload] = &[$(Workload {
            name: concat!("sys-", $name),
            about: concat!("the system call ", $name),
            group: Group::Calls,
            tasks: Tasks::One,
            scope: Scope::Path,
            samples: 50,
            setup: |place| prepare(place, $number),
        }),*];
    };
}

workloads! {
    0 "open" &[], (libc::SYS_open, &[File, Number(RDONLY)]), &[(libc::SYS_close, &[Made])];
    1 "openat" &[], (libc::SYS_openat, &[Number(AT), File, Number(RDONLY)]), &[(libc::SYS_close, &[Made])];
    2 "creat" &[], (libc::SYS_creat, &[Name, Number(0o644)]), &[(libc::SYS_close, &[Made]), (libc::SYS_unlink, &[Name])];
    3 "close" &[(libc::SYS_open, &[File, Number(RDONLY)])], (libc::SYS_close, &[Made]), &[];
    4 "read" &[(libc::SYS_lseek, &[Open, Number(0), Number(0)])], (libc::SYS_read, &[Open, Buffer, Number(1)]), &[];
    5 "write" &[(libc::SYS_lseek, &[Open, Number(0), Number(0)])], (libc::SYS_write, &[Open, Zeros, Number(1)]), &[];
    6 "pread64" &[], (libc::SYS_pread64, &[Open, Buffer, Number(1), Number(0)]), &[];
    7 "pwrite64" &[], (libc::SYS_pwrite64, &[Open, Zeros, Number(1), Number(0)]), &[];
    8 "readv" &[(libc::SYS_lseek, &[Open, Number(0), Number(0)])], (libc::SYS_readv, &[Open, Vector, Number(1)]), &[];
    9 "writev" &[(libc::SYS_lseek, &[Open, Number(0), Number(0)])], (libc::SYS_writev, &[Open, Vector, Number(1)]), &[];
    10 "preadv" &[], (libc::SYS_preadv, &[Open, Vector, Number(1), Number(0), Number(0)]), &[];
    11 "pwritev" &[], (libc::SYS_pwritev, &[Open, Vector, Number(1), Number(0), Number(0)]), &[];
    12 "sendfile" &[(libc::SYS_lseek, &[Open, Number(0), Number(0)]), (libc::SYS_lseek, &[Second, Number(0), Number(0)])], (libc::SYS_sendfile, &[Second, Open, Number(0), Number(1)]), &[];
    13 "copy_file_range" &[(libc::SYS_lseek, &[Open, Number(0), Number(0)]), (libc::SYS_lseek, &[Second, Number(0), Number(0)])], (libc::SYS_copy_file_range, &[Open, Number(0), Second, Number(0), Number(1), Number(0)]), &[];
    14 "fallocate" &[], (libc::SYS_fallocate, &[Open, Number(0), Number(0), Number(4096)]), &[];
    15 "stat" &[], (libc::SYS_stat, &[File, Buffer]), &[];
    16 "lstat" &[], (libc::SYS_lstat, &[Link, Buffer]), &[];
    17 "fstat" &[], (libc::SYS_fstat, &[Open, Buffer]), &[];
    18 "newfstatat" &[], (libc::SYS_newfstatat, &[Number(AT), File, Buffer, Number(0)]), &[];
    19 "statx" &[], (libc::SYS_statx, &[Number(AT), File, Number(0), Number(BASIC), Buffer]), &[];
    20 "access" &[], (libc::SYS_access, &[File, Number(4)]), &[];
    21 "faccessat" &[], (libc::SYS_faccessat, &[Number(AT), File, Number(4)]), &[];
    22 "chmod" &[], (libc::SYS_chmod, &[File, Number(0o644)]), &[];
    23 "fchmod" &[], (libc::SYS_fchmod, &[Open, Number(0o644)]), &[];
    24 "fchmodat" &[], (libc::SYS_fchmodat, &[Number(AT), File, Number(0o644)]), &[];
    25 "chown" &[], (libc::SYS_chown, &[File, Number(-1), Number(-1)]), &[];
    26 "fchown" &[], (libc::SYS_fchown, &[Open, Number(-1), Number(-1)]), &[];
    27 "lchown" &[], (libc::SYS_lchown, &[Link, Number(-1), Number(-1)]), &[];
    28 "fchownat" &[], (libc::SYS_fchownat, &[Number(AT), File, Number(-1), Number(-1), Number(0)]), &[];
    29 "truncate" &[], (libc::SYS_truncate, &[File, Number(4096)]), &[];
    30 "ftruncate" &[], (libc::SYS_ftruncate, &[Open, Number(4096)]), &[];
    31 "utimensat" &[], (libc::SYS_utimensat, &[Number(AT), File, Number(0), Number(0)]), &[];
    32 "rename" &[], (libc::SYS_rename, &[File, Name]), &[(libc::SYS_rename, &[Name, File])];
    33 "renameat2" &[], (libc::SYS_renameat2, &[Number(AT), File, Number(AT), Name, Number(0)]), &[(libc::SYS_rename, &[Name, File])];
    34 "link" &[], (libc::SYS_link, &[File, Name]), &[(libc::SYS_unlink, &[Name])];
    35 "symlink" &[], (libc::SYS_symlink, &[File, Name]), &[(libc::SYS_unlink, &[Name])];
    36 "readlink" &[], (libc::SYS_readlink, &[Link, Buffer, Number(4096)]), &[];
    37 "unlink" &[(libc::SYS_creat, &[Name, Number(0o644)]), (libc::SYS_close, &[Made])], (libc::SYS_unlink, &[Name]), &[];
    38 "unlinkat" &[(libc::SYS_creat, &[Name, Number(0o644)]), (libc::SYS_close, &[Made])], (libc::SYS_unlinkat, &[Number(AT), Name, Number(0)]), &[];
    39 "mkdir" &[], (libc::SYS_mkdir, &[Name, Number(0o755)]), &[(libc::SYS_rmdir, &[Name])];
    40 "rmdir" &[(libc::SYS_mkdir, &[Name, Number(0o755)])], (libc::SYS_rmdir, &[Name]), &[];
    41 "mknod" &[], (libc::SYS_mknod, &[Name, Number(FIFO), Number(0)]), &[(libc::SYS_unlink, &[Name])];
    42 "getdents64" &[(libc::SYS_lseek, &[OpenFolder, Number(0), Number(0)])], (libc::SYS_getdents64, &[OpenFolder, Buffer, Number(4096)]), &[];
    43 "fcntl" &[], (libc::SYS_fcntl, &[Open, Number(GETFL)]), &[];
    44 "ioctl" &[], (libc::SYS_ioctl, &[Open, Number(FIONREAD), Buffer]), &[];
    45 "flock" &[], (libc::SYS_flock, &[Open, Number(LOCK_SH)]), &[(libc::SYS_flock, &[Open, Number(LOCK_UN)])];
    46 "statfs" &[], (libc::SYS_statfs, &[Folder, Buffer]), &[];
    47 "fstatfs" &[], (libc::SYS_fstatfs, &[Open, Buffer]), &[];
    48 "mmap" &[], (libc::SYS_mmap, &[Number(0), Number(4096), Number(PROT_READ), Number(PRIVATE), Open, Number(0)]), &[(libc::SYS_munmap, &[Made, Number(4096)])];
    49 "mprotect" &[], (libc::SYS_mprotect, &[Page, Number(4096), Number(PROT_READ)]), &[(libc::SYS_mprotect, &[Page, Number(4096), Number(READ_WRITE)])];
    50 "eventfd2" &[], (libc::SYS_eventfd2, &[Number(0), Number(0)]), &[(libc::SYS_close, &[Made])];
    51 "memfd_create" &[], (libc::SYS_memfd_create, &[Zeros, Number(0)]), &[(libc::SYS_close, &[Made])];
    52 "kill" &[], (libc::SYS_kill, &[Process, Number(0)]), &[];
    53 "getpgid" &[], (libc::SYS_getpgid, &[Number(0)]), &[];
    54 "getsid" &[], (libc::SYS_getsid, &[Number(0)]), &[];
    55 "setpriority" &[], (libc::SYS_setpriority, &[Number(0), Number(0), Number(0)]), &[];
    56 "sched_getscheduler" &[], (libc::SYS_sched_getscheduler, &[Number(0)]), &[];
    57 "sched_setscheduler" &[], (libc::SYS_sched_setscheduler, &[Number(0), Number(0), Zeros]), &[];
    58 "ioprio_set" &[], (libc::SYS_ioprio_set, &[Number(1), Number(0), Number(0)]), &[];
    59 "ioprio_get" &[], (libc::SYS_ioprio_get, &[Number(1), Number(0)]), &[];
    60 "prctl" &[], (libc::SYS_prctl, &[Number(GET_NAME), Buffer]), &[];
    61 "socket" &[], (libc::SYS_socket, &[Number(INET), Number(DGRAM), Number(0)]), &[(libc::SYS_close, &[Made])];
    62 "bind" &[(libc::SYS_socket, &[Number(INET), Number(DGRAM), Number(0)])], (libc::SYS_bind, &[Made, Zeros, Number(16)]), &[(libc::SYS_close, &[Made])];
    63 "listen" &[(libc::SYS_socket, &[Number(INET), Number(STREAM), Number(0)])], (libc::SYS_listen, &[Made, Number(1)]), &[(libc::SYS_close, &[Made])];
    64 "connect" &[], (libc::SYS_connect, &[Socket, Address, Number(16)]), &[];
    65 "getsockname" &[], (libc::SYS_getsockname, &[Socket, Buffer, Length]), &[];
    66 "setsockopt" &[], (libc::SYS_setsockopt, &[Socket, Number(SOL), Number(REUSE), Zeros, Number(4)]), &[];
    67 "getsockopt" &[], (libc::SYS_getsockopt, &[Socket, Number(SOL), Number(REUSE), Buffer, Length]), &[];
    68 "sendto" &[], (libc::SYS_sendto, &[Pair, Zeros, Number(1), Number(0), Number(0), Number(0)]), &[(libc::SYS_recvfrom, &[Peer, Buffer, Number(1), Number(0), Number(0), Number(0)])];
    69 "recvfrom" &[(libc::SYS_sendto, &[Pair, Zeros, Number(1), Number(0), Number(0), Number(0)])], (libc::SYS_recvfrom, &[Peer, Buffer, Number(1), Number(0), Number(0), Number(0)]), &[];
    70 "msgget" &[], (libc::SYS_msgget, &[Number(0), Number(0o600)]), &[(libc::SYS_msgctl, &[Made, Number(0)])];
    71 "msgsnd" &[(libc::SYS_msgget, &[Number(0), Number(0o600)])], (libc::SYS_msgsnd, &[Made, Message, Number(8), Number(0)]), &[(libc::SYS_msgctl, &[Made, Number(0)])];
    72 "msgrcv" &[(libc::SYS_msgget, &[Number(0), Number(0o600)]), (libc::SYS_msgsnd, &[Made, Message, Number(8), Number(0)])], (libc::SYS_msgrcv, &[Made, Buffer, Number(8), Number(0), Number(0)]), &[(libc::SYS_msgctl, &[Made, Number(0)])];
    73 "semget" &[], (libc::SYS_semget, &[Number(0), Number(1), Number(0o600)]), &[(libc::SYS_semctl, &[Made, Number(0), Number(0)])];
    74 "semop" &[(libc::SYS_semget, &[Number(0), Number(1), Number(0o600)])], (libc::SYS_semop, &[Made, Increment, Number(1)]), &[(libc::SYS_semctl, &[Made, Number(0), Number(0)])];
    75 "semctl" &[(libc::SYS_semget, &[Number(0), Number(1), Number(0o600)])], (libc::SYS_semctl, &[Made, Number(0), Number(12)]), &[(libc::SYS_semctl, &[Made, Number(0), Number(0)])];
    76 "shmget" &[], (libc::SYS_shmget, &[Number(0), Number(4096), Number(0o600)]), &[(libc::SYS_shmctl, &[Made, Number(0)])];
    77 "shmctl" &[(libc::SYS_shmget, &[Number(0), Number(4096), Number(0o600)])], (libc::SYS_shmctl, &[Made, Number(2), Buffer]), &[(libc::SYS_shmctl, &[Made, Number(0)])];
}
