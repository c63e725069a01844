//! Acts on files and directories, by path and by descriptor.

use std::io;

use super::{Act, bits, number};
use crate::{
    actor::Actor,
    context::whole,
    kernel::{
        Argument::{Bytes, Number, Room, Text},
        call, errno, set_attribute, text,
    },
};

/// `AT_FDCWD` as a word.
pub(super) const HERE: i64 = libc::AT_FDCWD as i64;

pub(super) const ACTS: &[Act] = &[
    Act::new("open", "PATH FLAGS", open),
    Act::new("reopen", "FLAGS", |a, w| open(a, &[&format!("/proc/self/fd/{}", a.fd), w[0]])),
    Act::new("read", "", read),
    Act::new("write", "", |a, _| call(libc::SYS_write, &mut [Number(a.fd.into()), Bytes(b"x"), Number(1)]).map(drop)),
    Act::new("list", "", list),
    Act::new("stat", "PATH", |_, w| stat(w[0], 0)),
    Act::new("lstat", "PATH", |_, w| stat(w[0], libc::AT_SYMLINK_NOFOLLOW)),
    Act::new("fstat", "", |a, _| call(libc::SYS_fstat, &mut [Number(a.fd.into()), Room(&mut [0; 256])]).map(drop)),
    Act::new("access", "PATH MODE", access),
    Act::new("statfs", "PATH", |_, w| call(libc::SYS_statfs, &mut [Text(&text(w[0])), Room(&mut [0; 256])]).map(drop)),
    Act::new("chmod", "PATH MODE", |_, w| call(libc::SYS_chmod, &mut [Text(&text(w[0])), mode(w[1])?]).map(drop)),
    Act::new("fchmod", "MODE", |a, w| call(libc::SYS_fchmod, &mut [Number(a.fd.into()), mode(w[0])?]).map(drop)),
    Act::new("chown", "PATH UID", |_, w| {
        call(libc::SYS_chown, &mut [Text(&text(w[0])), Number(number(w[1])?), Number(-1)]).map(drop)
    }),
    Act::new("utimes", "PATH TIMES", utimes),
    Act::new("truncate", "PATH", |_, w| call(libc::SYS_truncate, &mut [Text(&text(w[0])), Number(0)]).map(drop)),
    Act::new("ftruncate", "", |a, _| call(libc::SYS_ftruncate, &mut [Number(a.fd.into()), Number(0)]).map(drop)),
    Act::new("fallocate", "", |a, _| {
        call(libc::SYS_fallocate, &mut [Number(a.fd.into()), Number(0), Number(0), Number(4096)]).map(drop)
    }),
    Act::new("link", "FROM TO", |_, w| two(libc::SYS_link, w)),
    Act::new("link-fd", "TO", link_descriptor),
    Act::new("symlink", "TARGET PATH", |_, w| two(libc::SYS_symlink, w)),
    Act::new("readlink", "PATH", |_, w| {
        call(libc::SYS_readlink, &mut [Text(&text(w[0])), Room(&mut [0; 256]), Number(256)]).map(drop)
    }),
    Act::new("rename", "FROM TO", |_, w| rename(w, 0)),
    Act::new("exchange", "FROM TO", |_, w| rename(w, libc::RENAME_EXCHANGE.into())),
    Act::new("unlink", "PATH", |_, w| one(libc::SYS_unlink, w[0])),
    Act::new("mkdir", "PATH", |_, w| call(libc::SYS_mkdir, &mut [Text(&text(w[0])), Number(0o755)]).map(drop)),
    Act::new("rmdir", "PATH", |_, w| one(libc::SYS_rmdir, w[0])),
    Act::new("mknod", "PATH KIND", mknod),
    Act::new("chdir", "PATH", |_, w| one(libc::SYS_chdir, w[0])),
    Act::new("fchdir", "", |a, _| call(libc::SYS_fchdir, &mut [Number(a.fd.into())]).map(drop)),
    Act::new("chroot", "PATH", |_, w| one(libc::SYS_chroot, w[0])),
    Act::new("flock", "", |a, _| {
        call(libc::SYS_flock, &mut [Number(a.fd.into()), Number((libc::LOCK_EX | libc::LOCK_NB).into())]).map(drop)
    }),
    Act::new("fcntl", "COMMAND ARGUMENT", fcntl),
    Act::new("lock", "COMMAND KIND", lock),
    Act::new("ioctl", "COMMAND", |a, w| {
        call(libc::SYS_ioctl, &mut [Number(a.fd.into()), Number(number(w[0])?), Room(&mut [0; 256])]).map(drop)
    }),
    Act::new("ioctl-same-flags", "", same_flags),
    Act::new("setxattr", "PATH NAME VALUE", |_, w| set_attribute(w[0], w[1], w[2].as_bytes())),
    Act::new("getxattr", "PATH NAME", |_, w| {
        call(libc::SYS_getxattr, &mut [Text(&text(w[0])), Text(&text(w[1])), Room(&mut [0; 256]), Number(256)])
            .map(drop)
    }),
    Act::new("listxattr", "PATH", |_, w| {
        call(libc::SYS_listxattr, &mut [Text(&text(w[0])), Room(&mut [0; 256]), Number(256)]).map(drop)
    }),
    Act::new("removexattr", "PATH NAME", |_, w| two(libc::SYS_removexattr, w)),
    Act::new("relabel", "PATH CONTEXT", |a, w| a.engine.relabel(w[0], &whole(w[1], "object_r"))),
    Act::new("watch", "PATH", watch),
];

