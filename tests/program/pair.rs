//! Two guests on a wire: their addresses, the programs that they talk with, and points at which they meet.

use std::{collections::BTreeMap, path::PathBuf};

use tollgate_host::{Cache, Packages};

use crate::program::{
    Scratch, entries,
    guests::take,
    machine::source,
    steps::{Guest, Step, steps},
    word,
};

/// Packages of one suite, whatever the system is: iproute2 and netlabel-tools, and what they need.
const TOOLS: [&str; 14] = [
    "iproute2/bookworm",
    "netlabel-tools/bookworm",
    "libbpf1/bookworm",
    "libbsd0/bookworm",
    "libc6/bookworm",
    "libcap2/bookworm",
    "libelf1/bookworm",
    "libmd0/bookworm",
    "libmnl0/bookworm",
    "libnl-3-200/bookworm",
    "libnl-genl-3-200/bookworm",
    "libxtables12/bookworm",
    "zlib1g/bookworm",
    "libselinux1/bookworm",
];

/// An archive of the programs `ip`, `tc` and `netlabelctl` with their libraries.
pub(crate) fn tools(scratch: &Scratch) -> PathBuf {
    let cache = Cache::of_user().unwrap();
    let unpacked =
        cache.folder("network-tools/bookworm", |fresh| Packages::new(&cache).unpack(&TOOLS, fresh).map(drop));
    let archive = scratch.path("tools.tar");
    let pack = ["-c", "-f", word(&archive), "--exclude", "gconv", "-C"];
    let mut tar = scratch.command("tar", &pack);
    tar.arg(unpacked.unwrap()).args([
        "bin/ip",
        "sbin/tc",
        "usr/sbin/netlabelctl",
        "lib/x86_64-linux-gnu",
        "usr/lib/x86_64-linux-gnu",
    ]);
    scratch.finish(tar).with(0);
    archive
}

/// The program of tests/network, static because guests have no library.
pub(crate) fn talk(scratch: &Scratch) -> PathBuf {
    let out = scratch.path("talk");
    let mut sources = entries(&source("tests/network"));
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    let mut cc = scratch.command("cc", &["-static", "-O2", "-Wall", "-Wextra", "-Werror", "-o", word(&out)]);
    cc.args(sources);
    scratch.finish(cc).with(0);
    out
}

/// Two guests, 10.77.0.1 and 10.77.0.2, fd00:77::1 and fd00:77::2.
pub(crate) struct Pair<'s> {
    ends: [Guest<'s>; 2],
}

impl<'s> Pair<'s> {
    /// Joins two guests, and gives them the functions of tests/network/names.sh.
    pub(crate) fn new(scratch: &'s Scratch, guests: [Guest<'s>; 2]) -> Self {
        let (tools, talk) = (tools(scratch), talk(scratch));
        let names = std::fs::read_to_string(source("tests/network/names.sh")).expect("read the guests' functions");
        let sockets = ["one", "two"].map(|name| scratch.path(name));
        let mut number = 0;
        let ends = guests.map(|guest| {
            number += 1;
            let guest = guest.with(&tools, "/tools.tar").with(&talk, "/bin/talk").named(&format!("script{number}"));
            let guest = guest.wire(&sockets[number - 1], &sockets[2 - number]);
            guest.names(&format!("own={number}\n{names}")).step("join", "join")
        });
        Self { ends }
    }

    /// Adds functions for both.
    pub(crate) fn names(self, functions: &str) -> Self {
        Self { ends: self.ends.map(|guest| guest.names(functions)) }
    }

    /// Adds a step of both.
    pub(crate) fn both(self, name: &str, line: &str) -> Self {
        Self { ends: self.ends.map(|guest| guest.step(name, line)) }
    }

    /// Adds a step of the first or the second (0 or 1).
    pub(crate) fn at(self, end: usize, name: &str, line: &str) -> Self {
        let mut place = 0;
        let ends = self.ends.map(|guest| {
            place += 1;
            if place == end + 1 { guest.step(name, line) } else { guest }
        });
        Self { ends }
    }

    /// Neither goes on before both are here.
    pub(crate) fn meet(self, name: &str) -> Self {
        self.both(&format!("meet at {name}"), &format!("meet {name}"))
    }

    /// Boots both and runs their steps.
    pub(crate) fn run(self) -> [BTreeMap<String, Step>; 2] {
        let ready = self.ends.map(Guest::prepare);
        let _places = take(2);
        let running = ready.map(|(scratch, command)| scratch.start(command));
        running.map(|running| steps(&running.finish().with(0).stdout))
    }
}
