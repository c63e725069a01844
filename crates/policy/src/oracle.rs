//! libsepol's own evaluator, which answers the same questions as ours: the oracle of tests and of `policy verify`.
//!
//! libsepol 3.4 differs from the kernel in two places, where the kernel is right: it ignores file names in transitions,
//! and it does not give sockets the role, type and range of their creator (`sepol_compute_sid` of
//! libsepol/src/services.c beside security/selinux/ss/services.c). [`crate::verify::Difference`] lists them. It reads
//! the policy in this process, so it must be given only images that [`crate::sepol`] made or read.

#[cfg(test)]
mod tests;

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint},
    ptr::{self, NonNull},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// libsepol keeps the policy and the SIDs in global variables.
static OWNER: Mutex<()> = Mutex::new(());

#[repr(C)]
struct Loaded {
    opaque: [u8; 0],
}

/// `struct sepol_av_decision`, sepol/policydb/flask_types.h.
#[repr(C)]
#[derive(Default)]
struct RawAccess {
    allowed: u32,
    decided: u32,
    auditallow: u32,
    auditdeny: u32,
    seqno: u32,
}

unsafe extern "C" {
    fn tollgate_oracle_load(image: *mut c_char, length: usize) -> *mut Loaded;
    fn tollgate_oracle_free(oracle: *mut Loaded);
    fn tollgate_oracle_has(oracle: *const Loaded, class: u32) -> c_int;
    fn sepol_context_to_sid(context: *const c_char, length: usize, sid: *mut u32) -> c_int;
    fn sepol_sid_to_context(sid: u32, context: *mut *mut c_char, length: *mut usize) -> c_int;
    fn sepol_compute_av(source: u32, target: u32, class: u16, requested: u32, out: *mut RawAccess) -> c_int;
    fn sepol_transition_sid(source: u32, target: u32, class: u16, out: *mut u32) -> c_int;
    fn sepol_member_sid(source: u32, target: u32, class: u16, out: *mut u32) -> c_int;
    fn sepol_change_sid(source: u32, target: u32, class: u16, out: *mut u32) -> c_int;
    fn sepol_validate_transition_reason_buffer(
        old: u32,
        new: u32,
        task: u32,
        class: u16,
        reason: *mut *mut c_char,
        flags: c_uint,
    ) -> c_int;
}

/// libsepol cannot read the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("libsepol does not read this policy")]
pub struct OracleError;

/// Access vectors as libsepol computes them, one bit per permission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// Permissions that are granted.
    pub allowed: u32,
    /// Permissions whose grants are audited.
    pub auditallow: u32,
    /// Permissions whose denials are audited.
    pub auditdeny: u32,
}

/// A policy that libsepol has loaded. There is only one at a time, and other callers wait.
pub struct Oracle {
    loaded: NonNull<Loaded>,
    _owner: MutexGuard<'static, ()>,
}

impl std::fmt::Debug for Oracle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Oracle").finish_non_exhaustive()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // SAFETY: it was made by `tollgate_oracle_load`, and nothing asks libsepol before the next one is loaded.
        unsafe { tollgate_oracle_free(self.loaded.as_ptr()) }
    }
}

impl Oracle {
    /// Loads a binary policy.
    pub fn load(image: &[u8]) -> Result<Self, OracleError> {
        let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: libsepol reads `image.len()` bytes and keeps none; the cast away of const is its interface's.
        let loaded = unsafe { tollgate_oracle_load(image.as_ptr().cast_mut().cast(), image.len()) };
        Ok(Self { loaded: NonNull::new(loaded).ok_or(OracleError)?, _owner: owner })
    }

    /// The SID of a context; `None`: the context is not valid.
    pub fn sid(&mut self, context: &str) -> Option<u32> {
        let text = CString::new(context).ok()?;
        let mut sid = 0;
        // SAFETY: the text ends with a zero byte, which the length counts.
        let failed = unsafe { sepol_context_to_sid(text.as_ptr(), context.len() + 1, &raw mut sid) };
        (failed == 0).then_some(sid)
    }

    /// The context of a SID. For an unknown SID it is the one of `unlabeled` (`sepol_sidtab_search`). `None`: it cannot
    /// be written.
    pub fn context(&self, sid: u32) -> Option<String> {
        let (mut text, mut length) = (ptr::null_mut(), 0);
        // SAFETY: on success libsepol has allocated a text that ends with a zero byte.
        unsafe {
            if sepol_sid_to_context(sid, &raw mut text, &raw mut length) != 0 || text.is_null() {
                return None;
            }
            let context = CStr::from_ptr(text).to_string_lossy().into_owned();
            libc::free(text.cast());
            Some(context)
        }
    }

    /// The access vectors of two SIDs and a class.
    pub fn access(&self, source: u32, target: u32, class: u32) -> Access {
        let mut raw = RawAccess::default();
        let class = self.class(class);
        // SAFETY: libsepol takes SIDs that are not there for `unlabeled`, and class 0 is an error to it.
        let failed = unsafe { sepol_compute_av(source, target, class, 0, &raw mut raw) };
        if failed != 0 {
            return Access { auditdeny: u32::MAX, ..Access::default() };
        }
        Access { allowed: raw.allowed, auditallow: raw.auditallow, auditdeny: raw.auditdeny }
    }

    /// The SID of a new object; `None`: its context would not be valid.
    pub fn transition(&mut self, source: u32, target: u32, class: u32) -> Option<u32> {
        compute(sepol_transition_sid, source, target, self.class(class))
    }

    /// The SID of a member of a polyinstantiated object.
    pub fn member(&mut self, source: u32, target: u32, class: u32) -> Option<u32> {
        compute(sepol_member_sid, source, target, self.class(class))
    }

    /// The SID to relabel an object to.
    pub fn change(&mut self, source: u32, target: u32, class: u32) -> Option<u32> {
        compute(sepol_change_sid, source, target, self.class(class))
    }

    /// Whether `task` may relabel an object of `class` from `old` to `new`, according to validatetrans statements.
    pub fn validate(&self, old: u32, new: u32, task: u32, class: u32) -> bool {
        let class = self.class(class);
        let mut reason = ptr::null_mut();
        // SAFETY: libsepol takes SIDs that are not there for `unlabeled`, and class 0 is an error to it. It sets `reason`
        // to what malloc gave it, or to null, and leaves it to the caller.
        unsafe {
            let valid = sepol_validate_transition_reason_buffer(old, new, task, class, &raw mut reason, 0) == 0;
            libc::free(reason.cast());
            valid
        }
    }

    /// A class in the form for libsepol; 0: the policy does not have it.
    fn class(&self, class: u32) -> u16 {
        // SAFETY: it was made by `tollgate_oracle_load` and lives as long as `self`.
        let has = unsafe { tollgate_oracle_has(self.loaded.as_ptr(), class) } != 0;
        if has { u16::try_from(class).unwrap_or(0) } else { 0 }
    }
}

type Compute = unsafe extern "C" fn(u32, u32, u16, *mut u32) -> c_int;

fn compute(function: Compute, source: u32, target: u32, class: u16) -> Option<u32> {
    if class == 0 {
        return None;
    }
    let mut sid = 0;
    // SAFETY: libsepol takes SIDs that are not there for `unlabeled`, and the class is there.
    let failed = unsafe { function(source, target, class, &raw mut sid) };
    (failed == 0).then_some(sid)
}
