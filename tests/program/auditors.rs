//! The usual programs for audit logs: auditd's and SELinux's, from Debian's packages, from the cache or a network. They run
//! from the cache, with a Python of their own; nothing is installed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tollgate_host::{Cache, Packages};

use crate::program::{Ended, Scratch, word};

/// Packages of one suite, whatever the system is.
const TOOLS: [&str; 16] = [
    "auditd/bookworm",
    "libaudit1/bookworm",
    "libauparse0/bookworm",
    "libcap-ng0/bookworm",
    "libexpat1/bookworm",
    "libffi8/bookworm",
    "libpcre2-8-0/bookworm",
    "libpython3.11-minimal/bookworm",
    "libpython3.11-stdlib/bookworm",
    "libselinux1/bookworm",
    "libsepol2/bookworm",
    "policycoreutils-python-utils/bookworm",
    "python3-selinux/bookworm",
    "python3-sepolgen/bookworm",
    "python3.11-minimal/bookworm",
    "zlib1g/bookworm",
];

/// The programs, unpacked.
pub(crate) fn tools() -> PathBuf {
    let cache = Cache::of_user().unwrap();
    let unpacked = cache.folder("audit-tools/bookworm", |fresh| Packages::new(&cache).unpack(&TOOLS, fresh).map(drop));
    unpacked.unwrap()
}

/// One of the programs, with its own libraries.
pub(crate) fn tool(scratch: &Scratch, program: &Path, arguments: &[&str]) -> Command {
    let tools = tools();
    let libraries = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"].map(|path| tools.join(path));
    let mut command = scratch.command(tools.join(program), arguments);
    command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap()).env("LC_ALL", "C").env("TZ", "UTC");
    command.env("PYTHONHOME", tools.join("usr")).env("PYTHONPATH", tools.join("usr/lib/python3/dist-packages"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// auditd's search in a log.
pub(crate) fn ausearch(scratch: &Scratch, log: &Path, arguments: &[&str]) -> Ended {
    scratch.finish(tool(scratch, Path::new("sbin/ausearch"), &[&["-if", word(log)], arguments].concat()))
}

/// The rules that would allow what a log says a built policy denied.
pub(crate) fn audit2allow(scratch: &Scratch, built: &Path, log: &Path) -> Vec<String> {
    let script = tools().join("usr/bin/audit2allow");
    let image = scratch.path("image");
    scratch.run(&["policy", "export", word(built), "--image", word(&image)]).with(0);
    let arguments = [word(&script), "-p", word(&image), "-i", word(log)];
    let told = scratch.finish(tool(scratch, Path::new("usr/bin/python3.11"), &arguments)).with(0).stdout;
    told.lines().filter(|line| line.starts_with("allow")).map(Into::into).collect()
}
