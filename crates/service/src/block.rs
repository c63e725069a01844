//! A service's block of CIL, and its lines of `file_contexts`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
};

use crate::{
    listening::{Port, Protocol},
    service::{Entry, Kind, Place, Service},
};

/// How a domain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Permissive, with nothing allowed, so that its acts are learnt.
    Learn,
    /// Enforced, with the permissions of the policy's macros.
    Macro,
}

/// What the policy in force says about a service's ports and files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The types of its ports; `None` for a port that has no type of its own.
    pub ports: BTreeMap<Port, Option<String>>,
    /// Files that belong to another domain already, with its type.
    pub claimed: BTreeMap<Place, String>,
}

/// A block: the policy for one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Name of the block.
    pub name: String,
    /// How the domain begins, and continues until it is enforced.
    pub way: Way,
    /// How processes enter the domain.
    pub entry: Entry,
    /// The service's files.
    pub places: Vec<Place>,
    /// Ports on which the service listens and that have no other type. They get the service's own.
    pub own_ports: BTreeSet<Port>,
    /// The types of the other ports.
    pub port_types: BTreeSet<String>,
    /// Learnt ports to which the service connects and that have no other type.
    pub remote_ports: BTreeSet<Port>,
    /// Whether the service is a file that a shared program, such as an interpreter, executes.
    pub is_interpreted: bool,
    /// The capabilities that `Way::Macro` gives it.
    pub capabilities: BTreeSet<String>,
}

/// The capabilities that services of root usually need: to become another user, and to own their files.
const CAPABILITIES: [&str; 9] =
    ["chown", "dac_override", "fowner", "fsetid", "kill", "net_bind_service", "setgid", "setuid", "sys_chroot"];

/// What a service's processes do among themselves is always allowed, because many acts are rare: the garbage collector
/// of a runtime signals its threads, and wakes them by a pipe, only when there is much to do. They might not occur
/// while the service learns for a minute.
const ITSELF: [&str; 4] = [
    "; Its processes signal one another and talk through pipes, if seldom.",
    "(allow t self (process (fork sigchld sigkill sigstop signull signal getsched setsched getsession getpgid setpgid getattr)))",
    "(allow t self (fifo_file (ioctl read write append getattr lock open)))",
    "(allow t self (fd (use)))",
];

impl Block {
    /// The block of a service.
    #[must_use]
    pub fn new(name: &str, way: Way, service: &Service, found: &Found) -> Self {
        let places = service.places().into_iter().filter(|place| !found.claimed.contains_key(place)).collect();
        let free = |(port, kind): (&Port, &Option<String>)| kind.is_none().then_some(*port);
        let may = |name: &&str| service.unit().is_none_or(|unit| unit.capabilities.contains(*name));
        let ambient = service.unit().map(|unit| unit.ambient.clone()).unwrap_or_default();
        let of_root = CAPABILITIES.iter().filter(|_| service.is_root()).filter(|name| may(name));
        Self {
            name: name.to_owned(),
            way,
            entry: service.entry(),
            places,
            own_ports: found.ports.iter().filter_map(free).collect(),
            port_types: found.ports.values().flatten().cloned().collect(),
            remote_ports: BTreeSet::new(),
            is_interpreted: service.is_script || service.entry() == Entry::Unit,
            capabilities: of_root.map(|name| (*name).to_owned()).chain(ambient).collect(),
        }
    }

    /// The type of its domain.
    #[must_use]
    pub fn domain(&self) -> String {
        format!("{}.t", self.name)
    }

    /// The context of its processes.
    #[must_use]
    pub fn context(&self) -> String {
        format!("system_u:system_r:{}:s0", self.domain())
    }

    /// Its lines of `file_contexts`.
    #[must_use]
    pub fn file_contexts(&self) -> String {
        let line = |place: &Place| {
            let Place { path, kind, is_folder } = place;
            let (tail, file) = match (is_folder, kind) {
                (true, _) => ("(/.*)?", ""),
                // For something that is made at run time, it is not known whether it will be a socket or a file.
                (false, Kind::Run) => ("", ""),
                (false, _) => ("", "\t--"),
            };
            format!("{}{tail}{file}\tsystem_u:object_r:{}.{}:s0\n", expression(path), self.name, kind.type_name())
        };
        self.places.iter().map(line).collect()
    }

