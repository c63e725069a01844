//! The enforcers under comparison, behind one interface.

mod selinux;
mod tollgate;

use std::{io, path::Path};

use tollgate_client::{descriptors::Descriptors, protocol::Attribute};

/// An enforcer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The kernel's own SELinux.
    Selinux,
    /// Tollgate's daemon and programs, and when they check descriptors.
    Tollgate(Descriptors),
}

impl Engine {
    /// The engine of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Selinux, Self::Tollgate(Descriptors::Check), Self::Tollgate(Descriptors::Use)];
        all.into_iter().find(|engine| engine.name() == name)
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Selinux => "selinux",
            Self::Tollgate(Descriptors::Check) => "tollgate",
            Self::Tollgate(Descriptors::Use) => "tollgate-use",
        }
    }

    /// Puts a policy in force, from a file in the engine's format.
    pub(crate) fn load(self, policy: &Path) -> io::Result<()> {
        match self {
            Self::Selinux => selinux::load(policy),
            Self::Tollgate(descriptors) => tollgate::load(policy, descriptors),
        }
    }

    /// Sets enforcing or permissive mode.
    pub(crate) fn enforce(self, enforcing: bool) -> io::Result<()> {
        match self {
            Self::Selinux => selinux::enforce(enforcing),
            Self::Tollgate(_) => tollgate::enforce(enforcing),
        }
    }

    /// Labels the file at the path itself, also as an act of subjects.
    pub(crate) fn relabel(self, path: &str, context: &str) -> io::Result<()> {
        match self {
            Self::Selinux => selinux::relabel(path, context),
            Self::Tollgate(_) => tollgate::relabel(path, context),
        }
    }

    /// The context of the file at the path itself.
    pub(crate) fn label(self, path: &str) -> io::Result<String> {
        match self {
            Self::Selinux => selinux::label(path),
            Self::Tollgate(_) => tollgate::label(path),
        }
    }

    /// The caller's context.
    pub(crate) fn current(self) -> io::Result<String> {
        match self {
            Self::Selinux => selinux::current(),
            Self::Tollgate(_) => tollgate::current(),
        }
    }

    /// Changes the caller's context (`setcon`).
    pub(crate) fn set_current(self, context: &str) -> io::Result<()> {
        match self {
            Self::Selinux => selinux::set("current", context),
            Self::Tollgate(_) => tollgate::set(Attribute::Current, context),
        }
    }

    /// The context of the program that the caller executes next (`setexeccon`).
    pub(crate) fn set_exec(self, context: &str) -> io::Result<()> {
        match self {
            Self::Selinux => selinux::set("exec", context),
            Self::Tollgate(_) => tollgate::set(Attribute::Exec, context),
        }
    }

    /// Sets the context of keys that the caller creates from now on (`setkeycreatecon`).
    pub(crate) fn set_key_create(self, context: &str) -> io::Result<()> {
        match self {
            Self::Selinux => selinux::set("keycreate", context),
            Self::Tollgate(_) => tollgate::set(Attribute::KeyCreate, context),
        }
    }

    /// Sets the context of files that the caller creates from now on (`setfscreatecon`).
    pub(crate) fn set_create(self, context: &str) -> io::Result<()> {
        match self {
            Self::Selinux => selinux::set("fscreate", context),
            Self::Tollgate(_) => tollgate::set(Attribute::FsCreate, context),
        }
    }
}