fn mode(word: &str) -> io::Result<crate::kernel::Argument<'static>> {
    i64::from_str_radix(word, 8).map(Number).map_err(|_| io::Error::from_raw_os_error(libc::ENOSYS))
}

fn one(number: i64, path: &str) -> io::Result<()> {
    call(number, &mut [Text(&text(path))]).map(drop)
}

fn two(number: i64, paths: &[&str]) -> io::Result<()> {
    call(number, &mut [Text(&text(paths[0])), Text(&text(paths[1]))]).map(drop)
}

fn open(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let flags = [
        ("r", libc::O_RDONLY),
        ("w", libc::O_WRONLY),
        ("rw", libc::O_RDWR),
        ("append", libc::O_APPEND),
        ("creat", libc::O_CREAT),
        ("excl", libc::O_EXCL),
        ("trunc", libc::O_TRUNC),
        ("path", libc::O_PATH),
        ("directory", libc::O_DIRECTORY),
        ("nofollow", libc::O_NOFOLLOW),
        ("nonblock", libc::O_NONBLOCK),
        ("tmpfile", libc::O_TMPFILE),
        ("noatime", libc::O_NOATIME),
        ("cloexec", libc::O_CLOEXEC),
    ]
    .map(|(name, flag)| (name, i64::from(flag)));
    let flags = bits(words[1], &flags)?;
    let opened = call(libc::SYS_openat, &mut [Number(HERE), Text(&text(words[0])), Number(flags), Number(0o644)])?;
    actor.fd = i32::try_from(opened).unwrap_or(-1);
    Ok(())
}

/// Reads the object's content, which must not be empty: SELinux replaces a file that a new domain may not use by the null
/// device, which is empty.
fn read(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    match call(libc::SYS_pread64, &mut [Number(actor.fd.into()), Room(&mut [0; 16]), Number(16), Number(0)])? {
        0 => errno(libc::ENODATA),
        _ => Ok(()),
    }
}

fn list(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    call(libc::SYS_getdents64, &mut [Number(actor.fd.into()), Room(&mut [0; 2048]), Number(2048)]).map(drop)
}

fn stat(path: &str, flags: i32) -> io::Result<()> {
    let path = text(path);
    call(libc::SYS_newfstatat, &mut [Number(HERE), Text(&path), Room(&mut [0; 256]), Number(flags.into())]).map(drop)
}

