//! Programs that are replaced. dpkg, `install` and `sed -i` make a new file and give it the old one's name. It then has
//! the label of the directory, while SELinux's own tools would look it up in `file_contexts`. Therefore the directories
//! are watched in which `file_contexts` name programs with a domain.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor},
};
use tollgate_policy::model::{Policy, RuleKind};

use super::{expression::prefix, file_contexts::specifications};
use crate::contexts::domain;

/// The watched directories.
#[derive(Debug)]
pub struct Replaced {
    inotify: Inotify,
    directories: HashMap<WatchDescriptor, PathBuf>,
}

/// What has appeared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Files that have a new name there.
    pub files: BTreeSet<PathBuf>,
    /// Whether a directory has appeared, which may have to be watched.
    pub directories: bool,
}

impl Replaced {
    /// Watches nothing yet.
    pub fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        Ok(Self { inotify, directories: HashMap::new() })
    }

    /// Watches these directories and no others. In place of one that does not exist, the nearest existing one above is
    /// watched. Returns the new ones.
    pub fn watch(&mut self, wanted: &BTreeSet<PathBuf>) -> io::Result<Vec<PathBuf>> {
        let flags = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_ONLYDIR;
        let mut watched = HashMap::new();
        for place in wanted.iter().filter_map(|directory| directory.ancestors().find(|place| place.is_dir())) {
            match self.inotify.add_watch(place, flags) {
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                other => drop(watched.insert(other?, place.to_owned())),
            }
        }
        for old in self.directories.keys().filter(|old| !watched.contains_key(old)) {
            // The watch of a directory that is gone is gone already.
            let _ = self.inotify.rm_watch(*old);
        }
        let new = watched.iter().filter(|(new, _)| !self.directories.contains_key(new));
        let new = new.map(|(_, path)| path.clone()).collect();
        self.directories = watched;
        Ok(new)
    }

    /// What has appeared since the last call. If events were lost, all directories must be looked at.
    pub fn take(&self) -> Came {
        let mut came = Came::default();
        while let Ok(events) = self.inotify.read_events() {
            for event in &events {
                came.directories |= event.mask.intersects(AddWatchFlags::IN_ISDIR | AddWatchFlags::IN_Q_OVERFLOW);
                if let (Some(directory), Some(name)) = (self.directories.get(&event.wd), &event.name) {
                    came.files.insert(directory.join(name));
                }
            }
        }
        came
    }

    /// The directories that are watched.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directories.values().map(PathBuf::as_path)
    }
}

impl AsFd for Replaced {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// The directories in which a `file_contexts` names files of these types, as far as expressions are plain.
#[must_use]
pub fn directories(file_contexts: &str, programs: &BTreeMap<String, String>) -> BTreeSet<PathBuf> {
    let named = specifications(file_contexts)
        .filter(|line| line.context.is_some_and(|context| programs.contains_key(domain(context))));
    let mut found = BTreeSet::new();
    for line in named {
        let begins = PathBuf::from(OsStr::from_bytes(&prefix(line.expression)));
        let text = begins.as_os_str().as_bytes();
        if !text.starts_with(b"/") {
            continue;
        }
        let above = text.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at.max(1));
        found.insert(PathBuf::from(OsStr::from_bytes(&text[..above])));
        if begins.is_dir() {
            found.insert(begins);
        }
    }
    // Files directly in the root are no programs.
    found.remove(Path::new("/"));
    found
}

/// Whether a file in a directory of one type may safely get another type by its name alone: any domain that may make
/// files in the directory could give that label itself. `unconfined` domains do not count.
#[must_use]
pub fn is_harmless(policy: &Policy, directory: &str, program: &str, unconfined: &[String]) -> bool {
    let makers = who_may(policy, directory, "dir", "add_name");
    let relabel = who_may(policy, program, "file", "relabelto");
    makers.iter().all(|name| relabel.contains(name) || unconfined.iter().any(|own| own == name))
}

