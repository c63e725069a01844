//! First labels of files: `file_contexts`, read and asked by libselinux's selabel.
//!
//! Nothing else of libselinux is used: no selinuxfs, no `/etc/selinux`, no translation of contexts.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs::File,
    io::{self, Write},
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    ptr::{self, NonNull},
};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// The context of what is to stay without a label.
const NONE: &str = "<<none>>";

/// Why a `file_contexts` cannot be used, or a path cannot be looked up in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileContextsError {
    /// A line of it is wrong.
    #[error("file_contexts, line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What libselinux, or the policy, says of it.
        reason: String,
    },
    /// libselinux refuses it as a whole.
    #[error("cannot use file_contexts: {reason}")]
    Refused {
        /// What libselinux says.
        reason: String,
    },
    /// It could not be handed to libselinux, which reads files only.
    #[error("cannot hand file_contexts to libselinux: {cause}")]
    Io {
        /// Why it failed.
        cause: io::Error,
    },
    /// A path could not be looked up.
    #[error("cannot look up {} in file_contexts: {cause}", path.display())]
    Lookup {
        /// The path.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
}

/// A line that labels: `EXPRESSION [KIND] CONTEXT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Specification<'t> {
    /// Its line, from 1.
    pub line: usize,
    /// The context; `None` for `<<none>>`.
    pub context: Option<&'t str>,
}

/// The lines of a `file_contexts` that label, without what libselinux will refuse.
pub fn specifications(text: &str) -> impl Iterator<Item = Specification<'_>> {
    (1..).zip(text.lines()).filter_map(|(line, text)| {
        let mut words = text.split_whitespace();
        let context = words.next().filter(|first| !first.starts_with('#')).and(words.next_back())?;
        Some(Specification { line, context: Some(context).filter(|context| *context != NONE) })
    })
}

/// A `file_contexts` that can be asked.
///
/// It may be sent to another thread, but is for one at a time: libselinux counts matches without a lock.
#[derive(Debug)]
pub struct FileContexts {
    handle: NonNull<c_void>,
}

// SAFETY: a handle is memory that belongs to nobody else; libselinux keeps nothing of it by thread.
unsafe impl Send for FileContexts {}

// C's side: c/file_contexts.c, and <selinux/label.h>.
unsafe extern "C" {
    fn tollgate_file_contexts_open(path: *const c_char, text: *mut c_char, size: usize) -> *mut c_void;
    fn selabel_lookup_raw(handle: *mut c_void, context: *mut *mut c_char, path: *const c_char, mode: c_int) -> c_int;
    fn selabel_close(handle: *mut c_void);
}

impl FileContexts {
    /// Reads the text of a `file_contexts`; each expression is compiled, and each context has the shape of one.
    pub fn new(text: &str) -> Result<Self, FileContextsError> {
        Self::checked(text, |_| Ok(()))
    }

    /// Likewise; `check` says what is wrong with a context, such as that the policy does not have its type.
    pub fn checked(text: &str, mut check: impl FnMut(&str) -> Result<(), String>) -> Result<Self, FileContextsError> {
        for Specification { line, context } in specifications(text) {
            let Some(context) = context else { continue };
            if context.split(':').take(3).filter(|part| !part.is_empty()).count() < 3 {
                return Err(FileContextsError::Line { line, reason: format!("`{context}` is not a context") });
            }
            check(context).map_err(|reason| FileContextsError::Line { line, reason })?;
        }
        let file = in_memory(text).map_err(|cause| FileContextsError::Io { cause })?;
        open(&file)
    }

    /// The context that a file of that path and mode gets first; `None` when no line matches, or one that says
    /// `<<none>>`. Of a mode of 0 the kind of file is not known, and lines for any kind match.
    pub fn lookup(&self, path: &Path, mode: u32) -> Result<Option<String>, FileContextsError> {
        let failed = |cause| FileContextsError::Lookup { path: path.to_owned(), cause };
        let text = CString::new(path.as_os_str().as_bytes()).map_err(|cause| failed(cause.into()))?;
        let mode = c_int::try_from(mode).map_err(|_| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut context = ptr::null_mut();
        // SAFETY: the handle is open, the path ends in NUL, and the answer is ours when the status is 0.
        let status = unsafe { selabel_lookup_raw(self.handle.as_ptr(), &raw mut context, text.as_ptr(), mode) };
        if status != 0 {
            let cause = io::Error::last_os_error();
            return if cause.raw_os_error() == Some(libc::ENOENT) { Ok(None) } else { Err(failed(cause)) };
        }
        // SAFETY: the answer is a text that ends in NUL.
        let answer = unsafe { CStr::from_ptr(context) }.to_str().map(str::to_owned);
        // SAFETY: it is ours, from malloc, and not used again.
        unsafe { libc::free(context.cast()) };
        answer.map(Some).map_err(|cause| failed(io::Error::new(io::ErrorKind::InvalidData, cause)))
    }
}

impl Drop for FileContexts {
    fn drop(&mut self) {
        // SAFETY: the handle is open and not used again.
        unsafe { selabel_close(self.handle.as_ptr()) };
    }
}

/// The text as a file that nobody else sees, and beside which nobody can lay a compiled one.
fn in_memory(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"file_contexts", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    Ok(file)
}

fn open(file: &File) -> Result<FileContexts, FileContextsError> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let name = CString::new(path.as_str()).map_err(|cause| FileContextsError::Io { cause: cause.into() })?;
    let mut told = [0u8; 512];
    // SAFETY: the path ends in NUL, `told` has the length that is said, and what is written to it ends in NUL.
    let handle = unsafe { tollgate_file_contexts_open(name.as_ptr(), told.as_mut_ptr().cast(), told.len()) };
    let cause = io::Error::last_os_error();
    let told = String::from_utf8_lossy(&told);
    let told = told.trim_end_matches('\0').trim();
    match NonNull::new(handle) {
        Some(handle) => Ok(FileContexts { handle }),
        None if told.is_empty() => Err(FileContextsError::Io { cause }),
        None => Err(refusal(told.strip_prefix(&path).unwrap_or(told).trim_start_matches([':', ' ']))),
    }
}