    /// The block as CIL.
    #[must_use]
    pub fn cil(&self) -> String {
        let mut text = format!("(block {}\n", self.name);
        let mut say = |line: &str| text.push_str(&format!("  {line}\n"));
        let types: Vec<String> = self.types().iter().map(|name| format!("(type {name})")).collect();
        say(&types.join(" "));
        match self.way {
            Way::Learn => self.learnt_way().iter().for_each(|line| say(line)),
            Way::Macro => self.macro_way().iter().for_each(|line| say(line)),
        }
        self.made_by_others().iter().for_each(|line| say(line));
        self.port_lines().iter().for_each(|line| say(line));
        text.pop();
        text.push_str(")\n");
        text
    }

    fn has(&self, kind: Kind) -> bool {
        self.places.iter().any(|place| place.kind == kind)
    }

    /// The types that the block declares. A program has one even if the unit is the entry, because the macro needs it.
    fn types(&self) -> Vec<&'static str> {
        let kinds = Kind::ALL.iter().filter(|kind| **kind == Kind::Program || self.has(**kind));
        let ports = (!self.own_ports.is_empty()).then_some("port_t");
        let remote = (!self.remote_ports.is_empty()).then_some("remote_port_t");
        ["t"]
            .into_iter()
            .chain(kinds.map(|kind| kind.type_name()))
            .chain(["tmp_t"])
            .chain(ports)
            .chain(remote)
            .collect()
    }

    /// The types of the files that it writes.
    fn written(&self) -> impl Iterator<Item = &'static str> {
        let kinds = [Kind::Data, Kind::Log, Kind::Run].into_iter().filter(|kind| self.has(*kind));
        kinds.map(Kind::type_name).chain(["tmp_t"])
    }

    /// For learning: only the domain's attributes, its user and role, its files, and what its processes do among
    /// themselves.
    fn learnt_way(&self) -> Vec<String> {
        let mut lines = vec![
            "; Only what is learnt is allowed. The neverallow rules for confined services apply as well.".to_owned(),
            "(typeattributeset domain t) (typeattributeset promised t)".to_owned(),
            "(typeattributeset file_type exec_t) (typeattributeset exec_type exec_t)".to_owned(),
            "(typetransition unconfined_domain exec_t process t)".to_owned(),
            "(rangetransition unconfined_domain exec_t process lowest)".to_owned(),
        ];
        lines.extend(ITSELF.map(str::to_owned));
        lines.extend(self.content_lines());
        let written: Vec<&str> = self.written().collect();
        let written = written.join(" ");
        lines.push(format!("(typeattributeset file_type ({written})) (typeattributeset data_type ({written}))"));
        lines
            .extend(self.made_by_itself().into_iter().map(|(parent, name, kind)| transition("t", parent, &name, kind)));
        if self.has(Kind::Log) {
            lines.push(transition("t", ".log_t", "file", "log_t"));
        }
        lines
    }

    /// What it makes in directories of others: the type of the directory, `file` or `file "NAME"`, the type of the new
    /// file.
    fn made_by_itself(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut made: Vec<_> = ["file", "dir", "sock_file"].map(|class| (".tmp_t", class.to_owned(), "tmp_t")).to_vec();
        for (parent, name, place) in self.places.iter().filter_map(below_shared) {
            if !place.is_folder && place.kind == Kind::Run {
                made.extend(["file", "sock_file"].map(|class| (parent, format!("{class} \"{name}\""), "run_t")));
            }
        }
        made
    }

    fn content_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.has(Kind::Content) {
            lines.push("(typeattributeset file_type content_t) (typeattributeset public content_t)".to_owned());
        }
        if self.has(Kind::Configuration) {
            lines.push("(typeattributeset file_type conf_t)".to_owned());
        }
        lines
    }

    fn macro_way(&self) -> Vec<String> {
        let mut lines = vec!["(call service (t exec_t lowest))".to_owned()];
        let listens = self.own_ports.iter().map(|_| "port_t").chain(self.port_types.iter().map(String::as_str));
        let listens: BTreeSet<String> = listens.map(|kind| format!("(call listens (t {kind}))")).collect();
        if !listens.is_empty() {
            lines.push("(call networked (t))".to_owned());
            lines.extend(listens);
        }
        lines.extend(self.content_lines());
        if self.has(Kind::Content) {
            lines.push("(allow t content_t (file (execute)))".to_owned());
        }
        if self.has(Kind::Configuration) {
            lines.push("(allow t conf_t (files (read)))".to_owned());
        }
        let owned = self.written().filter(|kind| *kind != "tmp_t").map(|kind| format!("(call owns (t {kind}))"));
        lines.extend(owned);
        lines.push("(call keeps (t .tmp_t tmp_t))".to_owned());
        for (parent, name, kind) in self.made_by_itself().iter().filter(|(parent, ..)| *parent != ".tmp_t") {
            lines.push(transition("t", parent, name, kind));
            lines.push(format!("(allow t {parent} (dir (search write add_name remove_name)))"));
        }
        lines.dedup();
        if !self.capabilities.is_empty() {
            let names: Vec<&str> = self.capabilities.iter().map(String::as_str).collect();
            lines.push(format!("(allow t self (capability ({})))", names.join(" ")));
        }
        if self.is_interpreted {
            lines.push("(call interpreted (t))".to_owned());
        }
        lines
    }

    /// Directories of the service that systemd or an administrator makes get their types at once.
    fn made_by_others(&self) -> BTreeSet<String> {
        let line = |(parent, name, place): (&str, String, &Place)| {
            let class = if place.is_folder { "dir" } else { "file" };
            transition("unconfined_domain", parent, &format!("{class} \"{name}\""), place.kind.type_name())
        };
        self.places.iter().filter_map(below_shared).map(line).collect()
    }

    fn port_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, ports, permission) in
            [("port_t", &self.own_ports, "name_bind"), ("remote_port_t", &self.remote_ports, "name_connect")]
        {
            if ports.is_empty() {
                continue;
            }
            lines.push(format!("(typeattributeset port_type {kind})"));
            lines.extend(ports.iter().map(|port| format!("(portcon {port} (system_u object_r {kind} lowest))")));
            let class = |port: &Port| match port.protocol {
                Protocol::Tcp => "tcp_socket",
                Protocol::Udp => "udp_socket",
            };
            let classes: BTreeSet<&str> = ports.iter().map(class).collect();
            lines.extend(classes.iter().map(|class| format!("(allow t {kind} ({class} ({permission})))")));
        }
        lines
    }
}

