//! `c/sepol.h` for Rust.

use std::{ffi::CString, os::fd::RawFd};

pub(super) use self::sepol::{
    TOLLGATE_CIL as CIL, TOLLGATE_END as END, TOLLGATE_FILE_CONTEXTS as FILE_CONTEXTS, TOLLGATE_IMAGE as IMAGE,
    TOLLGATE_MESSAGES as MESSAGES, TOLLGATE_MODEL as MODEL, TOLLGATE_REFUSED_STEP as REFUSED_STEP, tollgate_tag as Tag,
};
use self::sepol::{
    tollgate_compile, tollgate_file, tollgate_module, tollgate_newest, tollgate_options, tollgate_read,
    tollgate_resolve, tollgate_section, tollgate_set_booleans,
};
use super::{CilFile, Options};

/// `c/sepol.h`, which has the comments.
#[allow(
    clippy::allow_attributes_without_reason,
    clippy::undocumented_unsafe_blocks,
    non_camel_case_types,
    unreachable_pub,
    reason = "generated"
)]
mod sepol {
    include!(concat!(env!("OUT_DIR"), "/sepol.rs"));
}

impl From<&Options> for tollgate_options {
    fn from(options: &Options) -> Self {
        Self {
            version: options.version,
            disable_neverallow: options.disable_neverallow.into(),
            multiple_decls: options.multiple_decls.into(),
        }
    }
}

/// Compiles CIL sources; for the child only.
pub(super) fn compile(files: &[CilFile], options: &Options, out: RawFd) -> i32 {
    let options = options.into();
    with_files(files, |files| {
        // SAFETY: files and options outlive the call; out is open.
        unsafe { tollgate_compile(files.as_ptr(), files.len(), &options, out) }
    })
}

/// Resolves CIL sources; for the child only.
pub(super) fn resolve(files: &[CilFile], options: &Options, out: RawFd) -> i32 {
    let options = options.into();
    with_files(files, |files| {
        // SAFETY: files and options outlive the call; out is open.
        unsafe { tollgate_resolve(files.as_ptr(), files.len(), &options, out) }
    })
}

/// Reads a binary policy; for the child only.
pub(super) fn read(image: &[u8], out: RawFd) -> i32 {
    // SAFETY: image outlives the call and is not written to; out is open.
    unsafe { tollgate_read(image.as_ptr().cast(), image.len(), out) }
}

/// Sets the booleans of a binary policy; for the child only.
pub(super) fn set_booleans(image: &[u8], states: &[u8], out: RawFd) -> i32 {
    // SAFETY: image and states outlive the call and are not written to; out is open.
    unsafe { tollgate_set_booleans(image.as_ptr().cast(), image.len(), states.as_ptr(), states.len(), out) }
}

/// Turns a module package into CIL; for the child only.
pub(super) fn module(package: &[u8], out: RawFd) -> i32 {
    // SAFETY: package outlives the call and is not written to; out is open.
    unsafe { tollgate_module(package.as_ptr().cast(), package.len(), out) }
}

/// Writes a section. Returns whether that succeeded.
pub(super) fn section(out: RawFd, tag: Tag, content: &[u8]) -> bool {
    // SAFETY: content outlives the call.
    unsafe { tollgate_section(out, tag, content.as_ptr().cast(), content.len()) == 0 }
}

/// The newest binary policy that libsepol reads.
pub(super) fn newest() -> u32 {
    // SAFETY: it returns a constant.
    unsafe { tollgate_newest() }
}

fn with_files(files: &[CilFile], call: impl FnOnce(&[tollgate_file]) -> i32) -> i32 {
    let names: Vec<CString> = files.iter().map(|file| printable(&file.name)).collect();
    let files: Vec<tollgate_file> = files
        .iter()
        .zip(&names)
        .map(|(file, name)| tollgate_file {
            name: name.as_ptr(),
            text: file.text.as_ptr().cast(),
            length: file.text.len(),
        })
        .collect();
    call(&files)
}

/// A name in a form that messages can contain.
fn printable(name: &str) -> CString {
    CString::new(name.replace('\0', "?")).unwrap_or_default()
}
