//! Labels of existing objects: where they come from, and where they are kept.
//!
//! [`file_contexts`] gives the first label of a path. [`filesystems`] is what a policy says about file systems,
//! [`genfs`] about paths on those that keep no labels, and [`vital`] which of these files enforcement depends on.
//! [`machine`] labels everything that exists when enforcement starts, by [`walk`]s of what is [`mounts`]ed and of what
//! [`processes`] hold.
//! [`maps`] is where the kernel finds labels, and a [`map_sink`] is where a walk puts them. [`durable`] keeps them in
//! attributes of the files, written by [`writers`] from a [`backlog`]. A [`note`] has the labels that could not be
//! written, and [`recall`] reads it when the file system is labelled again. [`relabel`] changes labels. [`changed`]
//! says which files get other labels by another `file_contexts`. Programs that are [`replaced`] keep theirs.
//! A request to a file system that may hang is made by a thread that stands [`alone`]. [`subvolumes`] gives the
//! programs what they need to identify files on btrfs. A [`checkpoint`] says which labels a crash may have taken, and
//! [`lost`] lists files whose labels are lost. Files that came into memory while hooks did not run are [`unseen`].

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
pub mod walked;
pub mod writers;

use std::io;

use object::Object;
use tollgate_abi::enforcer::SECINITSID_UNLABELED;

pub use crate::contexts::Sid;

/// Turns contexts into SIDs.
pub trait Contexts {
    /// The SID of a context; `None`: the policy does not have the context.
    fn sid(&mut self, context: &str) -> io::Result<Option<Sid>>;
    /// The SID of a context that the policy does not have: unlabelled, until a policy has it. By default it is not
    /// remembered.
    fn deferred(&mut self, _context: &str) -> io::Result<Sid> {
        Ok(SECINITSID_UNLABELED)
    }
}

/// Where a label comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The file's own attribute.
    Attribute,
    /// `file_contexts`, by the file's path.
    FileContexts,
    /// Nowhere: the label may have been lost in a crash. The file is unlabelled.
    Lost,
    /// The file's directory; for a root, what the policy says about the file system.
    Inherited,
    /// `genfscon` by the file's path, or the file system. Such a label is not kept, but determined again each time.
    FileSystem,
}

/// A label for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// SID of the label.
    pub sid: Sid,
    /// The label of the directory in which the file was found; `None`: it is a root.
    pub directory: Option<Sid>,
    /// For a directory in a tree of `genfscon`: the node below which labels are looked up; 0: none.
    pub node: u32,
    /// Where it comes from.
    pub origin: Origin,
}

impl Label {
    /// Whether the label must be written down. Without that, the kernel gives a file the label of its directory, and no
    /// label to a file with several names.
    pub fn is_own(&self, object: &Object<'_>) -> bool {
        self.origin != Origin::FileSystem
            && (self.directory != Some(self.sid) || (object.links() > 1 && !object.is(libc::S_IFDIR)))
    }
}

/// Takes the labels that a walk finds.
pub trait Sink {
    /// Labels a file. Returns the label that it has then, which may be another one that was written down for it.
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid>;
    /// Labels a file that no walk can find, unless it has a label.
    fn hold(&mut self, object: &Object<'_>, sid: Sid) -> io::Result<()>;
    /// From now on, objects on a file system are labelled by what was written down, and by their directory.
    fn complete(&mut self, device: u32) -> io::Result<()>;
    /// Likewise for a subvolume.
    fn complete_subvolume(&mut self, _device: u32, _subvolume: u64) -> io::Result<()> {
        Ok(())
    }
}
