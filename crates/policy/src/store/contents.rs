//! The sources of a machine's policy as data, which are changed and built here.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    ALIASES, BOOLEANS, FILE_CONTEXTS, MODULES, PORTS, StoreError, booleans as values,
    ports::{self, Port},
};
use crate::{
    booleans,
    built::Built,
    context::{Kind, Names, nearest},
    file_contexts::{self, FileContextsError},
    model::Policy,
    origin::{Origin, Source},
    sepol::{CilFile, Options},
    sources::Sources,
};

/// The files in the store, by name: shipped ones, and local ones (`policy.d/web.cil`, `ports.local`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    shipped_folder: PathBuf,
    shipped: BTreeMap<String, Vec<u8>>,
    folder: PathBuf,
    local: BTreeMap<String, Vec<u8>>,
}

/// A local module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module<'c> {
    /// The name under which it was installed.
    pub name: &'c str,
    /// Its files, under the names that the origin of a policy has.
    pub files: Vec<Source>,
}

/// The result of a build.
#[derive(Debug)]
pub struct Next {
    /// The built policy, which is not in force yet.
    pub built: Built,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Contents {
    pub(super) fn new(
        shipped_folder: PathBuf,
        shipped: BTreeMap<String, Vec<u8>>,
        folder: PathBuf,
        local: BTreeMap<String, Vec<u8>>,
    ) -> Self {
        Self { shipped_folder, shipped, folder, local }
    }

    /// The local modules, by name.
    pub fn modules(&self) -> impl Iterator<Item = Module<'_>> {
        self.module_names().map(|name| {
            let files = [cil(name), fc(name)];
            let files = files.iter().filter_map(|file| self.local_source(file));
            Module { name, files: files.collect() }
        })
    }

    /// The names of the macros in all files. Blocks share their namespace.
    #[must_use]
    pub fn macros(&self) -> BTreeSet<String> {
        let files = self.shipped.iter().chain(&self.local).filter(|(name, _)| name.ends_with(".cil"));
        let texts: Vec<_> = files.map(|(_, text)| String::from_utf8_lossy(text)).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        let name = |line: &str| line.trim_start().strip_prefix("(macro ")?.split_whitespace().next().map(str::to_owned);
        lines.filter_map(name).collect()
    }

    fn module_names(&self) -> impl Iterator<Item = &str> {
        self.local.keys().filter_map(|name| name.strip_prefix(MODULES)?.strip_prefix('/')?.strip_suffix(".cil"))
    }

    /// Installs a module, in place of the one with that name. Returns whether there was one.
    pub fn install(&mut self, name: &str, policy: Vec<u8>, contexts: Option<Vec<u8>>) -> Result<bool, StoreError> {
        check_name(name)?;
        self.local.remove(&fc(name));
        self.local.extend(contexts.map(|contexts| (fc(name), contexts)));
        Ok(self.local.insert(cil(name), policy).is_some())
    }

