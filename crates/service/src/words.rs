//! What a domain may do, in words, for the person who has to agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::grants::Grants;

/// A sentence about a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Whether it needs thought before the person agrees.
    pub grave: bool,
    /// The sentence `it ...` without its first word.
    pub text: String,
}

/// For example `! runs a shell`. The mark is for grave sentences.
impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.grave { '!' } else { ' ' }, self.text)
    }
}

/// A domain, and what is known about its rules.
#[derive(Debug, Clone, Default)]
pub struct Domain {
    /// Type of the domain.
    pub name: String,
    /// What the rules grant to it.
    pub grants: Grants,
    /// The paths to which `file_contexts` give each type.
    pub paths: BTreeMap<String, Vec<String>>,
    /// The ports with each type, as `tcp 80`.
    pub ports: BTreeMap<String, Vec<String>>,
}

const FILES: [&str; 6] = ["file", "dir", "lnk_file", "sock_file", "fifo_file", "blk_file"];
/// Classes in which content stays. Writing to a pipe or a socket is communication.
const KEEPING: [&str; 4] = ["file", "dir", "lnk_file", "blk_file"];
const WRITES: [&str; 9] =
    ["write", "append", "create", "unlink", "rename", "link", "add_name", "remove_name", "setattr"];
const INET: [&str; 4] = ["tcp_socket", "udp_socket", "sctp_socket", "dccp_socket"];
/// Types that are harmless to write to: terminals, and memory that is passed on by descriptor.
const HARMLESS: [&str; 6] = ["null_device_t", "random_device_t", "tty_t", "tmpfs_t", "devpts_t", "init_socket_t"];
/// Types of files that hold secrets, with descriptions.
const SECRETS: [(&str, &str); 6] = [
    ("shadow_t", "password hashes"),
    ("key_t", "private keys"),
    ("home_t", "people's own files"),
    ("policy_t", "the policy and Tollgate's own files"),
    ("memory_t", "the kernel's memory"),
    ("disk_t", "disks beneath their files"),
];
/// Types that all domains may read in Tollgate's own policy, with descriptions.
const COMMON: [(&str, &str); 4] = [
    ("file_t", "all that file_contexts do not name, such as /srv and /opt"),
    ("etc_t", "configuration in /etc that has no type of its own"),
    ("var_t", "what is kept in /var and has no type of its own"),
    ("log_t", "logs that have no type of their own"),
];
/// Capabilities that amount to being root.
const POWERS: [(&str, &str); 9] = [
    ("dac_override", "passes over the owners and modes of files"),
    ("dac_read_search", "reads files whatever their modes"),
    ("sys_admin", "administers the system (sys_admin)"),
    ("sys_ptrace", "looks into other processes"),
    ("sys_module", "loads kernel modules"),
    ("sys_rawio", "reaches devices directly"),
    ("net_admin", "configures the network"),
    ("net_raw", "sends and reads raw packets"),
    ("mknod", "makes device files"),
];
/// How many names one sentence lists.
const MAX_SHOWN: usize = 6;

impl Domain {
    /// The sentences, one per kind of act. What no sentence mentions is not allowed.
    #[must_use]
    pub fn sentences(&self) -> Vec<Sentence> {
        let parts = [self.network(), self.programs(), self.writing(), self.reading(), self.powers(), self.others()];
        parts.into_iter().flatten().collect()
    }

    /// The prefix of its name and of its types' names.
    fn stem(&self) -> Option<&str> {
        self.name.strip_suffix(".t")
    }

    fn is_own(&self, kind: &str) -> bool {
        let stem = self.stem().and_then(|stem| kind.strip_prefix(stem));
        kind == self.name || stem.is_some_and(|rest| rest.starts_with('.'))
    }

