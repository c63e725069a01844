//! Processes that run when the guard starts, and would be guarded if they were executed now.
//!
//! Of a script only the interpreter is known. Whoever executes something while this looks at it is seen by the hooks.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs::{self, File},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use tollgate_abi::guard::{
    TG_GUARD_BY_DAEMON, TG_GUARD_BY_SETUID, TG_GUARD_IN_DOMAIN, TG_GUARD_PATH, tg_guard_program_of, tg_guard_task,
};
use tollgate_guard::{Class, Database, Digest, Mode};

use crate::guarded::Domains;

/// What /proc says of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// The processes, by their numbers, and how the programs keep them.
pub(super) fn find(database: &Database, domains: Option<&Domains>) -> Vec<(u32, tg_guard_task)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let mut digests = Digests::default();
    let guarded = |entry: fs::DirEntry| {
        let number = number(&entry)?;
        let domain = if domains.is_some_and(|domains| domains.have(number)) { TG_GUARD_IN_DOMAIN } else { 0 };
        Some((number, look(&entry.path(), domain, database, &mut digests)?))
    };
    processes.filter_map(guarded).collect()
}

/// Digests of programs, by device and inode: many processes have the same one, and a digest takes time.
#[derive(Default)]
struct Digests(HashMap<(u64, u64), Digest>);

impl Digests {
    fn of(&mut self, program: &Path) -> Option<Digest> {
        let file = File::open(program).ok()?;
        let found = file.metadata().ok()?;
        match self.0.entry((found.dev(), found.ino())) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(new) => Some(*new.insert(Digest::read(file).ok()?)),
        }
    }
}

/// How a process is guarded, whose domain the policy marks (`TG_GUARD_IN_DOMAIN`) or not (0). `None`: it is not guarded, or
/// has ended.
fn look(process: &Path, domain: u32, database: &Database, digests: &mut Digests) -> Option<tg_guard_task> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let (has_terminal, user) = (has_terminal(process)?, ids(&status, "Uid:")[0]);
    // What root does from a terminal is its own.
    let matters = is_privileged(&status) && !is_elsewhere(process) && (!has_terminal || user != 0);
    if !matters && domain == 0 {
        return None;
    }
    let digest = digests.of(&process.join("exe"))?;
    let known = database.name_of(&digest).and_then(|name| database.program(name));
    let is_daemon = !has_terminal
        && (database.default_mode(Class::Daemon) != Mode::Off || known.is_some_and(|known| known.mode >= Mode::Warn));
    let class = match matters {
        true if is_daemon => TG_GUARD_BY_DAEMON,
        true if user != 0 => TG_GUARD_BY_SETUID,
        _ => 0,
    };
    let class = Some(class | domain).filter(|class| *class != 0)?;
    let mut program = tg_guard_program_of { content: digest.words(), path: [0; TG_GUARD_PATH as usize] };
    let path = fs::read_link(process.join("exe")).ok()?;
    let path = path.as_os_str().as_bytes();
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    if path.len() < program.path.len() {
        program.path.iter_mut().zip(path).for_each(|(to, byte)| *to = *byte as _);
    }
    Some(tg_guard_task { class, program, ..tg_guard_task::default() })
}

/// The numbers of a line of /proc/PID/status: real, effective, saved and of files.
fn ids(status: &str, name: &str) -> [u32; 4] {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let mut numbers = line.split_whitespace().map_while(|number| number.parse().ok());
    std::array::from_fn(|_| numbers.next().unwrap_or_default())
}

/// As tg_guard_is_privileged.
fn is_privileged(status: &str) -> bool {
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).unwrap_or_default().trim();
    let [gid, egid, sgid, _] = ids(status, "Gid:");
    ids(status, "Uid:").contains(&0) || permitted.bytes().any(|digit| digit != b'0') || gid != egid || gid != sgid
}

/// Whether it is in another user namespace than the first one.
fn is_elsewhere(process: &Path) -> bool {
    let namespace = |of: &Path| fs::metadata(of.join("ns/user")).map(|found| found.ino()).ok();
    namespace(process) != namespace(Path::new("/proc/1"))
}

/// Whether it has a controlling terminal (`tty_nr` of proc(5)); `None`: it has ended.
fn has_terminal(process: &Path) -> Option<bool> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name may have blanks and brackets in it.
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().nth(4)? != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_privilege_in_each_id_and_capability() {
        let status = |uid: &str, gid: &str, permitted: &str| {
            format!("Name:\tx\nUid:\t{uid}\nGid:\t{gid}\nCapPrm:\t{permitted}\n")
        };
        let (user, group, none) = ("7\t7\t7\t7", "8\t8\t8\t8", "0000000000000000");
        assert!(!is_privileged(&status(user, group, none)));
        for (uid, gid, permitted) in [
            ("7\t0\t7\t7", group, none),
            ("7\t7\t7\t0", group, none),
            (user, "8\t9\t8\t8", none),
            (user, "8\t8\t9\t8", none),
            (user, group, "0000000000002000"),
        ] {
            assert!(is_privileged(&status(uid, gid, permitted)), "{uid} {gid} {permitted}");
        }
    }
}
