//! A network of guests and of this machine's namespaces: a bridge in a namespace of its own, to which each of them has a
//! cable. A guest's end is a wire, whose frames threads carry to a tap and back.

use std::{
    ffi::CString,
    fs::File,
    io::{Read, Write},
    os::{fd::AsRawFd, unix::net::UnixDatagram},
    path::PathBuf,
    sync::Arc,
    thread,
};

use crate::program::{Scratch, namespace::Namespace};

/// The longest frame.
const FRAME: usize = 65_536;
/// `TUNSETIFF`, and frames without a header before them (linux/if_tun.h).
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const TAP_WITHOUT_HEADER: u16 = 0x1002;

/// The bridge. Its own address is 10.77.9.100.
pub(crate) struct Switch {
    pub(crate) hub: Namespace,
}

impl Switch {
    pub(crate) fn new() -> Self {
        let hub = Namespace::new();
        for line in [
            "link set lo up",
            "link add bridge0 type bridge",
            "addr add 10.77.9.100/24 dev bridge0",
            "link set bridge0 up",
        ] {
            hub.ip(line);
        }
        Self { hub }
    }

    /// A namespace with the address 10.77.9.NUMBER. Its cable is called `cableNUMBER`.
    pub(crate) fn namespace(&self, number: u8) -> Namespace {
        let end = Namespace::new();
        self.hub.ip(&format!("link add cable{number} type veth peer name eth0 netns {}", end.path()));
        self.plug(&format!("cable{number}"));
        for line in
            [format!("addr add 10.77.9.{number}/24 dev eth0"), "link set eth0 up".into(), "link set lo up".into()]
        {
            end.ip(&line);
        }
        end
    }

    /// The ends of a guest's wire: its own first. Its cable is called `tapNUMBER`.
    pub(crate) fn wire(&self, scratch: &Scratch, number: u8) -> [PathBuf; 2] {
        let [own, other] = ["guest", "tap"].map(|end| scratch.path(&format!("{end}{number}")));
        let (tap, socket) = (self.tap(number), Arc::new(UnixDatagram::bind(&other).unwrap()));
        let (mut to, mut from, sends, receives, guest) =
            (tap.try_clone().unwrap(), tap, Arc::clone(&socket), socket, own.clone());
        // Both go on until the test program ends. A frame is lost while no guest is there, as on a wire.
        thread::spawn(move || {
            let mut frame = [0; FRAME];
            while let Ok(length) = from.read(&mut frame) {
                let _ = sends.send_to(&frame[..length], &guest);
            }
        });
        thread::spawn(move || {
            let mut frame = [0; FRAME];
            while let Ok(length) = receives.recv(&mut frame) {
                let _ = to.write(&frame[..length]);
            }
        });
        [own, other]
    }

    /// Pulls a cable out, or plugs it in again.
    pub(crate) fn set(&self, cable: &str, is_plugged: bool) {
        self.hub.ip(&format!("link set {cable} {}", if is_plugged { "up" } else { "down" }));
    }

    fn plug(&self, cable: &str) {
        self.hub.ip(&format!("link set {cable} master bridge0"));
        self.set(cable, true);
    }

    fn tap(&self, number: u8) -> File {
        let name = format!("tap{number}");
        let tap = self.hub.within(|| {
            let tap = File::options().read(true).write(true).open("/dev/net/tun").expect("open /dev/net/tun");
            // `struct ifreq`: a name of 16 bytes, and the flags.
            let mut request = [0_u8; 40];
            let text = CString::new(name.as_str()).unwrap();
            request[..text.as_bytes().len()].copy_from_slice(text.as_bytes());
            request[16..18].copy_from_slice(&TAP_WITHOUT_HEADER.to_ne_bytes());
            // SAFETY: the kernel reads and writes a `struct ifreq`, which has 40 bytes.
            let made = unsafe { libc::ioctl(tap.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()) };
            assert_eq!(made, 0, "make {name}: {}", std::io::Error::last_os_error());
            tap
        });
        self.plug(&name);
        tap
    }
}
