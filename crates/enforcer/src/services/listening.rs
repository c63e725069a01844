//! Where processes listen, as proc shows it: sockets of the daemon's network namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Tables of sockets, their names, and the state of a socket that waits for others.
const TABLES: [(&str, &str, &str); 6] = [
    ("tcp", "tcp", "0A"),
    ("tcp6", "tcp", "0A"),
    ("udp", "udp", "07"),
    ("udp6", "udp", "07"),
    ("udplite", "udplite", "07"),
    ("udplite6", "udplite", "07"),
];

/// Where each process listens, for example `tcp 443`.
pub(crate) fn all(proc: &Path) -> BTreeMap<u32, BTreeSet<String>> {
    let mut sockets = BTreeMap::new();
    for (table, name, state) in TABLES {
        let text = fs::read_to_string(proc.join("net").join(table)).unwrap_or_default();
        sockets.extend(listening(&text, name, state));
    }
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let own = held(&entry.path()).iter().filter_map(|inode| sockets.get(inode).cloned()).collect::<BTreeSet<_>>();
        if !own.is_empty() {
            found.insert(process, own);
        }
    }
    found
}

/// The inodes of the sockets in a table that have a state, and where they listen.
fn listening(text: &str, name: &str, state: &str) -> Vec<(u64, String)> {
    let lines = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let waiting = lines.filter(|words| words.get(3) == Some(&state));
    waiting
        .filter_map(|words| {
            let port = u16::from_str_radix(words[1].rsplit_once(':')?.1, 16).ok()?;
            Some((words.get(9)?.parse().ok()?, format!("{name} {port}")))
        })
        .collect()
}

/// The inodes of the sockets that a process has open.
fn held(process: &Path) -> Vec<u64> {
    let entries = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_sockets_that_wait_for_others() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n\
             1: 0100007F:01BB 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1\n";
        assert_eq!(listening(text, "tcp", "0A"), [(4711, "tcp 443".to_owned())]);
        assert_eq!(listening("", "tcp", "0A"), []);
    }
}
