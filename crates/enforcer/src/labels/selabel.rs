//! libselinux's selabel. Nothing else of libselinux is used: no selinuxfs, no `/etc/selinux`, no translation of
//! contexts.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs::File,
    io::{self, Write},
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::Path,
    ptr::{self, NonNull},
};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// Why libselinux does not accept a text.
#[derive(Debug)]
pub(super) enum Refusal {
    /// What libselinux says, for example `line 7 has invalid regex ...`.
    Said(String),
    /// The text could not be passed to libselinux.
    Io(io::Error),
}

/// A compiled `file_contexts`. It may be sent to another thread, but only one may use it at a time, because libselinux
/// counts matches without a lock.
#[derive(Debug)]
pub(super) struct Handle(NonNull<c_void>);

// SAFETY: a handle is memory that belongs to nobody else; libselinux keeps nothing of it by thread.
unsafe impl Send for Handle {}

// c/file_contexts.c, and <selinux/label.h>.
unsafe extern "C" {
    fn tollgate_file_contexts_open(path: *const c_char, validate: c_int, text: *mut c_char, size: usize)
    -> *mut c_void;
    fn selabel_lookup_raw(handle: *mut c_void, context: *mut *mut c_char, path: *const c_char, mode: c_int) -> c_int;
    fn selabel_close(handle: *mut c_void);
}

impl Handle {
    /// Reads a text whose lines are known to be valid. An expression is compiled when it is first compared.
    pub(super) fn new(text: &str) -> Result<Self, Refusal> {
        Self::open(text, false)
    }

    /// Checks each line of a text. libselinux compares it with each other one, so the text should be short.
    pub(super) fn check(text: &str) -> Result<(), Refusal> {
        Self::open(text, true).map(drop)
    }

    fn open(text: &str, validate: bool) -> Result<Self, Refusal> {
        let file = in_memory(text).map_err(Refusal::Io)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let name = CString::new(path.as_str()).map_err(|cause| Refusal::Io(cause.into()))?;
        let mut message = [0u8; 512];
        // SAFETY: the path ends in NUL, `message` has the length that is said, and what is written to it ends in NUL.
        let handle = unsafe {
            tollgate_file_contexts_open(name.as_ptr(), validate.into(), message.as_mut_ptr().cast(), message.len())
        };
        let cause = io::Error::last_os_error();
        let message = String::from_utf8_lossy(&message);
        let message = message.trim_end_matches('\0').trim();
        match NonNull::new(handle) {
            Some(handle) => Ok(Self(handle)),
            None if message.is_empty() => Err(Refusal::Io(cause)),
            None => {
                let message = message.strip_prefix(&path).unwrap_or(message);
                Err(Refusal::Said(message.trim_start_matches([':', ' ']).to_owned()))
            }
        }
    }

    /// The context of a path; `None`: no line matches, or the one that does says `<<none>>`.
    pub(super) fn lookup(&self, path: &Path, mode: u32) -> io::Result<Option<String>> {
        let text = CString::new(path.as_os_str().as_bytes())?;
        let mode = c_int::try_from(mode).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut context = ptr::null_mut();
        // SAFETY: the handle is open, the path ends in NUL, and the answer is ours when the status is 0.
        let status = unsafe { selabel_lookup_raw(self.0.as_ptr(), &raw mut context, text.as_ptr(), mode) };
        if status != 0 {
            let cause = io::Error::last_os_error();
            return if cause.raw_os_error() == Some(libc::ENOENT) { Ok(None) } else { Err(cause) };
        }
        // SAFETY: the answer is a text that ends in NUL.
        let answer = unsafe { CStr::from_ptr(context) }.to_str().map(str::to_owned);
        // SAFETY: it is ours, from malloc, and not used again.
        unsafe { libc::free(context.cast()) };
        answer.map(Some).map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and not used again.
        unsafe { selabel_close(self.0.as_ptr()) };
    }
}

/// The text as a file that nobody else sees, so that nobody can put a compiled one beside it.
fn in_memory(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"file_contexts", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}
