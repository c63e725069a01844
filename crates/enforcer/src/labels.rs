//! Labels of what exists: where they come from, and where they are kept.
//!
//! [`file_contexts`] says what a path is labelled first; [`filesystems`] what a policy says of file systems, [`genfs`] of
//! paths in those that keep no labels.

pub mod file_contexts;
pub mod filesystems;
pub mod genfs;
