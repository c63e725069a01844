//! The policy of a machine: the shipped policy, built together with what its administrator adds, removes and sets.
//!
//! `/usr/share/tollgate/policy` is shipped, and replaced by upgrades. `/etc/tollgate` belongs to the administrator:
//! `policy.d` has modules, NAME.cil with file contexts in NAME.fc. Beside it are `file_contexts.local`,
//! `file_contexts.subs`, `ports.local` and `booleans.local`, with SELinux's names and formats. `policy` is built from
//! all that, and the machine starts with it. [`Contents`] is the sources as data, which are changed and built in
//! memory. [`Staged`] puts the results in place, all of them or none.

mod booleans;
mod contents;
mod ports;
mod staged;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use nix::fcntl::{Flock, FlockArg};

pub use self::{
    contents::{Contents, Module, Next},
    ports::{Port, Protocol},
    staged::Staged,
};
use crate::{
    booleans::BooleanError,
    built::{Built, BuiltError, Identity},
    context::{self, ContextError, Kind, Names},
    file_contexts::FileContextsError,
    model::{Context, Policy},
    origin::Origin,
    sources::SourceError,
};

/// Where packages, and `make install`, put the shipped policy.
const SHIPPED: [&str; 2] = ["/usr/share/tollgate/policy", "/usr/local/share/tollgate/policy"];
/// The administrator's directory.
const FOLDER: &str = "/etc/tollgate";
const MODULES: &str = "policy.d";
const POLICY: &str = "policy";
const SANITY: &str = "sanity.tsv";
/// The local files beside the modules.
const FILE_CONTEXTS: &str = "file_contexts.local";
const ALIASES: &str = "file_contexts.subs";
const PORTS: &str = "ports.local";
const BOOLEANS: &str = "booleans.local";
const TEXTS: [&str; 4] = [FILE_CONTEXTS, ALIASES, PORTS, BOOLEANS];

/// Why the policy of a machine cannot be read, built or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory could not be read or written.
    #[error("cannot {what} {}: {cause}", .path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// No policy is shipped.
    #[error("{} has no *.cil files: there is no shipped policy to build on; install Tollgate's package, or `make install`", .0.display())]
    NotShipped(PathBuf),
    /// A name that a module cannot have.
    #[error("`{0}` cannot be the name of a module: use letters, digits, `-`, `_` and `.`, and do not begin with a dot")]
    Name(String),
    /// There is no such module.
    #[error("there is no module `{name}` in {}{}", .folder.display(), offer(.nearest))]
    #[expect(missing_docs, reason = "the names say it")]
    NoModule {
        name: String,
        /// The directory of modules.
        folder: PathBuf,
        /// Similar names of modules.
        nearest: Vec<String>,
    },
    /// File contexts of a module that does not exist.
    #[error(
        "{0}.fc has no module {0}.cil beside it: put lines that belong to no module in file_contexts.local (`tollgate fcontext add`)"
    )]
    WithoutModule(String),
    /// Two modules label the same paths.
    #[error("modules {one} and {other} both label `{expression}`: one of them has to leave it out")]
    LabelledTwice {
        /// The module that comes first by name.
        one: String,
        /// The other module.
        other: String,
        /// The regular expression that both have.
        expression: String,
    },
    /// A file that should be text is not.
    #[error("{0} is not UTF-8 text")]
    NotText(String),
    /// A line of a local file is wrong.
    #[error("{file}, line {line}: {expected}")]
    #[expect(missing_docs, reason = "the names say it")]
    Line {
        file: String,
        /// The line, from 1.
        line: usize,
        /// The form that the line should have.
        expected: &'static str,
    },
    /// A port that the policy, or a module, labels already.
    #[error(
        "the policy already labels {port} as {context}, and a port has only one label: allow the domain that type, or use another port"
    )]
    PortTaken {
        /// The port or ports, with their protocol.
        port: String,
        /// Its present label.
        context: String,
    },
    /// Two ranges of ports that overlap, and of which neither contains the other.
    #[error(
        "{port} and {other} ({context}) overlap, and neither lies in the other: which label the ports have that both hold is left \
             open; choose ports of one of them"
    )]
    PortsOverlap {
        /// The ports of one line, with their protocol.
        port: String,
        /// The ports of the other, with their protocol.
        other: String,
        /// The label of the other.
        context: String,
    },
    /// The type is not one for ports.
    #[error("{type_} is not a type of ports: (typeattributeset port_type ({type_})) in a module makes it one")]
    #[expect(missing_docs, reason = "the names say it")]
    NotPortType { type_: String },
    /// The sources do not make a policy.
    #[error(transparent)]
    Sources(#[from] SourceError),
    /// The policy does not accept the file contexts.
    #[error("{name}: {cause}")]
    #[expect(missing_docs, reason = "the names say it")]
    FileContexts {
        name: String,
        /// Why the policy does not accept them.
        cause: FileContextsError,
    },
    /// The booleans cannot be set.
    #[error("{name}: {cause}")]
    #[expect(missing_docs, reason = "the names say it")]
    Booleans {
        name: String,
        /// Why its booleans cannot be set.
        cause: BooleanError,
    },
    /// A name that the policy does not have.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The built policy cannot be read, or written.
    #[error("{}: {cause}", .path.display())]
    Built {
        /// The built policy.
        path: PathBuf,
        /// Why it cannot be read.
        cause: BuiltError,
    },
}

