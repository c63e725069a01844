//! The service manager. The daemon tells it when it is ready (sd_notify(3)), and gives it a descriptor of the pins to
//! keep for the next daemon (sd_pid_notify_with_fds(3), sd_listen_fds(3)). So the programs stay even if the file system
//! that they are pinned in is unmounted.

use std::{
    env,
    io::{self, IoSlice},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixDatagram},
    },
    process,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg},
};

/// The name of the descriptor.
const PINS: &str = "pins";
/// The first descriptor that a service manager passes.
const FIRST: RawFd = 3;

/// Reports that the daemon is ready, and gives the service manager the descriptor to keep in place of an earlier one.
/// Does nothing if there is no service manager.
pub fn ready(pins: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let Some(socket) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Ok(()) };
    let socket = socket.as_bytes();
    if place(&listening()).is_some() {
        notify(socket, &format!("FDSTOREREMOVE=1\nFDNAME={PINS}"), None)?;
    }
    match pins {
        // A descriptor of a path cannot be polled. Without FDPOLL=0 systemd would not keep it
        // (service_add_fd_store()).
        Some(pins) => notify(socket, &format!("READY=1\nFDSTORE=1\nFDPOLL=0\nFDNAME={PINS}"), Some(pins)),
        None => notify(socket, "READY=1", None),
    }
}

pub(super) fn notify(socket: &[u8], state: &str, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => UnixAddr::new_abstract(name)?,
        None => UnixAddr::new(socket)?,
    };
    let descriptors: Vec<RawFd> = with.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let rights = if descriptors.is_empty() { &[][..] } else { &rights[..] };
    let from = UnixDatagram::unbound()?;
    let text = [IoSlice::new(state.as_bytes())];
    sendmsg(from.as_fd().as_raw_fd(), &text, rights, MsgFlags::empty(), Some(&address))?;
    Ok(())
}

/// The pins' directory that was kept for this process. It can be taken only once.
#[must_use]
pub fn kept() -> Option<OwnedFd> {
    let number = FIRST + RawFd::try_from(place(&listening())?).ok()?;
    // SAFETY: the service manager has opened it for this process, and nobody else here looks for what it has opened.
    fcntl(unsafe { BorrowedFd::borrow_raw(number) }, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    // SAFETY: as above, and it is open.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// What the service manager says about the descriptors: their process, number and names.
fn listening() -> [String; 3] {
    ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"].map(|name| env::var(name).unwrap_or_default())
}

/// Which of them is that of the pins.
fn place([process, count, names]: &[String; 3]) -> Option<usize> {
    let count: usize = count.parse().ok().filter(|_| *process == process::id().to_string())?;
    names.split(':').take(count).position(|name| name == PINS)
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;

    use nix::{
        cmsg_space,
        sys::{
            socket::{ControlMessageOwned, recvmsg},
            stat::fstat,
        },
    };

    use super::*;

    #[test]
    fn tells_who_listens_and_has_a_descriptor_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let kept = std::fs::File::open(folder.path()).unwrap();
        notify(path.as_os_str().as_bytes(), "READY=1", Some(kept.as_fd())).unwrap();
        let (mut text, mut space) = ([0; 64], cmsg_space!(RawFd));
        let mut buffer = [IoSliceMut::new(&mut text)];
        let message =
            recvmsg::<()>(manager.as_raw_fd(), &mut buffer, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC).unwrap();
        let (length, rights) = (message.bytes, message.cmsgs().unwrap().next());
        let Some(ControlMessageOwned::ScmRights(came)) = rights else { panic!("{rights:?}") };
        // SAFETY: it has just come, and nobody else knows it.
        let came = unsafe { OwnedFd::from_raw_fd(came[0]) };
        assert_eq!(fstat(&came).unwrap().st_ino, fstat(&kept).unwrap().st_ino);
        assert_eq!(&text[..length], b"READY=1");
        drop(manager);
        assert!(notify(path.as_os_str().as_bytes(), "READY=1", None).is_err());
    }

    #[test]
    fn takes_what_was_kept_for_this_process_by_its_name() {
        let own = process::id().to_string();
        let said = |process: &str, count: &str, names: &str| place(&[process, count, names].map(str::to_owned));
        assert_eq!(said(&own, "2", "stored:pins"), Some(1));
        assert_eq!(said(&own, "1", "stored:pins"), None);
        assert_eq!(said("1", "1", "pins"), None);
        assert_eq!(said("", "", ""), None);
    }
}
