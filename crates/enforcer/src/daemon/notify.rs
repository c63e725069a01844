//! Telling the service manager that the daemon is ready (sd_notify(3)): one datagram.

use std::{
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
};

/// Sends a state to the socket that `NOTIFY_SOCKET` names; nothing when it names none.
pub(super) fn notify(socket: Option<&str>, state: &str) -> io::Result<()> {
    let Some(name) = socket.filter(|name| !name.is_empty()) else { return Ok(()) };
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_who_listens_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        notify(path.to_str(), "READY=1").unwrap();
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1");
        notify(None, "READY=1").unwrap();
        notify(Some(""), "READY=1").unwrap();
        drop(manager);
        assert!(notify(path.to_str(), "READY=1").is_err());
    }
}