fn offer(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!(" (like it: {})", nearest.join(", ")) }
}

/// Where the sources of a machine's policy are, and the policy itself.
#[derive(Debug, Clone)]
pub struct Store {
    /// The machine's root, `/`, or the directory of an image of one.
    root: PathBuf,
    /// Both paths as the machine sees them.
    shipped: PathBuf,
    folder: PathBuf,
}

/// While it exists, nobody else changes the store.
pub type Lock = Flock<File>;

impl Store {
    /// The store of the machine whose root is `root`. `beside` is the directory that the program was installed in, such
    /// as `/usr`; its shipped policy takes precedence.
    pub fn below(root: &Path, beside: Option<&Path>) -> Self {
        let own = beside.map(|prefix| prefix.join("share/tollgate/policy"));
        let candidates: Vec<PathBuf> = own.into_iter().chain(SHIPPED.map(PathBuf::from)).collect();
        let there = candidates.iter().find(|path| within(root, path).is_dir());
        let shipped = there.cloned().unwrap_or_else(|| SHIPPED[0].into());
        Self { root: root.to_owned(), shipped, folder: FOLDER.into() }
    }

    /// The policy that the machine starts with.
    pub fn policy(&self) -> PathBuf {
        self.file(POLICY)
    }

    /// Its path, as the machine sees it.
    pub fn policy_name(&self) -> PathBuf {
        self.folder.join(POLICY)
    }

    /// The sanity questions that each policy must answer; `None`: there are none.
    pub fn sanity(&self) -> Option<PathBuf> {
        Some(self.file(SANITY)).filter(|path| path.exists())
    }

    fn file(&self, name: &str) -> PathBuf {
        within(&self.root, &self.folder).join(name)
    }