/// The types to which a rule gives a permission on a type.
fn who_may<'p>(policy: &'p Policy, target: &str, class: &str, permission: &str) -> BTreeSet<&'p str> {
    let Some(number) = policy.classes.iter().position(|own| own.name == class) else { return BTreeSet::new() };
    let bit = policy.classes[number].permissions.iter().position(|own| own == permission);
    let target = policy.types.iter().position(|type_| type_.name == target && !type_.attribute);
    let (Some(bit), Some(target)) = (bit, target) else { return BTreeSet::new() };
    let is_of = |named: u32| policy.types[target].set.has(named) || named as usize == target;
    let rules = policy.rules.iter().filter(|rule| {
        rule.kind == RuleKind::Allow
            && rule.class as usize == number
            && rule.data >> bit & 1 != 0
            && is_of(rule.target)
            && policy.holds(rule.condition)
    });
    let sources: BTreeSet<u32> = rules.map(|rule| rule.source).collect();
    let types = policy.types.iter().enumerate().skip(1).filter(|(_, type_)| !type_.attribute);
    let may = types
        .filter(|(place, type_)| sources.iter().any(|source| *source as usize == *place || type_.set.has(*source)));
    may.map(|(_, type_)| type_.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tollgate_policy::model::{Class, Rule, Type};

    use super::*;

    #[test]
    fn finds_where_programs_are_named() {
        let text = "/.* a:b:file_t\n/usr/sbin/(nginx|httpd) -- a:b:web_exec\n/srv/app/server\\.py -- a:b:web_exec:s0\n\
             /opt/[^/]+/run -- a:b:web_exec\n/data -- a:b:data_t\n.*\\.x -- a:b:web_exec\n/x -- a:b:web_exec\n";
        let programs = BTreeMap::from([("web_exec".to_owned(), "web_t".to_owned())]);
        let found = directories(text, &programs);
        assert_eq!(found, ["/opt", "/srv/app", "/usr/sbin"].map(PathBuf::from).into());
    }

    #[test]
    fn sees_names_that_files_get_and_directories_that_come() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let wanted = BTreeSet::from([at("bin"), at("later/bin")]);
        fs::create_dir(at("bin")).unwrap();
        let mut replaced = Replaced::new().unwrap();
        assert_eq!(replaced.watch(&wanted).unwrap().len(), 2);
        fs::write(at("bin/new"), "").unwrap();
        assert_eq!(replaced.take().files, [at("bin/new")].into());
        fs::rename(at("bin/new"), at("bin/nginx")).unwrap();
        assert_eq!(replaced.take(), Came { files: [at("bin/nginx")].into(), directories: false });
        fs::write(at("bin/nginx"), "other").unwrap();
        assert_eq!(replaced.take(), Came::default());
        fs::create_dir_all(at("later/bin")).unwrap();
        assert!(replaced.take().directories);
        assert_eq!(replaced.watch(&wanted).unwrap(), [at("later/bin")]);
    }

    #[test]
    fn takes_no_name_for_a_label_that_its_maker_could_not_give() {
        let type_ = |name: &str, set: &[u32]| Type {
            name: name.to_owned(),
            set: set.iter().copied().collect(),
            ..Type::default()
        };
        let class = |name: &str, permissions: &[&str]| Class {
            name: name.to_owned(),
            permissions: permissions.iter().map(|name| (*name).to_owned()).collect(),
            ..Class::default()
        };
        let rule =
            |source, target, class, data| Rule { kind: RuleKind::Allow, source, target, class, data, condition: None };
        let mut policy = Policy {
            classes: vec![
                Class::default(),
                class("dir", &["read", "add_name"]),
                class("file", &["create", "relabelto"]),
            ],
            types: vec![
                Type::default(),
                type_("machine_t", &[1]),
                type_("web_t", &[2, 5]),
                type_("bin_t", &[3]),
                type_("web_exec", &[4]),
                Type { attribute: true, ..type_("makers", &[2]) },
            ],
            rules: vec![rule(1, 3, 1, 2), rule(2, 3, 1, 1)],
            ..Policy::default()
        };
        let harmless = |policy: &Policy| is_harmless(policy, "bin_t", "web_exec", &["machine_t".to_owned()]);
        assert!(harmless(&policy));
        policy.rules.push(rule(5, 3, 1, 2));
        assert!(!harmless(&policy));
        policy.rules.push(rule(2, 4, 2, 2));
        assert!(harmless(&policy));
    }
}
