//! Landlock: a ruleset that handles every file access right of the running kernel.

use std::{env, path::Path};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};

use super::securityfs::require;
use crate::{Error, error::Context};

/// Folders that the workloads read, and whose programs they start.
const READ: &[&str] = &["/bin", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/usr"];

/// Folders that the workloads write, in addition to their own directory: null, shared memory, their own settings. Message
/// queues are opened without a path from `/`, so that only a rule on the root of their own file system reaches them.
const WRITE: &[&str] = &["/dev", "/dev/mqueue", "/proc/self"];

/// The newest ABI whose rights are known here; on an older kernel the crate requests what that kernel has.
const KNOWN: ABI = ABI::V9;

/// Restricts the calling thread to reading programs and libraries, and to everything beneath `work`.
pub(super) fn restrict(work: &Path) -> Result<String, Error> {
    require("landlock")?;
    let program = env::current_exe().context("find this program's own file")?;
    let read = READ.iter().map(Path::new).chain([program.as_path()]);
    let write = WRITE.iter().map(Path::new).chain([work]);
    let status = enforce(read, write).map_err(|error| Error::Unavailable(format!("landlock: {error}")))?;
    match status {
        RulesetStatus::NotEnforced => Err(Error::Unavailable(
            "landlock enforces nothing here; a kernel with CONFIG_SECURITY_LANDLOCK is needed".to_owned(),
        )),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            Ok(format!("landlock: every file access right of this kernel handled, {} writable", work.display()))
        }
    }
}

fn enforce<'a>(
    read: impl Iterator<Item = &'a Path>,
    write: impl Iterator<Item = &'a Path>,
) -> Result<RulesetStatus, landlock::RulesetError> {
    let all = AccessFs::from_all(KNOWN);
    let reading = AccessFs::from_read(KNOWN);
    let mut ruleset = Ruleset::default().handle_access(all)?.create()?;
    let rules = read.map(|path| (path, reading)).chain(write.map(|path| (path, all)));
    for (path, access) in rules {
        // A folder that this machine does not have needs no rule.
        if let Ok(parent) = PathFd::new(path) {
            ruleset = ruleset.add_rule(PathBeneath::new(parent, rights(path, access)))?;
        }
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

/// A file takes no right that concerns the content of a folder.
fn rights(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(KNOWN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_a_file_no_right_of_a_folder() {
        let file = rights(Path::new("/proc/self/status"), AccessFs::from_read(KNOWN));
        assert!(file.contains(AccessFs::ReadFile));
        assert!(!file.contains(AccessFs::ReadDir));
        assert!(rights(Path::new("/proc"), AccessFs::from_read(KNOWN)).contains(AccessFs::ReadDir));
    }

    #[test]
    fn leaves_the_forbidden_file_out() {
        let allowed = READ.iter().chain(WRITE);
        for path in allowed {
            assert!(!Path::new(crate::oracle::FORBIDDEN).starts_with(path), "{path}");
        }
    }
}
