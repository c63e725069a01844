//! The fleet: one signed policy on every machine, and proof that it is there (docs/fleet.md).
//!
//! A publisher signs generations, a [`store::Store`] hands them to nodes, and each node checks everything itself: the
//! store is never trusted. All of this is functions of values but for the [`folder`] as a store, and for what a node keeps ([`kept`], [`shelf`]).

#![forbid(unsafe_code)]
// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod document;
pub mod durable;
pub mod folder;
pub mod generation;
pub mod hash;
pub mod kept;
pub mod manifest;
pub mod name;
pub mod part;
pub mod register;
pub mod report;
pub mod rollout;
pub mod root;
pub mod shelf;
pub mod stage;
pub mod state;
pub mod store;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
pub mod time;
pub mod trust;
pub mod voucher;
pub mod zones;

pub use self::{
    document::Signed, folder::Folder, generation::Generation, hash::Hash, kept::Kept, manifest::Manifest, name::Name,
    register::Register, root::Root, state::State, time::Time,
};