    /// Waits until nobody else changes the store. `wait` is called if that takes time.
    pub fn lock(&self, wait: impl FnOnce()) -> Result<Lock, StoreError> {
        let folder = within(&self.root, &self.folder);
        let error = |what| {
            let path = folder.clone();
            move |cause| StoreError::Io { what, path, cause }
        };
        fs::create_dir_all(folder.join(MODULES)).map_err(error("make"))?;
        let file = File::open(&folder).map_err(error("open"))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(lock),
            Err((file, nix::Error::EWOULDBLOCK)) => {
                wait();
                Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, cause)| error("lock")(cause.into()))
            }
            Err((_, cause)) => Err(error("lock")(cause.into())),
        }
    }

    /// The present sources.
    pub fn read(&self) -> Result<Contents, StoreError> {
        let shipped = within(&self.root, &self.shipped);
        let mut files = BTreeMap::new();
        for name in names(&shipped)?.into_iter().filter(|name| name.ends_with(".cil") || name == "file_contexts") {
            let content = read(&shipped.join(&name))?;
            files.insert(name, content);
        }
        if !files.keys().any(|name| name.ends_with(".cil")) {
            return Err(StoreError::NotShipped(shipped));
        }
        let mut local = BTreeMap::new();
        let modules = names(&self.file(MODULES))?.into_iter().filter(|name| !name.starts_with('.'));
        let modules = modules.filter(|name| name.ends_with(".cil") || name.ends_with(".fc"));
        let modules = modules.map(|name| format!("{MODULES}/{name}"));
        for name in modules.chain(TEXTS.map(str::to_owned).into_iter().filter(|name| self.file(name).exists())) {
            let content = read(&self.file(&name))?;
            local.insert(name, content);
        }
        Ok(Contents::new(self.shipped.clone(), files, self.folder.clone(), local))
    }

    /// The policy that the machine starts with; `None`: there is none.
    pub fn kept(&self) -> Result<Option<Built>, StoreError> {
        self.open(Built::open)
    }

    /// Reads enough of the same policy to compare it with another.
    pub fn identity(&self) -> Result<Option<Identity>, StoreError> {
        self.open(Identity::open)
    }

    fn open<T>(&self, open: impl FnOnce(&Path) -> Result<T, BuiltError>) -> Result<Option<T>, StoreError> {
        let path = self.policy();
        match open(&path) {
            Ok(found) => Ok(Some(found)),
            Err(BuiltError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StoreError::Built { path, cause }),
        }
    }

    /// Whether a policy was built only from this store's sources, so that nothing is lost when it is built again.
    pub fn has_built(&self, origin: &Origin) -> bool {
        let modules = self.folder.join(MODULES);
        let texts = TEXTS.map(|name| self.folder.join(name));
        let own = |path: &Path| {
            path.parent().is_some_and(|folder| folder == self.shipped || folder == modules)
                || texts.iter().any(|text| text == path)
        };
        let shipped = origin.sources.iter().any(|source| Path::new(&source.name).starts_with(&self.shipped));
        shipped && origin.sources.iter().all(|source| own(Path::new(&source.name)))
    }

    /// Prepares the files that differ between `before` and `after`, and the new policy, to be put in place.
    pub fn stage(&self, before: &Contents, after: &Contents, built: &Built) -> Result<Staged, StoreError> {
        let mut staged = Staged::default();
        for (name, content) in after.changed(before) {
            match content {
                Some(content) => staged.write(self.file(name), content)?,
                None => staged.remove(self.file(name)),
            }
        }
        staged.write_last(self.policy(), &built.to_bytes())?;
        Ok(staged)
    }
}

/// A context with this type and everything else from the initial SID `like`; a complete context stays as it is. It must
/// be valid.
pub fn context_like(built: &Built, like: &str, text: &str) -> Result<String, ContextError> {
    let mut server = built.server().map_err(|_| ContextError::Shape { text: text.to_owned(), expected: "a policy" })?;
    let whole = if text.contains(':') { text.to_owned() } else { with_type(&built.policy, like, text)? };
    server.context(&whole)?;
    Ok(whole)
}

fn with_type(policy: &Policy, like: &str, type_: &str) -> Result<String, ContextError> {
    let type_ = Names::of(policy).find(Kind::Type, type_)?;
    let like = policy.initial_sids.iter().find(|sid| sid.name == like).map(|sid| sid.context.clone());
    Ok(context::text(policy, &Context { type_, ..like.unwrap_or_default() }))
}

/// A path of the machine whose root is `root`.
fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The names in a directory, sorted; none if it does not exist.
fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let error = |cause| StoreError::Io { what: "list", path: folder.to_owned(), cause };
    let entries = match fs::read_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(error)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(error)?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|cause| StoreError::Io { what: "read", path: path.to_owned(), cause })
}
