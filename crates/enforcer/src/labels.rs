//! Labels of what exists: where they come from, and where they are kept.
//!
//! [`file_contexts`] says what a path is labelled first; [`filesystems`] what a policy says of file systems, [`genfs`]
//! of paths in those that keep no labels, and [`vital`] which of those enforcement lives by. [`machine`] labels
//! everything that is there when enforcement starts, by [`walk`]s of what is [`mounts`]ed and of what [`processes`]
//! hold. [`maps`] is where the kernel finds labels, and a [`map_sink`] where a walk puts them; [`durable`] keeps them
//! in attributes of the files, written by [`writers`] from a [`backlog`]; a [`note`] has what could not be written, and
//! [`recall`] reads it when the file system is labelled again. [`relabel`] changes labels, and [`changed`] says which files
//! another `file_contexts` may give others; programs that are [`replaced`] keep theirs; what may hang while it is
//! asked is asked by threads that stand [`alone`]. [`subvolumes`] tells the programs what they need to know files of
//! btrfs by; a [`checkpoint`] says what a crash may have taken, and [`lost`] is what has; what came into memory while
//! hooks did not run is [`unseen`].

pub(crate) mod alone;
pub mod backlog;
pub mod bare;
pub mod changed;
pub mod checkpoint;
pub mod durable;
mod expression;
pub mod file_contexts;
pub mod filesystems;
pub mod genfs;
pub mod handle;
pub mod identity;
pub mod lost;
pub mod machine;
pub mod map_sink;
pub mod maps;
pub mod mounts;
mod names;
pub mod note;
pub mod notebook;
pub mod object;
pub mod processes;
pub mod recall;
pub mod relabel;
pub mod replaced;
pub mod roots;
mod selabel;
pub mod subvolumes;
pub mod types;
pub mod unseen;
pub mod vital;
pub mod walk;
pub mod writers;

use std::io;

use object::Object;
use tollgate_abi::enforcer::SECINITSID_UNLABELED;

pub use crate::contexts::Sid;

/// What turns contexts into SIDs.
pub trait Contexts {
    /// The SID of a context; `None` when the policy has no such context.
    fn sid(&mut self, context: &str) -> io::Result<Option<Sid>>;
    /// The SID of a context that the policy does not have: unlabelled, until a policy has it. By default nobody remembers it.
    fn deferred(&mut self, _context: &str) -> io::Result<Sid> {
        Ok(SECINITSID_UNLABELED)
    }
}

/// Where a label comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The file's own attribute.
    Attribute,
    /// `file_contexts`, by its path.
    FileContexts,
    /// Nothing: it may have been lost in a crash. The file is unlabelled.
    Lost,
    /// Its directory, or what the policy says of the file system's root.
    Inherited,
    /// `genfscon`, by its path, or its file system: nothing keeps it, it is found again each time.
    FileSystem,
}

/// A label for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The label.
    pub sid: Sid,
    /// That of the directory it was found in; `None` for a root.
    pub directory: Option<Sid>,
    /// Of a directory in a tree of `genfscon`: where below it labels are looked up.
    pub node: u32,
    /// Where it comes from.
    pub origin: Origin,
}

impl Label {
    /// Whether it has to be written down: the kernel gives a file whose label is not written down its directory's, and
    /// one that has several names none.
    pub fn is_own(&self, object: &Object<'_>) -> bool {
        self.origin != Origin::FileSystem
            && (self.directory != Some(self.sid) || (object.links() > 1 && !object.is(libc::S_IFDIR)))
    }
}

/// What takes labels.
pub trait Sink {
    /// Labels a file; tells the label that it has then, which another one may have been written down for.
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid>;
    /// Labels a file that no walk can find, unless it has a label.
    fn hold(&mut self, object: &Object<'_>, sid: Sid) -> io::Result<()>;
    /// What is in a file system has its labels from now on by what was written down, and by its directory.
    fn complete(&mut self, device: u32) -> io::Result<()>;
    /// Likewise what is in a subvolume of one.
    fn complete_subvolume(&mut self, _device: u32, _subvolume: u64) -> io::Result<()> {
        Ok(())
    }
}