/// `line N has invalid regex ...`, taken apart.
fn refusal(told: &str) -> FileContextsError {
    let numbered = told.strip_prefix("line ").and_then(|rest| rest.split_once(' '));
    match numbered.and_then(|(line, reason)| Some((line.parse().ok()?, reason))) {
        Some((line, reason)) => FileContextsError::Line { line, reason: reason.to_owned() },
        None => FileContextsError::Refused { reason: told.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: u32 = libc::S_IFDIR | 0o755;
    const FILE: u32 = libc::S_IFREG | 0o644;

    fn lookup(text: &str, path: &str, mode: u32) -> Option<String> {
        FileContexts::new(text).unwrap().lookup(Path::new(path), mode).unwrap()
    }

    fn line(text: &str) -> usize {
        match FileContexts::new(text) {
            Err(FileContextsError::Line { line, .. }) => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn takes_the_last_expression_that_matches_the_path_and_the_kind() {
        let text = "/srv(/.*)? u:r:srv_t:s0\n/srv/.* -d u:r:dir_t:s0\n/srv/key -- u:r:key_t:s0\n";
        assert_eq!(lookup(text, "/srv/a/b", FILE).as_deref(), Some("u:r:srv_t:s0"));
        assert_eq!(lookup(text, "/srv/a/b", DIRECTORY).as_deref(), Some("u:r:dir_t:s0"));
        assert_eq!(lookup(text, "/srv/key", FILE).as_deref(), Some("u:r:key_t:s0"));
        assert_eq!(lookup(text, "/srv/key", DIRECTORY).as_deref(), Some("u:r:dir_t:s0"));
    }

    #[test]
    fn gives_no_label_where_nothing_matches_or_none_is_said() {
        let text = "/srv/.* u:r:srv_t:s0\n/srv/tmp/.* <<none>>\n";
        assert_eq!(lookup(text, "/var", DIRECTORY), None);
        assert_eq!(lookup(text, "/srv/tmp/x", FILE), None);
        assert_eq!(lookup("", "/srv/tmp/x", FILE), None);
        assert_eq!(lookup("# /srv u:r:srv_t\n", "/srv", DIRECTORY), None);
    }

    #[test]
    fn matches_names_that_are_not_text_and_names_with_line_ends() {
        let contexts = FileContexts::new("/srv/.* u:r:srv_t\n").unwrap();
        let strange = Path::new(std::ffi::OsStr::from_bytes(b"/srv/\xff\n\x01"));
        assert_eq!(contexts.lookup(strange, FILE).unwrap().as_deref(), Some("u:r:srv_t"));
        let long = PathBuf::from(format!("/srv{}", "/directory".repeat(1000)));
        assert_eq!(contexts.lookup(&long, FILE).unwrap().as_deref(), Some("u:r:srv_t"));
    }

    #[test]
    fn refuses_a_path_with_a_nul() {
        let contexts = FileContexts::new("/.* u:r:t\n").unwrap();
        assert!(matches!(contexts.lookup(Path::new("/a\0b"), FILE), Err(FileContextsError::Lookup { .. })));
    }

    #[test]
    fn tells_the_line_of_what_is_wrong() {
        let good = "/a u:r:t\n\n# comment\n";
        assert_eq!(line(&format!("{good}/b(c u:r:t\n")), 4, "an expression");
        assert_eq!(line(&format!("{good}/b -x u:r:t\n")), 4, "a kind of file");
        assert_eq!(line(&format!("{good}/b\n")), 4, "no context");
        assert_eq!(line(&format!("{good}/b type\n")), 4, "a context");
        assert_eq!(line(&format!("{good}/b u::t\n")), 4, "a context");
        let error = FileContexts::checked(&format!("{good}/b u:r:x\n/c u:r:y"), |context| {
            if context == "u:r:y" { Err("no such type".into()) } else { Ok(()) }
        });
        assert_eq!(error.unwrap_err().to_string(), "file_contexts, line 5: no such type");
    }

    #[test]
    fn refuses_two_contexts_for_one_expression() {
        let error = FileContexts::new("/a u:r:t\n/a u:r:x\n").unwrap_err();
        assert!(error.to_string().contains("/a"), "{error}");
    }

    #[test]
    fn reads_tollgates_own() {
        let contexts = FileContexts::new(include_str!("../../../../policies/tollgate/file_contexts")).unwrap();
        let shadow = contexts.lookup(Path::new("/etc/shadow"), FILE).unwrap();
        assert_eq!(shadow.as_deref(), Some("system_u:object_r:shadow_t:s0"));
    }
}
