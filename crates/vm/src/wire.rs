//! Wires: the network between two guests. Each end is a Unix datagram socket, and a frame is a datagram to the other end.
//!
//! The ends may come in any order: as on a real wire, frames are lost while nobody is at the other end.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::FileTypeExt, net::UnixDatagram},
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{Error, error::Context, value};

/// The drivers of the guest's network card.
pub const DRIVERS: [&str; 2] = ["virtio_pci", "virtio_net"];
/// The card, which is the guest's only one.
pub(crate) const CARD: &str = "/sys/class/net/eth0";
/// The longest path of a Unix socket: `sun_path` without its last byte.
const LONGEST_PATH: usize = 107;

/// A guest's end of a wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wire {
    /// The socket of this guest, which is made when the guest starts and removed when it ends.
    pub own: PathBuf,
    /// The socket of the guest at the other end.
    pub other: PathBuf,
}

impl FromStr for Wire {
    type Err = String;

    /// `OWN:OTHER`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((own, other)) if !own.is_empty() && !other.is_empty() && own != other => {
                Ok(Self { own: own.into(), other: other.into() })
            }
            _ => Err("name both ends, this guest's first: OWN:OTHER, two different paths".into()),
        }
    }
}

/// An end that is in use. The socket is removed when this is dropped.
pub(crate) struct Plugged<'w>(&'w Wire);

impl Drop for Plugged<'_> {
    fn drop(&mut self) {
        // It is not there if the emulator did not start.
        let _ = fs::remove_file(&self.0.own);
    }
}

impl Wire {
    /// Checks both ends before the emulator, which would replace any file, makes its own.
    ///
    /// # Errors
    ///
    /// [`Error::NoWire`] if a path is too long, or this end is a file of something else or another guest's.
    pub(crate) fn plug(&self) -> Result<Plugged<'_>, Error> {
        let refuse = |path: &Path, reason: &str| Error::NoWire { path: path.into(), reason: reason.into() };
        for path in [&self.own, &self.other] {
            if path.as_os_str().as_bytes().len() > LONGEST_PATH {
                return Err(refuse(path, "a socket's path has 107 bytes at most; name a shorter one"));
            }
        }
        match fs::symlink_metadata(&self.own) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Plugged(self)),
            Err(e) => return Err(e).context(format!("look at {}", self.own.display())),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(refuse(&self.own, "this is a file already; name a path that is free"));
            }
            Ok(_) => {}
        }
        // A guest that was killed has left its socket, which nobody has open.
        match UnixDatagram::unbound().and_then(|socket| socket.connect(&self.own)) {
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(Plugged(self)),
            _ => Err(refuse(&self.own, "another guest or program is at this end; name the other one first")),
        }
    }

    /// QEMU's arguments for the card and its end. A network card without a ROM boots nothing.
    pub(crate) fn arguments(&self) -> [OsString; 4] {
        let (own, other) = (value::of(&self.own), value::of(&self.other));
        let end = format!("dgram,id=wire,local.type=unix,local.path={own},remote.type=unix,remote.path={other}");
        let card = format!("virtio-net-pci,netdev=wire,mac={},romfile=", self.address());
        ["-netdev".into(), end.into(), "-device".into(), card.into()]
    }

    /// The same as commands for QEMU's monitor, for a machine that runs.
    pub(crate) fn commands(&self) -> [(&'static str, Value); 2] {
        let unix = |path: &Path| json!({ "type": "unix", "path": path.to_string_lossy() });
        let end = json!({ "type": "dgram", "id": "wire", "local": unix(&self.own), "remote": unix(&self.other) });
        let card = json!({ "driver": "virtio-net-pci", "netdev": "wire", "mac": self.address(), "romfile": "" });
        [("netdev_add", end), ("device_add", card)]
    }

    /// The card's hardware address: QEMU's prefix, and three bytes that differ between the two ends.
    fn address(&self) -> String {
        let digest = Sha256::digest(self.own.as_os_str().as_bytes());
        format!("52:54:00:{:02x}:{:02x}:{:02x}", digest[0], digest[1], digest[2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(own: &Path) -> Wire {
        Wire { own: own.into(), other: "/w,1/b".into() }
    }

    fn refusal(wire: &Wire) -> String {
        wire.plug().err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn reads_both_ends_and_refuses_one() {
        assert_eq!("/w/a:/w,1/b".parse(), Ok(wire(Path::new("/w/a"))));
        for text in ["", "/w/a", "/w/a:", ":/w/b", "/w/a:/w/a"] {
            assert!(Wire::from_str(text).unwrap_err().contains("OWN:OTHER"), "{text}");
        }
    }

    #[test]
    fn connects_a_card_to_two_sockets() {
        let arguments = wire(Path::new("/w/a")).arguments().map(|a| a.to_string_lossy().into_owned()).join(" ");
        let end = "-netdev dgram,id=wire,local.type=unix,local.path=/w/a,remote.type=unix,remote.path=/w,,1/b";
        assert!(
            arguments.starts_with(&format!("{end} -device virtio-net-pci,netdev=wire,mac=52:54:00:")),
            "{arguments}"
        );
        assert!(arguments.ends_with(",romfile="), "{arguments}");
    }

    #[test]
    fn plugs_the_same_card_into_a_machine_that_runs() {
        let wire = wire(Path::new("/w/a"));
        let [(first, end), (second, card)] = wire.commands();
        assert_eq!((first, second), ("netdev_add", "device_add"));
        assert_eq!(end["local"]["path"], "/w/a");
        assert_eq!(end["remote"]["path"], "/w,1/b");
        let arguments = wire.arguments().map(|a| a.to_string_lossy().into_owned()).join(" ");
        assert!(arguments.contains(card["mac"].as_str().unwrap()), "{arguments} {card}");
    }

    #[test]
    fn gives_the_ends_different_addresses() {
        assert_ne!(wire(Path::new("/w/a")).address(), wire(Path::new("/w/b")).address());
        assert_eq!(wire(Path::new("/w/a")).address(), wire(Path::new("/w/a")).address());
    }

    #[test]
    fn refuses_an_end_that_is_a_file_or_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "precious").unwrap();
        assert!(refusal(&wire(&path)).contains("name a path that is free"));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_file(&path).unwrap();
        let held = UnixDatagram::bind(&path).unwrap();
        assert!(refusal(&wire(&path)).contains("another guest or program is at this end"));
        drop(held);
        // Left by one that was killed.
        assert_eq!(refusal(&wire(&path)), "");
        let long = folder.path().join("x".repeat(LONGEST_PATH));
        assert!(refusal(&wire(&long)).contains("107 bytes at most"));
    }

    #[test]
    fn removes_the_socket_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let wire = wire(&folder.path().join("a"));
        let plugged = wire.plug().unwrap();
        let _socket = UnixDatagram::bind(&wire.own).unwrap();
        drop(plugged);
        assert!(!wire.own.exists());
    }
}