    /// Removes a module.
    pub fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        if self.local.remove(&cil(name)).is_none() {
            let (name, folder) = (name.to_owned(), self.folder.join(MODULES));
            let nearest = nearest(&name, self.module_names());
            return Err(StoreError::NoModule { name, folder, nearest });
        }
        self.local.remove(&fc(name));
        Ok(())
    }

    /// All files with local file contexts, under the names that the origin of a policy has.
    pub fn local_file_contexts(&self) -> impl Iterator<Item = (String, &str)> {
        let files = self.local.iter().filter(|(name, _)| name.ends_with(".fc") || *name == FILE_CONTEXTS);
        files.map(|(name, content)| (self.named(name), text_of(content)))
    }

    /// The administrator's file contexts.
    pub fn file_contexts(&self) -> Result<&str, StoreError> {
        self.text(FILE_CONTEXTS)
    }

    /// Replaces them.
    pub fn set_file_contexts(&mut self, text: String) {
        self.set_text(FILE_CONTEXTS, text);
    }

    /// Which paths are labelled like others: lines `ALIAS PATH`.
    pub fn aliases(&self) -> Result<&str, StoreError> {
        self.text(ALIASES)
    }

    /// Replaces them.
    pub fn set_aliases(&mut self, text: String) {
        self.set_text(ALIASES, text);
    }

    /// The administrator's ports.
    pub fn ports(&self) -> Result<Vec<Port>, StoreError> {
        let lines = ports::parse(self.text(PORTS)?, &self.named(PORTS))?;
        Ok(lines.into_iter().flatten().collect())
    }

    /// Labels ports, replacing their local label. Returns whether there was one. `policy` was built from the present
    /// contents.
    pub fn add_port(&mut self, port: &Port, policy: &Policy) -> Result<bool, StoreError> {
        let replaced = self.ports()?.iter().any(|known| known.is_for(port));
        if !replaced {
            ports::check(port, policy)?;
        }
        let text = ports::with(self.text(PORTS)?, port);
        self.set_text(PORTS, text);
        Ok(replaced)
    }

    /// Removes the local label of ports. Returns whether there was one.
    pub fn remove_port(&mut self, port: &Port) -> Result<bool, StoreError> {
        let known = self.ports()?.iter().any(|known| known.is_for(port));
        let text = ports::without(self.text(PORTS)?, port);
        self.set_text(PORTS, text);
        Ok(known)
    }

    /// The values that booleans must have, by name.
    pub fn booleans(&self) -> Result<BTreeMap<String, bool>, StoreError> {
        values::parse(self.text(BOOLEANS)?, &self.named(BOOLEANS))
    }

    /// Sets values of booleans that are kept.
    pub fn set_booleans(&mut self, assignments: &[(String, bool)]) -> Result<(), StoreError> {
        let text = values::with(self.text(BOOLEANS)?, assignments);
        self.set_text(BOOLEANS, text);
        Ok(())
    }

    /// The file of those values, under the name that the origin of a policy has.
    pub fn booleans_source(&self) -> Option<Source> {
        self.local_source(BOOLEANS)
    }

    fn text(&self, name: &str) -> Result<&str, StoreError> {
        let bytes = self.local.get(name).map_or(&[][..], Vec::as_slice);
        std::str::from_utf8(bytes).map_err(|_| StoreError::NotText(self.named(name)))
    }

    fn set_text(&mut self, name: &str, text: String) {
        if text.is_empty() {
            self.local.remove(name);
        } else {
            self.local.insert(name.to_owned(), text.into_bytes());
        }
    }

    /// The name of a local file in messages and in the origin of a policy.
    fn named(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn local_source(&self, name: &str) -> Option<Source> {
        self.local.get(name).map(|content| Source::new(self.named(name), content))
    }

    /// All files, under the names that the origin of a policy has.
    pub fn sources(&self) -> Vec<Source> {
        let shipped = self.shipped.iter();
        let shipped = shipped.map(|(name, content)| Source::new(in_folder(&self.shipped_folder, name), content));
        shipped.chain(self.local.keys().filter_map(|name| self.local_source(name))).collect()
    }

    /// Local files that differ from those before; `None`: they were removed.
    pub(super) fn changed<'c>(&'c self, before: &'c Self) -> impl Iterator<Item = (&'c str, Option<&'c [u8]>)> {
        let differs = move |(name, content): &(&String, &Vec<u8>)| before.local.get(*name) != Some(*content);
        let written =
            self.local.iter().filter(differs).map(|(name, content)| (name.as_str(), Some(content.as_slice())));
        let gone = before.local.keys().filter(move |name| !self.local.contains_key(name.as_str()));
        written.chain(gone.map(|name| (name.as_str(), None)))
    }

    /// Compiles everything together, including neverallow rules, and sets the booleans.
    pub fn build(&self) -> Result<Next, StoreError> {
        let sources = Sources::Cil { files: self.files()?, modules: false };
        let mut built = sources.build(&Options::default())?;
        ports::check_all(&self.ports()?, &built.policy)?;
        self.label(&mut built)?;
        let (mut built, notes) = self.set(built)?;
        let booleans = built.origin.take().map(|origin| origin.booleans).unwrap_or_default();
        built.origin = Some(Origin { booleans, ..Origin::now(self.sources()) });
        Ok(Next { built, notes })
    }

    /// All CIL files.
    fn files(&self) -> Result<Vec<CilFile>, StoreError> {
        let shipped = self.shipped.iter().filter(|(name, _)| name.ends_with(".cil"));
        let shipped =
            shipped.map(|(name, text)| CilFile { name: in_folder(&self.shipped_folder, name), text: text.clone() });
        let local = self.local.iter().filter(|(name, _)| name.ends_with(".cil"));
        let local = local.map(|(name, text)| CilFile { name: self.named(name), text: text.clone() });
        let mut files: Vec<CilFile> = shipped.chain(local).collect();
        let ports = ports::parse(self.text(PORTS)?, &self.named(PORTS))?;
        if ports.iter().any(Option::is_some) {
            files.push(CilFile { name: self.named(PORTS), text: ports::cil(&ports).into_bytes() });
        }
        Ok(files)
    }

    /// All file contexts. Local ones replace shipped ones.
    fn label(&self, built: &mut Built) -> Result<(), StoreError> {
        let mut put = |name: String, content: &[u8]| {
            let text = std::str::from_utf8(content).map_err(|_| StoreError::NotText(name.clone()))?;
            append(built, &name, text)
        };
        for (name, content) in self.shipped.iter().filter(|(name, _)| !name.ends_with(".cil")) {
            put(in_folder(&self.shipped_folder, name), content)?;
        }
        for (name, content) in self.contexts_of_modules()? {
            put(self.named(&fc(name)), content)?;
        }
        put(self.named(FILE_CONTEXTS), self.file_contexts()?.as_bytes())?;
        built.file_contexts = file_contexts::with_aliases(&built.file_contexts, self.aliases()?);
        Ok(())
    }

    /// The file contexts of modules, by the module's name. No two of them label the same paths.
    fn contexts_of_modules(&self) -> Result<Vec<(&str, &[u8])>, StoreError> {
        let files = self.local.iter();
        let files = files.filter_map(|(file, content)| Some((file.strip_prefix(MODULES)?.strip_prefix('/')?, content)));
        let found: Vec<(&str, &[u8])> =
            files.filter_map(|(file, content)| Some((file.strip_suffix(".fc")?, content.as_slice()))).collect();
        for (at, (name, content)) in found.iter().enumerate() {
            if !self.local.contains_key(&cil(name)) {
                return Err(StoreError::WithoutModule((*name).to_owned()));
            }
            for line in file_contexts::lines(text_of(content)) {
                let meets = |content: &[u8]| file_contexts::lines(text_of(content)).any(|own| own.meets(&line));
                if let Some((before, _)) = found[..at].iter().find(|(_, content)| meets(content)) {
                    let (one, other) = ((*before).to_owned(), (*name).to_owned());
                    return Err(StoreError::LabelledTwice { one, other, expression: line.expression.to_owned() });
                }
            }
        }
        Ok(found)
    }

    /// The policy with the kept values of booleans, and a note for each boolean that it does not have.
    fn set(&self, built: Built) -> Result<(Built, Vec<String>), StoreError> {
        let names = Names::of(&built.policy);
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.booleans()?.into_iter().partition(|(name, _)| names.find(Kind::Boolean, name).is_ok());
        let file = self.named(BOOLEANS);
        let note = |(name, _): (String, bool)| {
            format!("{file}: the policy has no boolean `{name}`: its value is kept but has no effect")
        };
        let notes = unknown.into_iter().map(note).collect();
        if known.is_empty() {
            return Ok((built, notes));
        }
        let set = booleans::set(&built, &known);
        Ok((set.map_err(|cause| StoreError::Booleans { name: file.clone(), cause })?, notes))
    }
}

fn append(built: &mut Built, name: &str, text: &str) -> Result<(), StoreError> {
    let failed = |cause: FileContextsError| StoreError::FileContexts { name: name.to_owned(), cause };
    file_contexts::append(built, text).map_err(failed)
}

/// Content that is not text is refused elsewhere.
fn text_of(content: &[u8]) -> &str {
    std::str::from_utf8(content).unwrap_or_default()
}

fn in_folder(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn cil(module: &str) -> String {
    format!("{MODULES}/{module}.cil")
}

fn fc(module: &str) -> String {
    format!("{MODULES}/{module}.fc")
}

fn check_name(name: &str) -> Result<(), StoreError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let good = name.chars().all(fits) && !name.starts_with(['.', '-']) && !name.is_empty();
    if good { Ok(()) } else { Err(StoreError::Name(name.to_owned())) }
}
