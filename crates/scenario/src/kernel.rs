//! Raw system calls, so that the kernel sees exactly what a scenario says.

use std::{
    ffi::{CStr, CString},
    io,
};

/// An argument of a system call.
#[derive(Debug)]
pub(crate) enum Argument<'a> {
    /// A number, a descriptor, or flags.
    Number(i64),
    /// A text that the kernel reads.
    Text(&'a CStr),
    /// Memory that the kernel reads.
    Bytes(&'a [u8]),
    /// Memory that the kernel writes.
    Room(&'a mut [u8]),
    /// An array of texts, as for execve, which ends with a null.
    Texts(&'a [*const libc::c_char]),
}

impl Argument<'_> {
    fn word(&mut self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.as_ptr() as i64,
            Self::Bytes(bytes) => bytes.as_ptr() as i64,
            Self::Room(room) => room.as_mut_ptr() as i64,
            Self::Texts(texts) => texts.as_ptr() as i64,
        }
    }
}

/// Makes a system call.
pub(crate) fn call(number: i64, arguments: &mut [Argument<'_>]) -> io::Result<i64> {
    let mut words = [0; 6];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = argument.word();
    }
    let [a, b, c, d, e, f] = words;
    // SAFETY: memory comes from slices that live until the call returns, at least as long as the callers' lengths say. Other
    // effects of a system call on this process are what its scenario tests.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An error by its number.
pub(crate) fn errno<T>(number: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(number))
}

/// A word as a C string; words contain no NUL.
pub(crate) fn text(word: &str) -> CString {
    CString::new(word).unwrap_or_default()
}

/// Sets an extended attribute of the file at the path itself.
pub(crate) fn set_attribute(path: &str, name: &str, value: &[u8]) -> io::Result<()> {
    let (path, name, length) = (text(path), text(name), value.len() as i64);
    call(
        libc::SYS_lsetxattr,
        &mut [
            Argument::Text(&path),
            Argument::Text(&name),
            Argument::Bytes(value),
            Argument::Number(length),
            Argument::Number(0),
        ],
    )
    .map(drop)
}
