//! The contexts in systemd's unit files: `SELinuxContext=`, which systemd itself ignores where SELinux is off. Files,
//! drop-ins and their order are those of systemd.unit(5).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
};

use super::{Setting, names::Name};

/// Directories of the system manager's unit files. The first takes precedence.
pub(super) const LOAD_PATH: [&str; 12] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// The setting that is read.
const KEY: &str = "SELinuxContext";

/// The files in the directories: for each name the file that counts.
#[derive(Debug, Default)]
struct Files {
    /// Unit files.
    units: BTreeMap<Name, PathBuf>,
    /// Aliases of units, and the units that they stand for.
    aliases: HashMap<Name, Name>,
    /// Drop-ins by the name of their directory (without `.d`), and then by their own name.
    drop_ins: HashMap<String, BTreeMap<String, PathBuf>>,
}

/// The settings in the unit files of a load path, including units without one; and what could not be read.
pub(super) fn read(load: &[PathBuf]) -> (BTreeMap<Name, Setting>, Vec<String>) {
    let mut messages = Vec::new();
    let files = Files::find(load, &mut messages);
    // A name that ends in a dash is a prefix of units' names.
    let dropped = files.drop_ins.keys().filter_map(|name| name.parse::<Name>().ok());
    let dropped = dropped.filter(|name| !name.stem().ends_with('-'));
    let names: BTreeSet<Name> = files.units.keys().cloned().chain(dropped).collect();
    let names = names.into_iter().filter(|name| !files.aliases.contains_key(name));
    let settings = names.map(|name| {
        let setting = files.setting(&name, &mut messages);
        (name, setting)
    });
    (settings.collect(), messages)
}

/// Whether a load path has the file of a unit or of its template.
#[must_use]
pub fn is_known(load: &[PathBuf], unit: &Name) -> bool {
    let names = [unit.clone()].into_iter().chain(unit.template());
    let mut files = names.flat_map(|name| load.iter().map(move |directory| directory.join(name.to_string())));
    files.any(|file| file.exists())
}

/// What to watch.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Directories in which everything counts.
    pub(super) directories: BTreeSet<PathBuf>,
    /// Single files elsewhere.
    pub(super) files: BTreeSet<PathBuf>,
}

/// The directories of a load path and of drop-ins, and the files that are linked there.
pub(super) fn watched(load: &[PathBuf]) -> Watched {
    let files = Files::find(load, &mut Vec::new());
    let drop_ins = files.drop_ins.values().flat_map(BTreeMap::values);
    let linked = files.units.values().chain(drop_ins).filter_map(|path| {
        let target = fs::canonicalize(path).ok()?;
        // Masked units are links to /dev/null, to which everybody writes.
        (target != *path && target.is_file()).then_some(target)
    });
    let all = load.iter().flat_map(|directory| entries(directory).unwrap_or_default());
    let drop_ins = all.filter(|path| path.extension().is_some_and(|end| end == "d"));
    Watched { directories: load.iter().cloned().chain(drop_ins).collect(), files: linked.collect() }
}

impl Files {
    fn find(load: &[PathBuf], messages: &mut Vec<String>) -> Self {
        let mut files = Self::default();
        for directory in load {
            match entries(directory) {
                Ok(paths) => paths.into_iter().for_each(|path| files.add(path, messages)),
                Err(cause) => messages.push(format!("cannot read {}: {cause}", directory.display())),
            }
        }
        files
    }

    fn add(&mut self, path: PathBuf, messages: &mut Vec<String>) {
        let Some(file) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { return };
        if let Some(of) = file.strip_suffix(".d") {
            match entries(&path) {
                Ok(found) => found.into_iter().for_each(|drop_in| self.add_drop_in(of, drop_in)),
                Err(cause) => messages.push(format!("cannot read {}: {cause}", path.display())),
            }
            return;
        }
        let Ok(name) = file.parse::<Name>() else { return };
        if self.units.contains_key(&name) || self.aliases.contains_key(&name) {
            return;
        }
        match alias(&name, &path) {
            Some(of) => drop(self.aliases.insert(name, of)),
            None => drop(self.units.insert(name, path)),
        }
    }

