//! The only value of a BPF map, mapped into memory, which programs and the daemon read and write.

use std::{io, marker::PhantomData, num::NonZeroUsize, os::fd::AsFd, ptr::NonNull};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// The value of an array map with one element that was made with `BPF_F_MMAPABLE`, such as the global variables.
///
/// Others write it at any time. Each member is read and written separately and in one access, through [`Mapping::get`].
pub struct Mapping<T> {
    memory: NonNull<T>,
    length: usize,
    kind: PhantomData<T>,
}

// SAFETY: the memory belongs to the kernel's map and stays mapped; all access goes through raw pointers.
unsafe impl<T> Send for Mapping<T> {}
// SAFETY: as above; members are accessed atomically, or by who alone writes them.
unsafe impl<T> Sync for Mapping<T> {}

impl<T> std::fmt::Debug for Mapping<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").field("length", &self.length).finish_non_exhaustive()
    }
}

impl<T> Mapping<T> {
    /// Maps the value of `map`, which begins with a `T` (`programs::of_this_build`). The kernel refuses a shorter one.
    pub fn new(map: impl AsFd) -> io::Result<Self> {
        Self::with_tail(map, 0)
    }

    /// Also maps so many bytes behind the `T`.
    pub fn with_tail(map: impl AsFd, tail: usize) -> io::Result<Self> {
        let length = (size_of::<T>() + tail).next_multiple_of(4096);
        let length = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, chosen by the kernel, aliases no memory of this program.
        let memory = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, map, 0) }?;
        Ok(Self { memory: memory.cast(), length: length.get(), kind: PhantomData })
    }

    /// The address of what is behind the `T`.
    #[must_use]
    pub fn tail(&self) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(1).cast()
    }

    /// Its address, for access to members with `volatile` semantics.
    #[must_use]
    pub fn get(&self) -> *mut T {
        self.memory.as_ptr()
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and nothing borrows from it.
        let _ = unsafe { munmap(self.memory.cast(), self.length) };
    }
}
