//! Memory that a process shares with its peer.

use std::{io, num::NonZeroUsize, ptr::NonNull};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Zeroed memory for a `T`, shared with the processes forked while it lives; unmapped on drop.
#[derive(Debug)]
pub(super) struct Shared<T>(NonNull<T>);

impl<T> Shared<T> {
    const SIZE: NonZeroUsize = match NonZeroUsize::new(size_of::<T>()) {
        Some(size) => size,
        None => panic!("nothing to share"),
    };

    /// Maps the memory. All zeros must be a valid `T`, and its alignment must not exceed a page.
    pub(super) fn zeroed() -> io::Result<Shared<T>> {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let memory = unsafe { mmap_anonymous(None, Self::SIZE, access, MapFlags::MAP_SHARED) }?;
        Ok(Shared(memory.cast()))
    }

    /// Its address, valid as long as this lives, in this process and its children.
    pub(super) fn address(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of that size, and no reference into it outlives this value.
        let _ = unsafe { munmap(self.0.cast(), Self::SIZE.get()) };
    }
}
