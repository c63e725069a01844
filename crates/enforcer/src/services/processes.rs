//! Processes, as proc shows them.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use crate::labels::alone::{self, REQUEST_TIMEOUT};

/// Where proc is mounted.
pub(crate) const PROC: &str = "/proc";

/// The maximum number of bytes of arguments that are examined.
const MAX_ARGUMENTS_LENGTH: u64 = 4096;

/// The file that a process executes; `None`: it is the kernel's, or gone.
pub(crate) fn program(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("exe")).ok().map(without_mark)
}

/// The script that a process runs: its first argument that is a path. The arguments are in the memory of the process,
/// which need not answer.
pub(crate) fn script_of(process: &Path) -> io::Result<Option<PathBuf>> {
    let arguments = File::open(process.join("cmdline"))?;
    alone::ask(arguments.as_fd(), REQUEST_TIMEOUT, |file| {
        let mut arguments = Vec::new();
        File::from(file.try_clone_to_owned()?).take(MAX_ARGUMENTS_LENGTH).read_to_end(&mut arguments)?;
        Ok(script(&arguments))
    })
}

/// The first argument that could be a script. Interpreters take options before it.
fn script(arguments: &[u8]) -> Option<PathBuf> {
    let mut arguments = arguments.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy);
    let first = arguments.find(|argument| !argument.starts_with('-'))?;
    Some(PathBuf::from(first.into_owned())).filter(|path| path.is_absolute())
}

/// The path without the mark that the kernel adds when the file has no name any more. Another file may have the name by
/// now.
fn without_mark(path: PathBuf) -> PathBuf {
    let text = path.to_string_lossy();
    text.strip_suffix(" (deleted)").map_or_else(|| path.clone(), PathBuf::from)
}

/// The system manager's unit of a process: the first of its cgroups, from the root, that is not a slice.
pub(crate) fn unit(process: &Path) -> Option<String> {
    let text = fs::read_to_string(process.join("cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    unit_of(path)
}

fn unit_of(cgroup: &str) -> Option<String> {
    let unit = cgroup.split('/').find(|name| !name.is_empty() && !name.ends_with(".slice"))?;
    // systemd puts an underscore before a name that looks like a file's (cg_escape).
    Some(unit.strip_prefix('_').unwrap_or(unit).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_unit_that_a_cgroup_is_of() {
        let of = |path| unit_of(path).unwrap_or_default();
        assert_eq!(of("/system.slice/web.service"), "web.service");
        assert_eq!(of("/system.slice/system-web.slice/web@1.service/deep"), "web@1.service");
        assert_eq!(of("/user.slice/user-1.slice/user@1.service/app.slice/web.service"), "user@1.service");
        assert_eq!(of("/system.slice/_cpu.service"), "cpu.service");
        assert_eq!(of("/system.slice"), "");
        assert_eq!(of("/"), "");
    }

    #[test]
    fn finds_a_script_by_the_first_argument_that_is_no_option() {
        let of = |arguments: &[u8]| script(arguments);
        assert_eq!(of(b"/usr/bin/python3\0-u\0/srv/web.py\0x\0"), Some("/srv/web.py".into()));
        assert_eq!(of(b"sleep\x00009\0"), None);
        assert_eq!(of(b"nginx: master process /usr/sbin/nginx -g daemon on;\0"), None);
        assert_eq!(of(b""), None);
    }

    #[test]
    fn knows_a_program_that_was_replaced_by_its_name() {
        assert_eq!(without_mark("/usr/sbin/nginx (deleted)".into()), Path::new("/usr/sbin/nginx"));
        assert_eq!(without_mark("/usr/sbin/nginx".into()), Path::new("/usr/sbin/nginx"));
    }
}
