//! `c/sepol.h` for Rust.

use std::{
    ffi::{CString, c_char, c_int, c_uchar},
    os::fd::RawFd,
};

use super::{CilFile, Options};

pub(super) const END: u8 = 0;
pub(super) const MESSAGES: u8 = 1;
pub(super) const IMAGE: u8 = 2;
pub(super) const MODEL: u8 = 3;
pub(super) const FILE_CONTEXTS: u8 = 4;
pub(super) const CIL: u8 = 5;
pub(super) const REFUSED_STEP: u8 = 6;

#[repr(C)]
struct TollgateFile {
    name: *const c_char,
    text: *const c_char,
    length: usize,
}

#[repr(C)]
struct TollgateOptions {
    version: u32,
    disable_neverallow: u32,
    multiple_decls: u32,
}

impl From<&Options> for TollgateOptions {
    fn from(options: &Options) -> Self {
        Self {
            version: options.version,
            disable_neverallow: options.disable_neverallow.into(),
            multiple_decls: options.multiple_decls.into(),
        }
    }
}

unsafe extern "C" {
    fn tollgate_compile(files: *const TollgateFile, count: usize, options: *const TollgateOptions, out: c_int)
    -> c_int;
    fn tollgate_resolve(files: *const TollgateFile, count: usize, options: *const TollgateOptions, out: c_int)
    -> c_int;
    fn tollgate_read(image: *const c_char, length: usize, out: c_int) -> c_int;
    fn tollgate_set_booleans(
        image: *const c_char,
        length: usize,
        states: *const c_uchar,
        count: usize,
        out: c_int,
    ) -> c_int;
    fn tollgate_module(package: *const c_char, length: usize, out: c_int) -> c_int;
    fn tollgate_section(out: c_int, tag: c_int, content: *const c_char, length: usize) -> c_int;
    fn tollgate_newest() -> u32;
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
pub(super) fn section(out: RawFd, tag: u8, content: &[u8]) -> bool {
    // SAFETY: content outlives the call.
    unsafe { tollgate_section(out, tag.into(), content.as_ptr().cast(), content.len()) == 0 }
}

/// The newest binary policy that libsepol reads.
pub(super) fn newest() -> u32 {
    // SAFETY: it returns a constant.
    unsafe { tollgate_newest() }
}

fn with_files(files: &[CilFile], call: impl FnOnce(&[TollgateFile]) -> i32) -> i32 {
    let names: Vec<CString> = files.iter().map(|file| printable(&file.name)).collect();
    let files: Vec<TollgateFile> = files
        .iter()
        .zip(&names)
        .map(|(file, name)| TollgateFile {
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