    fn add_drop_in(&mut self, of: &str, path: PathBuf) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { return };
        if name.ends_with(".conf") {
            self.drop_ins.entry(of.to_owned()).or_default().entry(name).or_insert(path);
        }
    }

    /// The setting in a unit's file and drop-ins, of which the last counts.
    fn setting(&self, name: &Name, messages: &mut Vec<String>) -> Setting {
        let template = name.template();
        let file = self.units.get(name).or_else(|| self.units.get(template.as_ref()?));
        let mut setting = Setting { context: String::new(), ignorable: false, source: PathBuf::new() };
        for path in file.into_iter().chain(self.drop_ins_of(name).values().copied()) {
            match fs::read_to_string(path) {
                Ok(text) => {
                    if let Some(value) = value(&text, &section(name)) {
                        setting = Setting::of(&value, path);
                    }
                }
                // It existed a moment ago. Its removal is an event of its own. A socket or a directory is not a unit
                // file.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => messages.push(format!("cannot read {}: {cause}", path.display())),
            }
        }
        setting
    }

    /// Drop-ins by name. If several have one name, the directory that is closest to the unit's name counts.
    fn drop_ins_of(&self, name: &Name) -> BTreeMap<&str, &PathBuf> {
        let aliases = self.aliases.iter().filter(|(_, of)| *of == name).map(|(alias, _)| alias.clone());
        let names = [name.clone()].into_iter().chain(aliases).chain(name.template());
        let mut found = BTreeMap::new();
        for of in names.flat_map(|name| directories_of(&name)) {
            for (name, path) in self.drop_ins.get(&of).into_iter().flatten() {
                found.entry(name.as_str()).or_insert(path);
            }
        }
        found
    }
}

/// The directories of a unit's drop-ins, without `.d`: its own, those of each prefix that ends in a dash, those of its
/// kind.
fn directories_of(name: &Name) -> Vec<String> {
    let (stem, kind) = (name.stem(), name.kind());
    let beginnings = stem.rmatch_indices('-').map(|(at, dash)| &stem[..at + dash.len()]);
    let beginnings = beginnings.filter(|beginning| beginning.len() < stem.len()).map(|begin| format!("{begin}.{kind}"));
    [name.to_string()].into_iter().chain(beginnings).chain([kind.to_owned()]).collect()
}

/// The unit of which a file is an alias.
fn alias(name: &Name, path: &Path) -> Option<Name> {
    let target = fs::read_link(path).ok()?;
    let target: Name = target.file_name()?.to_str()?.parse().ok()?;
    (target != *name && target.kind() == name.kind()).then_some(target)
}

/// The section that says how a unit's processes run.
fn section(name: &Name) -> String {
    let kind = name.kind();
    let (first, rest) = kind.split_at(kind.len().min(1));
    format!("{}{rest}", first.to_uppercase())
}

/// The last value of the setting in a section of a unit file. An empty value removes those before it.
fn value(text: &str, section: &str) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in lines(text) {
        if let Some(name) = line.strip_prefix('[') {
            inside = name.strip_suffix(']') == Some(section);
        } else if let Some((key, value)) = line.split_once('=')
            && inside
            && key.trim() == KEY
        {
            found = Some(value.trim().to_owned());
        }
    }
    found
}

/// Lines as systemd reads them: after a backslash a line continues in the next one, and comments may come in between.
fn lines(text: &str) -> Vec<String> {
    let (mut lines, mut begun) = (Vec::new(), String::new());
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        begun.push_str(line.strip_suffix('\\').unwrap_or(line));
        if line.ends_with('\\') {
            begun.push(' ');
        } else {
            lines.push(std::mem::take(&mut begun));
        }
    }
    lines.push(begun);
    lines
}

/// The names in a directory, sorted; none if it does not exist.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        other => other?,
    };
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