    fn network(&self) -> Vec<Sentence> {
        let mut sentences = Vec::new();
        for (verb, permission) in [("listens on", "name_bind"), ("connects to", "name_connect")] {
            let types = self.grants.types(&INET, &[permission]);
            if types.is_empty() {
                sentences.push(plain(format!("{verb} no port")));
            }
            for kind in types {
                let every = match kind {
                    "port_t" => Some("every port that has no type of its own".to_owned()),
                    "reserved_port_t" => Some("every port below 1024 that has no type of its own".to_owned()),
                    _ => None,
                };
                let grave = every.is_some();
                let ports = every.unwrap_or_else(|| self.named(&self.ports, kind));
                sentences.push(Sentence { grave, text: format!("{verb} {ports}") });
            }
        }
        if !self.grants.types(&["rawip_socket", "packet_socket"], &["create"]).is_empty() {
            sentences.push(grave("sends and reads raw packets".to_owned()));
        }
        sentences
    }

    /// A type in words: `/var/lib/web (web.data_t)`.
    fn named(&self, names: &BTreeMap<String, Vec<String>>, kind: &str) -> String {
        match names.get(kind) {
            Some(found) => format!("{} ({kind})", list(found)),
            None => kind.to_owned(),
        }
    }

    fn programs(&self) -> Vec<Sentence> {
        let mut sentences = Vec::new();
        for kind in self.grants.types(&["file"], &["execute_no_trans"]) {
            sentences.push(match kind {
                "shell_exec_t" => grave("runs a shell".to_owned()),
                "bin_t" => grave("runs every program of the machine that has no type of its own (bin_t)".to_owned()),
                _ if self.is_own(kind) && !kind.ends_with("exec_t") => {
                    grave(format!("runs programs in {}", self.named(&self.paths, kind)))
                }
                _ if self.is_own(kind) => continue,
                _ => plain(format!("runs programs in {}", self.named(&self.paths, kind))),
            });
        }
        if sentences.is_empty() {
            sentences.push(plain("runs no other program, and no shell".to_owned()));
        }
        for kind in self.grants.types(&["process"], &["transition", "dyntransition"]) {
            let grave = matches!(kind, "unconfined_t" | "kernel_t");
            sentences.push(Sentence { grave, text: format!("starts processes in the domain {kind}") });
        }
        sentences
    }

    fn writing(&self) -> Vec<Sentence> {
        let types = self
            .grants
            .types(&KEEPING, &WRITES)
            .into_iter()
            .filter(|kind| !HARMLESS.contains(kind) && *kind != self.name);
        let (own, others): (Vec<&str>, Vec<&str>) = types.partition(|kind| self.is_own(kind));
        let is_made_of = |kind: &&str| kind.ends_with(".exec_t") || kind.ends_with(".content_t");
        let (made_of, own): (Vec<&str>, Vec<&str>) = own.into_iter().partition(is_made_of);
        let mut sentences = Vec::new();
        let names: Vec<String> = own.iter().map(|kind| self.named(&self.paths, kind)).collect();
        sentences.push(plain(match names.is_empty() {
            true => "writes to no files of its own".to_owned(),
            false => format!("writes to {}", names.join(", ")),
        }));
        let what = made_of.iter().map(|kind| format!("changes what it is made of: {}", self.named(&self.paths, kind)));
        sentences.extend(what.map(grave));
        for kind in others {
            let name = self.named(&self.paths, kind);
            let names_only = !self.grants.types(&["file", "blk_file"], &WRITES).contains(kind);
            sentences.push(match names_only && self.grants.permissions(kind, "dir").next().is_some() {
                true => plain(format!("makes and removes files in {name}")),
                false => grave(format!("writes to what is not its own: {name}")),
            });
        }
        sentences
    }

    fn reading(&self) -> Vec<Sentence> {
        let types = self.grants.types(&["file", "chr_file", "blk_file"], &["read"]);
        let secret = SECRETS.iter().filter(|(kind, _)| types.contains(kind));
        let mut sentences: Vec<Sentence> = secret.map(|(kind, what)| grave(format!("reads {what} ({kind})"))).collect();
        if sentences.is_empty() {
            sentences.push(plain("reads no passwords, no private keys, nothing in people's homes".to_owned()));
        }
        let common = COMMON.iter().filter(|(kind, _)| types.contains(kind));
        sentences.extend(common.map(|(kind, what)| plain(format!("reads {what} ({kind})"))));
        let theirs = |kind: &&&str| kind.contains('.') && !self.is_own(kind);
        let theirs: Vec<String> = types.iter().filter(theirs).map(|kind| self.named(&self.paths, kind)).collect();
        if !theirs.is_empty() {
            sentences.push(plain(format!("reads what belongs to other services: {}", list(&theirs))));
        }
        sentences
    }

