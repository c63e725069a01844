//! What systemd's unit files say of contexts: `SELinuxContext=`, which systemd itself does not look at where SELinux is off.
//! Files, drop-ins and their order are those of systemd.unit(5).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
};

use super::{Setting, names::Name};

/// Directories of the system manager's unit files, the first counts most.
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

/// What is set.
const KEY: &str = "SELinuxContext";

/// What the directories have: of each name the file that counts.
#[derive(Debug, Default)]
struct Files {
    /// Unit files.
    units: BTreeMap<Name, PathBuf>,
    /// Other names of units, and whose they are.
    aliases: HashMap<Name, Name>,
    /// Drop-ins by the name of their directory, without `.d`, and their own.
    drop_ins: HashMap<String, BTreeMap<String, PathBuf>>,
}

/// What the unit files below a load path say, also of those that say nothing; and what could not be read.
pub(super) fn read(load: &[PathBuf]) -> (BTreeMap<Name, Setting>, Vec<String>) {
    let mut told = Vec::new();
    let files = Files::find(load, &mut told);
    // What a dash ends is the beginning of units' names.
    let dropped = files.drop_ins.keys().filter_map(|name| name.parse::<Name>().ok());
    let dropped = dropped.filter(|name| !name.stem().ends_with('-'));
    let names: BTreeSet<Name> = files.units.keys().cloned().chain(dropped).collect();
    let names = names.into_iter().filter(|name| !files.aliases.contains_key(name));
    let settings = names.map(|name| {
        let setting = files.setting(&name, &mut told);
        (name, setting)
    });
    (settings.collect(), told)
}

/// Whether a load path has a unit's file, or its template's.
#[must_use]
pub fn is_known(load: &[PathBuf], unit: &Name) -> bool {
    let names = [unit.clone()].into_iter().chain(unit.template());
    let mut files = names.flat_map(|name| load.iter().map(move |directory| directory.join(name.to_string())));
    files.any(|file| file.exists())
}

/// The directories to be watched: those of the load path, of drop-ins, and of files that are linked.
pub(super) fn directories(load: &[PathBuf]) -> Vec<PathBuf> {
    let files = Files::find(load, &mut Vec::new());
    let drop_ins = files.drop_ins.values().flat_map(BTreeMap::values);
    let linked = files.units.values().chain(drop_ins).filter_map(|path| fs::canonicalize(path).ok());
    let linked = linked.filter_map(|path| path.parent().map(Path::to_owned));
    let empty = load.iter().flat_map(|directory| entries(directory).unwrap_or_default());
    let empty = empty.filter(|path| path.extension().is_some_and(|end| end == "d"));
    let all: BTreeSet<PathBuf> = load.iter().cloned().chain(linked).chain(empty).collect();
    all.into_iter().collect()
}

impl Files {
    fn find(load: &[PathBuf], told: &mut Vec<String>) -> Self {
        let mut files = Self::default();
        for directory in load {
            match entries(directory) {
                Ok(paths) => paths.into_iter().for_each(|path| files.add(path, told)),
                Err(cause) => told.push(format!("cannot read {}: {cause}", directory.display())),
            }
        }
        files
    }

    fn add(&mut self, path: PathBuf, told: &mut Vec<String>) {
        let Some(file) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { return };
        if let Some(of) = file.strip_suffix(".d") {
            match entries(&path) {
                Ok(found) => found.into_iter().for_each(|drop_in| self.add_drop_in(of, drop_in)),
                Err(cause) => told.push(format!("cannot read {}: {cause}", path.display())),
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

    /// What a unit's file and drop-ins say, the last of them most.
    fn setting(&self, name: &Name, told: &mut Vec<String>) -> Setting {
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
                // It was there a moment ago; that it is gone is an event of its own. A socket or a directory is no unit.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => told.push(format!("cannot read {}: {cause}", path.display())),
            }
        }
        setting
    }

    /// Drop-ins by name; of several with one name that of the directory that is closest to the unit's name.
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

/// The directories of a unit's drop-ins, without `.d`: its own, those of each beginning that a dash ends, those of its kind.
fn directories_of(name: &Name) -> Vec<String> {
    let (stem, kind) = (name.stem(), name.kind());
    let beginnings = stem.rmatch_indices('-').map(|(at, dash)| &stem[..at + dash.len()]);
    let beginnings = beginnings.filter(|beginning| beginning.len() < stem.len()).map(|begin| format!("{begin}.{kind}"));
    [name.to_string()].into_iter().chain(beginnings).chain([kind.to_owned()]).collect()
}

/// Whose other name a file is.
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

/// The last value of the key in a section of a unit file; one that is empty takes those before away.
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

/// Lines as systemd reads them: a backslash goes on in the next one, which a comment may lie before.
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

/// What lies in a directory, sorted; nothing where it is not there.
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
