//! What processes listen on, according to `/proc/PID/net`.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

/// The state of a TCP socket that listens (`TCP_LISTEN`).
const LISTENS: u8 = 0x0a;
/// The state of a UDP socket that receives packets from any sender (`TCP_CLOSE`).
const TAKES: u8 = 0x07;
/// The flag of a unix socket that listens (`__SO_ACCEPTCON`).
const ACCEPTS: u32 = 1 << 16;

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// `tcp`.
    Tcp,
    /// `udp`.
    Udp,
}

impl Protocol {
    /// Its files below `/proc/PID/net`.
    #[must_use]
    pub fn files(self) -> [&'static str; 2] {
        match self {
            Self::Tcp => ["tcp", "tcp6"],
            Self::Udp => ["udp", "udp6"],
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.files()[0])
    }
}

/// A port, as in CIL's `portcon`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// The transport protocol.
    pub protocol: Protocol,
    /// The port number.
    pub number: u16,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol, self.number)
    }
}

/// The addresses on which processes listen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listening {
    /// Ports of TCP and UDP.
    pub ports: BTreeSet<Port>,
    /// The unix sockets that have a file.
    pub sockets: BTreeSet<PathBuf>,
}

/// The sockets among the open files of a process: `links` are the targets of the links in `/proc/PID/fd`, such as
/// `socket:[4711]`.
pub fn inodes<'l>(links: impl IntoIterator<Item = &'l str>) -> BTreeSet<u64> {
    let socket = |link: &str| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    links.into_iter().filter_map(socket).collect()
}

impl Listening {
    /// Adds the ports from one of the tables `tcp`, `tcp6`, `udp` and `udp6`, for sockets among `inodes`. `ephemeral`
    /// is the first port that the kernel assigns by itself: a UDP socket at or above it belongs to a client, and not to
    /// a server.
    pub fn add_inet(&mut self, protocol: Protocol, table: &str, inodes: &BTreeSet<u64>, ephemeral: u16) {
        for line in table.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, state, _, _, _, _, _, inode, ..] = words[..] else { continue };
            let number = local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
            let (Some(number), Ok(inode)) = (number.filter(|number| *number > 0), inode.parse()) else { continue };
            let is_open = match (protocol, u8::from_str_radix(state, 16)) {
                (Protocol::Tcp, Ok(state)) => state == LISTENS,
                (Protocol::Udp, Ok(state)) => state == TAKES && number < ephemeral,
                _ => false,
            };
            if is_open && inodes.contains(&inode) {
                self.ports.insert(Port { protocol, number });
            }
        }
    }

    /// Adds the listening sockets of the table `unix` likewise. Names that are not paths (`@name`) are left out.
    pub fn add_unix(&mut self, table: &str, inodes: &BTreeSet<u64>) {
        for line in table.lines().skip(1) {
            let mut words = line.split_whitespace().skip(3);
            let (Some(flags), Some(inode)) = (words.next(), words.nth(2)) else { continue };
            let (Ok(flags), Ok(inode)) = (u32::from_str_radix(flags, 16), inode.parse::<u64>()) else { continue };
            let path = line.find(" /").map(|at| Path::new(&line[at + 1..]));
            if let Some(path) = path.filter(|_| flags & ACCEPTS != 0 && inodes.contains(&inode)) {
                self.sockets.insert(path.to_path_buf());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F95 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 15012 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F95 0100007F:D3A2 01 00000000:00000000 00:00000000 00000000   999        0 15020 1 0000000000000000 20 4 30 10 -1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 14001 1 0000000000000000 100 0 0 10 0
";
    const UDP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  123: 00000000:007B 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 15013 2 0000000000000000 0
  124: 00000000:A001 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 15014 2 0000000000000000 0
";
    const UNIX: &str = "Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 15015 /run/notes/a socket
0000000000000000: 00000003 00000000 00000000 0001 03 15016 /run/notes/other
0000000000000000: 00000002 00000000 00010000 0001 01 15017 @abstract
0000000000000000: 00000002 00000000 00010000 0001 01 15015
";

    fn port(protocol: Protocol, number: u16) -> Port {
        Port { protocol, number }
    }

    #[test]
    fn tells_the_ports_that_the_processes_listen_on_and_no_others() {
        let held =
            inodes(["socket:[15012]", "socket:[15013]", "socket:[15014]", "socket:[15020]", "/dev/null", "pipe:[9]"]);
        assert_eq!(held.len(), 4);
        let mut listening = Listening::default();
        listening.add_inet(Protocol::Tcp, TCP, &held, 32768);
        listening.add_inet(Protocol::Udp, UDP, &held, 32768);
        assert_eq!(listening.ports, [port(Protocol::Tcp, 8085), port(Protocol::Udp, 123)].into());
    }

    #[test]
    fn tells_the_files_of_unix_sockets() {
        let mut listening = Listening::default();
        listening.add_unix(UNIX, &[15015, 15016, 15017].into());
        assert_eq!(listening.sockets, [PathBuf::from("/run/notes/a socket")].into());
    }

    #[test]
    fn passes_over_what_it_cannot_read() {
        let mut listening = Listening::default();
        listening.add_inet(Protocol::Tcp, "head\n 0: x y z\n\n0: 00:xyz 0 0A 0 0 0 0 0 7\n", &[7].into(), 32768);
        listening.add_unix("head\nx\n0: 0 0 zz 0 0 7 /a\n", &[7].into());
        assert_eq!(listening, Listening::default());
    }
}
