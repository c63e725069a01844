//! Why a daemon that exists does not run.

use std::{fs, path::Path};

/// Where cgroup v2 is mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// If a process is stopped or frozen: the reason, and the command that lets it continue. `None` if it runs, or if this
/// cannot be known.
pub(super) fn halted(process: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let cgroups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    if stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't'])) {
        return Some(format!("it is stopped: `kill -CONT {process}`"));
    }
    frozen(Path::new(CGROUPS), &cgroups)
}

/// The cgroup that is frozen: the process's own or one above it.
fn frozen(root: &Path, cgroups: &str) -> Option<String> {
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let above = Path::new(own).ancestors().filter(|path| !path.as_os_str().is_empty());
    let freeze = |path: &Path| root.join(path).join("cgroup.freeze");
    let frozen = above.map(freeze).find(|file| fs::read_to_string(file).is_ok_and(|text| text.trim() == "1"))?;
    Some(format!("its cgroup is frozen: `echo 0 > {}`", frozen.display()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn finds_a_process_that_is_stopped() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        assert_eq!(halted(child.id().cast_signed()), None);
        let process = nix::unistd::Pid::from_raw(child.id().cast_signed());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGSTOP).unwrap();
        let why = std::iter::repeat_with(|| halted(child.id().cast_signed())).find_map(|why| why);
        assert_eq!(why, Some(format!("it is stopped: `kill -CONT {}`", child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn finds_the_cgroup_that_is_frozen() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        for (path, text) in [("a/cgroup.freeze", "1\n"), ("a/b/cgroup.freeze", "0\n")] {
            fs::write(root.path().join(path), text).unwrap();
        }
        let why = frozen(root.path(), "1:name=x:/y\n0::/a/b\n").unwrap();
        assert!(why.contains("/a/cgroup.freeze`"), "{why}");
        assert_eq!(frozen(root.path(), "0::/\n"), None);
        assert_eq!(frozen(root.path(), "0::/c\n"), None);
    }
}