    fn powers(&self) -> Vec<Sentence> {
        let of = |class: &str| self.grants.permissions(&self.name, class).collect::<BTreeSet<&str>>();
        let capabilities: BTreeSet<&str> = of("capability").union(&of("capability2")).copied().collect();
        let known = POWERS.iter().filter(|(name, _)| capabilities.contains(name));
        let mut sentences: Vec<Sentence> = known.map(|(_, what)| grave((*what).to_owned())).collect();
        let others = capabilities.iter().filter(|name| POWERS.iter().all(|(power, _)| power != *name));
        let others: Vec<String> = others.map(|name| (*name).to_owned()).collect();
        if !others.is_empty() {
            sentences.push(plain(format!("has of root's capabilities {}", others.join(", "))));
        }
        if ["execmem", "execstack", "execheap"].iter().any(|name| of("process").contains(name)) {
            sentences.push(grave("has memory that it writes and runs".to_owned()));
        }
        sentences
    }

    fn others(&self) -> Vec<Sentence> {
        let other = |kind: &&&str| **kind != self.name;
        let mut sentences = Vec::new();
        let traced = self.grants.types(&["process"], &["ptrace"]);
        sentences.extend(traced.iter().filter(other).map(|kind| grave(format!("looks into processes of {kind}"))));
        let signals = ["sigkill", "sigstop", "signal"];
        let signalled = self.grants.types(&["process"], &signals);
        sentences.extend(signalled.iter().filter(other).map(|kind| plain(format!("signals processes of {kind}"))));
        let talked = self.grants.types(&["unix_stream_socket", "unix_dgram_socket"], &["connectto", "sendto"]);
        sentences.extend(talked.iter().filter(other).map(|kind| {
            plain(match *kind {
                "unconfined_t" | "kernel_t" => {
                    format!("talks to unconfined services whose sockets it may write to ({kind})")
                }
                _ => format!("talks to {kind} by unix sockets"),
            })
        }));
        let ruled = [
            (&["security"][..], &["load_policy", "setenforce", "setbool"][..], "changes the policy"),
            (&["system"], &["module_load", "module_request"], "has the kernel load modules"),
            (&["bpf"], &["prog_load"], "loads BPF programs"),
            (&FILES, &["relabelfrom", "relabelto"], "changes labels"),
            (&["filesystem"], &["mount", "unmount", "remount"], "mounts file systems"),
        ];
        let ruled =
            ruled.iter().filter(|(classes, permissions, _)| !self.grants.types(classes, permissions).is_empty());
        sentences.extend(ruled.map(|(.., what)| grave((*what).to_owned())));
        sentences
    }
}

fn plain(text: String) -> Sentence {
    Sentence { grave: false, text }
}

fn grave(text: String) -> Sentence {
    Sentence { grave: true, text }
}