fn access(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let how = [("r", libc::R_OK), ("w", libc::W_OK), ("x", libc::X_OK)].map(|(name, bit)| (name, i64::from(bit)));
    call(libc::SYS_access, &mut [Text(&text(words[0])), Number(bits(words[1], &how)?)]).map(drop)
}

/// To `now`, or to a time that the subject chooses.
fn utimes(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let path = text(words[0]);
    let chosen = [1_u64, 0, 1, 0].map(u64::to_ne_bytes).concat();
    let times = if words[1] == "now" { Number(0) } else { Bytes(&chosen) };
    call(libc::SYS_utimensat, &mut [Number(HERE), Text(&path), times, Number(0)]).map(drop)
}

/// Gives the open file a name.
fn link_descriptor(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let (from, to) = (text(""), text(words[0]));
    let flags = i64::from(libc::AT_EMPTY_PATH);
    call(libc::SYS_linkat, &mut [Number(actor.fd.into()), Text(&from), Number(HERE), Text(&to), Number(flags)])
        .map(drop)
}

fn rename(words: &[&str], flags: i64) -> io::Result<()> {
    let (from, to) = (text(words[0]), text(words[1]));
    call(libc::SYS_renameat2, &mut [Number(HERE), Text(&from), Number(HERE), Text(&to), Number(flags)]).map(drop)
}

fn mknod(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let kinds = [
        ("file", libc::S_IFREG),
        ("fifo", libc::S_IFIFO),
        ("sock", libc::S_IFSOCK),
        ("chr", libc::S_IFCHR),
        ("blk", libc::S_IFBLK),
    ]
    .map(|(name, bit)| (name, i64::from(bit)));
    let mode = bits(words[1], &kinds)? | 0o644;
    // The null device's numbers; other kinds of files ignore them.
    call(libc::SYS_mknod, &mut [Text(&text(words[0])), Number(mode), Number(1 << 8 | 3)]).map(drop)
}

fn fcntl(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let commands = [
        ("dupfd", libc::F_DUPFD),
        ("getfd", libc::F_GETFD),
        ("setfd", libc::F_SETFD),
        ("getfl", libc::F_GETFL),
        ("setfl", libc::F_SETFL),
        ("setown", libc::F_SETOWN),
        ("getown", libc::F_GETOWN),
        ("setsig", 10),
        ("setlease", libc::F_SETLEASE),
        ("notify", libc::F_NOTIFY),
        ("setpipe", libc::F_SETPIPE_SZ),
    ]
    .map(|(name, bit)| (name, i64::from(bit)));
    let command = bits(words[0], &commands)?;
    call(libc::SYS_fcntl, &mut [Number(actor.fd.into()), Number(command), Number(number(words[1])?)]).map(drop)
}

/// A record lock: `set` or `get`, `read` or `write`.
fn lock(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let command = bits(words[0], &[("set", libc::F_SETLK.into()), ("get", libc::F_GETLK.into())])?;
    let kind = bits(words[1], &[("read", libc::F_RDLCK.into()), ("write", libc::F_WRLCK.into())])?;
    // struct flock: l_type and l_whence are short, and the other fields mean the whole file.
    let mut flock = [0; 32];
    flock[..2].copy_from_slice(&(kind as i16).to_ne_bytes());
    call(libc::SYS_fcntl, &mut [Number(actor.fd.into()), Number(command), Room(&mut flock)]).map(drop)
}

/// Sets the inode's flags to their present values (FS_IOC_GETFLAGS, FS_IOC_SETFLAGS).
fn same_flags(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    let mut flags = [0; 8];
    for command in [0x8008_6601, 0x4008_6602] {
        call(libc::SYS_ioctl, &mut [Number(actor.fd.into()), Number(command), Room(&mut flags)])?;
    }
    Ok(())
}

fn watch(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let notify = call(libc::SYS_inotify_init1, &mut [Number(0)])?;
    let events = i64::from(libc::IN_MODIFY);
    call(libc::SYS_inotify_add_watch, &mut [Number(notify), Text(&text(words[0])), Number(events)]).map(drop)
}
