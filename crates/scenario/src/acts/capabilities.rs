//! Acts that need one capability each.

use std::io;

use super::{Act, bits, number};
use crate::{
    actor::Actor,
    kernel::{
        Argument::{Bytes, Number, Room},
        call, set_attribute,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("sethostname", "", |_, _| call(libc::SYS_sethostname, &mut [Bytes(b"scenario"), Number(8)]).map(drop)),
    Act::new("settime", "", settime),
    Act::new("setuid", "UID", |_, w| call(libc::SYS_setuid, &mut [Number(number(w[0])?)]).map(drop)),
    Act::new("setgid", "GID", |_, w| call(libc::SYS_setgid, &mut [Number(number(w[0])?)]).map(drop)),
    Act::new("drop-bounding", "", |_, _| {
        let drop_it = [libc::PR_CAPBSET_DROP.into(), 0].map(Number);
        call(libc::SYS_prctl, &mut { drop_it }).map(drop)
    }),
    Act::new("keep-capabilities", "", |_, _| {
        call(libc::SYS_prctl, &mut [i64::from(libc::PR_SET_KEEPCAPS), 1].map(Number)).map(drop)
    }),
    Act::new("raise-limit", "", raise_limit),
    Act::new("ioperm", "", |_, _| call(libc::SYS_ioperm, &mut [0x80, 1, 1].map(Number)).map(drop)),
    Act::new("acct", "", |_, _| call(libc::SYS_acct, &mut [Number(0)]).map(drop)),
    Act::new("file-capability", "PATH", file_capability),
    Act::new("unshare", "WHAT", unshare),
    Act::new("raw-socket", "", |_, _| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW).map(drop)),
    Act::new("bind", "PORT", |_, w| bind(number(w[0])?)),
    Act::new("mark", "", mark),
    Act::new("interface-up", "", |_, _| interface_up()),
];

/// Sets the clock to its present time.
fn settime(_: &mut Actor, _: &[&str]) -> io::Result<()> {
    let mut time = [0; 16];
    call(libc::SYS_clock_gettime, &mut [Number(libc::CLOCK_REALTIME.into()), Room(&mut time)])?;
    call(libc::SYS_clock_settime, &mut [Number(libc::CLOCK_REALTIME.into()), Bytes(&time)]).map(drop)
}

/// Raises a hard limit.
fn raise_limit(_: &mut Actor, _: &[&str]) -> io::Result<()> {
    use nix::sys::resource::{Resource::RLIMIT_CORE, setrlimit};
    setrlimit(RLIMIT_CORE, 0, 4096)?;
    setrlimit(RLIMIT_CORE, 0, 8192)?;
    Ok(())
}

/// Gives a file cap_net_raw: struct vfs_cap_data, revision 2, effective.
fn file_capability(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let value = [0x0200_0001_u32, 1 << 13, 0, 0, 0].map(u32::to_ne_bytes).concat();
    set_attribute(words[0], "security.capability", &value)
}

fn unshare(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let names = [
        ("user", libc::CLONE_NEWUSER),
        ("mount", libc::CLONE_NEWNS),
        ("net", libc::CLONE_NEWNET),
        ("uts", libc::CLONE_NEWUTS),
        ("ipc", libc::CLONE_NEWIPC),
        ("files", libc::CLONE_FILES),
    ]
    .map(|(name, bit)| (name, i64::from(bit)));
    call(libc::SYS_unshare, &mut [Number(bits(words[0], &names)?)]).map(drop)
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<i64> {
    call(libc::SYS_socket, &mut [family.into(), kind.into(), protocol.into()].map(Number))
}

/// Binds a UDP socket to a port of any address.
fn bind(port: i64) -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut address = [0_u8; 16];
    address[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&(port as u16).to_be_bytes());
    call(libc::SYS_bind, &mut [Number(socket), Bytes(&address), Number(16)]).map(drop)
}

/// Marks a socket's packets, which needs CAP_NET_ADMIN.
fn mark(_: &mut Actor, _: &[&str]) -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let option = [i64::from(libc::SOL_SOCKET), libc::SO_MARK.into()];
    call(
        libc::SYS_setsockopt,
        &mut [Number(socket), Number(option[0]), Number(option[1]), Bytes(&[1, 0, 0, 0]), Number(4)],
    )
    .map(drop)
}

/// Sets the loopback interface up. The socket is closed at exec.
pub(crate) fn interface_up() -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)?;
    let mut request = [0_u8; 40];
    request[..2].copy_from_slice(b"lo");
    request[16] = libc::IFF_UP as u8;
    call(libc::SYS_ioctl, &mut [Number(socket), Number(libc::SIOCSIFFLAGS as i64), Room(&mut request)]).map(drop)
}