/// The first names, and how many more there are.
fn list(names: &[String]) -> String {
    let shown = names.iter().take(MAX_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(rules: &[(&str, &str, &str)]) -> Domain {
        let mut grants = BTreeMap::new();
        for (kind, class, permissions) in rules {
            let permissions = permissions.split(' ').map(str::to_owned).collect();
            grants.insert(((*kind).to_owned(), (*class).to_owned()), permissions);
        }
        let names = |pairs: &[(&str, &[&str])]| {
            pairs
                .iter()
                .map(|(kind, names)| ((*kind).to_owned(), names.iter().map(|name| (*name).to_owned()).collect()))
                .collect()
        };
        Domain {
            name: "web.t".to_owned(),
            grants: Grants(grants),
            paths: names(&[("web.data_t", &["/var/lib/web"]), ("web.content_t", &["/opt/web"]), ("var_t", &["/var"])]),
            ports: names(&[("http_port_t", &["tcp 80", "tcp 443"]), ("web.port_t", &["tcp 8085"])]),
        }
    }

    fn told(rules: &[(&str, &str, &str)]) -> Vec<String> {
        domain(rules).sentences().iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn says(rules: &[(&str, &str, &str)], sentence: &str) {
        let told = told(rules);
        assert!(told.iter().any(|line| line == sentence), "{sentence:?} is not in {told:#?}");
    }

    #[test]
    fn says_of_a_domain_without_rules_what_it_may_not_do() {
        let expected = [
            "  listens on no port",
            "  connects to no port",
            "  runs no other program, and no shell",
            "  writes to no files of its own",
            "  reads no passwords, no private keys, nothing in people's homes",
        ];
        assert_eq!(told(&[]), expected);
    }

    #[test]
    fn tells_ports_and_marks_that_a_rule_is_for_all_of_them() {
        says(&[("web.port_t", "tcp_socket", "name_bind")], "  listens on tcp 8085 (web.port_t)");
        says(&[("http_port_t", "tcp_socket", "name_connect")], "  connects to tcp 80, tcp 443 (http_port_t)");
        says(&[("port_t", "tcp_socket", "name_bind")], "! listens on every port that has no type of its own");
        says(&[("port_t", "tcp_socket", "name_connect")], "! connects to every port that has no type of its own");
    }

    #[test]
    fn marks_a_shell_and_all_programs() {
        says(&[("shell_exec_t", "file", "execute execute_no_trans")], "! runs a shell");
        says(
            &[("bin_t", "file", "execute_no_trans")],
            "! runs every program of the machine that has no type of its own (bin_t)",
        );
        let own = told(&[("web.exec_t", "file", "execute_no_trans")]);
        assert!(own.contains(&"  runs no other program, and no shell".to_owned()), "{own:?}");
        let library = told(&[("bin_t", "file", "execute read map")]);
        assert!(library.contains(&"  runs no other program, and no shell".to_owned()), "{library:?}");
    }

    #[test]
    fn tells_its_own_files_from_others() {
        says(&[("web.data_t", "file", "create write")], "  writes to /var/lib/web (web.data_t)");
        says(&[("web.content_t", "file", "write")], "! changes what it is made of: /opt/web (web.content_t)");
        says(&[("var_t", "file", "append")], "! writes to what is not its own: /var (var_t)");
        says(&[("var_t", "dir", "add_name write")], "  makes and removes files in /var (var_t)");
        let itself = told(&[("web.t", "file", "write"), ("null_device_t", "file", "write")]);
        assert!(itself.contains(&"  writes to no files of its own".to_owned()), "{itself:?}");
        let talks = told(&[("unconfined_t", "fifo_file", "write"), ("syslog.socket_t", "sock_file", "write")]);
        assert!(!talks.iter().any(|line| line.starts_with('!')), "{talks:?}");
        says(&[("webshop.data_t", "file", "write")], "! writes to what is not its own: webshop.data_t");
    }

    #[test]
    fn marks_secrets_and_powers() {
        says(&[("shadow_t", "file", "read")], "! reads password hashes (shadow_t)");
        says(&[("disk_t", "blk_file", "read")], "! reads disks beneath their files (disk_t)");
        says(&[("web.t", "capability", "dac_override setuid")], "! passes over the owners and modes of files");
        says(&[("web.t", "capability", "dac_override setuid")], "  has of root's capabilities setuid");
        says(&[("web.t", "process", "execmem")], "! has memory that it writes and runs");
        says(&[("unconfined_t", "process", "ptrace")], "! looks into processes of unconfined_t");
        says(&[("unconfined_t", "process", "transition")], "! starts processes in the domain unconfined_t");
        says(&[("file_t", "file", "relabelfrom")], "! changes labels");
    }
}