/// A type transition; `what` is a class, or a class and a name.
fn transition(source: &str, parent: &str, what: &str, kind: &str) -> String {
    format!("(typetransition {source} {parent} {what} {kind})")
}

/// The directories that all services share, and their types in Tollgate's own policy.
const PARENTS: [(&str, &str); 7] = [
    ("/run", ".run_t"),
    ("/var/lib", ".var_t"),
    ("/var/lib/private", ".var_t"),
    ("/var/cache", ".var_t"),
    ("/var/spool", ".var_t"),
    ("/var/log", ".log_t"),
    ("/etc", ".etc_t"),
];

/// A place directly in one of these: the type of that directory, and the name of the place. Names that are not valid in
/// CIL's strings are left to `file_contexts`.
fn below_shared(place: &Place) -> Option<(&'static str, String, &Place)> {
    let parent = place.path.parent()?.to_str()?;
    let (_, kind) = PARENTS.iter().find(|(path, _)| *path == parent)?;
    let name = place.path.file_name()?.to_str()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-@+:".contains(letter);
    name.chars().all(is_plain).then(|| (*kind, name.to_owned(), place))
}

/// A regular expression that matches only this path.
fn expression(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        match letter {
            // Words in a line of file_contexts are separated by blanks.
            ' ' | '\t' => text.push_str("\\s"),
            '.' | '^' | '$' | '?' | '*' | '+' | '|' | '[' | ']' | '(' | ')' | '{' | '}' | '\\' | '#' => {
                let _ = write!(text, "\\{letter}"); // to memory
            }
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests;
