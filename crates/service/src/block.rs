//! A service's block of CIL, and the lines of `file_contexts` beside it.

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
    /// Permissive, with nothing allowed: what it does is learnt.
    Learn,
    /// Enforced, with what the policy's macros allow.
    Macro,
}

/// What the policy in force says of a service's ports and files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The types of its ports; none of those that have no type of their own.
    pub ports: BTreeMap<Port, Option<String>>,
    /// Files that belong to another domain already, by its type.
    pub claimed: BTreeMap<Place, String>,
}

/// A block: what a service is, as policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// How it begins, and goes on until it is enforced.
    pub way: Way,
    /// How its domain is entered.
    pub entry: Entry,
    /// Its files.
    pub places: Vec<Place>,
    /// The ports that it listens on and that have no other type: they get its own.
    pub own_ports: BTreeSet<Port>,
    /// The types of the others.
    pub port_types: BTreeSet<String>,
    /// Ports that it connects to and that have no other type, learnt.
    pub remote_ports: BTreeSet<Port>,
    /// Whether a program that is everyone's does what is in a file of its own.
    pub is_interpreted: bool,
    /// Root's capabilities that `Way::Macro` gives it.
    pub capabilities: BTreeSet<String>,
}

/// Of root's capabilities, what services of root need to become another user, and to own their files: what they mostly do.
const CAPABILITIES: [&str; 9] =
    ["chown", "dac_override", "fowner", "fsetid", "kill", "net_bind_service", "setgid", "setuid", "sys_chroot"];

/// What a service's processes do among themselves is taken from nobody, and many do it seldom: a runtime's garbage collector
/// signals its threads, and wakes them by a pipe, when there is much to do. Whoever learns for a minute may not see it.
const ITSELF: [&str; 4] = [
    "; Its processes signal one another and talk through pipes, if seldom.",
    "(allow t self (process (fork sigchld sigkill sigstop signull signal getsched setsched getsession getpgid setpgid getattr)))",
    "(allow t self (fifo_file (ioctl read write append getattr lock open)))",
    "(allow t self (fd (use)))",
];

impl Block {
    /// That of a service.
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

    /// Its domain.
    #[must_use]
    pub fn domain(&self) -> String {
        format!("{}.t", self.name)
    }

    /// The context of its processes.
    #[must_use]
    pub fn context(&self) -> String {
        format!("system_u:system_r:{}:s0", self.domain())
    }

    /// Lines of `file_contexts`.
    #[must_use]
    pub fn file_contexts(&self) -> String {
        let line = |place: &Place| {
            let Place { path, kind, is_folder } = place;
            let (tail, file) = match (is_folder, kind) {
                (true, _) => ("(/.*)?", ""),
                // Of a socket or a file that is made while it runs nobody knows which it is.
                (false, Kind::Run) => ("", ""),
                (false, _) => ("", "\t--"),
            };
            format!("{}{tail}{file}\tsystem_u:object_r:{}.{}:s0\n", expression(path), self.name, kind.type_name())
        };
        self.places.iter().map(line).collect()
    }

    /// The block.
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

    /// The types that it declares. A program has one also where its unit is the entry: the macro names it.
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

    /// The types of what it writes.
    fn written(&self) -> impl Iterator<Item = &'static str> {
        let kinds = [Kind::Data, Kind::Log, Kind::Run].into_iter().filter(|kind| self.has(*kind));
        kinds.map(Kind::type_name).chain(["tmp_t"])
    }

    /// Nothing but what it is, who it is and whose files are whose, and what it does to nobody but itself.
    fn learnt_way(&self) -> Vec<String> {
        let mut lines = vec![
            "; Nothing else is allowed but what is learnt; what is promised of confined services holds for it too."
                .to_owned(),
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

    /// What it makes in directories that are not its own: parent, `file` or `file "NAME"`, type.
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

    /// Directories that systemd, or who installs it, makes anew have their types at once.
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

/// `what` is a class, or a class and a name.
fn transition(source: &str, parent: &str, what: &str, kind: &str) -> String {
    format!("(typetransition {source} {parent} {what} {kind})")
}

/// The directories that all share and their types in Tollgate's own policy.
const PARENTS: [(&str, &str); 7] = [
    ("/run", ".run_t"),
    ("/var/lib", ".var_t"),
    ("/var/lib/private", ".var_t"),
    ("/var/cache", ".var_t"),
    ("/var/spool", ".var_t"),
    ("/var/log", ".log_t"),
    ("/etc", ".etc_t"),
];

/// A place that lies directly in one of them: that one's type, and the place's name. A name that CIL's strings do not take is
/// left to `file_contexts`.
fn below_shared(place: &Place) -> Option<(&'static str, String, &Place)> {
    let parent = place.path.parent()?.to_str()?;
    let (_, kind) = PARENTS.iter().find(|(path, _)| *path == parent)?;
    let name = place.path.file_name()?.to_str()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-@+:".contains(letter);
    name.chars().all(is_plain).then(|| (*kind, name.to_owned(), place))
}

/// A regular expression that matches the path and no other.
fn expression(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        match letter {
            // A line of file_contexts is words.
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
